"""What weights mean to every public function, in everything that it returns.

The contracts of `test_functions` leave out what states uncertainty. Here standard errors, ends of
intervals, p-values and draws are compared too: weights with a common factor, weights of 0, rows in
another order, and four times the rows, each with every string that an option can be.
"""

import inspect
import warnings

import numpy as np
import pytest
from test_functions import FUNCTIONS, SLOW, TWO_CLASSES, call, options
from test_functions import rows as rows_of
from words import numbers

from sklearn_calib.exceptions import CalibrationWarning

N = 80
#: Strongly unequal: one row in ten has half of the weight, and none is a whole number.
WEIGHT = np.where(np.arange(N) % 10 == 3, 7.3, 0.4) + np.arange(N) % 7 * 0.11
FACTOR = 4.0  # a power of two leaves every digit alone, so that draws are the same as well
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
#: Functions whose folds or draws are of the rows in their order.
BY_POSITION = {
    *("decompose_loss", "proper_calibration_error", "refinement_curve", "refinement_error"),
    *("isotonic_refinement_brier", "isotonic_refinement_log_loss", "regret_curve"),
    *("temperature_refinement_brier", "temperature_refinement_log_loss"),
    *("variational_calibration_error", "variational_calibration_interval"),
}


def weighted(but=()):
    """Parameters of a test: the functions that have weights."""
    for name, function in sorted(FUNCTIONS.items()):
        if "sample_weight" in inspect.signature(function).parameters and name not in but:
            yield pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())


def cases(name):
    """Each option, with rows of two and of three classes if it is not refused for them."""
    for option in options(name):
        if {(name, value) for value in option.values()} & NOT_HERE:
            continue
        for k in (2,) if name in TWO_CLASSES else (2, 3):
            data = rows_of(k)
            try:
                yield option, data, found_by(name, data, WEIGHT, option)
            except (ValueError, TypeError) as error:
                assert "expected" in str(error), f"{name}, {option}, {k} classes: {error!r}"


def found_by(name, data, weight, option):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return dict(numbers(call(FUNCTIONS[name], data, sample_weight=weight, **option)))


def check_equal(name, option, found, expected, but=(), rtol=1e-7):
    """Every number, with the function, the option and the field in the message."""
    assert expected and found.keys() == expected.keys(), f"{name}, {option}: other fields"
    for field, value in expected.items():
        words = set(field.split("."))
        if not words & {*but, *POSITIONS}:
            where = f"{name}, {option}, {field or 'the value'}"
            np.testing.assert_allclose(found[field], value, rtol, 1e-9, err_msg=where)


@pytest.mark.parametrize("name", weighted())
def test_a_common_factor_of_fractional_weights_changes_only_sums_of_weights(name):
    for option, data, expected in cases(name):
        found = found_by(name, data, FACTOR * WEIGHT, option)
        for field in expected:
            if (name, field.rpartition(".")[2]) in TOTALS:
                found[field] = found[field] / FACTOR
        check_equal(name, option, found, expected)


@pytest.mark.parametrize("name", weighted())
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


@pytest.mark.parametrize("name", weighted(BY_POSITION))
def test_rows_in_another_order_give_every_number(name):
    order = np.random.default_rng(1).permutation(N)
    for option, data, expected in cases(name):
        if not {(name, value) for value in option.values()} & IN_ORDER:
            other = {key: value[order] for key, value in data.items()}
            found = found_by(name, other, WEIGHT[order], option)
            check_equal(name, option, found, expected, DRAWN.get(name, ()))
