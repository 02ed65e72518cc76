"""What a third step of the default could be: a mean of small maps, weighted by their fit.

``python benchmarks/defaults/third_step.py`` (4 minutes of one core, 15 where no scores are kept;
it resumes where it was cut). Each mean is of maps f_j with weights in proportion to prior_j times
exp(log likelihood of the calibration rows); the first is today's default, and has the prior named.
Rounds are those of `judged.py` but for the bed, and 30 calibration rows as well. What is chosen is
chosen by the part "choosing".
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
from sklearn_calib.recalibrators import PlattScaling, get_recalibrator  # noqa: E402

ROWS = (30, 100, 500, 2000)
PRIORS = (1 / 3, 0.6, 0.8, 0.9)
DRAWS = 1000
LEAST = 1e-300


def log_odds(p):
    """Of each class, as the scores of several."""
    p = np.asarray(p, dtype=np.float64)
    return np.log(np.maximum(p, LEAST)) - np.log(np.maximum(1 - p, 1e-16))


def squeezed(p):
    """asinh of the log-odds of two classes."""
    half = np.arcsinh(log_odds(p)[:, 1]) / 2
    return np.column_stack([-half, half])


def fitted(name, p, y):
    return get_recalibrator(name).fit(p, y, classes=range(p.shape[1])).predict_proba


def on_other_scores(scores, p, y):
    """The default of other scores."""
    method = fitted("default", canonical_proba(scores(p), kind="logits"), y)
    return lambda q: method(canonical_proba(scores(q), kind="logits"))


def mean_of(methods, first, p, y):
    """Their mean, weighted by their fit; `first` is the prior weight of the first one."""
    rows = np.arange(len(y)), y
    fit = np.array([np.log(np.clip(np.asarray(f(p))[rows], 2.2e-16, 1)).sum() for f in methods])
    prior = np.full(len(methods), (1 - first) / (len(methods) - 1))
    prior[0] = first
    weight = prior * np.exp(fit - fit.max())
    weight /= weight.sum()
    return lambda q: sum(w * np.asarray(f(q)) for w, f in zip(weight, methods, strict=True))


def methods(p, y):
    """{name: function of test probabilities}."""
    k = p.shape[1]
    default, vector = fitted("default", p, y), fitted("structured_vector", p, y)
    found = {"raw": np.asarray, "default": default, "structured_vector": vector}
    if k >= judged.MOST_CLASSES_FOR_SEVERAL:
        return found
    other = on_other_scores(squeezed if k == 2 else log_odds, p, y)
    found["asinh" if k == 2 else "log-odds of classes"] = other
    three = [default, other, vector]
    for first in PRIORS:
        found[f"mean of three {first:.2f}"] = mean_of(three, first, p, y)
    sigmoid = PlattScaling("proba").fit(p, y, classes=range(k)).predict_proba
    found["mean of four 0.80"] = mean_of([*three, sigmoid], 0.8, p, y)
    return found


def summarised(table):
    """Change of the log loss against the default, by part, number of classes and move."""
    names = [c[:-6] for c in table if c.endswith(": hurt")]
    for key, rounds in table.groupby(["part", "group", "moved"]):
        for name in names:
            part = rounds.dropna(subset=[name])
            if not len(part):
                continue
            change = 100 * np.log(part[name] / part.default)
            sets = change.groupby(part.name).mean().to_numpy()
            draws = np.random.default_rng(0).integers(len(sets), size=(DRAWS, len(sets)))
            low, high = np.quantile(sets[draws].mean(axis=1), [0.025, 0.975])
            row = dict(zip(("part", "classes", "moved"), key, strict=True))
            row |= {"method": name, "rounds": len(part), "data sets": len(sets)}
            row |= {"% to default": sets.mean(), "low": low, "high": high}
            row |= {f"n = {n}": change[part.n_calib == n].mean() for n in ROWS}
            row |= {"worst": change.max(), "hurt %": 100 * part[f"{name}: hurt"].mean()}
            yield {k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()}


def one_round(part, *job):
    return [{"part": part, **row} for row in judged.one_round(*job)]


def main():
    judged.fitted_methods, judged.ROWS = methods, ROWS
    tables = []
    for part in ("choosing", "judging"):
        jobs = [job for job in judged.jobs(part) if job[0] != "bed"]
        path = HERE / f"third_step.{part}.partial.jsonl"
        tables.append(pd.DataFrame(runner.rounds(path, jobs, partial(one_round, part), 1)))
    table = pd.concat(tables)
    table["group"] = np.where(table.classes == 2, "two", "3 to 26")
    table.loc[table.classes >= judged.MOST_CLASSES_FOR_SEVERAL, "group"] = "more"
    hurt = [c for c in table if c.endswith(": hurt")]
    table[hurt] = table[hurt].astype(float)
    runner.write(HERE / "third_step.csv", list(summarised(table)))


if __name__ == "__main__":
    main()
