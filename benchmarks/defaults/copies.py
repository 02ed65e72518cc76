"""Rows that belong together and no ``groups=``: what the default makes of copies, and of none.

``python benchmarks/defaults/copies.py`` (4 minutes of two cores). Groups of rows lie
around a centre in ten dimensions, at a distance of `noise` in each; the labels of a
group share its own log-odds, the sum of four features and a normal number times
`effect`. The models are judged on new groups of one row. Columns: the mean log loss of
the classifier itself, of `CalibratedModel` with its default, with folds that know
nothing of copies (a splitter), with ``groups=``, and of scikit-learn's sigmoid; and the
share of fits that warned. The first lines have no copies.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]
import runner  # noqa: E402
from joblib import Parallel, delayed  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.metrics import log_loss  # noqa: E402
from sklearn.model_selection import StratifiedKFold  # noqa: E402

from sklearn_calib import CalibratedModel  # noqa: E402

DRAWS, FEATURES = 10, 10
DESIGNS = [  # groups, rows of each, noise, effect
    *((200, 1, 0.0, 1.0), (1000, 1, 0.0, 1.0)),
    *((100, 5, 0.0, 1.0), (300, 3, 0.0, 1.0), (100, 5, 0.05, 1.0), (300, 3, 0.1, 1.0)),
    *((100, 10, 0.05, 2.0), (100, 5, 0.2, 1.0), (100, 5, 0.3, 1.0)),
]
MODELS = {
    "forest": lambda: RandomForestClassifier(100, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=60),
    "logistic regression": LogisticRegression,
}


def draw(rng, groups, rows, noise, effect):
    centres = rng.normal(size=(groups, FEATURES))
    odds = centres[:, :4].sum(axis=1) + effect * rng.normal(size=groups)
    of = np.repeat(np.arange(groups), rows)
    X = centres[of] + noise * rng.normal(size=(groups * rows, FEATURES))
    return X, (rng.random(len(of)) < 1 / (1 + np.exp(-odds[of]))).astype(int), of


def one_draw(seed, design, name):
    rng = np.random.default_rng(seed)
    X, y, groups = draw(rng, *design)
    X_new, y_new, _ = draw(rng, 4000, 1, *design[2:])
    make = MODELS[name]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        default = CalibratedModel(make()).fit(X, y)
    warned = any("different rows of X" in str(one.message) for one in said)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [
            make().fit(X, y),
            default,
            CalibratedModel(make(), cv=folds).fit(X, y),
            CalibratedModel(make()).fit(X, y, groups=groups),
            CalibratedClassifierCV(make(), cv=folds).fit(X, y),
        ]
    return [
        log_loss(y_new, np.clip(m.predict_proba(X_new), 1e-9, 1)) for m in models
    ] + [warned]


def main():
    columns = ["classifier", "groups", "rows_of_each", "noise", "effect"]
    found = [
        "raw",
        "default",
        "any_folds",
        "with_groups",
        "sigmoid",
        "warned",
    ]
    rows = []
    for design in DESIGNS:
        for name in MODELS:
            draws = Parallel(n_jobs=2)(
                delayed(one_draw)(s, design, name) for s in range(DRAWS)
            )
            means = [f"{mean:.4f}" for mean in np.mean(draws, axis=0)]
            rows.append(
                dict(zip(columns + found, [name, *design, *means], strict=True))
            )
            print(rows[-1], flush=True)
    runner.write(HERE / "copies.csv", rows, columns + found)


if __name__ == "__main__":
    main()
