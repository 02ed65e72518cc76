"""CalArena's protocol: every method on every task, in CalArena's files or in a local arena.

``run.py arena [NAME ...] [--again NAME ...]``: the named methods, by default all;
``--again`` forgets what was measured of these. Results are kept in the temporary
folder, one file for each method. ``run.py arena NAME ... --keep``: these are measured,
the tables are written, and every other method keeps the losses of the tables, not its
seconds, if no recalibration loses what it did.
"""

import argparse
import sys
import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import leaderboard
import runner
import tasks
from methods import competitors

HERE = Path(__file__).parent
LIMIT = 10  # seconds of the processor for a fit and its predictions
COLUMNS = ["source", "data set", "model", "n", "draw"]
loaded = lru_cache(maxsize=512)(tasks.load)


def losses(y, proba, k):
    """scikit-learn's log loss, which counts a zero as 2.2e-16, and Brier loss in its scale."""
    squares = ((proba - np.eye(k)[y]) ** 2).sum(axis=1)
    brier = squares.mean() / (2 if k == 2 else 1)
    return float(log_loss(y, proba, labels=np.arange(k))), float(brier)


def one_task(factories, *task):
    """Losses and seconds of a method; where it fails or is too slow, those of doing nothing."""
    p_cal, y_cal, p, y = loaded(*task)
    k = 2 if p.ndim == 1 else p.shape[1]
    raw = np.column_stack([1 - p, p]) if k == 2 else p
    factory = factories[0] if k == 2 else factories[1]
    if factory is None:
        return []
    found, problem, start = raw, "", time.process_time()
    try:
        with (
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            runner.at_most(LIMIT),
        ):
            warnings.simplefilter("ignore")
            calibrator = factory()
            calibrator.fit(p_cal, y_cal)
            found = _checked(calibrator.predict_proba(p), raw)
    except Exception as error:  # the probabilities stay as they were
        problem = f"{type(error).__name__}: {error}"[:80]
    spent = time.process_time() - start
    log, brier = losses(y, raw if problem else found, k)
    values = {
        "k": k,
        "log loss": log,
        "Brier": brier,
        "seconds": spent,
        "problem": problem,
    }
    return [dict(zip(COLUMNS, task, strict=True)) | values]


def _checked(proba, raw):
    """Rows of finite numbers from 0 to 1, divided by their sums, or an error."""
    proba = np.asarray(proba, dtype=float)
    if proba.ndim == 1:
        proba = np.column_stack([1 - proba, proba])
    if proba.shape != raw.shape or not np.isfinite(proba).all():
        raise ValueError("no finite probabilities")
    proba = np.clip(proba, 0.0, 1.0)
    if not (total := proba.sum(axis=1, keepdims=True)).all():
        raise ValueError("a row without probability")
    return proba / total


def measured(names, again):
    """One table of all methods on all tasks; what is kept is not measured again."""
    found, todo = [], tasks.everything()
    for name, factories in competitors().items():
        if names and name not in names:
            continue
        folder = tasks.CACHE / ("calarena" if tasks.ARENA else "local")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.jsonl"
        if name in again:
            path.unlink(missing_ok=True)
        rows = runner.rounds(
            path, todo, lambda *task, f=factories: one_task(f, *task), processes=1
        )
        found += [{"method": name, **row} for row in rows]
    return pd.DataFrame(found)


def tables_of(results):
    """All tables: overall, by calibration rows and by number of classes; methods with all tasks."""
    sizes = {
        "all": (0, np.inf),
        "n < 1000": (0, 1000),
        "1000 <= n < 5000": (1000, 5000),
    }
    sizes["n >= 5000"] = (5000, np.inf)
    classes = {
        "any": (2, np.inf),
        "two": (2, 2),
        "several": (3, np.inf),
        "3 to 9": (3, 9),
        "10 to 49": (10, 49),
    }
    classes["50 and more"] = (50, np.inf)
    for of, (least, most) in classes.items():
        for size, (low, high) in sizes.items():
            part = results[
                results["k"].between(least, most) & results["n"].between(low, high - 1)
            ]
            counts = part.groupby("method").size()
            part = part[part["method"].isin(counts.index[counts == counts.max()])]
            if len(part) and (size == "all" or of in ("two", "several")):
                yield of, size, part


def kept(results, place):
    """`results` and the losses that the tables of `place` have of all other methods, same tasks.

    The tables have five digits; a loss that is there equal to that of no recalibration,
    such as that of a method that failed, becomes equal to it in all digits.
    """
    keys, others = [*COLUMNS, "k"], []
    base = results[results["method"] == leaderboard.BASE].set_index(keys)
    for of, file in zip(leaderboard.LOSSES, ("log_loss.csv", "brier.csv"), strict=True):
        table = pd.read_csv(place / file).drop(columns="machine").set_index(keys)
        table, now = table.reindex(base.index), base[of]
        before = table.pop(leaderboard.BASE)
        # another version of a learner can move the scores of a few tasks
        same = np.isclose(now, before, rtol=1e-4)
        if not len(base) or same.mean() < 0.98:
            sys.exit(
                f"--keep: measure {leaderboard.BASE} too, on tasks of the tables: no match"
            )
        for task in base.index[~same]:
            print("left out, since its scores have moved:", *task)
        table = table[same]
        now = now[same]
        before = before[same]
        table = table.where(table.ne(before, axis=0), now, axis=0)
        table = table[[name for name in table if name not in set(results["method"])]]
        others.append(table.melt(var_name="method", value_name=of, ignore_index=False))
    others = pd.concat([others[0], others[1][leaderboard.LOSSES[1]]], axis=1).dropna()
    as_it_was = (
        others[list(leaderboard.LOSSES)]
        == base[list(leaderboard.LOSSES)].reindex(others.index)
    ).all(axis=1)
    results = results.set_index(keys).loc[others.index.unique()].reset_index()
    others["problem"] = np.where(
        as_it_was, "losses of no recalibration, kept from the tables", ""
    )
    return pd.concat([results, others.reset_index()], ignore_index=True)


def publish(results, place):
    """Write the tables and pictures of all methods."""
    place.mkdir(exist_ok=True)
    rows = []
    for classes, size, part in tables_of(results):
        board = leaderboard.leaderboard(part).join(leaderboard.against_calarena(part))
        rows.append(
            board.reset_index(names="method").assign(classes=classes, rows=size)
        )
        if size == "all" and classes in ("two", "several"):
            title = f"{classes} classes, {board['tasks'].iloc[0]} tasks"
            leaderboard.picture(board, title.capitalize(), place / f"{classes}.png")
            print(board.round(3).to_string())
    write(place / "leaderboard.csv", pd.concat(rows), ["classes", "rows", "method"])
    wide = results.assign(
        **{of: results[of].map("{:.5g}".format) for of in leaderboard.LOSSES}
    )
    for of in leaderboard.LOSSES:
        losses_of = wide.pivot(
            index=[*COLUMNS, "k"], columns="method", values=of
        ).reset_index()
        write(place / f"{of.lower().replace(' ', '_')}.csv", losses_of, [*COLUMNS, "k"])
    failed = results[results["problem"] != ""].groupby(["method", "problem"]).size()
    write(
        place / "problems.csv",
        failed.reset_index(name="tasks"),
        ["method", "problem", "tasks"],
    )


def main():
    parser = argparse.ArgumentParser(prog="run.py arena")
    parser.add_argument(
        "names", nargs="*", help="methods to measure; all if none is named"
    )
    parser.add_argument(
        "--again", nargs="*", default=[], help="methods to measure anew"
    )
    parser.add_argument(
        "--keep", action="store_true", help="others keep what the tables have"
    )
    asked = parser.parse_args()
    place = HERE / "calarena" if tasks.ARENA else HERE
    results = measured({*asked.names}, {*asked.again})
    if asked.keep:
        publish(kept(results, place), place)
    elif not asked.names:
        publish(results, place)


def _written(value):
    if not isinstance(value, float):
        return value
    return "" if np.isnan(value) else f"{value:.4g}"


def write(path, table, first):
    """A tracked table, the named columns first."""
    columns = [*first, *(name for name in table if name not in first)]
    rounded = table[columns].map(_written)
    runner.write(path, rounded.to_dict("records"), columns)


if __name__ == "__main__":
    main()
