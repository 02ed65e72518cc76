"""
A grid over a pipeline, judged by refinement
============================================

Parameters of any step and the stage of the last step are chosen together.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.feature_selection import SelectKBest
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_calib import RefineThenCalibrateCV
from sklearn_calib.displays import RefinementCurveDisplay

X, y = make_classification(
    2000, n_features=40, n_informative=8, flip_y=0.05, random_state=0
)
pipeline = Pipeline(
    [
        ("scale", StandardScaler()),
        ("select", SelectKBest()),
        (
            "net",
            MLPClassifier((32,), max_iter=30, learning_rate_init=0.01, random_state=0),
        ),
    ]
)
grid = {"select__k": [10, 20, 40], "net__alpha": [1e-4, 0.1, 1.0]}
search = RefineThenCalibrateCV(pipeline, grid, cv=3).fit(X, y)
print(search.best_params_, "epochs:", search.best_stage_)

# %%
# The smallest criterion of each pair of parameters, over the epochs.

table = pd.DataFrame(search.cv_results_)
cells = table.pivot_table(
    "criterion", "param_select__k", "param_net__alpha", aggfunc="min"
)
fig, ax = plt.subplots(layout="constrained")
image = ax.imshow(cells)
ax.set(xlabel="net__alpha", ylabel="select__k")
ax.set_xticks(range(len(cells.columns)), cells.columns)
ax.set_yticks(range(len(cells.index)), cells.index)
fig.colorbar(image, label="criterion")

# %%
# The winner's training.

RefinementCurveDisplay.from_estimator(search)

# %%
# All candidates and epochs are rows of a table.

shown = ["param_select__k", "param_net__alpha", "stage", "risk", "refinement"]
table.sort_values("rank")[shown].head()
