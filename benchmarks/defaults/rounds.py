"""Real tables, classifiers, and their scores of calibration and test rows, kept between runs."""

import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils.metaestimators import available_if

sys.path.insert(0, str(Path(__file__).parents[1]))
from tables import EMBEDDED, MODELS, SEVERAL, TWO, table

TRAIN, SMALL, LARGE, TEST = 6000, 600, 4000, 20_000
CACHE = Path(os.environ.get("SKLEARN_CALIB_CACHE", tempfile.gettempdir())) / "defaults"
SPLITS = 10  # of the tables of scikit-learn, which are small: the mean over them


def jobs(folder):
    """(table, model, calibration rows) of all rounds whose data are there."""
    two = [(name, model) for name in TWO for model in MODELS]
    several = [(name, model) for name in SEVERAL for model in list(MODELS)[:7]]
    sizes = {}
    for names, pairs in ((list(TWO), two), (SEVERAL, several)):
        for name, model in pairs:  # half of the rounds each
            odd = (names.index(name) + list(MODELS).index(model)) % 2
            sizes[name, model] = SMALL if odd else LARGE
    missing = {t for t, _ in sizes if t not in EMBEDDED and folder is None}
    if missing:
        print(f"skipped, set SKLEARN_CALIB_DATA: {', '.join(sorted(missing))}")
    return [(t, m, size) for (t, m), size in sizes.items() if t not in missing]


class Remembered(ClassifierMixin, BaseEstimator):
    """A fitted classifier as a table of its scores: X holds row numbers."""

    def __init__(self, scores, kind):
        self.scores = scores
        self.kind = kind
        columns = 2 if scores.ndim == 1 else scores.shape[1]
        self.classes_ = np.arange(columns)

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        if self.kind == "proba":
            return self.scores[np.ravel(X)]
        z = self.scores[np.ravel(X)]
        z = np.column_stack([np.zeros_like(z), z]) if z.ndim == 1 else z
        z = np.exp(z - z.max(axis=1, keepdims=True))
        return z / z.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    @available_if(lambda self: self.kind == "logits")
    def decision_function(self, X):
        return self.scores[np.ravel(X)]


def scored(name, model, size, folder):
    """For each split: a `Remembered` classifier, rows and labels for calibration, and for test."""
    for split in range(SPLITS if name in EMBEDDED else 1):
        path = CACHE / f"{name}-{model}-{size}-{split}.npz".replace(" ", "_").replace(
            ":", "_"
        )
        if not path.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            np.savez(path, **_fitted(*table(name, folder), model, size, split))
        kept = np.load(path)
        classifier = Remembered(kept["scores"], str(kept["kind"]))
        y, n = kept["y"], int(kept["n"])
        yield classifier, np.arange(n), y[:n], np.arange(n, len(y)), y[n:]


def _fitted(X, y, model, size, split):
    n = min(len(y) // 3, TRAIN)
    size = min(len(y) // 4, size) if size == SMALL else min(len(y) // 3, size)
    parts = {"stratify": y, "train_size": n, "random_state": split}
    X_train, X, y_train, y = train_test_split(X, y, **parts)
    parts = {"stratify": y, "train_size": size, "random_state": split + 100}
    X_calib, X, y_calib, y = train_test_split(X, y, **parts)
    X, y = X[:TEST], y[:TEST]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = MODELS[model]().fit(X_train, y_train)
    kind = "logits" if hasattr(fitted, "decision_function") else "proba"
    respond = fitted.decision_function if kind == "logits" else fitted.predict_proba
    scores = np.concatenate([respond(X_calib), respond(X)])
    return {"scores": scores, "kind": kind, "y": np.r_[y_calib, y], "n": size}
