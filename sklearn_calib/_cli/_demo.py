"""The command ``demo``: every recalibrator on embedded data."""

from typing import TYPE_CHECKING, Any

from .._show import Section, Table, format_best_rows
from .._warnings import ignore_calibration_warnings
from ._console import Screen, show_progress
from ._outputs import write_report
from ._request import Request

if TYPE_CHECKING:
    from ..inference import PairedDifference


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "demo",
        help="train, recalibrate and report on embedded data",
        description="Train naive Bayes, recalibrate it by every method, print the losses and a "
        "verdict, and write a page that compares before and after the default. No network "
        "is needed.",
        examples=("sklearn-calib demo", "sklearn-calib demo --data breast_cancer"),
    )
    parser.add_argument(
        "--data",
        choices=("digits", "breast_cancer"),
        default="digits",
        help="handwritten digits of ten classes, or tumours of two (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        default="report.html",
        metavar="FILE",
        help="the page to write (default: %(default)s)",
    )
    parser.set_defaults(run=run_demo)


def run_demo(options: Request) -> int:
    """Train, recalibrate by every method and report."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB

    from ..inference import paired_difference
    from ..metrics import brier_loss, expected_calibration_error, log_loss
    from ..recalibrators import all_recalibrators
    from ..report import calibration_report

    X, y = getattr(datasets, f"load_{options.data}")(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X,
        y,
        test_size=0.4,
        stratify=y,
        random_state=0,
    )
    X, X_calib, y, y_calib = train_test_split(
        X,
        y,
        test_size=0.5,
        stratify=y,
        random_state=0,
    )
    screen = Screen()
    screen.print(
        f"{options.data}: naive Bayes on {len(y)} rows, recalibrated on {len(y_calib)}, "
        f"measured on {len(y_test)}"
    )
    model = GaussianNB(var_smoothing=1e-3).fit(X, y)
    scores = model.predict_proba(X_calib)
    before = model.predict_proba(X_test)
    proba = {}
    with show_progress("recalibrating") as advance:
        methods = dict(all_recalibrators())
        del methods["identity"]
        for number, (name, method) in enumerate(methods.items(), 1):
            with ignore_calibration_warnings():
                proba[name] = method().fit(scores, y_calib).predict_proba(before)
            advance(number, len(methods))
    measures = (log_loss, brier_loss, expected_calibration_error)
    losses = {
        name: [measure(y_test, p) for measure in measures]
        for name, p in {"(before)": before, **proba}.items()
    }
    header = ("recalibrator", "log loss", "Brier", "ECE")
    table = Table(header, format_best_rows(losses, (min,) * 3), "on the test rows")
    screen.show_sections(Section(tables=[table]))
    after = proba["default"]
    with show_progress("report") as advance:
        report = calibration_report(
            y_test, {"before": before, "after (default)": after}, progress=advance
        )
    screen.print(f"before: {report.verdicts['before'].sentences[0].text}")
    screen.print(
        describe_log_loss_change_and_verdict(
            paired_difference(y_test, before, after, "log_loss")
        )
    )
    page = write_report(report, options.out, f"Calibration demo: {options.data}")
    return screen.print_paths_and_get_exit_code({"report": page})


def describe_log_loss_change_and_verdict(loss: "PairedDifference") -> str:
    """Return what the default recalibration changes, and the verdict that follows."""
    verdict = "these rows do not show whether to recalibrate"
    if loss.high < 0:
        verdict = "recalibrate"
    return (
        f"after (default): log loss {loss.second:.2f} instead of {loss.first:.2f}, "
        f"a change of {loss.difference:.2f} ({100 * loss.level:.0f} % interval "
        f"{loss.low:.2f} to {loss.high:.2f})\nVerdict: {verdict}."
    )
