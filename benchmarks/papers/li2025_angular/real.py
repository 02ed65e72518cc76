"""Real rows with about as many (random Fourier) features as rows: no held-out row is spared."""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_calib import CalibratedModel
from sklearn_calib.classifiers import AngularCalibratedClassifier
from sklearn_calib.metrics import brier_loss, expected_calibration_error, log_loss

sys.path.insert(0, str(Path(__file__).parents[2]))
import runner

HERE = Path(__file__).parent
SEEDS = 20
ROWS = {"breast_cancer": 280, "digits, even": 500, "spambase": 500, "letter, A-M": 500}
MEASURES = ["log loss", "Brier", "ECE"]


def load(name):
    if name == "breast_cancer":
        return load_breast_cancer(return_X_y=True)
    if name == "digits, even":
        X, y = load_digits(return_X_y=True)
        return X, y % 2 == 0
    stem = name.partition(",")[0]
    table = pd.read_csv(runner.data_folder() / stem / f"{stem}.csv.gz")
    y = table.pop("target")
    return table.to_numpy(float), (
        y <= "M" if stem == "letter" else y == y.max()
    ).to_numpy()


def methods(model):
    return {
        "uncalibrated": model,
        "Platt, 5 folds": CalibratedModel(model, "platt", ensemble=False),
        "CalibratedClassifierCV(5)": CalibratedClassifierCV(model, cv=5),
        "ALO-Platt": CalibratedModel(model, "platt", cv="alo"),
        "ALO-isotonic": CalibratedModel(model, "isotonic", cv="alo"),
        "ALO-beta": CalibratedModel(model, "beta", cv="alo"),
        "ALO-temperature": CalibratedModel(model, "temperature", cv="alo"),
        "angular": AngularCalibratedClassifier(model),
    }


def one_draw(data, ratio, C, seed):
    warnings.simplefilter("ignore")
    X, y = load(data)
    n = ROWS[data]
    chosen = np.random.default_rng(seed).permutation(len(y))
    train, test = chosen[:n], chosen[n : n + 10_000]
    features = make_pipeline(
        StandardScaler(),
        RBFSampler(
            gamma=0.5 / X.shape[1], n_components=int(n / ratio), random_state=seed
        ),
        StandardScaler(with_std=False),
    ).fit(X[train])
    Z, Z_test = features.transform(X[train]), features.transform(X[test])
    model = LogisticRegression(C=C, tol=1e-6, max_iter=5000)
    rows = []
    for name, method in methods(model).items():
        start = time.perf_counter()
        fitted = method.fit(Z, y[train])
        seconds = time.perf_counter() - start
        p = fitted.predict_proba(Z_test)
        found = {
            "log loss": float(log_loss(y[test], p)),
            "Brier": float(brier_loss(y[test], p)),
            "ECE": float(expected_calibration_error(y[test], p, strategy="quantile")),
            "seconds": seconds,
        }
        rows.append(
            {"data": data, "n/d": ratio, "C": C, "seed": seed, "method": name, **found}
        )
    return rows


def main():
    names = list(ROWS)
    if runner.data_folder() is None:
        names = [n for n in names if n.startswith(("breast", "digits"))]
        print("skipped spambase and letter: no data folder")
    jobs = [
        (name, ratio, C, seed)
        for seed in range(SEEDS)
        for name in names
        for ratio in (0.5, 1, 2)
        for C in (1.0, 100.0)
    ]
    table = pd.DataFrame(runner.rounds(HERE / "real.partial.jsonl", jobs, one_draw))
    by = ["data", "C", "n/d", "method"]
    groups = table.groupby(by, sort=False)
    mean, spread = groups[[*MEASURES, "seconds"]].mean(), groups[MEASURES].std()
    shown = [
        {
            **dict(zip(by, key, strict=True)),
            **{
                m: f"{mean.loc[key, m]:.4f} ± {spread.loc[key, m]:.4f}"
                for m in MEASURES
            },
            "seconds": f"{mean.loc[key, 'seconds']:.3f}",
        }
        for key in mean.index
    ]
    runner.write(HERE / "real.csv", shown)
    best = table.groupby(["data", "C", "n/d", "seed"])["log loss"].rank()
    table["rank"] = best
    overall = table.groupby(["C", "method"])[[*MEASURES, "rank", "seconds"]].mean()
    overall = overall.round(4).sort_values(["C", "log loss"]).reset_index()
    print(overall.to_string(index=False))
    runner.write(
        HERE / "real_overall.csv", overall.to_dict("records"), [*overall.columns]
    )


if __name__ == "__main__":
    main()
