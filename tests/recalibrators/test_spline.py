"""The spline on the log-odds: golden fits, exact deletion, the monotone curve."""

from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
from golden_sets import golden_set
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.special import expit, logit
from sklearn.isotonic import isotonic_regression
from sklearn.pipeline import make_pipeline

from sklearn_calib import canonical_proba
from sklearn_calib._kernels import _spline as kernel
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import SplineCalibration, StructuredMatrixScaling

KNOTS = np.linspace(-2.7, 2.7, 7)
GOLDEN = {  # penalty: values at the knots, log loss, degrees of freedom, leave-one-out
    # solved with 40 digits in the coordinates of the values
    1e6: (
        [
            -1.77356827,
            -1.09884009,
            -0.42411211,
            0.25061554,
            0.92534301,
            1.60007057,
            2.27479814,
        ],
        107.38630847007,
        2.000014991,
        0.54702048,
    ),
    1.0: (
        [
            -1.84966889,
            -1.09234853,
            -0.37564371,
            0.26734896,
            0.87779695,
            1.59231466,
            2.29375522,
        ],
        107.3192122124,
        4.094532589,
        0.5582482678,
    ),
    0.01: (
        [
            -1.87628704,
            -1.08095581,
            -0.38635308,
            0.3431124,
            0.73433651,
            1.72410546,
            2.23055599,
        ],
        107.2099298682,
        6.7947799,
        0.5731859719,
    ),
}


def fixed_labels():
    y, proba = golden_set()
    return logit(proba), y


def bent(n, seed=0):
    rng = np.random.default_rng(seed)
    x = 2 * rng.normal(size=n)
    truth = expit(0.8 * x + np.sin(x))
    return expit(x), (rng.random(n) < truth).astype(int), truth


@pytest.mark.parametrize("penalty", GOLDEN)
def test_golden_fit(penalty):
    x, y = fixed_labels()
    cells = kernel.make_spline_cells(x, y, np.ones(200))
    fit = kernel.fit_spline(cells, KNOTS, identity_ridge=0.0, penalties=[penalty])
    values, loss, edf, loo = GOLDEN[penalty]
    assert np.abs(fit.curve.values - values).max() < 1e-8
    assert abs(fit.loss - loss) < 1e-8
    assert abs(fit.edf - edf) < 1e-7
    assert abs(fit.leave_one_out_loss - loo) < 1e-8


@pytest.mark.parametrize(
    "knots", [KNOTS, np.array([-5.0, -1.0, -0.9, 0.3, 4.0]), np.arange(3.0)]
)
def test_basis_is_natural_and_penalties_are_the_roughness(knots):
    basis = kernel.make_natural_basis(knots)
    grid = np.linspace(knots[0], knots[-1], 997)
    rough = [CubicSpline(knots, column, bc_type="natural") for column in basis.values.T]
    for column, spline in zip(basis(grid).T, rough, strict=True):
        assert np.abs(column - spline(grid)).max() < 1e-12 * np.abs(column).max()
    for i, first in enumerate(rough):
        for j, second in enumerate(rough[: i + 1]):
            size = sum(
                quad(
                    lambda x, f, g: float(f(x, 2) * g(x, 2)),
                    *piece,
                    args=(first, second),
                )[0]
                for piece in pairwise(knots)
            )
            assert abs(size - (i == j >= 2)) < 1e-9
    outside = np.array([knots[0] - 2.0, knots[0] - 1, knots[0]])
    assert np.abs(np.diff(basis(outside), n=2, axis=0)).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_near_exact_deletion(weighted):
    x, y = fixed_labels()
    w = np.random.default_rng(0).exponential(size=200) if weighted else np.ones(200)
    for penalty, tolerance in ((kernel.LINE_PENALTY, 1e-3), (1.0, 2e-3), (0.01, 4e-3)):
        cells = kernel.make_spline_cells(x, y, w)
        fit = kernel.fit_spline(cells, KNOTS, penalties=[penalty])
        deleted = np.empty(200)
        for i in range(200):
            kept = np.arange(200) != i
            part = kernel.make_spline_cells(x[kept], y[kept], w[kept])
            curve = kernel.fit_spline(part, KNOTS, penalties=[penalty]).curve
            deleted[i] = np.logaddexp(0, (1 - 2 * y[i]) * curve(x[i : i + 1])[0])
        assert abs(fit.leave_one_out_loss - w @ deleted / w.sum()) < (
            2 * tolerance if weighted else tolerance
        )


def test_line_is_the_limit_of_large_penalties():
    x, y = fixed_labels()
    cells = kernel.make_spline_cells(x, y, np.ones(200))
    line = kernel.fit_spline(cells, KNOTS, penalties=[kernel.LINE_PENALTY])
    near = kernel.fit_spline(cells, KNOTS, penalties=[1e12])
    assert np.abs(line.curve.values - near.curve.values).max() < 1e-9
    assert abs(line.leave_one_out_loss - near.leave_one_out_loss) < 1e-9


@pytest.mark.slow
def test_cells_and_the_coarse_choice_change_little():
    p, y, _ = bent(30_000)
    x = logit(p)
    fine = kernel.make_spline_cells(x, y, np.ones(len(x)))
    knots = kernel.choose_knots(fine.x, fine.mass.sum(axis=0), 20)
    exact = expit(kernel.fit_spline(fine, knots).curve(x))
    for most in (2000, 400):
        cells = kernel.coarsen_cells(fine, most)
        assert len(cells.x) == most
        assert abs(cells.mass.sum() - len(x)) < 1e-6
        assert abs(cells.x @ cells.mass.sum(axis=0) - x.sum()) < 1e-6
        moved = expit(kernel.fit_spline(cells, knots).curve(x))
        assert np.abs(moved - exact).mean() < 1e-4


def test_bent_truth_is_found():
    p, y, truth = bent(20_000)
    spline = SplineCalibration().fit(p, y)
    assert np.abs(spline.predict_proba(p)[:, 1] - truth).mean() < 0.01
    assert 4 < spline.edf_ < 16
    assert np.isfinite(spline.penalty_)
    straight, labels, _ = bent(300)
    rng = np.random.default_rng(1)
    labels = (rng.random(300) < expit(0.5 * logit(straight) + 0.3)).astype(int)
    assert SplineCalibration().fit(straight, labels).edf_ < 4


def test_prior_holds_the_score_where_rows_are_few():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.02, 0.98, 30)
    y = (rng.random(30) < 0.5).astype(int)
    distance = [
        np.abs(SplineCalibration(prior=w).fit(p, y).predict_proba(p)[:, 1] - p).mean()
        for w in (0, 20, 1e6)
    ]
    assert distance[0] > 1.4 * distance[1]
    assert distance[2] < 1e-3


@pytest.mark.slow
def test_rising_curve():
    """A fit that falls is made to rise, one that rises hardly moves, and between knots it rises."""
    rng = np.random.default_rng(3)
    fell = 0
    for n in (40, 200, 2000):
        for _ in range(5):
            p = rng.beta(0.5, 0.5, n)
            y = (rng.random(n) < np.clip(p + 0.3 * np.sin(9 * p), 0, 1)).astype(int)
            grid = canonical_proba(np.linspace(-12, 12, 5001), kind="logits")
            free = SplineCalibration(monotone=False).fit(p, y).predict_proba(grid)[:, 1]
            held = SplineCalibration().fit(p, y).predict_proba(grid)[:, 1]
            assert np.diff(held).min() >= -1e-15
            fell += np.diff(free).min() < -1e-6
    assert fell >= 3
    x, y = fixed_labels()
    cells = kernel.make_spline_cells(x, y, np.ones(200))
    curve = kernel.fit_spline(cells, KNOTS, penalties=[1.0]).curve
    again = kernel.make_increasing(curve, cells, isotonic_regression)
    assert np.abs(again.values - curve.values).max() < 1e-12
    assert np.abs(again.slopes - curve.slopes).max() < 1e-12


def test_no_extrapolation():
    p, y, _ = bent(500)
    spline = SplineCalibration().fit(p, y)
    ends = spline.predict_proba([p.min(), p.max()])
    assert np.array_equal(
        spline.predict_proba([p.min() / 100, 1 - (1 - p.max()) / 100]), ends
    )
    assert np.allclose(spline.domain_, logit([p.min(), p.max()]))


@pytest.mark.parametrize("distinct", [1, 2, 3, 5])
def test_few_distinct_scores(distinct):
    p = np.tile(np.linspace(0.3, 0.7, distinct), 200)
    y = (np.random.default_rng(4).random(len(p)) < p**2).astype(int)
    with pytest.warns(UserWarning) if distinct == 1 else nullcontext():
        spline = SplineCalibration(prior=0).fit(p, y)
    for score in np.unique(p):
        rate = y[p == score].mean()
        assert abs(spline.predict_proba([score])[0, 1] - rate) < 0.05
    if distinct <= 2:
        assert spline.penalty_ == np.inf


def test_rounding_noise_does_not_split_ties():
    """A model gives equal rows another last digit alone than in a batch."""
    rng = np.random.default_rng(6)
    p = np.repeat(rng.random(9), 3)
    y = (rng.random(27) < p).astype(int)
    noisy = p * (1 + 3e-16 * rng.integers(-2, 3, 27))
    curves = [SplineCalibration().fit(one, y) for one in (p, noisy)]
    assert np.abs(curves[0].knots_ - curves[1].knots_).max() < 1e-9
    assert np.abs(curves[0].predict_proba(p) - curves[1].predict_proba(p)).max() < 1e-9


def test_heavy_and_light_weights():
    p, y, _ = bent(1000)
    for scale in (1e-9, 1e-3, 1e6, 1e12):
        proba = (
            SplineCalibration()
            .fit(p, y, sample_weight=scale * (1 + p))
            .predict_proba(p)
        )
        assert np.isfinite(proba).all()
    light = SplineCalibration().fit(p, y, sample_weight=np.full(1000, 1e-9))
    # the prior alone is left
    assert np.abs(light.predict_proba(p)[:, 1] - p).max() < 1e-3


def test_chain_of_matrix_and_spline_for_several_classes():
    """The documented pipeline beats both of its parts where the scores are bent and confused."""
    rng = np.random.default_rng(5)
    z = 2 * rng.normal(size=(12_000, 4))
    mixed = (
        0.9
        * np.sinh(0.7 * z)
        @ np.array([[1.0, 0.4, 0, 0], [0, 1, 0.4, 0], [0, 0, 1, 0.4], [0.4, 0, 0, 1]])
    )
    truth = np.exp(mixed - mixed.max(axis=1, keepdims=True))
    truth /= truth.sum(axis=1, keepdims=True)
    y = (rng.random(len(z))[:, None] > np.cumsum(truth, axis=1)).sum(axis=1)
    proba = np.asarray(canonical_proba(z, kind="logits"))
    found = {}
    for name, method in {
        "spline": SplineCalibration(),
        "matrix": StructuredMatrixScaling(),
        "chain": make_pipeline(StructuredMatrixScaling(), SplineCalibration()),
    }.items():
        fitted = method.fit(proba[:6000], y[:6000])
        found[name] = log_loss(y[6000:], fitted.predict_proba(proba[6000:]))
    assert found["chain"] < min(found["spline"], found["matrix"])


def test_one_against_the_rest():
    proba, y = make_overconfident(3, 400)
    several = SplineCalibration().fit(proba, y)
    alone = SplineCalibration().fit(proba[:, 1], (y == 1).astype(int))
    assert np.allclose(several.one_vs_rest_[1].values_, alone.values_, atol=1e-8)


@pytest.mark.parametrize("digits", [1, 2])
def test_swapping_the_classes_with_rounded_scores(digits):
    """Scores on points of the prior: one row of the design, in neither order."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p = rng.beta(1, 2, 200).round(digits)
        y = (rng.random(200) < p**0.7).astype(int)
        proba = np.column_stack([(1 - p).round(digits), p])
        found = SplineCalibration().fit(proba, y).predict_proba(proba)
        swapped = (
            SplineCalibration().fit(proba[:, ::-1], 1 - y).predict_proba(proba[:, ::-1])
        )
        assert np.abs(found - swapped[:, ::-1]).max() < 1e-10, seed


def test_one_cell_of_several_weighs_what_they_weigh():
    """Pooled: the mean score and the mean unit of the rows, by their weights."""
    rng = np.random.default_rng(0)
    score, codes, weight = (
        rng.normal(size=900),
        rng.integers(0, 2, 900),
        rng.gamma(0.3, 5, 900),
    )
    cells = kernel.make_spline_cells(score, codes, weight)
    few = kernel.coarsen_cells(cells, 30)
    assert 20 <= len(few.x) <= 30
    assert few.mass.sum() == pytest.approx(weight.sum())
    assert few.x @ few.mass.sum(axis=0) == pytest.approx(weight @ score)
    assert (few.unit_weight * few.mass).sum() == pytest.approx((weight**2).sum())
    order = np.argsort(score)
    rows = order[np.cumsum(weight[order]) <= few.mass[:, 0].sum() * (1 + 1e-9)]
    assert few.x[0] == pytest.approx(np.average(score[rows], weights=weight[rows]))
    for c in (0, 1):
        of_class = rows[codes[rows] == c]
        expected = (weight[of_class] ** 2).sum() / weight[of_class].sum()
        assert few.unit_weight[c, 0] == pytest.approx(expected)


def test_weights_do_not_bend_the_curve():
    """Weights that say nothing cost some rows, and no degrees of freedom come from them."""
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    y = (rng.random(3000) < p).astype(int)
    plain = SplineCalibration().fit(p, y)
    weighted = SplineCalibration().fit(p, y, sample_weight=rng.gamma(0.5, 40.0, 3000))
    assert plain.edf_ < 4 and weighted.edf_ < 6
