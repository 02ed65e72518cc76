import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import LAWS, kept_bits, sample
from refused import refuses

from sklearn_calib import metrics
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.summary import BoundedValue, CalibrationSummary, _summary
from sklearn_calib.summary._bounds import BOUNDS, cell_sums, cumulative, logistic

ROUNDING = 1e-9  # of the measures themselves; bounds are for exact arithmetic
OPTIONS = [
    ("smooth_calibration_error", {}),
    ("lower_distance_to_calibration", {}),
    ("expected_calibration_error", {}),
    ("expected_calibration_error", {"strategy": "uniform"}),
    ("expected_calibration_error", {"strategy": "uniform", "n_bins": 7}),
    ("expected_calibration_error", {"bin_weight": "equal", "n_bins": 5}),
    ("expected_calibration_error", {"n_bins": "cube_root"}),
    ("calibration_error", {"norm": "l2"}),
    ("calibration_error", {"norm": "l2", "bin_weight": "equal", "n_bins": 4}),
    ("calibration_error", {"norm": "l2", "strategy": "uniform", "n_bins": 16}),
    ("maximum_calibration_error", {"n_bins": 4}),
    ("maximum_calibration_error", {"strategy": "uniform", "n_bins": 9}),
    ("random_interval_calibration_error", {}),
    ("random_interval_calibration_error", {"width": 0.37}),
    ("interval_calibration_error", {}),
    ("kernel_calibration_error", {}),
    ("kernel_calibration_error", {"bandwidth": 0.1}),
    ("convolved_calibration_error", {}),
    ("convolved_calibration_error", {"bandwidth": 0.05}),
    ("averaged_two_bin_error", {}),
    ("isotonic_refinement_brier", {}),
    ("temperature_refinement_log_loss", {}),
    ("brier_loss", {}),
    ("log_loss", {}),
]
IDS = [f"{name}-{options}" for name, options in OPTIONS]


def of_rows(name, options, y, p, w=None):
    """The measure of the rows, and how exactly it is computed."""
    value = metrics.all_metrics()[name](y, p, sample_weight=w, labels=[0, 1], **options)
    if name == "lower_distance_to_calibration":
        return value, metrics.lower_distance_interval(y, p, sample_weight=w, labels=[0, 1]).bound
    return value, 0.0


def check(name, options, y, p, w, max_cells):
    summary = CalibrationSummary(max_cells).update(y, p, w)
    value, bound = summary.measure(name, return_bound=True, **options)
    assert value == summary.measure(name, **options) and bound >= 0
    expected, error = of_rows(name, options, y, p, w)
    slack = ROUNDING + error
    if name == "isotonic_refinement_brier":
        assert value >= expected - slack  # it is one-sided
    assert abs(value - expected) <= bound + slack
    return summary, abs(value - expected), bound


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=IDS)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("max_cells", [100, 1000])
def test_bounds_hold(name, options, law, max_cells, small_cells):
    p, y = sample(law, 3000)
    p = kept_bits(p)
    w = np.random.default_rng(0).gamma(1.0, size=len(p)) if max_cells == 100 else None
    check(name, options, y, p, w, max_cells)


SCORES = st.one_of(
    st.floats(0, 1),
    st.floats(0, 1, width=32),
    st.integers(0, 60).map(lambda j: j / 60),
    st.integers(0, 20).map(lambda j: 0.3 + j / 4000),
    st.floats(-20, -8).map(np.exp),
    st.floats(8, 40).map(lambda z: 1 / (1 + np.exp(-z))),
    st.sampled_from([0.0, 1.0, 0.5, 1e-318, 1e-300, 1 - 2**-53]),
)


@st.composite
def rows(draw):
    p = np.array(draw(st.lists(SCORES, min_size=2, max_size=60)))
    repeated = draw(st.lists(st.integers(1, 30), min_size=len(p), max_size=len(p)))
    p = kept_bits(np.repeat(p, repeated))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    power = draw(st.sampled_from([0.2, 1.0, 3.0]))
    y = (rng.random(len(p)) < p**power).astype(int)
    w = rng.gamma(0.5, size=len(p)) + 1e-3 if draw(st.booleans()) else None
    return p, y, w, draw(st.sampled_from([3, 10, 30, 100]))


def try_bounds(case):
    p, y, w, max_cells = case
    least, _summary.LEAST_CELLS = _summary.LEAST_CELLS, 1
    try:
        for name, options in OPTIONS:
            check(name, options, y, p, w, max_cells)
    finally:
        _summary.LEAST_CELLS = least


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(rows())
def test_bounds_of_any_rows(case):
    try_bounds(case)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(rows())
def test_bounds_of_many_rows(case):
    try_bounds(case)


@pytest.mark.parametrize("tiny", [1e-318, 1e-310])
def test_no_bound_of_a_temperature_where_zeros_may_count_as_something_else(tiny, monkeypatch):
    """Of a zero and a tiny score in one cell, what the zero counts as cannot be known."""
    monkeypatch.setattr(_summary, "LEAST_CELLS", 1)
    y, p = np.array([0, 1, 1, 0]), np.array([0.0, 0.5, 0.388758932, tiny])
    off, bound = check("temperature_refinement_log_loss", {}, y, kept_bits(p), None, 3)[1:]
    assert off > 0.05 and bound < np.log(2)


def test_a_kernel_error_near_zero_can_be_far_below_that_of_the_rows(monkeypatch):
    """Twice the value of the cells: a bound of the value itself was too small."""
    monkeypatch.setattr(_summary, "LEAST_CELLS", 1)
    p = np.r_[np.zeros(27), np.full(6, 0.3125), 0.0, 0.0, 1.0, np.full(10, 0.3046875)]
    y = np.zeros(46, int)
    y[[29, 30, 32, 35, 36, 39]] = 1
    assert check("kernel_calibration_error", {}, y, p, None, 3)[1] > 0.0016


@pytest.mark.slow
def test_bounds_are_not_vacuous(small_cells):
    """Fine cells: the bounds are far below the values; and none is below the true error."""
    p, y = sample("uniform", 20_000)
    for name, options in OPTIONS:
        summary, error, bound = check(name, options, y, kept_bits(p), None, 4096)
        if name in BOUNDS:
            assert error <= bound + ROUNDING and bound < 0.05, name
    assert not summary.exact


def test_golden_bounds():
    i = np.arange(1, 100_001)
    p = 0.6180339887498949 * i % 1
    y = (0.7548776662466927 * i % 1 < p**1.5).astype(int)
    fine, coarse = (CalibrationSummary(m).update(y, p) for m in (65_536, 4096))
    for summary, smooth, d in ((fine, 7.8e-6, 1.0e-5), (coarse, 5.1e-4, 4.9e-4)):
        found = summary.measure("smooth_calibration_error", return_bound=True)
        assert isinstance(found, BoundedValue) and found.bound == pytest.approx(smooth, rel=0.01)
        isotonic = summary.measure("isotonic_refinement_brier", return_bound=True)
        assert isotonic.bound == pytest.approx(2 * d, rel=0.01)
    distance = coarse.measure("lower_distance_to_calibration", return_bound=True)
    assert distance.value == pytest.approx(0.100214489, abs=1e-6)
    program = metrics.lower_distance_interval(y, p).bound
    assert distance.bound == pytest.approx(6.3e-4 + program, rel=0.03)
    assert cell_sums(coarse._states[0]).width.max() == pytest.approx(2.0**-9, rel=1e-6)


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_exact_summaries_have_no_error(name):
    p, y = sample("atoms", 300)
    summary = CalibrationSummary().update(y, p)
    assert summary.measure(name, return_bound=True) == (summary.measure(name), 0.0)


@pytest.mark.parametrize("kind", ["confidence", "top_label", "classwise"])
@pytest.mark.parametrize(
    ("name", "options"), [o for o in OPTIONS if "refinement" not in o[0]], ids=lambda o: str(o)
)
def test_several_classes(kind, name, options, small_cells):
    proba, y = make_overconfident(3, 2000)
    proba = kept_bits(proba)
    summary = CalibrationSummary(300, multiclass=kind).update(y, proba)
    value, bound = summary.measure(name, return_bound=True, **options)
    more = {} if name.endswith("_loss") else {"multiclass": kind}
    expected = metrics.all_metrics()[name](y, proba, **options, **more)
    assert abs(value - expected) <= bound + 1e-4 * (name[:5] == "lower") + ROUNDING


@pytest.mark.parametrize("law", LAWS)
def test_the_logistic_bound(law, small_cells):
    """The log loss of any slope and intercept, at the scores and at the means of the cells."""
    p, y = sample(law, 3000)
    p = np.clip(kept_bits(p), 1e-30, 1 - 1e-15)
    summary = CalibrationSummary(200).update(y, p)
    cells = cell_sums(summary._states[0])
    means = np.clip(cells.score, 1e-30, 1 - 1e-15)
    for slope in (0.3, 1.0, 2.5, -1.0):
        for shift in (-1.0, 0.0, 2.0):
            z = slope * np.log(p / (1 - p)) + shift
            rows = np.mean(np.logaddexp(0, z) - y * z)
            z = slope * np.log(means / (1 - means)) + shift
            ours = cells.mass @ np.logaddexp(0, z) - cells.hits @ z
            assert abs(rows - ours) <= logistic(cells, slope) * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("law", LAWS)
def test_the_cumulative_bound(law, small_cells):
    from sklearn_calib.inference import cumulative_test

    p, y = sample(law, 3000)
    p = kept_bits(p)
    summary = CalibrationSummary(200).update(y, p)
    totals = summary.totals
    scale = totals.squared_variance**0.5
    bound = cumulative(cell_sums(summary._states[0]), totals.weight, scale)
    case = summary.case()
    for statistic in ("kuiper", "kolmogorov_smirnov"):
        rows = cumulative_test(y, p, statistic=statistic, labels=[0, 1]).statistic
        cells = case.problems()[0].cells
        path = np.cumsum(cells.hits - cells.mass * cells.score)
        high, low = max(path.max(), 0), min(path.min(), 0)
        size = high - low if statistic == "kuiper" else max(high, -low)
        assert abs(size / scale - rows) <= bound + 1e-9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.measure("isotonic_refinement_log_loss", True), "a measure with a known bound"),
        (lambda s: s.measure("temperature_refinement_brier", True), "a measure with a known bound"),
        (
            lambda s: s.measure("smooth_calibration_error", True, multiclass="classwise"),
            "multiclass='auto' for a bound",
        ),
    ],
)
def test_no_bound_is_made_up(call, message, small_cells):
    p, y = sample("uniform", 2000)
    with refuses(ValueError, rule=message):
        call(CalibrationSummary(100).update(y, p))
