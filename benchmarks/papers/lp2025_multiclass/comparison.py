"""MulticlassBinning beside the usual recalibrators: simulated and real predictions."""

import warnings

import numpy as np
import pandas as pd
import setting
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from sklearn_calib import canonical_proba
from sklearn_calib.metrics import (
    brier_loss,
    expected_calibration_error,
    get_scorer,
    log_loss,
    lp_calibration_error,
)
from sklearn_calib.recalibrators import (
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    MulticlassBinning,
    StructuredMatrixScaling,
    TemperatureScaling,
)

SEEDS = 10
SIMULATED = {f"{family}, k=10": (family, 10) for family in setting.FAMILIES}
STORED = (
    "cifar10_wideresnet16_4",
    "cifar100_densenet_bc100",
    "hpc_cv_probs",
    "news20_cv_cleanlab",
)
LETTER = {
    "letter, tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
    "letter, naive Bayes": GaussianNB(),
    "letter, forest": RandomForestClassifier(50, random_state=0),
}
MEASURES = ["Brier", "log loss", "accuracy", "ECE", "Err_2, 20 levels"]


def methods():
    search = GridSearchCV(
        MulticlassBinning(),
        {"n_levels": [5, 10, 20, 50]},
        scoring=get_scorer("neg_brier_loss"),
        cv=3,
    )
    return {
        "as they are": Identity(),
        "temperature": TemperatureScaling(),
        "isotonic": IsotonicCalibration(),
        "histogram": HistogramBinning(prior_weight=0),
        "structured matrix": StructuredMatrixScaling(),
        "binning, paper p=inf eps=.02": MulticlassBinning.paper(np.inf, 0.02),
        "binning": MulticlassBinning(),
        "binning, levels by CV": search,
        "temperature, then binning": make_pipeline(
            TemperatureScaling(), MulticlassBinning()
        ),
    }


def load(name, seed):
    """Scores and labels of calibration and of test rows."""
    rng = np.random.default_rng(seed)
    if name in SIMULATED:
        family, k = SIMULATED[name]
        P, _, y = setting.draw(family, 10_000, k, 2 * seed)
        Q, _, z = setting.draw(family, 40_000, k, 2 * seed + 1)
        return P, y, Q, z
    folder = setting.runner.data_folder()
    if name in LETTER:
        table = pd.read_csv(folder / "letter" / "letter.csv.gz")
        y = table.pop("target").to_numpy()
        order = rng.permutation(len(y))
        train, part, test = order[:6000], order[6000:13_000], order[13_000:]
        X = table.to_numpy(float)
        model = LETTER[name].fit(X[train], y[train])
        return (
            model.predict_proba(X[part]),
            y[part],
            model.predict_proba(X[test]),
            y[test],
        )
    stored = np.load(folder / name / f"{name}.npz")
    if "logits" in stored:
        P = canonical_proba(stored["logits"], kind="logits")
    else:
        P = canonical_proba(
            stored["probs"] / stored["probs"].sum(axis=1, keepdims=True)
        )
    y = stored["labels"]
    order = rng.permutation(len(y))
    half = len(y) // 2
    return P[order[:half]], y[order[:half]], P[order[half:]], y[order[half:]]


def one(name, seed):
    warnings.simplefilter("ignore")
    P, y, Q, z = load(name, seed)
    rows = []
    for method, recalibrator in methods().items():
        fitted = recalibrator.fit(P, y)
        p = fitted.predict_proba(Q)
        error = lp_calibration_error(z, p, estimator="unbiased", labels=fitted.classes_)
        found = {
            "Brier": brier_loss(z, p, labels=fitted.classes_),
            "log loss": log_loss(z, p, labels=fitted.classes_),
            "accuracy": np.mean(fitted.classes_[p.argmax(axis=1)] == z),
            "ECE": expected_calibration_error(z, p, labels=fitted.classes_),
            "Err_2, 20 levels": error,
        }
        found = {measure: float(value) for measure, value in found.items()}
        share = fitted.mass_in_bins_ if method == "binning" else None
        rows.append(
            {
                "data": name,
                "seed": seed,
                "method": method,
                **found,
                "mass in cells": share,
            }
        )
    return rows


def main():
    names = [*SIMULATED]
    if setting.runner.data_folder() is None:
        print("skipped the real predictions: no data folder")
    else:
        names += [*STORED, *LETTER]
    jobs = [(name, seed) for seed in range(SEEDS) for name in names]
    path = setting.HERE / "comparison.partial.jsonl"
    table = pd.DataFrame(setting.runner.rounds(path, jobs, one))
    groups = table.groupby(["data", "method"], sort=False)
    mean, spread = groups[MEASURES].mean(), groups[MEASURES].std()
    heavy = groups["mass in cells"].mean()
    shown = [
        {
            "data": data,
            "method": method,
            **{
                m: f"{mean.loc[key, m]:.4f} ± {spread.loc[key, m]:.4f}"
                for m in MEASURES
            },
            "mass in cells": f"{heavy[key]:.2f}" if method == "binning" else "",
        }
        for data in names
        for method in methods()
        for key in [(data, method)]
    ]
    print(pd.DataFrame(shown).to_string(index=False))
    setting.runner.write(setting.HERE / "comparison.csv", shown)
    wide = mean["Brier"].unstack("method")[list(methods())].loc[names]
    wide = wide.round(4).reset_index()
    setting.runner.write(
        setting.HERE / "comparison_brier.csv", wide.to_dict("records"), [*wide.columns]
    )


if __name__ == "__main__":
    main()
