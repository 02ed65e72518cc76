"""Real tables, classifiers, and their scores of calibration and test rows, kept between runs."""

import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.metaestimators import available_if

TRAIN, SMALL, LARGE, TEST = 6000, 600, 4000, 20_000
CACHE = Path(os.environ.get("SKLEARN_CALIB_CACHE", tempfile.gettempdir())) / "defaults"
EMBEDDED = ("breast_cancer", "digits", "wine")  # small: the mean over several splits
SPLITS = 10
RARE = 0.01  # classes below this frequency are left out, so that every set has some rows of each

TWO = {  # table: share of positives, None for the table's own
    "breast_cancer": None,
    "spambase": None,
    "credit_default": None,
    "adult": None,
    "adult 1 %": 0.01,
    "adult 3.5 %": 0.035,
    "bank_full": None,
    "bank_full 1 %": 0.01,
    "credit_default 3.5 %": 0.035,
    "htru2 1 %": 0.01,
    "covertype_2v4 1 %": 0.01,
    "covertype_2v4 3.5 %": 0.035,
}
SEVERAL = [
    "digits",
    "wine",
    "letter",
    "letter unequal",
    "adult:occupation",
    "adult:marital_status",
    "adult:workclass",
    "bank_full:job",
    "bank_full:month",
]
MODELS = {
    "forest": lambda: RandomForestClassifier(random_state=0),
    "neighbours": lambda: KNeighborsClassifier(15),
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
    "naive Bayes": GaussianNB,
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "logistic": lambda: LogisticRegression(max_iter=300),
    "logistic, weighted": lambda: LogisticRegression(max_iter=300, class_weight="balanced"),
    "forest, weighted": lambda: RandomForestClassifier(
        min_samples_leaf=3, class_weight="balanced", random_state=0
    ),
}


def jobs(folder):
    """(table, model, calibration rows) of all rounds whose data are there."""
    two = [(name, model) for name in TWO for model in MODELS]
    several = [(name, model) for name in SEVERAL for model in list(MODELS)[:7]]
    sizes = {}
    for names, pairs in ((list(TWO), two), (SEVERAL, several)):
        for table, model in pairs:  # half of the rounds each
            odd = (names.index(table) + list(MODELS).index(model)) % 2
            sizes[table, model] = SMALL if odd else LARGE
    missing = {t for t, _ in sizes if t not in EMBEDDED and folder is None}
    if missing:
        print(f"skipped, set SKLEARN_CALIB_DATA: {', '.join(sorted(missing))}")
    return [(t, m, size) for (t, m), size in sizes.items() if t not in missing]


def table(name, folder):
    """Features and labels as arrays, of about the wanted share of positives."""
    base, _, rate = name.partition(" ")
    base, _, target = base.partition(":")
    if base in EMBEDDED:
        return getattr(datasets, f"load_{base}")(return_X_y=True)
    if base == "covertype_2v4":
        data = np.load(folder / base / f"{base}.npz")
        frame, y = pd.DataFrame(data["X"]), data["y"]
    else:
        frame = pd.read_csv(folder / base / f"{base}.csv.gz").drop(columns="split", errors="ignore")
        if target:
            frame = frame.dropna(subset=[target]).drop(columns="target")
        y = frame.pop(target or "target").to_numpy()
    _, y = np.unique(y, return_inverse=True)
    rng, kept = np.random.default_rng(0), np.arange(len(y))
    if TWO.get(name):
        negative, positive = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
        negative = rng.permutation(negative)[:40_000]
        n = round(len(negative) * TWO[name] / (1 - TWO[name]))
        kept = np.sort(np.r_[negative, rng.permutation(positive)[:n]])
    elif rate == "unequal":
        kept = np.flatnonzero(rng.random(len(y)) < 0.9**y)
    frame, y = frame.iloc[kept], y[kept]
    frequent = np.bincount(y)[y] >= (RARE * len(y) if name in SEVERAL else 0)
    X = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(sparse_output=False), make_column_selector(dtype_exclude="number")),
    ).fit_transform(frame[frequent].fillna({c: "?" for c in frame.select_dtypes(exclude="number")}))
    return np.asarray(X), np.unique(y[frequent], return_inverse=True)[1]


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
        path = CACHE / f"{name}-{model}-{size}-{split}.npz".replace(" ", "_").replace(":", "_")
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
