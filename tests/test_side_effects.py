"""No call changes what it was given, or anything that others share.

Inputs are read-only arrays, frames and dicts that are compared afterwards; what a
process has once (random numbers, warnings, drawing parameters, environment, locale,
folder) is compared too.
"""

import contextlib
import copy
import csv
import functools
import inspect
import locale
import os
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from cases import run_every_case
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from test_functions import FUNCTIONS, SLOW, call, rows
from words import QUICKER

from sklearn_calib import (
    CalibratedModel,
    RefineThenCalibrateCV,
    decisions,
    decomposition,
    displays,
    groups,
)
from sklearn_calib._cli import main
from sklearn_calib.classifiers import AngularCalibratedClassifier
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import from_dict, simplify, to_code, to_dict, to_json, to_sql
from sklearn_calib.monitoring import CalibrationMonitor, safe_calibration_test
from sklearn_calib.recalibrators import (
    MultilabelCalibration,
    OneVsRest,
    PlattScaling,
    StackedCalibration,
    TopLabel,
    all_recalibrators,
    cross_fitted_proba,
)
from sklearn_calib.report import calibration_report
from sklearn_calib.staged import find_staging
from sklearn_calib.summary import CalibrationSummary, summarize
from sklearn_calib.testing import contract_checks


def shared_state():
    """What a process has once, in a form that can be compared."""
    import matplotlib as mpl

    _, key, position, *rest = np.random.get_state()  # noqa: NPY002
    return {
        "numpy's global generator": (key.tolist(), position, rest),
        "warnings filters": list(warnings.filters),
        "numpy's errors": np.geterr(),
        "numpy's printing": np.get_printoptions(),
        "pandas' options": pd.get_option("display.max_rows"),
        "matplotlib's parameters": dict(mpl.rcParams),
        "the environment": dict(os.environ),
        "the locale": locale.setlocale(locale.LC_ALL),
        "the folder": os.getcwd(),
        "scikit-learn's configuration": sklearn.get_config(),
        "the limit of integers": __import__("sys").get_int_max_str_digits(),
        "the longest cell of csv": csv.field_size_limit(),
    }


@contextlib.contextmanager
def nothing_changes(title, *given):
    """Fail if a call changes what it was given or what the process shares."""
    before, state = copy.deepcopy(given), shared_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        inside = list(warnings.filters)
        yield
        assert list(warnings.filters) == inside, f"{title} changed the warnings filters"
    for name, value in shared_state().items():
        assert value == state[name], (
            f"{title} changed {name}: {state[name]!r} to {value!r}"
        )
    for one, other in zip(given, before, strict=True):
        assert is_same(one, other), f"{title} changed its input: {other!r} to {one!r}"


def is_same(one, other):
    if isinstance(one, pd.DataFrame | pd.Series):
        return one.equals(other) and list(one.index) == list(other.index)
    if isinstance(one, dict):
        return [*one] == [*other] and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, float):
        return one == other or (one != one and other != other)
    if isinstance(one, BaseEstimator):
        # without what follows from it
        return is_same(one.__getstate__(), other.__getstate__())
    return type(one) is type(other) and (
        one == other if not hasattr(one, "__dict__") else True
    )


def frozen_rows(k):
    """The rows of the functions' contract, read-only."""
    data = rows(k)
    for value in data.values():
        value.setflags(write=False)
    return data


@run_every_case(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.slow if name in SLOW or name[:3] == "lp_" else ()
        )
        for name in FUNCTIONS
    ],
)
def test_functions_change_nothing(name):
    """Read-only arrays, and frames with an index of their own, are read and left alone."""
    function = FUNCTIONS[name]
    weight = 1.0 + np.arange(80) % 2
    weight.setflags(write=False)
    words = {}
    if "sample_weight" in inspect.signature(function).parameters:
        words = {"sample_weight": weight}
    data = frozen_rows(2)
    with nothing_changes(name, data, weight):
        call(function, data, **words)
    index = np.arange(80)[::-1] + 5
    tables = data | {
        key: pd.DataFrame(data[key], columns=["no", "yes"], index=index)
        for key in ("first", "second")
    }
    tables["y"] = pd.Series(data["y"], index=index)
    words = {key: pd.Series(value, index=index) for key, value in words.items()}
    with nothing_changes(f"{name} of frames", tables, words):
        call(function, tables, **words)


MAPS = sorted(all_recalibrators().values(), key=lambda cls: cls.__name__)
SLOW_MAPS = (
    "AdaptiveCalibration",
    "TrendFiltering",
    "TrendFilteringEnsemble",
    "OnlineCalibration",
)


@functools.cache
def fitted(cls):
    data = frozen_rows(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return cls(**QUICKER.get(cls.__name__, {})).fit(data["first"], data["y"])


@run_every_case(
    "cls",
    [
        pytest.param(
            cls,
            id=cls.__name__,
            marks=pytest.mark.slow if cls.__name__ in SLOW_MAPS else (),
        )
        for cls in MAPS
    ],
)
def test_maps_change_neither_rows_nor_themselves(cls):
    data = frozen_rows(2)
    weight = 1.0 + np.arange(80) % 2
    weight.setflags(write=False)
    more = {"sample_weight": weight} if cls.capabilities.sample_weight else {}
    model = cls(**QUICKER.get(cls.__name__, {}))
    with nothing_changes(f"{cls.__name__}.fit", data, weight):
        parameters = model.get_params(deep=False)
        model.fit(data["first"], data["y"], **more)
    now = model.get_params(deep=False)
    assert all(now[name] is value for name, value in parameters.items()), (
        f"{parameters} to {now}"
    )
    public = {name: value for name, value in vars(model).items() if name[0] != "_"}
    with nothing_changes(f"{cls.__name__}.predict_proba", data, public):
        model.predict_proba(data["first"])
        model.predict(data["first"])
        model.predict_proba(
            pd.DataFrame(data["first"], columns=["no", "yes"]).to_numpy()
        )
    after = {name for name in vars(model) if name[0] != "_"}
    assert after == set(public), f"predict added {after ^ set(public)}"
    result = model.predict_proba(data["first"])
    result[:] = -1  # the caller's own
    assert (model.predict_proba(data["first"]) >= 0).all()


@pytest.mark.parametrize(
    "name", ["to_json", "to_sql", "to_code", "simplify", "from_dict"]
)
def test_exports_leave_maps_and_documents_alone(name):
    model = fitted(all_recalibrators()["isotonic"])
    document = to_dict(model)
    calls = {
        "to_json": lambda: to_json(document),
        "to_sql": lambda: to_sql(document),
        "to_code": lambda: to_code(document, "python"),
        "simplify": lambda: simplify(document, 1e-2),
        "from_dict": lambda: from_dict(document).predict_proba([0.2, 0.7]),
    }
    with nothing_changes(name, document, vars(model)):
        calls[name]()


def test_summaries_and_monitors_leave_their_rows_alone():
    data = frozen_rows(2)
    summary, monitor = CalibrationSummary(classes=[0, 1]), CalibrationMonitor()
    with nothing_changes("update", data):
        summary.update(data["y"], data["first"])
        monitor.update(data["y"], data["first"])
    other = CalibrationSummary(classes=[0, 1]).update(data["y"], data["second"])
    kept = other.copy()
    with nothing_changes("merge and measure", data):
        summary.merge(other)
        summary.measure("log_loss")
        summary.test(n_resamples=2)
        summary.fit("platt")
    assert other == kept, "merge changed its argument"
    assert (other + summary).n_samples == 240 and other == kept, (
        "the sum changed a term"
    )
    state = monitor.state_dict()
    again = copy.deepcopy(state)
    CalibrationMonitor.from_state_dict(state).update(data["y"], data["first"])
    assert state == again, "from_state_dict keeps the state that it was given"
    assert monitor.state_dict() == again


def test_reading_and_writing_tables_changes_nothing(tmp_path):
    data = frozen_rows(2)
    table = pd.DataFrame({"y": data["y"], "p": data["first"][:, 1]})
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    document = to_json(fitted(all_recalibrators()["platt"]), tmp_path / "m.json")
    with nothing_changes("summarize", document):
        summarize(path, label="y", prob="p")
    with nothing_changes("apply", document):
        words = ["--prob", "p", "--out", str(tmp_path / "o.csv")]
        assert main(["apply", str(tmp_path / "m.json"), str(path), *words]) == 0


X, LABELS = make_classification(120, 4, random_state=0)
X.setflags(write=False)
LABELS.setflags(write=False)
MODELS = [
    CalibratedModel(LogisticRegression(class_weight="balanced"), "platt", cv=3),
    AngularCalibratedClassifier(LogisticRegression()),
    decisions.CostSensitiveClassifier(LogisticRegression(class_weight="balanced")),
    decisions.SelectiveClassifier(LogisticRegression(), coverage=0.8),
    groups.MulticalibratedModel(
        LogisticRegression(), groups=[0], n_rounds=1, n_trees=3, cv=2
    ),
    RefineThenCalibrateCV(LogisticRegression(), {"C": [0.1]}, cv=2),
]


@run_every_case("model", MODELS, ids=lambda model: type(model).__name__)
def test_models_leave_their_estimator_as_it_was(model):
    model = clone(model)
    inner, parameters = model.estimator, model.get_params()
    attributes = dict(vars(inner))
    title = type(model).__name__
    with nothing_changes(f"{title}.fit", X, LABELS):
        model.fit(X, LABELS)
    assert model.estimator is inner and vars(inner) == attributes, (
        f"{title} fitted its argument"
    )
    now = model.get_params()
    assert {k: repr(v) for k, v in now.items()} == {
        k: repr(v) for k, v in parameters.items()
    }
    public = sorted(name for name in vars(model))
    frozen = LogisticRegression(class_weight="balanced").fit(X, LABELS)
    kept = {name: copy.deepcopy(value) for name, value in vars(frozen).items()}
    with nothing_changes(f"{title}.predict", X):
        model.predict(X)
        model.predict_proba(X)
    assert sorted(vars(model)) == public, f"predict added to {title}"
    if title not in ("AngularCalibratedClassifier", "RefineThenCalibrateCV"):
        clone(model).set_params(estimator=FrozenEstimator(frozen)).fit(X, LABELS)
        assert is_same(vars(frozen), kept), f"{title} changed a frozen estimator"


P_LABELS = rows(2)["first"]
Y_LABELS = rows(2)["y"]
THREE_CLASSES = rows(3)["first"], rows(3)["y"]
LEARNER = LogisticRegression()
#: What takes a recalibrator of the user's: it is cloned before each fit.
TAKES_RECALIBRATORS = {
    "OneVsRest": lambda r: OneVsRest(r).fit(*THREE_CLASSES),
    "TopLabel": lambda r: TopLabel(r).fit(*THREE_CLASSES),
    "StackedCalibration": lambda r: StackedCalibration([r, "beta"], cv=2).fit(
        P_LABELS, Y_LABELS
    ),
    "StackedCalibration of one": lambda r: StackedCalibration({"one": r}).fit(
        P_LABELS, Y_LABELS
    ),
    "MultilabelCalibration": lambda r: MultilabelCalibration(r).fit(
        P_LABELS, np.eye(2)[Y_LABELS]
    ),
    "GroupRecalibration": lambda r: groups.GroupRecalibration(r).fit(
        P_LABELS, Y_LABELS, groups=np.arange(80) % 2
    ),
    "CalibratedModel": lambda r: CalibratedModel(LEARNER, r, cv=2).fit(X, LABELS),
    "CalibratedModel, one map": lambda r: CalibratedModel(
        LEARNER, r, cv=2, ensemble=False
    ).fit(X, LABELS),
    "CalibratedModel, frozen": lambda r: CalibratedModel(
        FrozenEstimator(clone(LEARNER).fit(X, LABELS)), r
    ).fit(X, LABELS),
    "RefineThenCalibrateCV": lambda r: RefineThenCalibrateCV(
        LEARNER, {"C": [0.1, 1.0]}, cv=2, recalibrator=r, refinement=r
    ).fit(X, LABELS),
    "cross_fitted_proba": lambda r: cross_fitted_proba(r, P_LABELS, Y_LABELS, cv=2),
    "regret_curve": lambda r: decisions.regret_curve(
        Y_LABELS, P_LABELS, r, cv=2, n_resamples=2
    ),
    "decompose_loss": lambda r: decomposition.decompose_loss(
        Y_LABELS, P_LABELS, recalibrator=r, cv=2
    ),
    "decompose_loss, in sample": lambda r: decomposition.decompose_loss(
        Y_LABELS, P_LABELS, recalibrator=r, cv=None
    ),
    "refinement_error": lambda r: decomposition.refinement_error(
        Y_LABELS, P_LABELS, recalibrator=r, cv=2
    ),
    "proper_calibration_error": lambda r: decomposition.proper_calibration_error(
        Y_LABELS, P_LABELS, recalibrator=r, cv=2
    ),
    "refinement_curve": lambda r: decomposition.refinement_curve(
        Y_LABELS, [P_LABELS, P_LABELS], recalibrator=r, cv=2
    ),
    "variational_calibration_error": lambda r: (
        decomposition.variational_calibration_error(
            Y_LABELS, P_LABELS, recalibrator=r, cv=2
        )
    ),
    "safe_calibration_test": lambda r: safe_calibration_test(
        Y_LABELS, P_LABELS, recalibrator=r, n_splits=2
    ),
    "CalibrationSummary": lambda r: (
        CalibrationSummary().update(Y_LABELS, P_LABELS).cross_validate([r], cv=2)
    ),
    "contract_checks": lambda r: [
        check() for _, check in contract_checks(r, n_classes=(2,))
    ],
}


@run_every_case("name", [*TAKES_RECALIBRATORS])
def test_recalibrators_that_are_given_stay_unfitted(name):
    given = PlattScaling()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        TAKES_RECALIBRATORS[name](given)
    assert vars(given) == vars(PlattScaling()), f"{name} fitted its argument"


class Interrupted(SGDClassifier):
    """Fails in its third epoch."""

    def partial_fit(self, X, y, **params):
        self.epochs = getattr(self, "epochs", 0) + 1
        if self.epochs == 3:
            raise RuntimeError("interrupted")
        return super().partial_fit(X, y, **params)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", ["sgd", "mlp"])
def test_a_staged_fit_restores_the_parameters_of_the_estimator(kind, fails):
    """Weights of classes, seed and early stopping: also if the fit raises."""
    if kind == "sgd":
        cls = Interrupted if fails else SGDClassifier
        model = cls(
            loss="log_loss", max_iter=4, class_weight="balanced", random_state=0
        )
    else:
        model = MLPClassifier(4, max_iter=4, random_state=0, early_stopping=True)
        if fails:
            model.set_params(solver="adam", alpha=-1.0)
    before = model.get_params()
    staging = find_staging(model)
    if fails:
        with pytest.raises((RuntimeError, ValueError)):
            staging.fit(model, X, LABELS)
    else:
        staging.fit(model, X, LABELS)
    after = model.get_params()
    changed = {
        name: (before[name], after[name])
        for name in before
        if after[name] != before[name]
    }
    assert not changed, (
        f"{type(model).__name__}: expected the parameters as given, got {changed}"
    )


def test_reports_and_pictures_leave_drawing_alone(tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    data = frozen_rows(2)
    with nothing_changes("calibration_report", data):
        report = calibration_report(
            data["y"], data["first"], n_resamples=2, advice=False
        )
        str(report), report.to_frame()
    figures = plt.get_fignums()
    with nothing_changes("a display", data):
        display = displays.ReliabilityDisplay.from_predictions(
            data["y"], data["first"], n_resamples=2
        )
    assert len(plt.get_fignums()) <= len(figures) + 1
    plt.close(display.figure_)


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    """A file that was there stays, and nothing else is left, if writing fails."""
    data = frozen_rows(2)
    summary = CalibrationSummary(classes=[0, 1]).update(data["y"], data["first"])
    model = fitted(all_recalibrators()["platt"])
    writers = {
        "s.parquet": lambda path: summary.to_parquet(path),
        "m.json": lambda path: to_json(model, path),
    }
    for name, write in writers.items():
        path = tmp_path / name
        write(path)
        content = path.read_bytes()
        with monkeypatch.context() as patch:

            def refuse(*args, **more):
                raise OSError("no space left")

            patch.setattr(os, "replace", refuse)
            with contextlib.suppress(OSError):
                write(path)
        assert path.read_bytes() == content, f"{name} was damaged"
        assert [one.name for one in tmp_path.iterdir()] == [name], "a piece was left"
        path.unlink()


def test_no_thread_is_left_behind():
    data = frozen_rows(2)
    before = threading.active_count()
    fitted(all_recalibrators()["temperature"]).predict_proba(data["first"])
    call(FUNCTIONS["log_loss"], data)
    assert threading.active_count() == before
