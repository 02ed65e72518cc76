"""Predictions that are off, by how much is known."""

from typing import NamedTuple

import numpy as np

from .._argument_checks import check_between, is_real_number, validate_count
from .._random import make_generator, make_random_state
from .._typing import AnyArray, FloatArray, IntArray, RandomStateLike
from .._validation import canonical_proba
from ..exceptions import invalid_input


class ScoredData(NamedTuple):
    """Simulated labels and predictions, with the true probabilities."""

    y: AnyArray
    proba: FloatArray
    true_proba: FloatArray
    # The lower distance to calibration of the population; NaN if it is not known.
    distance: float


def make_uniform_shift(
    n_samples: int = 1000, epsilon: float = 0.01, *, random_state: RandomStateLike = 0
) -> ScoredData:
    """Simulate predictions that are all too low by `epsilon`.

    Parameters
    ----------
    n_samples : int, default=1000
    epsilon : float, default=0.01
        From 0 to 1.
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    data : ScoredData
        Named tuple (y, proba, true_proba, distance): predictions uniform on [0, 1 -
        epsilon], labels 1 with probability proba + epsilon; the distance to calibration
        is epsilon, the smooth calibration error too.

    Raises
    ------
    ValueError
        An epsilon out of range.

    References
    ----------
    Hu, Jambulapati, Tian, Yang (2024), section 6.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_uniform_shift
    >>> from sklearn_calib.metrics import lower_distance_to_calibration
    >>> data = make_uniform_shift(50_000, epsilon=0.1, random_state=0)
    >>> abs(lower_distance_to_calibration(data.y, data.proba) - data.distance) < 0.01
    True
    """
    n_samples = validate_count(n_samples, "n_samples")
    _check_number_from_zero(epsilon, 1, "0 <= epsilon <= 1")
    rng = make_random_state(random_state)
    proba = rng.uniform(0, 1 - epsilon, n_samples)
    truth = proba + epsilon
    y = (rng.uniform(size=n_samples) < truth).astype(int)
    return ScoredData(y, proba, truth, float(epsilon))


def make_sign_perturbed(
    n_samples: int = 1000,
    n_values: int = 20,
    strength: float = 0.1,
    *,
    random_state: RandomStateLike = 0,
) -> ScoredData:
    """Simulate predictions of a few values, each too low or too high by the same amount.

    The hard case for tests that look at each value by itself: the errors of neighbours
    cancel, so the distance to calibration is much smaller than the error at each value.

    Parameters
    ----------
    n_samples : int, default=1000
    n_values : int, default=20
        Equally spaced predictions in [1/3, 2/3], equally frequent.
    strength : float, default=0.1
        The error at each value, from 0 to 1/3; 0 gives calibrated predictions.
    random_state : int, Generator, RandomState or None, default=0
        For the signs and the draws.

    Returns
    -------
    data : ScoredData
        Named tuple (y, proba, true_proba, distance); the distance is 0 for strength 0,
        and NaN otherwise.

    Raises
    ------
    ValueError
        Parameters out of range.

    References
    ----------
    Hu, Jambulapati, Tian, Yang (2024), definition 8.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_sign_perturbed
    >>> from sklearn_calib.metrics import expected_calibration_error, smooth_calibration_error
    >>> data = make_sign_perturbed(20_000, random_state=0)
    >>> expected_calibration_error(data.y, data.proba, n_bins=20) > 0.09
    True
    >>> smooth_calibration_error(data.y, data.proba) < 0.03
    True
    """
    n_samples = validate_count(n_samples, "n_samples")
    n_values = validate_count(n_values, "n_values")
    _check_number_from_zero(strength, 1 / 3, "0 <= strength <= 1/3")
    rng = make_random_state(random_state)
    # Scores between 1/3 and 2/3, so that a strength of up to 1/3 stays in [0, 1].
    values = (1 + (np.arange(n_values) + 0.5) / n_values) / 3
    truth = values + strength * rng.choice([-1.0, 1.0], n_values)
    value_index = rng.randint(0, n_values, n_samples)
    y = (rng.uniform(size=n_samples) < truth[value_index]).astype(int)
    return ScoredData(
        y,
        values[value_index],
        truth[value_index],
        0.0 if strength == 0 else float("nan"),
    )


def _check_number_from_zero(value, highest, expected) -> None:
    if not is_real_number(value) or not 0 <= value <= highest:
        raise invalid_input(
            expected=expected, got=repr(value), hint="Choose a value in the range"
        )


def make_overconfident(
    n_classes: int,
    n_samples: int = 158,
    *,
    random_state: RandomStateLike = 0,
    sharpness: float = 2.5,
) -> tuple[FloatArray, IntArray]:
    """Simulate overconfident probabilities, and labels drawn from the true probabilities.

    Parameters
    ----------
    n_classes : int
    n_samples : int, default=158
    random_state : int, Generator, RandomState or None, default=0
    sharpness : float, default=2.5
        Factor on the true logits.

    Returns
    -------
    proba : ndarray of shape (n_samples, n_classes)
    y : ndarray of shape (n_samples,)
        Labels 0 .. n_classes - 1, each at least twice.

    Raises
    ------
    ValueError
        Fewer than two classes, fewer than two rows for each class, a sharpness that is
        not above 0.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> make_overconfident(3)[0].shape
    (158, 3)
    """
    n_classes = validate_count(n_classes, "n_classes", 2)
    n_samples = validate_count(n_samples, "n_samples", 2 * n_classes)
    check_between(
        "sharpness",
        sharpness,
        0,
        np.inf,
        expected="a sharpness above 0",
        hint="Leave the default",
    )
    rng = make_generator(random_state)
    logits = 1.5 * rng.normal(size=(n_samples, n_classes))
    true = np.asarray(canonical_proba(logits, kind="logits"))
    is_above = rng.random((n_samples, 1)) > true.cumsum(axis=1)
    # Rounding may leave the last sum below 1.
    y = is_above.sum(axis=1).clip(max=n_classes - 1)
    # Every class occurs at least twice, as the docstring promises.
    y[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)
    return np.array(canonical_proba(sharpness * logits, kind="logits")), y
