"""Draws of labels and rows: their law, their seeds, and that threads change nothing."""

import numpy as np
import pytest
from error_fields import raises_invalid_input
from scipy import stats

from sklearn_calib._random import (
    cumulate_proba,
    draw_labels,
    draw_row_counts,
    make_generator,
    make_random_state,
    spawn_generators,
)
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.inference import (
    calibration_test,
    confidence_interval,
    simulate_bootstrap_distribution,
    simulate_null_distribution,
)
from sklearn_calib.metrics import brier_loss, validate_predictions
from sklearn_calib.summary import CalibrationSummary


@pytest.mark.parametrize("k", [2, 3, 5])
def test_labels_have_the_law_of_the_predictions(k):
    law = np.random.default_rng(0).dirichlet(np.ones(k))
    if k > 2:
        law[0], law[-1] = 0.0, law[0] + law[-1]  # a class that cannot happen
    codes = draw_labels(
        cumulate_proba(np.tile(law, (60_000, 1))), np.random.default_rng(1)
    )
    counts = np.bincount(codes, minlength=k)
    assert (counts[law == 0] == 0).all()
    possible = law > 0
    assert stats.chisquare(counts[possible], 60_000 * law[possible]).pvalue > 1e-3


def test_bounds_end_at_one():
    np.testing.assert_allclose(
        cumulate_proba([[1, 1, 2], [0, 3, 0]]), [[0.25, 0.5, 1], [0, 1, 1]]
    )
    assert (cumulate_proba(np.full((1, 7), 0.1))[:, -1] == 1).all()


def test_multiplicities_are_a_bootstrap_sample():
    rng = np.random.default_rng(0)
    counts = np.array([draw_row_counts(50, rng) for _ in range(4000)])
    assert (counts.sum(axis=1) == 50).all()
    assert counts.var() == pytest.approx(1 - 1 / 50, rel=0.02)


def test_random_state_of_every_kind():
    assert make_generator(3).random() == make_generator(3).random()
    assert make_generator(None).random() != make_generator(None).random()
    given = np.random.default_rng(0)
    assert make_generator(given) is given
    old = [make_generator(np.random.RandomState(0)).random() for _ in range(2)]
    assert old[0] == old[1]
    shared = np.random.RandomState(0)
    assert make_generator(shared).random() != make_generator(shared).random()
    first, second = spawn_generators(0, 2)
    assert first.random() != second.random()
    assert (
        spawn_generators(0, 2)[1].random()
        == spawn_generators(np.random.default_rng(0), 2)[1].random()
    )


def test_old_random_states():
    given = np.random.RandomState(0)
    assert make_random_state(given) is given
    assert make_random_state(3).random() == np.random.RandomState(3).random()
    assert make_random_state(None).random() != make_random_state(None).random()
    rng = np.random.default_rng(0)  # moves on, to one of 2^32 seeds
    assert len({make_random_state(rng).random() for _ in range(100)}) == 100

    class Recorder(np.random.RandomState):
        def randint(self, *args, **options):
            self.given = super().randint(*args, **options)
            return self.given

    recorder = Recorder(0)
    make_generator(recorder)
    assert recorder.given.shape == (4,), "128 bits"
    assert recorder.given.max() > 2**31


def test_the_global_generator_is_not_drawn_from():
    proba, y = make_overconfident(2, 100)
    before = np.random.get_state()  # noqa: NPY002
    calibration_test(y, proba, n_resamples=9, random_state=None)
    after = np.random.get_state()  # noqa: NPY002
    assert (before[1] == after[1]).all() and before[2] == after[2]


@pytest.mark.parametrize(
    "distribution", [simulate_null_distribution, simulate_bootstrap_distribution]
)
def test_threads_change_nothing(distribution):
    proba, y = make_overconfident(3, 200)
    case = validate_predictions(y, proba)
    alone = distribution(case, brier_loss.evaluate, 100, 5)
    assert len(np.unique(alone)) == 100
    np.testing.assert_array_equal(
        alone, distribution(case, brier_loss.evaluate, 100, 5, n_jobs=2)
    )
    assert not np.array_equal(alone, distribution(case, brier_loss.evaluate, 100, 6))
    named = distribution(case, brier_loss.evaluate, 100, random_state=0)
    np.testing.assert_array_equal(named, distribution(case, brier_loss.evaluate, 100))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_bootstrap_has_the_spread_of_a_mean(weighted):
    proba, y = make_overconfident(2, 400)
    weight = (
        np.random.default_rng(0).exponential(size=400) if weighted else np.ones(400)
    )
    case = validate_predictions(y, proba, weight)
    values = simulate_bootstrap_distribution(case, brier_loss.evaluate, 2000, 0)
    rows = (case.codes - case.second) ** 2
    mean = weight @ rows / weight.sum()
    error = np.sqrt(weight**2 @ (rows - mean) ** 2) / weight.sum()
    assert values.mean() == pytest.approx(mean, abs=4 * error / np.sqrt(2000))
    assert values.std() == pytest.approx(error, rel=0.06)


def test_the_null_distribution_is_that_of_the_predictions():
    """Mean and spread of the Brier loss are known, whatever the labels were."""
    p = np.random.default_rng(0).random(200)
    case = validate_predictions(np.arange(200) % 2, p)
    values = simulate_null_distribution(case, brier_loss.evaluate, 2000, 0)
    error = np.sqrt((p * (1 - p) * (1 - 2 * p) ** 2).sum()) / 200
    assert values.mean() == pytest.approx(
        (p * (1 - p)).mean(), abs=4 * error / np.sqrt(2000)
    )
    assert values.std() == pytest.approx(error, rel=0.06)
    ones = np.column_stack([np.zeros(200), np.ones(200)])
    certain = simulate_null_distribution(case, brier_loss.evaluate, 3, 0, law=ones)
    assert certain == pytest.approx(np.full(3, ((1 - p) ** 2).mean()))


def test_summaries_are_told_where_to_go():
    summary = CalibrationSummary().update([0, 1], [0.2, 0.7])
    with raises_invalid_input(
        TypeError, value="a summary", hint="Call its method test"
    ):
        calibration_test(summary)
    for function in (confidence_interval, calibration_test):
        with raises_invalid_input(
            TypeError,
            expected=".*labels and probabilities of rows",
            value="labels alone",
        ):
            function([0, 1])
