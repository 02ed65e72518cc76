"""
From probabilities to decisions
===============================

Naive Bayes ranks well and is far too certain. Someone who acts on its probabilities pays for that,
and at which thresholds, the regret curve states.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from sklearn_calib import CalibratedModel
from sklearn_calib.decisions import (
    CostSensitiveClassifier,
    decision_difference,
    expected_cost_test,
    expected_metrics,
)
from sklearn_calib.displays import DecisionCurveDisplay, RiskCoverageDisplay

X, y = make_classification(
    8000, n_informative=4, n_redundant=8, weights=[0.8], flip_y=0.03, random_state=0
)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
raw = GaussianNB().fit(X, y)
model = CalibratedModel(GaussianNB(), "isotonic").fit(X, y)
p_raw, p = raw.predict_proba(X_test), model.predict_proba(X_test)

# %%
# A miss costs ten times as much as a false alarm, so one acts from a probability of 1/11 on. The
# raw probabilities promise a cost that is not kept:

costs = [[0, 1], [10, 0]]
for name, proba in (("raw", p_raw), ("calibrated", p)):
    found = expected_cost_test(y_test, proba, costs)
    print(
        f"{name}: believed {found.believed:.3f}, paid {found.realised:.3f}, p = {found.pvalue:.2g}"
    )

# %%
# A third action, to ask a person for 0.4, takes the cases in between.

costs = [[0, 1, 0.4], [10, 0, 0.4]]
actions = ["let pass", "stop", "ask"]
both = ("raw", GaussianNB()), ("calibrated", CalibratedModel(GaussianNB(), "isotonic"))
for name, classifier in both:
    decide = CostSensitiveClassifier(classifier, costs, actions=actions).fit(X, y)
    asked = (decide.predict(X_test) == "ask").mean()
    print(f"{name}: {-decide.score(X_test, y_test):.3f} per row, {asked:.0%} asked")

# %%
# Those with other costs act at other thresholds. The decision curve has all of them; below, what
# recalibration is worth to each.

DecisionCurveDisplay.from_predictions(y_test, p_raw, name="naive Bayes", recalibrated=p)
plt.show()

# %%
# Is the calibrated model better? The band holds for all thresholds together.

DecisionCurveDisplay(
    {"calibrated less raw": decision_difference(y_test, p_raw, p)}
).plot()
plt.show()

# %%
# Before labels come in, calibrated probabilities say how good the decisions will be; afterwards,
# ``z`` states whether they were right.

print(
    expected_metrics(p, threshold=1 / 11, y_true=y_test).to_frame().round(3).to_string()
)

# %%
# Answering only where the model is confident: the error rate against the share of answers.

RiskCoverageDisplay.from_predictions(y_test, p, name="calibrated")
plt.show()
