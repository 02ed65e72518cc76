"""
Choose a recalibrator by cross-validation
=========================================

A recalibrator is a parameter like any other: by name, as an instance, or as a pipeline. A proper
loss decides.
"""

import pandas as pd
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_calib import CalibratedModel
from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.metrics import get_scorer
from sklearn_calib.recalibrators import HistogramBinning, TemperatureScaling

X, y = make_classification(
    1500, n_features=15, n_informative=6, n_classes=3, flip_y=0.15, random_state=0
)
search = GridSearchCV(
    CalibratedModel(RandomForestClassifier(30, random_state=0), cv=3),
    {
        "recalibrator": [
            "identity",
            "temperature",
            "beta",
            "isotonic",
            make_pipeline(TemperatureScaling(), HistogramBinning()),
        ]
    },
    scoring=get_scorer("neg_log_loss"),
    cv=3,
).fit(X[:1000], y[:1000])

pd.DataFrame(search.cv_results_)[
    ["param_recalibrator", "mean_test_score", "rank_test_score"]
]

# %%
# The winner, class by class, on rows that the search has not seen.

ReliabilityDisplay.from_estimator(
    search.best_estimator_,
    X[1000:],
    y[1000:],
    multiclass="classwise",
    strategy="isotonic",
)
