"""Promised and realised: what the features are said to gain, and what a booster then gains."""

import numpy as np
import pandas as pd
from runner import data_folder
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_calib.decomposition import decompose_loss
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import get_recalibrator

TABLES = ("adult", "credit_default", "bank_full")
TRAINING, MEASURED = 6000, 3000
RECALIBRATOR = "default"


def promised_and_realised(name):
    """One row: a logistic regression, what its features promise, and a booster on the same rows."""
    file = data_folder() / name / f"{name}.csv.gz"
    frame = pd.read_csv(file).drop(columns="split", errors="ignore")
    label = next(c for c in ("label", "y", "target", "income", "default") if c in frame)
    frame = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    y, X = np.unique(frame.pop(label), return_inverse=True)[1], frame
    text = X.select_dtypes(exclude="number").columns
    numbers = X.columns.difference(text)
    X[text] = X[text].fillna("missing").astype("category")
    train, some, test = np.split(np.arange(len(X)), [TRAINING, TRAINING + MEASURED])
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=10), text),
    )
    model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(
        X.iloc[train], y[train]
    )
    p = model.predict_proba(X)
    parts = decompose_loss(
        y[some], p[some], features=X.iloc[some], recalibrator=RECALIBRATOR
    )
    mapped = get_recalibrator(RECALIBRATOR).fit(p[some], y[some]).predict_proba(p[test])
    booster = HistGradientBoostingClassifier(
        categorical_features="from_dtype",
        learning_rate=0.05,
        early_stopping=True,
        random_state=0,
    ).fit(X.iloc[train], y[train])
    before, after = log_loss(y[test], p[test]), log_loss(y[test], mapped)
    boosted = log_loss(y[test], booster.predict_proba(X.iloc[test]))
    low, high = parts.interval("grouping", 0.9)
    return {
        "table": name,
        "log_loss": f"{before:.4f}",
        "recalibration_promised": f"{parts.calibration:.4f}",
        "recalibration_realised": f"{before - after:.4f}",
        "features_promised": f"{parts.grouping:.4f}",
        "low": f"{low:.4f}",
        "high": f"{high:.4f}",
        "booster_realised": f"{after - boosted:.4f}",
        "action": parts.action,
        "columns": ", ".join(map(str, [*parts.feature_gains][:3])),
    }
