"""What the experiments share: methods, measures by equation 70, data, and rounds that resume."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_calib import canonical_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import (
    brier_loss,
    expected_calibration_error,
    log_loss,
    maximum_calibration_error,
)
from sklearn_calib.recalibrators import (
    BBQ,
    ENIR,
    AdaptiveCalibration,
    BetaCalibration,
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    NearIsotonicCalibration,
    PlattScaling,
    RestrictedPolynomialRegression,
    SmoothIsotonicCalibration,
    TemperatureScaling,
    TrendFiltering,
    TrendFilteringEnsemble,
    VennAbers,
)

sys.path.insert(0, str(Path(__file__).parents[2]))
import runner

HERE = Path(__file__).parent
MEASURES = ["ECE", "MCE", "Brier", "log loss"]


def methods():
    """The paper's eleven by its names, then the others."""
    return {
        "Platt": PlattScaling(),
        "HistBin": HistogramBinning("bdeu", prior_weight=0),
        "IsoReg": IsotonicCalibration(),
        "NearIso": NearIsotonicCalibration("bdeu"),
        "LiTE": TrendFiltering(),
        "ACP": AdaptiveCalibration(prior_weight=0),
        "SmoIsoReg": SmoothIsotonicCalibration(),
        "RPR (paper's grid)": RestrictedPolynomialRegression.paper(),
        "BBQ": BBQ(),
        "ENIR": ENIR(),
        "ELiTE": TrendFilteringEnsemble(),
        "RPR (default)": RestrictedPolynomialRegression(),
        "RPR (log-odds)": RestrictedPolynomialRegression(scale="logit"),
        "NearIso (BIC)": NearIsotonicCalibration(),
        "beta": BetaCalibration(),
        "temperature": TemperatureScaling(),
        "Venn-Abers": VennAbers(),
        "uncalibrated": Identity(),
    }


def measures(y, proba):
    """ECE and MCE in per cent over 100 bins of equal mass; a value is not split over bins."""
    bins = {"n_bins": 100, "strategy": "quantile"}
    found = {
        "ECE": 100 * expected_calibration_error(y, proba, **bins),
        "MCE": 100 * maximum_calibration_error(y, proba, **bins),
        "Brier": brier_loss(y, proba),
        "log loss": log_loss(y, proba),
    }
    return {name: round(float(value), 9) for name, value in found.items()}


def judged(fitted, scores, y):
    """The measures of one fitted recalibrator on margins."""
    return measures(y, fitted.predict_proba(canonical_proba(scores, kind="logits")))


def fit(method, scores, y, **params):
    """Fit on margins, without the warnings that small sets call for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return method.fit(canonical_proba(scores, kind="logits"), y, **params)


def compared(scores, y, proba, y_test, about, given=None):
    """One row per method: fitted to scores (margins) and labels, judged on canonical test rows.

    `given` holds the predictions of methods that need more than scores.
    """
    rows = []
    for name, method in methods().items():
        p = (given or {}).get(name)
        if p is None:
            p = fit(method, scores, y).predict_proba(proba)
        rows.append({**about, "method": name, **measures(y_test, p)})
    return rows


def load(name):
    """Numbers and one-hot categories of complete rows, labels 0 and 1."""
    table = pd.read_csv(
        runner.data_folder() / name / f"{name}.csv.gz", skipinitialspace=True
    )
    table = table.drop(columns=[c for c in ("split",) if c in table]).dropna()
    y = pd.factorize(table.pop("target"), sort=True)[0]
    return table.reset_index(drop=True), y


def prepared(table):
    """A transformer; categories are those of the whole table, so that no column is missing."""
    words = list(table.select_dtypes(exclude="number"))
    numbers = [c for c in table if c not in words]
    levels = [np.unique(table[c].astype(str)) for c in words]
    return make_pipeline(
        make_column_transformer(
            (StandardScaler(), numbers),
            (OneHotEncoder(categories=levels, sparse_output=False), words),
        ),
    )


def rounds(name, jobs, function):
    """`runner.rounds` with the unfinished work beside this file."""
    return runner.rounds(HERE / f"{name}.partial.jsonl", jobs, function)


def summarised(rows, by):
    """Mean and standard deviation over the rounds, as text."""
    table = pd.DataFrame(rows)
    names = [m for m in [*MEASURES, "L2"] if m in table]
    groups = table.groupby(by, sort=False)[names]
    mean, spread = groups.mean(), groups.std()
    out = mean.copy().astype(object)
    for column in names:
        digits = ".2f" if column in ("ECE", "MCE", "L2") else ".4f"
        out[column] = [
            f"{m:{digits}} ± {s:{digits}}"
            for m, s in zip(mean[column], spread[column], strict=True)
        ]
    return out.reset_index()


def report(rows, by, name):
    """Write and show a table by the given columns, with mean ranks, and one over everything.

    The ranks are among the methods of one round: every column that is not a measure tells
    rounds apart.
    """
    place = pd.DataFrame(rows)
    one = [column for column in place if column not in (*MEASURES, "method")]
    for measure in MEASURES:
        place[f"rank {measure}"] = place.groupby(one)[measure].rank()
    ranks = [f"rank {measure}" for measure in MEASURES]
    order = {method: number for number, method in enumerate(methods())}
    mean = place.groupby(by)[ranks].mean().round(1).reset_index()
    table = summarised(rows, by).merge(mean, on=by)
    table = table.sort_values(
        by, key=lambda c: c.map(order) if c.name == "method" else c
    )
    overall = place.groupby("method")[[*MEASURES, *ranks]].mean()
    digits = {**dict.fromkeys(["ECE", "MCE", *ranks], 2), "Brier": 4, "log loss": 4}
    overall = overall.sort_values("rank Brier").round(digits).reset_index()
    for part, path in ((table, f"{name}.csv"), (overall, f"{name}_overall.csv")):
        print(part.to_string(index=False))
        runner.write(HERE / path, part.to_dict("records"), [*part.columns])
