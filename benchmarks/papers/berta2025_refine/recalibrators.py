"""Recalibrators on held-out predictions of real models: half of the rows to fit, half to judge."""

import logging
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from sklearn_calib import canonical_proba
from sklearn_calib.metrics import (
    brier_loss,
    expected_calibration_error,
    log_loss,
    smooth_calibration_error,
)
from sklearn_calib.recalibrators import get_recalibrator

sys.path.insert(0, str(Path(__file__).parents[2]))
import runner

HERE = Path(__file__).parent
OURS = [
    "identity",
    "temperature",
    "vector",
    "matrix",
    "dirichlet",
    "structured_vector",
    "structured_matrix",
    "quadratic",
    "isotonic",
    "venn_abers",
]
PEER = {"temperature": "ts-mix", "structured_vector": "svs", "structured_matrix": "sms"}
SEEDS = 10


def data():
    folder = runner.data_folder()
    if folder is None:
        print("skipped: no folder of real data; set SKLEARN_CALIB_DATA")
        return
    for name in ("cifar10_wideresnet16_4", "cifar100_densenet_bc100"):
        stored = np.load(folder / name / f"{name}.npz")
        yield name, canonical_proba(stored["logits"], kind="logits"), stored["labels"]
    stored = np.load(folder / "imdb_cv_cleanlab" / "imdb_cv_cleanlab.npz")
    # rounded to 2e-5
    proba = stored["probs"] / stored["probs"].sum(axis=1, keepdims=True)
    yield "imdb_cv_cleanlab", canonical_proba(proba), stored["labels"]
    name = "fivethirtyeight_soccer"
    table = pd.read_csv(folder / name / f"{name}.csv.gz")
    proba = table[["prob1", "probtie", "prob2"]].to_numpy(float)
    proba /= proba.sum(axis=1, keepdims=True)
    yield name, canonical_proba(proba), table["target"].to_numpy()


def peer(method):
    """probmetrics' method of the same name, or None."""
    try:
        from probmetrics.calibrators import get_calibrator
    except ImportError:
        return None
    logging.disable(logging.INFO)
    return get_calibrator(method)


def methods(n_classes):
    for name in OURS:
        if name == "quadratic" and n_classes > 2:
            continue
        recalibrator = get_recalibrator(name)
        yield name, "sklearn_calib", recalibrator.fit, recalibrator.predict_proba
    for name, theirs in PEER.items():
        found = peer(theirs)
        if found is None:
            print(f"skipped probmetrics {theirs}: not installed")
        else:
            yield name, "probmetrics", found.fit, found.predict_proba


def main():
    warnings.simplefilter("ignore")
    rows = []
    for name, proba, y in data():
        n_classes, plain = proba.shape[1], np.array(proba)
        for method, package, *_ in methods(n_classes):
            numbers = []
            for seed in range(SEEDS):
                order = np.random.default_rng(seed).permutation(len(y))
                train, test = order[: len(y) // 2], order[len(y) // 2 :]
                chosen = [m for m in methods(n_classes) if m[:2] == (method, package)]
                _, _, fit, predict = chosen[0]
                start = time.perf_counter()
                fit(
                    proba[train] if package != "probmetrics" else plain[train], y[train]
                )
                seconds = time.perf_counter() - start
                p = predict(proba[test] if package != "probmetrics" else plain[test])
                p = np.asarray(p, dtype=float)
                p = p / p.sum(axis=1, keepdims=True)
                labels = np.arange(n_classes)
                numbers.append(
                    (
                        log_loss(y[test], p, labels=labels),
                        brier_loss(y[test], p, labels=labels),
                        expected_calibration_error(y[test], p, labels=labels),
                        smooth_calibration_error(y[test], p, labels=labels),
                        seconds,
                    )
                )
            mean, spread = np.mean(numbers, axis=0), np.std(numbers, axis=0, ddof=1)
            row = {"data": name, "method": method, "package": package}
            for i, measure in enumerate(("log_loss", "brier", "ece", "smooth_ce")):
                row[measure] = (
                    f"{mean[i]:.4f} +- {spread[i] / np.sqrt(SEEDS) * 2.26:.4f}"
                )
            row["fit_s"] = f"{np.median([n[4] for n in numbers]):.4f}"
            rows.append(row)
            print(row, flush=True)
    runner.write(HERE / "recalibrators.csv", rows)


if __name__ == "__main__":
    main()
