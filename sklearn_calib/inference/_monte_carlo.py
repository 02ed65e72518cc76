"""Exact tests of calibration: labels are drawn from the predictions themselves."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from ..exceptions import refuse
from ..metrics import all_metrics
from ..metrics._base import canonical_case

_BATCH = 37  # replicates a task; the draws do not depend on the number of tasks


@dataclass(frozen=True)
class CalibrationTestResult:
    """What a Monte Carlo test found.

    Attributes
    ----------
    statistic : float
    pvalue : float
        (1 + the number of replicates at least as large) / (1 + n_resamples).
    null_distribution : ndarray of shape (n_resamples,)
        The statistic on labels drawn from the predictions.
    name : str
    """

    statistic: float
    pvalue: float
    null_distribution: np.ndarray
    name: str = "statistic"


def calibration_test(
    y_true,
    y_proba,
    *,
    statistic="smooth",
    n_resamples=999,
    n_jobs=None,
    random_state=None,
    sample_weight=None,
    labels=None,
    progress=None,
    **options,
):
    """Test whether predictions are perfectly calibrated: an exact p-value from any measure.

    If they are, each label is a draw from its prediction, so the distribution of any statistic can
    be simulated from the predictions alone.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, columns in the order of the sorted labels.
    statistic : str or callable, default="smooth"
        "smooth" for `smooth_calibration_error`, the name of another measure (see `all_metrics`), or
        a callable (y_true, y_proba) -> float that is larger for worse calibration, with labels as
        given and probabilities of shape (n_samples, n_classes).
    n_resamples : int, default=999
        The smallest possible p-value is 1 / (1 + n_resamples).
    n_jobs : int, default=None
        Threads, as in joblib. The result does not depend on it.
    random_state : int or None, default=None
    sample_weight : array-like of shape (n_samples,), default=None
        Passed to a measure. Each row is one draw, whatever its weight: repeat rows for counts.
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    progress : callable, default=None
        Called with (done, total) after every batch of replicates.
    **options
        Options of the measure, such as ``multiclass="classwise"``.

    Returns
    -------
    result : CalibrationTestResult

    Raises
    ------
    ValueError
        An unknown measure, fewer than one resample, or input that the door refuses.

    Notes
    -----
    The test is exact at any n: under the null hypothesis the p-value is at most alpha with
    probability at most alpha. A small p-value says that the predictions are off, the statistic how
    far; with many rows negligible errors are significant. For two classes and "smooth" nothing is
    sorted again between replicates but the partial sums. Cost: n_resamples times the measure's;
    about 1 s for "smooth" with n = 10,000 and 999 replicates.

    References
    ----------
    Hu, Jambulapati, Tian, Yang (2024), section 1, for testing; Vaicenavicius et al. (2019),
    "Evaluating model calibration in classification", section 4, for resampling under consistency.

    Examples
    --------
    >>> from sklearn_calib.inference import calibration_test
    >>> from sklearn_calib.testing import make_scores
    >>> proba, y = make_scores(2, 500)
    >>> calibration_test(y, proba, random_state=0).pvalue  # overconfident
    0.001
    """
    where = "calibration_test"
    if isinstance(n_resamples, bool) or not n_resamples >= 1:
        refuse(where, "n_resamples >= 1", repr(n_resamples), "Pass 999 for p-values down to 0.001")
    case = canonical_case(where, y_true, y_proba, sample_weight, labels)
    evaluate, name = _evaluation(case, statistic, options, where)
    observed = evaluate(case.codes)
    null = null_distribution(case, evaluate, n_resamples, n_jobs, random_state, progress)
    # rounding must not make an equal replicate smaller
    extreme = np.count_nonzero(null >= observed - 1e-12 * max(1.0, abs(observed)))
    return CalibrationTestResult(
        statistic=float(observed),
        pvalue=float((1 + extreme) / (1 + n_resamples)),
        null_distribution=null,
        name=name,
    )


def null_distribution(case, evaluate, n_resamples, n_jobs, random_state, progress=None, law=None):
    """The statistic on labels drawn from the predictions, or from another law."""
    bounds = np.cumsum(np.asarray(case.proba if law is None else law), axis=1)
    bounds /= bounds[:, -1:]
    sizes = [min(_BATCH, n_resamples - done) for done in range(0, n_resamples, _BATCH)]
    seeds = np.random.SeedSequence(random_state).spawn(len(sizes))
    found, done = [], 0
    batches = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(_batch)(evaluate, bounds, size, seed)
        for size, seed in zip(sizes, seeds, strict=True)
    )
    for batch in batches:
        found.append(batch)
        done += len(batch)
        if progress is not None:
            progress(done, n_resamples)
    return np.concatenate(found)


def _batch(evaluate, bounds, size, seed):
    rng = np.random.default_rng(seed)
    out = np.empty(size)
    for i in range(size):
        u = rng.random(len(bounds))
        if bounds.shape[1] == 2:
            codes = (u >= bounds[:, 0]).astype(np.intp)
        else:
            codes = (u[:, None] >= bounds[:, :-1]).sum(axis=1)
        out[i] = evaluate(codes)
    return out


def _evaluation(case, statistic, options, where):
    """A function of label codes, and its name."""
    if callable(statistic):
        function, name = statistic, getattr(statistic, "__name__", "statistic")
        if not hasattr(statistic, "spec"):
            call = partial(statistic, **options) if options else statistic
            return lambda codes: float(call(case.classes[codes], np.asarray(case.proba))), name
    else:
        name = "smooth_calibration_error" if statistic == "smooth" else statistic
        function = all_metrics().get(name)
        if function is None:
            refuse(
                where,
                f"a statistic among smooth, {', '.join(all_metrics())}, or a callable",
                repr(statistic),
                "Check the spelling",
            )
    if name == "smooth_calibration_error" and len(case.classes) == 2 and not options:
        return _smooth(case), name
    known = {"labels": np.arange(len(case.classes)), "sample_weight": case.weight, **options}
    sign = -1.0 if function.spec.greater_is_better else 1.0
    return lambda codes: sign * function(codes, case.proba, **known), name


def _smooth(case):
    """The smooth calibration error of two classes; the scores are sorted once."""
    from .._kernels._smooth_calibration import smooth_of_sorted

    score = np.asarray(case.proba)[:, 1]
    order = np.argsort(score)
    v, weight = score[order], (case.weight / case.weight.sum())[order]

    def evaluate(codes):
        return smooth_of_sorted(v, (codes[order] - v) * weight)

    return evaluate
