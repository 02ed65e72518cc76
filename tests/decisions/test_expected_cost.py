"""What was paid beside what was believed: golden values and the level of the test."""

import numpy as np
import pytest
from error_fields import raises_invalid_input
from golden_sets import golden_set

from sklearn_calib.decisions import expected_cost_score, expected_cost_test

Y, P = golden_set()
COSTS = [[0, 1], [5, 0]]


def test_golden_values():
    assert expected_cost_score(Y, P, costs=COSTS) == pytest.approx(0.465, abs=1e-12)
    found = expected_cost_test(Y, P, COSTS)
    assert found.realised == pytest.approx(0.465, abs=1e-12)
    assert found.believed == pytest.approx(0.4019781086, abs=1e-10)
    always = np.where(P >= 0.5, 0.99, 0.01)
    assert expected_cost_score(Y, always, costs=COSTS) == pytest.approx(
        0.885, abs=1e-12
    )


def test_the_measure():
    error_rate = np.mean((P >= 0.5) != Y)
    assert expected_cost_score(Y, P) == pytest.approx(error_rate)
    words = np.array(["no", "yes"])[Y]
    assert expected_cost_score(words, P, costs=COSTS, pos_label="yes") == pytest.approx(
        0.465
    )
    gain = -np.eye(2)  # a gain is a negative cost
    assert expected_cost_score(Y, P, costs=gain) == pytest.approx(error_rate - 1)
    assert expected_cost_score.scorer(costs=COSTS) is not None
    with raises_invalid_input(ValueError, expected="costs under which"):
        expected_cost_score(Y, P, costs=[[0, 1], [0, 1]])
    with raises_invalid_input(ValueError, expected=r"costs of shape \(2, n_a"):
        expected_cost_score(Y, P, costs=np.ones((200, 2, 2)))


def test_the_test():
    found = expected_cost_test(Y, P, COSTS)
    acts = P >= 1 / 6
    rows = np.where(acts, 1 - P, 5 * P) - np.where(acts, 1 - Y, 5 * Y)
    assert found.difference == pytest.approx(rows.mean())
    assert found.standard_error == pytest.approx(rows.std() / np.sqrt(200))
    null_mean = np.where(acts, P * (1 - P), 25 * P * (1 - P)).sum()
    assert found.statistic == pytest.approx(rows.sum() / np.sqrt(null_mean))
    assert found.high - found.low == pytest.approx(
        2 * 1.959963985 * found.standard_error
    )
    weight = np.arange(200) % 4
    repeated = expected_cost_test(np.repeat(Y, weight), np.repeat(P, weight), COSTS)
    weighted = expected_cost_test(Y, P, COSTS, sample_weight=weight)
    assert weighted.believed == pytest.approx(repeated.believed)
    assert weighted.difference == pytest.approx(repeated.difference)
    rows = np.tile(np.array(COSTS, dtype=float), (200, 1, 1))
    assert expected_cost_test(Y, P, rows, sample_weight=weight) == weighted
    bad = {"level": 1.0}, {"costs": [[0, 1], [0, 2]]}, {"costs": rows[:9]}
    for options in bad:
        with raises_invalid_input(ValueError):
            expected_cost_test(Y, P, **options)


def test_certain_predictions():
    """No variance: agreement is z = 0, and one certain mistake in every row is infinite."""
    y = np.array([0, 1] * 20)
    right = expected_cost_test(y, y.astype(float))
    assert (right.statistic, right.pvalue, right.difference) == (0.0, 1.0, 0.0)
    wrong = expected_cost_test(y, 1.0 - y)
    assert (wrong.statistic, wrong.pvalue, wrong.difference) == (-np.inf, 0.0, -1.0)


def z_of_calibrated(draws, n=400):
    rng = np.random.default_rng(3)
    found = []
    for _ in range(draws):
        p = rng.beta(1, 3, n)
        found.append(expected_cost_test(rng.random(n) < p, p, COSTS))
    return found


@pytest.mark.slow
def test_level_two_sided():
    """Of 2000 calibrated samples 5 % are rejected, half of them on each side; bounds of 4 sd."""
    z = np.array([found.statistic for found in z_of_calibrated(2000)])
    for share in ((z > 1.96).mean(), (z < -1.96).mean()):
        assert 0.011 <= share <= 0.039


def test_costs_of_rows_beside_weights_of_zero():
    """Rows without a weight are left out with their own costs, wherever they stand."""
    rng = np.random.default_rng(0)
    table = np.zeros((200, 2, 2))
    table[:, 0, 1], table[:, 1, 0] = rng.uniform(0.5, 5, (2, 200))
    weight = np.where(np.arange(200) % 3, rng.uniform(1, 2, 200), 0.0)
    found = expected_cost_test(Y, P, table, sample_weight=weight)
    kept = weight > 0
    acts = P * table[:, 1, 0] >= (1 - P) * table[:, 0, 1]
    paid = np.where(acts, (1 - Y) * table[:, 0, 1], Y * table[:, 1, 0])
    believed = np.where(acts, (1 - P) * table[:, 0, 1], P * table[:, 1, 0])
    share = np.where(kept, weight, 0) / weight.sum()
    assert found.realised == pytest.approx(share @ paid)
    assert found.believed == pytest.approx(share @ believed)
    variance = P * (1 - P) * np.where(acts, table[:, 0, 1], table[:, 1, 0]) ** 2
    z = share @ (believed - paid) / np.sqrt(share**2 @ variance)
    assert found.statistic == pytest.approx(z)
