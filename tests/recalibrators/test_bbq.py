import itertools
from fractions import Fraction
from math import ceil, exp, fsum, lgamma

import numpy as np
import pytest

from sklearn_calib import canonical_proba
from sklearn_calib.recalibrators import BBQ, SmoothIsotonicCalibration


@pytest.mark.parametrize("case", ["n30", "tiny8", "n200"])
def test_equals_the_authors_program(oracle, case):
    """BBQ under GNU Octave, on scores without ties."""
    data = oracle("bbq.json")[case]
    bbq = BBQ().fit(data["s"], data["y"])
    np.testing.assert_allclose(
        bbq.predict_proba(data["t"])[:, 1], data["pred_avg"], atol=1e-10
    )
    np.testing.assert_array_equal(bbq.n_bins_, np.ravel(data["pruned_nbins"]))
    other = BBQ("bdeu").fit(data["s"], data["y"])
    found = other.predict_proba(data["t"])[:, 1]
    np.testing.assert_allclose(found, data["BDeu_pred_avg"], atol=1e-10)


def test_ties_share_a_bin_whatever_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    s = np.append(np.full(40, 0.5), rng.random(60))
    y = rng.integers(0, 2, 100)
    order = rng.permutation(100)
    first = BBQ().fit(s, y).predict_proba(s)
    second = BBQ().fit(s[order], y[order]).predict_proba(s)
    np.testing.assert_allclose(first, second, atol=1e-13)


def test_the_average_is_that_of_its_models():
    rng = np.random.default_rng(0)
    s = rng.random(3000)
    y = (rng.random(3000) < s).astype(int)
    bbq = BBQ().fit(s, y)
    assert (np.diff(bbq.weights_) <= 0).all()
    assert bbq.weights_.sum() == pytest.approx(1)
    assert len(bbq.values_) == len(bbq.bin_edges_) + 1
    assert np.abs(bbq.predict_proba(s)[:, 1] - s).mean() < 0.05


def test_degenerate_data():
    assert BBQ().fit([0.2, 0.8], [0, 1]).predict_proba([0.2, 0.8]).shape == (2, 2)
    with pytest.warns(UserWarning, match="two different rows of scores"):
        constant = BBQ().fit([0.5] * 30, [0, 1, 1] * 10)
    assert constant.predict_proba([0.5])[0, 1] == pytest.approx(2 / 3, abs=0.02)


def test_smooth_isotonic_is_monotone_and_has_no_jumps():
    rng = np.random.default_rng(0)
    s = rng.random(2000)
    y = (rng.random(2000) < s**2).astype(int)
    smooth = SmoothIsotonicCalibration().fit(s, y)
    grid = np.linspace(0, 1, 20_001)
    p = smooth.predict_proba(grid)[:, 1]
    assert (np.diff(p) >= 0).all()
    assert np.diff(p).max() < 0.02
    assert np.abs(p - grid**2).mean() < 0.03
    np.testing.assert_allclose(
        smooth.predict_proba(smooth.knots_)[:, 1], smooth.values_
    )
    # blocks keep the mean of the labels
    assert (np.diff(smooth.values_) > 0).all()


def test_smooth_isotonic_of_one_block():
    falling = SmoothIsotonicCalibration().fit([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0])
    np.testing.assert_allclose(falling.predict_proba([0.0, 0.5, 1.0])[:, 1], 0.5)


@pytest.mark.parametrize("score", ["bic", 2])
def test_bad_parameters(score):
    with pytest.raises(ValueError, match="The 'criterion' parameter"):
        BBQ(score).fit([0.1, 0.9], [0, 1])


def bins_of(pairs, n_bins, prior):
    """Evidence, cuts as fractions and values of one model, row by row."""
    firsts = [i for i, pair in enumerate(pairs) if not i or pairs[i - 1][0] < pair[0]]
    wanted = [k * (len(pairs) // n_bins) for k in range(n_bins)]
    starts = sorted(
        {next(i for i in firsts if i >= w) for w in wanted if w <= firsts[-1]}
    )
    parts = [pairs[a:b] for a, b in zip(starts, [*starts[1:], len(pairs)], strict=True)]
    ends = itertools.pairwise(parts)
    cuts = [(Fraction(low[-1][0]) + Fraction(high[0][0])) / 2 for low, high in ends]
    evidence, values = 0.0, []
    for part, low, high in zip(
        parts, [Fraction(0), *cuts], [*cuts, Fraction(1)], strict=True
    ):
        n, ones, middle = len(part), sum(y for _, y in part), float((low + high) / 2)
        a, mean = (
            (2, min(max(middle, 0.005), 0.995))
            if prior == "bdeu2"
            else (2 / len(parts), 0.5)
        )
        evidence += (
            lgamma(a) - lgamma(n + a) + lgamma(ones + a * mean) - lgamma(a * mean)
        )
        evidence += lgamma(n - ones + a * (1 - mean)) - lgamma(a * (1 - mean))
        scores = fsum(score for score, y in part if y)
        values.append((ones + (scores + middle) / (ones + 1)) / (n + 1))
    return evidence, cuts, values


def slow_bbq(scores, y, prior):
    """BBQ again, in plain Python with exact cuts."""
    pairs = sorted(zip(scores.tolist(), y.tolist(), strict=True))
    n = len(pairs)
    numbers = range(
        max(1, int(n ** (1 / 3) / 10)), ceil(min(n / 5, 10 * n ** (1 / 3))) + 1
    )
    models = [bins_of(pairs, n_bins, prior) for n_bins in numbers]
    largest = max(evidence for evidence, *_ in models)
    weighted = sorted(
        ((exp(m[0] - largest), m) for m in models), key=lambda pair: -pair[0]
    )
    weights = [w for w, _ in weighted]
    least, k = 0.001 * float(np.var(weights)), 0
    while k + 1 < n and k + 1 < len(weights) and weights[k] - weights[k + 1] > least:
        k += 1
    kept = weighted[: max(k, 1)]
    total = fsum(w for w, _ in kept)
    return [
        fsum(
            w * values[sum(Fraction(s) >= c for c in cuts)]
            for w, (_, cuts, values) in kept
        )
        / total
        for s in scores.tolist()
    ]


@pytest.mark.parametrize("prior", ["bdeu2", "bdeu"])
@pytest.mark.parametrize(
    "kind", ["subnormal", "few subnormal", "both ends", "logits 700 apart"]
)
def test_scores_near_zero_agree_with_plain_arithmetic(kind, prior):
    rng = np.random.default_rng(4)
    for n in (60, 173):
        low = rng.random(n) < 0.5
        if kind == "subnormal":
            scores = 10.0 ** -rng.uniform(308, 323.3, n)
        elif kind == "few subnormal":
            scores = rng.integers(0, 30, n) * 5e-324
        elif kind == "both ends":
            scores = np.where(low, 10.0 ** -rng.uniform(290, 323.3, n), rng.random(n))
        else:
            logits = np.where(low, -rng.uniform(690, 744, n), rng.uniform(0, 15, n))
            scores = np.asarray(canonical_proba(logits, kind="logits"))[:, 1]
        y = (rng.random(n) < np.where(scores < np.median(scores), 0.1, 0.6)).astype(int)
        given = (
            scores
            if kind != "logits 700 apart"
            else canonical_proba(logits, kind="logits")
        )
        found = BBQ(prior).fit(given, y).predict_proba(given)[:, 1]
        np.testing.assert_allclose(
            found, slow_bbq(scores, y, prior), rtol=0, atol=1e-12
        )
