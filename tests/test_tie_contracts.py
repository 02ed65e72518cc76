"""Exact ties and boundaries: scores at an edge, one float below it and one above.

A slow definition in a line or two states what belongs where; every public function,
estimator and command with a threshold, an edge or a minimum has its case.
"""

import argparse
import functools
import inspect
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from sklearn.frozen import FrozenEstimator
from test_functions import FUNCTIONS, OF_DRAWS, call, options, rows
from words import QUICKER, same

from sklearn_calib import decisions, groups, inference, metrics, monitoring
from sklearn_calib._cli import main
from sklearn_calib._cli._sample_size import parse_errors as errors_of_plan
from sklearn_calib._kernels import _cells as cells
from sklearn_calib.decomposition._grouping import has_enough_rows_for_features
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.recalibrators import MulticlassBinning, all_recalibrators
from sklearn_calib.report import multilabel_report
from sklearn_calib.report._label_sections import _MAX_TEXT_LABELS as LINES_OF_TEXT
from sklearn_calib.summary._pattern_cells import _find_smallest_shift

EDGES = (0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 0.7, 0.75, 0.9)


def around(values):
    """Each value, the float below and the float above."""
    values = np.asarray(values, dtype=float)
    return np.unique([np.nextafter(values, 0), values, np.nextafter(values, 1)])


SCORES = around(EDGES)
LABELS = np.arange(len(SCORES)) % 2


class AsIs:
    """A fitted classifier whose probabilities are the features."""

    _estimator_type = "classifier"

    def __init__(self):
        self.classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - np.asarray(X)[:, 0], np.asarray(X)[:, 0]])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def get_params(self, deep=True):
        return {}

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        tags = ClassifierTags()
        target = TargetTags(required=True)
        kind = {
            "estimator_type": "classifier",
            "target_tags": target,
            "classifier_tags": tags,
        }
        return Tags(
            **kind, transformer_tags=None, regressor_tags=None, input_tags=InputTags()
        )


def agree(title, found, expected, at=SCORES):
    """Fail with the scores where they differ."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, (
        f"{title}: expected {expected.shape}, got {found.shape}"
    )
    differs = np.flatnonzero(
        ~np.isclose(found, expected, rtol=1e-9, atol=1e-12, equal_nan=True)
    )
    shown = [(repr(np.asarray(at)[i]), expected[i], found[i]) for i in differs[:4]]
    assert not len(differs), f"{title}: (at, expected, got) {shown}"


# --- thresholds of decisions --------------------------------------------------------------------


@run_every_case("threshold", EDGES)
def test_a_row_is_acted_on_from_the_threshold_on(threshold):
    """In the curves, in the expected metrics and in the classifier the same rows."""
    acts = [score >= threshold for score in SCORES]
    curve = decisions.decision_curve(
        LABELS, SCORES, thresholds=[threshold], n_resamples=2
    )
    agree("decision_curve.acted", curve.acted, [np.mean(acts)], [threshold])
    found = decisions.expected_metrics(SCORES, threshold=threshold, y_true=LABELS)
    right = np.mean([act == (y == 1) for act, y in zip(acts, LABELS, strict=True)])
    assert found.realised["accuracy"] == pytest.approx(right), (
        f"expected_metrics at {threshold!r}"
    )
    harm = threshold / (1 - threshold)
    gain = np.mean(
        [act * (1 if y else -harm) for act, y in zip(acts, LABELS, strict=True)]
    )
    assert curve.net_benefit[0] == pytest.approx(gain)
    everyone = np.mean(np.where(LABELS == 1, 1.0, -harm))
    assert curve.treat_all[0] == pytest.approx(everyone)
    regret = decisions.regret_curve(
        LABELS, SCORES, np.full(len(SCORES), 0.999), n_resamples=2
    )
    costs = [
        (1 - threshold) * y if score < threshold else threshold * (1 - y)
        for score, y in zip(SCORES, LABELS, strict=True)
    ]
    other = np.mean(threshold * (LABELS == 0))
    assert regret.at([threshold])[0] == pytest.approx(np.mean(costs) - other, abs=1e-12)


def test_equal_costs_and_thresholds_of_a_classifier():
    costs = [[0.0, 1.0], [3.0, 0.0]]  # acts from 1/4 on
    model = decisions.CostSensitiveClassifier(FrozenEstimator(AsIs()), costs)
    scores = around([0.25, 0.5])
    model.fit(scores[:, None], np.arange(len(scores)) % 2)
    assert model.threshold_ == 0.25
    agree(
        "CostSensitiveClassifier",
        model.predict(scores[:, None]),
        scores >= 0.25,
        scores,
    )
    costs_of_rows = decisions.expected_cost_test(np.arange(6) % 2, scores, costs)
    table = np.array(costs)
    paid = [table[i % 2, int(score >= 0.25)] for i, score in enumerate(scores)]
    assert costs_of_rows.realised == pytest.approx(np.mean(paid))


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 1.0])
def test_a_selective_classifier_answers_from_its_threshold_on(share):
    scores = np.array([0.5, 0.6, 0.6, 0.7, 0.7, 0.8, 0.9, 0.95])
    y = np.array([0, 1, 0, 1, 1, 0, 1, 1])
    frozen = FrozenEstimator(AsIs())
    model = decisions.SelectiveClassifier(frozen, coverage=share, abstain_label=-1)
    model.fit(scores[:, None], y)
    needed = int(np.ceil(share * len(scores)))
    threshold = np.sort(scores)[::-1][needed - 1]
    if share < 1:
        assert model.threshold_ == threshold
        # 12 digits are compared
        at = np.array([threshold - 1e-9, threshold, threshold + 1e-9])
        answers = np.array(model.predict(at[:, None])) != -1
        agree("SelectiveClassifier", answers, at >= threshold, at)
    answered = scores >= threshold
    assert model.coverage_ == answered.mean()
    assert model.risk_ == np.mean((scores[answered] > 0.5) != y[answered])


def test_equal_confidence_is_the_mean_over_all_orders():
    sure = np.array([0.9, 0.8, 0.8, 0.8, 0.6])
    wrong = np.array([0, 1, 0, 0, 1])
    found = []
    for order in itertools.permutations(range(5)):
        if all(sure[a] >= sure[b] for a, b in itertools.pairwise(order)):
            errors = np.cumsum(wrong[list(order)])
            found.append(np.mean(errors / np.arange(1, 6)))
    area = decisions.area_under_risk_coverage(1 - wrong, sure)
    assert area == pytest.approx(np.mean(found))


# --- edges of bins and grades -------------------------------------------------------------------


def bins_of(scores, n_bins):
    """Number of the bin of equal width that each score is in; edges belong to the bin below."""
    edges = np.arange(1, n_bins) / n_bins
    return np.array([sum(score > edge for edge in edges) for score in scores])


@pytest.mark.parametrize("n_bins", [2, 4, 5, 10, 20])
def test_bins_of_equal_width_contain_their_right_edges(n_bins):
    number = bins_of(SCORES, n_bins)
    gaps = [abs((LABELS - SCORES)[number == b].sum()) for b in range(n_bins)]
    how = {"strategy": "uniform", "n_bins": n_bins}
    found = metrics.expected_calibration_error(LABELS, SCORES, **how)
    assert found == pytest.approx(sum(gaps) / len(SCORES), abs=1e-12), "ECE"
    means = [abs((LABELS - SCORES)[number == b].mean()) for b in np.unique(number)]
    found = metrics.maximum_calibration_error(LABELS, SCORES, **how)
    assert found == pytest.approx(max(means), abs=1e-12), "maximum"
    (curve,) = metrics.reliability_curve(LABELS, SCORES, n_resamples=2, **how)
    sizes = [(number == b).sum() for b in np.unique(number)]
    agree("reliability_curve.weight", curve.weight, sizes, np.unique(number))
    model = all_recalibrators()["histogram_binning"](
        n_bins, strategy="uniform", prior_weight=0
    )
    model.fit(SCORES, LABELS)
    shares = [LABELS[number == b].mean() for b in number]
    agree("HistogramBinning", model.predict_proba(SCORES)[:, 1], shares)


def test_grades_contain_their_lower_edges():
    edges = [0.1, 0.25, 0.5]
    grade = np.array([sum(score >= edge for edge in edges) for score in SCORES])
    given = groups.Grades(edges, ["A", "B", "C", "D"])
    agree("Grades.transform", given.transform(SCORES), grade)
    found = groups.grade_calibration(LABELS, SCORES, given, n_resamples=2)
    sizes = [(grade == g).sum() for g in range(4)]
    agree("grade_calibration", [row.n_rows for row in found.rows], sizes, [*edges, 1])


def test_lights_are_lit_at_their_levels():
    y, p = np.r_[np.ones(6), np.zeros(14)], np.full(20, 0.15)
    value = groups.grade_calibration(y, p, [0.5], n_resamples=2).rows[0].jeffreys_p
    for level, expected in ((value, "amber"), (np.nextafter(value, 0), "green")):
        lights = (level, level / 2)
        found = groups.grade_calibration(y, p, [0.5], lights=lights, n_resamples=2)
        assert found.rows[0].light == expected, f"lights={lights}: expected {expected}"
    for level, expected in ((value, "red"), (np.nextafter(value, 0), "amber")):
        found = groups.grade_calibration(
            y, p, [0.5], lights=(0.9, level), n_resamples=2
        )
        assert found.rows[0].light == expected, f"red at {level!r}: expected {expected}"


def test_histograms_of_curves_at_their_edges():
    scores = around(np.arange(1, 20) / 20)
    y = np.arange(len(scores)) % 2
    (curve,) = metrics.reliability_curve(y, scores, n_resamples=2)
    below = np.histogram(np.nextafter(np.nextafter(scores, 0), 0), np.arange(21) / 20)[
        0
    ]
    above = np.histogram(np.nextafter(np.nextafter(scores, 1), 1), np.arange(21) / 20)[
        0
    ]
    found = np.round(curve.histogram * len(scores)).astype(int)
    inside = (np.minimum(below, above) - 2 <= found) & (
        found <= np.maximum(below, above) + 2
    )
    assert found.sum() == len(scores) and inside.all(), (found, below)


# --- counts at a minimum ------------------------------------------------------------------------


@pytest.mark.parametrize("least", [19, 20, 21])
def test_groups_of_exactly_the_minimum_are_kept(least):
    data = rows(2)
    name = np.repeat([*"abcd"], 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        found = groups.group_calibration(
            data["y"], data["first"], name, min_rows=least, n_resamples=2
        )
        table = groups.find_groups(pd.DataFrame({"g": name}), 80, min_rows=least)
    kept = 4 if least <= 20 else 0
    assert (len(found.rows), found.n_left_out) == (1 + kept, 4 - kept), (
        f"min_rows={least}"
    )
    assert table.n_left_out == 4 - kept


@pytest.mark.parametrize("least", [9, 10, 11])
def test_cells_of_exactly_the_minimum_are_bins(least):
    p = np.repeat([0.125, 0.625, 0.875], [10, 10, 30])
    y = (np.arange(50) % 3 == 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model = MulticlassBinning(n_levels=4, min_count=least).fit(p, y)
    assert len(model.bins_) == (3 if least <= 10 else 1), (
        f"min_count={least}: {model.bins_}"
    )


def test_p_values_count_draws_as_large_as_the_statistic():
    """On few rows of one score the draws repeat the statistic exactly."""
    y, p = np.array([0, 1, 1, 0, 1, 1]), np.full(6, 0.5)
    for statistic in ("smooth_calibration_error", "expected_calibration_error"):
        found = inference.calibration_test(y, p, statistic=statistic, n_resamples=199)
        ties = np.isclose(found.null_distribution, found.ranked, rtol=1e-9, atol=1e-12)
        larger = (found.null_distribution > found.ranked) | ties
        assert ties.sum() > 5
        assert found.pvalue == pytest.approx((1 + larger.sum()) / 200), statistic


def test_a_monitor_rejects_from_the_level_on():
    y, p = np.array([1, 1, 1, 0, 1, 1, 1, 1]), np.full(8, 0.4)
    value = monitoring.CalibrationMonitor(alarm="test").update(y, p).e_value_
    assert value > 1
    for alpha, rejects in (
        (1 / value * (1 + 1e-9), True),
        (1 / value * (1 - 1e-9), False),
    ):
        monitor = monitoring.CalibrationMonitor(alpha=alpha, alarm="test").update(y, p)
        assert monitor.alarm_ == rejects, f"alpha={alpha!r}: e-value {value!r}"


@pytest.mark.parametrize("sign", [">", ">=", "<", "<="])
def test_the_gate_of_a_command_at_its_limit(sign, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"p": [0.5, 0.5, 0.25, 0.75] * 10, "y": [0, 1, 0, 1] * 10}).to_csv(
        "t.csv"
    )
    value = 0.15625  # (0.25 + 0.25 + 0.0625 + 0.0625) / 4, exactly
    holds = {">": value > value, ">=": True, "<": False, "<=": True}[sign]
    command = [
        "audit",
        "t.csv",
        "--label",
        "y",
        "--prob",
        "p",
        "--resamples",
        "2",
        "--no-advice",
    ]
    code = main([*command, "--out", "none", "--fail-if", f"brier_loss {sign} {value}"])
    assert code == (3 if holds else 0), capsys.readouterr().out


# --- what every function and every map keeps ----------------------------------------------------

#: Functions whose results depend on the order of the rows, each with its reason.
ORDERED = {
    **dict.fromkeys(
        ("safe_calibration_test", "variational_calibration_interval"), "in turn"
    ),
    ("estimator", "linear"): "pairs neighbours",
    "paired_difference": "measures of draws: of losses it is below",
}
DRAWING = {"random_state", "cv", "n_splits", "recalibrated"}


def tied(k):
    """Rows whose scores are eighths, so that many are equal, and halves of them are the top."""
    data = rows(k)
    for name in ("first", "second"):
        counts = np.floor(8 * data[name] + 1e-9)
        counts[:, 0] += 8 - counts.sum(axis=1)
        data[name] = counts / 8
    data["first"] = 0.75 * data["first"] + 0.25 / k
    data["second"] = 0.75 * data["second"] + 0.25 / k
    return data


@run_every_case(
    "name",
    [
        name
        for name, function in sorted(FUNCTIONS.items())
        if not DRAWING & set(inspect.signature(function).parameters)
        and name not in ORDERED
    ],
)
def test_tied_rows_come_in_any_order(name):
    order = np.random.default_rng(1).permutation(80)
    ran = 0
    for k in (2, 3):
        data = tied(k)
        other = {key: value[order] for key, value in data.items()}
        for option in options(name):
            if set(option.items()) & set(ORDERED):
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CalibrationWarning)
                    found = call(FUNCTIONS[name], data, **option)
                    again = call(FUNCTIONS[name], other, **option)
            except (ValueError, TypeError):
                continue
            ran += 1
            try:
                same(again, found, rtol=1e-9, exact=False, but=OF_DRAWS.get(name, ()))
            except AssertionError as error:
                raise AssertionError(
                    f"{name}, {option}, {k} classes: {error}"
                ) from None
    assert ran


MAPS = sorted(all_recalibrators().values(), key=lambda cls: cls.__name__)


@functools.cache
def fitted(cls):
    rng = np.random.default_rng(5)
    p = np.sort(np.round(rng.beta(1.3, 1.6, 120), 2).clip(0.02, 0.98))
    y = (rng.random(120) < p**1.3).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return cls(**QUICKER.get(cls.__name__, {})).fit(p, y), p


@run_every_case("cls", MAPS, ids=lambda cls: cls.__name__)
def test_exported_maps_agree_on_both_sides_of_every_fitted_score(cls):
    model, p = fitted(cls)
    if cls.capabilities.export_error:
        pytest.skip(cls.capabilities.export_error)
    bound = 1e-5
    try:
        exported, bound = from_dict(to_dict(model)), 1e-12
    except ValueError:
        exported = from_dict(to_dict(model, tabulate=bound))
    edges = getattr(model, "bin_edges_", np.array([]))
    knots = getattr(model, "knots_", np.array([0.5]))
    inside = knots[(knots > 0) & (knots < 1)]
    at = around(np.concatenate([p, edges, inside, EDGES]))
    expected, found = model.predict_proba(at)[:, 1], exported.predict_proba(at)[:, 1]
    differs = np.flatnonzero(np.abs(found - expected) > bound)
    shown = [(repr(at[i]), expected[i], found[i]) for i in differs[:3]]
    assert not len(differs), f"{cls.__name__}: (score, expected, got) {shown}"


@run_every_case("cls", MAPS, ids=lambda cls: cls.__name__)
def test_the_score_of_a_threshold_is_the_first_that_reaches_it(cls):
    model, _ = fitted(cls)
    reached = np.unique(model.predict_proba([0.13, 0.5, 0.81])[:, 1])
    checked = 0
    for target in reached[(reached > 0) & (reached < 1)]:
        try:
            found = model.threshold(target)
        except ValueError as error:
            assert "finite form" in str(error) or "tabulate" in str(error), (
                f"{cls}: {error}"
            )
            pytest.skip("has no finite form")
        checked += 1
        if found.score is None or found.side != ">=":
            continue
        at = np.array([found.score, np.nextafter(found.score, 0)])
        value, before = model.predict_proba(at)[:, 1]
        title = f"{cls.__name__}: target {target!r}, score {found.score!r}"
        assert value >= target * (1 - 1e-12), f"{title} gives {value!r}"
        if 0 < found.score < 1:
            assert before < target * (1 + 1e-12), f"{title}, below it {before!r}"
    assert checked


@run_every_case("cls", MAPS, ids=lambda cls: cls.__name__)
def test_the_order_of_tied_rows_does_not_matter_to_a_fit(cls):
    if cls.__name__ in (
        "OnlineCalibration",
        "StackedCalibration",
        "DefaultCalibration",
    ):
        pytest.skip("sees rows in turn, or draws folds")
    model, p = fitted(cls)
    rng = np.random.default_rng(5)
    p = np.sort(np.round(rng.beta(1.3, 1.6, 120), 2).clip(0.02, 0.98))
    y = (rng.random(120) < p**1.3).astype(int)
    order = np.random.default_rng(0).permutation(120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        again = cls(**QUICKER.get(cls.__name__, {})).fit(p[order], y[order])
    found, expected = again.predict_proba(p), model.predict_proba(p)
    worst = np.abs(found - expected).max()
    tolerance = 1e-4 if cls.__name__ == "RestrictedPolynomialRegression" else 1e-8
    assert worst < tolerance, (
        f"{cls.__name__}: another order moves a probability by {worst}"
    )


@pytest.mark.parametrize("kind", ["confidence", "top_label", "classwise"])
def test_the_first_of_equal_classes_is_predicted(kind):
    proba = np.array(
        [[0.4, 0.4, 0.2], [0.25, 0.375, 0.375], [0.2, 0.4, 0.4], [0.4, 0.2, 0.4]]
    )
    y = np.array([0, 1, 2, 2])
    first = np.array([0, 1, 1, 0])
    hit = (first == y).astype(int)
    top = proba.max(axis=1)
    if kind == "confidence":
        problems = [(hit, top, 1.0)]
    elif kind == "top_label":
        problems = [
            (hit[first == c], top[first == c], np.mean(first == c)) for c in (0, 1)
        ]
    else:
        problems = [((y == c).astype(int), proba[:, c], 1 / 3) for c in range(3)]
    for name in ("expected_calibration_error", "smooth_calibration_error"):
        measure = getattr(metrics, name)
        expected = sum(share * measure(a, b, labels=[0, 1]) for a, b, share in problems)
        found = measure(y, proba, multiclass=kind)
        assert found == pytest.approx(expected, abs=1e-12), (
            f"{name}, multiclass={kind!r}"
        )


@pytest.mark.parametrize(
    ("n", "events", "fits"), [(50, 5, True), (49, 5, False), (50, 4, False)]
)
def test_the_fewest_rows_for_features_are_enough(n, events, fits):
    y, p = (np.arange(n) < events).astype(int), np.linspace(0.05, 0.4, n)
    case = metrics.validate_predictions(y, p)
    assert has_enough_rows_for_features(case) == fits, f"{n} rows with {events} events"


@pytest.mark.parametrize("size", [0.0, 0.5 - 2.0**-54, 0.5])
def test_the_errors_of_a_plan_are_below_one_half(size):
    refused = not 0 < size < 0.5
    try:
        found = errors_of_plan(f"0.02,{size!r}")
    except argparse.ArgumentTypeError:
        assert refused, f"--error {size!r} is refused"
    else:
        assert not refused and found == [0.02, size], f"--error {size!r} gives {found}"


@pytest.mark.parametrize("most", [7, 8, 9, 31, 32])
def test_cells_of_patterns_are_as_many_as_allowed(most):
    """The least shift that makes at most so many pairs, counted by hand."""
    n = 32
    high = np.zeros(n, dtype=bool)
    keys = cells.encode_float_keys(np.linspace(0.2501, 0.2599, n))
    pairs = np.zeros((n, cells.N_UNWEIGHTED_COLUMNS + 1), dtype=np.int64)
    pairs[:, cells.IDENTITY_COLUMN] = cells.compute_ordered_cell_ids(keys, high)
    shift = _find_smallest_shift(pairs, 0, most)
    number = {
        one: len(np.unique(cells.find_cell_start_keys(keys, high, one)))
        for one in cells.ALLOWED_BIT_SHIFTS
    }
    expected = next(one for one in cells.ALLOWED_BIT_SHIFTS if number[one] <= most)
    assert shift == expected, (
        f"at most {most}: expected {expected}, got {shift} of {number}"
    )


@pytest.mark.parametrize("left", [0, 1])
def test_labels_that_are_left_out_of_a_text_are_counted(left):
    """None are, where there are exactly as many labels as lines."""
    count = LINES_OF_TEXT + left
    rng = np.random.default_rng(0)
    proba = rng.random((40, count))
    report = multilabel_report(
        (rng.random((40, count)) < proba).astype(int), proba, n_resamples=2
    )
    expected = f"... and {left} more" if left else None
    text = str(report)
    found = [line.strip() for line in text.splitlines() if " more, " in line]
    assert [line.partition(",")[0] for line in found] == ([expected] if left else []), (
        count
    )
