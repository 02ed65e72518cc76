"""Multicalibration beside MCGrad: loss and worst group of rows that neither has seen, and time."""

import contextlib
import importlib.util
import logging
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from sklearn_calib.groups import (
    GroupRecalibration,
    MulticalibratedScores,
    group_calibration,
)
from sklearn_calib.recalibrators import PlattScaling

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
SPLITS = 4
TURNS = 1
DATA = {  # categories, numbers; what the logistic regression sees
    "adult": (
        ["workclass", "education", "marital_status", "occupation", "race", "sex"],
        ["age", "hours_per_week"],
        ["age", "education_num", "hours_per_week", "capital_gain"],
    ),
    "bank_full": (
        ["job", "marital", "education", "housing", "loan", "contact", "poutcome"],
        ["age", "balance"],
        ["age", "balance", "duration", "campaign"],
    ),
    "credit_default": (
        ["SEX", "EDUCATION", "MARRIAGE"],
        ["AGE", "LIMIT_BAL"],
        ["LIMIT_BAL", "AGE", "PAY_0", "BILL_AMT1"],
    ),
}
# for the readable table
FEW = {
    "adult": "sex",
    "bank_full": "housing",
    "credit_default": "SEX",
}
MODELS = ("logistic, 4 columns", "boosting", "forest")
NOTHING = ((500, 30), (2000, 30))  # rows and sets in which nothing is wrong


def classifier(name, data):
    def numbers():
        codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        text = make_column_selector(dtype_exclude="number")
        return make_column_transformer((codes, text), remainder="passthrough")

    if name == "boosting":
        return make_pipeline(numbers(), HistGradientBoostingClassifier(random_state=0))
    if name == "forest":
        return make_pipeline(
            numbers(), RandomForestClassifier(min_samples_leaf=3, random_state=0)
        )
    scaled = make_column_transformer((StandardScaler(), DATA[data][2]))
    return make_pipeline(scaled, LogisticRegression())


def parts_of(data, model, split):
    """(probabilities, labels, table of groups) of the calibration and of the test rows."""
    frame = pd.read_csv(runner.data_folder() / data / f"{data}.csv.gz")
    _, y = np.unique(frame.pop("target"), return_inverse=True)
    frame = frame.drop(columns="split", errors="ignore")
    texts = frame.select_dtypes(exclude="number").columns
    frame[texts] = frame[texts].fillna("?").astype(object)
    train, *others = np.array_split(np.random.default_rng(split).permutation(len(y)), 3)
    fitted = classifier(model, data).fit(frame.iloc[train], y[train])
    categories, numbers, _ = DATA[data]
    table = frame[categories + numbers].astype(dict.fromkeys(categories, str))
    for rows in others:
        proba = fitted.predict_proba(frame.iloc[rows])[:, 1]
        yield proba, y[rows], table.iloc[rows].reset_index(drop=True)


class OfMCGrad:
    """MCGrad with its defaults, as one of ours."""

    def __init__(self, categories, numbers):
        self.columns = {
            "categorical_feature_column_names": categories,
            "numerical_feature_column_names": numbers,
        }

    def fit(self, p, y, groups):
        from mcgrad.methods import MCGrad

        self.model = MCGrad().fit(groups.assign(p_=p, y_=y), "p_", "y_", **self.columns)
        self.n_rounds_ = len(self.model.mr)
        return self

    def predict_proba(self, p, groups):
        second = self.model.predict(groups.assign(p_=p), "p_", **self.columns)
        return np.column_stack([1 - second, second])


class OfAll:
    """One line for all rows: what a calibration without groups does."""

    def fit(self, p, y, groups):
        self.model = PlattScaling().fit(p, y)
        return self

    def predict_proba(self, p, groups):
        return self.model.predict_proba(p)


class OneColumn:
    """A line for each value of one column."""

    def __init__(self, column):
        self.column = column

    def fit(self, p, y, groups):
        self.model = GroupRecalibration().fit(p, y, groups=groups[[self.column]])
        return self

    def predict_proba(self, p, groups):
        return self.model.predict_proba(p, groups=groups[[self.column]])


def methods(data):
    categories, numbers, _ = DATA[data]
    found = {"MulticalibratedScores": MulticalibratedScores}
    if importlib.util.find_spec("mcgrad") is not None:
        found["MCGrad"] = lambda: OfMCGrad(categories, numbers)
    column = FEW[data]
    return {
        **found,
        "PlattScaling": OfAll,
        f"GroupRecalibration, {column}": lambda: OneColumn(column),
    }


def losses(q, p):
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return -np.mean(q * np.log(p) + (1 - q) * np.log1p(-p)), np.mean(
        q * (1 - p) ** 2 + (1 - q) * p**2
    )


def compare(data, model, split):
    """One row for each method: losses, the audit of the test rows, and seconds of a fit."""
    (p, y, table), (tested, truth, groups) = parts_of(data, model, split)
    makers, seconds, fitted = methods(data), {}, {}
    with quiet():
        for turn in range(TURNS + 1):  # the first is not counted: it may compile
            for name, make in makers.items():
                start = time.perf_counter()
                fitted[name] = make().fit(p, y, groups=table)
                if turn:
                    seconds.setdefault(name, []).append(time.perf_counter() - start)
        found = {
            name: one.predict_proba(tested, groups=groups)[:, 1]
            for name, one in fitted.items()
        }
    rows = []
    for name, proba in {"before": tested, **found}.items():
        audit = group_calibration(truth, proba, groups, depth=2, n_resamples=199)
        log, brier = losses(truth, proba)
        rows.append(
            {
                "method": name,
                "calibration_rows": len(y),
                "groups": len(audit.rows),
                "log_loss": log,
                "brier": brier,
                "worst_sigma": audit.sigma,
                "by_chance": audit.critical_sigma,
                "rejected": len(audit.rejected),
                "seconds": float(np.median(seconds.get(name, [0.0]))),
                "rounds": getattr(fitted.get(name), "n_rounds_", None),
            }
        )
    return rows


@contextlib.contextmanager
def quiet():
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def averages(data, model, splits):
    """The rows of the table: means over the splits."""
    for of_method in zip(*splits, strict=True):
        row = {"data": data, "model": model, "splits": len(splits), **of_method[0]}
        for name, digits in (
            ("log_loss", 5), ("brier", 5), ("worst_sigma", 2), ("by_chance", 2), ("rejected", 1),
            ("rounds", 1), ("groups", 0),
        ):  # fmt: skip
            values = [one[name] for one in of_method]
            row[name] = "" if None in values else f"{np.mean(values):.{digits}f}"
        row["seconds"] = f"{np.median([one['seconds'] for one in of_method]):.2f}"
        yield row if row["method"] != "before" else row | {"seconds": ""}


def nothing_wrong(n, sets):
    """Labels drawn from the probabilities: how often nothing changes, and what a change costs."""
    found = {}
    for seed in range(sets):
        rng = np.random.default_rng([n, seed])
        truth = 1 / (1 + np.exp(-1.5 * rng.normal(size=n)))
        y = (rng.random(n) < truth).astype(int)
        table = pd.DataFrame(
            {f"c{k}": rng.integers(0, k, n).astype(str) for k in (2, 5, 20)}
        )
        table["x"] = rng.normal(size=n)
        makers = {"MulticalibratedScores": MulticalibratedScores}
        if importlib.util.find_spec("mcgrad") is not None:
            makers["MCGrad"] = lambda: OfMCGrad(["c2", "c5", "c20"], ["x"])
        for name, make in makers.items():
            with quiet():
                after = (
                    make()
                    .fit(truth, y, groups=table)
                    .predict_proba(truth, groups=table)[:, 1]
                )
            change = losses(truth, after)[0] - losses(truth, truth)[0]
            found.setdefault(name, []).append(
                (np.abs(after - truth).max() < 1e-9, change)
            )
    return [
        {
            "method": name,
            "n": n,
            "sets": sets,
            "unchanged": f"{np.mean([same for same, _ in pairs]):.3f}",
            "mean_excess_log_loss": f"{np.mean([change for _, change in pairs]):.2e}",
        }
        for name, pairs in found.items()
    ]


def main():
    if importlib.util.find_spec("mcgrad") is None:
        print("skipped mcgrad: not installed")
    tasks = (
        [(data, model) for data in DATA for model in MODELS]
        if runner.data_folder()
        else []
    )
    rows = []
    for task in tasks:
        jobs = [(*task, split) for split in range(SPLITS)]
        found = [
            runner.rounds(HERE / "rounds.partial.jsonl", [job], compare, processes=1)
            for job in jobs
        ]
        rows += averages(*task, found)
    if rows:
        runner.write(HERE / "results.csv", rows)
    quiet_rows = runner.rounds(
        HERE / "nothing.partial.jsonl", NOTHING, nothing_wrong, processes=1
    )
    runner.write(HERE / "nothing_wrong.csv", quiet_rows)


if __name__ == "__main__":
    main()
