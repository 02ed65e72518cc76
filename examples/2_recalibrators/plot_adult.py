"""
Which recalibrator for a boosted model of Adult?
================================================

Who earns more than 50,000 dollars, by gradient boosting that went on for too long; 2000 rows to
recalibrate. The data come from the folder named by ``SKLEARN_CALIB_DATA``, or from OpenML.
"""

import os
from pathlib import Path

import pandas as pd
from sklearn.datasets import fetch_openml
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from sklearn_calib import CalibratedModel
from sklearn_calib.displays import CalibratingFunctionDisplay
from sklearn_calib.inference import calibration_test
from sklearn_calib.metrics import brier_loss, log_loss, smooth_calibration_error


def adult():
    stored = Path(os.environ.get("SKLEARN_CALIB_DATA", ".")) / "adult" / "adult.csv.gz"
    if stored.exists():
        table = pd.read_csv(stored, skipinitialspace=True).drop(columns="split", errors="ignore")
        return table.drop(columns="target"), table["target"]
    return fetch_openml("adult", version=2, as_frame=True, return_X_y=True)


try:
    X, y = adult()
except OSError:
    raise SystemExit("Adult is neither stored here nor can OpenML be reached.") from None
X = X.apply(lambda column: column.astype("category") if column.dtype.kind not in "if" else column)
X, X_rest, y, y_rest = train_test_split(X, y, train_size=5000, random_state=0)
X_cal, X_test, y_cal, y_test = train_test_split(X_rest, y_rest, train_size=2000, random_state=0)
model = HistGradientBoostingClassifier(
    max_iter=300, early_stopping=False, categorical_features="from_dtype", random_state=0
).fit(X, y)

# %%
# The classifier is trained; the recalibrators see other rows. The labels are text.

names = ["temperature", "beta", "restricted_polynomial", "isotonic", "venn_abers", "bbq"]
fitted = {
    name: CalibratedModel(FrozenEstimator(model), name).fit(X_cal, y_cal).recalibrator_
    for name in names
}
p_test = model.predict_proba(X_test)
CalibratingFunctionDisplay.from_recalibrators(fitted, y_test, p_test, n_bins=30)

# %%
# All of them repair it; what is left differs little. The last column tests on 5000 rows whether
# the probabilities can be told from calibrated ones.

rows = {}
for name, recalibrator in {"as it is": None, **fitted}.items():
    p = recalibrator.predict_proba(p_test) if recalibrator else p_test
    rows[name] = {
        "log loss": log_loss(y_test, p),
        "Brier": brier_loss(y_test, p),
        "smooth error": smooth_calibration_error(y_test, p),
        "p-value": calibration_test(y_test[:5000], p[:5000], random_state=0).pvalue,
    }
pd.DataFrame(rows).T.round(4)
