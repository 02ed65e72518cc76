"""The fourth step of the default, unchanged scores and two scales more, beside other methods.

``python benchmarks/run.py defaults/fourth_step`` (15 minutes of one core; it resumes
where it was cut). The maps and their prices were chosen by the part "choosing" (with
`--part choosing`); the committed figures are those of the other part. Rounds are those
of `judged.py` without the bed, with 30 calibration rows as well, two kinds of support
vector machines, whose margins are taken for log-odds, and tables with 1.5 and 5 %
events. The lines "before" were written with `--before` and the version of before.
"""

import argparse
import csv
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.svm import SVC, LinearSVC

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "arena")]
import judged  # noqa: E402
import runner  # noqa: E402
import split  # noqa: E402
import tables  # noqa: E402
import tasks  # noqa: E402

from sklearn_calib import canonical_proba  # noqa: E402
from sklearn_calib.recalibrators import (  # noqa: E402
    PlattScaling,
    TemperatureScaling,
    get_recalibrator,
)

ROWS = (30, 100, 500, 2000)
OURS = ("default", "auto")
DRAWS = 2000
ROWS_OF_AUTO = 100  # which takes twenty times as long as everything else
RARE = [
    f"{name} {rate} %"
    for name in ("bank_full", "htru2", "covertype_2v4", "adult", "credit_default")
    for rate in (1.5, 5)
]
RARE_MODELS = "forest, naive Bayes, boosting, logistic, MLP, linear SVM, SVM"
GROUPS = {
    "forests": ("forest", "forest, weighted"),
    "naive Bayes": ("naive Bayes",),
    "support vector machines": ("linear SVM", "SVM"),
    "boosting": ("boosting", "boosting, overfitted"),
    "networks": ("MLP",),
    "logistic regression": ("logistic", "logistic, weighted"),
}


class Margins(ClassifierMixin):
    """Probabilities from margins, as if these were log-odds."""

    def __init__(self, machine):
        self.machine = machine

    def fit(self, X, y):
        self.machine.fit(X, y)
        return self

    def predict_proba(self, X):
        margins = self.machine.decision_function(X)
        return np.asarray(canonical_proba(margins, kind="logits"))


def list_jobs(part):
    """Return (kind, name, model, rows, draw, moved) of all rounds of a part."""
    tasks.MODELS["linear SVM"] = lambda: Margins(
        LinearSVC(max_iter=2000, random_state=0)
    )
    tasks.MODELS["SVM"] = lambda: Margins(SVC(random_state=0))
    tables.TWO |= {name: float(name.split()[1]) / 100 for name in RARE}
    judged.ROWS = ROWS
    found = [job for job in judged.jobs(part) if job[0] != "bed"]
    names = [name for name in RARE if split.part_of(name) == part]
    models = RARE_MODELS.split(", ")
    for name in names:
        found += [("table", name, model, n, 0) for model in models for n in ROWS]
    moved = [(*job, 1) for job in found if job[3] in (100, 500)]
    return [(*job, 0) for job in found] + moved


def fit_methods(p, y, with_auto):
    """Return {name: function of test probabilities}."""
    k = p.shape[1]
    names = ["default", "structured_vector"] + ["auto"] * with_auto
    names += ["platt", "beta", "spline"] if k == 2 else ["structured_matrix"]
    methods = {name: get_recalibrator(name) for name in names}
    methods["temperature"] = TemperatureScaling(laplace=True)
    if k == 2:
        methods["scikit-learn's sigmoid"] = PlattScaling("proba")
    fitted = {"raw": np.asarray}
    for name, method in methods.items():
        fitted[name] = method.fit(p, y, classes=range(k)).predict_proba
    return fitted


def one_round(kind, name, model, n, draw, moved):
    """Return the mean losses of a round, and which are above those of the scores."""
    given = judged.rows_of(kind, name, model, n, draw)
    if given is None or (given[1] == given[1][0]).all():
        return []
    p, y, p_test, y_test = given
    shift = np.zeros(p.shape[1])
    if moved:
        shift = judged.FAR * np.random.default_rng([7, n, draw]).normal(size=len(shift))
    p, p_test = (np.asarray(q) * np.exp(shift - shift.max()) for q in (p, p_test))
    p, p_test = (q / q.sum(axis=1, keepdims=True) for q in (p, p_test))
    row = {"name": name, "model": model, "n_calib": n, "moved": moved}
    row["classes"] = p.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        methods = fit_methods(p, y, n == ROWS_OF_AUTO and not moved)
    raw = None
    for method, predict in methods.items():
        true = np.asarray(predict(p_test))[np.arange(len(y_test)), y_test]
        losses = -np.log(np.clip(true, judged.LEAST, 1))
        raw = losses if raw is None else raw
        away = losses - raw
        is_worse = away.mean() > 2 * away.std() / np.sqrt(len(away)) > 0
        row |= {method: float(losses.mean()), f"{method}: hurt": bool(is_worse)}
    return [row]


def summarise(table, suffix):
    """Yield the lines of the committed table."""
    for several in (False, True):
        part = table[(table.classes > 2) == several]
        as_is = part[part.moved == 0]
        groups = {"all": as_is, "rates moved": part[part.moved > 0]}
        for title, models in GROUPS.items():
            groups[title] = as_is[as_is.model.isin(models)]
        if several:
            groups["10 to 100 classes"] = as_is[as_is.classes >= 10]
        else:
            for rate in ("1.5 %", "5 %"):
                groups[f"{rate} events"] = as_is[as_is.name.str.endswith(f" {rate}")]
            raw = as_is.raw < 0.05
            groups["unchanged scores with a log loss below .05"] = as_is[raw]
        for title, rounds in groups.items():
            yield from summarise_group(rounds, suffix, several, title)


def summarise_group(rounds, suffix, several, title):
    peers = [c[:-6] for c in rounds if c.endswith(": hurt")]
    peers = [name for name in peers if name not in OURS]
    best = rounds[peers].min(axis=1)
    for name in (*OURS, *peers):
        own = rounds[rounds[name].notna()]
        if not len(own):
            continue
        least = np.minimum(best[own.index], own[name])
        excess = np.minimum(100 * (own[name] / least - 1), judged.BEST)
        base = own.name.map(tasks.base)
        sums = excess.groupby(base).agg(["sum", "count"])
        drawn = np.random.default_rng(0).integers(len(sums), size=(DRAWS, len(sums)))
        means = sums["sum"].to_numpy()[drawn].sum(axis=1)
        means = means / sums["count"].to_numpy()[drawn].sum(axis=1)
        row = {"classes": "several" if several else "two", "rounds of": title}
        row |= {"rounds": len(own), "method": name}
        row["method"] += suffix if name in OURS else ""
        row["excess %"] = f"{excess.mean():.2f}"
        low, high = np.quantile(means, [0.025, 0.975])
        row |= {"low": f"{low:.2f}", "high": f"{high:.2f}"}
        hurt = own[f"{name}: hurt"].astype(float)
        row["hurt %"] = f"{100 * hurt.mean():.1f}"
        for n in ROWS:
            there = own.n_calib == n
            if there.any():
                row[f"n = {n}"] = f"{excess[there].mean():.2f}"
                row[f"hurt %, n = {n}"] = f"{100 * hurt[there].mean():.1f}"
        yield row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", default="judging")
    parser.add_argument("--before", action="store_true")
    asked = parser.parse_args()
    suffix = ", before" if asked.before else ""
    jobs = list_jobs(asked.part)
    path = HERE / f"fourth_step{suffix}.{asked.part}.partial.jsonl"
    table = pd.DataFrame(runner.rounds(path, jobs, one_round, processes=1))
    found = list(summarise(table, suffix))
    if asked.part != "judging":
        for row in found:
            print(row)
        return
    place = HERE / "fourth_step.csv"
    kept = []
    if place.exists():
        with open(place, newline="", encoding="utf-8") as file:
            kept = list(csv.DictReader(file))
    if asked.before:
        found = [row for row in found if row["method"].endswith(suffix)]
        kept = [row for row in kept if not row["method"].endswith(suffix)]
    else:
        kept = [row for row in kept if row["method"].endswith(", before")]
    rows = sorted([*found, *kept], key=lambda row: (row["classes"] != "two",))
    columns = dict.fromkeys(name for row in rows for name in row if name != "machine")
    runner.write(place, rows, columns)
    page = [row for row in rows if row["rounds of"] == "all"]
    columns = ["classes", "method", "rounds", "excess %", "low", "high", "hurt %"]
    columns += [name for n in ROWS for name in (f"n = {n}", f"hurt %, n = {n}")]
    page = [{name: row.get(name, "") for name in columns} for row in page]
    runner.write(HERE / "page.csv", page, columns)


if __name__ == "__main__":
    main()
