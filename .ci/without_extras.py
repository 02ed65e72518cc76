"""What works with `pip install .` alone; what does not says which extra brings it.

And `compile_kernels` leaves nothing to compile, which shows in a fresh environment alone.
"""

import contextlib
import importlib.util
import io
import os
import re
import sys
import tempfile
import time
import types
import warnings
from pathlib import Path

import numpy as np
from numba.core import event

import sklearn_calib
from sklearn_calib._cli import main
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import all_metrics
from sklearn_calib.recalibrators import all_recalibrators
from sklearn_calib.report import calibration_report

#: Pages whose code needs no extras; of the README, all but the picture.
PAGES = (
    *("README.md", "doc/install.rst"),
    *(
        f"doc/user_guide/{name}"
        for name in (
            *(
                "a_judge_and_200_labels.rst",
                "class_frequencies_change.rst",
                "coming_from_r.rst",
            ),
            *("imbalanced_data.rst", "large_data_logits.inc"),
            *("production.rst", "troubleshooting.rst"),
        )
    ),
)
extras = ("matplotlib", "pandas", "pyarrow", "rich", "pytest")
present = [name for name in extras if importlib.util.find_spec(name)]
assert not present, f"not a bare environment: {present}"

warnings.simplefilter("error")
warnings.simplefilter("ignore", CalibrationWarning)
sklearn_calib.compile_kernels()
compiled = []


class Listener(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("sklearn_calib"):
            compiled.append(function.__name__)

    def on_end(self, event):
        pass


event.register("numba:compile", Listener())
for n_classes, dtype in ((2, "float64"), (3, "float32")):
    proba, y = make_overconfident(n_classes, 300)
    proba, weight = proba.astype(dtype), np.arange(300) % 3 + 1
    for name, recalibrator in all_recalibrators().items():
        weighted = (
            {"sample_weight": weight} if recalibrator.capabilities.sample_weight else {}
        )
        for options in ({}, weighted):
            found = (
                recalibrator()
                .fit(proba, y, **options)
                .predict_proba(np.asfortranarray(proba))
            )
            assert abs(found.sum(axis=1) - 1).max() < 1e-9, name
    for name, measure in all_metrics().items():
        assert measure(y, proba) == measure(y, proba), f"{name}: not a number"
        assert np.isfinite(measure(y, proba, sample_weight=weight)), name
    calibration_report(y, proba, n_resamples=5)
assert not compiled, f"compile_kernels leaves {compiled}"
print(
    f"{len(all_recalibrators())} recalibrators and {len(all_metrics())} measures work"
)

with tempfile.TemporaryDirectory() as folder:
    page = Path(calibration_report(y, proba).to_html(Path(folder) / "report.html"))
    assert "<svg" in page.read_text("utf-8")
print("reports write their page, with pictures")

here, begun, n_blocks = os.getcwd(), time.perf_counter(), 0
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
    os.chdir(folder)
    for each in PAGES:
        text = (Path(__file__).resolve().parent.parent / each).read_text("utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, re.S) or [
            re.sub(r"(?m)^   ", "", block)
            for block in re.findall(r"code-block:: python\n\n((?:(?:   .*)?\n)+)", text)
        ]
        assert blocks, f"{each}: no code"
        # so that classes are pickled
        sys.modules["snippet"] = module = types.ModuleType("snippet")
        for block in blocks:
            # needs matplotlib
            code = re.sub(r"(?m)^ReliabilityDisplay\..*$", "", block)
            exec(compile(code, each, "exec"), vars(module))
        n_blocks += len(blocks)
    os.chdir(here)
print(
    f"{n_blocks} programs of {len(PAGES)} pages run, {time.perf_counter() - begun:.0f} s"
)

error = io.StringIO()
with contextlib.redirect_stderr(error):
    code = main(["demo"])
assert code == 2 and "sklearn-calib[cli]" in error.getvalue(), (code, error.getvalue())
print("skipped: the command line (no rich, pandas), and it says so")
print("skipped: displays (no matplotlib)")
print(sklearn_calib.__version__, "from", sklearn_calib.__file__)
