import numpy as np
import pytest
from error_fields import raises_invalid_input

from sklearn_calib import canonical_proba
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decomposition import (
    RefinementCurve,
    decompose_loss,
    refinement_curve,
    refinement_error,
)


@pytest.fixture
def staged():
    proba, y = make_overconfident(3, 600)
    logits = np.log(proba)
    rng = np.random.default_rng(5)
    noise = rng.normal(size=logits.shape)
    return [
        canonical_proba(logits * s + noise * t, kind="logits") for s, t in STAGES
    ], y


STAGES = [(0.3, 2.0), (0.6, 1.0), (1.0, 0.4), (1.0, 0.05), (2.0, 0.1), (5.0, 1.0)]


@pytest.mark.parametrize("loss", ["log", "brier"])
@pytest.mark.parametrize("recalibrator, cv", [("temperature", None), ("isotonic", 5)])
def test_each_stage_is_decomposed(staged, loss, recalibrator, cv):
    proba, y = staged
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    options = {
        "loss": loss,
        "recalibrator": recalibrator,
        "cv": cv,
        "sample_weight": weight,
    }
    curve = refinement_curve(y, iter(proba), **options)
    assert curve.stage.tolist() == [1, 2, 3, 4, 5, 6]
    for i, p in enumerate(proba):
        parts = decompose_loss(y, p, **options)
        assert curve.risk[i] == pytest.approx(parts.risk, abs=1e-12)
        assert curve.refinement[i] == pytest.approx(parts.refinement, abs=1e-7)
        assert curve.calibration[i] == pytest.approx(
            curve.risk[i] - curve.refinement[i]
        )
    if recalibrator == "temperature" and loss == "log":
        smooth = [
            refinement_error(y, p, label_smoothing=True, sample_weight=weight)
            for p in proba
        ]
        np.testing.assert_allclose(curve.criterion, smooth, atol=1e-7)
    else:
        assert np.abs(curve.criterion - curve.refinement).max() < 2e-3
    assert curve.standard_error[curve.best()] == 0


@pytest.mark.slow
def test_paired_standard_errors_and_the_earliest_stage(staged):
    proba, y = staged
    curve = refinement_curve(y, proba, stages=[2, 4, 6, 8, 10, 12], unit="epochs")
    best = curve.best()
    assert curve.stage[best] == [2, 4, 6, 8, 10, 12][np.argmin(curve.criterion)]

    def row_losses(i):
        smooth = 1 / (len(y) + 1)
        log = np.log(np.asarray(proba[i]))
        grid = np.exp(np.linspace(-4, 2, 4001))
        m = (log.mean(axis=1) - log[np.arange(len(y)), y]).mean()
        values = [
            np.log(np.exp(b * log).sum(axis=1)).mean()
            - b * log[np.arange(len(y)), y].mean()
            - b * smooth * m
            for b in grid
        ]
        b = grid[np.argmin(values)]
        return np.log(np.exp(b * log).sum(axis=1)) - b * log[np.arange(len(y)), y]

    other = 2 if best != 2 else 3
    difference = row_losses(other) - row_losses(best)
    assert curve.standard_error[other] == pytest.approx(
        difference.std() / np.sqrt(len(y)), rel=0.01
    )
    assert curve.standard_error[other] > 1e-3
    early = curve.best("one_standard_error")
    close = curve.criterion <= curve.criterion[best] + curve.standard_error
    assert early == np.flatnonzero(close)[0] <= best
    assert curve.unit == "epochs"
    with raises_invalid_input(
        ValueError, expected="rule among minimum, one_standard_error"
    ):
        curve.best("median")


def test_the_earliest_stage_within_one_standard_error():
    """The first of those that are close, not a later one that is close as well."""
    criterion = np.array([0.50, 0.43, 0.42, 0.40, 0.41])
    curve = RefinementCurve(
        stage=np.arange(1, 6),
        risk=criterion,
        refinement=criterion,
        calibration=np.zeros(5),
        criterion=criterion,
        standard_error=np.array([0.05, 0.02, 0.03, 0.0, 0.02]),
        loss="log",
    )
    assert curve.best() == 3
    assert curve.best("one_standard_error") == 2


def test_no_ties_where_every_label_is_the_arg_max():
    y = np.array([0, 1, 2] * 20)
    sure = np.eye(3)[y] * 6.0
    rng = np.random.default_rng(0)
    noisy = sure + rng.normal(size=sure.shape)
    curve = refinement_curve(y, [noisy, sure], kind="logits")
    assert curve.refinement.max() < 1e-6
    assert curve.best() == 1
    assert curve.criterion[0] > curve.criterion[1] + 1e-4


@pytest.mark.slow
def test_standard_errors_from_a_sample_of_the_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60_000)
    margin = (2 * y - 1) + rng.normal(size=(2, len(y)))
    from sklearn_calib.decomposition import _curve

    full = refinement_curve(y, margin, kind="logits")
    step = -(-len(y) // _curve._MAX_STANDARD_ERROR_ROWS)
    assert step == 3
    whole, _curve._MAX_STANDARD_ERROR_ROWS = _curve._MAX_STANDARD_ERROR_ROWS, 10**6
    try:
        exact = refinement_curve(y, margin, kind="logits")
    finally:
        _curve._MAX_STANDARD_ERROR_ROWS = whole
    np.testing.assert_allclose(full.standard_error, exact.standard_error, rtol=0.02)


def test_bad_input(staged):
    proba, y = staged
    with raises_invalid_input(
        ValueError, expected="at least one stage", value="0 arrays"
    ):
        refinement_curve(y, [])
    with raises_invalid_input(
        ValueError, expected="2 stages, as in stages=", value="6 arrays"
    ):
        refinement_curve(y, proba, stages=[1, 2])
    with raises_invalid_input(ValueError):
        refinement_curve(y, [proba[0], proba[1][:10]])
    with raises_invalid_input(ValueError, expected="3 columns"):
        refinement_curve(y, [proba[0], np.full((len(y), 2), 0.5)])
