"""scikit-learn's own tests of `CalibratedClassifierCV`, of the installed version, on our model."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

#: Tests of scikit-learn that fail on ours, and why; all of their parameters, or those
#: in brackets.
DIFFERENT = {
    "test_calibration_cv_nfold": "KFold(101) of 200 rows and leave-one-out are not refused",
    "test_calibration_ensemble_false[isotonic-calibrator1]": "isotonic regression interpolates in "
    "the probability, theirs in the decision value: 13 of 200 rows differ, by 0.001",
    "test_temperature_scaling": "reads calibrated_classifiers_[0].calibrators; ours are pairs of "
    "estimator and recalibrator",
    "test_calibration_nan_imputer": "ensemble=True of ten rows in two folds, five rows each, is "
    "refused",
    "test_calibration_prob_sum": "ensemble=True of ten rows in folds of one class is refused",
    "test_calibration_less_classes": "calls predict_proba of a pair",
}
#: Where the imports of their file end: the adapter follows.
IMPORTS_END = "N_SAMPLES = 200"
ADAPTER = '''
from sklearn_calib import CalibratedModel
from sklearn_calib.recalibrators import PlattScaling


class CalibratedClassifierCV(CalibratedModel):
    """`CalibratedModel` by the names of scikit-learn."""

    def __init__(self, estimator=None, *, method="sigmoid", cv=None, n_jobs=None, ensemble="auto"):
        self.method = method
        super().__init__(
            LinearSVC(random_state=0) if estimator is None else estimator,
            {"sigmoid": "platt"}.get(method, method),
            cv=cv, n_jobs=n_jobs, ensemble=ensemble,
        )

    _parameter_constraints = {**CalibratedModel._parameter_constraints, "method": "no_validation"}

    def set_params(self, **given):
        if "method" in given:
            given["recalibrator"] = {"sigmoid": "platt"}.get(given["method"], given["method"])
        return super().set_params(**given)

    @property
    def calibrated_classifiers_(self):
        return self.calibrated_pairs_
'''


@pytest.mark.slow
@pytest.mark.cross
def test_what_scikit_learn_tests_of_its_own(tmp_path):
    try:
        found = find_spec("sklearn.tests.test_calibration")
    except ModuleNotFoundError:
        found = None
    if found is None or not Path(found.origin).exists():
        pytest.skip("scikit-learn's own tests are not installed")
    theirs = Path(found.origin).read_text(encoding="utf-8")
    if theirs.count(IMPORTS_END) != 1:
        pytest.skip(
            "the file of scikit-learn's tests has another shape in this version"
        )
    at = tmp_path / "test_theirs.py"
    at.write_text(
        theirs.replace(IMPORTS_END, f"{ADAPTER}\n\n{IMPORTS_END}"), encoding="utf-8"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "sklearn.conftest", "-p"]
    command += ["no:cacheprovider", "-p", "no:xdist", "--tb=no", "-rfE", "-W", "ignore"]
    command += ["--rootdir", str(tmp_path), at.name]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    said = re.findall(r"(?m)^(?:FAILED|ERROR) test_theirs\.py::(\S+)", done.stdout)
    (passed,) = re.findall(r"(\d+) passed", done.stdout)
    keys = {name if name in DIFFERENT else name.split("[")[0] for name in said}
    assert keys == set(DIFFERENT), done.stdout[-2000:]
    assert int(passed) > 90
