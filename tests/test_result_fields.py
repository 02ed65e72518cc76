"""Every field of every public result is read by a test that has its value.

`KNOWN` computes fields by a formula of a few lines, or from another public call. Fields
that a formula does not give are read in the file that `READ_IN` names for their class.
A new class, or a field without either, makes a test fail.
"""

import dataclasses
import inspect
import re
from datetime import date
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from cases import run_every_case
from offered import offered
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator
from scipy.special import expit, logit, softmax
from scipy.stats import beta, binom, chi2, norm
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, roc_auc_score
from words import QUICKER

from sklearn_calib import (
    __version__,
    decisions,
    decomposition,
    displays,
    groups,
    inference,
    metrics,
    recalibrators as maps,
)
from sklearn_calib.classifiers import AngularCalibratedClassifier
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.inference import prior_shift_test
from sklearn_calib.linear import approximate_leave_one_out, estimate_angle
from sklearn_calib.monitoring import CalibrationMonitor, safe_calibration_test
from sklearn_calib.report import calibration_report, multilabel_report
from sklearn_calib.summary import CalibrationSummary, CellSample

TESTS = Path(__file__).parent
N = 90
rng = np.random.default_rng(7)
P = np.clip(rng.beta(1.2, 2.0, N).round(2), 0.01, 0.99)  # with ties
Y = (rng.random(N) < P**1.4).astype(int)
OTHER = np.clip(0.6 * P + 0.4 * rng.random(N), 0.01, 0.99)
W = rng.integers(1, 4, N).astype(float)
HALF = 0.5 * W + 0.25 * (np.arange(N) % 2)  # no whole numbers
PROBA = np.column_stack([1 - P, P])
COUNTS = rng.multinomial(29, rng.dirichlet(np.ones(3), N)) + 1
P3 = COUNTS / 32  # with ties, without rounding noise
Y3 = (rng.random(N)[:, None] > np.cumsum(0.7 * P3 + 0.1, axis=1)[:, :2]).sum(axis=1)
LOGIT = logit(P)
X = np.column_stack([LOGIT, rng.normal(size=N)])
Z95 = norm.ppf(0.975)
KNOWN = {}


def known(*names):
    """Register a function of (object, {field: value}) pairs; the classes that it is about."""

    def register(function):
        KNOWN.update(dict.fromkeys(names, function))
        return function

    return register


def clopper_pearson(events, rows, level):
    tail = (1 - level) / 2
    low = beta.ppf(tail, events, rows - events + 1) if events > 0 else 0.0
    high = beta.ppf(1 - tail, events + 1, rows - events) if events < rows else 1.0
    return low, high


def mean(values, weight=W):
    return np.average(values, weights=weight, axis=0)


def log_loss(y, p, weight=W):
    return mean(-np.log(np.where(y == 1, p, 1 - p)), weight)


# --- decisions ---------------------------------------------------------------------------------


@known("RiskCoverageCurve")
def risk_coverage():
    found = decisions.risk_coverage_curve(Y3, P3, level=0.9)
    sure, wrong = P3.max(axis=1), P3.argmax(axis=1) != Y3
    levels = np.unique(sure)[::-1]
    answered = [sure >= one for one in levels]
    risk = np.array([wrong[rows].mean() for rows in answered])
    ends = [clopper_pearson(wrong[rows].sum(), rows.sum(), 0.9) for rows in answered]
    coverage = np.array([rows.mean() for rows in answered])
    final = wrong.mean()
    yield (
        found,
        {
            "threshold": levels,
            "coverage": coverage,
            "risk": risk,
            "rows": [rows.sum() for rows in answered],
            "low": [one[0] for one in ends],
            "high": [one[1] for one in ends],
            "level": 0.9,
            "area": decisions.area_under_risk_coverage(Y3, P3),
            "perfect_area": decisions.area_under_risk_coverage(
                wrong.astype(int),
                np.column_stack([1 - 0.4 * wrong, 0.4 * wrong]),
                labels=[0, 1],
            ),
            "excess": found.area - found.perfect_area,
            "perfect_risk": np.maximum(0, 1 - (1 - final) / coverage),
        },
    )


@known("SelectiveClassifier")
def selective():
    model = LogisticRegression(C=100.0).fit(X, Y)
    frozen = FrozenEstimator(model)
    segment = np.arange(N) % 2

    def by_hand(rows, delta):
        sure = model.predict_proba(X[rows]).max(axis=1)
        wrong = model.predict(X[rows]) != Y[rows]
        n = len(sure)
        threshold = np.sort(sure)[::-1][int(np.ceil(0.6 * n)) - 1]
        answered = sure >= threshold
        k, errors = answered.sum(), wrong[answered].sum()
        interval = (
            beta.ppf(delta / 2, k, n + 1 - k),
            beta.ppf(1 - delta / 2, k + 1, n - k),
        )
        bound = beta.ppf(1 - delta, errors + 1, k - errors)
        return threshold, k / n, errors / k, bound, interval

    one = decisions.SelectiveClassifier(frozen, coverage=0.6, delta=0.2).fit(X, Y)
    names = ("threshold_", "coverage_", "risk_", "risk_bound_", "coverage_interval_")
    yield one, dict(zip(names, by_hand(slice(None), 0.2), strict=True))
    two = decisions.SelectiveClassifier(frozen, coverage=0.6, delta=0.2)
    two.fit(X, Y, groups=segment)
    found = {group: by_hand(segment == group, 0.1) for group in (0, 1)}
    plural = (
        "thresholds_",
        "coverages_",
        "risks_",
        "risk_bounds_",
        "coverage_intervals_",
    )
    values = {
        name: {group: one[i] for group, one in found.items()}
        for i, name in enumerate(plural)
    }
    largest = max(one[3] for one in found.values())
    yield two, values | {"risk_bound_": largest}


@known("DecisionCurve", "NetBenefitDifference")
def net_benefits():
    thresholds = np.array([0.2, P[0], 0.6])
    found = decisions.decision_curve(
        Y, P, thresholds=thresholds, harms=0.03, sample_weight=W, level=0.8
    )
    odds = thresholds / (1 - thresholds)
    acts = P[:, None] >= thresholds
    gain = np.where(Y[:, None] == 1, 1.0, -odds)
    benefit = mean(acts * gain) - 0.03
    everyone = mean(gain + 0 * acts)
    quantile = norm.ppf(0.9)
    events = mean(Y)

    def error(rows):
        # ratio of sums: the linear part of each row
        part = W[:, None] * (rows - mean(rows))
        return np.sqrt((part**2).sum(axis=0)) / W.sum()

    widths = {"own": error(acts * gain), "pair": error((acts - 1) * gain)}
    width = norm.ppf(0.9) * found.over_all.standard_error
    yield (
        found,
        {
            "threshold": thresholds,
            "net_benefit": benefit,
            "treat_all": everyone,
            "acted": mean(acts),
            "prevalence": events,
            "harms": 0.03,
            "level": 0.8,
            "regret": None,
            "standard_error": pytest.approx(widths["own"], rel=0.02),
            "low": pytest.approx(benefit - quantile * widths["own"], abs=0.02),
            "high": pytest.approx(benefit + quantile * widths["own"], abs=0.02),
            "standardised": benefit / events,
            "net_benefit_untreated": found.net_benefit / odds
            + 1
            - events
            - events / odds,
            "interventions_avoided": 100 * (benefit - everyone) / odds,
        },
    )
    yield (
        found.over_all,
        {
            "threshold": thresholds,
            "difference": benefit - everyone,
            "standard_error": pytest.approx(widths["pair"], rel=0.02),
            "low": pytest.approx(found.over_all.difference - width, abs=0.02),
            "high": pytest.approx(found.over_all.difference + width, abs=0.02),
            "level": 0.8,
        },
    )


@known("ExpectedCost")
def expected_cost():
    costs = np.array([[0.0, 1.0], [5.0, 0.5]])
    found = decisions.expected_cost_test(Y, P, costs, level=0.9, sample_weight=W)
    expected = PROBA @ costs
    action = expected.argmin(axis=1)
    rows = np.arange(N)
    gap = expected[rows, action] - costs[Y, action]
    spread = P * (1 - P) * (costs[1, action] - costs[0, action]) ** 2
    error = np.sqrt((W**2 * (gap - mean(gap)) ** 2).sum()) / W.sum()
    null = np.sqrt((W**2 * spread).sum()) / W.sum()
    yield (
        found,
        {
            "realised": mean(costs[Y, action]),
            "believed": mean(expected[rows, action]),
            "difference": mean(gap),
            "standard_error": pytest.approx(error, rel=0.02),
            "low": found.difference - norm.ppf(0.95) * found.standard_error,
            "high": found.difference + norm.ppf(0.95) * found.standard_error,
            "level": 0.9,
            "statistic": mean(gap) / null,
            "pvalue": 2 * norm.sf(abs(mean(gap) / null)),
        },
    )


@known("ExpectedMetrics")
def expected_of_labels():
    found = decisions.expected_metrics(P, threshold=0.4, y_true=Y, sample_weight=W)
    acts = P >= 0.4
    right = np.where(acts, P, 1 - P)
    table = [
        [(W * (1 - P) * ~acts).sum(), (W * (1 - P) * acts).sum()],
        [(W * P * ~acts).sum(), (W * P * acts).sum()],
    ]
    above = (P[:, None] > P) + 0.5 * (P[:, None] == P)
    pairs = np.outer(W * P, W * (1 - P)) * (1 - np.eye(N))
    spread = np.sqrt((W**2 * P * (1 - P)).sum()) / W.sum()
    yield (
        found,
        {
            "accuracy": mean(right),
            "brier_loss": mean(P * (1 - P)),
            "log_loss": mean(-P * np.log(P) - (1 - P) * np.log(1 - P)),
            "cost": mean(np.minimum(P, 1 - P)),
            "precision": table[1][1] / (table[0][1] + table[1][1]),
            "recall": table[1][1] / (table[1][0] + table[1][1]),
            "auc": pytest.approx((pairs * above).sum() / pairs.sum(), rel=0.01),
            "confusion": table,
        },
    )
    realised = {
        "accuracy": mean(acts == Y),
        "cost": mean((P >= 0.5) != Y),
        "brier_loss": mean((P - Y) ** 2),
        "log_loss": log_loss(Y, P),
        "auc": roc_auc_score(Y, P, sample_weight=W),
        "precision": (W * acts * Y).sum() / (W * acts).sum(),
        "recall": (W * acts * Y).sum() / (W * Y).sum(),
    }
    for name, value in realised.items():
        assert found.realised[name] == pytest.approx(value, abs=1e-12), name
    assert found.standard_deviations["accuracy"] == pytest.approx(spread, rel=1e-9)
    matrix = confusion_matrix(Y, acts, sample_weight=W)
    np.testing.assert_allclose(found.realised.get("confusion", matrix), matrix)


@known("RegretCurve")
def regret():
    found = decisions.regret_curve(
        Y, P, OTHER, level=0.9, n_resamples=19, sample_weight=W
    )
    breaks = np.unique([0, *P, *OTHER, 1])
    middle = (breaks[:-1] + breaks[1:]) / 2

    def cost(p, t):
        acts = p[:, None] >= t
        return mean(np.where(Y[:, None] == 1, (1 - t) * ~acts, t * acts))

    gap = cost(P, middle) - cost(OTHER, middle)
    ends = np.array([cost(P, breaks[1:] - 1e-12) - cost(OTHER, breaks[1:] - 1e-12)])
    starts = cost(P, breaks[:-1] + 1e-12) - cost(OTHER, breaks[:-1] + 1e-12)
    largest = max(ends.max(), starts.max(), 0.0)
    integral = (gap * np.diff(breaks)).sum()
    yield (
        found,
        {
            "breaks": breaks,
            "intercept": gap - found.slope * middle,
            "slope": (ends[0] - starts) / (np.diff(breaks) - 2e-12),
            "integral": integral,
            "brier_part": mean((P - Y) ** 2) - mean((OTHER - Y) ** 2),
            "log_loss_part": log_loss(Y, P) - log_loss(Y, OTHER),
            "maximum": pytest.approx(largest, abs=1e-9),
            "level": 0.9,
        },
    )
    assert found.brier_part == pytest.approx(2 * integral, abs=1e-12)


# --- decomposition -----------------------------------------------------------------------------


@known("LossDecomposition", "RefinementCurve")
def loss_parts():
    one = clone(maps.TemperatureScaling()).fit(P, Y, sample_weight=W)
    refined = log_loss(Y, one.predict_proba(P)[:, 1])
    events = mean(Y)
    entropy = -events * np.log(events) - (1 - events) * np.log(1 - events)
    found = decomposition.decompose_loss(
        Y, P, recalibrator="temperature", sample_weight=W
    )
    yield (
        found,
        {
            "risk": log_loss(Y, P),
            "refinement": refined,
            "calibration": log_loss(Y, P) - refined,
            "uncertainty": entropy,
            "sharpness": entropy - refined,
            "loss": "log",
            "grouping": None,
            "gain_of_features": None,
            "irreducible": None,
            "feature_gains": None,
            "minimum_detectable": None,
        },
    )
    curve = decomposition.refinement_curve(
        Y, [P, OTHER], sample_weight=W, unit="epochs"
    )
    other = maps.TemperatureScaling().fit(OTHER, Y, sample_weight=W)
    refinement = [refined, log_loss(Y, other.predict_proba(OTHER)[:, 1])]
    risk = [log_loss(Y, P), log_loss(Y, OTHER)]
    yield (
        curve,
        {
            "stage": [1, 2],
            "risk": risk,
            "refinement": refinement,
            "calibration": np.subtract(risk, refinement),
            "loss": "log",
            "unit": "epochs",
        },
    )


@known("CalibrationIndices")
def indices():
    found = decomposition.calibration_indices(
        Y, P, smoother="isotonic", sample_weight=W
    )
    gap = np.abs(
        P - maps.IsotonicCalibration().fit(P, Y, sample_weight=W).predict_proba(P)[:, 1]
    )
    repeated = np.repeat(gap, W.astype(int))

    yield (
        found,
        {
            "ici": mean(gap),
            "e50": np.quantile(repeated, 0.5),
            "e90": np.quantile(repeated, 0.9),
            "emax": gap.max(),
        },
    )


# --- groups ------------------------------------------------------------------------------------


@known("GradeCalibration", "GradeRow", "Grades")
def rating_grades():
    edges = [0.15, 0.3, 0.5]
    given = groups.Grades(edges, ["A", "B", "C", "D"])
    found = groups.grade_calibration(
        Y, P, given, level=0.8, prudent_level=0.7, lights=(0.3, 0.02), n_resamples=19
    )
    low, high = [0.0, *edges], [*edges, 1.0]
    grade = np.searchsorted(edges, P, side="right")
    worse = [
        beta.ppf(0.7, Y[grade >= g].sum() + 1, (1 - Y[grade >= g]).sum())
        for g in range(4)
    ]
    yield (
        found,
        {
            "level": 0.8,
            "prudent_level": 0.7,
            "lights": (0.3, 0.02),
            "n_resamples": 19,
            "n_unsure": 0,
        },
    )
    yield given, {"edges": edges, "names": ["A", "B", "C", "D"]}
    for g, row in enumerate(found.rows):
        rows = grade == g
        n, events, rate = int(rows.sum()), int(Y[rows].sum()), P[rows].mean()
        ends = clopper_pearson(events, n, 0.8)
        jeffreys = beta.cdf(rate, events + 0.5, n - events + 0.5)
        light = "red" if jeffreys <= 0.02 else "amber" if jeffreys <= 0.3 else "green"
        yield (
            row,
            {
                "grade": "ABCD"[g],
                "low": low[g],
                "high": high[g],
                "n_rows": n,
                "events": events,
                "predicted": rate,
                "observed": events / n,
                "observed_low": ends[0],
                "observed_high": ends[1],
                "jeffreys_p": jeffreys,
                "binomial_p": binom.sf(events - 1, n, rate),
                "light": light,
                "prudent": max(worse[: g + 1]),
            },
        )


@known("GroupCalibration", "GroupRow")
def audited_groups():
    segment = np.array(["a", "b", "c"])[np.arange(N) % 10 // 4]
    found = groups.group_calibration(
        Y, P, segment, min_rows=19, level=0.9, n_resamples=39, sample_weight=W
    )
    chosen = [np.arange(N), *(np.flatnonzero(segment == one) for one in "ab")]
    null = found.null_distribution
    yield (
        found,
        {
            "level": 0.9,
            "alpha": pytest.approx(0.1),
            "n_samples": N,
            "n_left_out": 1,
            "min_rows": 19,
            "n_resamples": 39,
            "sigma": max(row.sigma for row in found.rows),
            "critical_sigma": np.sort(null)[int(np.ceil(0.9 * 40)) - 1],
            "p_value": (1 + (null >= found.sigma * (1 - 1e-9)).sum()) / 40,
            "members": chosen,
            "rejected": [row for row in found.rows if row.adjusted_p_value <= 0.1],
        },
    )
    for row, rows in zip(found.rows, chosen, strict=True):
        w, p, y = W[rows], P[rows], Y[rows]
        levels = np.unique(p)
        path = [0, *(((y - p) * w)[p <= one].sum() for one in levels)]
        sigma = np.ptp(path) / np.sqrt((w**2 * p * (1 - p)).sum())
        line = LogisticRegression(C=np.inf, tol=1e-10).fit(
            logit(p)[:, None], y, sample_weight=w
        )
        yield (
            row,
            {
                "event": "class 1",
                "n_rows": len(rows),
                "weight": w.sum(),
                "events": (w * y).sum(),
                "expected": (w * p).sum(),
                "observed_over_expected": (w * y).sum() / (w * p).sum(),
                "slope": pytest.approx(line.coef_[0, 0], abs=1e-4),
                "sigma": sigma,
                "adjusted_p_value": (1 + (null >= row.sigma * (1 - 1e-9)).sum()) / 40,
            },
        )
        moved = expit(logit(p) + row.in_the_large)
        assert (w * moved).sum() == pytest.approx((w * y).sum(), rel=1e-6), row.group


# --- inference ---------------------------------------------------------------------------------


@known("SignificanceResult")
def classical_tests():
    spread = (W**2 * P * (1 - P) * (1 - 2 * P) ** 2).sum()
    z = (W * (Y - P) * (1 - 2 * P)).sum() / np.sqrt(spread)
    found = inference.spiegelhalter_test(Y, P, sample_weight=W)
    yield found, {"statistic": z, "pvalue": 2 * norm.sf(abs(z))}
    q = (np.arange(100) + 0.5) / 100  # without ties
    y = (np.random.default_rng(1).random(100) < q).astype(int)
    bins = np.arange(100) // 20
    parts = [
        (y[bins == b] - q[bins == b]).sum() ** 2
        / (20 * q[bins == b].mean() * (1 - q[bins == b].mean()))
        for b in range(5)
    ]
    found = inference.hosmer_lemeshow_test(
        y, q, n_bins=5, held_out=False, n_parameters=2
    )
    yield found, {"statistic": sum(parts), "pvalue": chi2.sf(sum(parts), 3)}


@known("PairedDifference", "ConfidenceInterval")
def intervals():
    # 50 rows of each class, at least
    y, one, two = (np.tile(rows, 6) for rows in (Y, P, OTHER))
    found = inference.paired_difference(y, one, two, "log_loss", level=0.9)
    losses = [-np.log(np.where(y == 1, p, 1 - p)) for p in (one, two)]
    gap = losses[1] - losses[0]
    width = norm.ppf(0.95) * gap.std() / np.sqrt(6 * N)
    yield (
        found,
        {
            "measure": "log_loss",
            "first": losses[0].mean(),
            "second": losses[1].mean(),
            "difference": gap.mean(),
            "low": pytest.approx(gap.mean() - width, rel=0.03),
            "high": pytest.approx(gap.mean() + width, rel=0.03),
            "level": 0.9,
            "method": "normal",
        },
    )
    single = inference.confidence_interval(
        Y, P, "brier_loss", level=0.9, n_resamples=50
    )
    value = metrics.brier_loss(Y, P)
    yield single, {"sample_value": value, "level": 0.9}
    assert single.low < single.estimate < single.high


@known("MonteCarloResult")
def drawn_tests():
    found = inference.calibration_test(Y, P, n_resamples=39, random_state=0)
    null = found.null_distribution
    assert null.shape == (39,)
    yield found, {"pvalue": (1 + (null >= found.ranked * (1 - 1e-12)).sum()) / 40}


# --- metrics -----------------------------------------------------------------------------------


@known("Predictions", "BinaryProblem", "Cells")
def cases():
    case = metrics.validate_predictions(Y3, P3, HALF)
    yield (
        case,
        {
            "second": P3[:, -1],
            "codes": Y3,
            "classes": [0, 1, 2],
            "is_resample": False,
            "items": None,
            "clusters": None,
            "n_given": N,
            "n_items": N,
            "n_clusters": None,
            "kept": None,
            "unit": HALF.mean() / case.weight.mean(),
        },
    )
    again = case.with_labels(Y3[::-1])
    yield again, {"codes": Y3[::-1], "is_resample": True}
    binary = metrics.validate_predictions(Y, P, W)
    (problem,) = binary.problems()
    yield problem, {"score": P, "hit": Y, "weight": W, "share": 1.0, "title": "class 1"}
    score = np.unique(P)
    mass = np.array([W[score_ == P].sum() for score_ in score])
    hits = np.array([(W * Y)[score_ == P].sum() for score_ in score])
    yield (
        problem.cells,
        {
            "score": score,
            "mass": mass,
            "hits": hits,
            "residual": (hits - mass * score) / W.sum(),
        },
    )


@known("CumulativeDifferences")
def cumulative():
    found = metrics.cumulative_differences(Y, P, sample_weight=W)
    levels = np.unique(P)
    path = np.array([(W * (Y - P))[one >= P].sum() for one in levels]) / W.sum()
    yield (
        found,
        {
            "score": levels,
            "weight": [W[one >= P].sum() / W.sum() for one in levels],
            "difference": path,
            "sigma": np.sqrt((W**2 * P * (1 - P)).sum()) / W.sum(),
            "title": "class 1",
            "range": np.ptp([0, *path]),
            "mad": np.abs(path).max(),
        },
    )


@known("ReliabilityCurve", "ReliabilityCurves")
def reliability():
    found = metrics.reliability_curve(
        Y, P, strategy="uniform", n_bins=5, n_resamples=20, sample_weight=W, level=0.8
    )
    edge = np.ceil(5 * P - 1e-12).astype(int) - 1
    bins = [edge == b for b in range(5) if (edge == b).any()]
    yield (
        found[0],
        {
            "predicted": [mean(P[b], W[b]) for b in bins],
            "observed": [mean(Y[b], W[b]) for b in bins],
            "weight": [W[b].sum() for b in bins],
            "level": 0.8,
            "strategy": "uniform",
            "title": "class 1",
        },
    )
    assert found[0].histogram.sum() == pytest.approx(1.0)
    assert found[0].log_odds_histogram.sum() == pytest.approx(1.0)


# --- monitoring, shift, summary ------------------------------------------------------------------


@known("SafeTestResult")
def safe_test():
    found = safe_calibration_test(Y, P, n_splits=3)
    value = np.exp(found.log_e_values).mean()
    yield found, {"e_value": value, "pvalue": min(1.0, 1 / value)}


@known("CalibrationMonitor")
def monitors():
    monitor = CalibrationMonitor(alpha=0.01)
    monitor.update(Y, P)
    table = monitor.posterior_
    slope = np.exp(table.sum(axis=1) @ np.log(monitor.slopes_))
    yield (
        monitor,
        {
            "n_samples_": N,
            "e_value_": np.exp(monitor.log_e_value_),
            "impossible_": 0,
            "slope_": slope,
            "shift_": table.sum(axis=0) @ monitor.shifts_,
            "n_alarms_": len(monitor.alarms_),
            "classes_": [0, 1],
        },
    )
    assert table.sum() == pytest.approx(1.0)
    history = monitor.history_
    assert history.n_samples[-1] == N
    assert history.log_e_value[-1] == pytest.approx(monitor.log_e_value_)
    assert monitor.p_value_ <= min(1, np.exp(-history.log_e_value.max())) * (1 + 1e-9)


def test_flagged_groups_are_the_largest_number_that_their_evidence_allows():
    """Of n groups the k largest, if the k-th e-value is at least n / (k alpha)."""
    draws = np.random.default_rng(2)
    p = draws.random(1200)
    shops = np.arange(1200) % 6
    tilted = np.where(shops < 3, p**3.0, p)
    y = (draws.random(1200) < tilted).astype(int)
    sizes = set()
    for alpha in (0.5, 0.1, 1e-4, 1e-9, 1e-15):
        monitor = CalibrationMonitor(alpha=alpha, groups=range(6)).update(
            y, p, groups=shops
        )
        values = monitor.e_values_
        order = sorted(values, key=values.get, reverse=True)
        enough = [k for k in range(1, 7) if values[order[k - 1]] >= 6 / (k * alpha)]
        expected = set(order[: max(enough, default=0)])
        found = set(monitor.flagged_)
        assert found == expected, f"alpha={alpha}: expected {expected}, got {found}"
        sizes.add(len(found))
    assert len(sizes) > 1


@known("PriorShiftResult")
def shifted_priors():
    found = prior_shift_test(
        PROBA, Y, np.column_stack([1 - OTHER, OTHER]), n_resamples=39
    )
    null = found.null_distribution
    yield (
        found,
        {
            "pvalue": (1 + (null >= found.statistic * (1 - 1e-9)).sum()) / 40,
            "label": 1,
        },
    )
    assert found.prior.sum() == pytest.approx(1.0)


def losses_of_rows(proba, codes):
    """Losses, and the mean and variance of each over labels drawn from the row."""
    rows, k = np.arange(len(codes)), proba.shape[1]
    log = -np.log(proba)
    square = np.array([((np.eye(k)[c] - proba) ** 2).sum(axis=1) for c in range(k)]).T
    for table in (log, square):
        first = (proba * table).sum(axis=1)
        yield table[rows, codes], first, (proba * table**2).sum(axis=1) - first**2


@known("CalibrationSummary", "Totals", "MulticlassTotals")
def summaries():
    one = CalibrationSummary(classes=[0, 1]).update(Y, P, HALF)
    cells = len(np.unique(P))
    yield (
        one,
        {
            "n_samples": N,
            "weight": HALF.sum(),
            "n_cells": cells,
            "exact": True,
            "significant_bits": 52,
            "classes": [0, 1],
            "positive_label": 1,
        },
    )
    spread = P * (1 - P)
    yield (
        one.totals,
        {
            "n_samples": N,
            "weight": HALF.sum(),
            "squared_weight": (HALF**2).sum(),
            "log_loss": HALF.sum() * log_loss(Y, P, HALF),
            "brier": (HALF * (P - Y) ** 2).sum(),
            "variance": (HALF * spread).sum(),
            "squared_variance": (HALF**2 * spread).sum(),
            "spiegelhalter_variance": (HALF**2 * spread * (1 - 2 * P) ** 2).sum(),
            "certain_and_wrong": 0,
        },
    )
    several = CalibrationSummary(classes=[0, 1, 2]).update(Y3, P3, HALF)
    (log, log_mean, log_var), (sq, sq_mean, sq_var) = losses_of_rows(P3, Y3)
    yield (
        several.totals,
        {
            "n_samples": N,
            "weight": HALF.sum(),
            "squared_weight": (HALF**2).sum(),
            "correct": (HALF * (P3.argmax(axis=1) == Y3)).sum(),
            "certain_and_wrong": 0,
            "log_loss": HALF @ log,
            "log_loss_of_squares": HALF**2 @ log,
            "squared_log_loss": HALF**2 @ log**2,
            "expected_log_loss": HALF @ log_mean,
            "variance_of_log_loss": HALF**2 @ log_var,
            "brier": HALF @ sq,
            "brier_of_squares": HALF**2 @ sq,
            "squared_brier": HALF**2 @ sq**2,
            "expected_brier": HALF @ sq_mean,
            "variance_of_brier": HALF**2 @ sq_var,
        },
    )


# --- report ------------------------------------------------------------------------------------


@known("CalibrationReport", "ReportRow", "AdviceRow", "Bin", "Line")
def reports():
    found = calibration_report(Y, P, n_resamples=20, sample_weight=W, name="m")
    yield (
        found,
        {
            "n_samples": N,
            "classes": [0, 1],
            "n_clusters": None,
            "level": 0.9,
            "sklearn_log_loss": {},
            "created": date.today().isoformat(),
            "version": __version__,
            "source": None,
        },
    )
    for row in found.rows:
        measure = metrics.all_metrics()[row.measure]
        value = measure(Y, P, sample_weight=W)
        outside = value > row.null_mean
        if measure.spec.greater_is_better:
            outside = value < row.null_mean
        yield row, {"model": "m", "value": value, "exceeds_chance": outside}
        assert row.low <= row.value <= row.high, row
    verdict = found.verdict
    evidence = verdict.evidence
    line = LogisticRegression(C=np.inf, tol=1e-10).fit(
        logit(P)[:, None], Y, sample_weight=W
    )
    yield (
        evidence.line,
        {
            "slope": pytest.approx(line.coef_[0, 0], abs=1e-4),
            "intercept": pytest.approx(line.intercept_[0], abs=1e-4),
            "n_clusters": None,
            "freedom": None,
        },
    )
    for one in evidence.bins:
        rows = (one.low <= P) & (one.high >= P)
        p, y = mean(P[rows], W[rows]), mean(Y[rows], W[rows])
        yield (
            one,
            {
                "rows": rows.sum(),
                "weight": W[rows].sum(),
                "predicted": p,
                "observed": y,
                "observed_over_expected": y / p,
                "gap": abs(p - y),
            },
        )


# --- other results -----------------------------------------------------------------------------


@known("VariationalInterval", "SampleSizeTarget", "ValidationTable", "ValidationRow")
def studies():
    yield (
        decomposition.variational_calibration_interval(Y, P, level=0.8, cv=3),
        {
            "level": 0.8,
            "value": decomposition.variational_calibration_error(Y, P, cv=3),
        },
    )
    found = inference.validation_sample_size(P, oe_width=0.4, slope_width=0.5)
    targets = {one.target: one for one in found.targets}
    for name, width in {"O/E": 0.4, "calibration slope": 0.5}.items():
        one = targets[name]
        events = int(np.ceil(one.n_samples * P.mean()))
        yield one, {"anticipated": 1.0, "width": width, "n_events": events}
    yield (
        found,
        {
            "level": 0.95,
            "prevalence": P.mean(),
            "largest": max(found.targets, key=lambda one: one.n_samples),
        },
    )
    summary = inference.validation_summary(
        Y, P, n_resamples=5, sample_weight=W, level=0.9
    )
    (table,) = summary.tables
    yield summary, {"level": 0.9, "n_resamples": 5, "ci": "sandwich"}
    yield table, {"n_samples": N, "event_rate": mean(Y), "problem": "class 1"}
    ratio = mean(Y) / mean(P)
    rows = {one.quantity: one for one in table.rows}
    yield rows["O/E"], {"estimate": ratio, "null_mean": 1.0}
    line = LogisticRegression(C=np.inf, tol=1e-10).fit(
        LOGIT[:, None], Y, sample_weight=W
    )
    slope = next(one for name, one in rows.items() if "slope" in name.lower())
    value = pytest.approx(line.coef_[0, 0], abs=1e-4)
    yield slope, {"estimate": value, "null_mean": 1.0}


@known("MetricSpec", "BetaFamilyLoss", "ProperLoss", "LogLoss")
def measures_and_losses():
    @metrics.measure(
        greater_is_better=True,
        range=(0.25, 3.0),
        perfect=2.0,
        in_report=False,
        poolable=True,
    )
    def share_of_certain(predictions):
        """Share of rows."""
        return 1.0

    yield (
        share_of_certain.spec,
        {
            "name": "share_of_certain",
            "greater_is_better": True,
            "range": (0.25, 3.0),
            "perfect": 2.0,
            "in_report": False,
            "poolable": True,
            "proper": False,
            "scorer_name": "share_of_certain",
        },
    )
    loss = metrics.BetaFamilyLoss(2.0, 1.0)
    title = f"{loss.title} (2, 1)"
    largest = max(loss.compute_label_losses(np.eye(2)).max(), 0.0)
    yield loss, {"alpha": 2.0, "beta": 1.0, "label": title, "range": (0.0, largest)}
    log = metrics.LogLoss()
    yield log, {"label": f"{log.title} [{log.unit}]", "floored": True}
    yield log.without_floor(), {"floored": False}
    yield loss.without_floor(), {"floored": False}


@known("MulticalibratedModel", "AngularCalibratedClassifier", "AngleEstimate")
def models():
    frozen = FrozenEstimator(LogisticRegression(C=100.0).fit(X, Y))
    model = groups.MulticalibratedModel(
        frozen, groups=np.arange(2), n_rounds=2, n_trees=3, cv=3
    )
    model.fit(X, Y)
    inner = model.correction_
    yield (
        model,
        {
            "n_rounds_": inner.n_rounds_,
            "n_trees_": inner.n_trees_,
            "cv_losses_": inner.cv_losses_,
            "feature_gains_": inner.feature_gains_,
        },
    )
    model = AngularCalibratedClassifier(LogisticRegression()).fit(X, Y)
    yield (
        model,
        {
            "theta_": np.arccos(model.cos_theta_),
            "inner_product_": model.cos_theta_ * model.recalibrator_.norm_,
            "platt_equivalent_": model.recalibrator_.platt_equivalent_,
        },
    )
    linear = LogisticRegression(C=10.0).fit(X, Y)
    found = estimate_angle(linear, X, Y)
    yield (
        found,
        {
            "theta": np.arccos(found.cos_theta),
            "inner_product": found.cos_theta * found.norm,
            "leave_one_out": approximate_leave_one_out(linear, X, Y),
        },
    )


@known("MulticlassBinning", "DirichletCalibration")
def fitted_penalties():
    proba, y = make_overconfident(3, 300)
    model = maps.MulticlassBinning(p=2.0, epsilon=0.3, min_count=2).fit(proba, y)
    fitted, truth = model.predict_proba(proba), np.eye(3)[y]
    yield (
        model,
        {
            "tol_": model.beta_ / 2,
            "brier_before_": ((proba - truth) ** 2).sum(axis=1).mean(),
            "brier_after_": ((fitted - truth) ** 2).sum(axis=1).mean(),
        },
    )
    assert 0 <= model.n_merges_ <= len(model.bins_)
    dirichlet = maps.DirichletCalibration("auto").fit(proba, y)
    gradient = dirichlet.gradient_norm_, dirichlet.newton_decrement_
    assert max(gradient) < 1e-6 and dirichlet.own_penalty_ > 0
    yield dirichlet, {"n_features_in_": 3}


@known("Evidence", "CellSample", "LabelAverage", "LabelReport")
def other_evidence():
    p = np.r_[np.full(30, 0.1), np.full(30, 0.9)]
    separated = calibration_report((p > 0.5).astype(int), p, n_resamples=5)
    evidence = separated.verdict.evidence
    wrong = clopper_pearson(0, 60, 0.95)[1]
    yield (
        evidence,
        {"unseen": pytest.approx(wrong, rel=0.2), "predicted": 0.5, "observed": 0.5},
    )
    table = np.array([[0.9, 0.1], [0.1, 0.9]])
    counts = np.array([[30, 0], [0, 30]])
    yield CellSample(table, counts, counts, counts), {"exchanged": False}
    counts = counts[::-1]
    yield CellSample(table, counts, counts, counts), {"exchanged": True}
    labels = np.column_stack([Y, 1 - Y, np.roll(Y, 1)])
    proba = np.column_stack([P, 1 - OTHER, OTHER])
    report = multilabel_report(labels, proba, n_resamples=5)
    common = {"created": date.today().isoformat(), "version": __version__}
    accuracy = ((proba > 0.5) == labels).mean()
    yield report, common | {"n_samples": N, "source": None, "accuracy": accuracy}
    for one in report.averages:
        measure = metrics.all_metrics()[one.measure]
        single = [measure(labels[:, j], proba[:, j]) for j in range(3)]
        micro = measure(labels.ravel(), proba.ravel())
        yield one, {"macro": np.mean(single), "micro": micro}
        assert one.macro_high >= one.macro >= one.macro_low
        assert not one.micro_high < one.micro and not one.micro < one.micro_low, one


def agree(found, expected):
    """Whether a field has its value: numbers to nine digits."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            agree(found[k], expected[k]) for k in found
        )
    if expected is None or isinstance(expected, str | bool):
        return found == expected
    if hasattr(expected, "expected"):  # an approximate number
        return bool(np.all(found == expected))
    if isinstance(expected, list) and any(
        isinstance(one, np.ndarray | tuple) for one in expected
    ):
        return len(found) == len(expected) and all(map(agree, found, expected))
    found, expected = np.asarray(found), np.asarray(expected)
    if expected.dtype.kind not in "fiub":
        return found.tolist() == expected.tolist()
    return found.shape == expected.shape and np.allclose(
        found, expected, rtol=1e-9, atol=1e-9
    )


def check(found, values):
    title = type(found).__name__
    for field, expected in values.items():
        value = getattr(found, field)
        assert agree(value, expected), (
            f"{title}.{field}: expected {expected!r}, got {value!r}"
        )


@run_every_case("function", dict.fromkeys(KNOWN.values()), ids=lambda f: f.__name__)
def test_fields_have_the_values_of_their_formulas(function):
    n_fields = 0
    for found, values in function():
        check(found, values)
        n_fields += len(values)
    assert n_fields


# --- attributes of estimators ------------------------------------------------------------------

QUERY = np.array([0.03, 0.2, 0.41, 0.5, 0.77, 0.96])


def softmax_affine(model, p):
    z = np.log(np.column_stack([1 - p, p]))
    if hasattr(model, "temperature_scaling_"):
        z = np.log(model.temperature_scaling_.predict_proba(p))
        if "Structured" not in type(model).__name__:
            z -= z.max(axis=1, keepdims=True)
    coef = np.diag(model.coef_) if model.coef_.ndim == 1 else model.coef_
    return softmax(z @ coef.T + model.intercept_, axis=1)[:, 1]


def step(model, p):
    return model.bin_values_[np.searchsorted(model.bin_edges_, p, side="left")]


def averaged_step(model, p):
    return model.values_[np.searchsorted(model.bin_edges_, p, side="right")]


def hermite(model, p):
    curve = CubicHermiteSpline(model.knots_, model.values_, model.slopes_)
    return expit(curve(np.clip(logit(p), *model.domain_)))


def prior_ratio(model, p):
    odds = model.prior_ / model.training_prior_
    return p * odds[1] / (p * odds[1] + (1 - p) * odds[0])


def stacked(model, p):
    parts = [
        w * model.recalibrators_[n].predict_proba(p)
        for n, w in model.weights_.items()
        if w
    ]
    own = model._share_of_input
    return (1 - own) * sum(parts)[:, 1] + own * p


def between_knots(model, p):
    return np.interp(logit(p), model.log_odds_, model.values_)


#: What a map states, from its attributes alone.
BY_ATTRIBUTES = {
    "BBQ": averaged_step,
    "BetaCalibration": lambda m, p: expit(
        m.a_ * np.log(p) - m.b_ * np.log(1 - p) + m.c_
    ),
    "DirichletCalibration": softmax_affine,
    "EnsembleTemperatureScaling": lambda m, p: (
        m.weights_ @ [m.temperature_scaling_.predict_proba(p)[:, 1], p, 0 * p + 0.5]
    ),
    "HistogramBinning": step,
    "IsotonicCalibration": lambda m, p: np.interp(logit(p), m.knots_, m.values_),
    "MatrixScaling": softmax_affine,
    "NearIsotonicCalibration": between_knots,
    "ENIR": between_knots,
    "OneVsRest": lambda m, p: m.recalibrators_[0].predict_proba(p)[:, 1],
    "OrdinalCalibration": lambda m, p: expit(m.slope_ * logit(p) + m.shifts_[0]),
    "PlattScaling": lambda m, p: expit(m.slope_ * logit(p) + m.intercept_),
    "PriorShift": prior_ratio,
    "QuadraticScaling": lambda m, p: expit(
        m.a_ * logit(p) ** 2 + m.b_ * logit(p) + m.c_
    ),
    "RestrictedPolynomialRegression": lambda m, p: np.polynomial.chebyshev.chebval(
        2 * (np.clip(p, *m.domain_) - m.domain_[0]) / np.ptp(m.domain_) - 1, m.coef_
    ),
    "SmoothIsotonicCalibration": lambda m, p: PchipInterpolator(m.knots_, m.values_)(
        np.clip(p, m.knots_[0], m.knots_[-1])
    ),
    "SplineCalibration": hermite,
    "StackedCalibration": stacked,
    "StructuredMatrixScaling": softmax_affine,
    "StructuredVectorScaling": softmax_affine,
    "TemperatureScaling": lambda m, p: expit(logit(p) / m.temperature_),
    "TopLabel": lambda m, p: m.recalibrators_[-1].predict_proba(p)[:, 1],
    "TrendFiltering": lambda m, p: np.clip(m.line_(p), 0, 1),
    "TrendFilteringEnsemble": lambda m, p: sum(
        w * np.clip(line(p), 0, 1) for w, line in zip(m.weights_, m.lines_, strict=True)
    ),
    "VectorScaling": softmax_affine,
}
LEVELS = np.unique(P)


def odds_of_levels():
    return logit(LEVELS)


def weights_of_levels(weight):
    return np.array(
        [[(weight * (y == Y))[one == P].sum() for y in (0, 1)] for one in LEVELS]
    )


def shares_of_bins(model):
    """Shares of events with five invented rows, of which nine parts are the score."""
    weight, number = model.weight_given, np.searchsorted(model.bin_edges_, P)
    invented = 5 / (weight.sum() / (weight**2).sum())
    found = []
    for one in range(len(model.bin_values_)):
        rows = number == one
        share = 0.9 * mean(P[rows], weight[rows]) + 0.1 * mean(Y, weight)
        events = (weight * Y)[rows].sum() + invented * share
        found.append(events / (weight[rows].sum() + invented))
    return found


#: Attributes by a formula of the rows, or of other attributes.
BY_ROWS = {
    "AdaptiveCalibration": {
        "log_odds_": lambda m: odds_of_levels(),
        "knots_": lambda m: LEVELS,
        "weights_": lambda m: weights_of_levels(m.weight_given),
    },
    "AngularCalibration": {
        "theta_": lambda m: np.arccos(m.cos_theta_),
        "center_": lambda m: mean(LOGIT, m.weight_given),
        "norm_": lambda m: np.sqrt(
            mean((LOGIT - mean(LOGIT, m.weight_given)) ** 2, m.weight_given)
        ),
    },
    "BBQ": {"weights_": lambda m: m.weights_ / m.weights_.sum()},
    "ENIR": {"log_odds_": lambda m: odds_of_levels(), "knots_": lambda m: LEVELS},
    "HistogramBinning": {
        "n_bins_": lambda m: 10,
        "bin_weights_": lambda m: np.bincount(
            np.searchsorted(m.bin_edges_, P), m.weight_given, len(m.bin_values_)
        ),
        "bin_values_": shares_of_bins,
    },
    "NearIsotonicCalibration": {
        "log_odds_": lambda m: odds_of_levels(),
        "knots_": lambda m: LEVELS,
    },
    "OrdinalCalibration": {"order_": lambda m: [0, 1]},
    "SplineCalibration": {"domain_": lambda m: [LOGIT.min(), LOGIT.max()]},
    "TemperatureScaling": {
        "inverse_temperature_": lambda m: 1 / m.temperature_,
        "n_samples_": lambda m: m.weight_given.sum(),
        "loss_": lambda m: log_loss(Y, m.predict_proba(P)[:, 1], m.weight_given),
    },
    "TopLabel": {"rest_inverse_temperature_": lambda m: 1.0},
    "TrendFiltering": {
        "df_": lambda m: (
            (np.abs(np.diff(np.diff(m.values_) / np.diff(m.knots_))) > 1e-6).sum() + 2
        ),
        "knots_": lambda m: m.line_.knots,
        "values_": lambda m: m.line_.values,
    },
}
MAPS = sorted(maps.all_recalibrators().values(), key=lambda cls: cls.__name__)


@cache
def fitted_map(cls):
    weight = HALF if cls.capabilities.sample_weight else np.ones(N)
    more = {"sample_weight": weight} if cls.capabilities.sample_weight else {}
    model = cls(**QUICKER.get(cls.__name__, {})).fit(P, Y, **more)
    model.weight_given = weight
    return model


@pytest.mark.filterwarnings("ignore:.*expected cells with at least 20 rows")
@run_every_case("cls", MAPS, ids=lambda cls: cls.__name__)
def test_attributes_of_recalibrators(cls):
    model, name = fitted_map(cls), cls.__name__
    found = {"classes_": [0, 1], "n_features_in_": 1}
    found |= {field: formula(model) for field, formula in BY_ROWS.get(name, {}).items()}
    if cls is maps.SplineCalibration:
        assert model.loo_ > log_loss(
            Y, model.predict_proba(P)[:, 1], model.weight_given
        )
    if hasattr(model, "floor_"):
        found["floor_"] = 0.01 / 2  # scores are shares of a hundred
    check(model, found)
    if name in BY_ATTRIBUTES:
        expected = model.predict_proba(QUERY)[:, 1]
        by_hand = BY_ATTRIBUTES[name](model, QUERY)
        np.testing.assert_allclose(by_hand, expected, rtol=0, atol=1e-8, err_msg=name)


# --- nothing is left out -----------------------------------------------------------------------

#: Where the fields are read that have no formula above, by class.
READ_IN = {
    "LinearTruth": "datasets/test_high_dimensional.py",
    "ScoredData": "datasets/test_miscalibrated.py",
    "CostSensitiveClassifier": "decisions/test_cost_sensitive.py",
    "DecisionCurve": "decisions/test_decision_curve.py",
    "NetBenefitDifference": "decisions/test_regret.py",
    "RegretCurve": "decisions/test_regret.py",
    "LossDecomposition": "decomposition/test_gain_of_features.py",
    "RefinementCurve": "decomposition/test_curve.py",
    "VariationalInterval": "decomposition/test_variational.py",
    "CalibratingFunctionDisplay": "displays/test_other_displays.py",
    "DecompositionDisplay": "displays/test_group_display.py",
    "GroupReliabilityDisplay": "displays/test_curve_kwargs.py",
    "InstabilityDisplay": "displays/test_instability_display.py",
    "MonitorDisplay": "displays/test_curve_kwargs.py",
    "MurphyDisplay": "displays/test_murphy_and_plane.py",
    "RefinementCurveDisplay": "displays/test_other_displays.py",
    "WitnessDisplay": "displays/test_other_displays.py",
    "GradeCalibration": "groups/test_grades.py",
    "Grades": "groups/test_grades.py",
    "GroupCalibration": "test_cli_large.py",
    "GroupRecalibration": "groups/test_group_recalibration.py recalibrators/test_floor.py",
    "GroupRow": "groups/test_group_calibration.py",
    "Grouping": "groups/test_grouping.py",
    "MulticalibratedModel": "groups/test_multicalibrated_model.py",
    "MulticalibratedScores": "groups/test_multicalibrated_scores.py",
    "CalibratedMean": "inference/test_calibrated_mean.py",
    "ConfidenceInterval": "test_functions.py",
    "Instability": "inference/test_internal_validation.py displays/test_instability_display.py",
    "InternalValidation": (
        "inference/test_internal_validation.py "
        "test_every_option.py "
        "inference/test_pooled.py "
        "inference/test_calibrated_mean.py "
    ),
    "InternalValidationRow": "inference/test_internal_validation.py",
    "MonteCarloResult": "summary/test_answers.py",
    "PolynomialTest": "inference/test_polynomial.py",
    "SampleSizeTarget": "inference/test_sample_size.py",
    "TesterVerdict": "inference/test_calibration_test.py inference/test_internal_validation.py",
    "ValidationRow": "inference/test_validation.py",
    "ValidationSampleSize": "inference/test_sample_size.py",
    "ValidationSummary": "inference/test_validation.py",
    "ValidationTable": "inference/test_validation.py",
    "AngleEstimate": "linear/test_angle.py",
    "AngularCalibratedClassifier": "linear/test_angle.py classifiers/test_calibrated_model.py",
    "CalibratedModel": "classifiers/test_calibrated_model.py",
    "CalibratedPair": "export/test_onnx_models.py",
    "RefineThenCalibrateCV": "classifiers/test_refine_then_calibrate.py",
    "BetaFamilyLoss": "metrics/test_losses.py",
    "Predictions": "metrics/test_measure.py",
    "CumulativeDifferences": "metrics/test_two_bin.py",
    "DistanceInterval": "test_options_of_subpackages.py",
    "LogLoss": "test_report.py",
    "LpCalibrationResult": "metrics/test_lp_calibration.py",
    "MetricSpec": (
        "metrics/test_proper.py "
        "metrics/test_calibration_error.py "
        "metrics/test_measure.py "
        "metrics/test_scorers.py "
    ),
    "ReliabilityCurve": "test_report_page.py",
    "Alarm": "monitoring/test_monitor.py",
    "CalibrationMonitor": "monitoring/test_monitor.py",
    "Diagnosis": "monitoring/test_aftermath.py",
    "MonitorHistory": "monitoring/test_monitor_display.py",
    "ShiftRegion": "monitoring/test_aftermath.py",
    "AdaptiveCalibration": "recalibrators/test_adaptive.py",
    "AngularCalibration": "recalibrators/test_angular.py",
    "BBQ": "recalibrators/test_bbq.py",
    "Capabilities": (
        "test_methods.py "
        "recalibrators/test_falling_scores.py "
        "export/test_nodes.py "
        "test_absent_options.py "
        "test_column_order.py "
        "recalibrators/test_floor.py "
        "recalibrators/test_device_map.py "
        "recalibrators/test_repeated.py "
    ),
    "CellGroup": "recalibrators/test_multiclass_binning.py",
    "DirichletCalibration": (
        "recalibrators/test_softmax_regression.py recalibrators/test_blocks.py "
    ),
    "ENIR": "test_soft_labels.py recalibrators/test_order_based.py",
    "MatrixScaling": "test_extreme_options.py recalibrators/test_blocks.py",
    "MulticlassBinning": "recalibrators/test_multiclass_binning.py",
    "MultilabelCalibration": "recalibrators/test_multilabel.py",
    "NearIsotonicCalibration": "recalibrators/test_near_isotonic.py",
    "OnlineCalibration": "recalibrators/test_online.py",
    "PriorShift": "recalibrators/test_prior_shift.py recalibrators/test_mean_offset.py",
    "RestrictedPolynomialRegression": "recalibrators/test_constrained_polynomial.py",
    "SplineCalibration": "recalibrators/test_spline.py",
    "StackedCalibration": "recalibrators/test_auto.py",
    "StructuredMatrixScaling": "test_extreme_options.py recalibrators/test_blocks.py",
    "StructuredVectorScaling": "test_extreme_options.py recalibrators/test_blocks.py",
    "TemperatureScaling": "classifiers/test_refine_then_calibrate.py",
    "Threshold": "export/test_thresholds.py",
    "TrendFiltering": "recalibrators/test_trend_filtering.py",
    "TrendFilteringEnsemble": "recalibrators/test_trend_filtering.py",
    "VectorScaling": "test_extreme_options.py recalibrators/test_blocks.py",
    "Advice": "test_report_verdict.py",
    "AdviceRow": "test_report_verdict.py test_cli.py",
    "Bin": "test_report_verdict.py",
    "CalibrationReport": (
        "test_report_verdict.py test_functions.py test_report.py test_every_option.py "
    ),
    "ColumnOrder": "test_report_columns.py",
    "Evidence": "test_report_verdict.py",
    "LabelReport": "test_report_labels.py",
    "Line": "test_report_verdict.py",
    "Run": "test_report_verdict.py",
    "Sentence": "test_report_groups.py",
    "Verdict": "test_report_verdict.py",
    "CalibrationSummary": "test_every_constructor.py",
    "CellSample": "test_options_of_other_subpackages.py",
    "CurveRows": "metrics/test_reliability.py",
    "Fold": "test_options_of_subpackages.py",
    "GaussianLoss": "theory/test_gaussians.py",
    "LogisticLimit": "theory/test_gaussians.py",
    "DefaultCalibration": "recalibrators/test_default.py",
    "EnsembleTemperatureScaling": "recalibrators/test_softmax_regression.py",
    "VennAbers": "export/test_nodes.py",
    "Recalibrator": "maps/test_calibration_maps.py",
    "ExportedMap": "export/test_documents.py",
}


#: Fields without a value to know, each with its reason.
NO_VALUE = {
    "LinearTruth": ("coef slope intercept link", "what the caller asked for"),
    "BinaryProblem": ("rows", "only moves rows of the case to those of the problem"),
    "Diagnosis": (
        "pvalue_slope pvalue_curvature",
        "decide `repair`, which tests/monitoring reads",
    ),
    "Capabilities": (
        "cost nonparametric_shape nonparametric",
        "are declared by authors and shown",
    ),
    "LabelAverage": ("null_mean", "a quantile of draws"),
    "SplineCalibration": ("loo_", "is compared with the loss of the fit above"),
}
#: The dataclasses of displays hold what they were given, and show it.
DRAWN = "Display"


def is_public(name):
    return not name.startswith("_")


def result_classes():
    """Public classes with fields, by name, each with those that are not arguments of a user's."""
    for name, thing in offered("exceptions", "testing"):
        if not inspect.isclass(thing):
            continue
        if dataclasses.is_dataclass(thing):
            fields = [one.name for one in dataclasses.fields(thing)]
        else:
            fields = list(getattr(thing, "_fields", ()))
        fields += [key for key, one in vars(thing).items() if isinstance(one, property)]
        if hasattr(thing, "get_params") or name in (
            "CalibrationMonitor",
            "CalibrationTester",
        ):
            fields = [one for one in fields if one.endswith("_")]
        exempt = NO_VALUE.get(name, ("", ""))[0].split()
        fields = [one for one in fields if one not in exempt]
        if fields and not name.endswith(DRAWN):
            yield name, sorted(filter(is_public, fields))


def source_of(name):
    """What is read of a class: by its formulas here, and in the files of `READ_IN`."""
    found = [inspect.getsource(KNOWN[name])] if name in KNOWN else []
    found += [f'"{field}"' for field in BY_ROWS.get(name, {})]
    if name in BY_ATTRIBUTES:
        found.append(inspect.getsource(BY_ATTRIBUTES[name]))
    files = READ_IN.get(name, "").split()
    return "\n".join(
        found + [(TESTS / file).read_text(encoding="utf-8") for file in files]
    )


@run_every_case(("name", "fields"), result_classes())
def test_every_field_has_a_formula_or_a_file_that_reads_it(name, fields):
    text = source_of(name)
    unread = [
        one for one in fields if not re.search(rf"""\.{one}\b|["']{one}["']""", text)
    ]
    assert unread == [], f"{name}: no test reads {unread}; add a formula to this file"


def test_every_attribute_of_fitted_recalibrators_is_declared_or_read():
    """An attribute that a fit sets and no annotation names needs an entry too."""
    for cls in MAPS:
        if cls.__name__ == "MulticlassBinning":
            continue
        names = [one for one in vars(fitted_map(cls)) if one.endswith("_")]
        text = (
            source_of(cls.__name__)
            + '"classes_" "n_features_in_" "floor_" "table_" "loo_"'
        )
        unread = [
            one for one in names if not re.search(rf"""\.{one}\b|["']{one}["']""", text)
        ]
        assert unread == [], f"{cls.__name__}: no test reads {unread}"


def test_documents_of_results_say_what_the_fields_say():
    member = np.where(np.arange(N) < 5, "few", "many")
    audited = groups.group_calibration(Y, P, {"a": member}, min_rows=10, n_resamples=19)
    graded = groups.grade_calibration(Y, P, [0.3, 0.6], n_resamples=9)
    parts = decomposition.decompose_loss(Y, P)
    for found, other in (
        (
            audited,
            {
                "n_rows": N,
                "n_left_out": 1,
                "groups": [r._asdict() for r in audited.rows],
            },
        ),
        (graded, {"grades": [row._asdict() for row in graded.rows]}),
        (parts, {name: getattr(parts, name) for name in ("risk", "calibration")}),
    ):
        for name, value in found.to_dict().items():
            where = f"{type(found).__name__}.to_dict()[{name!r}]"
            if isinstance(value, dict):
                value = value["value"]
            expected = other.get(name, getattr(found, name, value))
            assert value == expected or value == [*np.ravel(expected)], where


def test_a_picture_of_a_stack_shows_the_largest_weight_first():
    losses = {"c": (0.3, 0.01), "a": (0.5, 0.02)}
    stack = SimpleNamespace(weights_={"a": 0.2, "b": 0.5, "c": 0.3}, cv_losses_=losses)
    shown = displays.StackDisplay.from_estimator(stack)
    assert list(shown.weights) == ["b", "c", "a"]
    ((weights, place),), ((means, beside),) = shown.get_plotted_data()
    assert [*weights] == [0.5, 0.3, 0.2] and [*place] == [0, 1, 2]
    assert [*means] == [0.3, 0.5] and [*beside] == [1, 2]
    plt.close("all")
