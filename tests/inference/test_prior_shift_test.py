"""The test of label shift: its statistic, its level on both sides, its power, what it rejects."""

import numpy as np
import pytest
from error_fields import raises_invalid_input
from scipy.special import expit
from scipy.stats import ks_2samp

from sklearn_calib._kernels._score_mixture import RankedClassScores
from sklearn_calib.inference import prior_shift_test


def scores(n, rate, rng, distance=2.0, shift=0.0):
    """Labels, and probabilities that are true for equal frequencies where `shift` is 0."""
    y = (rng.random(n) < rate).astype(int)
    return expit(distance * (distance * (y - 0.5) + shift + rng.normal(size=n))), y


def test_statistic_by_its_definition():
    rng = np.random.default_rng(0)
    (p, y), (target, _) = scores(150, 0.5, rng), scores(90, 0.2, rng)
    found = prior_shift_test(p, y, target, n_resamples=1)
    means = [p[y == c].mean() for c in (0, 1)]
    b = (target.mean() - means[0]) / (means[1] - means[0])
    assert found.prior == pytest.approx([1 - b, b])
    grid = np.r_[p, target]
    mixture = sum(
        w * (p[y == c] <= grid[:, None]).mean(axis=1)
        for w, c in zip((1 - b, b), (0, 1), strict=True)
    )
    largest = np.abs(mixture - (target <= grid[:, None]).mean(axis=1)).max()
    assert found.statistic == pytest.approx(largest, abs=1e-12) and found.label == 1


def test_ties_are_one_step():
    y = np.r_[np.zeros(40, int), np.ones(40, int)]
    p = np.where(np.arange(80) % 4 == 0, 0.2, 0.8) * (y * 0.5 + 0.5)
    found = prior_shift_test(p, y, p, n_resamples=50)
    assert found.statistic < 1e-12 and found.pvalue == 1


def test_scores_that_never_meet_are_at_distance_1():
    found = prior_shift_test(
        np.full(200, 0.3), np.arange(200) % 2, np.full(100, 0.5), n_resamples=1
    )
    assert found.statistic <= 1
    np.testing.assert_allclose(found.statistic, 1)


def test_classes_and_their_names():
    rng = np.random.default_rng(1)
    y = np.array(["a", "b", "c"])[np.arange(300) % 3]
    p = rng.dirichlet([1, 1, 1], 300) + 2 * (y[:, None] == np.array(["a", "b", "c"]))
    p /= p.sum(axis=1, keepdims=True)
    target = p[(y != "a") | (np.arange(300) % 2 == 0)]
    same = prior_shift_test(p, y, target, n_resamples=99)
    assert same.pvalue > 0.1 and same.prior == pytest.approx([0.2, 0.4, 0.4], abs=0.02)
    bent = target.copy()
    bent[:, 2] = bent[:, 2] ** 3
    bent /= bent.sum(axis=1, keepdims=True)
    other = prior_shift_test(p, y, bent, n_resamples=99)
    assert other.pvalue == 0.01 and other.label in ("a", "b", "c")


def test_sees_what_a_shift_of_frequencies_cannot_explain():
    rng = np.random.default_rng(2)
    (p, y), (target, _) = scores(500, 0.5, rng), scores(500, 0.2, rng, shift=0.7)
    assert prior_shift_test(p, y, target, n_resamples=199).pvalue == 0.005
    # which a shift alone would be
    assert ks_2samp(p, scores(500, 0.2, rng)[0]).pvalue < 1e-6
    assert (
        prior_shift_test(p, y, scores(500, 0.2, rng)[0], n_resamples=199).pvalue > 0.05
    )


def test_repeats_itself():
    rng = np.random.default_rng(3)
    (p, y), (target, _) = scores(60, 0.5, rng), scores(50, 0.3, rng)
    first, second, third = (
        prior_shift_test(p, y, target, n_resamples=50, random_state=s).null_distribution
        for s in (0, 0, 1)
    )
    assert np.array_equal(first, second) and not np.array_equal(first, third)


def test_copies_of_a_row_are_not_ties_but_equal_scores_are():
    """Draws take as many steps as new rows: a tie of both samples would hide the largest one."""
    rng = np.random.default_rng(4)
    p, codes = scores(6, 0.5, rng)[0], np.array([0, 0, 0, 1, 1, 1])
    twice = np.array([0, 0, 0, 3, 3, 3])  # copies of two rows, in both samples
    alone = RankedClassScores(np.c_[1 - p, p], codes)
    assert alone.compute_mixture_distance(twice, twice).distance < 1e-12
    drawn = [
        alone.compute_mixture_distance(twice, twice, rng).distance for _ in range(400)
    ]
    # three rows against three in random order: the largest difference is 1/3, 2/3 or 1
    # (2 of 20) of half the mass, and the larger of two such (one for each row) is 1/3
    # in (8/20)^2
    third = np.isclose(drawn, 1 / 6).mean()
    assert set(np.round(6 * np.array(drawn)).astype(int)) == {1, 2, 3}
    assert abs(third - 0.16) < 3 * np.sqrt(0.16 * 0.84 / 400)
    equal = RankedClassScores(np.c_[1 - p, p][[0, 0, 0, 3, 3, 3]], codes)
    rows = np.arange(6)
    assert (
        max(equal.compute_mixture_distance(rows, rows, rng).distance for _ in range(20))
        < 1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m", "rate"), [(60, 60, 0.5), (300, 200, 0.05)])
def test_level(n, m, rate):
    """A sample of benchmarks/prior_shift: true null hypotheses are rejected at the level."""
    values = []
    for seed in range(200):
        rng = np.random.default_rng([seed, n])
        (p, y), (target, _) = scores(n, 0.5, rng), scores(m, rate, rng)
        result = prior_shift_test(p, y, target, n_resamples=59, random_state=seed)
        values.append(result.pvalue)
    for level in (0.05, 0.1, 0.5):
        spread = np.sqrt(level * (1 - level) / 200)
        assert abs(np.mean(np.array(values) <= level) - level) < 3 * spread


def test_refused():
    p, y = [0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]
    with raises_invalid_input(ValueError, expected=".*n_resamples >= 1"):
        prior_shift_test(p, y, p, n_resamples=0)
    with raises_invalid_input(ValueError, expected=".*n_resamples >= 1", value=r"9\.5"):
        prior_shift_test(p, y, p, n_resamples=9.5)
    with raises_invalid_input(
        ValueError, expected=".*labels of 2 classes", value="1 classes"
    ):
        prior_shift_test(p, [1, 1, 1, 1], p)
    with raises_invalid_input(
        ValueError, argument="proba_target", expected="2 columns"
    ):
        prior_shift_test(p, y, np.full((3, 3), 1 / 3))
    with raises_invalid_input(ValueError, argument="proba_source", expected="finite"):
        prior_shift_test([np.nan, *p[1:]], y, p)
    with raises_invalid_input(ValueError, expected="as many labels"):
        prior_shift_test(p, y[:3], p)


def test_printed_without_its_draws():
    found = prior_shift_test(
        [0.2, 0.6, 0.4, 0.8], [0, 1, 0, 1], [0.3, 0.5], n_resamples=200
    )
    assert len(found.null_distribution) == 200 and "null_distribution" not in repr(
        found
    )


def test_draws_are_as_many_as_the_rows_of_both_samples():
    """Few unlabelled rows are far from their mixture by chance, many are not."""
    rng = np.random.default_rng(0)
    (p, y), (target, _) = scores(800, 0.5, rng), scores(800, 0.5, rng)
    few, many = (
        prior_shift_test(p, y, rows, n_resamples=60).null_distribution.mean()
        for rows in (target[:40], target)
    )
    assert few > 2.0 * many
