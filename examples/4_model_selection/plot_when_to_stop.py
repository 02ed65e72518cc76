"""
Where to stop boosting
======================

The log loss of held-out rows rises when boosting goes on, although the model still learns: it
becomes overconfident. Refinement is the loss after temperature scaling; it falls for longer.
"""

from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV
from sklearn_calib.displays import DecompositionDisplay, RefinementCurveDisplay

X, y = make_classification(
    4000, n_features=20, n_informative=10, n_classes=5, flip_y=0.05, random_state=0
)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
learner = HistGradientBoostingClassifier(max_iter=80, learning_rate=0.3, random_state=0)
model = RefineThenCalibrateCV(learner, cv=3).fit(X, y)

# %%
# One fit per fold gives every stage.

RefinementCurveDisplay.from_estimator(model)

# %%
# What the longer training is worth: both models are recalibrated, one was stopped where the log
# loss was smallest.

curve = model.refinement_curve_
early = learner.set_params(
    max_iter=int(curve.stage[curve.risk.argmin()]), early_stopping=False
)
early = CalibratedModel(early, cv=3, ensemble=False).fit(X, y)
models = {
    "stopped by log loss": early,
    "stopped by refinement": model,
    "the same, not recalibrated": model.best_estimator_,
}
DecompositionDisplay.from_predictions(
    y_test, {name: m.predict_proba(X_test) for name, m in models.items()}
)
