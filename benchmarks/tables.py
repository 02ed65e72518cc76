"""Real tables as arrays, and classifiers: what the experiments on calibration sets share."""

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

EMBEDDED = ("breast_cancer", "digits", "wine")  # in scikit-learn
RARE = 0.01  # rarer classes are left out, so that every set has some rows of each

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
    "logistic, weighted": lambda: LogisticRegression(
        max_iter=300, class_weight="balanced"
    ),
    "forest, weighted": lambda: RandomForestClassifier(
        min_samples_leaf=3, class_weight="balanced", random_state=0
    ),
}


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
        frame = pd.read_csv(folder / base / f"{base}.csv.gz").drop(
            columns="split", errors="ignore"
        )
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
        (
            OneHotEncoder(sparse_output=False),
            make_column_selector(dtype_exclude="number"),
        ),
    ).fit_transform(
        frame[frequent].fillna({c: "?" for c in frame.select_dtypes(exclude="number")})
    )
    return np.asarray(X), np.unique(y[frequent], return_inverse=True)[1]
