"""Performance without labels: golden values, definitions, and standard deviations by simulation."""

import numpy as np
import pytest
from cases import run_every_case
from error_fields import parse_error_fields, raises_invalid_input
from golden_sets import golden_set
from sklearn.metrics import accuracy_score, precision_score, recall_score, roc_auc_score

from sklearn_calib.decisions import expected_cost_score, expected_metrics
from sklearn_calib.metrics import brier_loss, log_loss

Y, P = golden_set()
THREE = np.random.default_rng(0).dirichlet([1, 2, 3], 300)
COSTS = [[0, 1], [5, 0]]


def test_golden_values():
    found = expected_metrics(P)
    assert found.accuracy == pytest.approx(0.7851492840, abs=1e-9)
    assert found.standard_deviations["accuracy"] == pytest.approx(
        0.0274643909, abs=1e-9
    )
    assert found.auc == pytest.approx(0.8616363828, abs=1e-9)
    assert found.brier_loss == pytest.approx(np.mean(P * (1 - P)))
    low = expected_metrics(P, threshold=0.3, costs=COSTS)
    assert low.precision == pytest.approx(0.7004488690, abs=1e-9)
    assert low.recall == pytest.approx(0.8965745519, abs=1e-9)
    assert low.cost == pytest.approx(0.4019781086, abs=1e-9)


def test_auc_over_all_pairs():
    """With ties and weights, the sum over pairs of different rows."""
    p, w = P.round(1), np.arange(200) % 3 + 0.5
    larger = (p[:, None] > p) + 0.5 * (p[:, None] == p)
    pairs = (w * p)[:, None] * (w * (1 - p))
    np.fill_diagonal(pairs, 0)
    found = expected_metrics(p, sample_weight=w).auc
    assert found == pytest.approx((pairs * larger).sum() / pairs.sum(), abs=1e-12)


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_realised_values(threshold):
    found = expected_metrics(P, threshold=threshold, costs=COSTS, y_true=Y).realised
    predicted = (threshold or 0.5) <= P
    expected = {
        "accuracy": accuracy_score(Y, predicted),
        "precision": precision_score(Y, predicted),
        "recall": recall_score(Y, predicted),
        "auc": roc_auc_score(Y, P),
        "brier_loss": brier_loss(Y, P),
        "log_loss": log_loss(Y, P),
        "cost": expected_cost_score(Y, P, costs=COSTS),
    }
    assert found == pytest.approx(expected, abs=1e-12)


def test_table_and_z():
    words = np.array(["no", "yes"])[Y]
    found = expected_metrics(P, y_true=words, pos_label="yes")
    gap = found.realised["auc"] - found.auc
    assert found.z_score("auc") == pytest.approx(gap / found.standard_deviations["auc"])
    table = found.to_frame().set_index("metric")
    assert (
        table.loc["auc", "z"] == found.z_score("auc") and 0 < table["pvalue"].min() < 1
    )
    plain = expected_metrics(P)
    assert plain.to_frame().columns.tolist() == [
        "metric",
        "expected",
        "standard_deviation",
    ]
    assert plain.confusion.sum() == pytest.approx(200)
    assert np.trace(plain.confusion) == pytest.approx(200 * plain.accuracy)
    assert plain.confusion[1, 1] == pytest.approx(P[P > 0.5].sum())
    certain = expected_metrics(Y.astype(float), y_true=Y)
    # 200 shares of 1/200 are 1 in most orders of a BLAS only
    assert certain.z_score("accuracy") == 0
    assert certain.accuracy == pytest.approx(1, abs=1e-14)
    assert expected_metrics(1.0 - Y, y_true=Y).z_score("accuracy") == -np.inf
    nothing = expected_metrics(np.full(9, 0.1), y_true=[0, 1] * 4 + [0], threshold=0.5)
    assert np.isnan(nothing.precision) and np.isnan(nothing.z_score("precision"))


def test_more_than_two_classes():
    y = np.arange(300) % 3
    found = expected_metrics(THREE, y_true=y)
    assert found.precision is found.recall is found.auc is None
    assert found.accuracy == pytest.approx(THREE.max(axis=1).mean())
    assert found.brier_loss == pytest.approx((1 - (THREE**2).sum(axis=1)).mean())
    assert found.realised["brier_loss"] == pytest.approx(brier_loss(y, THREE))
    assert len(found.to_frame()) == 4 and found.confusion.shape == (3, 3)
    weight = np.arange(300) % 4
    weighted = expected_metrics(THREE, y_true=y, sample_weight=weight)
    repeated = expected_metrics(
        np.repeat(THREE, weight, axis=0), y_true=np.repeat(y, weight)
    )
    assert weighted.realised == pytest.approx(repeated.realised)
    assert weighted.log_loss == pytest.approx(repeated.log_loss)


@run_every_case(
    ("options", "said"),
    [
        ({"threshold": 0.0}, "a threshold strictly between 0 and 1, got 0.0"),
        ({"threshold": 1}, "a threshold strictly between 0 and 1, got 1"),
        ({"costs": [[0, 1], [0, 1]]}, "costs under which each action"),
        ({"costs": np.ones((3, 3))}, r"costs of shape \(2, n_actions\)"),
        ({"y_true": Y[:9]}, "as many labels as rows"),
        ({"y_true": np.zeros(200)}, "one class for each of the 2 columns"),
    ],
)
def test_bad_input(options, said):
    with raises_invalid_input(ValueError, **parse_error_fields(said)):
        expected_metrics(P, **options)
    with raises_invalid_input(ValueError, expected="two classes with threshold="):
        expected_metrics(THREE, threshold=0.5)
    with raises_invalid_input(ValueError, expected="one of no metric"):
        expected_metrics(P).z_score("auc")


@pytest.mark.slow
def test_standard_deviations():
    """Of labels drawn from the probabilities: mean 0 and deviation 1 of each z, within 4 sd."""
    rng = np.random.default_rng(1)
    names = expected_metrics(P).standard_deviations
    z = []
    for _ in range(1500):
        y = (rng.random(200) < P).astype(int)
        found = expected_metrics(P, threshold=0.3, costs=COSTS, y_true=y)
        z.append([found.z_score(name) for name in names])
    assert np.abs(np.mean(z, axis=0)).max() < 4 / np.sqrt(1500) + 0.03
    assert np.abs(np.std(z, axis=0) - 1).max() < 4 / np.sqrt(3000) + 0.03


def test_printed_in_a_terminal_and_a_notebook():
    found = expected_metrics(P)
    lines = [line.split() for line in str(found).splitlines()]
    deviation = found.standard_deviations["accuracy"]
    assert lines[1] == ["accuracy", f"{found.accuracy:.4f}", f"{deviation:.4f}"]
    assert [line[0] for line in lines[1:]] == [*found.standard_deviations]
    labelled = expected_metrics(THREE, y_true=np.arange(300) % 3)
    line = str(labelled).splitlines()[1].split()
    assert line[3:] == [
        f"{labelled.realised['accuracy']:.4f}",
        f"{labelled.z_score('accuracy'):.2f}",
    ]
    assert found._repr_html_().count("<tr>") == 8 and "<p>" not in found._repr_html_()


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_pos_label_is_the_other_class(threshold):
    """As if the columns and the labels were exchanged."""
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = np.where(rng.random(300) < p, "no", "yes")
    proba = np.column_stack([p, 1 - p])
    found = expected_metrics(proba, threshold=threshold, y_true=y, pos_label="no")
    wanted = expected_metrics(
        proba[:, ::-1], threshold=threshold, y_true=(y == "no").astype(int)
    )
    for name in ("accuracy", "precision", "recall", "auc", "log_loss"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name))
        assert found.realised[name] == pytest.approx(wanted.realised[name])
        assert found.z_score(name) == pytest.approx(wanted.z_score(name), abs=1e-9)
    np.testing.assert_allclose(found.confusion, wanted.confusion[::-1, ::-1])
    default = expected_metrics(proba, threshold=threshold, y_true=y)
    assert default.recall != pytest.approx(found.recall, abs=1e-3)
    same = expected_metrics(proba, threshold=threshold, y_true=y, pos_label="yes")
    assert same.recall == default.recall
    unlabelled = expected_metrics(proba, threshold=threshold, pos_label=0)
    assert unlabelled.precision == pytest.approx(found.precision)


@pytest.mark.parametrize(
    ("columns", "more", "message"),
    [
        (
            2,
            {"pos_label": "no"},
            r"pos_label among \[0, 1\], got 'no'. Name .*pass labels=",
        ),
        (2, {"pos_label": 2, "labels": [3, 4]}, r"pos_label among \[3, 4\], got 2"),
        (3, {"pos_label": 1}, r"two classes with pos_label=, got 3"),
    ],
)
def test_pos_label_that_is_none(columns, more, message):
    with raises_invalid_input(ValueError, **parse_error_fields(message)):
        expected_metrics(np.full((4, columns), 1 / columns), **more)
