"""The third step of the default, a mean of small maps, beside one map and beside other means.

``python benchmarks/defaults/third_step.py`` (2 minutes of one core, 15 where no scores
are kept; it resumes where it was cut). Each mean is of maps f_j with weights in
proportion to prior_j times exp(log likelihood of the calibration rows); the first is
the map of the scores as they are, "one map", and has the prior named; the losses are
compared with its own. Rounds are those of `judged.py` but for the bed, and 30
calibration rows as well. What is chosen is chosen by the part "choosing".
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "arena")]
import judged  # noqa: E402
import runner  # noqa: E402

from sklearn_calib import canonical_proba  # noqa: E402
from sklearn_calib.recalibrators import get_recalibrator  # noqa: E402

ROWS = (30, 100, 500, 2000)
DRAWS = 1000
LEAST = 1e-300


def log_odds(p):
    """Of each class, as the scores of several."""
    p = np.asarray(p, dtype=np.float64)
    return np.log(np.maximum(p, LEAST)) - np.log(np.maximum(1 - p, 1e-16))


def below_top(p):
    """By how much the logarithm of the largest probability is above each."""
    log = np.log(np.maximum(np.asarray(p, dtype=np.float64), LEAST))
    return log.max(axis=1, keepdims=True) - log


#: Scores for the second map; the default takes the first of them, with its own floor
#: for zeros.
SCORES = {
    "-log(1 + m - l)": lambda p: -np.log1p(below_top(p)),
    "-log(1 + (m - l) / 4)": lambda p: -np.log1p(below_top(p) / 4),
    "asinh of log-odds": lambda p: np.arcsinh(log_odds(p)),
    "log-odds": log_odds,
}


def fitted(name, p, y):
    return get_recalibrator(name).fit(p, y, classes=range(p.shape[1])).predict_proba


def on_other_scores(scores, p, y):
    """One map of other scores."""
    method = judged.one_map(canonical_proba(scores(p), kind="logits"), y)
    return lambda q: method(canonical_proba(scores(q), kind="logits"))


def mean_of(methods, first, p, y):
    """Their mean, weighted by their fit; `first` is the prior weight of the first one."""
    rows = np.arange(len(y)), y
    fit = np.array(
        [np.log(np.clip(np.asarray(f(p))[rows], 2.2e-16, 1)).sum() for f in methods]
    )
    prior = np.full(len(methods), (1 - first) / (len(methods) - 1))
    prior[0] = first
    weight = prior * np.exp(fit - fit.max())
    weight /= weight.sum()
    return lambda q: sum(
        w * np.asarray(f(q)) for w, f in zip(weight, methods, strict=True)
    )


def methods(p, y):
    """{name: function of test probabilities}."""
    k, one = p.shape[1], judged.one_map(p, y)
    found = {"raw": np.asarray, judged.BEFORE: one, "default": fitted("default", p, y)}
    others = {name: on_other_scores(scores, p, y) for name, scores in SCORES.items()}
    if k >= judged.MOST_CLASSES_FOR_SEVERAL:
        others = dict([*others.items()][:1])
    for name, other in others.items():
        for first in (0.5, 0.8, 0.9):
            found[f"{name}, {first}"] = mean_of([one, other], first, p, y)
    if len(others) > 1:
        vector = fitted("structured_vector", p, y)
        three = [one, others["asinh of log-odds" if k == 2 else "log-odds"], vector]
        found["three, 0.9"] = mean_of(three, 0.9, p, y)
    return found


def summarised(table):
    """Change of the log loss against one map, by part, number of classes and move."""
    names = [c[:-6] for c in table if c.endswith(": hurt")]
    for key, rounds in table.groupby(["part", "group", "moved"]):
        for name in names:
            part = rounds.dropna(subset=[name])
            if not len(part):
                continue
            change = 100 * np.log(part[name] / part[judged.BEFORE])
            sets = change.groupby(part.name).mean().to_numpy()
            draws = np.random.default_rng(0).integers(
                len(sets), size=(DRAWS, len(sets))
            )
            low, high = np.quantile(sets[draws].mean(axis=1), [0.025, 0.975])
            row = dict(zip(("part", "classes", "moved"), key, strict=True))
            row |= {"method": name, "rounds": len(part), "data sets": len(sets)}
            row |= {"% to one map": sets.mean(), "low": low, "high": high}
            row |= {f"n = {n}": change[part.n_calib == n].mean() for n in ROWS}
            row |= {"worst": change.max(), "hurt %": 100 * part[f"{name}: hurt"].mean()}
            yield {
                k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()
            }


def one_round(part, *job):
    return [{"part": part, **row} for row in judged.one_round(*job)]


def main():
    judged.fitted_methods, judged.ROWS = methods, ROWS
    tables = []
    for part in ("choosing", "judging"):
        jobs = [job for job in judged.jobs(part) if job[0] != "bed"]
        path = HERE / f"third_step.{part}.partial.jsonl"
        tables.append(
            pd.DataFrame(runner.rounds(path, jobs, partial(one_round, part), 1))
        )
    table = pd.concat(tables)
    table["group"] = np.where(table.classes == 2, "two", "3 to 26")
    table.loc[table.classes >= judged.MOST_CLASSES_FOR_SEVERAL, "group"] = "more"
    hurt = [c for c in table if c.endswith(": hurt")]
    table[hurt] = table[hurt].astype(float)
    runner.write(HERE / "third_step.csv", list(summarised(table)))


if __name__ == "__main__":
    main()
