"""Integrated calibration index, E50, E90, Emax: the smoother, ties, weights."""

import numpy as np
import pytest
from golden_sets import golden_set

from sklearn_calib._kernels import _loess, _score_sums
from sklearn_calib._kernels._loess import Loess, compute_weighted_quantile
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decomposition import (
    calibration_indices,
    e50_calibration_index,
    e90_calibration_index,
    emax_calibration_index,
    integrated_calibration_index,
    smooth_cell_frequencies,
)
from sklearn_calib.inference import calibration_test, confidence_interval
from sklearn_calib.metrics import validate_predictions
from sklearn_calib.recalibrators import Identity, IsotonicCalibration

Y, P = golden_set()


def direct(score, y, mass, x0):
    """The fit at x0 by least squares on the rows, each `mass` times."""
    rows = np.repeat(np.arange(len(score)), mass)
    p, y = score[rows], y[rows]
    distance = np.abs(p - x0)
    ordered = np.sort(distance)
    width = ordered[max(int(0.75 * len(p)), 1) - 1]
    if width == 0:
        width = ordered[ordered > 0][0]
    root = np.sqrt(np.clip(1 - (distance / width) ** 3, 0, None) ** 3)
    t = (p - x0) / width
    columns = np.column_stack([np.ones_like(t), t, t**2]) * root[:, None]
    return np.clip(np.linalg.lstsq(columns, y * root, rcond=1e-9)[0][0], 0, 1)


def cells_of(score, y, mass=None):
    """Distinct scores, their masses and events."""
    mass = np.ones(len(score)) if mass is None else mass
    distinct, place = np.unique(score, return_inverse=True)
    return distinct, np.bincount(place, mass), np.bincount(place, mass * y)


def test_golden_curve():
    curve = smooth_cell_frequencies(validate_predictions(Y, P).problems()[0])
    expected = [0.118136764048, 0.573777565857, 0.928660036052]
    assert curve[[0, 99, 199]] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize(
    ("smoother", "expected"),
    [
        ("loess", (0.0621726350, 0.0708367814, 0.1164376450, 0.1199954518)),
        ("cox", (0.0609349988, 0.0623260111, 0.1100468352, 0.1124617762)),
        ("isotonic", (0.0641774083, 0.0647300370, 0.1239117053, 0.1626218372)),
    ],
)
def test_golden_indices(smoother, expected):
    assert calibration_indices(Y, P, smoother=smoother) == pytest.approx(
        expected, abs=1e-8
    )
    named = [e50_calibration_index, e90_calibration_index, emax_calibration_index]
    named = [integrated_calibration_index, *named]
    values = [measure(Y, P, smoother=smoother) for measure in named]
    assert values == pytest.approx(expected, abs=1e-8)
    summaries = ("mean", "median", "q90", "max")
    values = [
        integrated_calibration_index(Y, P, smoother=smoother, summary=summary)
        for summary in summaries
    ]
    assert values == pytest.approx(expected, abs=1e-8)


def test_the_curve_of_r():
    """R 4.2: predict(loess(y ~ p, control = loess.control(surface = "direct")))."""
    i = np.arange(151)
    p = (i * 0.6180339887498949 % 1).round(2)
    y = (i * 0.7548776662466927 % 1 < p**1.3).astype(int)
    problem = validate_predictions(y, p).problems()[0]
    curve = smooth_cell_frequencies(problem)[problem.cell_indices]
    expected = [
        0.0990715134015674,
        0.2553436934943207,
        0.0820313420332473,
        0.6789960411329119,
    ]
    assert curve[[10, 75, 120, 150]] == pytest.approx(expected, abs=1e-13)
    assert curve[0] == 0  # -0.0433561590480379 there
    assert integrated_calibration_index(y, p) == pytest.approx(
        0.0609934267773761, abs=1e-13
    )


@pytest.mark.parametrize("digits", [1, 2, 9])
def test_loess_is_the_fit_of_the_repeated_rows(digits):
    rng = np.random.default_rng(digits)
    score, y = rng.beta(0.7, 2, 151).round(digits), rng.integers(0, 2, 151)
    mass = rng.integers(1, 4, 151)
    distinct, total, events = cells_of(score, y, mass)
    expected = [direct(score, y, mass, x0) for x0 in distinct]
    assert Loess(distinct)(total, events) == pytest.approx(expected, abs=1e-9)


def test_a_score_that_holds_nearly_all_rows():
    score = np.r_[np.full(80, 0.3), np.linspace(0.4, 0.8, 20)]
    y = (np.arange(100) % 3 == 0).astype(float)
    distinct, mass, events = cells_of(score, y)
    curve = Loess(distinct)(mass, events)
    assert curve[0] == pytest.approx(y[:80].mean(), abs=1e-12)
    expected = [direct(score, y, np.ones(100, dtype=int), x0) for x0 in distinct]
    assert curve == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("smoother", ["loess", "cox", "isotonic", "spline"])
def test_one_score(smoother):
    found = calibration_indices([0, 0, 0, 1], np.full(4, 0.5), smoother=smoother)
    tolerance = 1e-9 if smoother != "spline" else 0.3  # drawn towards no change
    assert found == pytest.approx((0.25,) * 4, abs=tolerance)
    assert np.isfinite(
        calibration_indices([1], [0.3], smoother="loess", labels=[0, 1])
    ).all()


def scores(law, n, rng):
    if law == "uniform":
        return rng.random(n)
    if law == "two crowds":
        return np.r_[rng.normal(0.3, 0.06, n // 2), rng.normal(0.8, 0.04, n // 2)].clip(
            0, 1
        )
    return 10 ** rng.uniform(-6, 0, n)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "of_curve"),
    [("uniform", 1e-4), ("two crowds", 1e-4), ("powers of ten", 5e-4)],
)
def test_pooling_and_interpolation_change_little(law, of_curve, monkeypatch):
    rng = np.random.default_rng(0)
    p = scores(law, 5000, rng)
    y = (rng.random(len(p)) < 0.2 + 0.3 * p + 0.3 * np.sin(6 * p) * p).astype(float)
    score, mass, events = cells_of(p, y)
    found = Loess(score)(mass, events)
    assert len(Loess(score)._score) > _loess.MAX_LOESS_SCORE_CELLS
    monkeypatch.setattr(_loess, "MAX_LOESS_SCORE_CELLS", len(score))
    some = np.r_[:20, 20 : len(score) - 20 : 50, len(score) - 20 : len(score)]
    windows = _loess._find_window_first_and_last_scores(score, mass)
    widths = _loess._find_window_half_widths(score, windows, some)
    rows = np.zeros((len(some), len(score)))
    _loess._fill_smoother_rows(score, mass, score[some], widths, rows)
    exact = np.clip(rows @ events, 0, 1)
    assert np.abs(found[some] - exact).max() < of_curve
    gaps = np.abs(found[some] - score[some]).mean(), np.abs(exact - score[some]).mean()
    assert abs(gaps[0] - gaps[1]) < 3e-5
    step = rows[::60] @ events  # the widths are those of the sorted distances
    naive = [direct(p, y, np.ones(len(p), dtype=int), score[i]) for i in some[::60]]
    assert np.clip(step, 0, 1) == pytest.approx(naive, abs=1e-9)


def test_the_kept_operator_is_of_the_masses_given():
    score = np.linspace(0.1, 0.9, 50)
    rng = np.random.default_rng(1)
    loess, mass = Loess(score), np.ones(50)
    loess(mass, rng.integers(0, 2, 50))
    for masses in (mass, rng.integers(1, 5, 50).astype(float), mass):
        hits = masses * rng.random(50)
        assert loess(masses, hits).tolist() == Loess(score)(masses, hits).tolist()


@pytest.mark.parametrize("q", [0.0, 0.5, 0.9, 1.0])
def test_quantile_of_repeated_numbers(q):
    rng = np.random.default_rng(2)
    values, mass = rng.random(30), rng.integers(1, 6, 30)
    expected = np.quantile(np.repeat(values, mass), q)
    assert compute_weighted_quantile(values, mass.astype(float), q) == pytest.approx(
        expected, abs=1e-15
    )
    expected = np.quantile(np.repeat(values, mass), q, method="inverted_cdf")
    assert compute_weighted_quantile(values, mass / 7, q) == pytest.approx(
        expected, abs=1e-15
    )


def test_of_several_problems_the_mean():
    rng = np.random.default_rng(3)
    proba, y = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    found = calibration_indices(y, proba, multiclass="classwise")
    each = [calibration_indices(y == c, proba[:, c]) for c in range(3)]
    assert found == pytest.approx(np.mean(each, axis=0), abs=1e-12)
    value = integrated_calibration_index(y, proba, multiclass="classwise")
    assert value == pytest.approx(found.ici, abs=1e-15)


@pytest.mark.slow
def test_in_tests_and_intervals():
    name = "integrated_calibration_index"
    tested = calibration_test(Y, P, statistic=name, n_resamples=99)
    assert tested.statistic == pytest.approx(0.0621726350, abs=1e-9)
    proba, y = make_overconfident(2, 300)
    assert calibration_test(y, proba, statistic=name, n_resamples=99).pvalue == 0.01
    found = confidence_interval(Y, P, name, n_resamples=49, random_state=0)
    assert 0 <= found.low < found.estimate < found.high < 0.2
    cox = calibration_test(Y, P, statistic=name, n_resamples=49, smoother="cox")
    assert cox.statistic == pytest.approx(0.0609349988, abs=1e-8)


def test_what_is_given_stays_as_it_is():
    smoother = IsotonicCalibration(centred=True)
    integrated_calibration_index(Y, P, smoother=smoother)
    assert not hasattr(smoother, "classes_")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"smoother": "lowess"},
            ValueError,
            "a smoother among loess, cox, .*got 'lowess'",
        ),
        ({"smoother": object()}, TypeError, "expected a recalibr"),
        (
            {"summary": "e50"},
            ValueError,
            "summary among mean, median, q90, max, got 'e50'",
        ),
    ],
)
def test_refused(options, error, message):
    with pytest.raises(error, match=message):
        integrated_calibration_index(Y, P, **options)


@pytest.mark.parametrize(("seed", "least"), [(1, 200), (4, 320)])
def test_scores_near_zero(seed, least):
    """Distances of 1e-200 have squares of 0, and far rows are 1e300 windows away."""
    rng = np.random.default_rng(seed)
    p = np.where(
        rng.random(1000) < 0.76,
        10.0 ** -rng.uniform(100, least, 1000),
        rng.random(1000),
    )
    y = (rng.random(1000) < p).astype(int)
    with np.errstate(all="raise", under="ignore"):
        found = calibration_indices(y, p)
    low = p < 0.01
    curve = smooth_cell_frequencies(validate_predictions(y, p).problems()[0])
    assert 0 <= found.e50 <= found.ici <= found.e90 <= found.emax <= 1
    assert curve[: low.sum()] == pytest.approx(0, abs=0.01)


def test_three_scores_near_zero():
    p = [1.0, 1e-233, 1e-300]
    assert integrated_calibration_index([1, 1, 0], p) == pytest.approx(1 / 3)


def test_a_smoother_that_is_linear_everywhere_ends(monkeypatch):
    """No interval is worth another support point, and the loop looks for some."""
    monkeypatch.setattr(_score_sums, "fill_local_parabola_weights", lambda *given: None)
    assert (Loess(np.linspace(0, 1, 2000))(np.ones(2000), np.ones(2000)) == 0).all()


@pytest.mark.parametrize("smoother", ["loess", "isotonic", "platt", "spline"])
def test_weights_are_repetition(smoother):
    weight = 1 + np.arange(len(Y)) % 4 * Y
    weighted = calibration_indices(Y, P, smoother=smoother, sample_weight=weight)
    repeated = calibration_indices(
        np.repeat(Y, weight), np.repeat(P, weight), smoother=smoother
    )
    assert np.array(weighted) == pytest.approx(np.array(repeated), abs=1e-6)
    plain = calibration_indices(Y, P, smoother=smoother)
    assert np.abs(np.array(plain) - np.array(weighted)).max() > 0.01


@pytest.mark.parametrize("smoother", ["identity", Identity()])
def test_a_curve_that_is_the_predictions_is_refused(smoother):
    with pytest.raises(
        ValueError, match=r"a smoother that learns .* every index is 0\. Leave"
    ):
        integrated_calibration_index([0, 1, 1], [0.2, 0.4, 0.9], smoother=smoother)
