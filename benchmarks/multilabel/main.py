"""Do rare labels gain where their maps are drawn to those of the other labels?"""

import sys
import warnings
from itertools import groupby
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

from sklearn_calib import canonical_proba
from sklearn_calib._simplex_array import compute_log_odds
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import MultilabelCalibration

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
DRAWS = 10
TRAIN, TEST, SIZES = 800, 4000, (100, 300, 1000)
RARE = 0.05
SEEDS = {"yeast-like": 10, "long tail": 9, "word counts": 15}
# shares of the 14 labels of yeast, a table of 2417 genes with 103 features
YEAST = (
    0.752,
    0.744,
    0.429,
    0.407,
    0.357,
    0.315,
    0.299,
    0.247,
    0.199,
    0.177,
    0.12,
    0.105,
    0.074,
)
YEAST += (0.014,)
SHARES = {"yeast-like": YEAST, "long tail": tuple(0.5 / np.arange(1, 26))}
LEARNERS = {
    "logistic regression": LogisticRegression(C=10.0, max_iter=300),
    "naive Bayes": GaussianNB(),
    "random forest": RandomForestClassifier(20, random_state=0),
}
METHODS = (
    "none",
    "all",
    "shrink",
    "CalibratedClassifierCV sigmoid",
    "CalibratedClassifierCV iso",
)
JOBS = [
    (data, learner, draw)
    for data in (*SHARES, "word counts")
    for learner in LEARNERS
    for draw in range(DRAWS)
]


def yeast_like(n, rng, shares):
    """103 correlated features; labels of given shares, which depend in part on the same."""
    count = len(shares)
    features = rng.normal(size=(n, 10)) @ rng.normal(size=(10, 103)) / 3 + rng.normal(
        size=(n, 103)
    )
    common = rng.normal(size=(103, 3))
    weights = common @ rng.normal(size=(3, count)) + rng.normal(size=(103, count))
    score = features @ (weights * (rng.random((103, count)) < 0.2))
    score *= 1.5 / score.std(axis=0)
    for label, share in enumerate(shares):
        z = score[:, label]
        score[:, label] += brentq(
            lambda a, z=z, share=share: expit(z + a).mean() - share, -30, 30
        )
    return features, (rng.random(score.shape) < expit(score)).astype(int)


def make_multilabel(n, rng):
    seed = int(rng.integers(2**31))
    options = {"n_classes": 20, "n_labels": 2, "n_features": 40, "length": 30}
    X, Y = make_multilabel_classification(n, random_state=seed, **options)
    return X, Y


def losses(Y, P):
    """Log loss of each label."""
    return np.array(
        [log_loss(y, p, labels=[0, 1]) for y, p in zip(Y.T, P.T, strict=True)]
    )


def table(proba):
    return np.column_stack([pair[:, 1] for pair in proba])


class GivenProba(ClassifierMixin, BaseEstimator):
    """A fitted classifier of one label, whose features are what it would predict."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)


class GivenLogits(GivenProba):
    def decision_function(self, X):
        return compute_log_odds(canonical_proba(X))


def of_scikit_learn(method, learner, scores, Y, pairs):
    """One CalibratedClassifierCV for each label that it can be fitted to."""
    given = FrozenEstimator(
        GivenLogits() if learner == "logistic regression" else GivenProba()
    )
    after = table(pairs)
    for label, (pair, new) in enumerate(zip(scores, pairs, strict=True)):
        if 0 < Y[:, label].sum() < len(Y):
            one = CalibratedClassifierCV(given, method=method).fit(pair, Y[:, label])
            after[:, label] = one.predict_proba(new)[:, 1]
    return after


def one_round(data, learner, draw):
    """The mean log loss of common and of rare labels, for each method and number of rows."""
    rng = np.random.default_rng([draw, SEEDS[data]])
    n = TRAIN + max(SIZES) + TEST
    X, Y = (
        yeast_like(n, rng, SHARES[data]) if data in SHARES else make_multilabel(n, rng)
    )
    rate = Y.mean(axis=0)
    groups = {"all": rate >= 0, "rare": rate < RARE, "others": rate >= RARE}
    kept = (Y[:TRAIN].sum(axis=0) >= 2) & (Y[-TEST:].sum(axis=0) >= 2)
    model = MultiOutputClassifier(LEARNERS[learner]).fit(X[:TRAIN], Y[:TRAIN][:, kept])
    Y, groups = Y[:, kept], {name: of[kept] for name, of in groups.items()}
    X_test, Y_test = X[-TEST:], Y[-TEST:]
    pairs = model.predict_proba(X_test)
    before, rows = table(pairs), []
    for n in SIZES:
        part = slice(TRAIN, TRAIN + n)
        scores = model.predict_proba(X[part])
        for name in ("nothing", *METHODS):
            chosen = ""
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # labels without a positive row
                if name == "nothing":
                    after = before
                elif name in METHODS[3:]:
                    kind = "isotonic" if name.endswith("iso") else "sigmoid"
                    after = of_scikit_learn(kind, learner, scores, Y[part], pairs)
                else:
                    fit = MultilabelCalibration(pooling=name).fit(scores, Y[part])
                    after, chosen = (
                        table(fit.predict_proba(pairs)),
                        getattr(fit, "shrinkage_", ""),
                    )
            loss = losses(Y_test, after)
            row = {
                "data": data,
                "learner": learner,
                "n": n,
                "method": name,
                "draw": draw,
            }
            row["shrinkage"] = str(chosen)
            row |= {
                of: float(loss[mask].mean())
                for of, mask in groups.items()
                if mask.any()
            }
            rows.append(row)
    return rows


COLUMNS = {
    "nothing": "before",
    "none": "none",
    "all": "all",
    "shrink": "shrink",
    "CalibratedClassifierCV sigmoid": "sigmoid",
    "CalibratedClassifierCV iso": "isotonic",
}


def _mean(rows, of, method, draw):
    """Over the learners, which share a draw."""
    chosen = (row for row in rows if row["method"] == method and row["draw"] == draw)
    return np.mean([row[of] for row in chosen if of in row])


def summary(rows, *by):
    """Mean log losses over the draws for each group of labels, and `none` less `shrink`."""
    key = lambda row: [row[name] for name in by]  # noqa: E731
    for cell, found in groupby(sorted(rows, key=key), key):
        found = list(found)
        for of in ("rare", "others"):
            draws = sorted({row["draw"] for row in found if of in row})
            values = {
                method: np.array([_mean(found, of, method, draw) for draw in draws])
                for method in COLUMNS
            }
            gain = values["none"] - values["shrink"]
            line = dict(zip(by, cell, strict=True)) | {"labels": of}
            line |= {
                COLUMNS[method]: f"{loss.mean():.3f}" for method, loss in values.items()
            }
            line["gain"] = f"{gain.mean():.4f}"
            line["error"] = f"{gain.std(ddof=1) / np.sqrt(len(gain)):.4f}"
            yield line


def main():
    rows = runner.rounds(HERE / "rounds.partial.jsonl", JOBS, one_round)
    table = list(summary(rows, "data", "learner", "n"))
    runner.write(HERE / "results.csv", table, list(table[0]))
    short = [row for row in summary(rows, "data", "n") if row.pop("labels") == "rare"]
    runner.write(HERE / "rare.csv", short, list(short[0]))


if __name__ == "__main__":
    main()
