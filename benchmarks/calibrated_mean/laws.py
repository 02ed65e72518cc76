"""Laws of labels and judges whose true mean is known: each gives the arguments of a call."""

import numpy as np
from scipy.special import expit, logit, ndtr

N = 5000
_NODES, _MASS = np.polynomial.hermite_e.hermegauss(201)
_MASS = _MASS / _MASS.sum()


def _answers(rng, n=N, spread=1.5, centre=0.0):
    """True probabilities and labels."""
    p = expit(centre + spread * rng.normal(size=n))
    return p, (rng.random(n) < p).astype(int)


def _split(y, score, n=200, **more):
    return {"y": y[:n], "score": score[:n], "score_unlabelled": score[n:], **more}


def reference(rng, n=200):
    """A judge whose log-odds z are too high and too near: p is expit(1.2 z - 0.8)."""
    p, y = _answers(rng)
    return _split(y, expit((logit(p) + 0.8) / 1.2), n)


def useless(rng, n=200):
    _, y = _answers(rng)
    return _split(y, rng.random(N), n)


def perfect(rng, n=200):
    _, y = _answers(rng)
    return _split(y, np.where(y == 1, 0.9, 0.2), n)


def reversed_(rng, n=200):
    p, y = _answers(rng)
    return _split(y, 1 - p, n)


def few(rng):
    return reference(rng, 30)


def few_perfect(rng):
    return perfect(rng, 30)


def few_right(rng, n=30):
    """Verdicts that are wrong in one row of twenty."""
    _, y = _answers(rng)
    right = np.where(rng.random(N) < 0.05, 1 - y, y)
    return _split(y, np.where(right == 1, 0.9, 0.2), n)


def curved(rng):
    """A judge that tells the middle from the ends only beyond a threshold."""
    p, y = _answers(rng, spread=2.5)
    return _split(y, np.where(p > 0.7, p, 0.3 + 0.1 * rng.random(N)))


def clustered(rng, size=5, n=200):
    """Five answers to each question; whole questions are labelled."""
    z = np.repeat(rng.normal(size=N // size), size) + 0.8 * rng.normal(size=N)
    y = (rng.random(N) < expit(1.5 * z)).astype(int)
    judge = expit(z + 0.7 * np.repeat(rng.normal(size=N // size), size))
    group = np.repeat(np.arange(N // size), size)
    return _split(y, judge, n, groups=group[:n], groups_unlabelled=group[n:])


def few_clusters(rng):
    return clustered(rng, n=100)


def numbers(rng, n=200):
    """Skewed numbers, minutes that a repair takes, beside guesses of them from 0 to 100."""
    true = rng.gamma(2.0, 5.0, N)
    y = true * rng.gamma(8.0, 1 / 8, N)
    guess = np.clip(5 + 1.6 * true + 3 * rng.normal(size=N), 0, 100)
    return _split(y, guess, n, scale=(0, 100))


def few_numbers(rng):
    return numbers(rng, 30)


def grades(rng):
    """Grades from 1 to 5 by people, from 1 to 10 by the judge."""
    z = rng.normal(size=N)
    y = np.clip(np.rint(3.4 + 1.1 * z + 0.6 * rng.normal(size=N)), 1, 5)
    judge = np.clip(np.rint(7 + 1.5 * z + rng.normal(size=N)), 1, 10)
    return _split(y, judge, scale=(1, 10), bounds=(1, 5))


def weights(rng):
    """Labels drawn the more often the higher the score is, at 0.01 to 0.07 of the rows."""
    p, y = _answers(rng)
    score = expit((logit(p) + 0.8) / 1.2)
    chance = 0.01 + 0.06 * score
    labelled = rng.random(N) < chance
    return {
        "y": y[labelled],
        "score": score[labelled],
        "score_unlabelled": score[~labelled],
        "sample_weight": 1 / chance[labelled],
    }


def one_percent(rng, n=1000):
    p, y = _answers(rng, 20_000, 1.5, -5.5)
    return _split(y, expit(logit(p) + 1.0), n)


def one_percent_few(rng):
    return one_percent(rng, 200)


def saturated(rng):
    """Scores of exactly 0 and 1 alone, wrong in one row of ten."""
    _, y = _answers(rng)
    return _split(y, np.where(rng.random(N) < 0.1, 1 - y, y).astype(float))


def verdicts(rng):
    """Three words."""
    p, y = _answers(rng)
    word = np.array(["bad", "unclear", "good"])[
        np.digitize(p + 0.2 * rng.normal(size=N), [0.3, 0.7])
    ]
    return _split(y, word)


def pair(rng, n=200):
    """Two systems that answer the same questions; the judge likes the second one too well."""
    z = 1.2 * rng.normal(size=N)
    probability = expit(z), expit(z + 0.3 + 0.5 * rng.normal(size=N))
    y = [(rng.random(N) < p).astype(int) for p in probability]
    judge = probability[0] ** 0.8, probability[1] ** 0.6
    return [_split(a, b, n) for a, b in zip(y, judge, strict=True)]


def few_pairs(rng):
    return pair(rng, 30)


def clustered_pairs(rng, n_clusters=20, size=5, change=None):
    """Two systems; a question is as hard for both. `change`: the share that the second repairs."""
    group = np.repeat(np.arange(N // size), size)
    z = rng.normal(size=N // size)[group] + 0.5 * rng.normal(size=N)
    better = z + 0.3 + 0.5 * rng.normal(size=N)
    probability, n = (expit(z), expit(better)), n_clusters * size
    y = [(rng.random(N) < p).astype(int) for p in probability]
    if change is not None:  # whole questions are right with the second one
        y[1] = np.where((rng.random(N // size) < change)[group], 1, y[0])
    names = {"groups": group[:n], "groups_unlabelled": group[n:]}
    judge = (p**0.8 for p in probability)
    return [_split(a, b, n, **names) for a, b in zip(y, judge, strict=True)]


def rarely_different(rng):
    return clustered_pairs(rng, 40, change=0.1)


def expected(centre=0.0, spread=1.5):
    """The mean of expit of a normal number."""
    return float(_MASS @ expit(centre + spread * _NODES))


def mean_of_grades():
    """The mean of `grades`: a normal number, rounded and cut."""
    cuts = ndtr((np.arange(1.5, 5) - 3.4) / np.hypot(1.1, 0.6))
    return float(np.diff(np.r_[0, cuts, 1]) @ np.arange(1, 6))


#: Law, and its true mean.
LAWS = {
    "reference": (reference, 0.5),
    "useless": (useless, 0.5),
    "perfect": (perfect, 0.5),
    "reversed": (reversed_, 0.5),
    "30 labels": (few, 0.5),
    "30 labels, perfect": (few_perfect, 0.5),
    "30 labels, 5 % wrong": (few_right, 0.5),
    "curved": (curved, 0.5),
    "clustered": (clustered, 0.5),
    "20 clusters": (few_clusters, 0.5),
    "numbers": (numbers, 10.0),
    "30 numbers": (few_numbers, 10.0),
    "grades 1 to 10": (grades, mean_of_grades()),
    "unequal weights": (weights, 0.5),
    "1 % positives": (one_percent, expected(-5.5)),
    "1 % positives, 200 labels": (one_percent_few, expected(-5.5)),
    "saturated": (saturated, 0.5),
    "verdicts": (verdicts, 0.5),
    "two systems": (pair, expected(0.3, np.hypot(1.2, 0.5)) - 0.5),
    "two systems, 30 labels": (few_pairs, expected(0.3, np.hypot(1.2, 0.5)) - 0.5),
    "two systems, 20 clusters": (
        clustered_pairs,
        expected(0.3, np.sqrt(1.5)) - expected(0.0, np.sqrt(1.25)),
    ),
    "two systems that rarely differ, 40 clusters": (rarely_different, 0.05),
}
