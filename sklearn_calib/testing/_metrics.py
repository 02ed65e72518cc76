"""Checks of a measure's contract."""

from functools import partial

import numpy as np

from ._common import assert_refused, make_scores, run


def check_metric(metric):
    """Run every check of the measure contract on a function decorated with `metric`.

    Raises AssertionError with the name of the check that failed.

    Examples
    --------
    >>> from sklearn_calib.metrics import brier_loss
    >>> from sklearn_calib.testing import check_metric
    >>> check_metric(brier_loss)
    """
    run(metric_checks(metric))


def metric_checks(metric):
    """The checks as a list of (name, callable without arguments)."""
    return [
        (f"{check.__name__}[{k}]", partial(check, metric, k))
        for check in _METRIC_CHECKS
        for k in (2, 4)
    ]


def check_value(metric, k):
    proba, y = make_scores(k)
    value = metric(y, proba)
    low, high = metric.spec.range
    assert isinstance(value, float) and np.isfinite(value)
    assert low <= value <= high, f"{value} outside [{low}, {high}]"


def check_perfect_value(metric, k):
    y = np.tile(np.arange(k), 10)
    value = metric(y, np.eye(k)[y])
    assert abs(value - metric.spec.perfect) < 1e-9, f"{value} for perfect predictions"


def check_weight_scaling(metric, k):
    proba, y = make_scores(k)
    weight = np.random.default_rng(5).random(len(y)) + 0.1
    first, second = (
        metric(y, proba, sample_weight=weight),
        metric(y, proba, sample_weight=7 * weight),
    )
    assert abs(first - second) < 1e-12


def check_weights_repeat(metric, k):
    proba, y = make_scores(k)
    weight = np.random.default_rng(6).integers(0, 4, len(y))
    repeated = metric(np.repeat(y, weight), np.repeat(proba, weight, axis=0), labels=range(k))
    assert abs(metric(y, proba, sample_weight=weight) - repeated) < 1e-10


def check_order(metric, k):
    proba, y = make_scores(k)
    order = np.random.default_rng(7).permutation(len(y))
    assert abs(metric(y, proba) - metric(y[order], proba[order])) < 1e-12


def check_label_types(metric, k):
    proba, y = make_scores(k)
    expected = metric(y, proba)
    for labels in (
        np.array(["a", "b", "c", "d"]),
        10 * np.arange(1, 5),
        np.array([b"a", b"b", b"c", b"d"]),
    ):
        assert abs(metric(labels[y], proba) - expected) < 1e-12
    if k == 2:
        assert abs(metric(y, proba[:, 1]) - expected) < 1e-9
    kept = y != 0
    assert np.isfinite(metric(y[kept], proba[kept], labels=range(k)))


def check_metric_bad_input(metric, k):
    proba, y = make_scores(k)
    bad = proba.copy()
    bad[3, 0] = np.nan
    assert_refused(lambda: metric(y, bad), "finite", "row 3")
    assert_refused(lambda: metric(y, 3 * proba), "[0, 1]")
    assert_refused(lambda: metric(y[:-1], proba), "as many labels")
    assert_refused(lambda: metric(y, proba, sample_weight=-np.ones(len(y))), ">= 0")
    assert_refused(lambda: metric(y[:0], proba[:0]), "at least one")
    assert_refused(lambda: metric(np.zeros(len(y), int), proba), "labels=")


def check_scorer(metric, k):
    from sklearn.dummy import DummyClassifier

    from ..metrics import get_scorer

    _, y = make_scores(k)
    labels = np.array(["a", "b", "c", "d"])[y]
    model = DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), labels)
    value = get_scorer(metric.spec.scorer_name)(model, np.zeros((len(y), 1)), labels)
    sign = 1 if metric.spec.greater_is_better else -1
    assert abs(sign * value - metric(labels, model.predict_proba(np.zeros((len(y), 1))))) < 1e-12


_METRIC_CHECKS = [
    check_value,
    check_perfect_value,
    check_weight_scaling,
    check_weights_repeat,
    check_order,
    check_label_types,
    check_metric_bad_input,
    check_scorer,
]
