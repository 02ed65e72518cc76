"""What works with `pip install .` alone; what does not says which extra brings it."""

import contextlib
import importlib.util
import io
import tempfile
import warnings
from pathlib import Path

import sklearn_calib
from sklearn_calib._cli import main
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import all_metrics
from sklearn_calib.recalibrators import all_recalibrators
from sklearn_calib.report import calibration_report

extras = ("matplotlib", "pandas", "pyarrow", "rich", "pytest")
present = [name for name in extras if importlib.util.find_spec(name)]
assert not present, f"not a bare environment: {present}"

warnings.simplefilter("error")
warnings.simplefilter("ignore", CalibrationWarning)
for n_classes in (2, 3):
    proba, y = make_overconfident(n_classes, 300)
    for name, recalibrator in all_recalibrators().items():
        found = recalibrator().fit(proba, y).predict_proba(proba)
        assert abs(found.sum(axis=1) - 1).max() < 1e-9, name
    for name, measure in all_metrics().items():
        assert measure(y, proba) == measure(y, proba), f"{name}: not a number"
print(f"{len(all_recalibrators())} recalibrators and {len(all_metrics())} measures work")

with tempfile.TemporaryDirectory() as folder:
    page = Path(calibration_report(y, proba).to_html(Path(folder) / "report.html"))
    assert "<svg" in page.read_text()
print("reports write their page, with pictures")

error = io.StringIO()
with contextlib.redirect_stderr(error):
    code = main(["demo"])
assert code == 2 and "sklearn-calib[cli]" in error.getvalue(), (code, error.getvalue())
print("skipped: the command line (no rich, pandas), and it says so")
print("skipped: displays (no matplotlib)")
print(sklearn_calib.__version__, "from", sklearn_calib.__file__)
