"""Every option of a public function changes the result: alone and in company.

The options are read off the signatures. A string of a `Literal` and a switch need no
entry here; a number or an object needs one in `VALUES`, so that a new option without
one fails. In company means beside the positive class that sorts first, weights and
groups, where what is next to the option keeps what it promises: it is the swapped
columns, the repeated row, any names of the groups.
"""

import functools
import inspect
import warnings

import numpy as np
import pytest
from cases import run_every_case
from test_argument_names import FUNCTIONS, GIVEN
from test_functions import (
    BY_CLASS,
    COUNTING_ROWS,
    ENOUGH_DRAWS,
    NOT_REPEATED,
    OF_DRAWS,
    OF_PAIRS,
    STANDARDISED,
    call,
    rows,
)
from words import numbers, same, strings

from sklearn_calib.exceptions import CalibrationWarning

#: What is not an option: rows, seeds and words that have contracts of their own.
NOT_OPTIONS = {
    *("labels", "pos_label", "sample_weight", "groups", "random_state", "multilabel"),
    *("y_true", "y_proba", "kernel", "counts", "unit", "multiclass"),
    *(
        "soft_labels",
        "classes",
        "where",
        "n_jobs",
        "progress",
        "check_columns",
        "check_order",
    ),
}
#: Functions whose options are tested elsewhere, each with its reason.
ELSEWHERE = {
    **dict.fromkeys(
        ("to_code", "to_sql", "to_onnx", "to_json", "to_dict"), "text: tests/export"
    ),
    **dict.fromkeys(("from_dict", "from_json", "simplify"), "documents: tests/export"),
    **dict.fromkeys(("summarize", "find_distinct_labels"), "tables: tests/summary"),
    **dict.fromkeys(("as_eval_metric", "measure", "binary_measure"), "give a function"),
    **dict.fromkeys(("get_loss", "get_scorer", "get_recalibrator"), "give an object"),
    "lower_distance_to_calibration": "its interval has the same options",
    **dict.fromkeys(
        ("calibration_report", "multilabel_report"), "tests/test_report*.py"
    ),
    "canonical_proba": "tests/test_canonical.py",
    "canonical_weight": "tests/test_canonical.py",
}


def flipped(costs):
    """The table of costs in the order of the classes of these rows."""
    return lambda data: (
        np.asarray(costs)[::-1, ::-1] if data.get("flipped") else np.asarray(costs)
    )


COSTS = flipped([[0.0, 1.0], [4.0, 0.5]])
#: A value of every number and object, of all functions or of one; functions are given
#: the rows.
VALUES = {
    "level": 0.8,
    "n_resamples": 30,
    "cv": 4,
    "thresholds": (0.1, 0.3, 0.6),
    "costs": COSTS,
    "loss": "brier",
    "smoother": "isotonic",
    "norm": 2.0,
    "prevalence": 0.2,
    "resolution": 0.05,
    "p": 1.0,
    ("lp_calibration_bound", "p"): 3.0,
    "n_levels": 7,
    "n_bins": 4,
    "bandwidth": 0.3,
    "width": 0.3,
    "recalibrator": "beta",
    "harms": 0.02,
    ("decision_difference", "harms"): (0.02, 0.0),
    ("decision_curve", "recalibrated"): lambda data: data["second"],
    ("regret_curve", "recalibrated"): lambda data: data["second"],
    ("expected_metrics", "threshold"): 0.3,
    ("calibration_test", "statistic"): "expected_calibration_error",
    ("confidence_interval", "measure"): "brier_loss",
    ("paired_difference", "measure"): "brier_loss",
    ("decompose_loss", "features"): lambda data: data["second"] ** 2,
    ("refinement_curve", "stages"): (3, 9),
    ("refinement_error", "start"): 0.2,
    ("hosmer_lemeshow_test", "n_parameters"): 1,
    ("grade_calibration", "lights"): (0.4, 0.3),
    ("grade_calibration", "prudent_level"): 0.6,
    ("group_calibration", "min_rows"): 41,
    ("group_calibration", "groups"): lambda data: data["clusters"],
    ("group_calibration", "depth"): 2,
    ("safe_calibration_test", "n_splits"): 4,
    ("binning_sample_size", "delta"): 0.2,
    ("binning_sample_size", "n_classes"): 4,
    ("binning_sample_size", "n_bins"): 30,
    ("calibrated_mean", "scale"): (-1.0, 2.0),
    ("calibrated_mean", "bounds"): (-1.0, 3.0),
    ("calibrated_mean", "groups_unlabelled"): lambda _: np.arange(80) // 8,
    ("calibrated_mean", "power"): 0.3,
    ("calibrated_mean", "recalibrator"): "isotonic",
    ("internal_validation", "measures"): ("brier_loss",),
    ("validation_sample_size", "linear_predictor"): lambda _: np.linspace(-3, 1, 50),
    ("validation_sample_size", "c_statistic"): 0.8,
    ("validation_sample_size", "threshold"): 0.3,
    ("validation_sample_size", "error"): 0.02,
    ("validation_sample_size", "oe_width"): 0.4,
    ("validation_sample_size", "slope_width"): 0.4,
    ("validation_sample_size", "c_width"): 0.2,
    ("validation_sample_size", "net_benefit_width"): 0.1,
    ("estimate_angle", "covariance"): lambda _: np.diag([1.0, 2.0, 3.0]),
    ("estimate_angle", "link_slope"): 2.0,
    ("estimate_angle", "link_intercept"): 0.5,
    "n_samples": 70,
    ("make_high_dimensional", "n_features"): 20,
    ("make_high_dimensional", "covariance"): "identity",
    ("make_high_dimensional", "correlation"): 0.2,
    ("make_high_dimensional", "link_slope"): 1.0,
    ("make_high_dimensional", "link_intercept"): 0.0,
    ("make_high_dimensional", "degrees_of_freedom"): 9,
    ("make_overconfident", "sharpness"): 1.0,
    ("make_sign_perturbed", "n_values"): 5,
    ("make_sign_perturbed", "strength"): 0.05,
    ("make_two_gaussians", "mean"): lambda _: [0.5, 2.0],
    ("make_two_gaussians", "covariance"): lambda _: [[2.0, 0.0], [0.0, 1.0]],
    ("make_uniform_shift", "epsilon"): 0.2,
}

CLUSTERS = np.arange(80) % 10
#: What an option needs beside it to be taken, or to matter.
WITH = {
    ("kernel_calibration_error", "estimator"): {"multiclass": "canonical"},
    ("kernel_calibration_error", "bandwidth"): {"multiclass": "canonical"},
    ("calibrated_mean", "groups_unlabelled"): {
        "groups": CLUSTERS,
        "groups_unlabelled": CLUSTERS,
    },
    ("make_two_gaussians", "covariance"): {"mean": [0.5, 2.0]},
}
#: Options that change nothing here, each with its reason.
SAME = {
    (
        "confidence_interval",
        "method",
    ): "an option names what 'auto' takes: its own tests",
    (
        "kernel_calibration_error",
        "estimator",
    ): "an option names what 'auto' takes: its own tests",
    ("refinement_error", "start"): "where a search begins",
    **dict.fromkeys(
        (
            ("variational_calibration_interval", "norm"),
            ("variational_calibration_error", "norm"),
        ),
        "of several columns: tests/decomposition/test_variational.py",
    ),
    **dict.fromkeys(
        (("group_calibration", "n_bins"), ("group_calibration", "depth")),
        "of numbers, of several columns: tests/groups/test_group_calibration.py",
    ),
    (
        "ranked_probability_score",
        "order",
    ): "of two classes the score is Brier's: tests/metrics",
    ("hosmer_lemeshow_test", "n_parameters"): "of held_out=False: its own tests",
    **dict.fromkeys(
        (
            ("validation_sample_size", x)
            for x in ("threshold", "net_benefit_width", "error")
        ),
        "of several conditions the hardest: its own tests",
    ),
    **dict.fromkeys(
        (("estimate_angle", x) for x in ("link", "link_slope", "link_intercept")),
        "of a truth that is known: tests/linear",
    ),
    (
        "estimate_angle",
        "assume_centered",
    ): "the covariance is not estimated: tests/linear",
}
#: Options that cannot be given to these rows, or without groups, each with its reason.
REFUSED = {
    **dict.fromkeys(
        ("refinement_error", "temperature_refinement_log_loss"), "label_smoothing"
    ),
    "hosmer_lemeshow_test": "held_out",
    "validation_summary": "smoother",
    "validation_sample_size": "linear_predictor",
}
#: Options by which a row that weighs 2 is not two rows, beside those of
#: `test_functions`.
ROWS_COUNT = {"debias", "min_rows", "cv", "estimator", "n_bins", "n_resamples"}
#: Draws, folds and cases that make a call quick.
FEW = {"n_resamples": 20, "n_splits": 3, "cv": 3, "n_features": 30, "resolution": 0.02}


def value_of(name, option):
    return VALUES.get((name, option), VALUES.get(option))


def options():
    """(function, option, value) of every number, object, string and switch."""
    for name, function in FUNCTIONS.items():
        for option, parameter in inspect.signature(function).parameters.items():
            left_out = parameter.default is parameter.empty or option in NOT_OPTIONS
            if name in ELSEWHERE or left_out or option[0] == "_":
                continue
            found = [s for s in strings(parameter.annotation) if s != parameter.default]
            if REFUSED.get(name) == option or (name, option) in SAME:
                continue
            if isinstance(parameter.default, bool):
                found = [not parameter.default]
            elif not found or (name, option) in VALUES:
                found.append(value_of(name, option))
            yield from ((name, option, value) for value in found)


OPTIONS = list(options())


@functools.cache
def data_of(company):
    """Rows of two classes, and the words of the company."""
    data = rows(2)
    weight = 1 + (data["y"] == 0) + np.arange(len(data["y"])) % 3 % 2
    if company == "pos_label":
        return data | {"y": np.array(["a", "b"])[data["y"]]}, {"pos_label": "a"}
    if company == "sample_weight":
        return data, {"sample_weight": weight}
    return data, {"groups": data["clusters"]} if company == "groups" else {}


def other_rows(name, company):
    """The same said otherwise, in other rows, or None if it cannot be."""
    data, words = data_of(company)
    if company == "pos_label":
        turned = {key: data[key][:, ::-1] for key in ("first", "second")}
        named = np.where(data["y"] == "a", "b", "a")
        return data | turned | {"y": named, "flipped": True}, {}
    if company == "groups":
        return data, {"groups": np.array([*"zyxwvutsrq"])[::-1][data["clusters"]]}
    if company == "sample_weight":
        again = {
            key: np.repeat(one, words["sample_weight"], axis=0)
            for key, one in data.items()
        }
        return again, {}
    return None


def result(name, data, words, option=None, value=None):
    function = FUNCTIONS[name]
    known = inspect.signature(function).parameters
    given = {key: one for key, one in FEW.items() if key in known}
    given |= ENOUGH_DRAWS.get(name, {}) | GIVEN.get(name, {}) | words
    if option is not None:
        value = value(data) if callable(value) else value
        given |= WITH.get((name, option), {}) | {option: value}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return function(**given) if name in GIVEN else call(function, data, **given)


@functools.cache
def baseline(name, company, option):
    """What it gives without the option, beside what the option needs."""
    key = (name, option)
    data, words = data_of(company)
    return result(name, data, words | WITH.get(key, {}))


def differ(one, other):
    first, second = dict(numbers(one)), dict(numbers(other))
    equal = first.keys() == second.keys()
    return not equal or any(
        not np.array_equal(first[name], second[name]) for name in first
    )


SLOWER = (
    "lower_distance",
    "lp_",
    "make_high",
    "internal_",
    "validation_",
    "confidence_",
    "paired",
)


def parameters(of=OPTIONS, company=""):
    for name, option, value in of:
        known = inspect.signature(FUNCTIONS[name]).parameters
        if not company or (
            company in known and name not in GIVEN and option != company
        ):
            shown = value if isinstance(value, str | int | float) else "object"
            slow = (
                pytest.mark.slow
                if name.startswith(SLOWER) or option == "features"
                else ()
            )
            title = f"{name}-{option}={shown}"
            yield pytest.param(name, option, value, id=title, marks=slow)


def test_every_number_and_object_has_a_value():
    """A new option needs an entry in `VALUES`, or in `SAME` or `REFUSED` with the reason."""
    assert [one for one in OPTIONS if one[2] is None] == []
    named = {(name, option) for name, option, _ in OPTIONS}
    known = {
        (n, p) for n, f in FUNCTIONS.items() for p in inspect.signature(f).parameters
    }
    entries = {key for key in [*VALUES, *WITH, *SAME] if isinstance(key, tuple)}
    assert entries | {*REFUSED.items()} <= known
    assert len(named) > 100


def check_changes(name, option, value, company):
    data, words = data_of(company)
    found = result(name, data, words, option, value)
    assert differ(baseline(name, company, option), found), f"{option} changes nothing"
    return found


@pytest.mark.whole
@run_every_case(("name", "option", "value"), parameters())
def test_alone(name, option, value):
    found = check_changes(name, option, value, "")
    if option == "level":  # 0.8 instead of more: what is narrower lies inside
        wide, narrow = dict(numbers(baseline(name, "", option))), dict(numbers(found))
        for field in wide:
            last = field.rpartition(".")[2]
            sign = {"low": 1, "high": -1}.get(last, 0)
            assert not np.any(sign * (narrow[field] - wide[field]) < -1e-12)


#: Fields of draws that are made column by column.
DRAWN_BY_COLUMN = {"lp_calibration_test": (".null_mean", ".null_quantile", ".pvalue")}


@pytest.mark.whole
@run_every_case(("name", "option", "value"), parameters(company="pos_label"))
def test_beside_the_positive_class_that_sorts_first(name, option, value):
    """It is the last class of swapped columns, in whatever else is asked for."""
    found = check_changes(name, option, value, "pos_label")
    if value in ("classwise", "top_label"):
        return  # one result for each class, in the order of the columns
    data, words = other_rows(name, "pos_label")
    other = result(name, data, words, option, value)
    # Labels are drawn column by column, so the draws of swapped columns are others.
    drawn = DRAWN_BY_COLUMN.get(name, ())
    same(other, found, rtol=1e-6, exact=False, but=drawn, turned=BY_CLASS)


@pytest.mark.whole
@run_every_case(("name", "option", "value"), parameters(company="sample_weight"))
def test_beside_weights(name, option, value):
    """A row of weight 2 is two rows, wherever neither folds nor single rows count."""
    found = check_changes(name, option, value, "sample_weight")
    folds = "cv" in inspect.signature(FUNCTIONS[name]).parameters
    counted = (
        option in ROWS_COUNT or (option, value) in NOT_REPEATED or name in COUNTING_ROWS
    )
    if folds or counted:
        return
    data, words = other_rows(name, "sample_weight")
    but = [".statistic"] if name in STANDARDISED else OF_DRAWS.get(name, ())
    but = [
        *but,
        *(n for n, _ in numbers(found) if n.startswith(OF_PAIRS.get(name, "-"))),
    ]
    same(result(name, data, words, option, value), found, rtol=1e-5, but=but)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore:.*five clusters with an event")
@run_every_case(("name", "option", "value"), parameters(company="groups"))
def test_beside_groups(name, option, value):
    """Whatever their names are."""
    found = check_changes(name, option, value, "groups")
    data, words = other_rows(name, "groups")
    same(result(name, data, words, option, value), found, rtol=1e-9, exact=False)
