"""The command ``compare``: two models on the same rows."""

from dataclasses import replace
from typing import Any

import numpy as np

from .._show import Section, Table, get_sections, join_truncated, make_printable
from .._warnings import ignore_calibration_warnings
from ._console import Screen, print_note, show_progress
from ._drawn import check_scores_not_reversed, reject_empty_summary
from ._options import make_integer_parser
from ._outputs import (
    check_outputs_writable_and_distinct,
    write_json_to_file,
    write_report,
)
from ._pairs import PairedPredictionBatches, make_paired_models
from ._prediction_batches import join_batches
from ._remote import local_files
from ._request import Request
from ._tables import print_identifier_note

EXAMPLES = (
    "sklearn-calib compare old.csv new.csv --label outcome --prob p",
    "sklearn-calib compare old.csv new.csv --label outcome --prob p --prob score --id customer",
    "sklearn-calib compare old.csv new.csv --label outcome --label y --prob p",
    "sklearn-calib compare both.csv --label outcome --prob p_old --prob p_new --name old "
    "--name new",
)
_COMPARED_MEASURES = ("log_loss", "brier_loss", "accuracy", "smooth_calibration_error")
# Rows are kept up to this number, for intervals of few events.
_MAX_KEPT_ROWS = 100_000
# The losses of models that are scaled by a temperature of their own each.
_SCALED_LOSS_NAME = "log_loss, temperature"


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compare",
        help="compare two models on the same rows",
        description="Compare the predictions of two models for the same rows: the difference of "
        "each measure with its interval, and which model is better.",
        examples=EXAMPLES,
    )
    parser.add_file_arguments(
        "two tables with the rows of both models, or one table with the columns of "
        "both; --label can be given twice, for the first table and the second"
    )
    columns = parser.add_column_options()
    columns.add_argument(
        "--id",
        metavar="COLUMN",
        help="match the rows of two files by the values of this column (default: by "
        "their order); both tables are then held in memory",
    )
    columns.add_soft_labels_option()
    columns.add_scale_option()
    columns.add_shared_options("--prediction")
    columns.add_cluster_option("intervals count these clusters instead of rows")
    parser.add_reading_options()
    work = parser.add_argument_group("work")
    work.add_argument(
        "--resamples",
        type=make_integer_parser(20),
        default=199,
        metavar="N",
        help="simulations for the interval of the calibration error (default: %(default)s)",
    )
    work.add_shared_options("--level")
    results = parser.add_argument_group("results")
    results.add_repeatable_option(
        "--name",
        "TEXT",
        "name of a model; give it twice for the first and the second (default: "
        "the names of the files, or of the columns of one file)",
    )
    results.add_argument(
        "--out",
        metavar="FILE",
        help="a page to write, with the differences and a report on both models",
    )
    results.add_shared_options("--json")
    parser.set_defaults(run=run_compare)


def run_compare(options: Request) -> int:
    """Compare two models on the same rows."""
    with local_files(options, allows_stdin_among_files=True) as files:
        check_outputs_writable_and_distinct(options, files)
        if (
            not options.soft_labels
            and len(files) == len(options.get_label_columns()) == 2
        ):
            options.label, options.second_label = options.label
        print_identifier_note(files, options)
        return _compare_and_write_results(files, options)


def _compare_and_write_results(files, options):
    from ..report import SectionPage, calibration_report

    pairs = PairedPredictionBatches(make_paired_models(files, options), options)
    names = [make_printable(model.name, 40) for model in pairs.models]
    with show_progress("comparing") as advance:
        difference_by_measure, notes, summaries = _get_differences_notes_and_summaries(
            pairs, options, lambda done: advance(int(1000 * done), 1000)
        )
    pairs.tables.print_dropped_rows(text_labels=False)
    screen = Screen()
    together = ""
    if options.group is not None:
        together = f", clusters by {make_printable(options.group, 40)}"
    subject = f"{pairs.n_rows} rows, {len(pairs.classes)} classes{together}"
    screen.print(subject)
    differences = _make_differences_section(names, difference_by_measure, options.level)
    screen.show_sections(differences)
    sentences = _write_better_model_sentences(names, difference_by_measure)
    for sentence in [*sentences, *notes]:
        screen.print(sentence)
    page = None
    if options.out is not None:
        verdict = Section("Which model is better", sentences=[*sentences, *notes])
        sections = [verdict, differences]
        # a report on summaries takes the rows for independent
        if not together and not options.soft_labels:
            models = dict(zip(names, summaries, strict=True))
            report = calibration_report(
                models, level=options.level, check_columns=False
            )
            sections += get_sections(report, drawn=True)
        numbered = [
            f"{position} is {make_printable(label, 40)}"
            for position, label in enumerate(pairs.classes)
        ]
        shown = SectionPage(sections, f"{subject}: {join_truncated(numbered, 12)}")
        page = write_report(shown, options.out, f"{names[0]} and {names[1]}")
    if options.json is not None:
        numbers = {"models": names, "files": list(files), "n_samples": pairs.n_rows}
        numbers |= {"level": options.level, "verdict": sentences}
        rows = [
            {**vars(difference), "measure": name}
            for name, difference in difference_by_measure.items()
        ]
        write_json_to_file(numbers | {"differences": rows}, options.json)
    return screen.print_paths_and_get_exit_code(
        {"report": page, "numbers": options.json}
    )


# -- numbers --------------------------------------------------------------------------------------


def _get_differences_notes_and_summaries(pairs, options, advance):
    """Return differences of the measures, and sentences on what is not exactly that of all rows.

    The rows are read twice, and held as cells of their scores (of several classes of
    the largest one). Means of rows are exact sums. The temperature of each model is
    that of its cells, or, of several classes, of rows that it draws; the losses after
    it are again sums over all rows.
    """
    from .._simplex_array import get_absent_option_mask
    from ..inference import PairedLosses, mark_correct_predictions, paired_difference
    from ..metrics import BrierLoss, LogLoss
    from ..summary import CalibrationSummary, RowReservoir, get_max_sample_rows

    n_classes = len(pairs.classes)
    several = len(pairs.classes) > 2
    summaries = [CalibrationSummary(classes=np.arange(n_classes)) for _ in pairs.models]
    draws = [
        RowReservoir(n_classes, get_max_sample_rows(n_classes)) if several else None
        for _ in summaries
    ]
    # Measures that are means of one number per row, from its scores and its label.
    functions = {
        "log_loss": LogLoss().compute_row_losses,
        "brier_loss": BrierLoss().compute_row_losses,
        "accuracy": mark_correct_predictions,
    }
    losses = {name: PairedLosses() for name in functions}
    # clusters, or few rows: cells hide what is rare in them
    kept = []
    single = len(pairs.models[0].columns) == 1 and not pairs.is_flipped
    for batch in pairs.iter_batches(lambda done: advance(done / 2)):
        codes = batch.labels
        weight = batch.weight
        for summary, draw, proba in zip(summaries, draws, batch.scores, strict=True):
            values = np.asarray(proba)
            summary.update(codes, values[:, 1] if single else values, weight)
            if draw is not None:
                predicted_class = (
                    np.where(get_absent_option_mask(proba), np.nan, values)
                    if options.absent
                    else values
                )
                draw.add(
                    codes, predicted_class, values[np.arange(len(codes)), codes], weight
                )
        for name, of_rows in functions.items():
            first, second = (of_rows(proba, codes) for proba in batch.scores)
            losses[name].add(first, second, weight, batch.cluster)
        few = summaries[0].n_samples <= _MAX_KEPT_ROWS
        if few or batch.cluster is not None:
            kept.append(batch)
    reject_empty_summary(summaries[0])
    if len(pairs.models[0].columns) == 1:
        for summary in summaries:
            check_scores_not_reversed(summary, options, pairs.classes)
    drawn = [None if draw is None else draw.get_sample() for draw in draws]
    _print_misordered_columns(pairs, drawn)
    fitted = [
        _fit_temperature_scaling(*summary_and_sample)
        for summary_and_sample in zip(summaries, drawn, strict=True)
    ]
    scaled_losses = _compute_paired_scaled_losses(pairs, fitted, advance)
    interval_options = {"level": options.level, "n_resamples": options.resamples}
    by_summaries = options.group is None and not options.soft_labels
    difference_by_measure = {}
    for name in _COMPARED_MEASURES:
        if name in losses:
            difference = losses[name].difference(name, options.level)
            if few:
                difference = _use_gamma_interval_if_few_events(
                    difference, kept, name, interval_options
                )
        elif by_summaries:
            difference = paired_difference(None, *summaries, name, **interval_options)
        else:
            difference = _measure_row_difference(kept, name, interval_options)
        difference_by_measure[name] = difference
    notes = _describe_approximations(summaries, drawn)
    difference_by_measure[_SCALED_LOSS_NAME] = scaled_losses.difference(
        "log_loss", options.level
    )
    return difference_by_measure, notes, summaries


def _compute_paired_scaled_losses(pairs, fitted, advance):
    """Return the log losses of all rows after the fitted temperatures of both models."""
    from ..inference import PairedLosses
    from ..metrics import LogLoss

    scaled_losses = PairedLosses()
    compute_losses = LogLoss().compute_logit_losses
    for batch in pairs.iter_batches(lambda done: advance(0.5 + done / 2)):
        first, second = (
            compute_losses(_compute_logits(scaling, proba), batch.labels)
            for scaling, proba in zip(fitted, batch.scores, strict=True)
        )
        scaled_losses.add(first, second, batch.weight, batch.cluster)
    return scaled_losses


def _use_gamma_interval_if_few_events(difference, batches, name, interval_options):
    """Return a difference with the interval for few events, if the rows have few."""
    of_rows = _measure_row_difference(batches, name, interval_options)
    if of_rows.method != "gamma":
        return difference
    return replace(difference, low=of_rows.low, high=of_rows.high, method="gamma")


def _print_misordered_columns(pairs, drawn):
    """Name the model whose columns of several classes are those of other classes."""
    from ..report import find_column_order

    for model, rows in zip(pairs.models, drawn, strict=True):
        if rows is None:
            continue
        labels = np.arange(len(pairs.classes))
        better_order = find_column_order(
            rows.codes,
            np.nan_to_num(rows.scores),
            sample_weight=rows.weight,
            labels=labels,
        )
        if better_order is not None:
            given_order, fitting_order = (
                ", ".join(map(str, pairs.classes[order]))
                for order in (labels, better_order.classes)
            )
            print_note(
                f"{model.name}: expected columns in the order of the classes "
                f"{given_order}, got columns that fit {fitting_order}: accuracy "
                f"{better_order.accuracy:.4f}, not {better_order.accuracy_as_given:.4f}. "
                "Name them in that order where this is not meant."
            )


def _measure_row_difference(batches, name, interval_options):
    """Return the difference of a measure of rows that belong together, or that are few."""
    from ..inference import paired_difference

    models = range(len(batches[0].scores))
    rows = join_batches([batch._replace(scores=None) for batch in batches])
    first, second = (
        np.concatenate([np.asarray(batch.scores[model]) for batch in batches])
        for model in models
    )
    more = {
        "labels": range(first.shape[1]),
        "sample_weight": rows.weight,
        "groups": rows.cluster,
    }
    return paired_difference(
        rows.labels,
        first,
        second,
        name,
        **more,
        **interval_options,
    )


def _fit_temperature_scaling(summary, drawn):
    """Fit temperature scaling to all cells, or to the rows drawn."""
    from .._validation import read_proba
    from ..recalibrators import get_recalibrator

    fitted = get_recalibrator("temperature")
    with ignore_calibration_warnings():
        if drawn is None:
            return summary.fit(fitted)
        proba = drawn.scores
        if np.isnan(proba).any():
            proba = read_proba(proba, absent="nan")
        predictions = replace(drawn, proba=proba).predictions
        return fitted.fit(
            predictions.proba,
            predictions.codes,
            sample_weight=predictions.weight,
            classes=drawn.classes,
        )


def _compute_logits(fitted, proba):
    """Return logits of what `predict_proba` gives; zeros count as they do there."""
    from .._kernels._probability_floor import clip_to_floor
    from .._simplex_array import get_absent_option_mask
    from .._validation import log_proba

    if get_absent_option_mask(proba) is not None:  # which stay at 0
        return log_proba(fitted.predict_proba(proba))
    if proba.min() < fitted.floor_:
        proba = clip_to_floor(proba, fitted.floor_)
    return fitted.inverse_temperature_ * log_proba(proba)


def _describe_approximations(summaries, drawn):
    """Return what is not that of all rows, in sentences."""
    notes = []
    if not all(summary.exact for summary in summaries):
        cells_owner = (
            "their probabilities" if drawn[0] is None else "their largest probabilities"
        )
        notes.append(
            "Losses and accuracy are those of all rows; the calibration error is that of "
            f"{max(summary.n_cells for summary in summaries)} cells of {cells_owner}."
        )
    if any(rows is not None and not rows.is_complete for rows in drawn):
        counts = [*dict.fromkeys(f"{rows.n_drawn:,}" for rows in drawn)]
        per_model = " for each model" if len(counts) == 1 else ""
        notes.append(
            f"The two temperatures are fitted to {' and '.join(counts)} of these "
            f"{drawn[0].n_seen:,} rows{per_model}, which their own digits draw: "
            "the same ones in any order; the losses after them are those of all rows."
        )
    return notes


def _make_differences_section(names, difference_by_measure, level):
    header = ("measure", "first", "second", "change", f"{100 * level:.0f} % interval")
    lines = [
        (
            name.replace("_", " "),
            f"{difference.first:.4f}",
            f"{difference.second:.4f}",
            f"{difference.difference:+.4f}",
            f"{difference.low:+.4f} to {difference.high:+.4f}",
        )
        for name, difference in difference_by_measure.items()
    ]
    title = f"first: {names[0]}, second: {names[1]}"
    return Section(tables=[Table(header, lines, title, "names")])


def _write_better_model_sentences(names, difference_by_measure):
    """Return which model is better, in sentences."""
    loss = difference_by_measure["log_loss"]
    after = difference_by_measure[_SCALED_LOSS_NAME]
    better = _name_better_model_if_clear(names, loss)
    recalibrated = _name_better_model_if_clear(names, after)
    if better is None:
        sentences = [
            f"These rows do not show which model is better: the log loss of {names[1]} is that of "
            f"{names[0]} {loss.difference:+.4f} ({100 * loss.level:.0f} % interval "
            f"{loss.low:+.4f} to {loss.high:+.4f})."
        ]
    else:
        sentences = [
            f"{better} is better: its log loss is lower by {_format_gain(loss)}."
        ]
    if recalibrated is not None:
        too = "also " if recalibrated == better else ""
        sentences.append(
            f"After temperature scaling of both, {recalibrated} is {too}better: "
            f"by {_format_gain(after)}."
        )
    elif better is not None:
        sentences.append(
            "After temperature scaling of both, no difference is shown: what makes it is "
            "calibration, which can be repaired."
        )
    return sentences


def _name_better_model_if_clear(names, difference):
    """Return the name of the model with the lower loss, or None."""
    if difference.low <= 0 <= difference.high:
        return None
    return names[0] if difference.low > 0 else names[1]


def _format_gain(difference):
    low, high = sorted(abs(end) for end in (difference.low, difference.high))
    size = abs(difference.difference)
    percent = 100 * difference.level
    return f"{size:.4f} ({percent:.0f} % interval {low:.4f} to {high:.4f})"
