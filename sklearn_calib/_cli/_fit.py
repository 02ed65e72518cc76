"""The command ``fit``: learn a calibration map from a table and write it as JSON."""

from datetime import datetime
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import make_printable, quote_text
from ..exceptions import add_error_context
from ._console import Screen, print_note, show_progress
from ._drawn import (
    check_scores_not_reversed,
    compare_losses,
    compute_clustered_difference,
    describe_rows,
    double_difference_variance,
    encode_clusters,
    get_checked_sample,
)
from ._messages import EXIT_FINDING, invalid_option
from ._options import parse_float_text
from ._outputs import check_writable, write_text_to_file
from ._prediction_batches import describe_files, expand_soft_labels, load_rows
from ._remote import local_files
from ._request import Request, parse_names
from ._tables import print_identifier_note

if TYPE_CHECKING:
    from ..inference import PairedDifference
    from ._prediction_batches import PredictionBatch

EXAMPLES = (
    "sklearn-calib fit cal.csv --label outcome --prob p --out map.json",
    "sklearn-calib fit cal.parquet --label digit --prob p0,p1,p2 --recalibrator temperature "
    "--out map.json",
    "sklearn-calib fit cal.csv --label outcome --prob score --scale logits --out map.json",
    "sklearn-calib fit cal.csv --label outcome --prob p --out map.json --date 2026-11-23",
)
_GAIN_CONFIDENCE_LEVEL = 0.9
# With fewer groups the interval is too short.
_MIN_INTERVAL_CLUSTERS = 50
_N_FOLDS = 5
# More rows of two classes are not fitted one by one.
_MAX_UNPOOLED_ROWS = 200_000
# As for the advice of an audit.
_MAX_SUMMARY_CELLS = 4096


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "fit",
        help="fit a calibration map to a table and write it as JSON",
        description="Fit a calibration map to a table with labels, and write it as "
        "JSON for apply, export and sklearn_calib.export.from_json. Prints the "
        "gain of the map on rows that were not used to fit it. If the log loss "
        "does not decrease, it writes nothing and ends with exit code 3.",
        examples=EXAMPLES,
    )
    parser.add_file_arguments()
    columns = parser.add_column_options()
    columns.add_scale_option(logits=True)
    columns.add_soft_labels_option()
    columns.add_shared_options("--prediction")
    columns.add_cluster_option(
        "no cluster is split between the folds that are used to choose and to evaluate the map"
    )
    parser.add_reading_options(
        order="fit even if another order of the columns fits far better",
        no_gain="write the map even if it does not lower the log loss, or if a class "
        "has too few rows to measure this",
    )
    work = parser.add_argument_group("work")
    work.add_argument(
        "--recalibrator",
        default="auto",
        metavar="NAME",
        help='the method: "auto" mixes several (default: %(default)s)',
    )
    work.add_argument(
        "--tabulate",
        type=parse_float_text,
        metavar="T",
        help='largest error of the table for methods without a finite form ("adaptive", '
        '"angular"), between 1e-9 and 0.1',
    )
    work.add_argument(
        "--simplify",
        type=parse_float_text,
        metavar="T",
        help="make the tables of the map small; no probability of a table changes by "
        "more than T (above 0, at most 0.1)",
    )
    work.add_shared_options("--query", "--dask")
    results = parser.add_argument_group("results")
    results.add_argument(
        "--out", required=True, metavar="FILE", help="the map to write"
    )
    results.add_argument(
        "--date",
        metavar="DATE",
        help="a date for the map, such as that of the rows: 2026-11-23 (default: "
        "none, so that the same rows give the same file)",
    )
    parser.set_defaults(run=run_fit)


def run_fit(options: Request) -> int:
    """Fit, judge and write a map; returns the exit code."""
    from ..recalibrators import get_recalibrator
    from ._large import (
        check_conflicts_with_all_rows,
        draw_soft_label_items_and_count_all,
        find_options_needing_all_rows,
        should_summarize_files,
    )

    _check_date(options.date)
    # An unknown method is rejected before the work.
    method = get_recalibrator(options.recalibrator)
    with local_files(options) as files:
        check_writable(options.out, [*files, *options.files])
        print_identifier_note(files, options)
        if options.soft_labels:
            _check_soft_label_method_and_columns(method, options)
            if options.scale is None and should_summarize_files(
                files, options, by_file_count=False
            ):
                rows, n_seen = draw_soft_label_items_and_count_all(files, options)
            else:
                rows = load_rows(files, options)
                n_seen = len(rows.labels)
            counts = n_seen, len(rows.labels)
            return _fit_rows(expand_soft_labels(rows), options, counts)
        table_options = find_options_needing_all_rows(
            options, ("prediction", "scale", "absent")
        )
        whole = method.capabilities.order_dependent or bool(table_options)
        if table_options:
            check_conflicts_with_all_rows(files, options)
        elif not whole and should_summarize_files(files, options, by_file_count=False):
            return _fit_block_by_block(files, options)
        rows = load_rows(files, options)
        several = _needs_unpooled_rows(len(rows.names), options)
        if not whole and (several or len(rows.labels) > _MAX_UNPOOLED_ROWS):
            return _fit_block_by_block(files, options)
        with add_error_context(source=describe_files(files)):
            return _fit_rows(rows, options, (len(rows.labels), len(rows.labels)))


def _check_soft_label_method_and_columns(method, options):
    if method.capabilities.order_dependent:
        raise invalid_option(
            sentence=(
                f"{options.recalibrator} follows the order of the rows, so it cannot use "
                "--soft-labels"
            ),
            hint="Choose another --recalibrator",
        )
    options.check_required_columns_named()


def _fit_rows(
    rows: "PredictionBatch", options: Request, counts: tuple[int, int]
) -> int:
    """Learn from rows in memory; `counts` are those that were seen, and that these stand for."""
    from .._validation import canonical_weight, read_proba
    from ..recalibrators import fit_recalibrator, get_recalibrator
    from ..summary import CalibrationSummary

    proba = rows.scores
    if options.score_kind == "proba":
        proba = read_proba(proba, tolerance=options.sum_tolerance)
    fit_options = {
        "sample_weight": rows.weight,
        "classes": rows.classes,
        "groups": rows.cluster,
    }

    def compute_held_out_gain():
        # Clusters and several classes need their rows.
        if len(rows.classes) > 2 or rows.cluster is not None:
            return _compute_held_out_gain_by_rows(
                options.recalibrator, proba, rows, fit_options
            )
        canonical_weight(rows.weight, len(proba))  # a summary takes all 0
        cells = CalibrationSummary(classes=rows.classes)  # as `audit` has them
        cells.update(rows.labels, np.asarray(proba), rows.weight)
        return _compute_held_out_gain_by_cells(options.recalibrator, cells)

    def learn_map():
        method = get_recalibrator(options.recalibrator)
        return fit_recalibrator(method, proba, rows.labels, **fit_options)

    of_class = np.unique(rows.labels, return_counts=True)[1]
    return _judge_and_write(
        describe_rows(*counts, rows.classes),
        of_class,
        compute_held_out_gain,
        learn_map,
        options,
        rows.cluster,
    )


def _needs_unpooled_rows(n_columns, options):
    """Return whether cells of probabilities do not suffice."""
    return n_columns > 2 or options.score_kind == "logits" or options.group is not None


def _fit_block_by_block(files, options):
    """Learn from rows that are read block by block."""
    from ._large import summarize_files_and_groups

    rows = _needs_unpooled_rows(0, options)
    summary, _, name = summarize_files_and_groups(list(files), options, rows)
    if rows or summary.drawn is not None:
        return _fit_judge_and_write_drawn_rows(summary, options)
    return _fit_cells(summary, name, options)


def _fit_judge_and_write_drawn_rows(summary: Any, options: Request) -> int:
    """Fit to rows that their own digits draw (all of few), judge and write the map."""
    from ..recalibrators import fit_recalibrator, get_recalibrator

    sample = get_checked_sample(summary, options)
    classes = sample.classes
    groups = encode_clusters(sample, options)
    counts = np.bincount(sample.codes, sample.counts, len(classes)).astype(int)

    def compute_held_out_gain():
        if groups is not None and groups.max() + 1 < _N_FOLDS:
            raise invalid_option(
                expected=f"at least {_N_FOLDS} groups, one for each fold",
                got=f"{groups.max() + 1}",
                hint="Name a column of more groups with --cluster",
            )
        with show_progress("judging"):
            folds = sample.split_into_folds(_N_FOLDS, groups)
            held = sample.recalibrate_held_out(options.recalibrator, folds, groups)
        loss = summary.totals.log_loss / summary.weight
        return compare_losses(sample, held, loss, _GAIN_CONFIDENCE_LEVEL, groups)

    def learn_map():
        return fit_recalibrator(
            get_recalibrator(options.recalibrator),
            sample.predictions.proba,
            classes[sample.codes],
            sample_weight=sample.sample_weight,
            classes=classes,
            groups=groups,
        )

    return _judge_and_write(
        describe_rows(sample.n_seen, sample.n_drawn, classes),
        counts[counts > 0],
        compute_held_out_gain,
        learn_map,
        options,
        groups,
    )


def _fit_cells(summary: Any, name: str, options: Request) -> int:
    """Learn from all rows in cells of their scores, as `audit` measures them."""
    if len(summary.classes) != 2:
        raise invalid_option(
            expected="a summary of two classes",
            got=f"a summary of {len(summary.classes)} classes in {make_printable(name)}",
            hint="Fit to the rows themselves",
        )
    if not options.any_order and summary.samples()[0].exchanged:
        raise invalid_option(
            expected=f"probabilities of {quote_text(summary.positive_label)} in "
            f"{make_printable(name)}",
            got="probabilities of the other class",
            hint="Add --positive with the other label, or --allow order where they are meant so",
        )
    check_scores_not_reversed(summary, options)
    coarse = summary.coarsen(min(summary.max_cells, _MAX_SUMMARY_CELLS))
    cells = "" if coarse.exact else f" in {coarse.n_cells} cells of their probabilities"
    n_rows = summary.n_samples
    description = describe_rows(n_rows, n_rows, summary.classes, cells)
    counts = coarse.samples()[0].counts.sum(axis=0)
    cross_validate = partial(
        _compute_held_out_gain_by_cells, options.recalibrator, summary
    )
    learned = partial(coarse.fit, options.recalibrator)
    return _judge_and_write(description, counts, cross_validate, learned, options)


def _judge_and_write(description, counts, measure_gain, fit_map, options, groups=None):
    """Print the gain of a map, and write it if there is a gain; returns the exit code.

    The `description` of the rows is printed first; of their classes there are so many
    `counts`. `measure_gain` gives the gain and `fit_map` the map.
    """
    from ..export import simplify, to_dict, to_json

    screen = Screen()
    screen.print(description)
    gain = (
        measure_gain()
        if _has_enough_rows_or_raise_unless_forced(counts, options)
        else None
    )
    if _print_and_judge_gain(screen, gain, options, groups) or options.force:
        with show_progress("fitting"):
            document = to_dict(
                fit_map(),
                input=options.score_kind,
                tabulate=options.tabulate,
                date=options.date,
                columns=_get_columns_by_role_or_none(options),
                scale=options.scale_ends_if_declared,
            )
            if options.simplify is not None:
                document = simplify(document, options.simplify)
            text = to_json(document)
        write_text_to_file(f"{text}\n", options.out, "--out")
        return screen.print_paths_and_get_exit_code({"map": options.out})
    print_note(
        f"nothing was written: {options.recalibrator} does not lower the log loss of these rows. "
        "Use the probabilities as they are, choose another --recalibrator, or add --allow no-gain."
    )
    return EXIT_FINDING


def _get_columns_by_role_or_none(options):
    """Return the names of the columns that were read, for the document; none of a saved summary."""
    roles = {
        "weight": options.weight,
        "group": options.group,
        "prediction": options.prediction,
    }
    columns_by_role = {"label": options.get_label_columns()} if options.label else {}
    columns_by_role |= {
        role: [name] for role, name in roles.items() if name is not None
    }
    return (
        columns_by_role
        | ({"scores": parse_names(options.prob)} if options.prob else {})
        or None
    )


def _check_date(text):
    try:
        datetime.fromisoformat(text or "2000-01-01")
    except ValueError:
        raise invalid_option(
            expected="a date such as 2026-11-23 after --date",
            got=quote_text(text),
            hint="Write year, month, day",
        ) from None


def _has_enough_rows_or_raise_unless_forced(counts, options):
    """Return whether each class has enough rows to judge a map by other rows."""
    if counts.min() < _N_FOLDS and not options.force:
        raise invalid_option(
            expected=(
                f"at least {_N_FOLDS} rows of each class, to judge the map by rows that "
                "its fit has not seen"
            ),
            got=f"{counts.min()} rows of one class",
            hint="Add rows, or --allow no-gain",
        )
    return counts.min() >= _N_FOLDS


def _print_and_judge_gain(screen, gain, options, groups) -> bool:
    """Print what the map gains on rows that its fit has not seen; whether it gains anything."""
    if gain is None:
        screen.print("too few rows of some class to say whether the map helps")
        return False
    for sentence in describe_gain(options.recalibrator, gain):
        screen.print(sentence)
    if groups is not None:
        n_groups = len(np.unique(np.asarray(groups).astype(str)))
        if n_groups < _MIN_INTERVAL_CLUSTERS:
            screen.print(
                f"The interval is too short: it wants some {_MIN_INTERVAL_CLUSTERS} groups, here "
                f"are {n_groups}."
            )
    return gain.difference < 0


def _compute_held_out_gain_by_cells(method, summary):
    """Return what `_compute_held_out_gain_by_rows` does, from cells of two classes."""
    from .._random import make_generator

    (sample,) = summary.coarsen(min(summary.max_cells, _MAX_SUMMARY_CELLS)).samples()
    with show_progress("judging"):
        folds = sample.split_into_folds(_N_FOLDS, make_generator(0))
        held = sample.recalibrate_held_out(method, folds)
    return compare_losses(
        sample, held, summary.measure("log_loss"), _GAIN_CONFIDENCE_LEVEL
    )


def _compute_held_out_gain_by_rows(method, proba, rows, fit_options):
    """Return what `compare_losses` returns, of rows in memory in their own order.

    `fit_options` are the arguments of a fit to them.
    """
    from .._validation import canonical_weight, read_labels, read_proba
    from ..inference import paired_difference
    from ..metrics import LogLoss
    from ..recalibrators import cross_fitted_proba, encode_groups

    with show_progress("judging"):
        after = cross_fitted_proba(
            method,
            proba,
            rows.labels,
            cv=_N_FOLDS,
            **fit_options,
        )
    difference = paired_difference(
        rows.labels,
        proba,
        after,
        level=_GAIN_CONFIDENCE_LEVEL,
        sample_weight=rows.weight,
        labels=rows.classes,
    )
    if rows.cluster is not None:
        codes = read_labels(rows.labels, classes=rows.classes)[1]
        of_rows = LogLoss().compute_row_losses
        n = len(codes)
        moved = of_rows(after, codes) - of_rows(read_proba(proba), codes)
        weight = canonical_weight(rows.weight, n)
        difference = compute_clustered_difference(
            difference, moved, weight, encode_groups(rows.cluster, n)
        )
    return double_difference_variance(difference)


def describe_gain(method: str, gain: "PairedDifference") -> list[str]:
    """Return what recalibration changes, in words."""
    low = -gain.high
    high = -gain.low
    error = (high - low) / 2 / NormalDist().inv_cdf((1 + gain.level) / 2)
    description = [
        f"{method}: the log loss of rows that its fit has not seen is {gain.second:.4f}, as given "
        f"{gain.first:.4f}: a gain of {-gain.difference:.4f} (standard error {error:.4f}, "
        f"{100 * gain.level:.0f} % interval {low:.4f} to {high:.4f}, {_N_FOLDS} folds)."
    ]
    if high < 0:
        description.append("Recalibration hurts.")
    elif low <= 0:
        description.append("These rows do not show that recalibration helps.")
    return description
