"""Calibration of whole probability vectors, cell by cell."""

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .. import maps
from .._kernels._level_merging import (
    GroupCorrectionRule,
    SplitSampleLabelEstimates,
    WholeSampleLabelEstimates,
    correct_and_merge_cells,
)
from .._kernels._level_sets import (
    MAX_LEVELS,
    choose_n_levels,
    compute_levels,
    find_row_cell_indices,
    get_integer_snap_width,
    get_max_cell_error,
    project_levels_to_simplex_proba,
    sort_rows_into_level_runs,
)
from .._random import make_random_state
from .._sklearn_compat import NONNEGATIVE_INTEGER, NONNEGATIVE_REAL, OPEN_UNIT_INTERVAL
from .._typing import AnyArray, FloatArray, IntArray, RandomStateLike, Self
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ._base import Capabilities, Recalibrator, split_rows_among_absent_classes


class CellGroup(NamedTuple):
    """Cells that share one prediction.

    Parameters
    ----------
    bins : ndarray of int
        Their rows in ``bins_``.
    mass : float
        Their share of the rows.
    prediction, frequency : ndarray of shape (n_classes,)
        What is predicted there, and the frequency of each label.
    touched : bool
        Whether the prediction was changed.
    """

    bins: AnyArray
    mass: float
    prediction: FloatArray
    frequency: FloatArray
    touched: bool


class MulticlassBinning(Recalibrator):
    """Correct all classes at once, in cells of rows whose rounded probability vectors are equal.

    For predictions that take few different values, or crowd in few places, and confuse
    pairs of classes, as those of trees, rule sets and naive Bayes. It needs some ten
    thousand rows, or a hundred per cell. For smooth predictions (networks, forests)
    temperature scaling or isotonic calibration are better; this method changes next to
    nothing there, and warns if no cell is heavy enough.

    Parameters
    ----------
    p : float, default=2
        The exponent of the l_p error that is reduced, see `lp_calibration_error`: above
        1, infinity included.
    epsilon : float, default=0.05
        The l_p error to reach, between 0 and 1. Together with p it determines beta, by
        2 beta^(p - 1) = epsilon^p, and the tolerance beta / 2 of a cell's error.
    n_levels : int or None, default=20
        Cells are vectors rounded down to multiples of 1 / n_levels. Choose it among 5,
        10, 20 and 50 by cross-validated Brier loss. None: 1 / beta, as in the paper,
        which is so fine for most (p, epsilon) that no cell is heavy.
    keep : bool, default=True
        Rows whose cell was not changed keep their prediction; False rounds all.
    min_count : float, default=20
        Cells with fewer rows, or less than beta / 6 of all, are not touched.
    z : float, default=2
        A class of a cell is corrected only if it is off by more than this many standard
        errors.
    update : {"vector", "coordinate"}, default="vector"
        "vector" corrects all classes of the worst cell at once. "coordinate" corrects
        the worst class and projects on the simplex, as in the paper.
    shrink : float, default=10
        In a vector update, the first prediction of a cell counts as so many rows.
    pools : {None, "paper"}, default=None
        "paper": estimate groups of 2^i cells from a part of the sample of their own, so
        that the theorem holds for adaptive choices. It needs millions of rows to do no
        harm.
    noise : {None, "laplace"}, default=None
        With pools: the noise of the paper's private estimates.
    split : bool, default=False
        Choose the cells on one half of the rows and estimate on the other: then
        ``error_bound_`` holds.
    delta : float, default=0.05
        Failure probability of that bound and of the pools.
    max_iter : int or None, default=None
        The largest number of corrections. None: the bound of the theorem, at most
        100,000.
    random_state : int, Generator, RandomState or None, default=0
        For split, pools and noise.

    Attributes
    ----------
    bins_ : ndarray of shape (n_bins, n_classes), int
        Levels of the heavy cells.
    groups_ : list of CellGroup
        Cells, mass, prediction, frequency of labels, and whether it was changed.
    n_iter_, n_merges_ : int
        Corrections, and groups that were joined.
    n_levels_, beta_, tol_ : int, float, float
        What `n_levels`, `p` and `epsilon` come to.
    mass_in_bins_ : float
        Share of the rows in heavy cells: the method can help there only.
    error_bound_ : float
        With ``split=True``: the l_p error on new rows is below it with probability 1 -
        delta; else NaN.
    brier_before_, brier_after_ : float
        Sums of squared errors over the classes, on the rows of the fit (halved for two
        classes).
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Raises
    ------
    ValueError
        p or epsilon out of range; more than 5000 levels; noise without pools; fewer
        than 4 rows for pools.

    Warns
    -----
    CalibrationWarning
        No cell is heavy enough; the iterations ended before the errors were small.

    Notes
    -----
    The sum of squared errors of the sample falls with every coordinate update, by at
    least tol^2. A row of weight w counts as w rows. Cost: O(n k) to group the rows by
    hashes, then for each update O(k) and one search for the worst cell.

    References
    ----------
    "Sample-efficient multiclass calibration under probability-weighted l_p error"
    (2025, submitted without names), algorithm 2; corrected: the mass of a group is the
    sum of its labels' masses (separate estimates may contradict each other for ever),
    cells are integers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.metrics import brier_loss
    >>> from sklearn_calib.recalibrators import MulticlassBinning
    >>> rng = np.random.default_rng(0)
    >>> leaf = rng.integers(0, 8, 20_000)
    >>> p, truth = rng.dirichlet(np.ones(4), (2, 8))
    >>> y = (truth[leaf].cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    >>> model = MulticlassBinning().fit(p[leaf], y)
    >>> bool(np.abs(model.predict_proba(p) - truth).max() < 0.03)
    True
    """

    bins_: IntArray
    groups_: list[CellGroup]
    n_iter_: int
    n_merges_: int
    n_levels_: int
    beta_: float
    tol_: float
    mass_in_bins_: float
    error_bound_: float
    brier_before_: float
    brier_after_: float

    # The rows are split before others stand for absent classes.
    _completes_rows = False
    capabilities = Capabilities(
        multiclass="native",
        nonparametric_shape=True,
        nonparametric=True,
        weights="counts",
        cost="O(n k + n log n)",
    )
    _parameter_constraints: ClassVar = {
        "p": [Interval(Real, 1, np.inf, closed="right")],
        "epsilon": [OPEN_UNIT_INTERVAL],
        "n_levels": [Interval(Integral, 1, MAX_LEVELS, closed="both"), None],
        "keep": ["boolean"],
        "min_count": [NONNEGATIVE_REAL],
        "z": [NONNEGATIVE_REAL],
        "update": [StrOptions({"vector", "coordinate"})],
        "shrink": [NONNEGATIVE_REAL],
        "pools": [StrOptions({"paper"}), None],
        "noise": [StrOptions({"laplace"}), None],
        "split": ["boolean"],
        "delta": [OPEN_UNIT_INTERVAL],
        "max_iter": [NONNEGATIVE_INTEGER, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        p: float = 2,
        epsilon: float = 0.05,
        *,
        n_levels: int | None = 20,
        keep: bool = True,
        min_count: float = 20,
        z: float = 2.0,
        update: Literal["vector", "coordinate"] = "vector",
        shrink: float = 10.0,
        pools: Literal["paper"] | None = None,
        noise: Literal["laplace"] | None = None,
        split: bool = False,
        delta: float = 0.05,
        max_iter: int | None = None,
        random_state: RandomStateLike = 0,
    ) -> None:
        self.p = p
        self.epsilon = epsilon
        self.n_levels = n_levels
        self.keep = keep
        self.min_count = min_count
        self.z = z
        self.update = update
        self.shrink = shrink
        self.pools = pools
        self.noise = noise
        self.split = split
        self.delta = delta
        self.max_iter = max_iter
        self.random_state = random_state

    @classmethod
    def paper(cls, p: float, epsilon: float, **options: Any) -> Self:
        """Return the method of the paper, from p and epsilon alone, on one sample."""
        paper_options = {
            "n_levels": None,
            "keep": False,
            "min_count": 0,
            "z": 0.0,
            "update": "coordinate",
            "shrink": 0.0,
        }
        return cls(p, epsilon, **{**paper_options, **options})

    def _fit(self, proba, codes, weight):
        """Choose heavy cells, correct their predictions, and merge those that become equal."""
        proba = np.asarray(proba)
        self._set_tolerance_and_level_count()
        rng = make_random_state(self.random_state)
        choice_rows, estimate_rows = self._separate_choice_and_estimate_rows(
            len(proba), rng
        )
        heavy, self.mass_in_bins_ = self._find_heavy_cells_and_mass_share(
            proba[choice_rows], weight[choice_rows]
        )
        self.bins_ = heavy
        k = proba.shape[1]
        # One pool for each size 2^i of a group of cells: |B| cells need ceil(log2 |B|)
        # + 1 of them (section 3.1 of the paper).
        n_pools = 1 if self.pools is None else max(1, len(heavy).bit_length())
        pool_rows = np.array_split(estimate_rows, n_pools)
        absent = np.setdiff1d(np.arange(k), codes)
        sums = []
        for pool in pool_rows:
            completed = split_rows_among_absent_classes(
                proba[pool],
                codes[pool],
                weight[pool],
                absent,
            )
            sums.append(self._compute_cell_shares_means_and_size(*completed))
        labels, first, size = sums[0]
        # Algorithm 2 starts each group at rho(v), the point of the simplex nearest to
        # the cell. Keeping the mean of the model's own predictions loses nothing to
        # rounding.
        if not self.keep:
            first = project_levels_to_simplex_proba(heavy, self.n_levels_)
        beta = max(self.beta_, 1e-12)
        # The number of iterations is O(1 / beta^2) by lemma 14; this is its bound with
        # the constants of the proof.
        proved_bound = 4 * (2 + 4 / self.n_levels_ * np.log2(6 / beta)) / beta**2
        max_iter = int(
            min(proved_bound, 100_000) if self.max_iter is None else self.max_iter
        )
        rule = GroupCorrectionRule(
            self.n_levels_,
            self.tol_,
            size,
            float(self.z),
            self.update == "vector",
            float(self.shrink),
            max_iter,
        )
        merged = correct_and_merge_cells(
            heavy,
            labels,
            first,
            rule,
            self._make_label_frequency_estimator(sums, k, rng),
        )
        self.n_iter_ = merged.n_iter
        self.n_merges_ = merged.n_merges
        self._store_merged_cells(merged)
        self._warn_if_no_cells_or_unconverged(merged, len(proba))
        self.error_bound_ = self._bound_error_or_nan(
            merged,
            size,
            weight[choice_rows].sum(),
            k,
        )
        share = weight / weight.sum() / (2 if k == 2 else 1)
        target = np.eye(k)[codes]
        self.brier_before_ = float(share @ ((proba - target) ** 2).sum(axis=1))
        recalibrated = self._make_map()(proba)
        self.brier_after_ = float(share @ ((recalibrated - target) ** 2).sum(axis=1))

    def _set_tolerance_and_level_count(self):
        """Set beta, the tolerance of errors, and the number of levels."""
        self.beta_ = get_max_cell_error(float(self.p), self.epsilon)
        self.tol_ = self.beta_ / 2
        self.n_levels_ = (
            choose_n_levels(self.beta_) if self.n_levels is None else self.n_levels
        )
        if self.n_levels_ > MAX_LEVELS:
            raise invalid_input(
                "p",
                expected=f"p and epsilon that ask for at most {MAX_LEVELS} levels",
                got=f"p={self.p}, epsilon={self.epsilon}, {self.n_levels_:.3g} levels",
                hint="Take a larger one of the two, or give n_levels",
            )
        if self.noise is not None and self.pools is None:
            raise invalid_input(
                expected="pools='paper' with noise",
                got="pools=None",
                sentence="noise needs pools='paper'",
                hint="The noise belongs to estimates from pools; leave it out",
            )

    def _separate_choice_and_estimate_rows(self, n, rng):
        """Return the rows that choose the cells, and the rows for the estimates."""
        everything = np.arange(n)
        if not self.split and self.pools is None:
            return everything, everything
        if n < 4:
            raise invalid_input(
                expected="at least 4 rows to split",
                got=f"{n}",
                hint="Fit without split or pools",
            )
        shuffled = rng.permutation(n)
        return shuffled[: n // 2], shuffled[n // 2 :]

    def _find_heavy_cells_and_mass_share(self, proba, weight):
        """Return the levels of cells with enough mass, (b, k), and their share of the mass."""
        order, starts = sort_rows_into_level_runs(proba, self.n_levels_)
        counts = np.add.reduceat(weight[order], starts)
        total = weight.sum()
        # Algorithm 2 keeps cells whose estimated mass is at least beta / 6; rounding
        # must not drop a cell of exactly that mass.
        min_mass = max(self.min_count, self.beta_ / 6 * total * (1 - 1e-12))
        kept = np.flatnonzero(counts >= min_mass)
        cells = compute_levels(proba[order[starts[kept]]], self.n_levels_)
        # The order of the cells must not depend on hashes, since ties between errors go
        # to the lowest cell.
        cells = cells[np.lexsort(cells.T[::-1])].reshape(-1, proba.shape[1])
        return cells, float(counts[kept].sum() / total)

    def _compute_cell_shares_means_and_size(self, proba, codes, weight):
        """Compute label masses and the mean prediction of each cell, and the sample size."""
        b = len(self.bins_)
        k = proba.shape[1]
        cell = self._find_cell(proba)
        inside = cell >= 0
        size = float(weight.sum())
        labels = np.bincount(
            cell[inside] * k + codes[inside], weight[inside] / size, minlength=b * k
        ).reshape(b, k)
        mass = labels.sum(axis=1)
        first = np.empty((b, k))
        for j in range(k):
            first[:, j] = np.bincount(
                cell[inside], (weight * proba[:, j])[inside], minlength=b
            )
        with np.errstate(invalid="ignore"):
            first /= size * mass[:, None]
        first[mass == 0] = project_levels_to_simplex_proba(
            self.bins_[mass == 0], self.n_levels_
        )
        return labels, first, size

    def _make_label_frequency_estimator(self, sums, k, rng):
        """Return the estimator of label frequencies: by one pool, or by noisy ones."""
        if self.pools is None:
            return WholeSampleLabelEstimates(sums[0][0])
        noise = None
        if self.noise == "laplace":
            b = max(len(self.bins_), 1)
            size = sums[0][2]
            failure = self.delta / (3 * len(sums))
            # The proof of lemma 9 adds Laplace noise of scale 8 / (m alpha) to estimates
            # from m = 32 log(4 n k / delta) / alpha^2 rows; this is it without alpha.
            scale = np.sqrt(2 / (size * np.log(4 * b * k / failure)))
            noise = partial(rng.laplace, 0, scale)
        return SplitSampleLabelEstimates([labels for labels, _, _ in sums], noise)

    def _find_cell(self, proba):
        """Return the heavy cell of each row, or -1."""
        return find_row_cell_indices(
            np.ascontiguousarray(proba), self.n_levels_, self.bins_
        )

    def _store_merged_cells(self, merged):
        """Keep the merged cells in the form that predictions and users read."""
        self._group = merged.group
        self._prediction = merged.prediction
        self._touched = merged.touched
        self.groups_ = []
        for g in np.unique(merged.group):
            mass = merged.labels[g].sum()
            frequency = merged.labels[g] / mass if mass > 0 else merged.prediction[g]
            self.groups_.append(
                CellGroup(
                    np.flatnonzero(merged.group == g),
                    float(mass),
                    merged.prediction[g],
                    frequency,
                    bool(merged.touched[g]),
                )
            )

    def _warn_if_no_cells_or_unconverged(self, merged, n):
        """Warn if no cell is heavy enough, or if errors remain."""
        if not len(self.bins_):
            warn_calibration(
                expected=(
                    f"cells with at least {self.min_count:g} rows and {self.beta_ / 6:.2g} of all"
                ),
                got=f"none among {n} rows and {self.n_levels_} levels",
                hint="Predictions stay as they are; take fewer levels, or temperature scaling",
                estimator=self,
            )
        elif not merged.converged:
            warn_calibration(
                expected=f"errors of at most {self.tol_:.2g} after {merged.n_iter} iterations",
                got=f"{merged.error:.2g}",
                hint="The last predictions are kept; raise max_iter",
                estimator=self,
            )

    def _bound_error_or_nan(self, merged, size, choice_weight, k):
        """Convert the largest error of a cell on new rows to a bound of the l_p error."""
        if not self.split or self.pools is not None:
            return float("nan")
        b = len(self.bins_)
        # Hoeffding's inequality and a union bound over the 2^b unions of cells that a
        # group may be.
        alpha = np.sqrt((b * np.log(2) + np.log(8 * k / self.delta)) / (2 * size))
        if self.keep and b:
            alpha += (
                np.sqrt(np.log(4 * b * k / self.delta) / (2 * size)) / self.n_levels_
            )
        labels, prediction = (
            values[np.unique(merged.group)]
            for values in (merged.labels, merged.prediction)
        )
        gaps = labels.sum(axis=1, keepdims=True) * prediction - labels
        min_mass_fraction = max(self.min_count / choice_weight, self.beta_ / 6)
        mass_bound = _find_outside_cell_mass_bound(
            min_mass_fraction, choice_weight, self.delta
        )
        cell_bound = float(np.abs(gaps).max(initial=0)) + alpha + mass_bound
        p = float(self.p)
        # If no cell has an error above e, the p-th powers sum to at most e^(p - 1)
        # times the sum of the errors, which is at most 2.
        return float(
            cell_bound if np.isinf(p) else (2 * cell_bound ** (p - 1)) ** (1 / p)
        )

    def _make_map(self):
        kept = np.flatnonzero(self._touched[self._group]) if self.keep else slice(None)
        return maps.Cells(
            n_levels=self.n_levels_,
            slack=get_integer_snap_width(self.n_levels_),
            keys=self.bins_[kept],
            rows=self._prediction[self._group][kept],
            keep=self.keep,
        )


def _find_outside_cell_mass_bound(threshold, size, delta):
    """Compute the mass below which cells outside lie, with 1 - delta / 2 (Chernoff)."""
    low = threshold
    high = 1.0
    for _ in range(60):
        middle = (low + high) / 2
        enough = size * middle * (1 - threshold / middle) ** 2 / 2 >= np.log(
            2 / (middle * delta)
        )
        low, high = (low, middle) if enough else (middle, high)
    return high
