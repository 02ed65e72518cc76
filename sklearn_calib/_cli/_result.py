"""What ``audit`` does with a report: prints it, writes it, and judges it."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .._show import plain
from ._gate import Condition, measures_for
from ._printing import Screen, print_report, write_report, write_text

if TYPE_CHECKING:
    import argparse

    from ..report import CalibrationReport

FAILED = 3  # the exit code where a condition holds


def settings_of(options: "argparse.Namespace", conditions: Sequence[Condition]) -> dict[str, Any]:
    """Arguments of `calibration_report`."""
    return {
        "level": options.level,
        "n_resamples": "auto" if options.resamples is None else options.resamples,
        "measures": measures_for(conditions),
    }


def finish(
    screen: Screen,
    report: "CalibrationReport",
    options: "argparse.Namespace",
    conditions: Sequence[Condition],
    advise: Callable[[], None],
) -> int:
    """Print, write and judge a report on one model; returns the exit code."""
    model = next(iter(report.accuracy))
    print_report(screen, report)
    page = None
    if not options.no_page:
        page = write_report(report, options.out, f"Calibration of {model}")
    if options.json is not None:
        write_text(report.to_json(), options.json, "--json")
    if options.markdown is not None:
        write_text(report.to_markdown(), options.markdown, "--markdown")
    if not options.no_advice:
        advise()
    failed = []
    for condition in conditions:
        holds, finding = condition.check(report, model)
        if holds:
            failed.append(finding)
        else:
            screen.print(f"passed: {finding}", highlight=False)
    written = {"summary": options.save, "numbers": options.json, "text": options.markdown}
    screen.finish({"report": page, **written})
    for finding in failed:
        print(f"sklearn-calib: failed: {plain(finding, None)}", file=sys.stderr)
    return FAILED if failed else 0
