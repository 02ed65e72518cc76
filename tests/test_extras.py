"""Without matplotlib or pandas: one sentence that states what to install."""

import subprocess
import sys

import pytest

from sklearn_calib._argument_checks import import_optional

PLOTS = {
    "ReliabilityDisplay.plot": "displays.ReliabilityDisplay.from_predictions(y, p)",
    "WitnessDisplay.plot": "displays.WitnessDisplay.from_predictions(y, p)",
    "CumulativeDifferenceDisplay.plot": (
        "displays.CumulativeDifferenceDisplay.from_predictions(y, p)"
    ),
    "DecompositionDisplay.plot": "displays.DecompositionDisplay.from_predictions(y, p)",
    "RefinementCurveDisplay.plot": "displays.RefinementCurveDisplay.from_predictions(y, [p, p])",
    "CalibratingFunctionDisplay.plot": "displays.CalibratingFunctionDisplay([0], {1: [0]}).plot()",
    "NullDistributionDisplay.plot": "displays.NullDistributionDisplay(None).plot()",
    "CalibrationWitness.plot": "metrics.calibration_witness(y, p).plot()",
}
_PROGRAM = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("matplotlib", "pandas", "mpl_toolkits"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from sklearn_calib import displays, metrics
from sklearn_calib.report import calibration_report
from sklearn_calib.datasets import make_overconfident
p, y = make_overconfident(2, 100)
report = calibration_report(y, p, n_resamples=2, measures=["brier_loss"])
for code in sys.argv[1:]:
    try:
        eval(code)
    except ModuleNotFoundError as error:
        print(error)
    else:
        print("no error")
"""


@pytest.mark.slow
def test_each_picture_and_table_says_what_to_install(tmp_path):
    page = tmp_path / "x.html"
    codes = [
        *PLOTS.values(),
        "report.plot()",
        "report.to_frame()",
        f"report.to_html({str(page)!r})",
    ]
    out = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *codes],
        capture_output=True,
        text=True,
        check=True,
    )
    said = out.stdout.splitlines()
    plot = "matplotlib is not installed. Run: pip install 'sklearn-calib[plot]'."
    assert said[: len(PLOTS)] == [plot] * len(PLOTS)
    assert said[len(PLOTS) :] == [
        plot,
        "pandas is not installed. Run: pip install 'sklearn-calib[cli]'.",
        "no error",  # a page needs neither
    ]
    assert "<svg" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_command_line_without_matplotlib(tmp_path):
    table = "label,p\n" + "0,0.1\n1,0.8\n1,0.3\n" * 20
    (tmp_path / "t.csv").write_text(table, encoding="utf-8")
    head, _, _ = _PROGRAM.replace('"pandas", ', "").partition(
        "from sklearn_calib import"
    )
    code = f"{head}from sklearn_calib._cli import main\nsys.exit(main(sys.argv[1:]))"
    arguments = ["audit", "t.csv", "--label", "label", "--prob", "p"]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, cwd=tmp_path)
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_broken_package_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text(
        "import a_part_that_is_missing\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_part_that_is_missing"):
        import_optional("half_installed", "plot")
    assert import_optional("json", "plot").loads("1") == 1
