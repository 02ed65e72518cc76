"""Rows that their own digits draw, of files of any size: several classes, logits, groups, features.

They are read together with the summary of all rows; if none is left out they are all
rows, so what is learnt from them does not depend on how the rows were read.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files.columns import TableBlock
from .._show import make_printable
from ._classes import check_column_order, find_reversed_scores_error
from ._console import print_note
from ._messages import invalid_option
from ._prediction_batches import PredictionBatch
from ._request import Request, parse_column_names_expanding_lists
from ._tables import infer_text_column, make_frame_with_numbers_and_dates

if TYPE_CHECKING:
    from ..decomposition import LossDecomposition
    from ..inference import PairedDifference
    from ..summary import (
        CalibrationSummary,
        CellSample,
        DrawAndScoreOptions,
        DrawnSample,
        HeldOutPredictions,
    )

# Features are tried on at most this many rows.
MAX_FEATURE_ROWS = 20_000


def make_draw_options(
    options: Request, features: Sequence[str], rows: bool
) -> "DrawAndScoreOptions":
    """Return what to draw beside a summary, and how to read the scores.

    Parameters
    ----------
    options : Namespace
    features : sequence of str
        The columns of ``--features``.
    rows : bool
        Whether rows are needed; else cells suffice.
    """
    from ..summary import DrawAndScoreOptions

    n_rows = None if rows else 0
    return DrawAndScoreOptions(
        MAX_FEATURE_ROWS if features else n_rows,
        tuple(features),
        options.group,
        options.score_kind,
        options.sum_tolerance,
        options.percent,
    )


def get_checked_sample(
    summary: "CalibrationSummary", options: Request
) -> "DrawnSample":
    """Return the drawn rows; columns in another order than that of the classes are rejected."""
    reject_empty_summary(summary)
    classes: Any = summary.classes
    sample = None
    if summary.drawn is not None:
        sample = summary.drawn.get_sample(classes, options.score_kind)
    if sample is None:
        raise invalid_option(
            expected="rows, or a summary of two classes",
            got=f"a summary of {len(classes)} classes",
            hint="Give the rows themselves",
        )
    # The order of the columns is checked on the sample, since cells of several classes
    # do not keep whole rows.
    predictions = sample.predictions
    check_column_order(
        classes[sample.codes],
        predictions.proba,
        classes,
        sample.scores.shape[1],
        options,
        predictions.weight,
    )
    return sample


def check_scores_not_reversed(
    summary: "CalibrationSummary", options: Request, classes: Any = None
) -> None:
    """Reject one column that falls with its class; of a saved summary it was named before."""
    is_single = (
        len(parse_column_names_expanding_lists(options.prob or (), ())) == 1
        or classes is not None
    )
    known_classes: Any = summary.classes if classes is None else classes
    if (
        not is_single
        or len(known_classes) != 2
        or options.label is None
        or not summary.n_samples
    ):
        return
    error = find_reversed_scores_error(
        summary.samples()[0].backwards, known_classes, options
    )
    if error is not None:
        if options.any_order is not None or not options.soft_labels:
            raise error
        print_note(str(error))  # no option confirms it


def reject_empty_summary(summary: "CalibrationSummary") -> None:
    """Reject a summary that rows of no weight, or no rows, were made into."""
    if not summary.n_samples:
        raise invalid_option(
            expected="rows of positive weight", got="none", hint="Check the files"
        )


def compute_feature_gains_if_enough_rows(
    summary: "CalibrationSummary", options: Request
) -> "LossDecomposition | None":
    """Return what a better use of the features gains, of drawn rows.

    None if they are too few.
    """
    from ..decomposition import decompose_by_features, has_enough_rows_for_features

    sample = get_checked_sample(summary, options)
    print_note(f"--features: a sample of {sample.n_drawn:,} rows")
    frame = sample.extras.copy()
    decimal = options.csv_options.get("decimal")
    for name in frame.columns:
        frame[name] = infer_text_column(frame[name], decimal)
    features = make_frame_with_numbers_and_dates(
        TableBlock(frame, options.files[0], decimal)
    )
    if not has_enough_rows_for_features(sample.predictions):
        return None
    return decompose_by_features(sample.predictions, features)


def encode_clusters(drawn: "DrawnSample", options: Request) -> Any:
    """Return the column of ``--cluster`` as numbers from 0, of the drawn rows; None without."""
    from ..recalibrators import encode_groups

    named = _read_cluster_texts(drawn, options)
    return None if named is None else encode_groups(named, len(drawn.codes))


def _read_cluster_texts(drawn, options):
    """Return the column of ``--cluster`` as text, or None."""
    if options.group is None:
        return None
    column = infer_text_column(
        drawn.extras.iloc[:, -1], options.csv_options.get("decimal")
    )
    return column.astype(str).to_numpy()


def describe_rows(n_seen: int, n_fitted: int, classes: Any, cells: str = "") -> str:
    """Return how many rows there are, of which classes, and how many of them a map is fitted to."""
    names = ", ".join(make_printable(label, 40) for label in classes.tolist())
    description = f"{n_seen} rows{cells}, classes {names}"
    if n_fitted >= n_seen:
        return description
    return (
        f"{description}\nfitted to {n_fitted:,} of these {n_seen:,} rows, which their "
        "own digits draw: "
        "the same ones in any order; classes with few rows keep more of them"
    )


def repeat_soft_label_items_up_to_max_rows(
    drawn: "DrawnSample", names: list[str], options: Request
) -> PredictionBatch:
    """Return drawn items of soft labels as rows, no more than `get_max_sample_rows` of them.

    Parameters
    ----------
    drawn : DrawnSample
        Which keep their shares before the column of ``--cluster``.
    names : list of str
        The columns of scores.
    options : Namespace
    """
    from .._validation import read_proba
    from ..summary import get_max_sample_rows

    ends = np.cumsum(drawn.counts)
    max_rows = get_max_sample_rows(len(drawn.classes))
    place = np.arange(ends[-1])
    if len(place) > max_rows:  # items that are alike are counted: each is one of them
        # A fixed seed: the same rows give the same map.
        chosen = np.random.default_rng(0).choice(
            len(place), max_rows, replace=False, shuffle=False
        )
        place = np.sort(chosen)
    rows = np.searchsorted(ends, place, side="right")
    together = _read_cluster_texts(drawn, options)
    shares = drawn.extras.iloc[
        rows, : drawn.extras.shape[1] - (together is not None)
    ].to_numpy()
    together = None if together is None else together[rows]
    scores = drawn.scores[rows]
    if options.score_kind == "logits":
        scores = read_proba(scores, kind="logits")
    labels = shares[:, 0] if shares.shape[1] == 1 else shares
    return PredictionBatch(
        labels,
        scores,
        drawn.weight_per_count[rows],
        cluster=together,
        names=names,
        classes=drawn.classes,
    )


def compare_losses(
    sample: "DrawnSample | CellSample",
    held_out: "HeldOutPredictions",
    loss_before: float,
    level: float,
    groups: Any = None,
) -> "PairedDifference":
    """Return the log loss before and after, of rows that no fit has seen.

    Parameters
    ----------
    sample : DrawnSample or CellSample
    held_out : HeldOutPredictions
        The rows of the sample after recalibration.
    loss_before : float
        That of all rows as given.
    level : float
    groups : ndarray of shape (n_rows,), default=None
        Numbered from 0.
    """
    from scipy.special import ndtri

    from ..inference import PairedDifference
    from ..metrics import LogLoss, log_loss

    of_rows = LogLoss().compute_row_losses
    before = of_rows(sample.predictions.proba, sample.predictions.codes)[
        held_out.sample_indices
    ]
    moved = of_rows(held_out.predictions.proba, held_out.predictions.codes) - before
    difference = held_out.predictions.mean(moved)
    half = ndtri((1 + level) / 2) * _estimate_standard_error(
        sample, held_out, moved, difference
    )
    paired = PairedDifference(
        log_loss.spec.name,
        first=loss_before,
        second=loss_before + difference,
        difference=difference,
        low=difference - half,
        high=difference + half,
        level=level,
        method="normal",
    )
    if groups is not None:
        paired = compute_clustered_difference(
            paired, moved, held_out.predictions.weight, groups[held_out.sample_indices]
        )
    return double_difference_variance(paired)


def _estimate_standard_error(sample, held_out, loss_changes, mean):
    """Return the standard error of a mean of all rows that is taken of a sample.

    That of all rows, which are a sample themselves; and, if rows stand for others of
    their stratum, that of drawing so many of these: the masses of the strata are known.
    """
    weight = held_out.predictions.weight
    share = getattr(sample, "share", None)  # which cells of all rows do not have
    if share is None:
        return np.sqrt(held_out.squares @ (loss_changes - mean) ** 2) / weight.sum()
    share = share[held_out.sample_indices]
    _, stratum = np.unique(sample.stratum[held_out.sample_indices], return_inverse=True)
    stratum = stratum.ravel()
    # Two parts of the variance: that of all rows as a sample of the population, and
    # that of the drawn rows as a sample of their stratum.
    stratum_mean = np.bincount(stratum, weight * loss_changes) / np.bincount(
        stratum, weight
    )
    n = np.bincount(stratum)[stratum]
    apart = (loss_changes - stratum_mean[stratum]) ** 2 * n / np.maximum(n - 1, 1)
    variance = (
        held_out.squares / share @ (loss_changes - mean) ** 2
        + weight**2 * (1 - 1 / share) @ apart
    )
    return np.sqrt(variance) / weight.sum()


def double_difference_variance(difference: "PairedDifference") -> "PairedDifference":
    """Return the difference with twice the variance: each row is fitted to and judged."""
    # The half-width times the square root of 2.
    half = (difference.high - difference.low) / np.sqrt(2)
    return replace(
        difference, low=difference.difference - half, high=difference.difference + half
    )


def compute_clustered_difference(
    difference: "PairedDifference", loss_changes: Any, weight: Any, groups: Any
) -> "PairedDifference":
    """Return the difference with the interval of means of groups, whose rows are alike."""
    from scipy.stats import t

    from ..inference import compute_clustered_sum_error

    _, groups = np.unique(groups, return_inverse=True)
    error = (
        compute_clustered_sum_error(
            weight * (loss_changes - difference.difference), groups.ravel()
        )
        / weight.sum()
    )
    # Student's law with one degree of freedom less than groups.
    half = t.ppf((1 + difference.level) / 2, groups.max()) * error
    return replace(
        difference, low=difference.difference - half, high=difference.difference + half
    )
