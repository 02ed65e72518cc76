"""What ``audit`` does with a report: prints it, writes it, and judges it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._show import sections_of
from ._codes import DONE, FOUND
from ._gate import FORM, Condition, measures_for
from ._options import add_numbers, add_page
from ._printing import Screen, note, progress, write_json, write_report, write_text
from ._remote import source_of
from ._repair import commands_of_repair
from ._wording import refuse

if TYPE_CHECKING:
    import argparse

    from ..report import CalibrationReport

_NO_ROWS = "summaries of several classes hold no rows to say whether recalibration would help"
_TOO_FEW = "too few rows of some class to say whether recalibration would help"


def add_report(group: Any) -> None:
    """Add the options of the results of a report."""
    group.add_argument(
        "--name", metavar="TEXT", help="what to call the model (default: its columns)"
    )
    add_page(group)
    add_numbers(group)
    group.add_argument(
        "--fail-if",
        action="append",
        metavar="RULE",
        help=f'exit with code 3 where it holds: "{FORM}", for instance '
        '"smooth_calibration_error > if_calibrated" for more than chance, or "accuracy < 0.7"; may '
        "be given several times",
    )


def settings_of(
    files: Sequence[str],
    options: "argparse.Namespace",
    conditions: Sequence[Condition],
) -> dict[str, Any]:
    """Arguments of `calibration_report`: how, and where the rows come from."""
    source = source_of(options.files, files)
    return {
        "level": options.level,
        "n_resamples": "auto" if options.resamples is None else options.resamples,
        "measures": measures_for(conditions),
        "source": None if source == "-" else source,
        "check_columns": not options.any_order,
    }


def finish(
    screen: Screen,
    report: "CalibrationReport",
    options: "argparse.Namespace",
    conditions: Sequence[Condition],
) -> int:
    """Print, write and judge a report on one model; returns the exit code."""
    (model,) = report.accuracy
    few = False
    if not options.no_advice:
        with progress("recalibrating") as advance:
            report.advise(advance)  # the verdict speaks of it
        advice = report.advice[model]
        few = advice is None
        of_table = options.label is not None and options.prob is not None
        if advice is not None and of_table:
            advice.code = commands_of_repair(options)  # which read the file as audit does
    screen.show(*sections_of(report))
    if few:
        saved = len(report.classes) > 2 and options.label is None
        screen.print(f"{_NO_ROWS if saved else _TOO_FEW}\n")
    after = _recalibrated(report, model, options) if options.recalibrate else None
    if after is not None:
        screen.print("each row recalibrated by a fit that has not seen it:")
        screen.show(*sections_of(after))
    page = None
    if not options.no_page:
        page = write_report(report, options.out, f"Calibration of {model}")
    if options.json is not None:
        content = report.to_dict()
        content["models"] += [] if after is None else after.to_dict()["models"]
        write_json(content, options.json)
    if options.markdown is not None:
        texts = [each.to_markdown() for each in (report, after) if each is not None]
        write_text("\n".join(texts), options.markdown, "--markdown")
    written = {"summary": options.save, "numbers": options.json, "text": options.markdown}
    return screen.finish({"report": page, **written}, judged(screen, conditions, report, model))


def judged(
    screen: Screen, conditions: Sequence[Condition], report: Any, model: str, of: str = ""
) -> int:
    """Say which conditions hold of a model; returns the exit code."""
    failed = []
    for condition in conditions:
        holds, finding = condition.check(report, model)
        if holds:
            failed.append(f"{of}{finding}")
        else:
            screen.print(f"passed: {of}{finding}", highlight=False)
    for finding in failed:
        note(f"failed: {finding}")
    return FOUND if failed else DONE


def _recalibrated(report, model, options):
    """A report on the same rows, each recalibrated by a fit that has not seen it."""
    from ..report import calibration_report

    advice = report.advise()[model]
    if advice is None:
        refuse("at least five rows of each class for --recalibrate", "fewer", "Leave it out")
    summary = advice.summaries()["recalibrated"]
    with progress("measuring") as advance:
        return calibration_report(
            {f"{model}, recalibrated": summary},
            level=options.level,
            n_resamples="auto" if options.resamples is None else options.resamples,
            check_columns=False,
            progress=advance,
        )
