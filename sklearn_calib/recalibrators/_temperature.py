"""Temperature scaling."""

import builtins
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .. import maps
from .._atomic import replace_state_after_fitting_copy
from .._kernels._block_passes import (
    fit_temperature_passes_and_get_weight,
    run_temperature_pass,
)
from .._kernels._temperature import (
    fit_temperature,
    fit_temperature_to_accuracy,
    fit_temperature_with_absent_options,
)
from .._simplex_array import (
    compute_log_proba_or_minus_inf_if_absent,
    get_absent_option_mask,
)
from .._typing import ArrayLike, Self
from .._validation import (
    raise_if_single_column_class_unclear,
    read_device_scores,
    read_labels,
    read_proba,
)
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ._base import Capabilities, Recalibrator
from ._blocks import BlockScoreKind, ScoreBlocks

# Larger memory maps, and larger tensors on their device, are read in blocks of rows.
_MAX_MEMORY_MAP_ENTRIES = 10_000_000
_MAX_DEVICE_ENTRIES = 1_000_000


class TemperatureScaling(Recalibrator):
    """Divide the logits by one number, the temperature.

    The predicted class never changes. The best first choice for neural networks and
    boosted trees, for any number of classes, also with few calibration rows.

    Parameters
    ----------
    laplace : bool, default=False
        Mix the result with the uniform distribution, N/(N+1) softmax + 1/(N+1) uniform
        for N calibration rows (the sum of their weights): the log loss stays finite on
        rows that the calibration set would call impossible.
    warm_start : bool, default=False
        Start from the temperature of the previous fit: from epoch to epoch of a
        training this saves passes. The result is the same.
    criterion : {"log_loss", "expectation_consistency"}, default="log_loss"
        What the temperature is chosen by. "expectation_consistency": the mean of the
        largest probability is the accuracy. It depends only on how often the prediction
        is right, and not on the label of a wrong row: steadier if labels of hard rows
        are wrong, but not a proper loss.

    Attributes
    ----------
    temperature_ : float
        Above 1 the scores were overconfident, below 1 underconfident.
    inverse_temperature_ : float
        The coefficient beta = 1 / temperature that the fit finds.
    loss_ : float
        Mean log loss on the calibration set, in nats, before `laplace` (of the smoothed
        labels, if the warning below states that they were used and `criterion` is the
        log loss).
    n_samples_ : float
        Sum of the calibration weights.
    n_iter_ : int
        Passes over the data.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Warns
    -----
    CalibrationWarning
        The scores carry no information about the labels: the result is then uniform up
        to 1e-6. Or every calibration label has the largest score, and the best
        temperature is 0: with ``laplace=True`` it is used; otherwise, so that no
        probability becomes 0, the fit is repeated with labels smoothed by 1 / (N + 1).
        With "expectation_consistency" these are an accuracy of at most 1 / n_classes,
        and of 1.

    Notes
    -----
    Minimises the log loss, which is convex in the inverse temperature, by Halley's
    method with exact treatment of the two infinite cases. Cost: O(n k) per pass, 2 to 6
    passes. From probabilities, exact zeros count as ``floor_``; from logits nothing is
    lost. A memory map (``np.memmap``) of probabilities with more than 1e7 entries is
    read in blocks of rows, as by `fit_blocks`: no array of its size is made. The mean
    confidence rises with the inverse temperature, so "expectation_consistency" is one
    root, found by Brent's method in some 15 passes; blocks and warm starts are for the
    log loss only.

    Rows of which each has its own options (``canonical_proba(scores, absent="nan")``):
    the sum goes over those that are there, the others stay exactly 0, and "uniform"
    means evenly on those that are there. `predict_proba` wants such rows marked in the
    same way.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), "On calibration of modern neural networks",
    eq. 9. Berta, Holzmueller, Jordan, Bach (2025), "Rethinking early stopping: refine,
    then calibrate", for the smoothing. Clarte, Loureiro, Krzakala, Zdeborova (2023),
    "Expectation consistency for calibration of neural networks", for the other
    criterion.

    Examples
    --------
    >>> from sklearn_calib import canonical_proba
    >>> from sklearn_calib.recalibrators import TemperatureScaling
    >>> logits = [[2, 0], [0, 2], [0, 2], [2, 0], [0, 2]]
    >>> ts = TemperatureScaling().fit(canonical_proba(logits, kind="logits"), [0, 1, 1, 0, 0])
    >>> round(ts.temperature_, 3)
    1.443
    >>> ts.predict_proba(canonical_proba([[0, 2]], kind="logits")).round(3)
    array([[0.2, 0.8]])
    >>> ts.predict_proba([0.5])
    array([[0.5, 0.5]])
    """

    temperature_: float
    inverse_temperature_: float
    loss_: float
    n_samples_: float
    n_iter_: int

    capabilities = Capabilities(
        multiclass="native",
        monotone=True,
        continuous=True,
        needs_positive_proba=True,
        allows_absent_classes=True,
        array_api=True,
    )
    _parameter_constraints: ClassVar = {
        "laplace": ["boolean"],
        "warm_start": ["boolean"],
        "criterion": [StrOptions({"log_loss", "expectation_consistency"})],
    }

    def __init__(
        self,
        laplace: bool = False,
        *,
        warm_start: bool = False,
        criterion: Literal["log_loss", "expectation_consistency"] = "log_loss",
    ) -> None:
        self.laplace = laplace
        self.warm_start = warm_start
        self.criterion = criterion

    def _try_fit_before_validation_and_get_success(self, X, y, sample_weight, classes):
        """Fit large memory maps and tensors block by block; return whether this applies."""
        if self.criterion != "log_loss":
            return False
        kind = "proba"
        max_memory_entries = _MAX_MEMORY_MAP_ENTRIES
        if (device_scores := read_device_scores(X, kind, read_proba)) is not None:
            X = device_scores
            kind = device_scores.kind
            max_memory_entries = _MAX_DEVICE_ENTRIES
        # Other arrays are in memory already, so passes over them would save nothing.
        elif not isinstance(X, np.memmap):
            return False
        # Small tables are faster in memory.
        if X.ndim != 2 or X.shape[0] * X.shape[1] <= max_memory_entries:
            return False
        named_classes, _ = read_labels(y, classes=classes, input_name="y")
        if classes is None:
            raise_if_single_column_class_unclear(X, named_classes, "classes")
        classes = named_classes
        if X.shape[1] > 1:
            self._check_class_number(X, classes)
        start = getattr(self, "_last", None) if self.warm_start else None
        blocks = ScoreBlocks([(X, y, sample_weight)], kind, classes, builtins.map)
        self._fit_passes(blocks, start)
        return True

    def fit_blocks(
        self,
        blocks: Iterable[Any],
        *,
        kind: BlockScoreKind = "logits",
        classes: ArrayLike | None = None,
        start: float | None = None,
        map: Callable[..., Iterable[Any]] = builtins.map,
    ) -> Self:
        """Fit on rows that come in blocks, one block in memory at a time.

        The result is that of `fit` on all rows, to a relative error of beta below 1e-6.
        For scores that do not fit into memory. Often 50,000 rows at random and `fit`
        are enough: the expected log loss is then 1/(2 m) = 1e-5 nats above that of all
        rows.

        Parameters
        ----------
        blocks : iterable of tuples or of callables
            Tuples ``(scores, y)`` or ``(scores, y, sample_weight)``, or functions
            without arguments that return one. It is read more than once, so generators
            are rejected. Scores: arrays of shape (n_rows, n_classes), (n_rows, 1) or
            (n_rows,), also memory maps, tensors, and arrays of zarr, h5py or dask.
            Arrays and memory maps of numpy are never copied as a whole; others are
            loaded block by block. Blocks may have any sizes, also 0.
        kind : {"logits", "proba"}, default="logits"
            What the scores are, as in `canonical_proba`.
        classes : array-like of shape (n_classes,), default=None
            The labels in the order of the columns. By default 0, 1, ..., n_classes - 1.
        start : float > 0, default=None
            Inverse temperature to start from. By default the fit on a sample: 20,000
            rows (more, up to 200,000 or one in 20, if there are fewer than 200
            classes), in pieces of 1000 rows from random places, always the same. If
            blocks are loaded by functions, at most one in ten of them is called for it;
            if they are neither a list nor a tuple, their first rows are taken.
        map : callable, default=map
            Applies a function to every element of an iterable and gives the results in
            order: ``concurrent.futures.ThreadPoolExecutor().map`` uses all cores. The
            function and its results can be pickled.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            A generator, and what is not a tuple of scores and labels.
        ValueError
            What `fit` rejects; the message names the block, counted from 0, and the row
            in it. Blocks of different numbers of columns, no rows at all, a `start`
            that is not positive.

        Warns
        -----
        CalibrationWarning
            `classes` in an order of their own if the columns of the sample fit
            another one far better.

        Notes
        -----
        A pass adds up the objective, its first three derivatives and two sums that
        decide the infinite cases. After it follows one step of Halley's method, whose
        remainder the sample estimates. If that changes log beta by less than 2e-2
        (without a sample, 5e-3), the fit ends: from the default start nearly always
        after one pass, unless few rows decide everything. Probabilities with exact
        zeros need one more, since all rows decide what a zero counts as. For logits
        ``floor_`` is learned from the rows whose logits differ most.

        Examples
        --------
        >>> from sklearn_calib import canonical_proba
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.recalibrators import TemperatureScaling
        >>> import numpy as np
        >>> proba, y = make_overconfident(3, 1000)
        >>> logits = np.log(proba).astype(np.float32)
        >>> blocks = [(logits[i : i + 300], y[i : i + 300]) for i in range(0, 1000, 300)]
        >>> ts = TemperatureScaling().fit_blocks(blocks)
        >>> whole = TemperatureScaling().fit(proba, y)
        >>> abs(ts.temperature_ / whole.temperature_ - 1) < 1e-6
        True
        """
        self._validate_params()
        if self.criterion != "log_loss":
            raise invalid_input(
                expected="criterion='log_loss' for blocks",
                got=repr(self.criterion),
                hint="Take the log loss, or give all rows to fit",
            )
        if start is None and self.warm_start:
            start = getattr(self, "_last", None)
        elif start is not None and not 0 < start < np.inf:
            raise invalid_input(
                "start",
                expected="start > 0",
                got=repr(start),
                hint="Pass the inverse_temperature_ of an earlier fit, or None",
            )
        with replace_state_after_fitting_copy(self) as new:
            new._fit_passes(ScoreBlocks(blocks, kind, classes, map), start)
        return self

    def _fit_passes(self, blocks, start) -> None:
        """Fit by passes over blocks of rows, from a start or the optimum of a sample."""
        blocks.warn_column_order()
        sample = None
        if start is None:
            sample = blocks.sample_pieces()
            # An infinite optimum of the sample is not used, because all rows may have a
            # finite one.
            fit = fit_temperature(*sample)
            start = fit.beta if fit.status == "inside" else 1.0

        def run_pass(beta):
            return blocks.sum_over_slices(partial(run_temperature_pass, beta=beta))

        self._solve_and_store_temperature(
            partial(
                fit_temperature_passes_and_get_weight, run_pass, start, sample=sample
            )
        )
        self.classes_ = (
            np.arange(blocks.n_classes) if blocks.classes is None else blocks.classes
        )
        self.n_features_in_ = 1 if blocks.has_single_column else blocks.n_classes
        self.floor_ = blocks.floor
        self.n_iter_ = blocks.n_passes

    def _fit(self, proba, codes, weight):
        """Fit the inverse temperature to rows in memory."""
        start = getattr(self, "_last", None) if self.warm_start else None
        total = float(weight.sum())
        options = get_absent_option_mask(proba) is not None
        z = compute_log_proba_or_minus_inf_if_absent(proba)
        if options and self.criterion != "log_loss":
            raise invalid_input(
                expected="criterion='log_loss' for rows of different options",
                got=repr(self.criterion),
                hint="Take the log loss",
            )

        def get_smoothed_fit_and_total_weight(smoothing):
            if options:
                return fit_temperature_with_absent_options(
                    z, codes, weight, smoothing
                ), total
            if self.criterion != "log_loss":
                return fit_temperature_to_accuracy(z, codes, weight, smoothing), total
            # The optimum for smoothed labels may be far from the last one.
            near = None if smoothing else start
            return fit_temperature(z, codes, weight, smoothing, near), total

        self._solve_and_store_temperature(get_smoothed_fit_and_total_weight)

    def _solve_and_store_temperature(self, solve):
        """Solve for labels as they are, and again, smoothed, if the temperature would be 0.

        ``solve(label_smoothing)`` gives the fit and the sum of the weights.
        """
        fit, n_samples = solve(0.0)
        if fit.status == "uninformative":
            warn_calibration(
                expected="scores that are higher for the true class",
                got="scores that are no better than a uniform guess",
                hint="The result is uniform",
                estimator=self,
            )
        elif fit.status == "separable":
            warn_calibration(
                expected="some calibration label without the largest score",
                got="a calibration set that is all correct, whose best temperature is 0",
                hint="It is used, since laplace=True keeps the result inside (0, 1)"
                if self.laplace
                else (
                    "The fit uses labels smoothed by 1 / (N + 1); pass more rows to do without"
                ),
                estimator=self,
            )
            if not self.laplace:
                fit, _ = solve(1.0 / (n_samples + 1.0))
        # The next fit with warm_start begins here.
        self.inverse_temperature_ = self._last = fit.beta
        self.temperature_ = 1.0 / fit.beta
        self.loss_ = fit.loss
        self.n_samples_ = n_samples
        self.n_iter_ = fit.n_passes

    def _make_map(self):
        beta = self.inverse_temperature_
        scaled = maps.SoftmaxAffine(coef=beta, intercept=0.0, centred=True)
        share = 1.0 / (self.n_samples_ + 1.0) if self.laplace else 0.0
        return maps.make_mixture([1.0 - share, share], [scaled, maps.Uniform()])
