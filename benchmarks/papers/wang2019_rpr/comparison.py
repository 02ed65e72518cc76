"""Experiment 3: all methods on Adult and bank marketing, LR and SVM, 200 and 500 rows."""

import numpy as np
import setting
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from sklearn_calib import canonical_proba
from sklearn_calib.linear import logistic_intervals
from sklearn_calib.recalibrators import AdaptiveCalibration

ROUNDS = 50


def one_round(data, learner, n, seed):
    table, y = setting.load(data)
    chosen = np.random.default_rng(seed).permutation(len(y))
    train, test = chosen[:n], chosen[n:]
    model = setting.prepared(table)
    X = model.fit(table.iloc[train]).transform(table)
    if learner == "LR":
        fitted = LogisticRegression(max_iter=2000).fit(X[train], y[train])
    else:
        widths = 0.5 / 10.0 ** np.arange(-10, 11)
        search = GridSearchCV(SVC(), {"gamma": list(widths)}, cv=4)
        fitted = search.fit(X[train], y[train]).best_estimator_
    scores = fitted.decision_function(X)
    proba = canonical_proba(scores[test], kind="logits")
    given = {}
    if learner == "LR":  # the form of adaptive calibration with intervals
        ends = logistic_intervals(fitted, X[train], X)
        acp = setting.fit(
            AdaptiveCalibration("interval", prior_weight=0),
            scores[train],
            y[train],
            intervals=ends[train],
        )
        given["ACP"] = acp.predict_proba(proba, intervals=ends[test])
    about = {"data": data, "learner": learner, "n": n, "seed": seed}
    return setting.compared(scores[train], y[train], proba, y[test], about, given)


def main():
    if setting.runner.data_folder() is None:
        print("skipped: no data folder")
        return
    jobs = [
        (data, learner, n, seed)
        for seed in range(ROUNDS)
        for data in ("adult", "bank_full")
        for learner in ("LR", "SVM")
        for n in (200, 500)
    ]
    rows = setting.rounds("comparison", jobs, one_round)
    setting.report(rows, ["data", "learner", "n", "method"], "comparison")


if __name__ == "__main__":
    main()
