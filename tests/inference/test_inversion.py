"""The parts of an interval by inversion: lines of truths, their limits, the search along them."""

from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy.spatial.distance import pdist
from scipy.special import expit
from sklearn.model_selection import KFold

from sklearn_calib.datasets import make_overconfident, make_uniform_shift
from sklearn_calib.inference import (
    calibration_test,
    confidence_interval,
    paired_difference,
    simulate_null_distribution,
)
from sklearn_calib.inference._intervals import (
    _compute_monte_carlo_pvalue,
    _compute_proba_shifted_to_frequency,
    _find_low_estimate_high_and_null_mean,
    _fit_clone_and_predict_proba,
    _InterpolatedTruths,
    _make_value_and_simulator,
    _replace_law_by_proba_in_nearer_half,
)
from sklearn_calib.inference._measure_forms import (
    BATCH_EVALUATOR_BY_MEASURE,
    evaluate_population_value,
)
from sklearn_calib.inference._resampling import pool_rows_if_worthwhile
from sklearn_calib.metrics import (
    all_metrics,
    brier_loss,
    expected_calibration_error,
    validate_predictions,
)
from sklearn_calib.recalibrators import PlattScaling
from sklearn_calib.summary import CalibrationSummary


def case_of(p, y, weight=None):
    return validate_predictions(y, p, weight, [0, 1])


def simulation(case, measure, n_resamples=50):
    """The observed value, and what a line is made of."""
    given = {"n_resamples": n_resamples, "random_state": 0, "n_jobs": None}
    observed, simulate = _make_value_and_simulator(case, measure, {}, None, given)
    return observed, (case, partial(evaluate_population_value, measure), simulate)


def line_of(case, law, measure=brier_loss, n_resamples=50):
    return _InterpolatedTruths(
        *simulation(case, measure, n_resamples)[1], np.asarray(law)
    )


def test_share_counts_the_observed_one():
    assert _compute_monte_carlo_pvalue(np.array([True, False, False])) == 2 / 4
    assert _compute_monte_carlo_pvalue(np.zeros(19, dtype=bool)) == 1 / 20


def test_truths_on_a_line():
    case = case_of([0.2, 0.5, 0.9], [0, 1, 1])
    law = np.array([[0.7, 0.3], [0.5, 0.5], [0.0, 1.0]])
    line = line_of(case, law)
    np.testing.assert_allclose(line.compute_true_proba(0.0), case.proba, atol=1e-15)
    np.testing.assert_allclose(line.compute_true_proba(1.0), law, atol=1e-15)
    np.testing.assert_allclose(
        line.compute_true_proba(3.0), [[0.5, 0.5], [0.5, 0.5], [0, 1]], atol=1e-15
    )
    np.testing.assert_allclose(
        line.compute_true_proba(64.0), [[0, 1], [0.5, 0.5], [0, 1]], atol=1e-15
    )


def test_truths_of_several_classes_stay_probabilities():
    proba = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    law = np.array([[0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
    line = line_of(validate_predictions([0, 2], proba, None, [0, 1, 2]), law)
    np.testing.assert_allclose(
        line.compute_true_proba(4.0)[0], [0, 0.7 / 1.6, 0.9 / 1.6], atol=1e-15
    )
    np.testing.assert_allclose(line.compute_true_proba(4.0)[1], [0, 0, 1], atol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
def test_limits_are_expectations(weighted):
    """Every row with every label, as often as the truth states."""
    p, y = np.array([0.2, 0.5, 0.9]), [0, 1, 1]
    weight = np.array([1.0, 2.0, 0.5]) if weighted else np.ones(3)
    case = case_of(p, y, weight)
    truth = np.array([0.4, 0.4, 0.8])
    line = line_of(case, np.column_stack([1 - truth, truth]))
    for t in (0.0, 1.0, 0.5):
        q = p + t * (truth - p)
        expected = weight @ (q * (1 - p) ** 2 + (1 - q) * p**2) / weight.sum()
        assert line.compute_population_value(t) == pytest.approx(expected, rel=1e-14)


def test_the_limit_of_calibrated_predictions_is_zero():
    p = np.random.default_rng(0).random(40)
    line = line_of(
        case_of(p, np.arange(40) % 2), np.full((40, 2), 0.5), expected_calibration_error
    )
    assert line.compute_population_value(0.0) == 0.0
    assert line.compute_population_value(1.0) > 0.1


def test_simulations_are_of_the_truth_and_made_once():
    p = np.full(400, 0.5)
    case = case_of(p, np.arange(400) % 2)
    seen = []

    def share_of_ones(drawn):
        seen.append(len(drawn.codes))
        return drawn.codes.mean()

    simulate = partial(simulate_null_distribution, case, share_of_ones, 30)
    law = np.tile([0.1, 0.9], (400, 1))
    line = _InterpolatedTruths(
        case, share_of_ones, lambda truth: simulate(law=truth), law
    )
    assert line.simulate_values(0.0).mean() == pytest.approx(0.5, abs=0.02)
    assert line.simulate_values(1.0).mean() == pytest.approx(0.9, abs=0.02)
    assert line.simulate_values(0.5).mean() == pytest.approx(0.7, abs=0.02)
    assert len(seen) == 90
    line.simulate_values(1.0)
    assert len(seen) == 90


@run_every_case("threshold", [0.0, 0.003, 0.37, 0.99, 1.0, 1.7, 5.0, 30.0])
def test_the_first_that_is_not_too_small(threshold):
    case = case_of([0.2, 0.9], [0, 1])
    line, tried = line_of(case, [[0.5, 0.5], [0.5, 0.5]]), []

    def simulated(t):
        tried.append(t)
        return t

    line.simulate_values = simulated
    found = line.find_smallest_strength(lambda t: t < threshold)
    assert found >= threshold, "never one that is too small"
    assert found - threshold <= 0.02 * max(1.0, found)
    assert found == 0.0 or threshold > 0
    assert len(tried) <= 15


def test_the_largest_strength_tried():
    line, tried = line_of(case_of([0.2, 0.9], [0, 1]), [[0.5, 0.5], [0.5, 0.5]]), []

    def simulated(t):
        tried.append(t)
        return t

    line.simulate_values = simulated
    assert line.find_smallest_strength(lambda t: True) == pytest.approx(64.0)
    assert max(tried) <= 64.0


@pytest.mark.parametrize("weight", [None, [1.0, 1.0, 4.0, 2.0]])
def test_shifted_predictions(weight):
    """Moved towards what was seen, the largest column by the size asked for."""
    p, y = np.array([0.2, 0.4, 0.5, 0.3]), np.array([0, 1, 1, 0])
    case = case_of(p, y, weight)
    moved = _compute_proba_shifted_to_frequency(case, 0.07)
    w = np.ones(4) if weight is None else np.array(weight)
    sign = np.sign(w @ (y - p))
    assert sign == 1
    np.testing.assert_allclose(moved[:, 1], p + 0.07, atol=1e-15)
    np.testing.assert_allclose(moved.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(
        _compute_proba_shifted_to_frequency(case, 0.0)[:, 1], p + 1e-6, atol=1e-15
    )
    never = case_of(p, np.zeros(4, dtype=int), weight)
    np.testing.assert_allclose(
        _compute_proba_shifted_to_frequency(never, 0.07)[:, 1], p - 0.07, atol=1e-15
    )


def test_shifted_where_predictions_are_right_on_average():
    proba = np.tile([0.25, 0.25, 0.5], (4, 1))
    case = validate_predictions([0, 1, 2, 2], proba, None, [0, 1, 2])
    moved = _compute_proba_shifted_to_frequency(case, 0.3) - proba
    np.testing.assert_allclose(moved, np.tile([0.2, -0.1, -0.1], (4, 1)), atol=1e-15)


def test_shifted_in_several_classes():
    proba = np.tile([0.2, 0.3, 0.5], (10, 1))
    case = validate_predictions([0] * 4 + [1] * 2 + [2] * 4, proba, None, [0, 1, 2])
    moved = _compute_proba_shifted_to_frequency(case, 0.1) - proba  # seen 0.4 0.2 0.4
    np.testing.assert_allclose(moved, np.tile([0.1, -0.05, -0.05], (10, 1)), atol=1e-14)


def test_the_law_is_the_recalibrated_one():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p**2).astype(int)
    weight = rng.random(200)
    law = _fit_clone_and_predict_proba(case_of(p, y, weight), "platt")
    expected = PlattScaling().fit(p, y, sample_weight=weight).predict_proba(p)
    np.testing.assert_allclose(law, expected, atol=1e-12)
    # one class, one score: no warning
    one = case_of(np.full(20, 0.5), np.ones(20, dtype=int))
    assert _fit_clone_and_predict_proba(one, "platt").shape == (20, 2)


@pytest.mark.slow
def test_ends_along_both_lines():
    """The upper end is the larger of those of the fitted shape and of a constant shift."""
    rng = np.random.default_rng(1)
    p = rng.random(150)
    y = (rng.random(150) < np.clip(p + 0.15, 0, 1)).astype(int)
    case = case_of(p, y)
    estimate, parts = simulation(case, expected_calibration_error, 60)
    assert estimate == pytest.approx(
        expected_calibration_error.evaluate(case), abs=1e-15
    )
    plain = np.asarray(case.proba)
    ends = {}
    for name, law in (
        ("none", plain),
        ("platt", _fit_clone_and_predict_proba(case, "platt")),
    ):
        ends[name] = _find_low_estimate_high_and_null_mean(
            partial(_InterpolatedTruths, *parts), case, law, estimate, 0.05, None
        )
    shift = line_of(
        case,
        _compute_proba_shifted_to_frequency(case, estimate),
        expected_calibration_error,
        60,
    )
    alone = shift.compute_population_value(
        shift.find_smallest_strength(
            lambda v: _compute_monte_carlo_pvalue(v <= estimate) > 0.05
        )
    )
    # a law that is the prediction has no line: its limits are 0, the shift decides
    assert (ends["none"][0], ends["none"][2]) == (0.0, alone)
    low, middle, high, _ = ends["platt"]
    assert 0 < low < middle < estimate < high and high >= alone


def test_defaults(monkeypatch):
    seen = []

    def distribution(
        case, evaluate, n_resamples, random_state, *, n_jobs, progress, groups
    ):
        seen.append((n_resamples, random_state, n_jobs))
        return np.arange(41.0)

    monkeypatch.setattr(
        "sklearn_calib.inference._intervals.simulate_bootstrap_distribution",
        distribution,
    )
    found = confidence_interval([0, 1], [0.2, 0.6], "brier_loss")
    assert seen == [(499, 0, None)]
    assert (found.low, found.high, found.level) == pytest.approx((1.0, 39.0, 0.95))
    with pytest.raises(FrozenInstanceError):
        found.low = 0.0


NO_ERRORS = (
    "area_under_risk_coverage",
    "expected_cost_score",
    "temperature_refinement_brier",
    "temperature_refinement_log_loss",
)


@pytest.mark.parametrize("measure", NO_ERRORS)
def test_what_is_no_calibration_error_is_not_inverted(measure):
    """Truths between the predictions and their recalibration say nothing about it."""
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = (rng.random(60) < p).astype(int)
    found = confidence_interval(y, p, measure, n_resamples=39)
    assert found.method == "bootstrap" and found.null_mean is None
    assert found.low <= found.estimate <= found.high and found.low < found.high
    assert found.sample_value == pytest.approx(all_metrics()[measure](y, p), abs=1e-12)
    with raises_invalid_input(
        ValueError, expected="a calibration error for method 'inversion'"
    ):
        confidence_interval(y, p, measure, method="inversion")
    assert paired_difference(y, p, p**1.1, measure, n_resamples=9).method == "bootstrap"


SCORES = np.random.default_rng(3).random(200)
MEDIAN = float(np.median(pdist(SCORES[:, None])))  # total variation of (1 - p, p)
SUBTRACT = [
    ("averaged_two_bin_error", {"debias": True}, 2),
    ("expected_calibration_error", {"debias": True}, 2),
    ("calibration_error", {"debias": True, "norm": "l2"}, 2),
    ("kernel_calibration_error", {"multiclass": "canonical"}, 2),
    (
        "kernel_calibration_error",
        {"multiclass": "canonical", "estimator": "unbiased"},
        3,
    ),
    ("kernel_calibration_error", {"multiclass": "canonical", "estimator": "linear"}, 3),
    ("lp_calibration_error", {"estimator": "unbiased", "n_levels": 4}, 3),
    ("variational_calibration_error", {"cv": KFold(3)}, 2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("measure", "options", "k"), SUBTRACT)
def test_the_limit_is_that_of_the_plug_in_form(measure, options, k):
    """Of a law nothing is to be subtracted for chance, and no row has a copy of itself."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), 60)
    case = validate_predictions(np.arange(60) % k, p, None, range(k))
    function = all_metrics()[measure]
    line = _InterpolatedTruths(
        case,
        partial(evaluate_population_value, function, **options),
        None,
        np.roll(p, 1, axis=1),
    )
    assert line.compute_population_value(0.0) == pytest.approx(0.0, abs=1e-9)
    assert line.compute_population_value(1.0) > 1e-3
    found = confidence_interval(
        case.codes, p, measure, n_resamples=3, labels=range(k), **options
    )
    assert found.sample_value == pytest.approx(
        function.evaluate(case, **options), abs=1e-12
    )
    assert 0 <= found.low <= found.estimate <= found.high


@pytest.mark.parametrize(
    ("measure", "options", "given"),
    [
        (
            "expected_calibration_error",
            {"n_bins": "cube_root"},
            {"n_bins": 6},
        ),  # of 400 rows 8
        ("maximum_calibration_error", {"n_bins": "cube_root"}, {"n_bins": 6}),
        ("kernel_calibration_error", {"bandwidth": "median"}, {"bandwidth": MEDIAN}),
    ],
)
def test_a_row_with_several_labels_is_one_row_to_rules_about_rows(
    measure, options, given
):
    """The number of bins and the bandwidth of the limit, and of soft labels, are those of rows."""
    p = np.column_stack([1 - SCORES, SCORES])
    if "bandwidth" in options:
        options, given = (
            {"multiclass": "canonical", **one} for one in (options, given)
        )
    case = validate_predictions(np.arange(200) % 2, p)
    function = all_metrics()[measure]
    evaluate, law = (
        partial(evaluate_population_value, function, **options),
        np.full((200, 2), 0.5),
    )
    line = _InterpolatedTruths(case, evaluate, None, law)
    direct = _InterpolatedTruths(
        case, partial(evaluate_population_value, function, **given), None, law
    )
    assert line.compute_population_value(1.0) == direct.compute_population_value(1.0)
    shares = np.clip(SCORES**2, 0.1, 0.9)
    plain, named = (
        function(shares, p, soft_labels=True, **one) for one in (options, given)
    )
    assert plain == pytest.approx(named, abs=1e-12)


@pytest.mark.slow
def test_bins_of_a_summary_are_those_of_its_rows():
    """1600 rows of 8 scores: 12 bins, of their cells 3."""
    p = np.repeat(np.arange(1, 9) / 10, 200)
    y = (np.arange(1600) % 200 < 200 * (p + 0.1 * (-1) ** np.round(10 * p))).astype(int)
    summary = CalibrationSummary().update(y, p)
    found = [
        confidence_interval(
            summary, None, "expected_calibration_error", n_bins=bins, n_resamples=39
        )
        for bins in ("cube_root", 12)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("loss", ["brier", "log_loss"])
@pytest.mark.parametrize("given", [{}, {"method": "bootstrap"}, {"cv": 3}])
def test_the_bootstrap_of_isotonic_refinements_is_refused(loss, given):
    """Their fit is closer to resampled rows than to new ones; 95 % intervals held 0.35 to 0.55."""
    p = np.linspace(0.1, 0.9, 60)
    rule = f"whose bootstrap interval is valid, got 'isotonic_refinement_{loss}'"
    with pytest.raises(
        ValueError, match=f"{rule}. Take 'temperature_refinement_{loss}', or the"
    ):
        confidence_interval(
            np.arange(60) % 2, p, f"isotonic_refinement_{loss}", **given
        )


@pytest.mark.slow
def test_an_unbiased_estimate_below_zero_has_an_upper_end():
    """The line of a constant shift is long enough where nothing was seen."""
    p = np.tile([0.3, 0.7], 30)
    y = np.tile([1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0], 3)
    found = confidence_interval(
        y, p, "averaged_two_bin_error", debias=True, n_resamples=79
    )
    assert found.sample_value < 1e-3
    assert found.low == 0 and 0.002 < found.high < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", [80, pytest.param(200, marks=pytest.mark.cross)])
@pytest.mark.parametrize(
    ("measure", "options"),
    [
        ("expected_calibration_error", {}),
        ("averaged_two_bin_error", {"debias": True}),
        ("lp_calibration_error", {}),
    ],
)
@pytest.mark.whole
def test_the_estimate_lies_in_its_interval(measure, options, n_sets):
    plain = zeros = 0
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        p = rng.random(60)
        y = (rng.random(60) < (p if seed % 2 else p**1.5)).astype(int)
        given = {"n_resamples": 9, "level": 0.6, "labels": [0, 1]} | options
        found = confidence_interval(y, p, measure, random_state=seed, **given)
        assert found.low <= found.estimate <= found.high, seed
        plain += not found.low <= found.sample_value <= found.high
        zeros += seed % 2 and found.estimate == 0
    assert plain > 0.1 * n_sets, "the measure itself does not"
    assert 0.3 <= zeros / (n_sets / 2) <= 0.7, "of the calibrated sets"


@pytest.mark.slow
def test_the_estimate_is_the_median_of_its_law():
    """With one bin the error is the mean residual: nothing is to be taken off."""
    data = make_uniform_shift(400, 0.2, random_state=0)
    given = {"n_bins": 1, "n_resamples": 599}
    found = confidence_interval(
        data.y, data.proba, "expected_calibration_error", **given
    )
    assert found.estimate == pytest.approx(found.sample_value, abs=0.004)
    null = calibration_test(
        data.y,
        data.proba,
        statistic="expected_calibration_error",
        n_bins=1,
        n_resamples=599,
    ).null_distribution
    assert found.null_mean == pytest.approx(null.mean(), rel=0.15)


@pytest.mark.slow
def test_methods_and_levels():
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = (rng.random(60) < p).astype(int)
    options = {"n_resamples": 24, "random_state": 3}
    assert confidence_interval(y, p, "brier_loss", **options).method == "bootstrap"
    auto = confidence_interval(y, p, **options)
    assert auto.method == "inversion" and auto.level == 0.95
    assert auto == confidence_interval(
        y, p, "smooth_calibration_error", method="inversion", **options
    )
    wide, narrow = (
        confidence_interval(y, p, level=level, **options) for level in (0.99, 0.5)
    )
    assert wide.low <= narrow.low and narrow.high < wide.high
    binned = confidence_interval(
        y, p, "expected_calibration_error", n_bins=3, **options
    )
    assert binned.sample_value == pytest.approx(
        expected_calibration_error(y, p, n_bins=3)
    )
    drawn = confidence_interval(
        y, p, "expected_calibration_error", method="bootstrap", **options
    )
    assert drawn.method == "bootstrap"
    assert drawn.low > 0, "the bootstrap of an error near 0 is too high"


@pytest.mark.slow
def test_the_fewest_draws_that_exclude_anything():
    """1 / (1 + n) has to be at most the tail of one side."""
    proba, y = make_overconfident(2, 150)
    few, enough = (
        confidence_interval(y, proba, "calibration_error", n_resamples=n)
        for n in (38, 39)
    )
    assert few.low == 0 < enough.low and enough.high < 0.5 * few.high


@pytest.mark.slow
@pytest.mark.parametrize(("soft", "k"), [(False, 2), (True, 2), (False, 3)])
def test_progress_and_threads(soft, k):
    """Four searches; the result depends on neither."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), 80)
    y = p if soft else np.arange(80) % k
    given = {"n_resamples": 39, "labels": range(k), "soft_labels": soft}
    told = []
    found = confidence_interval(y, p, progress=lambda *done: told.append(done), **given)
    assert told == [(n, 4) for n in (1, 2, 3, 4)]
    assert found == confidence_interval(y, p, n_jobs=2, **given)
    told.clear()
    confidence_interval(
        y,
        p,
        "brier_loss",
        method="bootstrap",
        progress=lambda *done: told.append(done),
        **given,
    )
    assert told == [(37, 39), (39, 39)]
    with raises_invalid_input(ValueError, expected="progress that can be called"):
        confidence_interval(y, p, progress=3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_scores", [7, 400])
@pytest.mark.parametrize("measure", sorted(BATCH_EVALUATOR_BY_MEASURE))
def test_many_draws_at_once_are_the_measure_of_each(measure, n_scores, weighted):
    rng = np.random.default_rng(0)
    p = rng.choice(rng.random(n_scores) ** 2, 300)
    weight = rng.integers(1, 4, 300) if weighted else np.ones(300)
    pooled = pool_rows_if_worthwhile(
        case_of(p, np.arange(300) % 2, weight), always=True
    )
    law = np.column_stack([1 - p**2, p**2])
    events = pooled.with_label_probabilities(law).draw_event_weights(
        20, np.random.default_rng(1)
    )
    found = BATCH_EVALUATOR_BY_MEASURE[measure](pooled.score, pooled.mass, events)
    for value, row in zip(found, events, strict=True):
        pairs = (
            np.repeat(pooled.score, 2),
            np.column_stack([pooled.mass - row, row]).ravel(),
        )
        known = np.tile([0, 1], len(pooled.score))
        direct = all_metrics()[measure](known, pairs[0], sample_weight=pairs[1])
        assert value == pytest.approx(direct, abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n", [300, 9000])
def test_events_of_rows_in_cells_follow_a_law_of_all_rows(n, k):
    """Few rows one by one, many by the mean of their cell; the largest probability of several."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), n)
    law = rng.dirichlet(np.ones(k), n)
    case = validate_predictions(np.arange(n) % k, p, None, range(k))
    pooled = pool_rows_if_worthwhile(case, 16, always=True)
    top = np.ones(n, int) if k == 2 else p.argmax(axis=1)
    score, chance = p[np.arange(n), top], law[np.arange(n), top]
    expected = [
        part.sum() for part in np.split(chance[np.argsort(score)], pooled._starts[1:])
    ]
    drawn = pooled.with_label_probabilities(law).draw_event_weights(
        2000, np.random.default_rng(1)
    )
    error = np.sqrt(n / 16 / 2000)
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=3 * error)
    # the plain law is that of the predictions
    np.testing.assert_allclose(
        pooled.draw_event_weights(2000, np.random.default_rng(1)).mean(axis=0),
        [part.sum() for part in np.split(np.sort(score), pooled._starts[1:])],
        atol=3 * error,
    )


def test_an_error_of_half_of_the_rows_lowers_the_lower_end(monkeypatch):
    """The fitted line spreads such an error over all rows, whose noise it then underrates."""
    rng = np.random.default_rng(3)
    p = rng.uniform(0.02, 0.98, 2000)
    z = np.log(p / (1 - p))
    y = (rng.random(2000) < expit(np.where(z > 0, 0.5 * z, z))).astype(int)
    found = confidence_interval(y, p, "expected_calibration_error", n_resamples=99)
    monkeypatch.setattr(
        "sklearn_calib.inference._intervals._replace_law_by_proba_in_nearer_half",
        lambda case, law: law,
    )
    before = confidence_interval(y, p, "expected_calibration_error", n_resamples=99)
    assert 0 < found.low < before.low
    assert (found.estimate, found.high) == (before.estimate, before.high)


def test_a_one_sided_error_is_that_of_the_half_of_the_rows_that_are_farthest_off():
    case = validate_predictions([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    law = np.asarray(case.proba) + np.array(
        [[0.02, -0.02], [0.1, -0.1], [-0.2, 0.2], [0.0, 0.0]]
    )
    moved = _replace_law_by_proba_in_nearer_half(case, law) - case.proba
    assert moved[:, 1] == pytest.approx([0.0, -0.1, 0.2, 0.0])


@pytest.mark.parametrize("weight", [None, 0.25, 3.0])
def test_a_class_without_a_row_is_not_taken_to_be_as_frequent_as_predicted(weight):
    """200 rows of 0.5 without an event: the error is near 0.5, as the labels say."""
    y, p = np.zeros(200), np.full(200, 0.5)
    given = {"labels": [0, 1], "n_resamples": 39, "recalibrator": "platt"}
    given["sample_weight"] = None if weight is None else np.full(200, weight)
    found = confidence_interval(y, p, "expected_calibration_error", **given)
    assert 0.45 < found.low <= found.estimate <= found.high <= 0.5
    assert found.estimate > 0.49
