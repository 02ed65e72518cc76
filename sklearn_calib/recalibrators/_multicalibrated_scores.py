"""MulticalibratedScores: the probabilities of a black box, calibrated in many groups at once."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from .._kernels._probability_floor import clip_to_floor, estimate_floor
from .._simplex_array import attach_log_proba, compute_log_odds, compute_sigmoid_columns
from .._typing import AnyArray, FloatArray
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ._base import FitInput
from ._booster import (
    MAX_ABS_LOG_ODDS,
    BoosterOptionsMixin,
    BoosterRows,
    cross_validate_step_count,
)
from ._by_group import BaseGroupRecalibrator
from ._cross_fitting import check_cv_pairs, make_folds
from ._group_columns import ColumnNamesAndCategories
from ._harm_checks import warn_repeated_rows

MAX_GROUP_COLUMNS = 1000
SCORE_FEATURE_NAME = "(score)"


class MulticalibratedScores(BoosterOptionsMixin, BaseGroupRecalibrator):
    """Probabilities corrected so that they are right in many groups at once.

    A few rounds of small boosted trees look for groups, and for ranges of the
    probability inside groups, in which the outcomes differ from the predictions, and
    correct the log-odds there. The groups need not be named: a tree combines the
    columns of the table by itself. How many rounds is decided by the loss of rows left
    out; none at all is a possible answer.

    Parameters
    ----------
    n_rounds : int, default=20
        The largest number of rounds.
    n_trees : int, default=100
        Trees of one round. The folds are judged after every 10 of them, and the last
        round may be cut short.
    learning_rate : float, default=0.1
        Share of a tree's step that is taken, in (0, 1].
    max_leaves : int, default=5
        Leaves of a tree: 2 to 256.
    min_samples_leaf : float or "auto", default="auto"
        The smallest weight of a leaf. "auto": a fiftieth of the rows, but 20 to 80.
    l2 : float, default=1.0
        Rows of residual 0 and full curvature, above 0, that draw each leaf to 0.
    min_gain : float, default=0.15
        What a split has to gain: G_L^2 / (H_L + l2) + G_R^2 / (H_R + l2) - G^2 / (H +
        l2) with the sums G of residuals and H of p (1 - p).
    n_bins : int, default=64
        Bins of a column of numbers and of the score, 2 to 255. Each category has its
        own, up to 255 of them.
    cv : int, cross-validation generator or iterable, default=5
        Folds. Each has a correction of its own, which is judged on the rows left out;
        the mean of their log-odds is what is predicted. An int means shuffled
        stratified folds, fewer if a class has fewer rows. None means 5.
    patience : int, default=1
        Rounds that may pass without lowering the loss of the folds by 1e-6.
    monotone : bool, default=False
        Rows that are alike in all columns keep the order of their probabilities.
    use_score : bool, default=True
        Trees also cut the score. False: the mean of each group is corrected and not its
        curve, which is called multiaccuracy.

    Attributes
    ----------
    n_rounds_ : int
        Rounds that were chosen, with the last one; 0 returns the probabilities as they
        are.
    n_trees_ : int
        Trees that were chosen, of all rounds together.
    cv_losses_ : ndarray of shape (n_tried + 1,)
        Log loss in nats of the rows left out after 0, 10, 20, ... trees (after each
        round of fewer than 10); the first is that of the probabilities as they are.
    feature_gains_ : dict of str to float
        Sum of the gains of the splits of each column, over all folds; "(score)" is the
        probability itself.
    group_names_ : list
        Names of the columns, or their numbers.
    one_vs_rest_ : list of MulticalibratedScores
        More than two classes only: one for each class, which then have the attributes
        above.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Raises
    ------
    ValueError
        What `canonical_proba` and `canonical_labels` reject; fewer than two classes; a
        table with another number of rows, with more than 1000 columns, or without a
        column of the fit; numbers where the fit had text, or text if it had numbers.
    TypeError
        No table of groups.

    Warns
    -----
    CalibrationWarning
        More than two classes, see Notes. Or a class with a single row: there are no
        folds then, and the probabilities stay as they are. Or scores that repeat with
        the same labels, so that folds share what belongs together.

    Notes
    -----
    Round t boosts trees from the log-odds F_t of all rows: residuals w (y - p) and
    curvatures w p (1 - p), best leaf first, at most one unit of log-odds a tree. Then
    F_{t+1} = a (F_t + trees) + b with (a, b) from a logistic regression, drawn to (1,
    0) as a leaf is drawn to 0. The training loss never rises from round to round (a
    learning rate up to 0.73; `monotone` aside). Columns are cut into bins once a fit,
    the score once a round. A split of a column of k categories sends those with the
    smallest G / (H + l2 + 3 (k - 2)) in the leaf to one side, and that l2 counts in its
    gain as well: an order found on the same rows gains by chance. Missing is a bin of
    its own, a category that the fit has not seen counts as missing; a category that a
    leaf has not seen goes to its larger side. All folds advance together until the loss
    of the rows left out rises, and go back to where it was smallest.

    Trees see the rarer of two classes as the second, so that a swap of the classes
    swaps the columns of the result and changes nothing else.

    Multicalibration of several classes has no accepted method. Here each class is
    corrected against the rest, and the rows are divided by their sums.

    The result is not a function of the probability alone, so it cannot be exported as one;
    it is pickled like any estimator and holds no rows of the data.

    Cost: O(folds rounds trees n columns) additions; 16,000 rows of 8 columns take about
    a second.

    References
    ----------
    Hébert-Johnson, Kim, Reingold, Rothblum (2018), for the aim; Tax et al. (2026),
    "MCGrad", for trees from the log-odds, the new scale of each round and the choice of
    their number; Globus-Harris, Harrison, Kearns, Roth, Sorrell (2023), for boosting as
    the way to it.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from sklearn_calib.groups import MulticalibratedScores
    >>> rng = np.random.default_rng(0)
    >>> score, region = rng.normal(size=4000), rng.choice(["north", "south"], 4000)
    >>> y = (rng.random(4000) < expit(score + np.where(region == "north", 1, -1))).astype(int)
    >>> table = {"region": region}
    >>> fitted = MulticalibratedScores().fit(expit(score), y, groups=table)
    >>> after = fitted.predict_proba([0.5, 0.5], groups={"region": ["north", "south"]})[:, 1]
    >>> bool(after[0] > 0.65), bool(after[1] < 0.35)
    (True, True)
    """

    n_rounds_: int
    n_trees_: int
    floor_: float
    cv_losses_: FloatArray
    feature_gains_: dict[Any, float]

    # This is 1 if the trees see the classes in the other order.
    _turned = 0

    def _fit(self, data: FitInput) -> None:
        """Boost corrections of the log-odds; cross-validation chooses the number of rounds."""
        _check_group_columns(data)
        # Trees break ties by the order of their bins, so exchanged classes would give
        # slightly different trees. A fixed orientation prevents this.
        self._turned = _is_second_class_more_frequent(data)
        data = data._replace(
            proba=self._swap_columns_if_second_more_frequent(data.proba),
            y_encoded=data.y_encoded ^ self._turned,
        )
        self._schema = ColumnNamesAndCategories.learn_categories(data.group_columns)
        self.floor_ = estimate_floor(data.proba)
        rows = BoosterRows(
            self._compute_clipped_log_odds(data.proba),
            self._schema.encode_columns(data.group_columns),
            data.y_encoded.astype(float),
            data.weight,
        )
        min_leaf_weight = self.min_samples_leaf
        if min_leaf_weight == "auto":
            # By default a leaf has a fiftieth of the rows, within limits: smaller
            # leaves fit noise, larger ones miss small groups.
            min_leaf_weight = max(20.0, min(80.0, data.weight.sum() / 50))
        best_step, self.cv_losses_, self._fold_rounds = cross_validate_step_count(
            rows,
            _clip_log_odds(data.proba),
            self._list_fold_pairs(data),
            self,
            float(min_leaf_weight),
        )
        n_steps, n_trees = self._count_steps_and_trees()
        # Rounded up, because the last round may be incomplete.
        self.n_rounds_ = -(-best_step // n_steps)
        self.n_trees_ = best_step * n_trees
        names = [*self._schema.names, SCORE_FEATURE_NAME]
        self.feature_gains_ = dict.fromkeys(names, 0.0)
        if best_step:
            gains = [rounds.gains for rounds in self._fold_rounds]
            totals = np.sum(gains, axis=(0, 1)).tolist()
            self.feature_gains_ |= zip(names, totals, strict=False)

    def _predict_two_class_proba(
        self, proba: FloatArray, columns: dict[Any, AnyArray]
    ) -> FloatArray:
        """Return the probability of the second class with the mean correction of all folds."""
        columns_read = self._schema.encode_columns(columns)
        if self.n_rounds_ == 0:
            return np.array(proba)
        nothing = np.empty(0)
        rows = BoosterRows(
            self._compute_clipped_log_odds(
                self._swap_columns_if_second_more_frequent(proba)
            ),
            columns_read,
            nothing,
            nothing,
        )
        # The corrections of all folds are averaged, which has less variance than one
        # fit to all rows and costs no further fit.
        margin = np.mean([rounds.predict(rows) for rounds in self._fold_rounds], axis=0)
        return self._swap_columns_if_second_more_frequent(
            compute_sigmoid_columns(margin)
        )

    def _swap_columns_if_second_more_frequent(self, proba):
        """Exchange the two columns into the order that the trees use, and back."""
        if not self._turned:
            return proba
        turned = np.ascontiguousarray(np.asarray(proba)[:, ::-1])
        log = getattr(proba, "_log", None)
        return (
            turned
            if log is None
            else attach_log_proba(turned, np.ascontiguousarray(log[:, ::-1]))
        )

    def _compute_clipped_log_odds(self, proba):
        return _clip_log_odds(clip_to_floor(proba, self.floor_))

    def _list_fold_pairs(self, data):
        """Return pairs (train, test) of positions among the rows with positive weight."""
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            cv = min(int(cv), int(np.bincount(data.y_encoded, minlength=2).min()))
            if cv < 2:
                warn_calibration(
                    expected="at least two rows of each class",
                    got=f"{cv}",
                    hint=(
                        "Without them no number of rounds can be judged, and the probabilities "
                        "stay as they are"
                    ),
                    estimator=self,
                )
                return []
            warn_repeated_rows(
                data.proba,
                data.y_encoded,
                "Pass cv= as pairs (train, test) that keep together what belongs together",
            )
        if isinstance(cv, Iterable) and not hasattr(cv, "split"):
            cv = [*cv]
            check_cv_pairs(cv)
            return [
                (
                    _find_positions_in_known_rows(train, data.items),
                    _find_positions_in_known_rows(test, data.items),
                )
                for train, test in cv
            ]
        # The copies of a row with soft labels must be in one fold.
        soft = len(np.unique(data.items)) < len(data.items)
        return list(make_folds(data.y_encoded, cv, groups=data.items if soft else None))


def _find_positions_in_known_rows(rows, known_rows):
    """Return the positions of rows among known ones; unknown rows were left out."""
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    return np.concatenate(
        [np.arange(*ends) for ends in _iter_known_row_ranges(rows, known_rows)]
        or [rows[:0]]
    )


def _iter_known_row_ranges(rows, known_rows):
    """Return the start and end of the run of equal numbers of each row."""
    starts, ends = (
        np.searchsorted(known_rows, rows, side) for side in ("left", "right")
    )
    return zip(starts, ends, strict=True)


def _is_second_class_more_frequent(data):
    """Return 1 if the second class is more frequent, so that the trees exchange the classes.

    Of two equally frequent classes they see that of the first row as the second: a swap
    of the classes changes the order in which they come and nothing that is computed.
    """
    share = np.bincount(data.y_encoded, data.weight, minlength=2)
    if np.isclose(*share, rtol=1e-12, atol=0.0):
        return int(data.y_encoded[0] == 0)
    return int(share[1] > share[0])


def _clip_log_odds(proba):
    return np.clip(compute_log_odds(proba), -MAX_ABS_LOG_ODDS, MAX_ABS_LOG_ODDS)


def _check_group_columns(data):
    """Raise an error for too many columns, or one with the reserved name."""
    if len(data.group_columns) > MAX_GROUP_COLUMNS:
        raise invalid_input(
            expected=f"at most {MAX_GROUP_COLUMNS} columns of groups",
            got=f"{len(data.group_columns)}",
            hint=(
                "Pass the columns that the groups are made of instead of one mask for "
                "each group: trees combine them"
            ),
        )
    if SCORE_FEATURE_NAME in data.group_columns:
        raise invalid_input(
            expected=f"columns with names other than {SCORE_FEATURE_NAME!r}",
            got=repr(SCORE_FEATURE_NAME),
            sentence=(
                f"The name {SCORE_FEATURE_NAME!r} is reserved for the score and cannot be the name "
                "of a column"
            ),
            hint="Rename it",
        )
