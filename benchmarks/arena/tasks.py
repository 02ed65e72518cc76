"""What is to be calibrated: a data set, a model, calibration rows and test rows.

A task is (source, data set, model, calibration rows, draw). `load` returns what
CalArena's runner hands to a method: probabilities (n,) of the second class or (n, k),
and labels.
"""

import os
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner
import split
import tables

DATA = runner.data_folder()
ARENA = os.environ.get("CALARENA_DATA")
CACHE = Path(os.environ.get("SKLEARN_CALIB_CACHE", tempfile.gettempdir())) / "arena"
TRAIN, POOL, TEST = 3000, 10_000, 5000  # rows at most; of a small table a third each
SIZES = (100, 300, 1000, 3000, 10_000)
ROWS_OF_A_CLASS = 3  # expected in the calibration set, of the rarest class
MODELS = {
    **tables.MODELS,
    "boosting, overfitted": lambda: HistGradientBoostingClassifier(
        max_iter=300,
        learning_rate=0.3,
        min_samples_leaf=2,
        early_stopping=False,
        random_state=0,
    ),
    "MLP": lambda: MLPClassifier((64,), max_iter=100, random_state=0),
}
TWO = [
    "breast_cancer",
    "spambase",
    "credit_default",
    "adult",
    "adult 3.5 %",
    "bank_full",
]
TWO += ["bank_full 1 %", "htru2", "covertype_2v4 1 %"]
SEVERAL = [name for name in tables.SEVERAL if name != "adult:workclass"]
SLOW = ("letter", "letter unequal")  # 26 classes to boost
DRAWS = {"breast_cancer": 2, "digits": 2}  # small: two splits
PREDICTED = {  # sets of predictions: the files' own, and CIFAR-10 as animal or machine
    "fivethirtyeight_games": (100, 1000, 10_000),
    "imdb_cv_cleanlab": (100, 1000, 10_000),
    "cifar10_wideresnet16_4:animal": (100, 1000, 5000),
    "fivethirtyeight_soccer": (100, 1000, 10_000),
    "hpc_cv_probs": (100, 300, 1000),
    "cifar10_wideresnet16_4": (300, 1000, 5000),
    "news20_cv_cleanlab": (300, 1000, 3000),
    "cifar100_densenet_bc100": (1000, 5000),
}


def everything():
    """All tasks whose data are there, those of CalArena's files if they are named."""
    return of_calarena(Path(ARENA)) if ARENA else local()


def base(data_set):
    """The data set that a task belongs to, whatever was made of it: what is resampled."""
    return data_set.partition(" ")[0].partition(":")[0]


# -- CalArena's files ------------------------------------------------------------


def of_calarena(folder):
    """The tasks of every file `{benchmark}.h5` of a folder: one for each group of a model."""
    import h5py

    found = []
    for path in sorted(folder.glob("*.h5")):
        with h5py.File(path, "r") as file:
            pairs = [(d, m) for d in file for m in file[d]]
            found += [
                (path.stem, d, m, len(file[d][m]["labels_cal"]), 0) for d, m in pairs
            ]
    return found


def _read_calarena(folder, benchmark, data_set, model):
    import h5py

    with h5py.File(folder / f"{benchmark}.h5", "r") as file:
        group = file[data_set][model]
        names = ("probas_cal", "labels_cal", "probas_test", "labels_test")
        p_cal, y_cal, p_test, y_test = (group[name][:] for name in names)
    # CalArena takes both forms for two classes
    if p_cal.ndim == 2 and p_cal.shape[1] == 1:
        p_cal, p_test = p_cal[:, 0], p_test[:, 0]
    return p_cal, y_cal.ravel(), p_test, y_test.ravel()


# -- the local arena ------------------------------------------------------------


def local():
    """Tables x models, two sizes each of two classes, one of several; and sets of predictions.

    Those of the part by which nothing of this package was chosen, see ``split.py``.
    """
    tasks, missing = [], set()
    for names, several in ((TWO, False), (SEVERAL, True)):
        for i, table in enumerate(names):
            if table not in tables.EMBEDDED and DATA is None:
                missing.add(table)
                continue
            models = [
                m for m in MODELS if not (several and "weighted" in m and "forest" in m)
            ]
            models = [m for m in models if not (table in SLOW and "boosting" in m)]
            for j, model in enumerate(models):
                tasks += _sized(table, model, i + j, 1 if several else 2)
    for name, sizes in PREDICTED.items():
        if DATA is None:
            missing.add(name)
        else:
            tasks += [
                ("local", name, "given", n, draw) for n in sizes for draw in range(2)
            ]
    if missing:
        print(f"skipped, set SKLEARN_CALIB_DATA: {', '.join(sorted(missing))}")
    return [task for task in tasks if split.part_of(task[1]) == "judging"]


def _sized(table, model, turn, times):
    """Some of the sizes that the calibration rows allow, in turns."""
    y = _labels(table)
    most = min(len(y) // 3, POOL)
    rarest = np.bincount(y).min() / len(y)
    fits = [n for n in SIZES if n <= most and n * rarest >= ROWS_OF_A_CLASS] or [most]
    chosen = {
        fits[(turn + step * (1 + len(fits) // 2)) % len(fits)] for step in range(times)
    }
    return [
        ("local", table, model, n, draw)
        for draw in range(DRAWS.get(table, 1))
        for n in sorted(chosen)
    ]


@cache
def _labels(table):
    path = _cached(f"labels-{table}", lambda: {"y": tables.table(table, DATA)[1]})
    return np.load(path)["y"]


def load(source, data_set, model, n, draw):
    """Probabilities and labels of the calibration rows and of the test rows."""
    if source != "local":
        return _read_calarena(Path(ARENA), source, data_set, model)
    if data_set in PREDICTED:
        p, y = _predictions(data_set)
        calib, test = train_test_split(
            np.arange(len(y)), stratify=y, train_size=n, random_state=draw
        )
        test = test[:TEST]
    else:
        kept = np.load(
            _cached(
                f"{data_set}-{model}-{draw}", lambda: _scores(data_set, model, draw)
            )
        )
        p, y, pool = kept["p"], kept["y"], int(kept["pool"])
        calib, test = np.arange(pool), np.arange(pool, len(y))
        if n < pool:
            calib, _ = train_test_split(
                calib, stratify=y[:pool], train_size=n, random_state=draw
            )
    p = p[:, 1] if p.shape[1] == 2 else p
    return p[calib], y[calib], p[test], y[test]


def _cached(name, make):
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    path = CACHE / f"{name}.npz"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        np.savez(path, **make())
    return path


def _scores(data_set, model, draw):
    """A model fitted once: its probabilities of rows that it has not seen."""
    X, y = tables.table(data_set, DATA)
    train = min(len(y) // 3, TRAIN)
    pool = min(len(y) // 3, POOL)
    parts = {"stratify": y, "train_size": train, "random_state": draw}
    X_train, X, y_train, y = train_test_split(X, y, **parts)
    parts = {"stratify": y, "train_size": pool, "random_state": draw + 100}
    X_calib, X, y_calib, y = train_test_split(X, y, **parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MODELS[model]().fit(X_train, y_train)
        p = fitted.predict_proba(np.concatenate([X_calib, X[:TEST]]))
    return {"p": p, "y": np.r_[y_calib, y[:TEST]], "pool": pool}


@cache
def _predictions(name):
    """The probabilities that a set of predictions holds, and its labels."""
    folder, _, made = name.partition(":")
    path = DATA / folder / f"{folder}.csv.gz"
    if path.exists():
        frame = pd.read_csv(path)
        y = frame["target"].to_numpy()
        if folder == "fivethirtyeight_games":
            return np.column_stack([1 - frame["p"], frame["p"]]), y
        return frame[[c for c in frame if c.startswith("p")]].to_numpy(), y
    kept = np.load(path.with_name(f"{folder}.npz"))
    y = kept["labels"]
    if made == "animal":
        z, animal = (
            kept["logits"].astype(float),
            np.isin(np.arange(10), [0, 1, 8, 9], invert=True),
        )
        z = np.column_stack(
            [logsumexp(z[:, ~animal], axis=1), logsumexp(z[:, animal], axis=1)]
        )
        return softmax(z, axis=1), animal[y].astype(int)
    p = (
        softmax(kept["logits"].astype(float), axis=1)
        if "logits" in kept
        else kept["probs"]
    )
    return p / p.sum(axis=1, keepdims=True), y
