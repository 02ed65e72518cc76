"""Checks of a proper loss's contract."""

import pickle
from copy import deepcopy

import numpy as np

from .._simplex_array import apply_softmax_or_sigmoid, log_proba
from .._typing import FloatArray
from .._validation import canonical_proba
from ..datasets import make_overconfident
from ..decomposition import decompose_loss, refinement_error
from ..metrics import Predictions, get_loss
from ._contract import assert_refused


def make_rows(k: int) -> tuple[FloatArray, FloatArray]:
    """Return predictions in the middle, near the edges, undecided and certain, and truths."""
    rng = np.random.default_rng(0)
    even = np.full(k, 1 / k)
    inner = [rng.dirichlet(np.full(k, a), 12) for a in (5.0, 1.0, 0.2)]
    proba = np.asarray(canonical_proba(np.vstack([*inner, even, np.eye(k)])))
    return proba, np.vstack([np.random.default_rng(1).dirichlet(np.ones(k), 40), even])


def _check_loss_names(loss, k, *_):
    """Check the words and numbers that are shown."""
    assert isinstance(loss.name, str) and loss.name.isidentifier(), "a name in one word"
    assert loss.title and loss.title in loss.label, "the label of an axis has the title"
    assert loss.range[0] < loss.range[1], (
        "a range from the smallest value to the largest"
    )


def _check_label_losses(loss, k, proba, truths):
    """Check finite losses for each label.

    Rows alone, in a table and with logarithms agree.
    """
    before = proba.copy()
    losses = loss.compute_label_losses(proba)
    assert losses.shape == proba.shape, f"shape {losses.shape} for {proba.shape}"
    assert losses.dtype == np.float64 and np.isfinite(losses).all(), "a finite float64"
    assert np.array_equal(proba, before), "the probabilities were changed"
    alone = np.vstack([loss.compute_label_losses(row[None]) for row in proba])
    assert np.allclose(losses, alone, rtol=1e-12, atol=1e-12), "a row alone differs"
    inner = proba[(proba > 1e-12).all(axis=1)]
    deep = apply_softmax_or_sigmoid(np.log(inner))
    assert np.allclose(
        loss.compute_label_losses(inner),
        loss.compute_label_losses(deep),
        rtol=1e-9,
        atol=1e-9,
    )


def _check_row_losses(loss, k, proba, truths):
    """Check that losses of rows, logits and means agree with `compute_label_losses`."""
    codes = np.arange(len(proba)) % k
    expected = loss.compute_label_losses(proba)[np.arange(len(proba)), codes]
    assert np.allclose(
        loss.compute_row_losses(proba, codes), expected, rtol=1e-9, atol=1e-12
    ), "compute_row_losses"
    logits = 3 * np.random.default_rng(2).normal(size=proba.shape)
    soft = loss.compute_row_losses(apply_softmax_or_sigmoid(logits), codes)
    assert np.allclose(
        loss.compute_logit_losses(logits, codes), soft, rtol=1e-9, atol=1e-12
    ), "compute_logit_losses"
    weight = np.random.default_rng(3).random(len(codes))
    mean = loss.mean(Predictions(proba, codes, weight, np.arange(k)))
    assert abs(mean - weight @ expected / weight.sum()) < 1e-9 * (1 + abs(mean)), "mean"


def _check_loss_range(loss, k, proba, truths):
    """Check that values are inside the range, whose lower end is that of certain, right rows."""
    losses = loss.compute_label_losses(proba)
    low, high = loss.range
    assert losses.min() >= low - 1e-12, f"{losses.min()} below {low}"
    assert losses.max() <= high * (1 + 1e-12) + 1e-12, f"{losses.max()} above {high}"
    right = np.diag(loss.compute_label_losses(np.eye(k)))
    assert np.abs(right - low).max() < 1e-9, (
        f"{right} for certain and right predictions"
    )


def _check_properness(loss, k, proba, truths):
    """Check that the truth has the smallest expected loss.

    If strict, the only smallest one.
    """
    rng = np.random.default_rng(4)
    for truth in truths:
        candidates = [
            *rng.dirichlet(np.ones(k), 20),
            *(0.9 * truth + 0.1 * np.eye(k)),
            *truths,
        ]
        proba = np.array(candidates)
        excess = (
            loss.compute_label_losses(proba) @ truth
            - loss.compute_label_losses(truth[None]) @ truth
        )
        text = f"{np.round(proba[excess.argmin()], 3)} against the truth {np.round(truth, 3)}"
        assert excess.min() >= -1e-12, f"smaller: {text}"
        far = excess[np.abs(proba - truth).max(axis=1) > 0.2]
        assert not loss.strict or far.min() > 1e-12, (
            f"equal, far from the truth {truth.round(3)}"
        )


def _check_divergence(loss, k, proba, truths):
    """Check that divergences are at least 0, and 0 from a prediction to itself."""
    proba = np.roll(truths, 1, axis=0)
    assert loss.divergence(proba, truths).min() >= -1e-12
    assert np.abs(loss.divergence(truths, truths)).max() < 1e-12, (
        "not 0 on the diagonal"
    )
    gap = np.einsum(
        "ij,ij->i",
        truths,
        loss.compute_label_losses(proba) - loss.compute_label_losses(truths),
    )
    assert np.allclose(loss.divergence(proba, truths), gap, rtol=1e-9, atol=1e-12)


def _check_slope(loss, k, proba, truths):
    """Check the slope against central differences; its expectation at the row is 0."""
    rng = np.random.default_rng(5)
    step = 1e-5
    proba = truths[(truths > 1e-3).all(axis=1)]
    rate = rng.normal(size=proba.shape)
    rate -= np.einsum("ij,ij->i", proba, rate)[:, None]
    slope = loss.slope(proba, rate)
    ahead, behind = (
        loss.compute_label_losses(
            apply_softmax_or_sigmoid(log_proba(proba) + side * rate)
        )
        for side in (step, -step)
    )
    expected = (ahead - behind) / (2 * step)
    gap = np.abs(slope - expected).max() / (1 + np.abs(expected).max())
    assert gap < 1e-6, f"{gap:.2g} from the differences of compute_label_losses"
    drift = np.abs(np.einsum("ij,ij->i", proba, slope)).max() / (
        1 + np.abs(slope).max()
    )
    assert drift < 1e-6, "its expectation at the truth is not 0"


def _check_undecided(loss, k, *_):
    """Check that all labels cost the same at the undecided prediction."""
    even = loss.get_undecided_prediction(k)
    assert even.shape == (k,) and abs(even.sum() - 1) < 1e-9 and (even > 0).all()
    losses = loss.compute_label_losses(even[None])[0]
    assert np.ptp(losses) < 1e-6 * (1 + np.abs(losses).max()), (
        f"{losses}: override undecided"
    )


def _check_likelihood(loss, k, proba, truths):
    """Check that a loss with `is_likelihood` is the log loss."""
    if loss.is_likelihood:
        assert np.allclose(loss.compute_label_losses(truths), -np.log(truths)), (
            "not the log loss"
        )


def _check_without_floor(loss, k, proba, truths):
    """Check that the loss is the same if no probability is near 0."""
    assert np.allclose(
        loss.without_floor().compute_label_losses(truths),
        loss.compute_label_losses(truths),
        atol=1e-12,
    )


def _check_class_count(loss, k, *_):
    """Check that another number of classes than the loss declares raises an error."""
    if loss.n_classes is None:
        return
    proba, y = make_overconfident(k + 1, 60)
    assert_refused(lambda: get_loss(loss, k + 1), f"{k} classes")
    assert_refused(lambda: decompose_loss(y, proba, loss=loss), f"{k} classes")


def _check_copies(loss, k, proba, truths):
    """Check copies: estimators are cloned and sent to other processes with their loss."""
    for copy in (deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert type(copy) is type(loss)
        assert np.array_equal(
            copy.compute_label_losses(proba), loss.compute_label_losses(proba)
        )


def _check_decomposition(loss, k, *_):
    """Check that the terms add up, agree with `refinement_error`, and have finite intervals."""
    proba, y = make_overconfident(k, 300)
    parts = decompose_loss(y, proba, loss=loss)
    assert (
        abs(parts.risk - loss.mean(Predictions(proba, y, np.ones(300), np.arange(k))))
        < 1e-9
    )
    assert abs(parts.refinement - refinement_error(y, proba, loss=loss)) < 1e-9
    for term in ("risk", "calibration", "refinement", "sharpness", "uncertainty"):
        ends = parts.interval(term)
        assert ends is not None and np.isfinite(ends).all(), (
            f"interval of {term}: {ends}"
        )
