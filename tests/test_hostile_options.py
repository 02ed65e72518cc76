"""Any value for any argument: it works, or is rejected in words.

Of the valid calls of the other contracts, read off `__all__` (functions, measures,
constructors, methods that learn, displays), one argument or two are replaced by values
of `HOSTILE`. These are drawn; a failure names the call and the seed. The quick part
draws few, the weekly one many.
"""

import copy
import datetime
import decimal
import functools
import inspect
import random
import re
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import test_argument_names as names
import test_every_constructor as constructors
import test_methods as maps
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError
from test_every_option import FEW
from test_first_calls import MAKERS
from test_functions import ENOUGH_DRAWS, call
from words import numbers

from sklearn_calib.displays import Display
from sklearn_calib.exceptions import CalibrationWarning, InvalidInputError

NAN, INF = float("nan"), float("inf")


class Nothing:
    """Of no kind that anything takes."""

    def __repr__(self):
        return "<nothing>"


#: Values that some user passes some day, each made anew.
HOSTILE = [
    *(
        None,
        True,
        False,
        np.True_,
        -1,
        0,
        1,
        2,
        7,
        10**30,
        -(10**30),
        0.5,
        -0.5,
        1e-320,
        1e308,
    ),
    *(
        NAN,
        INF,
        -INF,
        1j,
        np.int8(3),
        np.uint64(2**63),
        np.float16(0.1),
        np.float32("nan"),
    ),
    *(
        "",
        "01",
        "0",
        "nan",
        "\ud800",
        "x" * 5000,
        "\x00",
        "a\nb",
        b"log",
        b"",
        pd.NA,
        pd.NaT,
    ),
    *(
        Nothing(),
        Nothing,
        len,
        Ellipsis,
        NotImplemented,
        slice(None),
        range(3),
        range(0),
    ),
    *(
        decimal.Decimal("0.5"),
        Fraction(1, 3),
        datetime.date(2020, 1, 1),
        np.datetime64("2020"),
    ),
    *(
        np.timedelta64(3, "s"),
        datetime.timedelta(1),
        pd.Timestamp(0),
        pd.Interval(0, 1),
    ),
    *(
        (),
        [],
        {},
        set(),
        {0, 1},
        {"a"},
        frozenset(["a"]),
        (0.5,),
        (1, 0),
        (0.2, 0.1, 0.1),
    ),
    *(
        [[]],
        [[1], [2, 3]],
        [1, [2]],
        [None],
        [NAN],
        ["a", 1],
        [[0, 1], [1, 0]],
        [[0, NAN], [1, 0]],
    ),
    *(
        {"a": 1},
        {1: "a"},
        {None: None},
        ["a", "a"],
        [[["a"]]],
        [True, False],
        [1j, 0],
        [10**400],
    ),
    *([Nothing(), Nothing()], ["\ud800", "b"], [b"a", b"b"], [pd.NA, 1], [INF, -INF]),
    *(np.array(0.5), np.array("log"), np.array(None), np.array([]), np.zeros((0, 2))),
    *(
        np.arange(3),
        np.arange(80),
        np.zeros((2, 2, 2)),
        np.full(80, NAN),
        np.eye(80)[0],
    ),
    *(
        np.array([1, 2], object),
        np.array([1j] * 80),
        np.array(["a"] * 80),
        np.zeros(80, "M8[s]"),
    ),
    *(
        np.arange(80.0)[:, None],
        np.zeros((80, 3)),
        np.ma.array(np.zeros(80), mask=True),
        np.zeros(80, "i4,f8"),
    ),
    *(
        pd.Series([0.5] * 80),
        pd.Series([pd.NA] * 80),
        pd.Series(["a"] * 80, dtype="category"),
    ),
    *(
        pd.Series(range(80), dtype="Int64"),
        pd.DataFrame(np.eye(2)),
        pd.Index(["a", "b"]),
    ),
    *(pd.DataFrame(np.full((80, 2), 0.5), columns=["a", "a"]), pd.DataFrame()),
    *(pd.DataFrame({"a": [1, "x"] * 40}), iter([1, 2]), np.random.default_rng(0)),
]

# -- valid calls: what is called, the arguments that make it valid, and those that are replaced ----


#: Not replaced: who asks, processes, which take seconds to start, what scikit-learn
#: reads; `source` is shown as it is.
LEFT = ("self", "where", "keeps_unit", "n_jobs", "param_grid", "X_train", "source")


def keywords(function):
    known = inspect.signature(function).parameters.values()
    kept = [p.name for p in known if p.kind != p.VAR_KEYWORD and p.name[0] != "_"]
    return [name for name in kept if name not in LEFT]


def of_function(function):
    """A public function, or a maker of a display, with few draws."""
    name, few = (
        function.__name__,
        {k: v for k, v in FEW.items() if k in keywords(function)},
    )
    given = few | ENOUGH_DRAWS.get(name, {}) | names.GIVEN.get(name, {})
    valid = (
        function
        if name in names.GIVEN
        else functools.partial(call, function, names.DATA)
    )
    # of the user's own model
    its_own = names.OF_MODEL if {"model", "estimator"} & {*given} else ()
    left = {*its_own, *(one for owner, one in names.CALLERS_OWN if owner == name)}
    return valid, given, [one for one in keywords(function) if one not in left]


def of_map(cls, k):
    """A recalibrator of k classes: constructor, fit and predictions."""
    proba, y = (part[:80] for part in maps.rows(k))

    def run(**options):
        model = maps.build(cls, tuple(options.items()))
        more = (
            {"groups": names.GROUPS} if "groups" in keywords(cls.predict_proba) else {}
        )
        return model.fit(proba, y, **more).predict_proba(proba, **more)

    return run, {}, keywords(cls)


def of_method(thing, method, given):
    def run(**given):
        return getattr(copy.deepcopy(thing), method)(**given)

    # of the user's own model
    its_own = names.OF_MODEL if hasattr(thing, "estimator") else ()
    known = keywords(getattr(type(thing), method))
    return run, given, [name for name in known if name not in its_own]


#: Results whose description names the numbers that are NaN.
NAN_IS_SAID = {"validation_summary", "make_sign_perturbed", "multilabel_report"}
#: Classes that no user builds.
FOR_AUTHORS = {
    "CellSample",
    "CellProblems",
    "CurveRows",
    "ProperLoss",
    "Recalibrator",
    "Staging",
}
FOR_AUTHORS |= {"ExportedMap", "PairedLosses", "Verdict"}


def valid_calls():
    """By name."""
    for name, function in names.FUNCTIONS.items():
        yield name, of_function(function)
    for name in sorted({*constructors.BUILT} - FOR_AUTHORS):
        cls = constructors.BUILT[name]
        yield name, (functools.partial(constructors.outcome, name), {}, keywords(cls))
    for cls in maps.CLASSES:
        yield from ((f"{cls.__name__}, {k} classes", of_map(cls, k)) for k in (2, 3))
    for name, (thing, given) in names.METHODS.items():
        for method in (
            ("update",) if callable(getattr(thing, "update", None)) else names.LEARN
        ):
            if not callable(getattr(type(thing), method, None)):
                continue
            yield f"{name}.{method}", of_method(thing, method, given)
    for cls, name in MAKERS:
        known = {*keywords(getattr(cls, name))}
        if {"y_true", "staged_proba"} & known and "recalibrators" not in known:
            yield f"{cls.__name__}.{name}", of_function(getattr(cls, name))


CALLS = {name: parts for name, parts in valid_calls() if parts[2]}

# -- one call -------------------------------------------------------------------------------------

WORDED = re.compile(r"[^\n]*expected .*, got .*\. .*\.", re.DOTALL)


def is_worded(error):
    """Whether an error is of a documented kind and has what was expected, got, and to be done."""
    if isinstance(error, OSError):  # the system's own words for a path
        return True
    # RuntimeError: equations of valid numbers that were not solved.
    kind = isinstance(error, ValueError | TypeError | RuntimeError)
    if isinstance(error, InvalidInputError):  # may be a sentence of another form
        return kind and error.hint
    # Words of scikit-learn, and of the learner of a user, for its own arguments.
    if re.search(
        "inconsistent numbers of samples|needs samples of at least 2", str(error)
    ):
        return kind
    return kind and (
        isinstance(error, InvalidParameterError) or WORDED.fullmatch(str(error))
    )


def attempt(name, replaced):
    """What is wrong with the call, or None."""
    run, given, _ = CALLS[name]
    given = copy.deepcopy(given) | replaced
    before = repr(given)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = run(**given)
        except Exception as error:
            return None if is_worded(error) else error
    if repr(given) != before:
        return "changes its arguments"
    told = name in NAN_IS_SAID or any(
        issubclass(one.category, CalibrationWarning) for one in said
    )
    held = () if told or isinstance(found, Display | BaseEstimator) else numbers(found)
    if any(np.isnan(array).any() for _, array in held):
        return "gives NaN without a word"
    return None


# -- the tests ------------------------------------------------------------------------------------


def check_draws(seed, n_draws, tmp_path, monkeypatch):
    """Some calls at random; what is written goes to a folder that stays empty."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(seed)
    for number in range(n_draws):
        name = rng.choice([*CALLS])
        picked = rng.sample(
            CALLS[name][2], min(len(CALLS[name][2]), rng.choice((1, 1, 2)))
        )
        replaced = {argument: copy.deepcopy(rng.choice(HOSTILE)) for argument in picked}
        shown = f"seed {seed}, draw {number}: {name} with {replaced}"
        wrong = attempt(name, replaced)
        assert wrong is None, f"{shown} {wrong!r}"
        assert not [*tmp_path.iterdir()], f"{shown} writes a file"


def test_every_subpackage_is_called():
    assert len(CALLS) > 200


FRAME = pd.DataFrame(np.full((80, 2), 0.5), columns=["a", "a"])
#: Calls that draws have found once, with the value and whether it is accepted.
FOUND_CALLS = [
    ("calibration_report", "soft_labels", np.arange(80.0)[:, None], False),
    ("multilabel_report", "n_resamples", np.arange(80), False),
    ("variational_calibration_interval", "multiclass", FRAME, False),
    ("summary.update", "y_true", [[1], [2, 3]], False),
    ("convolved_calibration_error", "bandwidth", 50.0, True),
    ("convolved_calibration_error", "bandwidth", 1e308, True),
    ("CalibratedModel", "cv", np.array(0.5), False),
    ("PriorShift, 2 classes", "mean", [10**400], False),
    ("canonical_proba", "kind", np.array([]), False),
    ("cross_fitted_proba", "cv", np.timedelta64(3, "s"), False),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "argument", "value", "accepted"), FOUND_CALLS)
def test_calls_that_draws_have_found(name, argument, value, accepted):
    assert attempt(name, {argument: value}) is None
    run, given, _ = CALLS[name]
    if accepted:
        run(**copy.deepcopy(given) | {argument: value})
    else:
        with pytest.raises((ValueError, TypeError)):
            run(**copy.deepcopy(given) | {argument: value})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_some_draws(seed, tmp_path, monkeypatch):
    check_draws(seed, 10, tmp_path, monkeypatch)


@pytest.mark.cross
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_draws(seed, tmp_path, monkeypatch):
    check_draws(seed, 500, tmp_path, monkeypatch)
