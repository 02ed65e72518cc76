"""Options at the ends of what float64 holds, and counts that would never end."""

import warnings
from numbers import Real

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import Interval

from sklearn_calib import log_proba, recalibrators
from sklearn_calib.exceptions import CalibrationWarning, InvalidInputError
from sklearn_calib.inference import (
    CalibrationTester,
    binning_sample_size,
    calibration_test,
    internal_validation,
    validation_sample_size,
)
from sklearn_calib.metrics import convolved_calibration_error
from sklearn_calib.monitoring import safe_calibration_test
from sklearn_calib.recalibrators import (
    GroupRecalibration,
    MulticlassBinning,
    MultilabelCalibration,
    Recalibrator,
    StackedCalibration,
)

RNG = np.random.default_rng(0)
P = RNG.random(80)
Y = (RNG.random(80) < P).astype(int)
THREE = RNG.dirichlet(np.ones(3), 80)
OF_THREE = np.arange(80) % 3


def _real_options():
    for name in recalibrators.__all__:
        method = getattr(recalibrators, name)
        if isinstance(method, type) and issubclass(method, Recalibrator):
            for option, rules in getattr(method, "_parameter_constraints", {}).items():
                if any(
                    isinstance(rule, Interval) and rule.type is Real for rule in rules
                ):
                    yield pytest.param(method, option, id=f"{name}-{option}")


@run_every_case(("method", "option"), _real_options())
@run_every_case("value", [5e-324, 1e-305, 1e308])
def test_no_option_of_a_map_is_lost_in_arithmetic(method, option, value):
    with raises_invalid_input(ValueError, expected=option):
        method(**{option: value}).fit(P, Y)


@pytest.mark.parametrize("value", [1e-100, 1e100])
@pytest.mark.parametrize(
    ("method", "option"),
    [
        ("TrendFiltering", "penalty"),
        ("StructuredMatrixScaling", "penalty"),
        ("MatrixScaling", "penalty"),
        ("VectorScaling", "penalty"),
        ("StructuredVectorScaling", "penalty"),
        ("AngularCalibration", "norm"),
    ],
)
def test_the_ends_that_are_allowed_give_numbers(method, option, value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        map_ = getattr(recalibrators, method)(**{option: value}).fit(THREE, OF_THREE)
    assert np.isfinite(map_.predict_proba(THREE)).all()
    for name in ("objective_", "gradient_norm_", "newton_decrement_"):
        assert np.isfinite(getattr(map_, name, 0.0))


@pytest.mark.parametrize("value", [5e-324, 1e308])
def test_options_of_maps_of_groups_and_of_labels(value):
    with raises_invalid_input(
        ValueError, expected="strength of 0, or from 1e-100 to 1e"
    ):
        GroupRecalibration(strength=value).fit(P, Y, np.arange(80) % 3)
    with raises_invalid_input(
        ValueError, expected="shrinkage of 0, or from 1e-100 to 1e"
    ):
        MultilabelCalibration(shrinkage=value).fit(THREE, (THREE > 0.5).astype(int))


@pytest.mark.parametrize("given", [{"p": 1e100}, {"epsilon": 1e-100}, {"p": 1000.0}])
def test_bins_of_a_far_norm(given):
    fitted = MulticlassBinning(**given, n_levels=10, min_count=0).fit(THREE, OF_THREE)
    assert fitted.beta_ > 0
    if "p" in given:  # towards the largest error, whose tolerance is epsilon itself
        assert fitted.beta_ == pytest.approx(0.05, rel=0.01)


def test_logarithms_of_nan():
    with raises_invalid_input(ValueError, value="NaN"):
        log_proba(np.array([[0.5, np.nan]]))


@pytest.mark.parametrize("method", ["optimism", ".632+", "cross_validation"])
def test_weights_that_leave_no_model_are_told(method):
    X = RNG.normal(size=(80, 2))
    with pytest.warns(CalibrationWarning, match="none of slope in"):
        internal_validation(
            LogisticRegression(),
            X,
            Y,
            sample_weight=1e-300,
            n_resamples=2,
            method=method,
        )


def test_counts_without_an_end():
    with raises_invalid_input(
        ValueError, expected=".*n_splits <= 1000", value="1000000"
    ):
        safe_calibration_test(Y, P, n_splits=10**6)
    with pytest.raises(ValueError, match="n_resamples <= 1000000, got"):
        calibration_test(Y, P, n_resamples=10**12)


@pytest.mark.parametrize("cv", [81, 100001])
def test_no_more_folds_of_a_stack_than_rows(cv):
    with raises_invalid_input(ValueError, expected="at most 80 folds as cv"):
        StackedCalibration(["identity", "platt"], cv=cv).fit(P, Y)


def test_a_stack_of_as_many_folds_as_rows():
    assert StackedCalibration(["identity", "platt"], cv=80).fit(P, Y).weights_


ODD_NUMBERS = (5e-324, 1e-200, 1e-16, 1 - 1e-16, 1e200)


def plan_validation(**options):
    return validation_sample_size(**{"c_statistic": 0.7, "prevalence": 0.1, **options})


def plan_binning(**options):
    return binning_sample_size(**{"p": 2.0, "epsilon": 0.1, **options})


def plan_binning_of_the_paper(**options):
    return plan_binning(method="paper", **options)


def decide(**options):
    return CalibrationTester(**{"epsilon": 0.1, **options}).test(Y, P)


def convolve(**options):
    return convolved_calibration_error(Y, P, **options)


ODD_OPTIONS = {
    plan_validation: [
        "oe_width",
        "slope_width",
        "c_width",
        "net_benefit_width",
        "threshold",
        "error",
        "level",
        "prevalence",
        "c_statistic",
    ],
    plan_binning: ["epsilon", "delta"],
    plan_binning_of_the_paper: ["epsilon", "delta"],
    decide: ["epsilon", "tolerance", "delta"],
    convolve: ["bandwidth"],
}


@run_every_case(
    ("call", "option"),
    [(call, option) for call, options in ODD_OPTIONS.items() for option in options],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_odd_numbers_give_a_result_or_a_sentence(call, option):
    """Neither a division by 0 nor an overflow reaches the user."""
    for value in ODD_NUMBERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            try:
                call(**{option: value})
            except InvalidInputError as error:
                assert "expected" in str(error)
