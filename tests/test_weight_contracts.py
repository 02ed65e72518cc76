"""What weights mean to every public function, in everything that it returns.

The contracts of `test_functions` leave out what states uncertainty. Here standard
errors, ends of intervals, p-values and draws are compared too: weights with a common
factor, weights of 0, rows in another order, and four times the rows, each with every
string that an option can be.
"""

import inspect
import itertools
import re
import warnings

import numpy as np
import pytest
import test_methods
from cases import run_every_case
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from stored_numbers import KINDS_AT_AN_END, parse_error_fields, rows_at_an_end
from test_functions import (
    COUNTING_ROWS,
    FUNCTIONS,
    NOT_REPEATED,
    OF_DRAWS,
    OF_PAIRS,
    SLOW,
    STANDARDISED,
    TWO_CLASSES,
    call,
    options,
    rows as rows_of,
)
from words import numbers, same

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV, inference
from sklearn_calib._kernels._loess import Loess
from sklearn_calib.decisions import CostSensitiveClassifier
from sklearn_calib.decomposition import decompose_loss, variational_calibration_error
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import (
    MulticalibratedModel,
    _cells as groups_cells,
    group_calibration,
)
from sklearn_calib.linear import approximate_leave_one_out, logistic_intervals
from sklearn_calib.recalibrators import (
    MulticalibratedScores,
    PlattScaling,
    all_recalibrators,
)
from sklearn_calib.summary import CalibrationSummary

N = 80
#: Strongly unequal: one row in ten has half of the weight, and none is a whole number.
WEIGHT = np.where(np.arange(N) % 10 == 3, 7.3, 0.4) + np.arange(N) % 7 * 0.11
# a power of two leaves every digit alone, so that draws are the same as well
FACTOR = 4.0
#: Sums of weights, which are multiplied as the weights are.
TOTALS = {
    ("expected_metrics", "confusion"),
    ("reliability_curve", "weight"),
    *(("group_calibration", field) for field in ("weight", "events", "expected")),
}
#: Draws of some options that need time.
NOT_HERE = {("confidence_interval", "inversion")}
#: Numbers of the rows themselves.
POSITIONS = {"members"}
#: Fields of which the draws are of the rows in their order.
DRAWN = {
    "group_calibration": {
        *("p_value", "critical_sigma", "null_distribution", "adjusted_p_value"),
        *("ratio_low", "ratio_high", "in_the_large_low", "in_the_large_high"),
        *("slope_low", "slope_high"),
    },
    "lp_calibration_test": {"null_mean", "null_quantile", "pvalue"},
    "reliability_curve": {"consistency_low", "consistency_high"},
}
#: Options that take rows in their order: beside each other, or drawn.
IN_ORDER = {("kernel_calibration_error", "linear"), ("reliability_curve", "isotonic")}
#: Functions that search for a width, which takes seconds for weights that are not whole numbers.
TAKES_SECONDS = {"interval_calibration_error"}
#: Functions whose folds or draws are of the rows in their order.
BY_POSITION = {
    *(
        "decompose_loss",
        "proper_calibration_error",
        "refinement_curve",
        "refinement_error",
    ),
    *("isotonic_refinement_brier", "isotonic_refinement_log_loss", "regret_curve"),
    *("temperature_refinement_brier", "temperature_refinement_log_loss"),
    *("variational_calibration_error", "variational_calibration_interval"),
}


def weighted(but=()):
    """Parameters of a test: the functions that have weights."""
    for name, function in sorted(FUNCTIONS.items()):
        if (
            "sample_weight" in inspect.signature(function).parameters
            and name not in but
        ):
            yield pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())


def cases(name):
    """Each option, with rows of two and of three classes if it is not rejected for them."""
    for option in options(name):
        if {(name, value) for value in option.values()} & NOT_HERE:
            continue
        for k in (2,) if name in TWO_CLASSES else (2, 3):
            data = rows_of(k)
            try:
                yield option, data, found_by(name, data, WEIGHT, option)
            except (ValueError, TypeError) as error:
                assert "expected" in str(error), (
                    f"{name}, {option}, {k} classes: {error!r}"
                )


def found_by(name, data, weight, option):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        given = {} if weight is None else {"sample_weight": weight}
        return dict(numbers(call(FUNCTIONS[name], data, **given, **option)))


def check_equal(name, option, found, expected, but=(), rtol=1e-7):
    """Every number, with the function, the option and the field in the message."""
    assert expected and found.keys() == expected.keys(), (
        f"{name}, {option}: other fields"
    )
    for field, value in expected.items():
        words = set(field.split("."))
        if not words & {*but, *POSITIONS}:
            where = f"{name}, {option}, {field or 'the value'}"
            np.testing.assert_allclose(found[field], value, rtol, 1e-9, err_msg=where)


@run_every_case("name", weighted())
def test_a_common_factor_of_fractional_weights_changes_only_sums_of_weights(name):
    for option, data, expected in cases(name):
        found = found_by(name, data, FACTOR * WEIGHT, option)
        for field in expected:
            if (name, field.rpartition(".")[2]) in TOTALS:
                found[field] = found[field] / FACTOR
        check_equal(name, option, found, expected)


#: Fields for which labels of the rows are drawn, so that parts are other rows.
OF_SIMULATED_ROWS = {"confidence_interval": (".estimate",)}


def parts_of_rows():
    """Numbers of rows, some of them two or three times, and the share of each part."""
    parts = 1 + np.arange(N) % 5 % 3
    at = np.repeat(np.arange(N), parts)
    size = 1.0 + np.arange(len(at)) % 4
    return at, size / np.bincount(at, size)[at]


@run_every_case("name", weighted(COUNTING_ROWS))
def test_a_row_in_parts_of_fractional_weights_is_the_row(name):
    """Errors, intervals and p-values are left out: they depend on the number of rows."""
    function = FUNCTIONS[name]
    at, share = parts_of_rows()
    for option, k in itertools.product(
        options(name), (2,) if name in TWO_CLASSES else (2, 3)
    ):
        if set(option) & set(NOT_REPEATED) or set(option.items()) & set(NOT_REPEATED):
            continue
        data = rows_of(k)
        in_parts = {key: value[at] for key, value in data.items()}
        given, again = dict(option), dict(option)
        if "cv" in inspect.signature(function).parameters:
            given["cv"] = FOLDS
            again["cv"] = [
                [np.flatnonzero(np.isin(at, one)) for one in pair] for pair in FOLDS
            ]
        try:
            expected = call(function, data, sample_weight=WEIGHT, **given)
        except (ValueError, TypeError) as error:
            assert "expected" in str(error), f"{name}, {option}, {k} classes: {error!r}"
            continue
        found = call(function, in_parts, sample_weight=WEIGHT[at] * share, **again)
        but = [".statistic"] if name in STANDARDISED else OF_DRAWS.get(name, ())
        pairs = OF_SIMULATED_ROWS.get(name, OF_PAIRS.get(name, "-"))
        but = [*but, *(n for n, _ in numbers(expected) if n.startswith(pairs))]
        same(found, expected, rtol=1e-5, but=but)


@pytest.mark.parametrize("name", sorted({name for name, _ in TOTALS}))
def test_sums_of_weights_keep_the_unit_of_weights_of_any_size(name):
    """Weights that are divided before they are added up are multiplied again."""
    data = rows_of(2)
    expected = found_by(name, data, WEIGHT, {})
    for factor in (2.0**-500, 2.0**500):
        found = found_by(name, data, factor * WEIGHT, {})
        for field in expected:
            if (name, field.rpartition(".")[2]) in TOTALS:
                found[field] = found[field] / factor
        check_equal(name, f"weights times {factor:g}", found, expected)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_weights_beside_a_penalty_are_refused_if_they_cannot_be_added_up(size):
    """To divide them would change what they are beside the penalty."""
    data = rows_of(2)
    X, y = np.column_stack([data["first"], data["second"]]), data["y"]
    model = LogisticRegression().fit(X, y)
    for function in (logistic_intervals, approximate_leave_one_out):
        rest = X if function is logistic_intervals else y
        with pytest.raises(ValueError, match=r"from 1e-100 to 1e\+100"):
            function(model, X, rest, sample_weight=size * WEIGHT)


@run_every_case("name", weighted())
def test_a_weight_of_0_leaves_a_row_out_of_every_number(name):
    kept = np.arange(N) % 8 != 5
    for option, data, _ in cases(name):
        some = {key: value[kept] for key, value in data.items()}
        try:
            expected = found_by(name, some, WEIGHT[kept], option)
        except ValueError as error:
            assert "at least" in str(error), f"{name}, {option}: {error!r}"
            continue
        found = found_by(name, data, np.where(kept, WEIGHT, 0.0), option)
        check_equal(name, option, found, expected)


@run_every_case("name", weighted(TAKES_SECONDS))
def test_rows_at_an_end_have_the_same_weights(name):
    """All alike, of two scores, or certain: a common factor and rows of weight 0 at once."""
    weight = np.exp(np.arange(N) % 7 * 2.0 - 6.3) + 0.013
    kept = np.arange(N) % 9 != 4
    ran = 0
    for kind, k in itertools.product(
        KINDS_AT_AN_END, (2,) if name in TWO_CLASSES else (2, 3)
    ):
        data = rows_at_an_end(kind, k)
        some = {key: value[kept] for key, value in data.items()}
        try:
            expected = found_by(name, some, weight[kept], {})
        except ValueError as error:
            assert "expected" in str(error), f"{name}, {kind}: {error!r}"
            continue
        ran += 1
        found = found_by(name, data, np.where(kept, FACTOR * weight, 0.0), {})
        for field in expected:
            if (name, field.rpartition(".")[2]) in TOTALS:
                found[field] = found[field] / FACTOR
        check_equal(name, f"{kind}, {k} classes", found, expected)
    assert ran, f"{name} refuses all rows at an end"


@run_every_case("name", weighted(BY_POSITION))
def test_rows_in_another_order_give_every_number(name):
    order = np.random.default_rng(1).permutation(N)
    for option, data, expected in cases(name):
        if not {(name, value) for value in option.values()} & IN_ORDER:
            other = {key: value[order] for key, value in data.items()}
            found = found_by(name, other, WEIGHT[order], option)
            check_equal(name, option, found, expected, DRAWN.get(name, ()))


# -- four times the rows ---------------------------------------------------------------------------

#: Words of fields that are errors, and pairs of fields that are ends.
ERRORS = (
    "se",
    "standard_error",
    "labels_se",
    "in_the_large_error",
    "slope_error",
    "sigma",
)
ENDS = (
    ("low", "high"),
    ("observed_low", "observed_high"),
    ("confidence_low", "confidence_high"),
)
#: Functions whose errors are not those of a mean, each with its reason.
OTHER_RATES = {
    "group_calibration": "its sigma is a statistic, its ends are drawn for all groups at once",
    "validation_sample_size": "its errors are those asked for",
    "variational_calibration_interval": "copies of a row share a fold",
    "grade_calibration": "its ends are those of grades",
    "refinement_curve": "smooths labels by the number of rows",
    "confidence_interval": "the inversion of an error: below, for a mean",
    "paired_difference": "an error of calibration: below, for a mean",
}
#: Options of which the rate is that of an isotonic fit, or more rows make more bins or
#: knots.
OTHER_OPTIONS = {
    *(
        ("reliability_curve", x)
        for x in ("isotonic", "polynomial", "spline", "loess", "sweep")
    ),
}


def four_times():
    for name in sorted(FUNCTIONS):
        if name not in OTHER_RATES and name not in SLOW:
            yield name


@run_every_case("name", four_times())
def test_four_times_the_rows_halve_errors_and_intervals(name):
    for option, k in itertools.product(
        options(name), (2,) if name in TWO_CLASSES else (2, 3)
    ):
        if {(name, value) for value in option.values()} & OTHER_OPTIONS:
            continue
        data = rows_of(k)
        again = {
            key: np.tile(one, (4, *(1,) * (one.ndim - 1))) for key, one in data.items()
        }
        again["clusters"] = np.arange(4 * N) % 10 + 10 * (np.arange(4 * N) // N)
        try:
            one = found_by(name, data, None, option)
        except (ValueError, TypeError) as error:
            assert "expected" in str(error), f"{name}, {option}, {k} classes: {error!r}"
            continue
        errors = [field for field in one if field.rpartition(".")[2] in ERRORS]
        pairs = [
            (field, field[: -len(low)] + high)
            for low, high in ENDS
            for field in one
            if field.endswith(f".{low}") and field[: -len(low)] + high in one
        ]
        if not (errors or pairs):
            return
        four = found_by(name, again, None, option)
        for field in errors:
            where = f"{name}, {option}, {field}: {one[field]} and {four[field]}"
            np.testing.assert_allclose(
                four[field], one[field] / 2, 0.02, 1e-9, err_msg=where
            )
        for low, high in pairs:
            if four[low].shape == one[low].shape:
                width, narrow = one[high] - one[low], four[high] - four[low]
                inside = (one[low] > 0) & (one[high] < 1) & (width > 0)
                ratio = np.divide(
                    narrow, width, out=np.zeros_like(width), where=width > 0
                )[inside]
                where = f"{name}, {option}, {low} to {high}: widths {ratio}"
                assert ((ratio > 0.35) & (ratio < 0.8)).all(), where


@pytest.mark.whole
@pytest.mark.parametrize("measure", ["brier_loss", "log_loss"])
@pytest.mark.parametrize("function", ["confidence_interval", "paired_difference"])
def test_four_times_the_rows_halve_the_interval_of_a_mean(function, measure):
    """Drawn and by formula, with the same seed."""
    data = rows_of(2)
    widths = []
    for copies in (1, 4):
        some = {key: np.concatenate([one] * copies) for key, one in data.items()}
        names = ("second",) if function == "paired_difference" else ()
        given = [some["y"], some["first"], *(some[name] for name in names)]
        found = getattr(inference, function)(*given, measure=measure, n_resamples=300)
        widths.append(found.high - found.low)
    assert 0.42 < widths[1] / widths[0] < 0.58, f"{function}, {measure}: {widths}"


# -- fits inside of fits ---------------------------------------------------------------------------

COPIES = np.where(np.arange(N) % 11 == 5, 15, 1 + np.arange(N) % 3 % 2)
FOLDS = [
    (np.flatnonzero(np.arange(N) % 3 != f), np.flatnonzero(np.arange(N) % 3 == f))
    for f in range(3)
]
AGAIN = np.repeat(np.arange(N), COPIES)
LR = LogisticRegression(tol=1e-10, max_iter=1000)


def models():
    """Every wrapper with every string that its options can be, and some methods inside."""
    for name in ("default", "platt", "beta", "isotonic", "histogram_binning"):
        for ensemble in (True, False):
            yield CalibratedModel(LR, name, ensemble=ensemble)
    for response in ("decision_function", "predict_proba"):
        yield CalibratedModel(LR, response_method=response, ensemble=False)
        yield MulticalibratedModel(LR, n_rounds=1, n_trees=3, response_method=response)
    yield CostSensitiveClassifier(LR, [[0.0, 1.0], [3.0, 0.5]])
    for option in (
        *({"loss": loss} for loss in ("log", "brier", "spherical")),
        *({"selection": one} for one in ("minimum", "one_standard_error")),
        *(
            {"refinement": one}
            for one in ("temperature-in-sample", "isotonic", "platt")
        ),
        *({"recalibrator": one} for one in ("beta", "isotonic")),
        {"ensemble": True},
    ):
        yield RefineThenCalibrateCV(LR, {"C": [0.01, 0.3]}, **option)


@pytest.mark.whole
@run_every_case("model", models(), ids=repr)
def test_a_model_of_very_unequal_weights_is_that_of_repeated_rows(model):
    """Copies of a row are in the fold of the row."""
    data = rows_of(2)
    X, y = np.log(data["first"] / data["second"]) + data["second"], data["y"]
    folds = [[np.flatnonzero(np.isin(AGAIN, part)) for part in pair] for pair in FOLDS]
    found = []
    for rows, cv, weight in ((np.arange(N), FOLDS, COPIES), (AGAIN, folds, None)):
        one = clone(model)
        if "cv" in one.get_params(deep=False):
            one.set_params(cv=[tuple(pair) for pair in cv])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one.fit(X[rows], y[rows], sample_weight=weight)
            found.append(one.predict_proba(X))
    np.testing.assert_allclose(
        found[1], found[0], rtol=0, atol=2e-5, err_msg=repr(model)
    )


def test_features_are_judged_by_maps_and_trees_of_very_unequal_weights():
    rng, n = np.random.default_rng(4), 300
    feature, weight = rng.integers(0, 2, n), np.where(np.arange(n) % 7 == 2, 6.3, 0.4)
    right = np.where(np.arange(n) % 7 == 2, 0.95, 0.7)  # of heavy rows more
    y = np.where(rng.random(n) < right, feature, 1 - feature)
    p = 0.3 + 0.4 * rng.random(n)
    proba = np.column_stack([1 - p, p])
    folds = [
        (np.flatnonzero(np.arange(n) % 3 != f), np.arange(f, n, 3)) for f in range(3)
    ]
    how = {"features": {"a": feature}, "cv": folds, "recalibrator": PlattScaling()}
    found = decompose_loss(y, proba, sample_weight=weight, **how).gain_of_features
    gain = np.empty(n)
    for train, test in folds:
        given = {"classes": [0, 1], "sample_weight": weight[train]}
        mapped = (
            PlattScaling().fit(proba[train], y[train], **given).predict_proba(proba)
        )
        trees = MulticalibratedScores()
        trees.fit(mapped[train], y[train], groups={"a": feature[train]}, **given)
        used = trees.predict_proba(mapped, groups={"a": feature})
        gain[test] = np.log(used / mapped)[test, y[test]]
    assert np.abs(gain).max() > 0.01
    assert found == pytest.approx(np.average(gain, weights=weight), rel=1e-9)


def test_maps_of_folds_of_cells_are_fitted_to_the_weights_that_are_left():
    data = rows_of(2)
    summary = CalibrationSummary().update(
        data["y"], data["first"], sample_weight=WEIGHT
    )
    (sample,) = summary.samples()
    folds = sample.split_into_folds(3, np.random.default_rng(0))
    method = PlattScaling()
    found, _, _ = sample.recalibrate_held_out(method, folds)
    codes, rows = np.tile([0, 1], len(sample.proba)), np.repeat(sample.proba, 2, axis=0)
    expected = []
    for fold in folds:
        left = (sample.weight - fold.weight).ravel()
        kept, judged = left > 1e-12, fold.weight.ravel() > 0
        fitted = clone(method).fit(rows[kept], codes[kept], sample_weight=left[kept])
        expected.append(fitted.predict_proba(rows[judged]))
    np.testing.assert_allclose(found.proba, np.vstack(expected), rtol=1e-9)


#: Options that need another one beside them, or a solver of seconds.
SLOW_MAPS = (
    "auto",
    "restricted_polynomial",
    "trend_filtering",
    "trend_filtering_ensemble",
)
NOT_ALONE = {("noise", "laplace"), ("solver", "cvxpy"), ("solver", "clarabel")}


def options_of_maps():
    """Each method that takes counts, with each string that one of its options can be."""
    for name, cls in sorted(all_recalibrators().items()):
        if not cls.capabilities.sample_weight:
            continue
        default = inspect.signature(cls).parameters
        for option, rule in getattr(cls, "__annotations__", {}).items():
            values = re.findall(r"'(\w+)'", str(rule)) if "Literal" in str(rule) else []
            for value in values:
                if option in default and (option, value) not in NOT_ALONE:
                    mark = pytest.mark.slow if name in SLOW_MAPS else ()
                    where = f"{name}-{option}-{value}"
                    yield pytest.param(cls, {option: value}, id=where, marks=mark)


#: Sums of weights that a fit keeps, and penalties beside them.
SUMS_OF_MAPS = {
    "AdaptiveCalibration": ("weights_",),
    "ENIR": ("penalties_",),
    "EnsembleTemperatureScaling": ("n_samples_",),
    "HistogramBinning": ("bin_weights_",),
    "MatrixScaling": ("n_samples_",),
    "NearIsotonicCalibration": ("penalty_", "breakpoints_"),
    "TemperatureScaling": ("n_samples_",),
    "TrendFiltering": ("penalty_", "lam"),
    "TrendFilteringEnsemble": ("penalties_", "lam"),
    "VectorScaling": ("n_samples_",),
}
#: Options that stand beside sums of weights, so that their unit counts.
IN_UNITS = {
    ("TemperatureScaling", "laplace"): "one row is added",
    ("NearIsotonicCalibration", "penalty"): "a number is beside sums of weights",
    ("TrendFiltering", "penalty"): "a number is beside sums of weights",
}


#: Methods for which a row in two parts is not the row, each with its reason.
OF_WHOLE_ROWS = {
    "DefaultCalibration": "its splines leave rows out",
    "SplineCalibration": "leaves rows out",
    "StackedCalibration": "deals rows out to folds",
}


def fits_of_maps():
    """Each method that takes weights, with every value of every option."""
    for one in test_methods.instances():
        cls, option, k = one.values
        known = getattr(cls, "capabilities", None)
        if (known is None or known.sample_weight) and not (k == 3 and option):
            yield one


def attributes(cls, option, proba, y, weight, **more):
    """All that a fit finds: its attributes, and the probabilities of the first rows."""
    model, at = test_methods.build(cls, option), {}
    if "groups" in inspect.signature(model.predict_proba).parameters:
        more["groups"] = np.arange(len(proba)) % 2
        at["groups"] = more["groups"][:60]
    if cls is MulticalibratedScores:
        folds = [np.arange(len(proba)) % 3 == part for part in range(3)]
        model.set_params(
            cv=[(np.flatnonzero(~one), np.flatnonzero(one)) for one in folds]
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(proba, y, sample_weight=weight, **more)
        found = {"predictions": model.predict_proba(proba[:60], **at), "": model}
    return {
        field: one
        for field, one in parse_error_fields(found)
        if not isinstance(one, str) and one.size
    }


@pytest.mark.whole
@run_every_case(("cls", "option", "k"), fits_of_maps())
def test_nothing_that_a_map_finds_depends_on_rows_of_weight_0_or_the_unit(
    cls, option, k
):
    """From 0.002 to 300; also with shares as labels, and with some rows in two parts."""
    proba, y = test_methods.rows(k)
    weight = np.exp(np.arange(len(y)) % 7 * 2.0 - 6.3) + 0.013
    known = getattr(cls, "capabilities", None)
    in_units = known is not None and known.weights == "counts"
    in_units |= any((cls.__name__, name) in IN_UNITS for name, _ in option)
    factor = 1.0 if in_units else FACTOR
    split = known is not None and known.weights != "rows" and not known.order_dependent
    named = set(test_methods.keys(cls, option))
    split &= not named & {*OF_WHOLE_ROWS, *test_methods.NOT_REPEATED}
    share = np.where(np.arange(len(y)) % 9 == 4, 0.3, 1.0) if split else 1.0
    more_rows = np.vstack([proba, np.roll(proba[:18], 1, axis=1), proba])
    more_weight = np.concatenate(
        [factor * weight * share, np.zeros(18), factor * weight * (1 - share)]
    )
    shares = 0.6 * np.eye(k)[y] + 0.4 * np.roll(proba, 3, axis=0)
    kinds = [(y, {})]
    if not option and known is not None and not known.order_dependent:
        kinds.append((shares, {"soft_labels": True}))
    for labels, more in kinds:
        expected = attributes(cls, option, proba, labels, weight, **more)
        again = np.concatenate([labels, labels[::-1][:18], labels])
        found = attributes(cls, option, more_rows, again, more_weight, **more)
        where = f"{cls.__name__}, {dict(option)}, {k} classes, {more}"
        assert found.keys() == expected.keys(), where
        for field, value in expected.items():
            name = field.rpartition(".")[2]
            is_sum = name in SUMS_OF_MAPS.get(cls.__name__, ())
            unit = factor if is_sum else 1.0
            title = f"{where}, {field}"
            assert found[field].shape == value.shape, title
            rtol = test_methods.TOLERANCE.get(cls.__name__, 1e-6)
            np.testing.assert_allclose(
                found[field], unit * value, rtol, rtol, err_msg=title
            )


@pytest.mark.parametrize("multiclass", ["canonical", "confidence", "classwise"])
def test_a_variational_error_does_not_depend_on_the_unit_of_weights(multiclass):
    data = rows_of(3)
    given = {"multiclass": multiclass, "cv": FOLDS}
    found = [
        variational_calibration_error(
            data["y"], data["first"], sample_weight=w, **given
        )
        for w in (WEIGHT, FACTOR * WEIGHT)
    ]
    assert found[1] == pytest.approx(found[0], abs=1e-7), multiclass


@pytest.mark.whole
@run_every_case("heavy", [0, 7, 19])
@run_every_case("unit", [1.0, 0.37])
def test_a_smoother_does_not_see_scores_without_mass(heavy, unit):
    """Also if one score fills the window and its neighbours have no mass, as in resamples."""
    rng = np.random.default_rng(heavy)
    score, kept = np.sort(rng.random(20)), np.arange(20) % 3 != 1
    kept[heavy] = True
    mass = np.where(kept, rng.integers(1, 4, 20), 0) * unit
    mass[heavy] = 500 * unit
    hits = mass * rng.random(20)
    found = Loess(score)(mass, hits)[kept]
    expected = Loess(score[kept])(mass[kept], hits[kept])
    where = f"Loess, {heavy} is heavy, masses in units of {unit}"
    np.testing.assert_allclose(found, expected, rtol=1e-7, err_msg=where)


def test_coarse_cells_of_groups_keep_sums_of_weighted_probabilities(monkeypatch):
    """Cells are made coarser where they are too many: at the mean of the rows by their weights."""
    monkeypatch.setattr(groups_cells, "MAX_FINE_CELLS", 16)
    monkeypatch.setattr(groups_cells, "MAX_POOLED_CELLS", 8)
    rng = np.random.default_rng(2)
    n = 400
    p = rng.uniform(0.2501, 0.2599, n)
    y, name = (rng.random(n) < p).astype(int), np.repeat([*"ab"], n // 2)
    weight = np.exp(np.arange(n) % 7 * 2.0 - 6.3) + 0.013
    found = group_calibration(
        y, p, name, min_rows=10, n_resamples=2, sample_weight=weight
    )
    for row, kept in zip(
        found.rows, (name != "", name == "a", name == "b"), strict=True
    ):
        expected = weight[kept] @ p[kept]
        where = f"group {row.group}: expected {expected}, got {row.expected}"
        assert row.expected == pytest.approx(expected, rel=1e-9), where


class Recorder:
    """A splitter that keeps the labels that it is given."""

    def split(self, X, y, groups=None):
        self.labels = np.asarray(y)
        yield from FOLDS

    def get_n_splits(self, X=None, y=None, groups=None):
        return len(FOLDS)


def test_folds_of_shares_are_stratified_by_the_largest_share():
    data = rows_of(2)
    shares = np.random.default_rng(2).dirichlet(np.ones(2), N)
    recorder, X = Recorder(), data["first"][:, 1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CalibratedModel(LR, "platt", cv=recorder).fit(X, shares, soft_labels=True)
    np.testing.assert_array_equal(recorder.labels, shares.argmax(axis=1))


@pytest.mark.parametrize(("cls", "option"), options_of_maps())
def test_a_map_of_counts_is_that_of_repeated_rows(cls, option):
    data, found = rows_of(2), []
    for rows, weight in ((np.arange(N), COPIES), (AGAIN, None)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = cls(**option).fit(
                data["first"][rows], data["y"][rows], sample_weight=weight
            )
            found.append(model.predict_proba(data["first"]))
    if cls.capabilities.weights != "ratios":
        where = f"{cls.__name__}, {option}"
        np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-5, err_msg=where)
