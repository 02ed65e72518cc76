import numpy as np
import pytest
from sklearn.isotonic import isotonic_regression

from sklearn_calib._kernels._near_isotonic import PenaltyPath, find_breakpoints
from sklearn_calib.recalibrators import (
    ENIR,
    IsotonicCalibration,
    NearIsotonicCalibration,
)

CASES = ["n30", "ties60", "tiny8", "n200"]


@pytest.mark.parametrize("case", CASES)
def test_path_equals_the_r_package(oracle, case):
    """neariso 1.0 with ties pooled."""
    data = oracle("enir.json")[case]
    for lam, expected in zip(
        data["neariso_at"]["lambda"], data["neariso_at"]["beta"], strict=True
    ):
        found = NearIsotonicCalibration(penalty=lam).fit(data["s"], data["y"])
        np.testing.assert_allclose(found.values_, expected, atol=1e-12)
        assert found.penalty_ == lam


@pytest.mark.parametrize("criterion", ["bic", "aic"])
@pytest.mark.parametrize("case", CASES)
def test_ensemble_equals_the_r_package(oracle, case, criterion):
    data = oracle("enir.json")[case]
    found = ENIR(criterion).fit(data["s"], data["y"]).predict_proba(data["t"])[:, 1]
    # n200: the package counts a breakpoint twice (rounding)
    tolerance = 2e-5 if (case, criterion) == ("n200", "aic") else 1e-9
    np.testing.assert_allclose(found, data[criterion], atol=tolerance)


def optimal(y, w, b, penalty):
    """The largest violation of the optimality conditions."""
    # dual: u_i in [0, penalty] with w (b - y) + u_i - u_(i-1) = 0
    u = np.cumsum(w * (y - b))
    worst = abs(u[-1])
    falls = b[:-1] > b[1:] + 1e-9
    rises = b[:-1] < b[1:] - 1e-9
    u = u[:-1]
    worst = max(worst, np.max(-u, initial=0), np.max(u - penalty, initial=0))
    worst = max(worst, np.max(np.abs(u[falls] - penalty), initial=0))
    return max(worst, np.max(np.abs(u[rises]), initial=0))


@pytest.mark.parametrize("n", [2, 7, 100, 3000])
def test_optimality_conditions_along_the_path(n):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        y = (
            rng.random(n)
            if seed % 2
            else (rng.random(n) < np.linspace(0, 1, n)).astype(float)
        )
        w = rng.random(n) + 0.1 if seed % 3 else np.ones(n)
        path = PenaltyPath(y, w)
        penalties = find_breakpoints(path.merges)
        assert (np.diff(penalties) > 0).all()
        tried = (
            [0.0, 0.3, *penalties[:: max(1, len(penalties) // 5)], penalties[-1] * 1.5]
            if len(penalties)
            else [0.0, 1.0]
        )
        for penalty in tried:
            b = path.get_row_values(penalty)
            assert optimal(y, w, b, penalty) < 1e-9 * n
        np.testing.assert_allclose(
            b, isotonic_regression(y, sample_weight=w), atol=1e-10
        )


def test_a_large_penalty_is_isotonic_and_none_the_frequencies():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(500), 2)
    y = (rng.random(500) < p).astype(int)
    free = NearIsotonicCalibration(penalty=0.0).fit(p, y)
    for knot, value in zip(free.knots_[:5], free.values_[:5], strict=True):
        assert value == pytest.approx(y[np.isclose(p, knot)].mean())
    tied = NearIsotonicCalibration(penalty=1e6).fit(p, y)
    iso = IsotonicCalibration().fit(p, y)
    np.testing.assert_allclose(
        tied.predict_proba(tied.knots_), iso.predict_proba(tied.knots_), atol=1e-9
    )
    assert tied.breakpoints_[-1] < 1e6


def test_bic_chooses_more_groups_for_a_map_that_falls():
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(4000))
    truth = np.where(p < 0.5, 0.8, 0.2)
    rising = NearIsotonicCalibration().fit(p, (rng.random(4000) < p).astype(int))
    falling = NearIsotonicCalibration().fit(p, (rng.random(4000) < truth).astype(int))
    assert falling.penalty_ < falling.breakpoints_[-1]
    assert np.abs(falling.predict_proba(p)[:, 1] - truth).mean() < 0.05
    assert np.abs(rising.predict_proba(p)[:, 1] - p).mean() < 0.05


def test_bdeu_keeps_the_labels_of_scores_without_ties():
    """As its docstring states: groups that were made from the labels look certain."""
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(1000))
    y = (rng.random(1000) < p).astype(int)
    assert NearIsotonicCalibration("bdeu").fit(p, y).penalty_ < 0.5
    assert NearIsotonicCalibration("bic").fit(p, y).penalty_ > 1
    tied = NearIsotonicCalibration("bdeu").fit(p.round(1), y)
    assert np.abs(tied.predict_proba(p)[:, 1] - p).mean() < 0.1


def test_separable_and_constant_data():
    for y in ([0, 0, 1, 1], [0, 1, 0, 1]):
        p = [0.1, 0.2, 0.8, 0.9]
        for method in (ENIR(), NearIsotonicCalibration()):
            proba = method.fit(p, y).predict_proba(p)
            assert np.isfinite(proba).all()


@pytest.mark.parametrize(
    "method",
    [
        NearIsotonicCalibration(penalty=-1),
        NearIsotonicCalibration(penalty="best"),
        ENIR(criterion="aicc"),
    ],
)
def test_bad_parameters(method):
    with pytest.raises(ValueError, match="parameter of"):
        method.fit([0.1, 0.9], [0, 1])
