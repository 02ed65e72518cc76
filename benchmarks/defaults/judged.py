"""The default beside the methods it is made of: on tables it was not chosen by, and in the bed.

Rounds are those of the arena (`tasks.py`), of 100, 500 and 2000 calibration rows, as
they are and with every class moved by N(0, 1.5^2), and the cases of `bed.py` from seeds
that were not used.
"""

import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "arena")]
import bed  # noqa: E402
import runner  # noqa: E402
import split  # noqa: E402
import tasks  # noqa: E402

from sklearn_calib import canonical_proba  # noqa: E402
from sklearn_calib._kernels._probability_floor import clip_to_floor  # noqa: E402
from sklearn_calib.recalibrators import PlattScaling, _default, get_recalibrator  # noqa: E402

ROWS, SEEDS, FAR = (100, 500, 2000), (100, 101), 1.5
MOST_CLASSES_FOR_SEVERAL = 30  # one-vs-rest methods
BEST = 50.0  # excess counts as at most so many per cent
LEAST = 2.2e-16
BEFORE = "one map"


def jobs(part="judging"):
    """(kind, name, model or classes, rows, draw) of the tables of a part, and of the bed."""
    found = []
    for names, models in ((tasks.TWO, tasks.MODELS), (tasks.SEVERAL, tasks.MODELS)):
        for name in (one for one in names if tasks.DATA and split.part_of(one) == part):
            kept = [
                m
                for m in models
                if not (names is tasks.SEVERAL and m == "forest, weighted")
            ]
            kept = [m for m in kept if not (name in tasks.SLOW and "boosting" in m)]
            found += [("table", name, model, n, 0) for model in kept for n in ROWS]
    for name in (
        one for one in tasks.PREDICTED if tasks.DATA and split.part_of(one) == part
    ):
        found += [("given", name, "given", n, 0) for n in ROWS]
    for case, (_, classes) in bed.CASES.items():
        for k in classes:
            sizes = bed.SIZES if k < 100 else (100, 500)
            found += [("bed", case, k, n, seed) for n in sizes for seed in SEEDS]
    return found


def rows_of(kind, name, model, n, draw):
    """Probabilities and labels of calibration rows and of test rows, or None: too few rows."""
    if kind == "bed":
        return bed.draw(name, model, n, draw)
    if kind == "given":
        p, y = tasks._predictions(name)
        order = np.random.default_rng(draw).permutation(len(y))
        p, y, pool = p[order], y[order], len(y) // 2
    else:
        kept = np.load(
            tasks._cached(
                f"{name}-{model}-{draw}", lambda: tasks._scores(name, model, draw)
            )
        )
        p, y, pool = kept["p"], kept["y"], int(kept["pool"])
    if n > pool:
        return None
    calib = np.random.default_rng([n, draw]).permutation(pool)[:n]
    test = slice(pool, pool + tasks.TEST)
    return p[calib], y[calib], p[test], y[test]


def one_map(p, y):
    """The first of the default's maps, alone."""
    with mock.patch.object(_default, "_MIN_MAP_WEIGHT", 0.0):
        fitted = get_recalibrator("default").fit(p, y, classes=range(p.shape[1]))
    first = fitted.maps_[0]
    return lambda q: first.map_(clip_to_floor(canonical_proba(q), fitted.floor_))


def fitted_methods(p, y):
    """{name: function of test probabilities}."""
    k = p.shape[1]
    names = ["default", "structured_matrix", "structured_vector", "temperature"]
    names += ["platt"] if k < MOST_CLASSES_FOR_SEVERAL else []
    found = {"raw": np.asarray, BEFORE: one_map(p, y)}
    for name in names:
        method = get_recalibrator(name)
        found[name] = method.fit(p, y, classes=range(k)).predict_proba
    if k < MOST_CLASSES_FOR_SEVERAL:
        sigmoid = PlattScaling("proba").fit(p, y, classes=range(k))
        found["platt of probabilities"] = sigmoid.predict_proba
    return found


def one_round(*job):
    given = rows_of(*job)
    rows = []
    for far in (0.0, FAR) if given and job[0] != "bed" else (0.0,) if given else ():
        p, y, p_test, y_test = given
        if far:
            shift = far * np.random.default_rng([7, job[3], job[4]]).normal(
                size=p.shape[1]
            )
            p, p_test = (q * np.exp(shift - shift.max()) for q in (p, p_test))
        p, p_test = (
            np.asarray(q) / np.sum(q, axis=1, keepdims=True) for q in (p, p_test)
        )
        row = dict(zip(("kind", "name", "model", "n_calib", "draw"), job, strict=True))
        row |= {"classes": p.shape[1], "moved": far}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            methods = fitted_methods(p, y)
        raw = None
        for name, method in methods.items():
            true = np.asarray(method(p_test))[np.arange(len(y_test)), y_test]
            losses = -np.log(np.clip(true, LEAST, 1))
            raw = losses if raw is None else raw
            away = losses - raw
            worse = away.mean() > 2 * away.std() / np.sqrt(len(away)) > 0
            row |= {name: float(losses.mean()), f"{name}: hurt": bool(worse)}
        rows.append(row)
    return rows


def summarised(table, group):
    """For each group of rounds and each method: excess, ratio to the structured form, hurt."""
    rows = []
    for key, part in table.groupby(group, sort=True):
        names = [c[:-6] for c in part if c.endswith(": hurt") and part[c].notna().all()]
        losses = part[names]
        best = losses.min(axis=1)
        for name in names:
            excess = np.minimum(100 * (losses[name] / best - 1), BEST)
            own = (
                "structured_vector"
                if (part.classes == 2).all()
                else "structured_matrix"
            )
            worst = np.sort(excess)[-max(1, len(part) // 20) :]
            ratios = {
                f"% to {other}": 100
                * (np.exp(np.log(losses[name] / losses[of]).mean()) - 1)
                for other, of in (("structured form", own), ("before", BEFORE))
            }
            row = dict(zip(group, key, strict=True)) | {
                "rounds": len(part),
                "method": name,
            }
            row |= {"excess %": excess.mean(), "worst 5 %": worst.mean()} | ratios
            row["sums, % to structured form"] = 100 * (
                losses[name].sum() / losses[own].sum() - 1
            )
            row["hurt %"] = 100 * part[f"{name}: hurt"].astype(float).mean()
            rows.append(
                {k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()}
            )
    return rows


def main():
    found = runner.rounds(HERE / "judged.partial.jsonl", jobs(), one_round, processes=1)
    table = pd.DataFrame(found)
    table["group"] = np.where(table.classes == 2, "two", "3 to 26")
    table.loc[table.classes >= 100, "group"] = "100"
    forests = table.model.isin(["forest", "forest, weighted"])
    real = summarised(table[table.kind != "bed"], ["group", "moved"])
    runner.write(HERE / "judged.csv", real)
    part = table[forests & (table.moved == 0)]
    trees = summarised(part, ["group", "moved"])
    runner.write(HERE / "forests.csv", trees)
    hard = summarised(table[table.kind == "bed"], ["name", "classes"])
    runner.write(HERE / "bed.csv", hard)


if __name__ == "__main__":
    main()
