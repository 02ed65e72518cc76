"""Checks of a measure's contract."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier

from ..datasets import make_overconfident
from ..metrics import Predictions, get_scorer
from ._contract import assert_refused

#: The rows that each check is given.
make_rows = make_overconfident


def _check_value(metric, k, proba, y):
    value = metric(y, proba)
    low, high = metric.spec.range
    assert isinstance(value, float) and np.isfinite(value)
    assert low <= value <= high, f"{value} outside [{low}, {high}]"


def _check_range(metric, k, proba, y):
    """Check that predictions of every kind stay in the declared range."""
    low, high = metric.spec.range
    values = []
    for labels, rows in _iter_labels_and_bad_predictions(k, proba, y):
        for multiclass in [None, *metric.spec.multiclass]:
            options = (
                {} if multiclass in (None, "canonical") else {"multiclass": multiclass}
            )
            value = metric(labels, rows, labels=range(k), **options)
            assert np.isfinite(value), (
                f"{value} for predictions that are wrong or certain"
            )
            assert low <= value <= high, f"{value} outside [{low}, {high}]"
            values.append(value)
    sign = 1 if metric.spec.greater_is_better else -1
    best = sign * metric.spec.perfect
    if metric.spec.range[0] >= 0:
        assert max(sign * v for v in values) <= best + 1e-9, "better than perfect"
    assert min(sign * v for v in values) < best - 1e-3, "all predictions are perfect"


def _iter_labels_and_bad_predictions(k, proba, y):
    """Iterate over labels with wrong, undecided, overconfident and nearly certain predictions."""
    certain = np.eye(k)
    yield y, certain[(y + 1) % k]
    yield y, np.full((len(y), k), 1 / k)
    yield y, proba
    yield y, np.roll(proba, 1, axis=1)
    yield y, (1 - 1e-13) * certain[(y + 1) % k] + 1e-13 / k
    yield np.zeros(5, dtype=int), np.tile(certain[-1], (5, 1))


def _check_multiclass_options(metric, k, proba, y):
    """Check each declared treatment of several classes.

    Others raise an error with their name.
    """
    declared = set(metric.spec.multiclass) - {"canonical"}
    for option in declared:
        assert np.isfinite(metric(y, proba, multiclass=option)), option
    if k > 2 and len(declared) > 1:
        values = {metric(y, proba, multiclass=option) for option in declared}
        assert len(values) > 1, f"{', '.join(sorted(declared))} all give the same value"
    for option in {"confidence", "top_label", "classwise", "pairwise"} - declared:
        assert_refused(partial(metric, y, proba, multiclass=option), "multiclass")


def _check_proper(metric, k, *_):
    """Check that a measure with `proper` is smallest in expectation at the true probabilities."""
    if not metric.spec.proper:
        return
    rng = np.random.default_rng(8)
    codes = np.arange(k)
    for truth in rng.dirichlet(np.ones(k), size=20):
        candidates = [
            *rng.dirichlet(np.ones(k), size=10),
            *(0.9 * truth + 0.1 * np.eye(k)),
        ]

        def compute_signed_expected_metric(p, truth=truth):
            value = metric(codes, np.tile(p, (k, 1)), sample_weight=truth, labels=codes)
            return -value if metric.spec.greater_is_better else value

        truth_value = compute_signed_expected_metric(truth)
        for p in candidates:
            assert compute_signed_expected_metric(p) > truth_value, (
                f"{np.round(p, 3)} beats the truth {np.round(truth, 3)}"
            )


def _check_argument_in_errors(metric, k, proba, y):
    """Check that each option rejects a wrong value, and that every error names its argument."""
    wrong: Any = object()
    calls: dict[str, Callable[[], object]] = {
        "y_proba": lambda: metric(y, 3 * proba),
        "rows of scores": lambda: metric(y[:-1], proba),
        "no_such_option": lambda: metric(y, proba, no_such_option=1),
    }
    for option in metric.option_names:
        calls[option] = partial(metric, y, proba, **{option: wrong})
    for argument, call in calls.items():
        try:
            call()
        except (ValueError, TypeError) as error:
            assert argument in str(error), (
                f"the error does not name {argument}: {error}"
            )
        else:
            raise AssertionError("a wrong option was accepted")


def _check_cells(metric, k, proba, y):
    """Check that a measure with `cells` has equal values for rows pooled by score."""
    if not metric.spec.poolable:
        return
    score = proba.max(axis=1).round(1)
    hit = (proba.argmax(axis=1) == y).astype(np.intp)
    classes = np.arange(2)
    pair = np.column_stack([1 - score, score])
    rows = Predictions(pair, hit, None, classes)
    cells = rows.problems()[0].cells
    pooled_pair = np.column_stack([1 - cells.score, cells.score])
    pooled = Predictions(
        np.tile(pooled_pair, (2, 1)),
        np.repeat([1, 0], len(cells.score)),
        np.r_[cells.hits, cells.mass - cells.hits],
        classes,
    )
    difference = abs(metric.evaluate(rows) - metric.evaluate(pooled))
    assert difference < 1e-7, f"pooled rows differ by {difference:.3g}"


def _check_perfect_value(metric, k, *_):
    y = np.tile(np.arange(k), 10)
    value = metric(y, np.eye(k)[y])
    assert abs(value - metric.spec.perfect) < 1e-9, f"{value} for perfect predictions"


def _check_weight_scaling(metric, k, proba, y):
    weight = np.random.default_rng(5).random(len(y)) + 0.1
    first, second = (
        metric(y, proba, sample_weight=factor * weight) for factor in (1, 7)
    )
    assert abs(first - second) < 1e-12


def _check_weights_repeat(metric, k, proba, y):
    weight = np.random.default_rng(6).integers(0, 4, len(y))
    repeated = metric(
        np.repeat(y, weight), np.repeat(proba, weight, axis=0), labels=range(k)
    )
    assert abs(metric(y, proba, sample_weight=weight) - repeated) < 1e-10


def _check_order(metric, k, proba, y):
    order = np.random.default_rng(7).permutation(len(y))
    assert abs(metric(y, proba) - metric(y[order], proba[order])) < 1e-12


def _check_label_types(metric, k, proba, y):
    expected = metric(y, proba)
    for labels in (
        np.array(["a", "b", "c", "d"]),
        10 * np.arange(1, 5),
        np.array([b"a", b"b", b"c", b"d"]),
    ):
        scale = {"order": labels[:k]} if "order" in metric.option_names else {}
        assert abs(metric(labels[y], proba, **scale) - expected) < 1e-12
    if k == 2:
        assert abs(metric(y, proba[:, 1]) - expected) < 1e-9
    kept = y != 0
    assert np.isfinite(metric(y[kept], proba[kept], labels=range(k)))


def _check_metric_bad_input(metric, k, proba, y):
    bad = proba.copy()
    bad[3, 0] = np.nan
    assert_refused(lambda: metric(y, bad), "finite", "row 3")
    assert_refused(lambda: metric(y, 3 * proba), "[0, 1]")
    assert_refused(lambda: metric(y[:-1], proba), "as many labels")
    assert_refused(lambda: metric(y, proba, sample_weight=-np.ones(len(y))), ">= 0")
    assert_refused(lambda: metric(y[:0], proba[:0]), "at least one")
    assert_refused(lambda: metric(np.zeros(len(y), int), proba), "labels=")


def _check_scorer(metric, k, proba, y):
    names = np.array(["a", "b", "c", "d"])
    labels = names[y]
    scale = {"order": names[:k]} if "order" in metric.option_names else {}
    X = np.zeros((len(y), 1))
    model = DummyClassifier(strategy="prior").fit(X, labels)
    value = get_scorer(metric.spec.scorer_name, **scale)(model, X, labels)
    sign = 1 if metric.spec.greater_is_better else -1
    assert abs(sign * value - metric(labels, model.predict_proba(X), **scale)) < 1e-12
