"""Distributions of a statistic: on labels drawn from predictions, and on resampled rows."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from .._random import draw_labels, drawn_clusters, label_bounds, multiplicities, spawned
from .._typing import FloatArray, IntArray, Progress, RandomStateLike
from ..exceptions import called, check_jobs, check_progress

if TYPE_CHECKING:
    from ..metrics import Case

_BATCH = 37  # replicates per task; the draws do not depend on the number of tasks


def null_distribution(
    case: "Case",
    evaluate: "Callable[[Case], Any]",
    n_resamples: int,
    random_state: RandomStateLike = 0,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    law: FloatArray | None = None,
) -> FloatArray:
    """The values of a statistic of a `Case` on labels that are drawn from the predictions.

    Parameters
    ----------
    case : Case
    evaluate : callable
        Takes a `Case`; returns a float, or an array of several.
    n_resamples : int
    random_state : int, Generator, RandomState or None, default=0
    n_jobs : int, default=None
        Threads, as in joblib. The result does not depend on it.
    progress : callable, default=None
        Called with (done, total) after every batch.
    law : ndarray of shape (n_samples, n_classes), default=None
        Instead of the predictions.

    Returns
    -------
    values : ndarray of shape (n_resamples, ...)
    """
    bounds = label_bounds(case.proba if law is None else law)

    def draw(rng):
        return case.with_labels(draw_labels(bounds, rng))

    given = n_resamples, random_state
    return distribution_of_draws(draw, evaluate, *given, n_jobs=n_jobs, progress=progress)


def bootstrap_distribution(
    case: "Case",
    evaluate: "Callable[[Case], Any]",
    n_resamples: int,
    random_state: RandomStateLike = 0,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    groups: IntArray | None = None,
) -> FloatArray:
    """Bootstrap: the values of a statistic of a `Case` on rows drawn with replacement.

    The arguments are those of `null_distribution`, and `groups`: the cluster of each row, numbered
    from 0. With it, whole clusters are drawn, one fewer than there are.
    """
    n_groups = 0 if groups is None else int(groups.max()) + 1

    def draw(rng):
        if groups is not None:
            return case.with_weight(case.weight * drawn_clusters(n_groups, rng)[groups])
        return case.with_weight(case.weight * multiplicities(len(case.codes), rng))

    given = n_resamples, random_state
    return distribution_of_draws(draw, evaluate, *given, n_jobs=n_jobs, progress=progress)


def distribution_of_draws(
    draw: "Callable[[np.random.Generator], Case]",
    evaluate: "Callable[[Case], Any]",
    n_resamples: int,
    random_state: RandomStateLike = 0,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """The values of a statistic on many random draws, computed in parallel.

    Parameters
    ----------
    draw : callable
        Takes a Generator, returns a `Case`.
    evaluate, n_resamples, random_state, n_jobs, progress
        As in `null_distribution`.

    Returns
    -------
    values : ndarray of shape (n_resamples, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference import distribution_of_draws
    >>> from sklearn_calib.metrics import brier_loss, canonical_case
    >>> case = canonical_case("example", [0, 1, 1, 0], [0.2, 0.4, 0.9, 0.3])
    >>> def half(rng):
    ...     return case.take(rng.choice(4, 2, replace=False))
    >>> distribution_of_draws(half, brier_loss.of_case, 3).shape
    (3,)
    """

    def batch(size, rng):
        return np.array([evaluate(draw(rng)) for _ in range(size)])

    return values_of_batches(batch, n_resamples, random_state, n_jobs=n_jobs, progress=progress)


def values_of_batches(
    batch: Callable[[int, np.random.Generator], FloatArray],
    n_resamples: int,
    random_state: RandomStateLike = 0,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """As `distribution_of_draws`, of what takes a number of draws and returns their values."""
    check_jobs(n_jobs)
    check_progress(progress, called("progress"))
    sizes = [min(_BATCH, n_resamples - done) for done in range(0, n_resamples, _BATCH)]
    rngs = spawned(random_state, len(sizes))
    found, done = [], 0
    batches = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(batch)(size, rng) for size, rng in zip(sizes, rngs, strict=True)
    )
    for values in batches:
        found.append(values)
        done += len(values)
        if progress is not None:
            progress(done, n_resamples)
    return np.concatenate(found) if found else np.empty(0)
