"""Every public call with two arguments of the same rows compares their indexes.

`test_named_rows` does so for functions of labels and probabilities and for `fit` of
recalibrators. Here are all other calls, read off their signatures: a new one fails
without an entry. The accuracy that `score` returns is scikit-learn's own, which
compares nothing.
"""

import inspect
import warnings
from functools import cache
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from offered import list_subpackages, names_of
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.multioutput import MultiOutputClassifier
from test_methods import CLASSES
from test_named_rows import RULE, cases

import sklearn_calib.displays
from sklearn_calib.classifiers import (
    AngularCalibratedClassifier,
    CalibratedModel,
    RefineThenCalibrateCV,
)
from sklearn_calib.decisions import CostSensitiveClassifier, SelectiveClassifier
from sklearn_calib.decomposition import decompose_loss
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.groups import (
    Grades,
    GroupRecalibration,
    MulticalibratedModel,
    MulticalibratedScores,
    grade_calibration,
)
from sklearn_calib.inference import (
    CalibrationTester,
    PairedLosses,
    calibrated_mean,
    internal_validation,
    prior_shift_test,
    validation_sample_size,
)
from sklearn_calib.linear import (
    approximate_leave_one_out,
    estimate_angle,
    logistic_intervals,
)
from sklearn_calib.metrics import get_scorer
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    AdaptiveCalibration,
    MultilabelCalibration,
    OnlineCalibration,
    PlattScaling,
    PriorShift,
    cross_fitted_proba,
)
from sklearn_calib.report import (
    calibration_report,
    find_column_order,
    multilabel_report,
)
from sklearn_calib.summary import CalibrationSummary

N = 60
#: Calls that need no entry, each with its reason.
EXEMPT = {
    "validate_predictions": "behind all measures, which test_named_rows has",
    "validate_multilabel": "behind the measures of many labels",
    "Recalibrator.fit": "the common one of all recalibrators, which test_named_rows has",
    "Staging.fit": "fits a learner to the rows of RefineThenCalibrateCV",
    "CalibratingFunctionDisplay.from_recalibrators": "takes rows as from_predictions does",
}
rng = np.random.default_rng(0)
FEATURES = rng.normal(size=(N, 2))
P = 1 / (1 + np.exp(-2 * FEATURES[:, 0]))
Y = (rng.random(N) < P).astype(int)
ROWS = {
    "X": FEATURES,
    "y": Y,
    "p": P,
    "pair": np.column_stack([1 - P, P]),
    "sample_weight": np.ones(N),
    "groups": np.arange(N) % 4,
    "counts": np.ones(N, dtype=int),
    "time": np.arange(N) * 1.0,
    "intervals": np.column_stack([0.9 * P, 0.9 * P + 0.1]),
    "labels": np.column_stack([Y, 1 - Y]),
}
LABELS = np.array([f"row {i}" for i in range(N)])
#: The rows that an argument takes, if they are not called as the argument.
OF_ARGUMENT = {
    **dict.fromkeys(["y_true", "first"], "y"),
    **dict.fromkeys(["y_proba", "score", "second", "base", "score_unlabelled"], "p"),
    **dict.fromkeys(["proba", "proba_source"], "pair"),
    **dict.fromkeys(["features", "values", "X_train"], "X"),
    "groups_unlabelled": "groups",
}
KNOWN = {*ROWS, *OF_ARGUMENT} - {"p", "pair", "labels", "cv_results"}
MODEL = LogisticRegression().fit(FEATURES, Y)
FROZEN = FrozenEstimator(MODEL)
COSTS = [[0, 1], [2, 0]]
FEW = {"n_resamples": 5, "measures": ["log loss"]}
WEIGHED, GROUPED, BOTH = ("sample_weight",), ("groups",), ("sample_weight", "groups")


def pick(rows, names):
    """Rows by the names of arguments."""
    return {name: rows[name] for name in names}


@cache
def fitted(cls, *names):
    """An estimator that was fitted to the same rows without an index."""
    inner = () if cls in CLASSES else (FROZEN,)
    options = {"recalibrator": "online"} if cls is CalibratedModel else {}
    options = {"costs": COSTS} if cls is CostSensitiveClassifier else options
    options = {"neighborhood": "interval"} if cls is AdaptiveCalibration else options
    first = ROWS["X" if inner else "p"]
    return cls(*inner, **options).fit(first, Y, **pick(ROWS, names))


def frame(r):
    """Two named columns of probabilities with the index of p."""
    return pd.DataFrame({"0": 1 - r["p"], "1": r["p"]})


#: Each call of rows `r`, by its name, with the names of the rows that it takes.
CALLS = {
    "CostSensitiveClassifier.fit": (
        ("X", "y", *WEIGHED),
        lambda r: CostSensitiveClassifier(MODEL, COSTS).fit(
            r["X"], r["y"], r["sample_weight"]
        ),
    ),
    "CostSensitiveClassifier.score": (
        ("X", "y", *WEIGHED),
        lambda r: fitted(CostSensitiveClassifier).score(
            r["X"], r["y"], r["sample_weight"]
        ),
    ),
    "SelectiveClassifier.fit": (
        ("X", "y", *BOTH),
        lambda r: SelectiveClassifier(FROZEN, 0.6).fit(r["X"], r["y"], **pick(r, BOTH)),
    ),
    "SelectiveClassifier.predict": (
        ("X", *GROUPED),
        lambda r: fitted(SelectiveClassifier, *GROUPED).predict(r["X"], r["groups"]),
    ),
    "SelectiveClassifier.score": (
        ("X", "y", *GROUPED),
        lambda r: fitted(SelectiveClassifier, *GROUPED).score(
            r["X"], r["y"], r["groups"]
        ),
    ),
    "decompose_loss": (
        ("y", "p", "X", *WEIGHED),
        lambda r: decompose_loss(
            r["y"], r["p"], features=r["X"], sample_weight=r["sample_weight"]
        ),
    ),
    "ExportedMap.fit": (
        ("p", "y", *WEIGHED),
        lambda r: exported().fit(r["p"], r["y"], r["sample_weight"]),
    ),
    "Grades.fit": (("y", "p"), lambda r: Grades.fit(r["y"], r["p"], min_events=5)),
    "GroupRecalibration.predict": (
        ("p", *GROUPED),
        lambda r: fitted(GroupRecalibration, *GROUPED).predict(r["p"], r["groups"]),
    ),
    "GroupRecalibration.predict_proba": (
        ("p", *GROUPED),
        lambda r: fitted(GroupRecalibration, *GROUPED).predict_proba(
            r["p"], r["groups"]
        ),
    ),
    "MulticalibratedScores.predict": (
        ("p", *GROUPED),
        lambda r: fitted(MulticalibratedScores, *GROUPED).predict(r["p"], r["groups"]),
    ),
    "MulticalibratedScores.predict_proba": (
        ("p", *GROUPED),
        lambda r: fitted(MulticalibratedScores, *GROUPED).predict_proba(
            r["p"], r["groups"]
        ),
    ),
    "MulticalibratedModel.fit": (
        ("X", "y", *BOTH),
        lambda r: MulticalibratedModel(FROZEN, groups=[0]).fit(
            r["X"], r["y"], **pick(r, BOTH)
        ),
    ),
    "grade_calibration": (
        ("y", "p", "counts"),
        lambda r: grade_calibration(
            r["y"], r["p"], [0.2, 0.5], counts=r["counts"], n_resamples=2
        ),
    ),
    "CalibrationTester.test": (
        ("y", "p"),
        lambda r: CalibrationTester(0.1).test(r["y"], r["p"]),
    ),
    "PairedLosses.add": (
        ("y", "p", *BOTH),
        lambda r: PairedLosses().add(r["y"], r["p"], **pick(r, BOTH)),
    ),
    "calibrated_mean": (
        ("y", "p", *BOTH),
        lambda r: calibrated_mean(
            r["y"], r["p"], P, groups_unlabelled=ROWS["groups"], cv=2, **pick(r, BOTH)
        ),
    ),
    "calibrated_mean, unlabelled": (
        ("p", *GROUPED),
        lambda r: calibrated_mean(
            Y, P, r["p"], groups=ROWS["groups"], groups_unlabelled=r["groups"], cv=2
        ),
    ),
    "internal_validation": (
        ("X", "y", *BOTH),
        lambda r: internal_validation(MODEL, r["X"], r["y"], **FEW, **pick(r, BOTH)),
    ),
    "InstabilityDisplay.from_estimator": (
        ("X", "y", *BOTH),
        lambda r: sklearn_calib.displays.InstabilityDisplay.from_estimator(
            MODEL, r["X"], r["y"], n_resamples=5, **pick(r, BOTH)
        ),
    ),
    "validation_sample_size": (
        ("p", *WEIGHED),
        lambda r: validation_sample_size(
            r["p"], oe_width=0.5, sample_weight=r["sample_weight"]
        ),
    ),
    "approximate_leave_one_out": (
        ("X", "y", *WEIGHED),
        lambda r: approximate_leave_one_out(MODEL, r["X"], r["y"], r["sample_weight"]),
    ),
    "estimate_angle": (("X", "y"), lambda r: estimate_angle(MODEL, r["X"], r["y"])),
    "logistic_intervals": (
        ("X", *WEIGHED),
        lambda r: logistic_intervals(
            MODEL, r["X"], FEATURES, sample_weight=r["sample_weight"]
        ),
    ),
    "AngularCalibratedClassifier.fit": (
        ("X", "y"),
        lambda r: AngularCalibratedClassifier(LogisticRegression()).fit(r["X"], r["y"]),
    ),
    "CalibratedModel.fit": (
        ("X", "y", *BOTH),
        lambda r: CalibratedModel(FROZEN, "platt").fit(r["X"], r["y"], **pick(r, BOTH)),
    ),
    "CalibratedModel.fit, soft labels": (
        ("X", "p", *BOTH),
        lambda r: CalibratedModel(FROZEN, "platt").fit(
            r["X"], r["p"], soft_labels=True, **pick(r, BOTH)
        ),
    ),
    "CalibratedModel.fit, many labels": (
        ("X", "labels", *GROUPED),
        lambda r: CalibratedModel(MultiOutputClassifier(MODEL), "platt", cv=2).fit(
            r["X"], r["labels"], groups=r["groups"]
        ),
    ),
    "CalibratedModel.partial_fit_recalibrator": (
        ("X", "y", *WEIGHED),
        lambda r: fitted(CalibratedModel).partial_fit_recalibrator(
            r["X"], r["y"], r["sample_weight"]
        ),
    ),
    "RefineThenCalibrateCV.fit": (
        ("X", "y", *BOTH),
        lambda r: RefineThenCalibrateCV(
            LogisticRegression(), recalibrator="platt", cv=2
        ).fit(r["X"], r["y"], **pick(r, BOTH)),
    ),
    "CalibrationMonitor.update": (
        ("y", "p", "groups", "time"),
        lambda r: CalibrationMonitor(groups=range(4)).update(
            r["y"], r["p"], groups=r["groups"], time=r["time"]
        ),
    ),
    "AdaptiveCalibration.fit": (
        ("p", "y", "intervals", *WEIGHED),
        lambda r: AdaptiveCalibration("interval").fit(
            r["p"], r["y"], r["sample_weight"], intervals=r["intervals"]
        ),
    ),
    "AdaptiveCalibration.predict_proba": (
        ("p", "intervals"),
        lambda r: fitted(AdaptiveCalibration).predict_proba(r["p"], r["intervals"]),
    ),
    "MultilabelCalibration.fit": (
        ("pair", "labels", *WEIGHED),
        lambda r: MultilabelCalibration("platt").fit(
            r["pair"], r["labels"], r["sample_weight"]
        ),
    ),
    "OnlineCalibration.partial_fit": (
        ("p", "y", *WEIGHED),
        lambda r: OnlineCalibration().partial_fit(
            r["p"], r["y"], r["sample_weight"], classes=[0, 1]
        ),
    ),
    "PriorShift.adapt": (
        ("p", *WEIGHED),
        lambda r: (
            PriorShift("em").fit(P, Y).adapt(r["p"], sample_weight=r["sample_weight"])
        ),
    ),
    "cross_fitted_proba": (
        ("pair", "y", *BOTH),
        lambda r: cross_fitted_proba("platt", r["pair"], r["y"], cv=2, **pick(r, BOTH)),
    ),
    "multilabel_report": (
        ("labels", "pair", *WEIGHED),
        lambda r: multilabel_report(
            r["labels"],
            r["pair"],
            measures=["log_loss"],
            n_resamples=2,
            check_columns=False,
            **pick(r, WEIGHED),
        ),
    ),
    "calibration_report": (
        ("y", "p", *BOTH),
        lambda r: calibration_report(
            r["y"],
            r["p"],
            measures=["log_loss"],
            n_resamples=2,
            check_columns=False,
            **pick(r, BOTH),
        ),
    ),
    "calibration_report, features": (
        ("y", "X"),
        lambda r: calibration_report(
            r["y"],
            P,
            features=r["X"],
            measures=["log_loss"],
            n_resamples=2,
            check_columns=False,
        ),
    ),
    "find_column_order": (
        ("y", "p", *WEIGHED),
        lambda r: find_column_order(r["y"], frame(r), sample_weight=r["sample_weight"]),
    ),
    "prior_shift_test": (
        ("pair", "y"),
        lambda r: prior_shift_test(r["pair"], r["y"], ROWS["pair"], n_resamples=20),
    ),
    "CalibrationSummary.update": (
        ("y", "p", *WEIGHED),
        lambda r: CalibrationSummary().update(r["y"], r["p"], r["sample_weight"]),
    ),
    "CalibrationSummary.update, counts": (
        ("y", "p", "counts"),
        lambda r: CalibrationSummary().update(r["y"], r["p"], counts=r["counts"]),
    ),
    "a scorer": (
        ("X", "y", *WEIGHED),
        lambda r: get_scorer("neg_brier_loss")(
            MODEL, r["X"], r["y"], sample_weight=r["sample_weight"]
        ),
    ),
}
#: Calls that grow trees or fit many times.
SLOW = {"decompose_loss", "calibration_report, features"}
#: What the displays draw beside labels and probabilities.
BESIDE = {
    "CalibratingFunctionDisplay": (["platt"],),
    "GradeDisplay": ([0.2, 0.5],),
}


def exported():
    """A map that was read from its document."""
    return from_dict(to_dict(fitted(PlattScaling)))


@cache
def signatures():
    """The public calls with two or more arguments of rows, and these arguments."""
    found = []
    for subpackage in list_subpackages():
        module = import_module(f"sklearn_calib.{subpackage}")
        for name in names_of(subpackage):
            thing = getattr(module, name)
            parts = {name: thing}
            if inspect.isclass(thing):
                public = [part for part in dir(thing) if not part.startswith("_")]
                parts = {
                    f"{name}.{part}": getattr(thing, part, None) for part in public
                }
            for call, function in parts.items():
                module_of = str(getattr(function, "__module__", None))
                if not callable(function) or not module_of.startswith("sklearn_calib"):
                    continue
                arguments = KNOWN & set(inspect.signature(function).parameters)
                if len(arguments) > 1:
                    found.append((call, arguments))
    return found


class DrawnDisplays:
    """Calls of displays, which are all alike."""

    @staticmethod
    def from_predictions(display):
        """Draw labels and probabilities."""
        names = rows_of_display(display)

        def draw(r):
            given = (
                [r["p"], r["p"]]
                if display.__name__ == "RefinementCurveDisplay"
                else r["p"]
            )
            display.from_predictions(
                r["y"], given, *beside_rows(display, r), **pick(r, names)
            )

        return ("y", "p", *names, *grouped_rows(display)), draw

    @staticmethod
    def from_estimator(display):
        """Draw a fitted classifier."""
        names = rows_of_display(display)

        def draw(r):
            given = beside_rows(display, r)
            display.from_estimator(MODEL, r["X"], r["y"], *given, **pick(r, names))

        return ("X", "y", *names, *grouped_rows(display)), draw

    @staticmethod
    def from_cv_results(display):
        """Draw what was cross-validated."""

        def draw(r):
            weight = r["sample_weight"]
            display.from_cv_results(cv_results(), r["X"], r["y"], sample_weight=weight)

        return ("X", "y", *WEIGHED), draw


def rows_of_display(display):
    """The options of a display that have an entry for each row."""
    known = inspect.signature(display.from_predictions).parameters
    return [name for name in ("sample_weight", "counts") if name in known]


def grouped_rows(display):
    return GROUPED if display.__name__ == "GroupReliabilityDisplay" else ()


def beside_rows(display, r):
    """What a display draws beside labels and probabilities."""
    if grouped_rows(display):
        return ({"g": r["groups"]},)
    return BESIDE.get(display.__name__, ())


@cache
def cv_results():
    """What cross_validate returns of the rows."""
    more = {"return_estimator": True, "return_indices": True, "cv": 2}
    return cross_validate(LogisticRegression(), FEATURES, Y, **more)


for call, _ in signatures():
    name, _, method = call.partition(".")
    if name.endswith("Display") and call not in CALLS and call not in EXEMPT:
        CALLS[call] = getattr(DrawnDisplays, method)(
            getattr(sklearn_calib.displays, name)
        )


def test_every_call_with_rows_is_here():
    known = {call.partition(",")[0] for call in CALLS}
    elsewhere = {case.values[0] for case in cases()} | {
        f"{cls.__name__}.fit" for cls in CLASSES
    }
    missing = {call for call, _ in signatures()} - known - elsewhere - {*EXEMPT}
    assert missing == set()


@run_every_case("call", [call for call in CALLS if "," not in call])
def test_every_argument_of_rows_is_here(call):
    found = dict(signatures()).get(call, set())
    given = {
        row for one, (rows, _) in CALLS.items() if one.startswith(call) for row in rows
    }
    expected = {OF_ARGUMENT.get(argument, argument) for argument in found}
    assert expected <= given | {"p", "y"} | ({"X"} if given & {"p", "pair"} else set())


def rows_with(names, changed=None, labels=LABELS):
    """The rows of these names, all with one index but those of one name."""
    rows = {}
    for name in names:
        make = pd.Series if ROWS[name].ndim == 1 else pd.DataFrame
        rows[name] = make(ROWS[name], index=labels if name == changed else LABELS)
    return rows


def heard(call, rows):
    """Return what is warned of indexes, without the name of the part that compares them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[call][1](rows)
    messages = [str(one.message) for one in caught]
    return {message.partition(": ")[2] for message in messages if RULE in message}


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch):
    """Let displays compute, but not draw."""
    for name in sklearn_calib.displays.__all__:
        display = getattr(sklearn_calib.displays, name)
        monkeypatch.setattr(display, "plot", lambda self, **options: self)


def marked(call, *more):
    """Return the parameters of a test of a call."""
    return pytest.param(call, *more, marks=[pytest.mark.slow] * (call in SLOW))


@run_every_case("call", [marked(call) for call in CALLS])
def test_one_index_is_silent(call):
    assert heard(call, rows_with(CALLS[call][0])) == set()


@pytest.mark.parametrize(
    ("call", "changed"),
    [marked(call, name) for call, (names, _) in CALLS.items() for name in names[1:]],
)
def test_every_call_compares_indexes(call, changed):
    names = CALLS[call][0]
    assert len(heard(call, rows_with(names, changed, LABELS[::-1]))) == 1
    others = np.char.add(LABELS, "?")
    with raises_invalid_input(ValueError, expected=RULE, value="'.*' in some only"):
        CALLS[call][1](rows_with(names, changed, others))
