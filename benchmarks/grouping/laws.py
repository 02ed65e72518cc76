"""Populations whose probabilities are known: what a model misses of them, and what it does not."""

import numpy as np
from scipy.special import expit, logit, softmax
from sklearn.linear_model import LogisticRegression

TRAINING = 10_000  # rows that the fitted models have seen
SLOPES = np.array(
    [[1.0, -0.5, 0, 0], [0.5, 0.5, -1, 0], [0, 0.5, 0.5, -0.5], [0, -0.5, 0.5, 0]]
)
NOTHING = {
    "true probabilities": lambda n, rng: _two(n, rng, _sum, exact=True),
    "right model, fitted": lambda n, rng: _two(n, rng, _sum),
    "correlated, text, missing": lambda n, rng: _mixed(n, rng, 0.0),
    "true scores, bent": lambda n, rng: _bent(n, rng),
    "four classes, true": lambda n, rng: _four(n, rng, 0.0, exact=True),
    "four classes, fitted": lambda n, rng: _four(n, rng, 0.0),
}
SOMETHING = {
    "interaction missed": lambda n, rng: _two(n, rng, _product),
    "interaction missed, scores x 2.5": lambda n, rng: _two(n, rng, _product, 2.5),
    "text column missed": lambda n, rng: _mixed(n, rng, 1.0),
    "four classes, group missed": lambda n, rng: _four(n, rng, 1.5),
}


def _sum(x):
    return x[:, 0] + x[:, 1]


def _product(x):
    return x[:, 0] + x[:, 1] + 1.5 * x[:, 1] * x[:, 2]


def _labels(truth, rng):
    return (rng.random((len(truth), 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)


def _pair(p):
    return np.column_stack([1 - p, p])


def _two(n, rng, line, factor=1.0, exact=False):
    """Five normal features; a logistic regression that knows no products."""
    x = rng.normal(size=(n + TRAINING, 5))
    truth = _pair(expit(line(x)))
    y = _labels(truth, rng)
    p = (
        truth
        if exact
        else LogisticRegression().fit(x[:TRAINING], y[:TRAINING]).predict_proba(x)
    )
    p = p if factor == 1 else _pair(expit(factor * logit(p[:, 1])))
    kept = slice(TRAINING, None)
    return dict(enumerate(x[kept].T)), y[kept], p[kept], truth[kept]


def _mixed(n, rng, missed):
    """Five features of correlation 0.8, text of 30 levels, holes; the truth, less the text."""
    common = rng.normal(size=(n, 1))
    x = np.sqrt(0.8) * common + np.sqrt(0.2) * rng.normal(size=(n, 5))
    level = np.minimum(rng.geometric(0.15, n) - 1, 29)
    effect = np.random.default_rng(0).normal(size=30)
    z = x[:, 0] - 0.5 * x[:, 1] - 1.5
    truth = _pair(expit(z + missed * effect[level]))
    columns = {
        f"x{j}": np.where(rng.random(n) < 0.1, np.nan, x[:, j]) for j in range(5)
    }
    columns["town"] = np.array([f"town {k}" for k in level], dtype=object)
    columns["town"][rng.random(n) < 0.05] = None
    return columns, _labels(truth, rng), _pair(expit(z)), truth


def _bent(n, rng):
    """Probabilities that one map of the scores makes right; the features know no more."""
    x = rng.normal(size=(n, 5))
    z = x[:, 0] + x[:, 1]
    truth = _pair(expit(z))
    return (
        dict(enumerate(x.T)),
        _labels(truth, rng),
        _pair(expit(z**3 / 4 + z - 0.7)),
        truth,
    )


def _four(n, rng, missed, exact=False):
    """Four features and a group of a third of the rows in which one class is more frequent."""
    x = rng.normal(size=(n + TRAINING, 4))
    group = rng.random(n + TRAINING) < 1 / 3
    z = x @ SLOPES
    z[:, 1] += missed * group
    truth = softmax(z, axis=1)
    y = _labels(truth, rng)
    p = (
        truth
        if exact
        else LogisticRegression().fit(x[:TRAINING], y[:TRAINING]).predict_proba(x)
    )
    kept = slice(TRAINING, None)
    columns = {**dict(enumerate(x[kept].T)), "group": group[kept]}
    return columns, y[kept], p[kept], truth[kept]
