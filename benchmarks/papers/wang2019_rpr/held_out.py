"""Beyond the paper: all methods on rows that the classifier has not seen, as they are meant."""

import numpy as np
import setting
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_calib import canonical_proba

LEARNERS = {
    "LR": LogisticRegression(max_iter=2000),
    "naive Bayes": GaussianNB(),
    "HistGB": HistGradientBoostingClassifier(random_state=0),
}
DATA = ("adult", "bank_full", "credit_default", "htru2")
SIZES = (200, 1000, 5000)
TRAIN = 3000


def one_round(data, learner, seed):
    table, y = setting.load(data)
    chosen = np.random.default_rng(seed).permutation(len(y))
    train, calibration = chosen[:TRAIN], chosen[TRAIN : TRAIN + max(SIZES)]
    test = chosen[TRAIN + max(SIZES) :]
    X = setting.prepared(table).fit(table.iloc[train]).transform(table)
    model = LEARNERS[learner].fit(X[train], y[train])
    if hasattr(model, "decision_function"):
        scores = model.decision_function(X)
    else:
        log_proba = model.predict_log_proba(X)
        scores = log_proba[:, 1] - log_proba[:, 0]
    proba = canonical_proba(scores[test], kind="logits")
    rows = []
    for n in SIZES:
        part = calibration[:n]
        about = {"data": data, "learner": learner, "n": n, "seed": seed}
        rows += setting.compared(scores[part], y[part], proba, y[test], about)
    return rows


def main():
    if setting.runner.data_folder() is None:
        print("skipped: no data folder")
        return
    jobs = [
        (d, learner, seed) for seed in range(5) for d in DATA for learner in LEARNERS
    ]
    rows = setting.rounds("held_out", jobs, one_round)
    setting.report(rows, ["learner", "n", "method"], "held_out")


if __name__ == "__main__":
    main()
