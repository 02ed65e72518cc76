"""`CalibratedModel` beside `CalibratedClassifierCV`, both with the same five folds, end to end.

``python benchmarks/run.py defaults/end_to_end`` (10 minutes of one core; it resumes
where it was cut). Tables are those by which nothing was chosen, with 1000 and 3000
training rows, and ten draws of two tables of ``make_classification``. Figures are
geometric means of the ratio to the log loss of scikit-learn's sigmoid, and to the
smallest of its three methods, which is known only afterwards. The classifiers of the
folds are fitted once and shared by all methods. The lines "before" were written with
`--before` and the version of before.
"""

import argparse
import csv
import hashlib
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.metaestimators import available_if

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "arena")]
import runner  # noqa: E402
import tables  # noqa: E402
import tasks  # noqa: E402

from sklearn_calib import CalibratedModel  # noqa: E402
from sklearn_calib.recalibrators import PlattScaling  # noqa: E402

SIZES, DRAWS, TEST = (1000, 3000), 10, 5000
MADE = {
    "make_classification": {"weights": [0.8]},
    "make_classification, noisy": {"n_informative": 6, "flip_y": 0.15},
}
TWO = ["spambase", "bank_full", "htru2", "covertype_2v4 5 %", "bank_full 5 %"]
SEVERAL = ["digits", "letter", "bank_full:month"]
LEARNERS = {
    name: tasks.MODELS[name]
    for name in ("forest", "naive Bayes", "boosting", "logistic", "MLP")
}
LEARNERS["linear SVM"] = lambda: LinearSVC(max_iter=2000, random_state=0)
LEARNERS["SVM"] = lambda: SVC(random_state=0)
OURS = ("default", "platt", "PlattScaling('proba')")
THEIRS = ("sigmoid", "isotonic", "temperature")
CACHE = tasks.CACHE.parent / "end_to_end"
FITTED = {}  # classifiers of a round
RESPONSES = {}  # their scores, kept between runs


class FittedOnce(ClassifierMixin, BaseEstimator):
    """A classifier whose fits and scores of the same rows are remembered."""

    def __init__(self, classifier=None):
        self.classifier = classifier

    def fit(self, X, y):
        self.rows_ = X, y
        self.key_ = hash_features(X)
        self.classes_ = np.unique(y)
        return self

    def _respond(self, method, X):
        key = method, self.key_, hash_features(X)
        if key not in RESPONSES:
            if self.key_ not in FITTED:
                FITTED[self.key_] = clone(self.classifier).fit(*self.rows_)
            RESPONSES[key] = getattr(FITTED[self.key_], method)(X)
        return RESPONSES[key]

    def predict(self, X):
        return self._respond("predict", X)

    @available_if(lambda self: hasattr(self.classifier, "predict_proba"))
    def predict_proba(self, X):
        return self._respond("predict_proba", X)

    @available_if(lambda self: hasattr(self.classifier, "decision_function"))
    def decision_function(self, X):
        return self._respond("decision_function", X)


def hash_features(X):
    return hashlib.sha256(np.ascontiguousarray(X)).hexdigest()


def read_rows(name, size, draw):
    if name in MADE:
        X, y = make_classification(size + TEST, random_state=draw, **MADE[name])
    else:
        X, y = tables.table(name, tasks.DATA)
    parts = {"train_size": size, "random_state": draw, "stratify": y}
    X_train, X_test, y_train, y_test = train_test_split(X, y, **parts)
    return X_train, X_test[:TEST], y_train, y_test[:TEST]


def one_round(name, learner, size, draw):
    """Return the log losses of all methods."""
    FITTED.clear()
    RESPONSES.clear()
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"{name}-{learner}-{size}-{draw}.pkl".replace(":", "_")
    if path.exists():
        RESPONSES.update(pickle.loads(path.read_bytes()))
    X, X_test, y, y_test = read_rows(name, size, draw)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    made = FittedOnce(LEARNERS[learner]())
    models = {
        "default": CalibratedModel(made, cv=folds),
        "platt": CalibratedModel(made, "platt", cv=folds),
        "PlattScaling('proba')": CalibratedModel(made, PlattScaling("proba"), cv=folds),
    }
    for method in THEIRS:
        models[method] = CalibratedClassifierCV(made, method=method, cv=folds)
    row = {"table": name, "learner": learner, "rows": size, "draw": draw}
    row["classes"] = len(np.unique(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, model in models.items():
            proba = model.fit(X, y).predict_proba(X_test)
            row[method] = float(log_loss(y_test, proba, labels=model.classes_))
    path.write_bytes(pickle.dumps(RESPONSES))
    return [row]


def list_jobs():
    """Return (table, learner, rows, draw) of all rounds."""
    jobs = [(name, "forest", 3000, draw) for name in MADE for draw in range(DRAWS)]
    tables.TWO |= {name: 0.05 for name in TWO if name.endswith(" 5 %")}
    for name in TWO:
        jobs += [(name, learner, n, 0) for learner in LEARNERS for n in SIZES]
    for name in SEVERAL:
        kept = [one for one in LEARNERS if name == "digits" or one != "boosting"]
        jobs += [(name, learner, 1000, 0) for learner in kept if learner != "SVM"]
    return jobs


def summarise(table, suffix):
    """Yield the lines of the committed table."""
    real = table[~table.table.isin(MADE)]
    two = real[real.classes == 2]
    groups = {"two classes": two, "several": real[real.classes > 2]}
    for learner in LEARNERS:
        groups[f"two classes, {learner}"] = two[two.learner == learner]
    for name in MADE:
        groups[f"{name}, forest"] = table[table.table == name]
    for title, rounds in groups.items():
        best = rounds[[*THEIRS]].min(axis=1)
        for method in (*OURS, *THEIRS):
            row = {"rounds of": title, "rounds": len(rounds), "method": method}
            row["method"] += suffix if method in OURS else ""
            row["log loss"] = f"{rounds[method].mean():.4f}"
            for name, peer in (("sigmoid", rounds.sigmoid), ("best", best)):
                ratio = np.log(rounds[method] / peer)
                row[f"to scikit-learn's {name}"] = f"{np.exp(ratio.mean()):.3f}"
            better = (rounds[method] < rounds.sigmoid).mean()
            row["below its sigmoid"] = f"{better:.2f}"
            yield row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", action="store_true")
    suffix = ", before" if parser.parse_args().before else ""
    path = HERE / f"end_to_end{suffix}.partial.jsonl"
    table = pd.DataFrame(runner.rounds(path, list_jobs(), one_round, processes=1))
    rows = list(summarise(table, suffix))
    place = HERE / "end_to_end.csv"
    kept = []
    if place.exists():
        with open(place, newline="", encoding="utf-8") as file:
            kept = list(csv.DictReader(file))
    if suffix:
        rows = [row for row in rows if row["method"] == "default, before"]
        kept = [row for row in kept if row["method"] != "default, before"]
    else:
        kept = [row for row in kept if row["method"] == "default, before"]
    runner.write(place, [*rows, *kept])


if __name__ == "__main__":
    main()
