"""The command ``compare``: two models on the same rows."""

import json
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files.tables import UserError
from .._show import Section, Table, plain
from .._typing import AnyArray, FloatArray
from ..exceptions import CalibrationWarning
from ._options import add_columns, add_files, add_reading, examples, share, whole_number
from ._pairs import Pairs, models_of
from ._printing import Screen, check_outputs, progress, write_text
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
        help="match the rows of two files by the values of this column (default: by their order); "
        "both tables are then read whole",
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
        with local_files(options.files, options.allow_remote, beside=True) as files:
            check_outputs(options, files)
            return _compare(files, options)
    except (ValueError, TypeError, UserError) as error:
        raise UserError(for_the_command(str(error))) from error


def _compare(files, options):
    pairs = Pairs(models_of(files, options), options)
    names = [plain(model.name, 40) for model in pairs.models]
    measured = _of_cells if len(pairs.classes) == 2 else _of_rows
    with progress("comparing") as advance:
        found, cells = measured(pairs, options, lambda done: advance(int(1000 * done), 1000))
    pairs.say_what_is_left_out()
    screen = Screen()
    screen.print(f"{pairs.n_rows} rows, {len(pairs.classes)} classes", highlight=False)
    _print(screen, names, found, options.level)
    sentences = verdict(names, found)
    for sentence in sentences:
        screen.print(sentence, highlight=False)
    if cells:
        screen.print(
            f"Losses and accuracy are those of all rows; the calibration error is that of {cells} "
            "cells of their probabilities.",
            highlight=False,
        )
    if options.json is not None:
        numbers = {"models": names, "files": list(files), "n_samples": pairs.n_rows}
        numbers |= {"level": options.level, "verdict": sentences}
        rows = [{**vars(each), "measure": name} for name, each in found.items()]
        text = json.dumps(numbers | {"differences": rows}, indent=1, allow_nan=False)
        write_text(text + "\n", options.json, "--json")
    return screen.finish({"numbers": options.json})


# -- numbers --------------------------------------------------------------------------------------


def _of_cells(pairs, options, advance):
    """Differences of two classes, and the number of cells where scores share them (else 0).

    The rows are read twice, and held as cells of their scores.

    Means of rows are exact sums. The temperature of each model is that of its cells; the losses
    after it are again sums over all rows.
    """
    from ..canonical import log_proba
    from ..inference import PairedLosses, paired_difference
    from ..metrics import LogLoss
    from ..recalibrators import get_recalibrator
    from ..summary import CalibrationSummary

    summaries = [CalibrationSummary() for _ in pairs.models]
    functions = {n: f for n, f in _means().items() if n in _MEASURES}
    losses = {name: PairedLosses() for name in functions}
    for codes, probas, weight in pairs.rows(lambda done: advance(done / 2)):
        for summary, proba in zip(summaries, probas, strict=True):
            single = len(pairs.models[0].columns) == 1 and not pairs.flipped
            summary.update(codes, proba[:, 1] if single else proba, weight)
        for name, of_rows in functions.items():
            losses[name].add(*(of_rows(proba, codes) for proba in probas), weight)
    if not summaries[0].n_samples:
        raise UserError("expected rows of positive weight, got none. Check the files.")
    after, of_logits = PairedLosses(), LogLoss().of_logits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        factors = [s.fit(get_recalibrator("temperature")).inverse_temperature_ for s in summaries]
    for codes, probas, weight in pairs.rows(lambda done: advance(0.5 + done / 2)):
        scaled = (f * log_proba(proba) for f, proba in zip(factors, probas, strict=True))
        after.add(*(of_logits(logits, codes) for logits in scaled), weight)
    given = {"level": options.level, "n_resamples": options.resamples}
    found = {
        name: losses[name].difference(name, options.level)
        if name in losses
        else paired_difference(None, *summaries, name, **given)
        for name in _MEASURES
    }
    cells = 0 if all(s.exact for s in summaries) else max(s.n_cells for s in summaries)
    return found | {_AFTER: after.difference("log_loss", options.level)}, cells


def _means():
    """Measures that are means of one number per row: functions of scores and labels."""
    from ..metrics import BrierLoss, LogLoss

    return {"log_loss": LogLoss().of_rows, "brier_loss": BrierLoss().of_rows, "accuracy": _hits}


def _hits(proba, codes):
    """Of two classes; of equal probabilities the first counts."""
    return ((proba[:, 1] > proba[:, 0]) == codes).astype(float)


def _of_rows(pairs, options, advance):
    """The same of several classes: the rows are held, since whole vectors are needed."""
    from ..inference import paired_difference

    blocks = [*pairs.rows(lambda done: advance(done / 2))]
    codes = np.concatenate([block.codes for block in blocks])
    one, two = (np.vstack([np.asarray(block.probas[i]) for block in blocks]) for i in range(2))
    weight = None
    if options.weight is not None:
        weight = np.concatenate([block.weight for block in blocks])
    numbers = np.arange(len(pairs.classes))
    given: dict[str, Any] = {"level": options.level, "n_resamples": options.resamples}
    given |= {"sample_weight": weight, "labels": numbers}
    found = {name: paired_difference(codes, one, two, name, **given) for name in _MEASURES}
    one, two = (_tempered(proba, codes, weight, numbers) for proba in (one, two))
    return found | {_AFTER: paired_difference(codes, one, two, "log_loss", **given)}, 0


def _tempered(
    proba: FloatArray, codes: AnyArray, weight: FloatArray | None, numbers: AnyArray
) -> FloatArray:
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
