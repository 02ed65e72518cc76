"""The main job on real data: a boosted model, given probabilities of 100 classes, a csv file."""

import contextlib
import io
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import runner
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib._cli import main as command
from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.metrics import brier_loss, expected_calibration_error, log_loss
from sklearn_calib.recalibrators import get_recalibrator

HERE = Path(__file__).parent
COLUMNS = [
    "data",
    "rows",
    "classes",
    "recalibrator",
    "log_loss",
    "brier",
    "ece",
    "fit_s",
]
METHODS = (
    "identity",
    "temperature",
    "platt",
    "beta",
    "histogram_binning",
    "isotonic",
    "venn_abers",
)


def row(data, y, proba, name, seconds, labels=None):
    return {
        "data": data,
        "rows": len(y),
        "classes": proba.shape[1],
        "recalibrator": name,
        "log_loss": f"{log_loss(y, proba, labels=labels):.5f}",
        "brier": f"{brier_loss(y, proba, labels=labels):.5f}",
        "ece": f"{expected_calibration_error(y, proba, labels=labels):.5f}",
        "fit_s": f"{seconds:.3f}",
    }


def adult(folder):
    """Boosted trees: prefit on one part, calibrated on a second, measured on the third."""
    table = pd.read_csv(folder / "adult" / "adult.csv.gz")
    y = table.pop("target").to_numpy()
    train_rows = table.pop("split").eq("train").to_numpy()
    for column in table.select_dtypes(exclude="number"):
        table[column] = table[column].astype("category")
    X, y_train = table[train_rows], y[train_rows]
    X, X_cal, y_fit, y_cal = train_test_split(X, y_train, test_size=0.3, random_state=0)
    X_test, y_test = table[~train_rows], y[~train_rows]
    models = {"HistGB 100": HistGradientBoostingClassifier(random_state=0)}
    models["Overfitted HistGB 1000"] = HistGradientBoostingClassifier(
        max_iter=1000, early_stopping=False, random_state=0
    )
    try:
        from xgboost import XGBClassifier

        models["XGBoost 300"] = XGBClassifier(
            n_estimators=300, enable_categorical=True, n_jobs=1
        )
    except ImportError:
        print("skipped XGBoost: not installed")
    for title, model in models.items():
        fitted = FrozenEstimator(model.fit(X, y_fit))
        drawn = {}
        for name in METHODS:
            start = time.perf_counter()
            calibrated = CalibratedModel(fitted, name).fit(X_cal, y_cal)
            seconds = time.perf_counter() - start
            drawn[name] = calibrated.predict_proba(X_test)
            yield row(f"adult, {title}", y_test, drawn[name], name, seconds)
        kept = {
            name: drawn[name]
            for name in ("identity", "temperature", "beta", "isotonic")
        }
        _save(
            ReliabilityDisplay.from_predictions(y_test, kept),
            f"adult_{title.split()[0].lower()}",
        )


def cifar100(folder):
    """Given probabilities of 100 classes: half calibrate, half measure."""
    stored = np.load(folder / "cifar100_densenet_bc100" / "cifar100_densenet_bc100.npz")
    scores = canonical_proba(stored["logits"], kind="logits")
    y, order = stored["labels"], np.random.default_rng(0).permutation(10_000)
    cal, test = order[:5000], order[5000:]
    drawn = {}
    for name in (*METHODS, "top_label"):
        start = time.perf_counter()
        fitted = get_recalibrator(name).fit(scores[cal], y[cal])
        seconds = time.perf_counter() - start
        drawn[name] = fitted.predict_proba(scores[test])
        yield row("cifar100, DenseNet", y[test], drawn[name], name, seconds)
    kept = {name: drawn[name] for name in ("identity", "temperature", "isotonic")}
    _save(ReliabilityDisplay.from_predictions(y[test], kept), "cifar100")


def games(folder):
    """A csv through the command line."""
    path = folder / "fivethirtyeight_games" / "fivethirtyeight_games.csv.gz"
    out, start = io.StringIO(), time.perf_counter()
    with contextlib.redirect_stdout(out):
        code = command(
            [
                "audit",
                str(path),
                "--label",
                "target",
                "--prob",
                "p",
                "--out",
                os.devnull,
            ]
        )
    seconds = time.perf_counter() - start
    if code:
        raise AssertionError(f"audit returned {code}")
    (HERE / "games_audit.txt").write_text(
        out.getvalue().split("report:")[0], encoding="utf-8"
    )
    table = pd.read_csv(path)
    yield row(
        "fivethirtyeight games, audit",
        table.target,
        canonical_proba(table.p),
        "identity",
        seconds,
    )


def _save(display, name):
    display.figure_.savefig(HERE / f"{name}.png", dpi=80)


def main():
    folder = runner.data_folder()
    if folder is None:
        print("skipped everything: no data (set SKLEARN_CALIB_DATA)")
        return
    rows = []
    for job in (adult, cifar100, games):
        try:
            for line in job(folder):
                print(line)
                rows.append(line)
        except FileNotFoundError as error:
            print(f"skipped {job.__name__}: {error}")
    runner.write(HERE / "results.csv", rows, COLUMNS)


if __name__ == "__main__":
    main()
