"""GroupReliabilityDisplay: which groups, in which order, and names of strangers."""

import numpy as np
import pytest
from error_fields import raises_invalid_input
from sklearn.naive_bayes import GaussianNB

from sklearn_calib.displays import (
    DecisionCurveDisplay,
    DecompositionDisplay,
    GroupReliabilityDisplay,
    RegretDisplay,
    RiskCoverageDisplay,
)
from sklearn_calib.metrics import reliability_curve

pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p, site = (
        rng.uniform(0.05, 0.95, 1200),
        rng.choice(["n_$x_1$", "south", "west"], 1200),
    )
    y = (rng.random(1200) < np.where(site == "south", p**2, p)).astype(int)
    return y, p, {"a place whose name is long enough for two lines": site}


def drawn(rows, **options):
    import matplotlib.pyplot as plt

    display = GroupReliabilityDisplay.from_predictions(*rows, n_resamples=49, **options)
    plt.close(display.figure_)
    return display


def test_dots_are_sorted_and_wrong_groups_stand_out(rows):
    display = drawn(rows, n_curves=0)
    ((ratios, _),) = display.get_plotted_data()[0]
    assert len(ratios) == 4
    assert (np.diff(ratios) > 0).all()
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels[0].endswith("south")
    assert any(r"n_\$x_1\$" in label for label in labels)
    colours = display.ax_.collections[-1].get_facecolors()
    assert (colours[0] != colours[-1]).any()


def test_curves_are_those_of_the_rows_of_the_worst_group(rows):
    y, p, table = rows
    weight = np.arange(1200) % 4 / 2.0
    display = drawn(rows, n_curves=1, n_dots=0, sample_weight=weight)
    (site,) = table.values()
    here = (site == "south") & (weight > 0)
    (curve,) = reliability_curve(
        y[here], p[here], sample_weight=weight[here], strategy="isotonic", n_resamples=0
    )
    (((x, observed),),) = display.get_plotted_data()
    np.testing.assert_allclose(x, curve.predicted)
    np.testing.assert_allclose(observed, curve.observed)


@pytest.mark.parametrize("wrong", [False, True])
def test_certain_predictions_have_no_interval(wrong):
    y = np.arange(240) % 2
    display = drawn(
        (y, np.where(wrong, 1.0 - y, y), {"a": np.arange(240) % 3}), n_curves=0
    )
    left, right = display.ax_.get_xlim()
    assert left < 1 < right


@pytest.mark.slow
def test_few_dots_and_classes(rows):
    y, p, table = rows
    display = drawn(
        (y, np.column_stack([1 - p, p]), table), multiclass="classwise", n_dots=3
    )
    assert len(display.axes_) == 5
    assert len(display.get_plotted_data()[0][0][0]) == 3
    assert "class 0" in display.axes_[1].get_title() + display.axes_[2].get_title()


def test_nothing_to_draw(rows):
    with raises_invalid_input(ValueError, expected="n_curves or n_dots above 0"):
        drawn(rows, n_curves=0, n_dots=0)
    with raises_invalid_input(ValueError, expected=".*n_dots >= 0", value="-1"):
        drawn(rows, n_dots=-1)


def test_from_an_estimator(rows):
    import matplotlib.pyplot as plt

    y, p, groups = rows
    X, names = p[:, None], np.where(y == 1, "yes", "no")
    model = GaussianNB().fit(X, names)
    options = {"n_resamples": 19, "n_curves": 0}
    one = GroupReliabilityDisplay.from_estimator(model, X, names, groups, **options)
    other = GroupReliabilityDisplay.from_predictions(
        names, model.predict_proba(X), groups, **options
    )
    plt.close("all")
    assert np.array_equal(
        one.get_plotted_data()[0][0][0], other.get_plotted_data()[0][0][0]
    )


@pytest.mark.parametrize(
    "display",
    [DecisionCurveDisplay, DecompositionDisplay, RegretDisplay, RiskCoverageDisplay],
)
def test_models_from_estimators(rows, display):
    import matplotlib.pyplot as plt

    y, p, _ = rows
    X, names = p[:, None], np.where(y == 1, "yes", "no")
    model = GaussianNB().fit(X, names)
    (panel, *_) = display.from_predictions(
        names, model.predict_proba(X)
    ).get_plotted_data()
    one = display.from_estimator(model, X, names)
    two = display.from_estimator(
        {"a": model, "b": model}, X, names, sample_weight=1 + y
    )
    weighted = display.from_predictions(
        names, model.predict_proba(X), sample_weight=1 + y
    )
    same = display.from_predictions(
        y, model.predict_proba(X), labels=[0, 1], name="other"
    )
    plt.close("all")
    stored = "parts" if display is DecompositionDisplay else "curves"
    named = [[*getattr(drawn, stored)] for drawn in (one, two, same)]
    assert named == [["GaussianNB"], ["a", "b"], ["other"]]
    np.testing.assert_array_equal(one.get_plotted_data()[0][0], panel[0])
    np.testing.assert_array_equal(same.get_plotted_data()[0][0], panel[0])
    n = len(weighted.get_plotted_data()[0][0][0])  # of one model
    np.testing.assert_array_equal(
        two.get_plotted_data()[0][0][0][:n], weighted.get_plotted_data()[0][0][0]
    )
    assert not np.array_equal(weighted.get_plotted_data()[0][0], panel[0])


@pytest.mark.parametrize("kind", ["classwise", "confidence"])
def test_curves_of_three_classes_are_those_of_the_event(kind):
    rng = np.random.default_rng(0)
    proba, site = rng.dirichlet(np.ones(3), 600), rng.choice(["south", "west"], 600)
    y = (rng.random((600, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    y[site == "south"] = np.where(
        rng.random((site == "south").sum()) < 0.5, 2, y[site == "south"]
    )
    display = drawn((y, proba, {"site": site}), multiclass=kind, n_curves=1, n_dots=0)
    ((row, _),) = display.curves
    here, hit, score = site == "south", y == 2, proba[:, 2]
    if kind == "confidence":
        hit, score = y == proba.argmax(axis=1), proba.max(axis=1)
    else:
        assert row.event == "class 2"
    assert row.group == "site=south" or "south" in str(row.group)
    options = {"strategy": "isotonic", "n_resamples": 0, "labels": [0, 1]}
    (curve,) = reliability_curve(hit[here].astype(int), score[here], **options)
    (((x, observed),),) = display.get_plotted_data()
    np.testing.assert_allclose(x, curve.predicted)
    np.testing.assert_allclose(observed, curve.observed)
