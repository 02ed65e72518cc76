"""
XGBoost: truncate a model that is trained already
=================================================

A booster was trained for 300 rounds. Validation rows say how many of them to keep and which
temperature it needs; nothing is trained again.
"""

import xgboost
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from sklearn_calib import RefineThenCalibrateCV
from sklearn_calib.displays import RefinementCurveDisplay
from sklearn_calib.metrics import log_loss

X, y = make_classification(
    8000, n_informative=12, n_classes=3, flip_y=0.05, random_state=1
)
X, X_valid, y, y_valid = train_test_split(X, y, test_size=0.25, random_state=0)
X_valid, X_test, y_valid, y_test = train_test_split(X_valid, y_valid, random_state=0)
booster = xgboost.XGBClassifier(n_estimators=300, learning_rate=0.3, n_jobs=1).fit(X, y)

model = RefineThenCalibrateCV(FrozenEstimator(booster)).fit(X_valid, y_valid)
RefinementCurveDisplay.from_estimator(model)

# %%
# The chosen booster is an ordinary ``XGBClassifier`` with fewer rounds.

kept = model.best_estimator_.estimator
print(type(kept).__name__, kept.get_booster().num_boosted_rounds(), "rounds")
print("all rounds:  ", log_loss(y_test, booster.predict_proba(X_test)))
print("recalibrated:", log_loss(y_test, model.predict_proba(X_test)))
