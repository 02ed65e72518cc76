"""GroupRecalibration: a line on the log-odds for each group, as a table that a person can read."""

import math
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._kernels._probability_floor import clip_to_floor, estimate_floor
from .._kernels._ridge_logistic_groups import fit_group_line_coefficients
from .._simplex_array import compute_log_odds, compute_sigmoid_columns
from .._sklearn_compat import POSITIVE_REAL
from .._typing import AnyArray, FloatArray, IntArray, RecalibratorLike
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ._any_recalibrator import fit_clone, predict_proba_aligned
from ._base import FitInput
from ._booster import compute_weighted_deviation_or_one
from ._by_group import BaseGroupRecalibrator
from ._group_columns import ColumnNamesAndCategories, is_missing_value, select_columns
from ._platt import PlattScaling

MAX_GROUPS_WITHOUT_WARNING = 1000


class GroupRecalibration(BaseGroupRecalibrator):
    """Recalibrate each of a few named groups by its own line, pulled towards the line of all rows.

    P = sigmoid(intercept + slope * z), with an intercept and a slope for each group:
    two numbers that can be printed, explained and compared. A small group, or one of a
    single class, stays near the line of all rows. `MulticalibratedScores` predicts
    better if groups are many or overlap.

    Parameters
    ----------
    recalibrator : str or recalibrator, default="platt"
        What is fitted to all rows together. For Platt scaling z are the log-odds of the
        probabilities, and its line is what the groups' lines are drawn to. For any
        other method z are the log-odds of what it returns, and the lines are drawn to
        intercept 0, slope 1.
    strength : float, default=20.0
        How strongly, in rows; above 0. At 0 each group would have its own logistic
        regression.

    Attributes
    ----------
    groups_ : list of tuple
        The groups: a value of each column, None if it is missing.
    intercepts_, slopes_ : ndarray of shape (n_groups,)
    pooled_ : recalibrator
        Fitted to all rows.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    pooled_line_ : tuple of float
        Intercept and slope that the groups are drawn to, and that rows of new groups
        get.
    group_names_ : list
        Names of the columns, or their numbers.
    one_vs_rest_ : list of GroupRecalibration
        More than two classes only: one for each class, which then have the attributes
        above.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Raises
    ------
    ValueError
        What `canonical_proba` and `canonical_labels` reject; fewer than two classes; a
        table with another number of rows, or without a column of the fit; at
        prediction, numbers in a column that was text at fit, and text in one that was
        numbers.
    TypeError
        No table of groups; a `recalibrator` of another type.

    Warns
    -----
    CalibrationWarning
        More than 1000 groups, as those of a column of numbers; more than two classes;
        and what the recalibrator warns of.

    Notes
    -----
    Several columns make one group of each combination of their values. Group g
    minimises the log loss of its rows plus strength / 2 ((a_g - a)^2 + (b_g - b)^2
    s^2), where (a, b) is the line of all rows and s the standard deviation of z.
    Newton's method for all groups at once, O(n) a step; exact zeros count as
    ``floor_``. Weights count rows.

    References
    ----------
    Platt (1999), section 2, for the line; Gelman and Hill (2007), chapter 12, for
    estimates of groups that are drawn to a common one.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from sklearn_calib.groups import GroupRecalibration
    >>> rng = np.random.default_rng(0)
    >>> score, region = rng.normal(size=4000), rng.choice(["north", "south"], 4000)
    >>> y = (rng.random(4000) < expit(score + np.where(region == "north", 1, -1))).astype(int)
    >>> fitted = GroupRecalibration().fit(expit(score), y, groups=region)
    >>> for group, a, b in zip(fitted.groups_, fitted.intercepts_, fitted.slopes_):
    ...     print(group, round(a, 1), round(b, 1))
    ('north',) 0.9 1.0
    ('south',) -1.0 1.0
    """

    groups_: list[tuple[Any, ...]]
    intercepts_: FloatArray
    slopes_: FloatArray
    pooled_: Any
    floor_: float
    pooled_line_: tuple[float, float]

    _parameter_constraints: ClassVar = {
        "recalibrator": "no_validation",
        "strength": [POSITIVE_REAL],
    }

    def __init__(
        self, recalibrator: RecalibratorLike = "platt", *, strength: float = 20.0
    ) -> None:
        self.recalibrator = recalibrator
        self.strength = strength

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per group, and the line of all rows.

        Returns
        -------
        frame : DataFrame
            The columns of the groups, then rows (their weight), events (of the second
            class), expected (sum of the probabilities before), intercept and slope. The
            last row is that of all rows, and of rows of new groups.
        """
        import pandas as pd

        check_is_fitted(self)
        if len(self.classes_) > 2:
            raise invalid_input(
                expected="two classes",
                got=f"{len(self.classes_)}",
                hint="Call it on one_vs_rest_[c], one table for each class",
            )
        frame = pd.DataFrame(
            [*self.groups_, ("all",) * len(self.group_names_)],
            columns=[str(name) for name in self.group_names_],
        )
        sums = np.vstack([self._sums, self._sums.sum(axis=0)])
        frame["rows"], frame["events"], frame["expected"] = sums.T
        frame["intercept"] = [*self.intercepts_, self.pooled_line_[0]]
        frame["slope"] = [*self.slopes_, self.pooled_line_[1]]
        return frame

    def _fit(self, data: FitInput) -> None:
        """Fit one line to all rows, and shrink the line of each group towards it."""
        self.pooled_ = fit_clone(
            self.recalibrator,
            data.proba,
            data.y_encoded,
            np.arange(2),
            data.weight,
        )
        line = (
            (self.pooled_.intercept_, self.pooled_.slope_)
            if self._is_pooled_map_line_on_log_odds()
            else (0.0, 1.0)
        )
        self.pooled_line_ = line
        self._schema = ColumnNamesAndCategories.learn_categories(data.group_columns)
        keys = _make_group_keys(list(data.group_columns.values()))
        self.groups_ = sorted(set(keys), key=_make_sort_key)
        self._index_by_group = {key: index for index, key in enumerate(self.groups_)}
        if len(self.groups_) > MAX_GROUPS_WITHOUT_WARNING:
            warn_calibration(
                expected=f"at most {MAX_GROUPS_WITHOUT_WARNING} groups, each of many rows",
                got=f"{len(self.groups_)}",
                hint=(
                    "Their lines are nearly that of all rows. Cut columns of numbers into "
                    "intervals, or take MulticalibratedScores"
                ),
                estimator=self,
            )
        # If the pooled map is a line on the log-odds, group lines replace it; otherwise
        # they correct its result.
        base = self._compute_line_input_proba(data.proba)
        self.floor_ = estimate_floor(base)
        z = self._compute_base_log_odds(base)
        group = self._find_group_positions_or_minus_one(keys)
        target = data.y_encoded.astype(float)
        n_groups = len(self.groups_)
        lines = fit_group_line_coefficients(
            z, target, data.weight, group, n_groups, line, self.strength,
            compute_weighted_deviation_or_one(z, data.weight),
        )  # fmt: skip
        self.intercepts_ = lines[:, 0].copy()
        self.slopes_ = lines[:, 1].copy()
        # The columns of `to_frame`: rows, events and expected events.
        row_values = (np.ones(len(z)), target, np.asarray(data.proba)[:, 1])
        self._sums = np.column_stack(
            [
                np.bincount(group, data.weight * values, minlength=n_groups)
                for values in row_values
            ]
        )

    def _predict_two_class_proba(
        self, proba: FloatArray, columns: dict[Any, AnyArray]
    ) -> FloatArray:
        """Return the probability of the second class, by the line of each row's group."""
        # Numbers passed as text would be new groups; the encoding raises an error for
        # them.
        self._schema.encode_columns(columns)
        group = self._find_group_positions_or_minus_one(
            _make_group_keys(select_columns(columns, self.group_names_))
        )
        # Index -1 selects the appended entry: new groups get the line of all rows.
        intercept = np.append(self.intercepts_, self.pooled_line_[0])[group]
        slope = np.append(self.slopes_, self.pooled_line_[1])[group]
        t = intercept + slope * self._compute_base_log_odds(
            self._compute_line_input_proba(proba)
        )
        return compute_sigmoid_columns(t)

    def _is_pooled_map_line_on_log_odds(self):
        """Return whether the pooled map is itself a line on the log-odds."""
        return isinstance(self.pooled_, PlattScaling) and self.pooled_.scale == "logit"

    def _compute_line_input_proba(self, proba):
        """Return the probabilities that the lines start from."""
        return (
            proba
            if self._is_pooled_map_line_on_log_odds()
            else predict_proba_aligned(self.pooled_, proba, np.arange(2))
        )

    def _compute_base_log_odds(self, base):
        return compute_log_odds(clip_to_floor(base, self.floor_))

    def _find_group_positions_or_minus_one(
        self, keys: list[tuple[Any, ...]]
    ) -> IntArray:
        """Return the position of each row's group; -1 (all rows) for a new one."""
        return np.fromiter(
            (self._index_by_group.get(key, -1) for key in keys),
            np.intp,
            count=len(keys),
        )


def _make_group_keys(columns):
    """Return the group of each row: a value of each column, None if missing."""
    return list(zip(*map(_convert_column_to_group_values, columns), strict=True))


def _convert_column_to_group_values(column) -> list[Any]:
    if column.dtype == object:
        return [None if is_missing_value(value) else value for value in column.tolist()]
    return [_convert_float_to_group_or_none(value) for value in column.tolist()]


def _convert_float_to_group_or_none(value):
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() else value


def _make_sort_key(key):
    """Return a sort key: numbers first, then text and others, missing values last."""
    numbers = [isinstance(value, Real) for value in key]
    return [
        (value is None, not number, value if number else str(value))
        for value, number in zip(key, numbers, strict=True)
    ]
