"""The mean of expensive labels from cheap scores of all rows."""

from collections import Counter
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from .._argument_checks import (
    check_level,
    is_real_number,
    is_scalar_equal,
    validate_count,
)
from .._kernels._prediction_powered_mean import (
    count_effective_clusters,
    sum_clusters_if_any,
)
from .._show import quote_text
from .._typing import AnyArray, ArrayLike, FloatArray, IntArray, RecalibratorLike
from .._validation import (
    canonical_proba,
    canonical_weight,
    check_and_get_common_index,
    check_same_length,
    is_missing_or_infinite,
    raise_if_single_column_class_unclear,
    read_array,
    read_labels,
    read_numeric_array,
)
from .._warnings import ignore_calibration_warnings, warn_calibration
from ..exceptions import add_error_context, invalid_combination, invalid_input
from ..recalibrators import (
    encode_groups,
    fit_clone,
    predict_proba_aligned,
    resolve_recalibrator,
)
from ._calibrated_mean_result import (
    CalibratedMean,
    EstimateErrorsByUnit,
    build_calibrated_mean,
)

#: The default: a line, logistic if the outcome is a share.
LINE_METHOD = "line"
# More distinct labels are rejected if they exceed the number of labelled rows.
_MAX_DISTINCT_VERDICTS = 20


class _MeanInput(NamedTuple):
    """Scores of all rows, labelled ones first, and the labels of these."""

    # Numeric scores of all rows, scaled to [0, 1] if `is_bounded`; None for verdicts.
    number: FloatArray | None
    # Codes of the verdicts of all rows; None for numbers.
    verdict: IntArray | None
    # The scores of labelled rows, unchanged.
    labelled_scores: AnyArray
    is_bounded: bool
    # Labels and weights of labelled rows.
    outcome: FloatArray = np.empty(0)
    weight: FloatArray = np.empty(0)
    # Codes of the clusters of all rows, and the name of each cluster.
    cluster: IntArray | None = None
    cluster_names: AnyArray | None = None

    @property
    def n_rows(self) -> int:
        """Return the number of rows, labelled or not."""
        return len(self.number if self.verdict is None else self.verdict)  # type: ignore[arg-type]

    @property
    def n_labelled_units(self) -> int:
        """Return the number of labelled rows, or of clusters with labelled rows."""
        n = len(self.outcome)
        return n if self.cluster is None else len(np.unique(self.cluster[:n]))


# A map needs this many labelled rows, or clusters of them.
MIN_LABELLED_UNITS_FOR_MAP = 10
# The warning needs this many labelled rows, counted in units of the largest cluster.
MIN_UNITS_FOR_SELECTION_WARNING = 25
# The level of the test that warns of labels that were not drawn at random.
SELECTION_SIGNIFICANCE_LEVEL = 0.001
# If all scores equal their labels in this many rows, they look like one column.
MIN_COPIED_LABEL_ROWS = 5
_SCORE_ARGUMENTS = ("score", "score_unlabelled")
_ONE_LABEL_HINT = "pass labels that are equal to it or not, y == label"


def _make_mean_input_from_judge_scores(score, score_unlabelled, scale):
    """Read scores as numbers, or as codes of verdicts if they are text or booleans."""
    columns = [*map(_check_one_column, (score, score_unlabelled), _SCORE_ARGUMENTS)]
    if any(_is_text_or_bool(values) for values in columns if len(values)):
        return _make_mean_input_from_verdicts(columns)
    labelled = _read_finite_numbers(score, "score")
    unlabelled = _read_finite_numbers(score_unlabelled, "score_unlabelled")
    number = np.concatenate([labelled, unlabelled])
    if scale is not None:
        low, high = _check_low_and_high(
            scale,
            "scale",
            "or None for scores without ends",
        )
        _check_score_range(labelled, "score", low, high)
        _check_score_range(unlabelled, "score_unlabelled", low, high)
        number = (number - low) / (high - low)
    return _MeanInput(number, None, labelled, scale is not None)


def _check_one_column(values, name):
    values = read_array(values, name)
    if values.ndim != 1:
        raise invalid_input(
            expected=f"{name} of one column",
            got=f"shape {values.shape}",
            hint="Pass one number or one verdict for each row",
        )
    return values


def _read_finite_numbers(values, name):
    """Return a column of scores as numbers; reject missing and infinite ones."""
    numbers = np.asarray(read_numeric_array(values, name), dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        row = wrong[0]
        raise invalid_input(
            expected=f"finite numbers as {name}",
            got=f"{numbers[row]}",
            hint="Leave out rows without a score",
            row=row,
        )
    return numbers


def _check_score_range(numbers, name, low, high):
    """Reject scores outside their scale, naming the first row with one."""
    wrong = np.flatnonzero((numbers < low) | (numbers > high))
    if len(wrong):
        row = wrong[0]
        raise invalid_input(
            name,
            expected=f"{name} from {low:g} to {high:g}",
            got=f"{numbers[row]:g}",
            hint=(
                "Say what the lowest and the highest score can be, such as scale=(1, 10), "
                "or scale=None for any numbers"
            ),
            row=row,
        )


def _is_text_or_bool(values):
    if values.dtype.kind == "O":
        return any(isinstance(value, str | bool | np.bool_) for value in values)
    return values.dtype.kind in "bUST"


def _make_mean_input_from_verdicts(columns):
    """Return a number for each verdict; reject unusable ones.

    `columns` holds the scores of labelled rows and those of the others.
    """
    for values, name in zip(columns, _SCORE_ARGUMENTS, strict=True):
        for row, value in enumerate(values.tolist()):
            if is_missing_or_infinite(value):
                raise invalid_input(
                    expected=f"a verdict in every row of {name}",
                    got="none",
                    hint="Drop such rows, or call it a verdict of its own",
                    row=row,
                )
    labelled_scores, other_scores = columns
    verdicts = labelled_scores.tolist() + other_scores.tolist()
    type_counts = Counter(map(_name_value_type, verdicts))
    if len(type_counts) > 1:
        raise invalid_input(
            expected="verdicts of one kind",
            got=" and ".join(
                f"{count} of {type_name}" for type_name, count in type_counts.items()
            ),
            hint="Write the same verdict the same way everywhere",
        )
    names, codes = np.unique([str(value) for value in verdicts], return_inverse=True)
    n = len(labelled_scores)
    # More different texts than labels are free text or identifiers, not verdicts.
    if len(names) > max(_MAX_DISTINCT_VERDICTS, n):
        raise invalid_input(
            expected="verdicts of some classes",
            got=f"{len(names)} different texts",
            hint="Pass the column of the scores",
        )
    # A verdict that no labelled row has would have no mean label.
    has_label = np.bincount(codes[:n], minlength=len(names)) > 0
    if n and not has_label.all():
        name = names[~has_label][0]
        count = int((~has_label[codes]).sum())
        examples = ", ".join(map(quote_text, names[has_label][:5]))
        raise invalid_input(
            expected=f"a label for some rows of each verdict, as for {examples}",
            got=(
                f"none of {quote_text(name)}, and {count} such rows of {len(codes) - n} "
                "without a label"
            ),
            hint="Spell verdicts alike, label some of those rows, or join rare verdicts to others",
        )
    return _MeanInput(None, codes.ravel(), names[codes[:n]], True)


def _name_value_type(value):
    if isinstance(value, bool):
        return "booleans"
    if isinstance(value, str):
        return "text"
    return "bytes" if isinstance(value, bytes) else "numbers"


def _check_low_and_high(pair, name, alternative="") -> tuple[float, float]:
    """Validate the two numbers of a scale or of bounds."""
    if np.ndim(pair) == 1 and len(pair) == 2 and all(map(is_real_number, pair)):
        low, high = map(float, pair)
        if -np.inf < low < high < np.inf:
            return low, high
    raise invalid_input(
        expected=f"{name} as (lowest, highest) {alternative}".strip(),
        got=repr(pair)[:60],
        hint="Pass for instance (1, 10)",
    )


def _read_bounds_if_any(bounds, outcome):
    """Return the validated bounds of labels that are numbers, or None."""
    if bounds is None:
        return None
    low, high = _check_low_and_high(bounds, "bounds")
    wrong = np.flatnonzero((outcome < low) | (outcome > high))
    if len(wrong):
        row = wrong[0]
        raise invalid_input(
            expected=f"labels within bounds, {low:g} to {high:g}",
            got=f"{outcome[row]:g}",
            hint="Pass wider ones",
            row=row,
        )
    return low, high


def calibrated_mean(
    y: ArrayLike,
    score: ArrayLike,
    score_unlabelled: ArrayLike,
    *,
    recalibrator: RecalibratorLike | None = LINE_METHOD,
    scale: tuple[float, float] | None = (0, 1),
    pos_label: object = None,
    bounds: tuple[float, float] | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    groups_unlabelled: ArrayLike | None = None,
    power: float | Literal["auto"] = "auto",
    cv: int = 5,
    level: float = 0.95,
) -> CalibratedMean:
    """Estimate the mean label of all rows from a few labels and a score for every row.

    For a judge that scored every answer while people labelled 200 of them. The scores
    are recalibrated on the labelled rows, averaged over all rows, and corrected by what
    the labelled rows show to be left: right on average for any judge, and never
    less certain than the mean of the labels.

    Parameters
    ----------
    y : array-like of shape (n_labelled,)
        Labels of rows drawn at random: two classes (the result is a share), or numbers
        (a mean). Numbers that are all 0 or 1 are a share too.
    score : array-like of shape (n_labelled,)
        The judge's scores of these rows: numbers within `scale`, or verdicts (text or
        booleans).
    score_unlabelled : array-like of shape (n_unlabelled,)
        Those of all other rows.
    recalibrator : str, recalibrator or None, default="line"
        The map from scores to expected labels, fitted in folds. "line": `PlattScaling`
        for a share, least squares for a mean. Else a name or an instance, see
        `all_recalibrators`; numbers are taken for shares of the way from the least
        label to the most. "isotonic" follows any rising curve, "auto" takes seconds.
        None: the scores as they are, on their scale; of numbers the labels must be on
        that scale too. Verdicts have the mean label of each.
    scale : tuple of two floats or None, default=(0, 1)
        The lowest and the highest score possible, such as (1, 10). None: any numbers.
    pos_label : label, default=None
        The class whose share is estimated. Required if labels are text or other things
        without a natural order.
    bounds : tuple of two floats, default=None
        The least and the greatest label possible, if labels are numbers: intervals
        end there. Of numbers that are all 0 or 1, the share of the 1, unless these
        bounds are others.
    sample_weight : array-like of shape (n_labelled,), default=None
        1 / probability that the row was labelled, up to a factor, if these differ.
    groups : array-like of shape (n_labelled,), default=None
        Rows that belong together, such as answers to one question: standard errors are
        those of clusters, and no cluster is split between folds.
    groups_unlabelled : array-like of shape (n_unlabelled,), default=None
        The same of the other rows; needed with `groups`.
    power : "auto" or float in [0, 1], default="auto"
        How much the scores count: what makes the variance least, or a number.
    cv : int, default=5
        Folds, at least 2.
    level : float in (0, 1), default=0.95

    Returns
    -------
    found : CalibratedMean

    Raises
    ------
    ValueError
        No labels, or fewer than two rows or clusters of them; labels that are missing,
        of three classes, of text without `pos_label`, or equal numbers other than 0 and
        1 without `bounds`; scores that are missing or outside `scale`; groups of a part
        of the rows; weights that are not above 0; an option outside its range.
    TypeError
        Scores that are neither numbers nor text.

    Warns
    -----
    CalibrationWarning
        The scores of labelled rows differ from those of the others beyond chance (see
        Notes): a mean of all rows cannot be estimated from labels of the highest
        scores. Pass `sample_weight`. Or all rows are labelled, fewer than 10 rows or
        clusters are, or all labels are of one class: the result is that of the labels
        alone. Or the scores equal the labels, as if both came from one column.

    Notes
    -----
    With g the cross-fitted map, the estimate is the mean of power g(score) over all
    rows plus the mean of y - power g(score) over labelled ones. The power that makes
    the variance least over [0, 1] is taken, so the standard error is at most that of
    the labels; a useless or reversed judge gets what its map makes of it. Errors are
    added up by row or cluster, with a factor n / (n - 2) and Student's t with n - 1
    degrees of freedom; n counts labelled rows or clusters, effective ones under
    weights. Intervals of shares are Clopper and Pearson's, of so many more rows as the
    scores are worth: they hold near 0 and 1; the usual ones do not. Of rare
    labels both tails are not equal: with 2 % events in 100 labels the 95 % interval was
    too high in 0.027 of 300 draws and never too low.

    The rows stand for a population larger than themselves, and labelled ones must be
    drawn from all of them at random (with `sample_weight`: with known probabilities).
    Scores can contradict that: `selection_pvalue` tests whether ranks of labelled
    scores and their squares (of verdicts the two most frequent ones) have the mean of
    all rows, by a chi-squared law with the variance of draws without replacement; of
    clusters by Hotelling's law. A warning is given below 0.001; of clusters if none has
    more than 1/25 of the labelled rows. Rows with unequal weights are not tested, since
    chance may have left out the largest ones. Measured false alarms:
    ``benchmarks/calibrated_mean/selection.py``.

    Folds are the same for the same rows in any order. Cost: `cv` fits on the labelled
    rows and predictions of all rows, some 15 ms for 200 of 5000. Measured coverage:
    ``benchmarks/calibrated_mean``.

    References
    ----------
    Angelopoulos, Duchi, Zrnic (2023), "PPI++: efficient prediction-powered inference",
    section 6, for the power. Zrnic, Candès (2024), "Cross-prediction-powered
    inference", for the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference import calibrated_mean
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> y = (rng.random(200) < p[:200]).astype(int)  # only 200 labels
    >>> found = calibrated_mean(y, p[:200] ** 2, p[200:] ** 2)  # and scores that are too low
    >>> found.low < 0.5 < found.high, found.se < found.labels_se
    (True, True)
    """
    check_level(level)
    n_folds = validate_count(cv, "cv", 2)
    is_tuned = isinstance(power, str)
    is_valid = (
        power == "auto" if is_tuned else is_real_number(power) and 0 <= power <= 1
    )
    if not is_valid:
        raise invalid_input(
            expected="power 'auto' or from 0 to 1",
            got=repr(power),
            hint="0 is the labels alone",
        )
    outcome, positive, is_share = _read_outcome_numbers(y, pos_label)
    scores = _make_mean_input_from_judge_scores(score, score_unlabelled, scale)
    check_same_length(outcome, scores.labelled_scores)
    check_and_get_common_index(y, score, sample_weight, groups)
    check_and_get_common_index(score_unlabelled, groups_unlabelled)
    if bounds is not None and positive is not None:
        raise invalid_combination(
            "bounds",
            "labels of classes",
            hint="Leave bounds out: a share is between 0 and 1",
        )
    limits = _read_bounds_if_any(bounds, outcome)
    # Labels that are all 0 or 1 are a mean of numbers if bounds allow others, say 5.
    is_share = is_share and limits in (None, (0.0, 1.0))
    limits = (0.0, 1.0) if is_share else limits
    rows = _read_mean_rows(scores, outcome, sample_weight, groups, groups_unlabelled)
    _check_interval_exists(rows, limits, recalibrator)
    _warn_if_scores_equal_labels(rows, y)
    pvalue = _test_random_labelling_and_warn(rows)
    if is_tuned and _warn_if_map_useless(rows):
        is_tuned = False
        power = 0.0
    fixed_power = None if is_tuned else float(power)
    raw_mean = float("nan") if scores.number is None else float(scores.number.mean())
    return build_calibrated_mean(
        _cross_fit_estimate_errors_by_unit(rows, recalibrator, n_folds, fixed_power),
        float(np.average(outcome, weights=rows.weight)),
        level,
        "share" if is_share else "mean",
        raw=raw_mean,
        positive=positive,
        bounds=limits,
        n_clusters=None if rows.cluster_names is None else rows.n_labelled_units,
        selection_pvalue=pvalue,
    )


def _read_outcome_numbers(y, pos_label) -> tuple[FloatArray, object, bool]:
    """Read labels as numbers, with the positive class, and whether the mean is a share."""
    with add_error_context("y"):
        labels = read_array(y, "labels")
        if labels.ndim == 1 and not labels.size:
            raise invalid_input(
                expected="rows with labels",
                got="none",
                hint="Label some rows drawn at random",
            )
        if pos_label is None and _is_numeric_or_bool(labels):
            numbers = np.asarray(read_numeric_array(y, "labels"), dtype=np.float64)
            if numbers.ndim != 1:
                raise invalid_input(
                    expected="labels of one column",
                    got=f"shape {numbers.shape}",
                    hint="Pass one label for each row",
                )
            wrong = np.flatnonzero(~np.isfinite(numbers))
            if len(wrong):
                row = wrong[0]
                raise invalid_input(
                    expected="a label in every row",
                    got=f"{numbers[row]}",
                    hint="Pass the rows without a label as score_unlabelled",
                    row=row,
                )
            return numbers, None, bool(np.isin(numbers, (0, 1)).all())
    classes, codes = read_labels(y, input_name="y")
    if len(classes) > 2:
        raise invalid_input(
            expected="labels of two classes, or numbers",
            got=f"{len(classes)}: {classes[:5].tolist()}",
            hint="For the share of one of them " + _ONE_LABEL_HINT,
        )
    names = classes.tolist()
    if pos_label is None:
        if len(names) == 1:
            raise invalid_input(
                expected="labels of two classes",
                got=f"one, {names[0]!r}",
                hint="Name the class whose share it is with pos_label=",
            )
        raise_if_single_column_class_unclear(codes, classes, "pos_label")
        return codes.astype(np.float64), names[1], True
    if len(names) == 2 and pos_label not in names:
        raise invalid_input(
            "pos_label",
            expected=f"pos_label among {names}",
            got=repr(pos_label),
            hint="Pass one of them",
        )
    event = [is_scalar_equal(pos_label, label) for label in names]
    return np.asarray(event, dtype=np.float64)[codes], pos_label, True


def _is_numeric_or_bool(labels):
    if labels.dtype.kind == "O":
        return not any(isinstance(value, str | bytes) for value in labels.ravel())
    return labels.dtype.kind in "biuf"


def _read_mean_rows(mean_input, outcome, sample_weight, groups, groups_unlabelled):
    """Add labels, weights and clusters, validated, to the scores."""
    n = len(outcome)
    total = mean_input.n_rows
    weight = canonical_weight(sample_weight, n)
    wrong = np.flatnonzero(weight <= 0)
    if len(wrong):
        raise invalid_input(
            "sample_weight",
            expected="sample_weight above 0",
            got="0",
            hint="Pass 1 / probability that the row was labelled",
            row=wrong[0],
        )
    # Weights with mean 1, so that shrinkage by one row means the same for all weights.
    weight = weight * (n / weight.sum())
    if groups is None and groups_unlabelled is None:
        return mean_input._replace(outcome=outcome, weight=weight)
    if groups is None or (groups_unlabelled is None and total > n):
        raise invalid_input(
            expected="groups and groups_unlabelled",
            got="only one of them",
            hint="Name the cluster of every row",
        )
    labelled_groups = read_array(groups, "groups")
    other_groups = labelled_groups[:0]
    if groups_unlabelled is not None:
        other_groups = read_array(groups_unlabelled, "groups")
    if len(labelled_groups) != n or len(other_groups) != total - n:
        raise invalid_input(
            expected=f"{n} groups and {total - n} groups_unlabelled",
            got=f"{len(labelled_groups)} and {len(other_groups)}",
            hint="Pass one for each row",
        )
    names = np.concatenate([labelled_groups, other_groups])
    codes = encode_groups(names, total)
    # Rows are written from the last to the first, so the first row of each cluster stays.
    first_row = np.zeros(codes.max() + 1, dtype=np.intp)
    first_row[codes[::-1]] = np.arange(total)[::-1]
    cluster_names = np.array([str(key) for key in names[first_row].tolist()])
    return mean_input._replace(
        outcome=outcome,
        weight=weight,
        cluster=codes,
        cluster_names=cluster_names,
    )


def _check_interval_exists(rows, limits, recalibrator):
    """Reject labels and options for which an interval does not exist."""
    unit = "rows" if rows.cluster is None else "clusters"
    if rows.n_labelled_units < 2:
        raise invalid_input(
            expected=f"labels of two {unit} or more",
            got="a label of only one",
            hint="Label more of them, drawn at random",
        )
    if limits is None and np.ptp(rows.outcome) == 0:
        raise invalid_input(
            expected="labels that differ",
            got=f"{rows.outcome[0]:g} in all rows",
            hint=(
                "Say between which numbers labels can be, such as bounds=(1, 5), or label "
                "more rows"
            ),
        )
    if recalibrator is None and rows.number is None:
        raise invalid_input(
            "recalibrator",
            expected="scores that are numbers with recalibrator=None",
            got="verdicts",
            hint="Leave recalibrator out: each verdict gets the mean of its labels",
        )


def _warn_if_map_useless(rows) -> bool:
    """Return whether scores cannot help, with a warning that gives the reason."""
    n = len(rows.outcome)
    units = rows.n_labelled_units
    alone = "The result is that of the labels alone"
    if rows.n_rows == n:
        warn_calibration(
            expected="rows without a label", got="labels in all rows", hint=alone
        )
    elif units < MIN_LABELLED_UNITS_FOR_MAP:
        warn_calibration(
            expected="at least ten labelled rows or clusters for a map of scores",
            got=f"{units} {'rows' if rows.cluster is None else 'clusters'}",
            hint=alone,
        )
    elif np.ptp(rows.outcome) == 0:
        warn_calibration(
            expected="labels that differ for a map of scores",
            got="one class",
            hint=alone,
        )
    else:
        return False
    return True


def _test_random_labelling_and_warn(rows) -> float | None:
    """Return the p-value of labels drawn at random, given the scores; warn if it is small.

    Two numbers of each row, its rank and the square of that, catch labels of high, of
    low and of middling scores; for verdicts they show whether it is the first or the
    second most frequent one.
    """
    n = len(rows.outcome)
    total = rows.n_rows
    if n == total or np.ptp(rows.weight) > 0:
        return None
    if rows.verdict is None:
        # Labels drawn by the size of the score shift its ranks; drawn at both ends,
        # they shift the squares of the ranks.
        rank = stats.rankdata(rows.number) / total - 0.5
        statistics = np.column_stack([rank, rank**2])
    else:
        frequent = np.argsort(-np.bincount(rows.verdict), kind="stable")[:2]
        statistics = (rows.verdict[:, None] == frequent).astype(np.float64)
    if not np.ptp(statistics, axis=0).any():
        return None
    statistics -= statistics.mean(axis=0)
    gap = statistics[:n].mean(axis=0)
    if rows.cluster is None:
        # The covariance of a mean of n of `total` rows, drawn without replacement.
        covariance = statistics.T @ statistics / (total - 1) * (1 / n - 1 / total)
        units = np.inf
    else:
        # The difference of the two means as a sum over rows, whose squares by cluster
        # estimate its covariance.
        deviation = -statistics / total
        deviation[:n] += statistics[:n] / n
        n_clusters = len(rows.cluster_names)
        errors = np.column_stack(
            [
                sum_clusters_if_any(column, rows.cluster, n_clusters)
                for column in deviation.T
            ]
        )
        covariance = errors.T @ errors
        # The number of clusters that counts, if all were as large as the largest.
        units = max(n / np.bincount(rows.cluster[:n]).max(), 2.0)
    # Two statistics can be collinear, for instance of two verdicts: the pseudoinverse
    # tests as many directions as there are.
    rank = np.linalg.matrix_rank(covariance, hermitian=True)
    chi_square = gap @ np.linalg.pinv(covariance, hermitian=True) @ gap
    if np.isinf(units):
        pvalue = float(stats.chi2.sf(chi_square, rank))
    else:
        # The covariance is estimated from the clusters: Hotelling's T^2, as an F law.
        freedom = max(units - rank, 1.0)
        ratio = chi_square * freedom / (rank * (units - 1))
        pvalue = float(stats.f.sf(ratio, rank, freedom))
    if (
        pvalue < SELECTION_SIGNIFICANCE_LEVEL
        and units >= MIN_UNITS_FOR_SELECTION_WARNING
    ):
        warn_calibration(
            expected="labelled rows drawn at random from all rows",
            got=(
                "scores of labelled rows that differ from the others' beyond chance, "
                f"with p = {pvalue:.1g}"
            ),
            hint=(
                "The mean of all rows cannot be estimated from such labels: label rows drawn "
                "at random, or pass 1 / probability that the row was labelled as "
                "sample_weight="
            ),
        )
    return pvalue


def _warn_if_scores_equal_labels(rows, y):
    """Warn if the scores of labelled rows equal the labels or their complement."""
    n = len(rows.outcome)
    scores = rows.labelled_scores
    if rows.verdict is None:
        are_equal = np.array_equal(scores, rows.outcome)
        are_equal = are_equal or np.array_equal(scores, 1 - rows.outcome)
        are_equal = are_equal and np.ptp(scores) > 0
    else:
        labels = [str(label) for label in np.asarray(y).tolist()]
        are_equal = len(np.unique(scores)) > 1 and scores.tolist() == labels
    # Scores that equal the labels were probably computed from them, or are the wrong
    # column.
    if n >= MIN_COPIED_LABEL_ROWS and are_equal:
        warn_calibration(
            expected="scores that are not the labels",
            got=f"equal ones in all {n} labelled rows: it looks like the same column",
            hint="Check where the scores come from",
        )


def _cross_fit_estimate_errors_by_unit(rows, recalibrator, n_folds, power_if_fixed):
    """Compute the errors of labels by row or cluster, and what the scores remove from them."""
    n = len(rows.outcome)
    total = rows.n_rows
    weight_share = rows.weight / rows.weight.sum()
    n_units = total if rows.cluster_names is None else len(rows.cluster_names)
    labelled_clusters = None if rows.cluster is None else rows.cluster[:n]
    labelled_map, mean_map = _cross_fit_centred_labelled_and_mean_maps(
        rows, recalibrator, n_folds, weight_share
    )
    shift = float(weight_share @ labelled_map)
    label_error = np.zeros(total)
    # Equal labels have an error of exactly 0; their rounded mean would not give that.
    if np.ptp(rows.outcome) > 0:
        label_error[:n] = weight_share * (rows.outcome - weight_share @ rows.outcome)
    score_gain = np.zeros(total)
    score_gain[:n] = weight_share * (labelled_map - shift)
    # The mean of the map over all rows is estimated too: each row, labelled or not,
    # adds its part of that error.
    score_gain -= mean_map / total
    unit_errors = sum_clusters_if_any(label_error, rows.cluster, n_units)
    unit_gains = sum_clusters_if_any(score_gain, rows.cluster, n_units)
    return EstimateErrorsByUnit(
        label_errors=unit_errors,
        score_gains=unit_gains[:, None],
        cluster_names=rows.cluster_names,
        shifts=np.array([shift]),
        n_effective=count_effective_clusters(rows.weight, labelled_clusters),
        n_labelled=n,
        n_samples=total,
        is_tuned=power_if_fixed is None,
        power=np.array([power_if_fixed or 0.0]),
    )


def _cross_fit_centred_labelled_and_mean_maps(
    rows, recalibrator, n_folds, weight_share
):
    """Return out-of-fold maps of labelled rows, and the mean map of all rows.

    Each map is centred over all rows: the maps of the folds differ most in their
    heights, which tell rows apart no better.
    """
    n = len(rows.outcome)
    total = rows.n_rows
    if recalibrator is None:
        centred = rows.number - rows.number.mean()
        return centred[:n], centred
    fit_map = _make_fit_and_predict_function(rows, recalibrator)
    labelled_map = np.zeros(n)
    mean_map = np.zeros(total)
    folds = _assign_labelled_rows_to_folds(rows, n_folds)
    for number in range(folds.max() + 1):
        is_test = folds == number
        fold_map = fit_map(np.flatnonzero(~is_test))
        # A map that is centred over all rows changes the estimate only by what labelled
        # rows differ from the others.
        fold_map = fold_map - fold_map.mean()
        labelled_map[is_test] = fold_map[:n][is_test]
        # Each fold has its own map, so the mean over all rows averages the maps by the
        # weight of their folds.
        mean_map += weight_share[is_test].sum() * fold_map
    return labelled_map, mean_map


def _assign_labelled_rows_to_folds(rows, n_folds):
    """Assign labelled rows to folds with similar labels; clusters stay whole.

    Rows are put into an order of their own first, so that the order they came in does
    not matter.
    """
    n = len(rows.outcome)
    number = rows.verdict if rows.number is None else rows.number
    unit = np.arange(n)
    if rows.cluster is not None:
        unit = np.unique(rows.cluster[:n], return_inverse=True)[1].ravel()
    mass = np.bincount(unit, weights=rows.weight)
    mean_label = np.bincount(unit, weights=rows.weight * rows.outcome) / mass
    mean_score = np.bincount(unit, weights=rows.weight * number[:n]) / mass
    # Folds with similar labels have similar maps. Ties are broken at random but always
    # alike, so that the order of the rows does not matter.
    order = np.lexsort((mass, mean_score, mean_label))
    shuffled = np.random.default_rng(0).permutation(len(order))
    order = order[shuffled]
    order = order[np.argsort(mean_label[order], kind="stable")]
    fold = np.empty(len(order), dtype=np.intp)
    fold[order] = np.arange(len(order)) % min(n_folds, len(order))
    return fold[unit]


# -- maps from scores to expected labels, fitted to the labelled rows `train` --------------------


def _make_fit_and_predict_function(rows, method):
    """Return the function of labelled rows that fits the map of a method."""
    if rows.verdict is not None:
        return partial(_average_labels_by_verdict, rows)
    are_binary = bool(np.isin(rows.outcome, (0, 1)).all())
    is_line = is_scalar_equal(method, LINE_METHOD)
    if is_line and not are_binary:
        return partial(
            _map_scores_or_repeat_mean_label, rows, _predict_by_least_squares
        )
    method = resolve_recalibrator("platt" if is_line else method)
    proba = _squash_unbounded_scores_to_proba(rows)
    fit = partial(
        _recalibrate_all_scores, method=method, proba=proba, are_binary=are_binary
    )
    return partial(_map_scores_or_repeat_mean_label, rows, fit)


def _average_labels_by_verdict(rows, train):
    """Compute the mean label of each verdict, shrunk by one row of the mean of all."""
    outcome = rows.outcome[train]
    weight = rows.weight[train]
    verdict = rows.verdict
    codes = verdict[train]
    n_names = int(verdict.max()) + 1
    mean_label = np.average(outcome, weights=weight)
    total = np.bincount(codes, weights=weight * outcome, minlength=n_names)
    mass = np.bincount(codes, weights=weight, minlength=n_names)
    return ((total + mean_label) / (mass + 1))[verdict]


def _map_scores_or_repeat_mean_label(rows, fit_map, train):
    """Fit a map, or return the mean label if all labels or all scores are equal."""
    number = rows.number
    outcome = rows.outcome[train]
    weight = rows.weight[train]
    if np.ptp(outcome) == 0 or np.ptp(number[train]) == 0:
        return np.full(len(number), np.average(outcome, weights=weight))
    return fit_map(number, train, outcome, weight)


def _predict_by_least_squares(number, train, outcome, weight):
    """Fit a line by least squares."""
    x = number[train]
    mean_score = np.average(x, weights=weight)
    mean_label = np.average(outcome, weights=weight)
    weighted = weight * (x - mean_score)
    slope = weighted @ (outcome - mean_label) / (weighted @ (x - mean_score))
    return mean_label + slope * (number - mean_score)


def _recalibrate_all_scores(
    number, train, outcome, weight, *, method, proba, are_binary
):
    """Fit a recalibrator; numbers become fractions of the range of the outcome."""
    low = outcome.min()
    high = outcome.max()
    if are_binary:
        fit_rows = train
        codes = outcome.astype(np.intp)
    else:
        position = (outcome - low) / (high - low)
        # Recalibrators take labels, so a number between the ends is a row with the
        # event and one without, weighted by its position.
        fit_rows = np.tile(train, 2)
        codes = np.repeat([1, 0], len(train))
        weight = np.concatenate([weight * position, weight * (1 - position)])
        has_weight = weight > 0
        fit_rows = fit_rows[has_weight]
        codes = codes[has_weight]
        weight = weight[has_weight]
    classes = np.arange(2)
    # A warning about the fit of a fold does not concern users: its map is not kept.
    with ignore_calibration_warnings():
        fitted = fit_clone(method, proba[fit_rows], codes, classes, weight)
        mapped = predict_proba_aligned(fitted, proba, classes)[:, 1]
    return mapped if are_binary else low + (high - low) * mapped


def _squash_unbounded_scores_to_proba(scores):
    """Convert scores to probabilities; unbounded ones are scaled log-odds."""
    number = scores.number
    if scores.is_bounded:
        return canonical_proba(number)
    z = number - number.mean()
    deviation = number.std()
    if deviation > 0:
        z /= deviation
    return canonical_proba(z, kind="logits")
