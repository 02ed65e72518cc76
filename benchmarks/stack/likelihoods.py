"""Rounds of a stack: what its candidates give to true labels, out of fold and on test rows."""

import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from sklearn_calib import canonical_proba
from sklearn_calib._kernels._probability_floor import clip_to_floor, estimate_floor
from sklearn_calib.recalibrators import (
    OneVsRest,
    PlattScaling,
    RestrictedPolynomialRegression,
    SplineCalibration,
    StructuredMatrixScaling,
    TemperatureScaling,
    TopLabel,
    VennAbers,
    get_recalibrator,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "defaults"))
import rounds as tables

CACHE = Path(os.environ.get("SKLEARN_CALIB_CACHE", tempfile.gettempdir())) / "stack"
FOLDS, TEST = 5, 6000
SIZES_TWO, SIZES_SEVERAL = (30, 100, 500, 2000, 8000), (200, 1000, 5000)
# predictions that are there already: table -> array of probabilities or logits
READY = {
    "fivethirtyeight_games": 2,
    "imdb_cv_cleanlab": 2,
    "fivethirtyeight_soccer": 3,
    "hpc_cv_probs": 4,
    "cifar10_wideresnet16_4": 10,
    "news20_cv_cleanlab": 20,
    "cifar100_densenet_bc100": 100,
}

TWO = {
    "identity": lambda: get_recalibrator("identity"),
    "default": lambda: get_recalibrator("default"),
    "temperature": lambda: TemperatureScaling(laplace=True),
    "platt": PlattScaling,
    "platt, prior": lambda: PlattScaling(prior_weight=1.0),
    "platt of probabilities": lambda: PlattScaling("proba"),
    "beta": lambda: get_recalibrator("beta"),
    "quadratic": lambda: get_recalibrator("quadratic"),
    "structured_matrix": StructuredMatrixScaling,
    "structured_vector": lambda: get_recalibrator("structured_vector"),
    "polynomial, 8": lambda: RestrictedPolynomialRegression(8),
    "polynomial, 4": lambda: RestrictedPolynomialRegression(4),
    "venn_abers": VennAbers,
    "spline": SplineCalibration,
    "spline, falling": lambda: SplineCalibration(monotone=False),
    "isotonic": lambda: get_recalibrator("isotonic"),
}
MATRIX = StructuredMatrixScaling
SEVERAL = {
    "identity": lambda: get_recalibrator("identity"),
    "temperature": lambda: TemperatureScaling(laplace=True),
    "ensemble_temperature": lambda: get_recalibrator("ensemble_temperature"),
    "structured_vector": lambda: get_recalibrator("structured_vector"),
    "structured_matrix": MATRIX,
    "default": lambda: get_recalibrator("default"),
    "default > spline": lambda: make_pipeline(
        get_recalibrator("default"), SplineCalibration()
    ),
    "matrix > spline": lambda: make_pipeline(MATRIX(), SplineCalibration()),
    "matrix > top spline": lambda: make_pipeline(
        MATRIX(), TopLabel(SplineCalibration())
    ),
    "matrix > top platt": lambda: make_pipeline(MATRIX(), TopLabel("platt")),
    "matrix > shared spline": lambda: make_pipeline(
        MATRIX(), shared(SplineCalibration())
    ),
    "shared spline": lambda: shared(SplineCalibration()),
    "shared venn_abers": lambda: shared(VennAbers()),
    "shared beta": lambda: shared(get_recalibrator("beta")),
    "spline": SplineCalibration,
    "beta": lambda: get_recalibrator("beta"),
    "venn_abers": VennAbers,
}


def shared(method):
    return OneVsRest(method, shared=True)


def jobs(folder):
    """(table, model, calibration rows, split) of all rounds whose data are there.

    Of the rounds with several classes, which cost more, one in three, in turns, and no
    large ones.
    """
    found = []
    for names, sizes in (
        (list(tables.TWO), SIZES_TWO),
        (tables.SEVERAL, SIZES_SEVERAL[:2]),
    ):
        several = names[0] not in tables.TWO
        for i, table in enumerate(names):
            if folder is None and table not in tables.EMBEDDED:
                continue
            for j, model in enumerate(list(tables.MODELS)[: 7 if several else 8]):
                for number, size in enumerate(sizes):
                    if several and (i + j + number) % 3:
                        continue
                    splits = range(1 if several or table not in tables.EMBEDDED else 3)
                    found += [(table, model, size, split) for split in splits]
    for table, k in READY.items() if folder is not None else ():
        sizes = SIZES_TWO if k == 2 else SIZES_SEVERAL[: 3 if k < 100 else 1]
        found += [(table, "ready", size, draw) for size in sizes for draw in range(2)]
    return found


def scores(table, model, split, folder):
    """Scores that `canonical_proba` takes, their kind, and labels."""
    if model != "ready":
        names = list(tables.TWO) if table in tables.TWO else tables.SEVERAL
        odd = (names.index(table) + list(tables.MODELS).index(model)) % 2
        # those that the other benchmark keeps
        size = tables.SMALL if odd else tables.LARGE
        for _ in tables.scored(table, model, size, folder):
            pass  # fits what is not there yet
        path = f"{table}-{model}-{size}-{split}.npz".replace(" ", "_").replace(":", "_")
        kept = np.load(tables.CACHE / path)
        return kept["scores"], str(kept["kind"]), kept["y"]
    if (folder / table / f"{table}.npz").exists():
        kept = np.load(folder / table / f"{table}.npz")
        if "logits" in kept:
            return kept["logits"].astype(float), "logits", kept["labels"]
        proba = np.clip(kept["probs"].astype(float), 0, 1)  # some are 1e-7 above 1
        return proba / proba.sum(axis=1, keepdims=True), "proba", kept["labels"]
    frame = pd.read_csv(folder / table / f"{table}.csv.gz")
    if table.endswith("games"):
        return frame["p"].to_numpy(), "proba", frame["target"].to_numpy()
    columns = [c for c in frame if c.startswith(("p1", "p2", "prob"))]
    return frame[columns].to_numpy(), "proba", frame["target"].to_numpy()


def one_round(table, model, size, split, folder):
    """Probabilities that candidates give to the true labels, kept between runs; or None."""
    name = f"{table}-{model}-{size}-{split}.npz".replace(" ", "_").replace(":", "_")
    path = CACHE / name
    if path.exists():
        return dict(np.load(path))
    found = _one_round(table, model, size, split, folder)
    if found is not None:
        CACHE.mkdir(parents=True, exist_ok=True)
        np.savez(path, **found)
    return found


def rows_of(table, model, size, split, folder):
    """Canonical scores, labels, numbers of the calibration rows and of the test rows; or None."""
    z, kind, y = scores(table, model, split, folder)
    if size > len(y) // 2:
        return None
    order = np.random.default_rng([split, size]).permutation(len(y))
    proba, y = canonical_proba(z[order], kind=kind), y[order].astype(int)
    if len(np.unique(y[:size])) < 2:
        return None
    return proba, y, np.arange(size), np.arange(size, min(size + TEST, len(y)))


def _one_round(table, model, size, split, folder):
    rows = rows_of(table, model, size, split, folder)
    if rows is None:
        return None
    proba, y, calib, test = rows
    k = proba.shape[1]
    proba = clip_to_floor(proba, estimate_floor(proba[calib]))
    counts = np.bincount(y[calib], minlength=k)
    found = {"rows": size, "classes": k, "fewest": counts.min()}
    names = TWO if k == 2 else SEVERAL
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = list(
            StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(calib, y[calib])
        )
        outside = np.empty((size, len(names)), dtype=np.float32)
        inside = np.empty((len(test), len(names)), dtype=np.float32)
        for m, make in enumerate(names.values()):
            for train, left in folds:
                outside[left, m] = likelihood(
                    make(), proba, y, calib[train], calib[left], k
                )
            inside[:, m] = likelihood(make(), proba, y, calib, test, k)
    return found | {
        "names": np.array(list(names)),
        "outside": outside,
        "inside": inside,
    }


def likelihood(method, proba, y, train, test, k):
    classes = np.arange(k)
    if hasattr(method, "steps"):
        extra = {f"{name}__classes": classes for name, _ in method.steps}
    else:
        extra = {"classes": classes}
    fitted = method.fit(proba[train], y[train], **extra)
    return np.asarray(fitted.predict_proba(proba[test]))[np.arange(len(test)), y[test]]
