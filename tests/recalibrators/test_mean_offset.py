"""PriorShift(mean=...): the mean is met exactly, also at extremes, or an error names the range."""

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from golden_sets import golden_set
from scipy.optimize import brentq
from scipy.special import expit, logit, softmax
from sklearn.base import clone

from sklearn_calib import canonical_proba
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import from_dict, to_code, to_dict, to_sql
from sklearn_calib.recalibrators import PriorShift

Y, P = golden_set()


@pytest.mark.parametrize("mean", [0.035, 0.5, 0.97])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_is_the_target(mean, weighted):
    """An independent solver finds the same offset."""
    weight = np.arange(1.0, len(Y) + 1) if weighted else None
    shift = PriorShift(mean=mean).fit(P, Y, weight)
    assert np.average(shift.predict_proba(P)[:, 1], weights=weight) == pytest.approx(
        mean, rel=1e-14
    )

    def above(a):
        return np.average(expit(logit(P) + a), weights=weight) - mean

    assert shift.offset_[0] == 0
    assert shift.offset_[1] == pytest.approx(
        brentq(above, -20, 20, xtol=1e-14), abs=1e-11
    )
    log_odds = logit(shift.predict_proba(P)[:, 1])
    # an offset, nothing else
    assert np.abs(log_odds - logit(P) - shift.offset_[1]).max() < 1e-12


def test_a_mean_is_not_what_bayes_gives():
    """Scores that are not calibrated: Bayes' offset is the log of the odds of frequencies."""
    bayes = PriorShift(0.1).fit(P, Y)
    assert abs(bayes.predict_proba(P)[:, 1].mean() - 0.1) > 0.01
    observed = Y.mean()
    expected = logit(0.1) - logit(observed)
    assert logit(bayes.predict_proba(P)[0, 1]) - logit(P[0]) == pytest.approx(expected)


@run_every_case(
    ("log_odds", "mean"),
    [
        (np.linspace(-41, -40, 5), 0.5),
        (np.linspace(-300, 300, 50), 0.3),
        (np.linspace(-3, 3, 50), 1e-12),
        (np.linspace(-3, 3, 50), 1e-300),
        (np.linspace(-3, 3, 50), 1 - 1e-12),
        ([-1000.0, 1000.0], 0.3),
        ([-1000.0, 1000.0], 0.5),
    ],
)
def test_extreme_scores_and_targets(log_odds, mean):
    rows = canonical_proba(np.asarray(log_odds), kind="logits")
    shift = PriorShift(mean=mean).fit(rows, np.arange(len(rows)) % 2)
    assert shift.predict_proba(rows)[:, 1].mean() == pytest.approx(mean, rel=1e-12)


def test_rows_of_0_and_1_do_not_move_and_bound_the_mean():
    p, y = [0, 0, 1, 0.2, 0.5], [0, 0, 1, 0, 1]
    found = PriorShift(mean=0.55).fit(p, y).predict_proba(p)[:, 1]
    assert found[:3].tolist() == [0, 0, 1] and found.mean() == pytest.approx(
        0.55, rel=1e-14
    )
    for mean in (0.2, 0.1, 0.6, 0.8):
        with pytest.raises(
            ValueError, match=rf"of 1 above 0\.2 and below 0\.6 .*got {mean}\. Cho"
        ):
            PriorShift(mean=mean).fit(p, y)
    with raises_invalid_input(ValueError, expected=r".*above 0\.5 and below 0\.5"):
        PriorShift(mean=0.5).fit([0, 1], [0, 1])


def test_rows_of_weight_0_are_left_out():
    weight = np.r_[np.ones(200), 0]
    shift = PriorShift(mean=0.1).fit(np.r_[P, 1], np.r_[Y, 1], weight)
    assert shift.offset_.tolist() == PriorShift(mean=0.1).fit(P, Y).offset_.tolist()


def test_the_mean_is_that_of_the_second_column():
    """In the order of `classes`; by label there is no doubt."""
    labels = np.array(["yes", "no"])[1 - Y]
    with pytest.warns(CalibrationWarning, match="columns"):
        exchanged = PriorShift(mean=0.1).fit(P, labels, classes=["yes", "no"])
    assert exchanged.predict_proba(P).mean(axis=0) == pytest.approx(
        [0.9, 0.1], rel=1e-13
    )
    mean = {"yes": 0.1, "no": 0.9}
    by_label = PriorShift(mean=mean).fit(P, labels, classes=["no", "yes"])
    assert by_label.predict_proba(P).mean(axis=0) == pytest.approx(
        [0.9, 0.1], rel=1e-13
    )


@pytest.mark.parametrize("k", [3, 12])
def test_several_classes(k):
    proba, y = make_overconfident(k, 400)
    target = np.arange(1.0, k + 1) / np.arange(1.0, k + 1).sum()
    shift = PriorShift(mean=target).fit(proba, y)
    found = shift.predict_proba(proba)
    assert found.mean(axis=0) == pytest.approx(target, rel=1e-12)
    assert np.abs(found - softmax(np.log(proba) + shift.offset_, axis=1)).max() < 1e-12
    exported = from_dict(to_dict(shift))
    assert np.abs(exported.predict_proba(proba) - found).max() < 1e-14


def test_several_classes_out_of_reach():
    """Each class could have its mean, all of them together cannot: zeros stay."""
    rows = [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1], [0.2, 0, 0.8]]
    with raises_invalid_input(
        ValueError, expected=r".*of 2 above 0\.25 and below 0\.5", value=r"0\.6"
    ):
        PriorShift(mean=[0.2, 0.2, 0.6]).fit(rows, [0, 1, 2, 2])
    with raises_invalid_input(
        ValueError, expected=r"means that these rows can have, not \[0\.1, 0\.45"
    ):
        PriorShift(mean=[0.1, 0.45, 0.4, 0.05]).fit(
            [[0.5, 0.5, 0, 0], [0.2, 0.8, 0, 0], [0, 0, 0.3, 0.7], [0, 0, 0.1, 0.9]],
            [0, 1, 2, 3],
        )


@run_every_case("mean", [0, 1, 3.5, -0.1, float("nan"), True])
def test_means_outside_0_to_1_are_refused(mean):
    with raises_invalid_input(
        ValueError, expected=".*a mean above 0 and below 1", hint="Divide percentages"
    ):
        PriorShift(mean=mean).fit(P, Y)


def test_other_wrong_means_are_refused():
    with raises_invalid_input(
        ValueError, expected="numbers with sum 1 in mean", value=r"0\.4"
    ):
        PriorShift(mean=[0.2, 0.2]).fit(P, Y)
    with raises_invalid_input(
        ValueError, expected=".*a mean of 1 above 0 and below 1 ", value="0"
    ):
        PriorShift(mean=[1.0, 0.0]).fit(P, Y)
    with raises_invalid_input(ValueError, expected="3 numbers in mean"):
        PriorShift(mean=0.2).fit(*make_overconfident(3, 30))
    for other in (
        {"prior": 0.1},
        {"prior": [0.9, 0.1]},
        {"training_prior": 0.2},
        {"strength": 2},
    ):
        name = next(iter(other))
        with raises_invalid_input(ValueError, expected="mean alone", value=f"{name}="):
            PriorShift(mean=0.1, **other).fit(P, Y)


def test_adapt_meets_the_mean_on_rows_without_labels():
    fitted = PriorShift(mean=0.1).fit(P, Y)
    before = fitted.offset_.tolist()
    weight = np.linspace(1, 2, 50)
    adapted = fitted.adapt(P[:50], sample_weight=weight)
    mean = np.average(adapted.predict_proba(P[:50])[:, 1], weights=weight)
    assert mean == pytest.approx(0.1, rel=1e-14)
    assert fitted.offset_.tolist() == before != adapted.offset_.tolist()
    fitted.set_params(mean=None)
    with raises_invalid_input(
        ValueError, expected=".*a fit without mean", value="a fit with mean"
    ):
        fitted.adapt(P)


def test_it_is_a_map_like_others():
    shift = clone(PriorShift(mean=0.2)).fit(P, Y)
    exported = from_dict(to_dict(shift))
    assert np.array_equal(exported.predict_proba(P), shift.predict_proba(P))
    score = shift.threshold(0.2).score
    assert shift.predict_proba([score])[0, 1] >= 0.2
    assert shift.predict_proba([np.nextafter(score, 0)])[0, 1] < 0.2
    assert exported.threshold(0.2).score == score
    assert "double" in to_code(shift, "c") and "CASE" in to_sql(shift, "p").upper()
    same = PriorShift(mean=shift.predict_proba(P)[:, 1].mean()).fit(
        shift.predict_proba(P), Y
    )
    assert abs(same.offset_[1]) < 1e-14


def test_an_offset_beyond_the_smallest_probability_is_written_for_logits():
    rows = canonical_proba(np.linspace(99, 101, 20), kind="logits")
    shift = PriorShift(mean=0.03).fit(rows, np.arange(20) % 2)
    with raises_invalid_input(
        RuntimeError, hint=".*is written for logits, input='logits'"
    ):
        to_dict(shift)
    exported = from_dict(to_dict(shift, input="logits"))
    assert np.array_equal(exported.predict_proba(rows), shift.predict_proba(rows))
