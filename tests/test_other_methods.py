"""The words of all other methods: adaptation, models, summaries, monitors, displays, results.

`classes`, `labels` and `pos_label` say which column is which, a weight of 2 is a row
given twice, another seed draws other rows, a wider level gives a wider interval, and a
wrong one is worded.
"""

import inspect
import warnings
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest
from error_fields import raises_invalid_input
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from words import differ, numbers, same

from sklearn_calib import CalibratedModel, datasets, displays, theory
from sklearn_calib.classifiers import RefineThenCalibrateCV
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decisions import CostSensitiveClassifier, SelectiveClassifier
from sklearn_calib.decomposition import decompose_loss
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import CalibrationTester, polynomial_test
from sklearn_calib.metrics import all_metrics
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    MulticlassBinning,
    MultilabelCalibration,
    OnlineCalibration,
    PriorShift,
    TemperatureScaling,
    VectorScaling,
)
from sklearn_calib.report import Line
from sklearn_calib.summary import CalibrationSummary

N = 150
P, Y = make_overconfident(2, N)
P3, Y3 = make_overconfident(3, N)
WEIGHT = 1 + np.arange(N) % 3 % 2 + np.arange(N) % 7 // 6
AGAIN = np.repeat(np.arange(N), WEIGHT)
NAMES = np.array(["b", "a"])  # not in sorted order
BAD_LEVELS = [0, 1, 95, -0.1, np.nan, "a", True, None]


@pytest.fixture(autouse=True)
def no_figures_stay():
    yield
    plt.close("all")


# -- estimators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("confusion", ["soft", "hard"])
@pytest.mark.parametrize("prior", ["em", "bbse", "rlls"])
def test_adapt(prior, confusion):
    make = partial(PriorShift, prior, confusion=confusion)
    fitted, again = (
        make().fit(P, Y, sample_weight=WEIGHT),
        make().fit(P[AGAIN], Y[AGAIN]),
    )
    target, weight = 0.7 * P[::2] + [[0.2, 0.1]], WEIGHT[::2]
    found = fitted.adapt(target, sample_weight=weight)
    twice = again.adapt(np.repeat(target, weight, axis=0))
    np.testing.assert_allclose(twice.prior_, found.prior_, rtol=1e-6)
    assert np.abs(again.adapt(target).prior_ - found.prior_).max() > 1e-3, (
        "weights change nothing"
    )
    turned = make().fit(P[:, ::-1], 1 - Y, sample_weight=WEIGHT)
    turned = turned.adapt(target[:, ::-1], sample_weight=weight)
    np.testing.assert_allclose(turned.prior_[::-1], found.prior_, rtol=1e-6)
    if prior != "rlls":  # which gives none
        narrow = fitted.adapt(target, sample_weight=weight, level=0.5)
        wide = np.diff(found.prior_interval_)
        assert (np.diff(narrow.prior_interval_) < 0.8 * wide).all()
    if prior != "em":  # which has no confusion
        other = make(confusion={"soft": "hard", "hard": "soft"}[confusion])
        other = other.fit(P, Y, sample_weight=WEIGHT).adapt(
            target, sample_weight=weight
        )
        assert np.abs(other.prior_ - found.prior_).max() > 1e-3


@pytest.mark.parametrize("make", [OnlineCalibration, TemperatureScaling, VectorScaling])
def test_parts_of_rows(make):
    """Rows in parts: `classes` names the columns of each, weights count."""

    def learn(proba, y, classes, weight=None):
        if make is OnlineCalibration:
            model = make()
            for rows in (slice(0, 70), slice(70, N)):
                given = None if weight is None else weight[rows]
                model.partial_fit(
                    proba[rows], y[rows], sample_weight=given, classes=classes
                )
        else:
            parts = [
                (proba[rows], y[rows], *([] if weight is None else [weight[rows]]))
                for rows in (slice(0, 70), slice(70, N))
            ]
            model = make().fit_blocks(parts, kind="proba", classes=classes)
        return model.predict_proba(proba)

    plain = learn(P, Y, [0, 1])
    np.testing.assert_allclose(learn(P, NAMES[Y], NAMES), plain, atol=1e-9)
    np.testing.assert_allclose(
        learn(P[:, ::-1], NAMES[Y], NAMES[::-1])[:, ::-1], plain, atol=1e-9
    )
    weighted = learn(P, Y, [0, 1], WEIGHT.astype(float))
    assert np.abs(weighted - plain).max() > 1e-4, "weights change nothing"
    some = np.where(Y == 0, 0.0, 1.0)  # a class without rows keeps its column
    assert np.isfinite(learn(P, Y, [0, 1], some)).all()


@pytest.mark.parametrize("pooling", ["none", "all", "shrink"])
def test_many_labels(pooling):
    y = np.column_stack([Y, Y3 == 0, (Y3 == 1) | (Y == 1)]).astype(int)
    proba = np.column_stack([P[:, 1], P3[:, 0], np.maximum(P[:, 1], P3[:, 1])])
    model = MultilabelCalibration("platt", pooling)
    weighted = model.fit(proba, y, sample_weight=WEIGHT)
    score, found = (
        weighted.score(proba, y, sample_weight=WEIGHT),
        weighted.predict_proba(proba),
    )
    assert score == pytest.approx(weighted.score(proba[AGAIN], y[AGAIN]))
    assert score != weighted.score(proba, y)
    again = model.fit(proba[AGAIN], y[AGAIN]).predict_proba(proba)
    np.testing.assert_allclose(again, found, atol=1e-7)
    assert np.abs(model.fit(proba, y).predict_proba(proba) - found).max() > 1e-4


X = np.log(P3[:, :2]) + 0.1 * np.arange(N)[:, None] % 0.37
SCORED = [
    LogisticRegression().fit(X, Y),
    CostSensitiveClassifier(LogisticRegression(), costs=[[0, 1], [3, 0]]).fit(X, Y),
    CalibratedModel(FrozenEstimator(LogisticRegression().fit(X, Y)), "platt").fit(X, Y),
]


@pytest.mark.parametrize("model", SCORED[1:], ids=lambda model: type(model).__name__)
def test_scores_of_models(model):
    found = model.score(X, Y, sample_weight=WEIGHT)
    assert found == pytest.approx(model.score(X[AGAIN], Y[AGAIN]))
    assert found != model.score(X, Y)


@pytest.mark.parametrize(
    "response_method", ["auto", "decision_function", "predict_proba"]
)
def test_a_fitted_model_is_calibrated_with_weights(response_method):
    frozen = FrozenEstimator(SCORED[0])
    model = CalibratedModel(frozen, "beta", response_method=response_method)
    found = model.fit(X, Y, sample_weight=WEIGHT).predict_proba(X)
    np.testing.assert_allclose(
        model.fit(X[AGAIN], Y[AGAIN]).predict_proba(X), found, atol=1e-7
    )
    assert np.abs(model.fit(X, Y).predict_proba(X) - found).max() > 1e-4


# -- seeds ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_seeds_of_estimators():
    crowded = P3.round(1) + 1e-3
    crowded /= crowded.sum(axis=1, keepdims=True)
    search = {"C": list(np.logspace(-3, 3, 50))}
    makers = [
        lambda seed: MulticlassBinning(split=True, min_count=2, random_state=seed).fit(
            crowded, Y3
        ),
        lambda seed: SelectiveClassifier(
            LogisticRegression(), 0.4, random_state=seed
        ).fit(X, Y),
        lambda seed: RefineThenCalibrateCV(
            LogisticRegression(), search, n_iter=2, random_state=seed
        ).fit(X, Y),
    ]
    for make in makers:
        outputs = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            for seed in (0, 0, *range(1, 6)):
                model = make(seed)
                outputs.append(
                    model.predict_proba(crowded if hasattr(model, "bins_") else X)
                )
        assert np.array_equal(outputs[0], outputs[1])
        assert any(not np.array_equal(outputs[0], other) for other in outputs[2:]), (
            model
        )


def drawn():
    model = theory.GaussianLogisticModel()
    yield "sample", partial(model.sample, 20)
    for name in datasets.__all__:
        make = getattr(datasets, name)
        if inspect.isfunction(make):
            given = {"n_classes": 2, "n_samples": 40, "n_values": 20}
            known = inspect.signature(make).parameters
            yield name, partial(make, **{k: v for k, v in given.items() if k in known})
    yield "draw", partial(datasets.make_high_dimensional(20, 5)[-1].draw, 20)


@pytest.mark.slow
def test_seeds_of_made_data():
    for name, make in drawn():
        first = make(random_state=3)
        same(first, make(random_state=3), rtol=0)
        assert differ(first, make(random_state=4)), name
        same(
            make(random_state=np.random.default_rng(3)),
            make(random_state=np.random.default_rng(3)),
        )


@pytest.mark.parametrize("method", ["smooth", "distance"])
def test_the_tester(method):
    tester = CalibrationTester(0.1, method=method, n_parts=3)
    found = tester.test(Y, P)
    same(tester.test(NAMES[Y], P, labels=NAMES), found, rtol=0)
    other = CalibrationTester(0.1, method=method, n_parts=3, random_state=1).test(Y, P)
    assert differ(found, other)


# -- summaries and monitors -----------------------------------------------------------------------


@pytest.mark.parametrize("multiclass", ["auto", "confidence", "top_label", "classwise"])
def test_rows_of_a_summary(multiclass):
    for proba, y, k in ((P, Y, 2), (P3, Y3, 3)):
        empty = partial(CalibrationSummary, multiclass=multiclass, classes=range(k))
        again = empty().update(y[AGAIN], proba[AGAIN])
        assert empty().update(y, proba, counts=WEIGHT) == again
        weighted = empty().update(y, proba, sample_weight=WEIGHT)
        # as many rows, less certain
        assert weighted != again and weighted.weight == again.weight
        for name in all_metrics():
            try:
                expected = again.measure(name)
            except (ValueError, TypeError) as error:
                assert "expected" in str(error)
                continue
            assert weighted.measure(name) == pytest.approx(
                expected, rel=1e-6, abs=1e-12
            ), name
        names = np.array(list("zyx"))[:k]
        named = CalibrationSummary(multiclass=multiclass, classes=names).update(
            names[y], proba
        )
        plain = empty().update(y, proba)
        assert named.measure("log_loss") == plain.measure("log_loss")
        few = empty().update(y[y > 0], proba[y > 0])
        zero = empty().update(y, proba, sample_weight=1.0 * (y > 0))
        assert zero.measure("brier_loss") == pytest.approx(few.measure("brier_loss"))


@pytest.mark.slow
def test_the_positive_class_of_a_summary():
    plain = CalibrationSummary().update(Y, P)
    flipped = CalibrationSummary(classes=NAMES, pos_label="b").update(
        NAMES[1 - Y], P[:, ::-1]
    )
    assert flipped.positive_label == "b"
    for name in ("smooth_calibration_error", "calibration_error", "log_loss"):
        assert flipped.measure(name) == pytest.approx(plain.measure(name))
    same(flipped.reliability_curve(), plain.reliability_curve())
    assert flipped.test().pvalue == plain.test().pvalue


@pytest.mark.parametrize(
    "strategy", ["quantile", "uniform", "isotonic", "polynomial", "loess", "spline"]
)
def test_bands_of_a_summary(strategy):
    summary = CalibrationSummary().update(Y, P)
    curve = partial(summary.reliability_curve, strategy=strategy, n_resamples=30)
    (band,), (narrow,) = curve(), curve(level=0.5)
    exact = strategy in ("polynomial", "loess", "spline")
    known = ("confidence",) if exact else ("consistency", "confidence")
    for ends in known:
        inner, outer = (
            getattr(one, f"{ends}_high") - getattr(one, f"{ends}_low")
            for one in (narrow, band)
        )
        assert (inner <= outer + 1e-12).all() and inner.sum() < 0.9 * outer.sum(), ends
    same(curve(random_state=0), [band], rtol=0, exact=False)
    assert differ(curve(random_state=1), [band]) == (not exact)


@pytest.mark.slow
def test_draws_of_a_summary():
    summary = CalibrationSummary().update(Y, P)
    curves = partial(summary.reliability_curve, n_resamples=40)
    for method in (
        partial(summary.test, n_resamples=40),
        summary.cross_validate,
        curves,
    ):
        first = method(random_state=0)
        same(first, method(random_state=0), rtol=0, exact=False)
        assert differ(first, method(random_state=1))
    assert len(summary.test(n_resamples=40).null_distribution) == 40


@pytest.mark.parametrize("multiclass", ["auto", "confidence", "classwise"])
def test_columns_of_a_monitor(multiclass):
    for proba, y, k in ((P, Y, 2), (P3, Y3, 3)):
        if k > 2 and multiclass == "auto":
            multiclass = "confidence"
        make = partial(CalibrationMonitor, multiclass=multiclass)
        plain = make(classes=range(k)).update(y, proba)
        names = np.array(list("zyx"))[:k]
        named = make(classes=names).update(names[y], proba)
        turned = make(classes=names[::-1]).update(names[y], proba[:, ::-1])
        assert plain.log_e_value_ != 0
        for other in (named, turned):
            assert other.log_e_value_ == pytest.approx(plain.log_e_value_, rel=1e-9)
            assert other.p_value_ == pytest.approx(plain.p_value_, rel=1e-9)
        missing = make(classes=range(k)).update(y[y > 0], proba[y > 0])
        assert np.isfinite(missing.log_e_value_) and missing.classes_.tolist() == list(
            range(k)
        )


# -- displays -------------------------------------------------------------------------------------

GIVEN = {"groups": np.where(np.arange(N) % 2, "u", "v"), "recalibrators": ["platt"]}
GIVEN |= {"grades": [0.4]}
#: Displays with points that are not those of rows given twice, each with its reason.
OF_ROWS = {
    "DecompositionDisplay": "cross-fits",
    "RefinementCurveDisplay": "cross-fits",
    "RegretDisplay": "cross-fits",
    "CumulativeDifferenceDisplay": "has a step per row",
    "WitnessDisplay": "shows a function; tests/metrics/test_smooth_calibration.py",
    "CalibratingFunctionDisplay": "shows maps; its dots are below",
}
OF_STAGES = {
    "RefinementCurveDisplay": "takes the stages of a model: tests/displays/test_other_displays.py",
    "CalibratingFunctionDisplay": "takes recalibrators, no model",
}
NOT_OF_ONE_CLASS = {
    "CalibratingFunctionDisplay": "recalibrators take classes=, not pos_label"
}


def shown():
    """Displays of labels and probabilities, by name."""
    found = {name: getattr(displays, name) for name in displays.__all__}
    return {n: d for n, d in found.items() if hasattr(d, "from_predictions")}


def draw(cls, y, proba, rows=slice(None), **words):
    known = inspect.signature(cls.from_predictions).parameters
    given = {
        k: v if isinstance(v, list) else v[rows] for k, v in GIVEN.items() if k in known
    }
    if "staged_proba" in known:
        mixed = 0.5 * proba + 0.25
        return cls.from_predictions(y, [mixed, proba], **given, **words)
    if cls.__name__ == "GroupReliabilityDisplay":
        words = {"n_resamples": 20, "min_rows": 10} | words
    return cls.from_predictions(y, proba, **given, **words)


def points(display):
    return [
        np.asarray(v, float)
        for panel in display.get_plotted_data()
        for one in panel
        for v in one
    ]


def equal(one, other):
    first, second = points(one), points(other)
    return len(first) == len(second) and all(
        a.shape == b.shape and np.allclose(a, b, atol=1e-7, equal_nan=True)
        for a, b in zip(first, second, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", shown())
def test_words_of_a_display(name):
    cls = shown()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        plain = draw(cls, Y, P)
        assert equal(plain, draw(cls, Y, P))
        if name == "CalibratingFunctionDisplay":
            return
        given = "counts" if name == "GradeDisplay" else "sample_weight"
        weighted = draw(cls, Y, P, **{given: WEIGHT})
        assert not equal(weighted, plain), "weights change nothing"
        if name not in OF_ROWS:
            again = draw(cls, Y[AGAIN], P[AGAIN], AGAIN)
            assert equal(again, weighted)
        assert equal(draw(cls, NAMES[Y], P, labels=NAMES), plain)
        if "pos_label" in inspect.signature(cls.from_predictions).parameters:
            turned = draw(cls, NAMES[1 - Y], P[:, ::-1], labels=NAMES, pos_label="b")
            assert equal(turned, plain)


@pytest.mark.parametrize("name", [n for n in shown() if n not in OF_STAGES])
def test_displays_take_the_classes_of_the_model(name):
    """Its columns are in the order of its classes, sorted or not."""

    class Model:
        classes_ = NAMES

        def predict_proba(self, X):
            return X

    cls = shown()[name]
    more = {"groups": GIVEN["groups"]} if name == "GroupReliabilityDisplay" else {}
    if name == "GradeDisplay":
        more = {"grades": GIVEN["grades"]}
    elif more:
        more |= {"n_resamples": 20, "min_rows": 10}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        found = cls.from_estimator(Model(), P, NAMES[Y], **more)
        assert equal(found, draw(cls, Y, P))


def test_dots_of_maps_are_weighted():
    cls = displays.CalibratingFunctionDisplay
    fitted = TemperatureScaling().fit(P, Y)
    plain = cls.from_recalibrators(fitted, Y, P)
    weighted = cls.from_recalibrators(fitted, Y, P, sample_weight=WEIGHT)
    assert not equal(weighted, plain)
    assert equal(weighted, cls.from_recalibrators(fitted, Y[AGAIN], P[AGAIN]))


# -- levels ---------------------------------------------------------------------------------------


def intervals():
    """Methods of results that take a level: (name, function of a level, width of what it gives)."""
    decomposition = decompose_loss(Y, P)
    for term in ("calibration", "refinement"):
        yield (
            f"LossDecomposition.interval({term})",
            partial(decomposition.interval, term),
        )
    belt = polynomial_test(Y, P, held_out=True)
    yield "PolynomialTest.belt", lambda level: belt.belt([0.2, 0.7], level=level)
    line = Line(0.7, 0.1, 0.2, 0.1)
    yield "Line.slope_interval", line.slope_interval


def test_levels_of_results():
    for name, interval in intervals():
        low, high = (np.asarray(end, float) for end in interval(0.9))
        inner = [np.asarray(end, float) for end in interval(0.5)]
        assert (low < inner[0]).all() and (inner[1] < high).all(), name
        for level in BAD_LEVELS:
            with raises_invalid_input((ValueError, TypeError), expected=".*level"):
                interval(level)


def test_levels_of_estimators():
    fitted = PriorShift().fit(P, Y)
    for level in BAD_LEVELS:
        with raises_invalid_input((ValueError, TypeError), expected=".*level"):
            fitted.adapt(P, level=level)
    summary = CalibrationSummary().update(Y, P)
    for level in BAD_LEVELS:
        with raises_invalid_input((ValueError, TypeError), expected=".*level"):
            summary.reliability_curve(level=level)


def test_numbers_are_found():
    assert len(dict(numbers(decompose_loss(Y, P)))) > 3
