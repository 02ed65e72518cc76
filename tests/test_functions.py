"""The contract of plain functions and measures, read off their signatures.

Whatever has `pos_label`, `labels`, `sample_weight` or `random_state` keeps what the
word promises, with every string that its annotations allow, not with the defaults
alone.
"""

import inspect
import warnings
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest
from cases import run_every_case
from offered import list_subpackages, names_of
from words import differ, numbers, same, strings

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import Measure

WORDS = {"pos_label", "labels", "sample_weight", "random_state"}
SUBPACKAGES = (
    *(
        "decisions",
        "decomposition",
        "groups",
        "inference",
        "linear",
        "metrics",
        "monitoring",
    ),
    *("report", "summary"),
)
N = 80

#: Functions whose words are tested elsewhere, each with its reason.
EXEMPT = {
    "simulate_bootstrap_distribution": "takes a validated case: its callers are tested",
    "simulate_null_distribution": "takes a validated case: its callers are tested",
    "simulate_distribution": "takes a function that draws: its callers are tested",
    "validate_predictions": "gives the rows as they are: tests/metrics/test_label_cases.py",
    "validate_multilabel": "takes a table of labels: tests/metrics/test_label_cases.py",
    "canonical_labels": "is one of the words: tests/test_canonical.py",
    "canonical_weight": "is one of the words: tests/test_canonical.py",
    "approximate_leave_one_out": "takes a fitted model: tests/linear/test_leave_one_out.py",
    "logistic_intervals": "takes a fitted model: tests/recalibrators/test_adaptive.py",
    "calibrated_mean": "takes few labels, weights are chances: "
    "tests/inference/test_calibrated_mean.py",
    "internal_validation": "takes features: tests/inference/test_internal_validation.py",
    "prior_shift_test": "takes a second sample: tests/inference/test_prior_shift_test.py",
    "summarize": "takes a table: tests/summary/test_sources.py",
    "find_column_order": "gives words: tests/test_report_columns.py",
    "calibration_report": "has its own tests of every word: tests/test_report*.py",
    "multilabel_report": "takes a table of labels: tests/test_report_labels.py",
}
#: Options for which a weight of 2 is not two rows.
NOT_REPEATED = {
    ("n_bins", "cube_root"): "the number of bins is of the number of rows",
    (
        "strategy",
        "polynomial",
    ): "its degree is tested for as many rows as the weights are worth",
    ("bandwidth", "median"): "the median is one of the pairs of rows",
    ("estimator", "unbiased"): "a row is not paired with itself",
    ("estimator", "linear"): "pairs of neighbours",
}
#: Functions for which it is not either.
COUNTING_ROWS = {
    "lp_calibration_bound": "bounds widen where fewer rows carry the weight"
}
#: Fields that are of pairs of different rows, or of a mean that more rows make more
#: certain, or the number of equally weighted rows that are as good.
OF_PAIRS = {
    "expected_metrics": (".auc", ".standard_deviations"),
    "risk_coverage_curve": (".rows",),
    "variational_calibration_interval": (
        ".low",
        ".high",
        ".lower_bound",
        ".standard_error",
    ),
}
#: Fields of one row and one column per class, which come in the other order too.
BY_CLASS = (".confusion",)
#: Fields that are standardised by an error, and so depend on how many rows there are.
STANDARDISED = {"cumulative_test", "expected_cost_test", "spiegelhalter_test"}
DRAWN = ("ICI", "E50", "E90", "Emax", "scaled Brier", "AUC", "Nagelkerke R2")
#: Rows of a table that depend on how many rows of data there are: a mean of draws, a
#: statistic.
OF_DRAWS = {
    "validation_summary": [
        *(f".tables.{i}.rows.{name}.null_mean" for i in range(3) for name in DRAWN),
        *(f".tables.{i}.rows.Cox chi-square.estimate" for i in range(3)),
    ]
}
#: Options that are rejected, or last a second per call, without another one.
WITH = {
    ("kernel_calibration_error", "bandwidth"): {"multiclass": "canonical"},
    ("kernel_calibration_error", "estimator"): {"multiclass": "canonical"},
    ("lower_distance_interval", "method"): {"resolution": 0.02},
    ("lower_distance_to_calibration", "method"): {"resolution": 0.02},
}
#: Of two classes only, so that a third cannot be without rows.
TWO_CLASSES = {
    "decision_curve": "acts or does not",
    "decision_difference": "acts or does not",
    "regret_curve": "acts or does not",
    "grade_calibration": "has grades of one probability",
}
#: Draws that it takes for an interval to exclude anything: 1 / (1 + n_resamples) is
#: below its tail.
ENOUGH_DRAWS = {"paired_difference": {"n_resamples": 60}}
#: Results with NaN and a warning where a class has no rows.
WARNING = {"confidence_interval", "validation_summary"}
SLOW = {"confidence_interval", "paired_difference", "validation_summary"}
SLOW |= {"variational_calibration_interval"}
#: Arguments that tests give, by name; all else is left at its default.
QUICK = {
    "measure": "calibration_error",
    "n_resamples": 20,
    "n_splits": 3,
    "thresholds": (0.25, 0.5),
    "cv": 3,
}


def functions():
    """Public functions and measures with one of the words, by name."""
    found = {}
    for subpackage in SUBPACKAGES:
        module = import_module(f"sklearn_calib.{subpackage}")
        for name in names_of(subpackage):
            thing = getattr(module, name)
            callable_ = inspect.isfunction(thing) or isinstance(thing, Measure)
            if callable_ and WORDS & set(inspect.signature(thing).parameters):
                found[name] = thing
    return found


FUNCTIONS = {name: thing for name, thing in functions().items() if name not in EXEMPT}


def having(word, but=()):
    """Parameters of a test: the functions that have the word."""
    names = sorted(
        n for n, f in FUNCTIONS.items() if word in inspect.signature(f).parameters
    )
    marks = {name: pytest.mark.slow for name in SLOW}
    return [pytest.param(n, marks=marks.get(n, ())) for n in names if n not in but]


def options(name):
    """Keyword arguments: none, and each string option by itself."""
    yield {}
    for option, parameter in inspect.signature(FUNCTIONS[name]).parameters.items():
        if option not in ("multilabel", "kind"):  # of other kinds of arguments
            for value in strings(parameter.annotation):
                if value != parameter.default:
                    yield {option: value} | WITH.get((name, option), {})


def rows(k, seed=0):
    """Labels and predictions of two models, of k classes, and groups."""
    rng = np.random.default_rng(seed)
    first = rng.dirichlet(np.ones(k), N)
    second = 0.7 * first + 0.3 * rng.dirichlet(np.ones(k), N)
    law = np.cumsum(0.6 * first + 0.4 / k * np.linspace(0.5, 1.5, k), axis=1)
    y = (rng.random(N)[:, None] * law[:, -1:] > law).sum(axis=1)
    return {
        "y": y,
        "first": first,
        "second": second,
        "groups": np.arange(N) % 2,
        "clusters": np.arange(N) % 10,
    }


def call(function, data, **more):
    """The function on these rows: arguments by their names."""
    name = getattr(function, "__name__", "")
    by_name = {
        "y_true": data["y"],
        "y_proba": data["first"],
        "first_proba": data["first"],
        "second_proba": data["second"],
        "staged_proba": [data["first"], data["second"]],
        # segments of `group_calibration`, clusters of rows elsewhere, of which two say
        # little
        "groups": data["groups" if name == "group_calibration" else "clusters"],
        "grades": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],  # out of order
        "min_rows": 10,
    } | QUICK
    known = inspect.signature(function).parameters
    given = {name: value for name, value in by_name.items() if name in known}
    return function(**given | more)


@contextmanager
def warning_of(name):
    """A function that warns where a class has no rows may do so."""
    with warnings.catch_warnings():
        if name in WARNING:
            message = ".*expected (both outcomes|rows of every class)"
            warnings.filterwarnings("ignore", message, CalibrationWarning)
        yield


def on_each(name, check, classes=(2, 3), but=()):
    """Run a check with every option, of two and of three classes; at least one must be accepted."""
    for option in options(name):
        if set(option) & set(but) or set(option.items()) & set(but):
            continue
        ran = 0
        for k in classes:
            try:
                check(rows(k), option)
                ran += 1
            except (ValueError, TypeError) as error:
                worded = "expected" in str(error)
                assert worded, f"{option}, {k} classes: {error!r}"
        assert ran, f"{option} is refused for {classes} classes"


def test_every_function_is_here():
    assert len(FUNCTIONS) > 40
    unknown = set(EXEMPT) - set(functions()) - {"canonical_labels", "canonical_weight"}
    assert not unknown
    elsewhere = {
        name
        for subpackage in set(list_subpackages()) - set(SUBPACKAGES)
        for name in names_of(subpackage)
        if {"pos_label", "labels", "sample_weight"} & list_parameters(subpackage, name)
    }
    # Tested in tests/recalibrators/test_cross_fitting.py and tests/test_canonical.py.
    assert elsewhere == {"cross_fitted_proba", "canonical_weight"}


def list_parameters(subpackage, name):
    """Return the names of a function's parameters; none for other objects."""
    thing = getattr(import_module(f"sklearn_calib.{subpackage}"), name)
    return (
        set(inspect.signature(thing).parameters) if inspect.isfunction(thing) else set()
    )


@run_every_case("name", having("pos_label"))
def test_swapped_classes_are_flipped_columns(name):
    function = FUNCTIONS[name]

    def check(data, option):
        if option.get("multiclass") in ("classwise", "top_label"):
            return  # one result for each class, in the order of the columns
        names = np.array(["a", "b"])
        flipped = {key: data[key][:, ::-1] for key in ("first", "second")}
        one = call(function, data | {"y": names[data["y"]]}, pos_label="a", **option)
        swapped = data | flipped | {"y": names[1 - data["y"]]}
        same(call(function, swapped, pos_label="b", **option), one, turned=BY_CLASS)
        # the last class is the default
        same(call(function, swapped, **option), one, turned=BY_CLASS)

    on_each(name, check, classes=(2,))


@run_every_case("name", having("sample_weight", but=COUNTING_ROWS))
def test_weight_2_is_repetition(name):
    function = FUNCTIONS[name]

    def check(data, option):
        weight = 1 + (data["y"] == 0) + np.arange(N) % 3 % 2
        again = {key: np.repeat(value, weight, axis=0) for key, value in data.items()}
        folds = inspect.signature(function).parameters.keys() & {"cv"}
        given, repeated = option, option
        if folds:  # copies of a row in the fold of the row
            fold = np.arange(N) % 3
            pairs = [(fold != one, fold == one) for one in range(3)]
            given = option | {
                "cv": [tuple(map(np.flatnonzero, pair)) for pair in pairs]
            }
            pairs = [[np.repeat(rows, weight) for rows in pair] for pair in pairs]
            repeated = option | {
                "cv": [tuple(map(np.flatnonzero, pair)) for pair in pairs]
            }
        found = call(function, data, sample_weight=weight, **given)
        but = [".statistic"] if name in STANDARDISED else OF_DRAWS.get(name, ())
        but = [
            *but,
            *(n for n, _ in numbers(found) if n.startswith(OF_PAIRS.get(name, "-"))),
        ]
        same(call(function, again, **repeated), found, rtol=1e-5, but=but)
        assert differ(call(function, data, **given), found), (
            f"{option}: weights change nothing"
        )

    on_each(name, check, but=NOT_REPEATED)


@pytest.mark.filterwarnings("ignore:.*five clusters with an event")
@run_every_case("name", having("labels", but=TWO_CLASSES))
def test_a_class_without_rows(name):
    """With `labels` the columns stay where they are: the names of the classes do not matter."""
    function = FUNCTIONS[name]
    words = np.array(["x", "y", "z"])

    def check(data, option):
        k = data["first"].shape[1]
        for missing in range(k) if k > 2 else ():
            kept = data["y"] != missing
            some = {key: value[kept] for key, value in data.items()}
            found = call(function, some, labels=np.arange(k), **option)
            named = some | {"y": words[some["y"]]}
            in_words = option | {"labels": words[:k]}
            if "order" in inspect.signature(function).parameters:
                in_words["order"] = words[:k]  # text has none of its own
            same(call(function, named, **in_words), found)
            weighted = "sample_weight" in inspect.signature(function).parameters
            if weighted:
                same(
                    call(function, data, sample_weight=1.0 * kept, **option),
                    found,
                    rtol=1e-5,
                )

    with warning_of(name):
        on_each(name, check, classes=(3,))


@run_every_case("name", having("labels"))
def test_an_order_that_the_columns_cannot_have(name):
    """A warning at the user's line, whose order hints it; correct columns do not warn."""
    words = np.array(["a", "b", "c"])
    for k in (2, 3) if name not in TWO_CLASSES else (2,):
        data, order = rows(k), np.roll(words[:k], 1)
        right = 0.9 * np.eye(k)[data["y"]]
        data |= {
            "y": words[data["y"]],
            "first": right + 0.1 / k,
            "second": right + 0.1 / k,
        }
        with pytest.warns(CalibrationWarning) as caught:
            call(FUNCTIONS[name], data, labels=order)
        said = [one for one in caught if "columns that fit" in str(one.message)]
        assert said and {one.filename for one in said} == {__file__}
        expected = (
            f"expected columns in the order of labels={order.tolist()}, got columns"
        )
        for one in said:
            assert str(one.message).startswith(
                f"{expected} that fit {words[:k].tolist()}"
            )
        honest = {key: np.roll(data[key], 1, axis=1) for key in ("first", "second")}
        with warnings.catch_warnings():
            # nearly certain and right
            warnings.simplefilter("ignore", CalibrationWarning)
            warnings.filterwarnings("error", ".*columns that fit", CalibrationWarning)
            call(FUNCTIONS[name], data | honest, labels=order)


@run_every_case("name", having("random_state"))
def test_a_seed_gives_its_draws(name):
    function = FUNCTIONS[name]
    changed = []

    def check(data, option):
        given = option | ENOUGH_DRAWS.get(name, {})
        first = call(function, data, random_state=0, **given)
        same(call(function, data, random_state=0, **given), first, rtol=0, exact=False)
        changed.append(differ(first, call(function, data, random_state=1, **given)))

    on_each(name, check)
    assert any(changed)
