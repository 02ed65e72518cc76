"""The ranked probability score against values by hand and its relations to the Brier loss."""

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn.linear_model import LogisticRegression

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import brier_loss, get_scorer, ranked_probability_score


@run_every_case(
    ("y", "row", "score"),
    [
        (0, [0.5, 0.3, 0.2], (0.5**2 + 0.2**2) / 2),
        (1, [0.5, 0.3, 0.2], (0.5**2 + 0.2**2) / 2),
        (2, [0.5, 0.3, 0.2], (0.5**2 + 0.8**2) / 2),
        (2, [1, 0, 0], 1.0),
        (1, [1, 0, 0], 0.5),
        (3, [0.25] * 4, (1 + 4 + 9) / 16 / 3),
    ],
)
def test_values_by_hand(y, row, score):
    k = len(row)
    assert ranked_probability_score([y], [row], labels=range(k)) == pytest.approx(
        score, abs=1e-15
    )


def test_of_two_classes_it_is_the_brier_loss():
    p, y = make_overconfident(2, 300)
    w = np.random.default_rng(0).random(300)
    for weight in (None, w):
        found = ranked_probability_score(y, p, sample_weight=weight)
        assert found == pytest.approx(brier_loss(y, p, sample_weight=weight), abs=1e-15)


def test_it_is_the_mean_brier_loss_of_the_thresholds():
    p, y = make_overconfident(5, 300)
    parts = [
        brier_loss((y > k).astype(int), p[:, k + 1 :].sum(axis=1)) for k in range(4)
    ]
    assert ranked_probability_score(y, p) == pytest.approx(np.mean(parts), abs=1e-14)


def test_an_ordered_categorical_is_a_scale():
    p, y = make_overconfident(3, 300)
    names = np.array(["poor", "fair", "good"])
    expected, moved = ranked_probability_score(y, p), p[:, [1, 2, 0]]
    scale = pd.CategoricalDtype([*names, "unseen"], ordered=True)
    for given in (
        pd.Categorical(names[y], dtype=scale),
        pd.Series(names[y], dtype=scale),
    ):
        assert ranked_probability_score(given, moved) == pytest.approx(
            expected, abs=1e-15
        )
        found = ranked_probability_score(given, moved, labels=sorted(names))
        assert found == pytest.approx(expected, abs=1e-15)
    with raises_invalid_input(ValueError, expected="the order of a scale"):
        ranked_probability_score(pd.Categorical(names[y]), moved)
    swapped = pd.Categorical(y, [2, 0, 1], ordered=True)  # of numbers too
    found = ranked_probability_score(swapped, p)
    assert found == pytest.approx(
        ranked_probability_score(y, p, order=[2, 0, 1]), abs=1e-15
    )
    assert abs(found - expected) > 0.005


def test_the_scorer_moves_columns_into_the_order_of_the_scale():
    p, y = make_overconfident(3, 300)
    names = np.array(["poor", "fair", "good"])
    plain = get_scorer("neg_ranked_probability_score")
    expected = plain(LogisticRegression().fit(p, y), p, y)
    model = LogisticRegression().fit(p, names[y])
    for options in ({"order": names}, {"labels": names}):
        scorer = get_scorer("neg_ranked_probability_score", **options)
        assert scorer(model, p, names[y]) == pytest.approx(expected, abs=1e-6)
    with raises_invalid_input(ValueError, expected="the order of a scale"):
        plain(model, p, names[y])


def test_numbers_have_their_own_order_whatever_that_of_the_columns():
    p, y = make_overconfident(3, 300)
    found = ranked_probability_score(y, p[:, [2, 0, 1]], labels=[2, 0, 1])
    assert found == pytest.approx(ranked_probability_score(y, p), abs=1e-15)


def test_the_order_of_the_classes_matters_and_labels_name_it():
    p, y = make_overconfident(3, 300)
    names = np.array(["poor", "fair", "good"])
    found = ranked_probability_score(names[y], p, labels=names)
    assert found == pytest.approx(ranked_probability_score(y, p), abs=1e-15)
    moved = p[:, [1, 2, 0]]  # fair, good, poor
    assert ranked_probability_score(names[y], moved, order=names) == pytest.approx(
        found, abs=1e-15
    )
    with raises_invalid_input(
        ValueError, expected="the order of a scale", hint=r"Pass order=\['fair', 'good'"
    ):
        ranked_probability_score(names[y], moved)
    # classes_ of a classifier are sorted
    with raises_invalid_input(ValueError, expected="the order of a scale"):
        ranked_probability_score(names[y], moved, labels=sorted(names))
    for count in (2, 3):
        with raises_invalid_input(ValueError, expected="every class of"):
            ranked_probability_score(
                names[y], moved, order=[*names[:2], "poor"][:count]
            )
    reverse = ranked_probability_score(names[y], p[:, ::-1], labels=names[::-1])
    assert reverse == pytest.approx(found, abs=1e-14)  # nothing is lost upside down
    assert (
        get_scorer("neg_ranked_probability_score", labels=names)._kwargs["labels"]
        is names
    )
