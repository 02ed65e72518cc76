"""More calls of `stored_numbers`: what takes models, features, files, streams, or several steps."""

import contextlib
import functools
import io
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import test_functions
import test_methods
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.svm import LinearSVC

from sklearn_calib import (
    CalibratedModel,
    datasets,
    decisions,
    decomposition,
    groups,
    inference,
    linear,
)
from sklearn_calib._cli import main
from sklearn_calib._validation import canonical_proba, log_proba
from sklearn_calib.export import from_dict, simplify, to_dict
from sklearn_calib.metrics import (
    BetaFamilyLoss,
    all_losses,
    all_metrics,
    get_scorer,
    validate_predictions,
)
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    MultilabelCalibration,
    PriorShift,
    all_recalibrators,
    cross_fitted_proba,
)
from sklearn_calib.report import calibration_report, multilabel_report
from sklearn_calib.staged import find_staging
from sklearn_calib.summary import CalibrationSummary, summarize
from sklearn_calib.theory import GaussianLogisticModel

N = test_functions.N


def tied_rows(k):
    """Rows of `test_functions` whose scores are sixteenths, so that many are equal or at edges."""
    data = test_functions.rows(k)
    for name in ("first", "second"):
        counts = np.floor(16 * data[name] + 1e-9)
        counts[:, 0] += 16 - counts.sum(axis=1)
        data[name] = 0.75 * counts / 16 + 0.25 / k
    return data


#: From 0.002 to 300, one row in nine has none.
WEIGHT = np.where(
    np.arange(N) % 9 == 4, 0.0, np.exp(np.arange(N) % 7 * 2.0 - 6.3) + 0.013
)
TWO, THREE = tied_rows(2), tied_rows(3)
Y, P, OTHER = TWO["y"], TWO["first"][:, 1], TWO["second"][:, 1]
X = np.column_stack([np.log(P / (1 - P)), OTHER, np.arange(N) % 3])
TABLE = {"a": np.arange(N) % 4, "b": np.round(P, 1), "c": np.repeat([*"xy"], N // 2)}


# --- linear models ------------------------------------------------------------------------------


def linear_models():
    """Every loss of a linear model, with weights, and of three classes."""
    tight = {"tol": 1e-10, "max_iter": 5000}
    models = {
        "logistic": LogisticRegression(**tight),
        "logistic, C": LogisticRegression(C=0.05, fit_intercept=False, **tight),
        "hinge": LinearSVC(C=0.3, **tight),
        "ridge": RidgeClassifier(alpha=0.7),
    }
    for loss in ("log_loss", "modified_huber"):
        models[f"sgd {loss}"] = SGDClassifier(
            loss, alpha=0.05, tol=None, max_iter=400, random_state=0
        )
    return models


def calls_of_linear_models():
    for name, model in linear_models().items():
        for k in (2, 3):
            y = TWO["y"] if k == 2 else THREE["y"]
            for weight in (None, WEIGHT / 30 + 0.05):
                words = "without" if weight is None else "with"
                title = f"{name}, {k} classes, {words} weights"
                yield (
                    "approximate_leave_one_out",
                    title,
                    lambda m=model, y=y, w=weight: linear.approximate_leave_one_out(
                        m.fit(X, y, sample_weight=w), X, y, sample_weight=w
                    ),
                )
        yield (
            "logistic_intervals",
            name,
            lambda m=model: linear.logistic_intervals(m.fit(X, Y), X, X[:9], level=0.8),
        )
        for link in ("logit", "probit", "clipped_relu"):
            for centred in (False, True):
                how = {"link": link, "assume_centered": centred}
                yield (
                    "estimate_angle",
                    f"{name}, {how}",
                    lambda m=model, h=how: linear.estimate_angle(
                        m.fit(X, Y), X, Y, **h
                    ),
                )
    yield (
        "logistic_intervals",
        "weights",
        lambda: linear.logistic_intervals(
            LogisticRegression(C=0.2, tol=1e-10).fit(X, Y, WEIGHT / 30 + 0.05),
            X,
            X[:9],
            sample_weight=WEIGHT / 30 + 0.05,
        ),
    )


# --- means of few labels, samples, shifts -------------------------------------------------------


def calls_of_means():
    words = np.where(P > 0.5, "good", "bad")
    few = {"y": Y[:50], "score": P[:50], "score_unlabelled": P[50:]}
    settings = {
        f"{recalibrator}, {scale}, {power}": {
            "recalibrator": recalibrator,
            "scale": scale,
            "power": power,
        }
        for recalibrator in ("line", "platt", "isotonic", None)
        for scale in ((0, 1), (-1, 3))
        for power in ("auto", 0.4)
    }
    settings |= {
        "level": {"level": 0.7},
        "numbers": {"y": Y[:50] * 2.5 + P[:50], "bounds": (0, 4)},
        "numbers, platt": {
            "y": Y[:50] * 2.5 + P[:50],
            "bounds": (0, 4),
            "recalibrator": "platt",
        },
        "weights": {"sample_weight": WEIGHT[:50] + 0.5},
        "verdicts": {"score": words[:50], "score_unlabelled": words[50:]},
        "clusters": {
            "groups": np.arange(50) % 13,
            "groups_unlabelled": np.arange(N - 50) % 7 + 20,
        },
    }
    for title, how in settings.items():
        yield "calibrated_mean", title, lambda how=how: mean_and_more(**few | how)


def mean_and_more(**how):
    found = inference.calibrated_mean(**how)
    second = how | {"score": 1 - 0.5 * P[:50], "score_unlabelled": 1 - 0.5 * P[50:]}
    if isinstance(how["score"][0], str):
        return found, found.labels_needed(0.4)
    other = inference.calibrated_mean(**second)
    width = found.high - found.low
    needed = [found.labels_needed(factor * width) for factor in (1.05, 1.3)]
    alone = found.labels_needed(1.3 * width, alone=True)
    return found, found.difference(other), needed, alone


def calls_of_samples():
    for method in ("plugin", "paper"):
        for p in (1, 2, 3):
            yield (
                "binning_sample_size",
                f"{method}, {p}",
                lambda m=method, p=p: inference.binning_sample_size(
                    p, 0.1, method=m, n_classes=3
                ),
            )
    for how in (
        {"c_statistic": 0.8, "prevalence": 0.1},
        {"linear_predictor": (-1.5, 1.2)},
    ):
        for more in ({}, {"threshold": 0.2}, {"error": 0.1}, {"level": 0.8}):
            yield (
                "validation_sample_size",
                f"{how | more}",
                lambda how=how | more: inference.validation_sample_size(**how),
            )
    for method in ("smooth", "distance"):
        for parts in (1, 3):
            tester = inference.CalibrationTester(
                0.4, method=method, n_parts=parts, tolerance=0.02
            )
            yield (
                "CalibrationTester",
                f"{method}, {parts}",
                lambda t=tester: (
                    t.sample_size,
                    t.test(np.tile(Y, 60), np.tile(P, 60)),
                ),
            )
    for loss in ("log_loss", "brier_loss"):
        yield "PairedLosses", loss, lambda loss=loss: paired(loss)
    for method, ci in (
        ("optimism", "pivot"),
        ("optimism", "shifted"),
        (".632+", "pivot"),
        ("cross_validation", "pivot"),
    ):
        yield (
            "internal_validation",
            f"{method}, {ci}",
            lambda m=method, c=ci: inference.internal_validation(
                LogisticRegression(C=3), X, Y, method=m, ci=c, n_resamples=6
            ),
        )


def paired(loss):
    sums = inference.PairedLosses()
    for rows in (slice(0, 30), slice(30, N)):
        sums.add(Y[rows], P[rows], OTHER[rows], WEIGHT[rows])
    return sums.difference(loss)


def calls_of_shifts():
    for prior in ("em", "bbse", "rlls"):
        for k in (2, 3):
            for how in ({}, {"confusion": "hard"}, {"strength": 0.5}, {"penalty": 0.3}):
                yield (
                    "PriorShift",
                    f"adapt, {prior}, {how}, {k} classes",
                    lambda p=prior, k=k, h=how: adapted(p, k, h),
                )
    for k in (2, 3):
        yield (
            "prior_shift_test",
            f"{k} classes",
            lambda k=k: inference.prior_shift_test(
                tied_rows(k)["first"],
                tied_rows(k)["y"],
                tied_rows(k)["second"],
                n_resamples=19,
            ),
        )


def adapted(prior, k, how):
    data = tied_rows(k)
    model = PriorShift(prior, **how).fit(data["first"], data["y"], sample_weight=WEIGHT)
    target = np.vstack([data["second"], np.repeat(data["first"][:9], 4, axis=0)])
    found = model.adapt(target, sample_weight=np.resize(WEIGHT, len(target)), level=0.8)
    return found, found.predict_proba(target), model.predict_proba(target)


def calls_of_theory():
    for ratio in (0.3, 1.5):
        model = GaussianLogisticModel(ratio, 0.2, spectrum=(1, 0.3))
        yield "GaussianLogisticModel", f"{ratio}", lambda m=model: m.limit([0.5, 0.05])
    for name in datasets.__all__:
        made = getattr(datasets, name)
        given = {"make_overconfident": (3, 40), "make_high_dimensional": (40, 30)}.get(
            name, (40,)
        )
        yield "datasets", name, lambda made=made, given=given: made(*given)


# --- groups, features, labels -------------------------------------------------------------------


def calls_of_groups():
    for depth in (1, 2):
        how = {"depth": depth, "n_bins": 2, "min_rows": 10}
        yield "find_groups", f"{depth}", lambda h=how: groups.find_groups(TABLE, N, **h)
        yield (
            "group_calibration",
            f"a table, {depth}",
            lambda h=how: groups.group_calibration(
                Y, P, TABLE, n_resamples=19, sample_weight=WEIGHT, **h
            ),
        )
    for edges in ([0.2, 0.5], [0.1, 0.3, 0.31, 0.8]):
        yield (
            "grade_calibration",
            f"edges {edges}",
            lambda e=edges: groups.grade_calibration(
                Y, P, groups.Grades(e), n_resamples=19
            ),
        )
    for loss in ("log", "brier", "spherical"):
        for given in ({"features": TABLE}, {"recalibrator": "isotonic"}, {"cv": 3}):
            yield (
                "decompose_loss",
                f"{loss}, {[*given]}",
                lambda loss=loss, g=given: decomposition.decompose_loss(
                    Y, P, loss=loss, sample_weight=WEIGHT + 0.01, **g
                ),
            )
    labels = np.column_stack([Y, 1 - np.roll(Y, 1), np.arange(N) % 9 == 0]).astype(int)
    scores = np.column_stack([P, OTHER, 0.3 * P])
    for pooling in ("none", "all", "shrink"):
        for recalibrator in ("platt", "beta", "isotonic"):
            yield (
                "MultilabelCalibration",
                f"{pooling}, {recalibrator}",
                lambda p=pooling, r=recalibrator: multilabel(p, r, labels, scores),
            )
    for multilabel_of in ("macro", "micro"):
        for name, measure in all_metrics().items():
            yield (
                "labels",
                f"{name}, {multilabel_of}",
                lambda m=measure, how=multilabel_of: m(
                    labels, scores, multilabel=how, sample_weight=WEIGHT
                ),
            )
    yield (
        "labels",
        "report",
        lambda: multilabel_report(labels, scores, n_resamples=9, sample_weight=WEIGHT),
    )


def multilabel(pooling, recalibrator, labels, scores):
    model = MultilabelCalibration(recalibrator, pooling)
    model.fit(scores, labels, sample_weight=WEIGHT)
    return model, model.predict_proba(scores)


# --- models with stages, scorers, losses --------------------------------------------------------


def calls_of_models():
    boosted = {
        "gradient": GradientBoostingClassifier(n_estimators=4, random_state=0),
        "histogram": HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5),
        "chosen C": LogisticRegressionCV(Cs=[0.1, 1], cv=3),
    }
    for name, model in boosted.items():
        yield "staging", name, lambda m=model: stages_of(m.fit(X, Y))
    for name in sorted(all_recalibrators()):
        if all_recalibrators()[name].__name__ not in (
            "StackedCalibration",
            "OnlineCalibration",
        ):
            yield (
                "cross_fitted_proba",
                name,
                lambda n=name: cross_fitted_proba(n, TWO["first"], Y, cv=2),
            )
    for soft in (False, True):
        yield "intervals", f"{soft}", lambda soft=soft: intervals_of_rows(soft)
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y))
    for recalibrator in ("default", "venn_abers", "adaptive", "spline"):
        yield (
            "CalibratedModel",
            f"frozen, {recalibrator}",
            lambda r=recalibrator: (
                CalibratedModel(frozen, r).fit(X, Y).predict_proba(X)
            ),
        )
    scorer_model = LogisticRegression().fit(X, Y)
    for measure in all_metrics().values():
        name = measure.spec.scorer_name
        yield "get_scorer", name, lambda n=name: get_scorer(n)(scorer_model, X, Y)
    losses = dict(all_losses()) | {"beta": BetaFamilyLoss(1.5, 0.7)}
    for name, loss in sorted(losses.items()):
        for k, data in ((2, TWO), (3, THREE)):
            yield (
                "all_losses",
                f"{name}, {k} classes",
                lambda loss=loss, d=data: of_loss(loss, d),
            )
    for kind, scores in (
        ("proba", P),
        ("logits", X[:, 0]),
        ("logits", 3 * THREE["first"]),
    ):
        yield (
            "canonical_proba",
            f"{kind}, {np.ndim(scores)}",
            lambda k=kind, s=scores: (
                canonical_proba(s, kind=k),
                log_proba(canonical_proba(s, kind=k)),
            ),
        )


def intervals_of_rows(soft):
    """A map that is given the interval of each row, some of weight 0."""
    shares = 0.5 * np.eye(2)[Y] + 0.5 * TWO["second"]
    ends = np.column_stack([P - 0.03 - 0.01 * (np.arange(N) % 3), P + 0.04]).clip(0, 1)
    model = all_recalibrators()["adaptive"]("interval")
    labels = shares if soft else Y
    model.fit(P, labels, sample_weight=WEIGHT, intervals=ends, soft_labels=soft)
    return model, model.predict_proba(P)


def stages_of(model):
    return [proba for _, proba in find_staging(model).staged_scores(model, X)]


def of_loss(loss, data):
    proba = canonical_proba(data["first"])
    rate = canonical_proba(data["second"])
    found = {"range": loss.range}
    for name in ("divergence", "expected", "slope"):
        found[name] = getattr(loss, name)(proba, np.asarray(rate))
    found["of_labels"] = loss.compute_label_losses(proba)
    found["of_rows"] = loss.compute_row_losses(proba, data["y"])
    found["of_logits"] = loss.compute_logit_losses(
        np.asarray(log_proba(proba)), data["y"]
    )
    found["undecided"] = loss.get_undecided_prediction(proba.shape[1])
    return found


# --- methods of results -------------------------------------------------------------------------


def calls_of_results():
    """What results answer to a question with an argument."""
    curve = functools.partial(decisions.regret_curve, Y, P, n_resamples=9, cv=3)
    risks = functools.partial(decisions.risk_coverage_curve, Y, P)
    expected = functools.partial(
        decisions.expected_metrics, P, y_true=Y, sample_weight=WEIGHT
    )
    parts = functools.partial(decomposition.decompose_loss, Y, P, features=TABLE)
    internal = functools.partial(
        inference.internal_validation, LogisticRegression(C=3), X, Y, n_resamples=6
    )
    asked = {
        "RegretCurve": lambda: curve().at([0.1, 0.25, 0.5, 0.77]),
        "RiskCoverageCurve": lambda: risks().perfect_risk_at([0.2, 0.9, 1.0]),
        "ExpectedMetrics": lambda: [
            expected().z_score(name) for name in ("accuracy", "log_loss")
        ],
        "LossDecomposition": lambda: [
            parts().interval(name) for name in ("risk", "calibration", "refinement")
        ],
        "PolynomialTest": lambda: inference.polynomial_test(Y, P).belt([0.1, 0.5, 0.9]),
        "InternalValidation": lambda: [
            internal().shrinkage(),
            internal().instability(),
        ],
        "InternalValidation, heuristic": lambda: internal(
            sample_weight=WEIGHT + 0.5
        ).shrinkage(kind="heuristic", n_parameters=3),
        "Grades.fit": lambda: groups.Grades.fit(np.tile(Y, 9), np.tile(P, 9)),
        "Grades.fit, few": lambda: groups.Grades.fit(Y, P, min_events=2, max_grades=3),
        "Grades.from_quantiles": lambda: [
            groups.Grades.from_quantiles(P, 5),
            groups.Grades.from_quantiles(P, 5).transform(OTHER),
        ],
        "Line": lambda: (
            calibration_report(Y, P, n_resamples=5).line().slope_interval(0.8)
        ),
        "Advice": lambda: calibration_report(
            Y, P, n_resamples=5, sample_weight=WEIGHT
        ).advise(),
        "CostSensitiveClassifier": lambda: (
            decisions.CostSensitiveClassifier(
                LogisticRegression(),
                [[0.0, 1.0, 0.4], [3.0, 0.2, 0.5]],
                actions=["a", "b", "c"],
            )
            .fit(X, Y)
            .expected_cost(X)
        ),
        "PriorShift": lambda: (
            PriorShift.from_class_weight({0: 1.0, 1: 3.0}, Y)
            .fit(TWO["first"], Y)
            .predict_proba(P)
        ),
        "partial_fit": lambda: (
            CalibratedModel(FrozenEstimator(LogisticRegression().fit(X, Y)), "online")
            .fit(X, Y)
            .partial_fit_recalibrator(X, 1 - Y)
            .predict_proba(X)
        ),
        "GaussianLogisticModel": lambda: GaussianLogisticModel(
            0.5, 0.2
        ).compute_weight_loss(1.3, 0.8),
    }
    for k, rows in ((2, TWO), (3, THREE)):
        asked[f"CellSample, {k} classes"] = lambda rows=rows, k=k: sampled(
            CalibrationSummary(classes=range(k))
            .update(rows["y"], rows["first"], WEIGHT)
            .samples()[0]
        )
    case = functools.partial(validate_predictions, Y, P, WEIGHT)
    asked["ClusterSample"] = lambda: sampled(
        inference.ClusterSample(case().problems()[0], np.arange(N)[WEIGHT > 0] % 13)
    )
    asked["summaries"] = merged_summaries
    for title, ask in asked.items():
        yield "methods", title, ask


def sampled(sample):
    """Draws, intervals and numbers of a sample of cells or of clusters."""
    found = {"rows_alike": sample.count_effective_rows()}
    number = np.arange(len(sample.proba)) % 3
    for name, ask in {
        "share_intervals": lambda: sample.compute_frequency_intervals(number, 3, 0.8),
        "redrawn": lambda: sample.draw_bootstrap_sample(np.random.default_rng(1)),
        "relabelled": lambda: sample.simulate_labels(np.random.default_rng(1)),
        "events": lambda: sample.draw_event_weights(3, np.random.default_rng(1)),
        "folds": lambda: sample.split_into_folds(3, np.random.default_rng(1)),
    }.items():
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            found[name] = ask()
    return found


def merged_summaries():
    """Merged in turn, copied, and read from what was written."""
    parts = [
        CalibrationSummary(classes=[0, 1]).update(Y[i::3], P[i::3], WEIGHT[i::3])
        for i in range(3)
    ]
    merged = parts[0].copy().merge(parts[1]).merge(parts[2])
    again = CalibrationSummary.from_arrow(merged.to_arrow())
    again.update(Y, OTHER, WEIGHT)
    rows = merged.rows()
    return {
        "totals": merged.totals,
        "again": again.totals,
        "rows": [rows[name] for name in sorted(rows) if np.size(rows[name])],
        "loss": again.measure("log_loss"),
    }


# --- reports, exports, streams, commands --------------------------------------------------------


def calls_of_reports():
    data = {"sample_weight": WEIGHT, "n_resamples": 9}
    for title, how in {
        "weights": data,
        "clusters": {"groups": np.arange(N) % 16, "n_resamples": 9},
        "by": data | {"by": {"c": TABLE["c"]}},
        "grades": {"grades": [0.3, 0.6], "n_resamples": 9},
        "features": data | {"features": {"a": TABLE["a"]}},
        "shares": data | {"soft_labels": True},
        "level": data | {"level": 0.7},
    }.items():
        for k, rows in ((2, TWO), (3, THREE)):
            yield (
                "calibration_report",
                f"{title}, {k} classes",
                lambda how=how, rows=rows: report_of(rows, how),
            )
    yield (
        "calibration_report",
        "summary",
        lambda: calibration_report(
            CalibrationSummary(classes=[0, 1]).update(Y, P, WEIGHT), n_resamples=9
        ),
    )


def report_of(rows, how):
    y = 0.5 * rows["second"] + 0.5 * np.eye(rows["first"].shape[1])[rows["y"]]
    found = calibration_report(
        y if "soft_labels" in how else rows["y"], rows["first"], **how
    )
    drawn = []
    for picture in re.findall(r"<svg.*?</svg>", found._repr_html_(), re.S):
        drawn.append(numbers_in(picture))
    return found, found.bins(), found.line(), np.concatenate([[0.0], *drawn])


#: Checksums, dates, versions, colours and times. The digits of a fraction are not a
#: checksum: how many there are depends on the last one, and so on the processor.
OTHER_NUMBERS = (
    r"(?<![.\w])[0-9a-f]{12,}\b|\d{4}-\d\d-\d\d\S*|\d+(\.\d+){2,}\S*|"
    r"#[0-9a-f]{3,8}|\d[\d.]* m?s\b"
)


def numbers_in(text):
    """All numbers of a text that are results."""
    text = re.sub(OTHER_NUMBERS, " ", text)
    found = re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)
    return np.array([float(one) for one in found]).clip(-1e9, 1e9)


def calls_of_exports():
    proba, y = test_methods.rows(2)
    at = np.linspace(0.004, 0.996, 97)
    for cls in sorted(all_recalibrators().values(), key=lambda cls: cls.__name__):
        if not cls.capabilities.export_error:
            yield (
                "from_dict",
                cls.__name__,
                lambda c=cls: maps_of(test_methods.build(c).fit(proba, y), at),
            )


def maps_of(model, at):
    document = to_dict(model, tabulate=1e-3)
    small = simplify(document, 1e-2)
    return [from_dict(document).predict_proba(at), small.predict_proba(at)]


def calls_of_streams():
    for how in ({}, {"alarm": "test"}, {"groups": [0, 1]}):
        yield (
            "CalibrationMonitor",
            f"merged and stored, {how}",
            lambda h=how: monitor_of(**h),
        )
    for title, more in {
        "rows": {},
        "weight": {"weight": "w"},
        "by": {"by": ["c"]},
    }.items():
        yield (
            "summarize",
            title,
            lambda more=more: summarize(frame(), label="y", prob="p", **more),
        )


def monitor_of(**how):
    one = CalibrationMonitor(classes=[0, 1], **how)
    more = {"groups": TWO["groups"]} if "groups" in how else {}
    for turn in range(4):
        y = Y if turn < 2 else 1 - Y
        one.update(y, P, time=[f"2024-01-{turn + 1:02d}"] * N, **more)
        one = CalibrationMonitor.from_state_dict(one.state_dict())
    regions = []
    with contextlib.suppress(ValueError):
        regions = [one.region(), one.region(level=0.6), one.diagnose()]
    return one, one.alarms_, one.history_, regions


def frame():
    table = pd.DataFrame(
        {"y": Y, "p": P, "q": OTHER, "w": WEIGHT + 0.25, "g": np.arange(N) % 16}
    )
    return table.assign(
        c=TABLE["c"], day=[f"2024-02-{1 + i // 20:02d}" for i in range(N)]
    )


COLUMNS = ["--label", "y", "--prob", "p"]
FIT = ["fit", "t.csv", *COLUMNS, "--out", "m.json"]
COMMANDS = {
    "audit": ["audit", "t.csv", *COLUMNS, "--json", "r.json", "--resamples", "9"],
    "audit with weights": [
        *(
            "audit",
            "t.csv",
            *COLUMNS,
            "--weight",
            "w",
            "--json",
            "r.json",
            "--resamples",
            "9",
        ),
        *("--no-advice", "--by", "c", "--markdown", "r.md"),
    ],
    "audit with grades": [
        *("audit", "t.csv", *COLUMNS, "--grades", "0.3,0.6", "--json", "r.json"),
        *("--no-advice", "--resamples", "9"),
    ],
    "compare": ["compare", "t.csv", *COLUMNS, "--prob", "q", "--json", "r.json"],
    "fit": FIT,
    "fit with weights": [*FIT, "--weight", "w", "--recalibrator", "isotonic"],
    "monitor": ["monitor", "t.csv", *COLUMNS, "--time", "day", "--state", "s.json"],
    "estimate-mean": [
        "estimate-mean",
        "few.csv",
        "--label",
        "y",
        "--score",
        "p",
        "--json",
        "r.json",
    ],
}
AFTER = {
    "apply": ["apply", "m.json", "t.csv", "--prob", "p", "--out", "o.csv"],
    "threshold": ["threshold", "m.json", "--at", "0.2,0.5"],
    "export to sql": [
        "export",
        "m.json",
        "--to",
        "sql",
        "--prob",
        "p",
        "--out",
        "o.sql",
    ],
    "export to python": ["export", "m.json", "--to", "python", "--out", "o.py"],
}


def calls_of_commands():
    for title, words in COMMANDS.items():
        yield "commands", title, lambda words=words: printed_by(words)
    for title, words in AFTER.items():
        first = [*FIT, "--recalibrator", "histogram_binning"]
        yield (
            "commands",
            title,
            lambda words=words, first=first: printed_by(first, words),
        )


def printed_by(*commands):
    """The numbers that commands print and write, in a folder of their own."""
    before, text = Path.cwd(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            frame().to_csv("t.csv", index=False)
            frame().assign(y=frame()["y"].where(np.arange(N) % 3 > 0)).to_csv(
                "few.csv", index=False
            )
            with (
                contextlib.redirect_stdout(text),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                codes = [code_of(words) for words in commands]
            written = {
                path.name: numbers_in(path.read_text(encoding="utf-8"))
                for path in sorted(Path(folder).iterdir())
                if path.name[:2] in ("r.", "m.", "o.")
            }
        finally:
            os.chdir(before)
    found = {"codes": codes, "files": written}
    if not written:  # else the names of files are printed
        found["printed"] = numbers_in(text.getvalue())
    return found


def code_of(words):
    try:
        return main(words)
    except SystemExit as ended:
        return ended.code


OTHERS = (
    calls_of_linear_models,
    calls_of_means,
    calls_of_samples,
    calls_of_shifts,
    calls_of_theory,
    calls_of_groups,
    calls_of_models,
    calls_of_results,
    calls_of_reports,
    calls_of_exports,
    calls_of_streams,
    calls_of_commands,
)
