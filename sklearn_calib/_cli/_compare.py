"""The command ``compare``: two models on the same rows."""

import json
import os
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._files.tables import UserError, number_column, read_table
from .._show import Section, Table, plain, quoted, rows_in_words
from .._typing import AnyArray, FloatArray
from ..exceptions import CalibrationWarning
from ._classes import check_two_classes, named_classes
from ._columns import checked_labels, probability
from ._names import split_columns
from ._options import (
    add_columns,
    add_files,
    add_reading,
    check_different,
    check_named,
    examples,
    form_of,
    share,
    tolerance_of,
    whole_number,
)
from ._printing import Screen, check_outputs, note, progress, write_text
from ._remote import local_files
from ._wording import for_the_command

if TYPE_CHECKING:
    import argparse

    from ..inference import PairedDifference

EXAMPLES = (
    "sklearn-calib compare old.csv new.csv --label outcome --prob p",
    "sklearn-calib compare old.csv new.csv --label outcome --prob p --prob score --id customer",
    "sklearn-calib compare both.csv --label outcome --prob p_old --prob p_new --name old "
    "--name new",
)
_MEASURES = ("log_loss", "brier_loss", "accuracy", "smooth_calibration_error")
_AFTER = "log_loss, temperature"  # each scaled by its own temperature


class _Model(NamedTuple):
    """The rows of one model."""

    name: str
    file: str
    table: Any  # Table
    columns: list[str]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compare",
        help="compare two models on the same rows",
        description="Compare the predictions of two models for the same rows: the difference of "
        "each measure with its interval, and which model is better.",
        epilog=examples(*EXAMPLES),
    )
    add_files(
        parser,
        "two tables with the rows of both models, or one table with the columns of both",
    )
    columns = add_columns(parser)
    columns.add_argument(
        "--id",
        metavar="COLUMN",
        help="match the rows of two files by the values of this column (default: by their order)",
    )
    add_reading(parser)
    work = parser.add_argument_group("work")
    work.add_argument(
        "--resamples",
        type=whole_number(20),
        default=199,
        metavar="N",
        help="draws behind the interval of the calibration error (default: %(default)s)",
    )
    work.add_argument(
        "--level",
        type=share,
        default=0.9,
        metavar="L",
        help="of the intervals, between 0 and 1 (default: %(default)s)",
    )
    results = parser.add_argument_group("results")
    results.add_argument(
        "--name",
        action="append",
        metavar="TEXT",
        help="what to call a model; given twice, for the first and the second (default: the names "
        "of the files, or of the columns of one file)",
    )
    results.add_argument("--json", metavar="FILE", help="write all numbers")
    parser.set_defaults(run=compare, modules=("rich", "pandas"), no_page=True)


def compare(options: "argparse.Namespace") -> int:
    """Compare two models on the same rows."""
    try:
        with local_files(options.files, options.allow_remote) as files:
            check_outputs(options, files)
            return _compare(files, options)
    except (ValueError, TypeError, UserError) as error:
        raise UserError(for_the_command(str(error))) from error


def _compare(files, options):
    from ..canonical import canonical_labels

    models = _models(files, options)
    models = _matched(models, options)
    if options.drop_missing:
        models = _complete(models)
    labels, weight = _labels(models, options), None
    if options.weight is not None:
        weight = number_column(models[0].table, options.weight)
    classes, positive = named_classes(options, labels, len(models[0].columns))
    classes, codes = canonical_labels(labels, classes=classes, _where="compare")
    check_two_classes(classes, options)
    probas = [_proba(model, classes, positive, options) for model in models]
    names = [plain(model.name, 40) for model in models]
    with progress("comparing"):
        found = _differences(codes, probas, weight, len(classes), options)
    screen = Screen()
    screen.print(f"{len(codes)} rows, {len(classes)} classes", highlight=False)
    _print(screen, names, found, options.level)
    sentences = verdict(names, found)
    for sentence in sentences:
        screen.print(sentence, highlight=False)
    if options.json is not None:
        numbers = {"models": names, "files": list(files), "n_samples": len(codes)}
        numbers |= {"level": options.level, "verdict": sentences}
        rows = [{**vars(each), "measure": name} for name, each in found.items()]
        text = json.dumps(numbers | {"differences": rows}, indent=1, allow_nan=False)
        write_text(text + "\n", options.json, "--json")
    return screen.finish({"numbers": options.json})


# -- rows -----------------------------------------------------------------------------------------


def _models(files, options):
    """What was named, as two models."""
    check_named(options)
    named = options.prob
    if len(files) > 2 or len(named) > 2 or (len(files) == 1 and len(named) != 2):
        raise UserError(
            "expected two files, or one file and --prob twice, got "
            f"{len(files)} files and --prob {len(named)} times. Name the columns of one model in "
            "one --prob a,b,c."
        )
    places = [*zip((files * 2)[:2], (named * 2)[:2], strict=True)]
    called = options.name or []
    if len(called) not in (0, 2):
        raise UserError(
            f"expected --name twice, once for each model, got {len(called)} of them. Name both."
        )
    if not called:
        called = named if len(files) == 1 else _short(files)
    if called[0] == called[1]:
        raise UserError(
            f"expected two different models, got {quoted(called[0])} twice. Name two columns or "
            "two files, or call them by --name."
        )
    models = []
    for name, (file, prob) in zip(called, places, strict=True):
        columns, table = _read(file, prob, options, needs_label=not models)
        models.append(_Model(name, file, table, columns))
    if len(models[0].columns) != len(models[1].columns):
        raise UserError(
            f"expected as many columns for both models, got {len(models[0].columns)} and "
            f"{len(models[1].columns)}. Name one column per class, or the positive class alone."
        )
    return models


def _short(files):
    """Names of files without what both have in common."""
    stems = [os.path.basename(file).partition(".")[0] for file in files]
    return stems if stems[0] != stems[1] else files


def _read(file, prob, options, needs_label):
    """The names of the columns of one model, and the table that has them."""
    columns: list[str] = []

    def pick(present):
        columns[:] = split_columns([prob], present)
        check_different(options.label, columns)
        names = [*columns, *([options.id] if options.id else [])]
        if needs_label or options.label in present:
            names.append(options.label)
        if needs_label and options.weight is not None:
            names.append(options.weight)
        return [*dict.fromkeys(names)]

    table = read_table(file, pick, **form_of(options))
    return columns, table


def _matched(models, options):
    """Both tables in the order of the first."""
    first, second = (model.table for model in models)
    if options.id is None:
        if len(first.frame) != len(second.frame):
            raise UserError(
                f"expected the same rows in both files, got {len(first.frame)} and "
                f"{len(second.frame)}. Match them with --id COLUMN."
            )
        return models
    keys = [_keys(table, options.id) for table in (first, second)]
    kinds = {each.dtype.kind for each in keys}
    if "i" in kinds and len(kinds) > 1:  # text such as "17" in one of the files
        keys = [each.astype(str) for each in keys]
    places = keys[1].get_indexer(keys[0])
    lost = np.flatnonzero(places < 0)
    if len(lost) or len(keys[0]) != len(keys[1]):
        where = models[0 if len(lost) else 1].file
        only = keys[0][lost] if len(lost) else keys[1].difference(keys[0], sort=False)
        raise UserError(
            f"expected the same values of {quoted(options.id)} in both files, got "
            f"{len(only)} only in {plain(where)}, for instance {quoted(only[0])}. Keep the rows "
            "that both have."
        )
    frame = second.frame.iloc[places].reset_index(drop=True)
    return [models[0], models[1]._replace(table=second._replace(frame=frame, rows=places))]


def _keys(table, name):
    """The values that tell rows apart, as an index."""
    import pandas as pd

    keys = pd.Index(table.frame[name])
    if keys.dtype.kind == "f" and (keys == keys.round()).all():
        keys = keys.astype("int64")
    twice = keys.duplicated()
    if twice.any() or keys.hasnans:
        value = keys[int((twice | keys.isna()).argmax())]
        raise UserError(
            f"expected each value of {quoted(name)} once in {plain(table.file)}, got "
            f"{quoted(value)} several times or none. Choose another --id."
        )
    return keys


def _complete(models):
    """Both tables without the rows in which one of them has a hole."""
    whole = np.logical_and(*(m.table.frame.notna().all(axis=1).to_numpy() for m in models))
    holes = np.flatnonzero(~whole)
    if not len(holes):
        return models
    table = models[0].table
    note(f"left out, with missing values: {rows_in_words(holes)} of {plain(table.file)}")
    if len(holes) == len(whole):
        raise UserError("expected rows without missing values, got none. Check the files.")
    kept = []
    for model in models:
        rows = np.array([model.table.row(place) for place in np.flatnonzero(whole)])
        frame = model.table.frame[whole].reset_index(drop=True)
        kept.append(model._replace(table=model.table._replace(frame=frame, first=0, rows=rows)))
    return kept


def _labels(models, options):
    """The labels, which both files agree upon."""
    tables = [m.table for m in models if options.label in m.table.frame]
    labels = [checked_labels(table, options.label) for table in tables]
    if len(labels) == 2:
        differs = np.flatnonzero(labels[0].to_numpy() != labels[1].to_numpy())
        if len(differs):
            place = differs[0]
            one, two = (quoted(column.iloc[place]) for column in labels)
            raise UserError(
                f"expected the same labels in both files, got {one} and {two} in row "
                f"{tables[0].row(place)} (of {len(differs)} such rows). "
                + ("Check the files." if options.id else "Match the rows with --id COLUMN.")
            )
    return labels[0]


def _proba(model, classes, positive, options):
    from ..canonical import canonical_proba

    scores = np.column_stack([probability(model.table, n, options) for n in model.columns])
    tolerance = tolerance_of(options)
    try:
        proba = canonical_proba(scores, tolerance=tolerance, _where="compare")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{plain(model.file)}: {error}") from error
    if proba.shape[1] != len(classes):
        raise UserError(
            f"expected one class for each of the {proba.shape[1]} columns, got {len(classes)} "
            "classes. Name all of them with --classes."
        )
    if positive is not None and classes.tolist().index(positive) == 0 and scores.shape[1] == 1:
        proba = np.asarray(proba)[:, ::-1]  # the column is the probability of the first class
    return proba


# -- numbers --------------------------------------------------------------------------------------


def _differences(
    codes: AnyArray,
    probas: list[FloatArray],
    weight: FloatArray | None,
    n_classes: int,
    options: "argparse.Namespace",
) -> "dict[str, PairedDifference]":
    from ..inference import paired_difference

    numbers = np.arange(n_classes)
    given: dict[str, Any] = {"level": options.level, "n_resamples": options.resamples}
    given |= {"sample_weight": weight, "labels": numbers}
    one, two = probas
    found = {name: paired_difference(codes, one, two, name, **given) for name in _MEASURES}
    one, two = (_tempered(proba, codes, weight, numbers) for proba in probas)
    return found | {_AFTER: paired_difference(codes, one, two, "log_loss", **given)}


def _tempered(proba, codes, weight, numbers):
    """After temperature scaling: what is left of the log loss is no matter of calibration."""
    from ..recalibrators import get_recalibrator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        fitted = get_recalibrator("temperature")
        fitted.fit(proba, codes, sample_weight=weight, classes=numbers)
    return fitted.predict_proba(proba)


def _print(screen, names, found, level):
    header = ("measure", "first", "second", "change", f"{level:.0%} interval")
    lines = [
        (
            name.replace("_", " "),
            f"{each.first:.4f}",
            f"{each.second:.4f}",
            f"{each.difference:+.4f}",
            f"{each.low:+.4f} to {each.high:+.4f}",
        )
        for name, each in found.items()
    ]
    title = f"first: {names[0]}, second: {names[1]}"
    screen.show(Section(tables=[Table(header, lines, title)]))


def verdict(names: list[str], found: "dict[str, PairedDifference]") -> list[str]:
    """Which model is better, in sentences."""
    loss, after = found["log_loss"], found[_AFTER]
    better, recalibrated = _better(names, loss), _better(names, after)
    if better is None:
        said = [
            f"These rows do not show which model is better: the log loss of {names[1]} is that of "
            f"{names[0]} {loss.difference:+.4f} ({loss.level:.0%} interval {loss.low:+.4f} to "
            f"{loss.high:+.4f})."
        ]
    else:
        said = [f"{better} is better: its log loss is lower by {_gain(loss)}."]
    if recalibrated is not None:
        too = "also " if recalibrated == better else ""
        said.append(
            f"After temperature scaling of both, {recalibrated} is {too}better: by {_gain(after)}."
        )
    elif better is not None:
        said.append(
            "After temperature scaling of both, no difference is shown: what makes it is "
            "calibration, which can be repaired."
        )
    return said


def _better(names, difference):
    """The name of the model with the lower loss, or None."""
    if difference.low <= 0 <= difference.high:
        return None
    return names[0] if difference.low > 0 else names[1]


def _gain(loss):
    low, high = sorted(abs(end) for end in (loss.low, loss.high))
    return f"{abs(loss.difference):.4f} ({loss.level:.0%} interval {low:.4f} to {high:.4f})"
