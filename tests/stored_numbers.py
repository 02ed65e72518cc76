"""Numbers of all public calls, as they were when somebody last looked at them.

Which calls there are is read from signatures and registries, so that a new function,
option, attribute or property comes by itself. ``python tests/stored_numbers.py`` writes
the numbers to `tests/data/stored_numbers.json` after an intended change and names the
calls that have changed: each needs a reason. With names of functions or classes behind
it, it writes theirs alone. What a number should be is in the other
tests; this file finds unintended changes, with rows that meet many branches
at once: ties, scores at edges, unequal weights that are not whole numbers, rows of
weight 0, several problems of unequal shares.
"""

import dataclasses
import doctest
import functools
import inspect
import json
import re
import sys
import time
import warnings
import zlib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import test_functions
import test_methods
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from stored_calls import OTHERS, WEIGHT, numbers_in, tied_rows
from stored_edges import EDGES
from stored_outputs import OUTPUTS
from stored_paths import PATHS
from test_functions import FUNCTIONS, TWO_CLASSES, call
from words import strings

from sklearn_calib import (
    CalibratedModel,
    RefineThenCalibrateCV,
    displays,
    inference,
)
from sklearn_calib._show import RenderableMixin
from sklearn_calib.classifiers import AngularCalibratedClassifier
from sklearn_calib.decisions import CostSensitiveClassifier, SelectiveClassifier
from sklearn_calib.exceptions import CalibrationWarning, InvalidInputError
from sklearn_calib.groups import GroupRecalibration, MulticalibratedModel
from sklearn_calib.metrics import all_metrics
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.summary import CalibrationSummary

FILE = Path(__file__).parent / "data" / "stored_numbers.json"
#: Calls that take longer than so many seconds are left to other tests.
LONGEST = dict.fromkeys(
    ("paired_difference", "calibration_report", "decompose_loss"), 0.2
)
LONGEST["commands"] = 0.5
LONGEST["outputs of commands"] = 3.0
LONGEST["long names"] = 0.5
USUALLY = 0.1
N = test_functions.N
REFUSED = "refused"
#: Fields that are not compared: when, how long, what is rounding alone, and what
#: follows from the other attributes or from the labels.
LEFT_OUT = (
    "created",
    "version",
    "case",
    "problem",
    "moved",
    "cv_results_",
    "refit_time_",
    "map_",
    "classes_",
    "n_features_in_",
)


# --- the numbers of a result --------------------------------------------------------------------


def parse_error_fields(result, name="", depth=0):
    """(path, array or word) of all that a result holds, with its properties."""
    if isinstance(result, str):
        is_word = len(result) < 20 and " " not in result
        yield name, result if is_word else checksum_of_words([result])
        return
    if depth > 6:
        return
    if hasattr(result, "select_dtypes"):
        parts = result.select_dtypes("number").items()
    elif isinstance(result, dict):
        parts = [(key, one) for key, one in result.items() if key not in LEFT_OUT]
    elif isinstance(result, np.ndarray) and type(result) is not np.ndarray:
        parts = [("", np.asarray(result))]
    elif type(result).__module__.startswith("sklearn_calib."):
        parts = [
            *parts_of_object(result),
            *(answers_of_object(result) if depth == 0 else ()),
            *(texts_of_object(result) if depth < 2 else ()),
        ]
    elif isinstance(result, list | tuple) and not all(
        np.isscalar(one) for one in result
    ):
        parts = parts_of_list(result, depth)
    else:
        try:
            array = np.asarray(result)
        except ValueError:
            return
        if array.dtype.kind in "fiub" and array.size:
            yield name, array.astype(float)
        return
    for part, one in parts:
        yield from parse_error_fields(
            one, f"{name}.{part}" if part != "" else name, depth + 1
        )


def parts_of_list(result, depth):
    """(number or name, value) of the entries; of many entries (field, column)."""
    if len(result) < 4:
        return [(getattr(one, "quantity", str(i)), one) for i, one in enumerate(result)]
    columns, words = {}, {}
    for one in result:
        for field, value in parse_error_fields(one, "", depth + 1):
            if isinstance(value, str):
                words.setdefault(f"{field.lstrip('.')} in words", []).append(value)
            else:
                columns.setdefault(field.lstrip("."), []).append(value.ravel())
    return [
        *((field, np.concatenate(column)) for field, column in columns.items()),
        *((field, "; ".join(column)) for field, column in words.items()),
    ]


def parts_of_object(result):
    """(name, value) of the public fields, attributes and properties of one of our objects."""
    if hasattr(result, "_fields"):
        names = set(result._fields)
    elif dataclasses.is_dataclass(result):
        names = {one.name for one in dataclasses.fields(result)}
    else:
        names = set(vars(result))
    if isinstance(result, BaseEstimator):
        names -= set(result.get_params(deep=False))
    for cls in type(result).__mro__:
        if cls.__module__.startswith("sklearn_calib."):
            names |= {
                key for key, one in vars(cls).items() if isinstance(one, property)
            }
    for name in sorted(names):
        if name[0] != "_" and name not in LEFT_OUT:
            try:
                yield name, getattr(result, name)
            except (AttributeError, ValueError, TypeError, NotImplementedError):
                yield name, REFUSED


#: Methods without arguments that draw, write, or change the object.
NOT_ASKED = {
    "copy",
    "plot",
    "reset",
    "section",
    "advise",
    "to_markdown",
    "to_json",
    "fit",
}


def answers_of_object(result):
    """(name, result) of the public methods of one of our results that need no argument."""
    if isinstance(result, BaseEstimator):
        return
    for name, method in inspect.getmembers(type(result), inspect.isfunction):
        needed = [
            one
            for one in inspect.signature(method).parameters.values()
            if one.default is one.empty
            and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]
        is_ours = method.__module__.startswith("sklearn_calib.")
        if name[0] != "_" and len(needed) == 1 and name not in NOT_ASKED and is_ours:
            try:
                yield f"{name}()", method(result)
            except (ValueError, TypeError, AttributeError):
                yield f"{name}()", REFUSED


def texts_of_object(result):
    """(name, checksum) of one of our results as text and as a page, without numbers."""
    if isinstance(result, RenderableMixin):
        yield "text", checksum_of_words([str(result)])
        yield "page", checksum_of_words([result._repr_html_()])


def number_of(array):
    """One number that changes if an entry does, and a size that shows how large changes are."""
    flat = np.nan_to_num(array.ravel(), nan=0.7531, posinf=1e3, neginf=-1e3)
    factor = np.cos(1.7 * np.arange(len(flat))) + 1.5
    return float(factor @ flat), float(factor @ np.abs(flat))


# --- the calls ----------------------------------------------------------------------------------

#: Values of options that have no default to vary, or a default that cannot be halved.
VALUES = {
    "threshold": 0.4,
    "prevalence": 0.3,
    "resolution": 0.05,
    "bandwidth": 0.1,
    "harms": 0.02,
    "norm": 2.0,
    "p": 3.0,
    "depth": 2,
    "stages": [3, 5],
    "start": 1.5,
    "counts": [3, 2] * (N // 2),
    "soft_labels": None,  # tested with soft labels
    "multilabel": None,
    "n_jobs": None,
    "random_state": None,
    "progress": None,
    "validate": None,
    "order": None,
}


def options_of(name, function):
    """Each string, switch and number of an option by itself, beside its defaults."""
    yield from test_functions.options(name)
    for option, parameter in inspect.signature(function).parameters.items():
        default = parameter.default
        if option in test_functions.QUICK or strings(parameter.annotation):
            continue
        if option in VALUES:
            if VALUES[option] is not None:
                yield {option: VALUES[option]}
        elif isinstance(default, bool):
            yield {option: not default}
        elif isinstance(default, int):
            yield {option: max(1, default // 2)}
        elif isinstance(default, float):
            yield {option: 0.8 * default}


def calls_of_functions():
    for name, function in sorted(FUNCTIONS.items()):
        weighs = "sample_weight" in inspect.signature(function).parameters
        clusters = takes_clusters(name, function)
        for option in options_of(name, function):
            for k in (2,) if name in TWO_CLASSES else (2, 3):
                how = option | ({"sample_weight": WEIGHT} if weighs else {})
                if clusters and k == 2:
                    how["groups"] = None
                title = f"{option}, {k} classes"
                yield (
                    name,
                    title,
                    lambda f=function, k=k, how=how: call(f, tied_rows(k), **how),
                )
            if weighs:
                how = option | ({"groups": None} if clusters else {})
                title = f"{option}, without weights"
                yield (
                    name,
                    title,
                    lambda f=function, how=how: call(f, tied_rows(2), **how),
                )
        for title, ask in other_calls_of(name, function):
            yield name, title, ask


def takes_clusters(name, function):
    """Whether clusters of rows may be left out: the rows of two classes have none here."""
    known = inspect.signature(function).parameters
    return (
        "groups" in known
        and known["groups"].default is None
        and name != "group_calibration"
    )


#: Functions that compute a measure again for each draw, and draws that are enough for
#: an interval of this level to exclude something.
DRAWN_OFTEN = ("paired_difference", "confidence_interval")
FEW_DRAWS = {"n_resamples": 9, "level": 0.5}


def other_calls_of(name, function):
    """(title, function): other clusters, shares as labels, a class without rows."""
    known = inspect.signature(function).parameters
    few = FEW_DRAWS if name in DRAWN_OFTEN else {}
    call_few = functools.partial(call, function, **few)
    classes = (2,) if name in TWO_CLASSES else (2, 3)
    if takes_clusters(name, function):
        yield "clusters of two classes", lambda: call_few(tied_rows(2))
        if 3 in classes:
            yield (
                "without clusters, 3 classes",
                lambda: call_few(tied_rows(3), groups=None),
            )
    if "soft_labels" in known:
        more = {"sample_weight": WEIGHT} if "sample_weight" in known else {}
        for k in classes:
            yield (
                f"soft labels, {k} classes",
                lambda k=k: call_few(shares_of(k), soft_labels=True, **more),
            )
    more = {"sample_weight": WEIGHT} if "sample_weight" in known else {}
    for kind in KINDS_AT_AN_END:
        for k in classes:
            yield (
                f"{kind}, {k} classes",
                lambda kind=kind, k=k: call_few(rows_at_an_end(kind, k), **more),
            )
    yield "many rows", lambda: call_few(many_rows(), **many_weights(known))
    if "labels" in known and 3 in classes:
        yield (
            "without a class",
            lambda: call_few(without_a_class(), labels=range(3)),
        )


MANY = 20_480
#: Rows at an end: all alike, of two scores, certain.
KINDS_AT_AN_END = ("alike", "of two scores", "certain")


def rows_at_an_end(kind, k):
    data = tied_rows(k)
    for name in ("first", "second"):
        proba = data[name]
        if kind == "alike":
            proba = np.repeat(proba[:1], N, axis=0)
        elif kind == "of two scores":
            proba = proba[np.arange(N) % 3 // 2]
        else:
            sure = np.arange(N) % 5 == 0
            proba = np.where(sure[:, None], np.eye(k)[data["y"]], proba)
        data[name] = proba
    return data


@functools.cache
def many_rows():
    """So many that pooled, compiled and coarse ways of counting are taken."""
    rng = np.random.default_rng(3)
    p = np.round(rng.beta(1.2, 1.7, MANY), 5).clip(1e-5, 1 - 1e-5)
    q = (0.8 * p + 0.2 * rng.random(MANY)).clip(1e-5, 1 - 1e-5)
    return {
        "y": (rng.random(MANY) < p**1.1).astype(int),
        "first": np.column_stack([1 - p, p]),
        "second": np.column_stack([1 - q, q]),
        "groups": np.arange(MANY) % 2,
        "clusters": np.arange(MANY) % 70,
    }


def many_weights(known):
    return (
        {"sample_weight": np.resize(WEIGHT + 0.5, MANY)}
        if "sample_weight" in known
        else {}
    )


def shares_of(k):
    data = tied_rows(k)
    return data | {"y": 0.5 * data["second"] + 0.5 * np.eye(k)[data["y"]]}


def without_a_class():
    data = tied_rows(3)
    kept = data["y"] != 1
    return {key: one[kept] for key, one in data.items()}


def calls_of_maps():
    for parameter in test_methods.instances():
        cls, option, k = parameter.values
        title = f"{dict(option)}, {k} classes"
        yield cls.__name__, title, lambda p=parameter.values: results_of_map(*p)
    for cls in test_methods.CLASSES:
        for k in (2, 3):
            yield (
                cls.__name__,
                f"soft labels, {k} classes",
                lambda c=cls, k=k: results_of_shares(c, k),
            )


def results_of_shares(cls, k):
    """A map of shares as labels, with rows of weight 0."""
    proba, y = test_methods.rows(k)
    shares = 0.6 * np.eye(k)[y] + 0.4 * np.roll(proba, 3, axis=0)
    model, more = test_methods.build(cls), {}
    if getattr(cls, "capabilities", None) is None or cls.capabilities.sample_weight:
        more = {"sample_weight": np.resize(WEIGHT, len(y))}
    at = {}
    if "groups" in inspect.signature(model.predict_proba).parameters:
        at = {"groups": test_methods.GROUPS}
    model.fit(proba, shares, soft_labels=True, **more, **at)
    return model, model.predict_proba(proba, **at)


def results_of_map(cls, option, k):
    """Predictions, attributes and what the methods give that take scores alone."""
    proba, y = test_methods.rows(k)
    n = len(y)
    between = 0.6931 * proba + 0.3069 * np.roll(proba, 1, axis=0)
    model, given, at = test_methods.build(cls, option), {}, {}
    if "groups" in inspect.signature(model.predict_proba).parameters:
        given, at = {"groups": test_methods.GROUPS}, {"groups": test_methods.GROUPS}
    if getattr(cls, "capabilities", None) is None or cls.capabilities.sample_weight:
        given["sample_weight"] = np.resize(WEIGHT, n)
    model.fit(proba, y, **given)
    found = {
        "seen": model.predict_proba(proba, **at),
        "between": model.predict_proba(between, **at),
        "self": model,
    }
    for name, method in inspect.getmembers(model, inspect.ismethod):
        if name.startswith(("predict_", "posterior")) and name != "predict_proba":
            try:
                found[name] = method(
                    between[:9], **{key: one[:9] for key, one in at.items()}
                )
            except (TypeError, ValueError, AttributeError):
                found[name] = REFUSED
    if k == 2 and hasattr(model, "threshold") and not at:
        try:
            found["threshold"] = [model.threshold(target) for target in (0.3, 0.5)]
        except (TypeError, ValueError):
            found["threshold"] = REFUSED
    return found


LR = LogisticRegression(tol=1e-12, max_iter=1000)
MODELS = {
    CalibratedModel: [{"recalibrator": "platt"}, {"recalibrator": "isotonic"}],
    RefineThenCalibrateCV: [
        {"param_grid": {"C": [0.01, 1.0]}},
        {"param_grid": {"C": [0.01, 1.0]}, "refinement": "isotonic"},
    ],
    AngularCalibratedClassifier: [{}],
    CostSensitiveClassifier: [{"costs": [[0.0, 1.0], [3.0, 0.5]]}],
    SelectiveClassifier: [{}, {"coverage": 0.7}],
    MulticalibratedModel: [{"groups": [0], "n_rounds": 1, "n_trees": 3}],
}


def calls_of_models():
    for cls, settings in MODELS.items():
        for setting in settings:
            for option in [{}, *options_of_class(cls)]:
                title = str({key: str(one) for key, one in (setting | option).items()})
                yield (
                    cls.__name__,
                    title,
                    lambda c=cls, o=setting | option: results_of_model(c, o),
                )
    yield "GroupRecalibration", "of many groups", results_of_groups


def options_of_class(cls):
    for option, parameter in inspect.signature(cls).parameters.items():
        default = parameter.default
        if option not in ("n_jobs", "random_state", "error_score"):
            for value in strings(parameter.annotation):
                if value != default:
                    yield {option: value}
            if isinstance(default, bool):
                yield {option: not default}
            elif isinstance(default, float):
                yield {option: 0.8 * default}


def features():
    data = tied_rows(2)
    logit = np.log(data["first"][:, 1] / data["first"][:, 0])
    return np.column_stack([logit, data["second"][:, 1], np.arange(N) % 3]), data["y"]


def results_of_model(cls, option):
    X, y = features()
    if cls is AngularCalibratedClassifier:
        model = cls(LR, **option).fit(X, y)
    else:
        model = cls(LR, **option).fit(X, y, sample_weight=WEIGHT + 0.01)
    found = {"self": model}
    for name in (
        "predict_proba",
        "predict",
        "decision_function",
        "predict_actions",
        "confidence",
    ):
        try:
            found[name] = getattr(model, name)(X)
        except (AttributeError, TypeError, ValueError):
            found[name] = REFUSED
    return found


def results_of_groups():
    proba, y = test_methods.rows(2)
    group = np.arange(len(y)) % 5
    model = GroupRecalibration(strength=3.0)
    model.fit(proba, y, groups=group, sample_weight=np.resize(WEIGHT, len(y)))
    return model, model.predict_proba(
        proba, groups=np.roll(group, 1) + (group == 2) * 40
    )


def calls_of_summaries():
    for kind, k in (("auto", 2), ("auto", 3), ("classwise", 3), ("top_label", 3)):
        name = f"CalibrationSummary {kind} of {k} classes"
        for measure, one in sorted(all_metrics().items()):
            if one.spec.poolable:
                for bits in ("exact", "coarse"):
                    yield (
                        name,
                        f"measure({measure!r}), {bits}",
                        lambda m=measure, a=(kind, k, bits): summary(*a).measure(m),
                    )
        for bits in ("exact", "coarse"):
            for title, ask in SUMMARY.items():
                yield (
                    name,
                    f"{title}, {bits}",
                    lambda ask=ask, a=(kind, k, bits): ask(summary(*a)),
                )


SUMMARY = {
    "fields": lambda found: {
        "totals": found.totals,
        "n_samples": found.n_samples,
        "weight": found.weight,
        "n_cells": found.n_cells,
        "significant_bits": found.significant_bits,
    },
    "samples": lambda found: found.samples(),
    "reliability_curve": lambda found: found.reliability_curve(n_bins=5),
    "test": lambda found: found.test(n_resamples=19),
    "fit": lambda found: found.fit("platt").predict_proba([[0.2, 0.8], [0.7, 0.3]]),
    "cross_validate": lambda found: found.cross_validate(["platt", "isotonic"], cv=3),
    "rows_across": lambda found: found.rows_across([0.25, 0.5]),
    "ends": lambda found: inference.confidence_interval(found, measure="brier_loss"),
}


@functools.cache
def summary(kind, k, bits):
    data = tied_rows(k)
    found = CalibrationSummary(multiclass=kind, classes=range(k))
    for part in (slice(0, 31), slice(31, None)):
        found.update(data["y"][part], data["first"][part], sample_weight=WEIGHT[part])
    if bits == "coarse":
        many = np.random.default_rng(2).dirichlet(np.ones(k), 4500)
        found.update(np.arange(4500) % k, many, sample_weight=np.resize(WEIGHT, 4500))
        found = found.coarsen(4096)
    return found


def calls_of_monitors():
    for how in (
        {},
        {"alarm": "test"},
        {"average_run_length": 200},
        {"alpha": 0.2, "alarm": "test"},
        {"groups": [0, 1]},
        {"multiclass": "classwise"},
        {"multiclass": "confidence"},
    ):
        yield "CalibrationMonitor", str(how), lambda how=how: results_of_monitor(how)


def results_of_monitor(how):
    k = 3 if "multiclass" in how else 2
    data = tied_rows(k)
    monitor = CalibrationMonitor(classes=range(k), **how)
    for turn, (start, end) in enumerate([(0, 30), (30, 31), (31, N), (0, N), (0, N)]):
        y = data["y"][start:end]
        y = (y + 1) % k if turn > 2 else y
        more = {"groups": data["groups"][start:end]} if "groups" in how else {}
        monitor.update(y, data["first"][start:end], **more)
    found = {"self": monitor}
    for name in ("region", "diagnose"):
        try:
            found[name] = getattr(monitor, name)()
        except ValueError:
            found[name] = REFUSED
    return found


def calls_of_displays():
    for name in displays.__all__:
        cls = getattr(displays, name)
        for option in [{}, *options_of_class(cls)]:
            yield name, str(option), lambda c=cls, o=option: results_of_display(c, o)
        if hasattr(cls, "from_predictions"):
            yield name, "weights", lambda c=cls: results_of_predictions(c)


def results_of_display(cls, option):
    """Those of the display of a docstring."""
    known = {}
    for example in doctest.DocTestParser().get_examples(cls.__doc__):
        exec(example.source, known)
    made = known["display"]
    for name, value in option.items():
        setattr(made, name, value)
    plt.close("all")
    made.plot()
    return drawn_by(made)


def results_of_predictions(cls):
    data = tied_rows(2)
    more = {"grades": [0.3, 0.6]} if cls.__name__ == "GradeDisplay" else {}
    if cls.__name__ == "GroupReliabilityDisplay":
        more = {"groups": data["groups"], "min_rows": 10}
    if cls.__name__ not in ("GradeDisplay",):
        more["sample_weight"] = WEIGHT
    made = cls.from_predictions(data["y"], data["first"][:, 1], **more)
    return drawn_by(made)


def drawn_by(made):
    """The points of a display, and the data of everything that is drawn."""
    figure = plt.gcf()
    found = {"plotted_data": made.get_plotted_data()}
    found["size"] = figure.get_size_inches()
    below = [one for ax in figure.axes for one in ax.child_axes]
    for number, ax in enumerate([*figure.axes, *below]):
        found[f"lines {number}"] = [np.ravel(line.get_xydata()) for line in ax.lines]
        found[f"patches {number}"] = [
            np.ravel(patch.get_patch_transform().transform(patch.get_path().vertices))
            for patch in ax.patches
        ]
        found[f"collections {number}"] = [
            np.ravel(
                np.concatenate(
                    [np.asarray(one.get_offsets(), float), *vertices_of(one)]
                )
            )
            for one in ax.collections
        ]
        found[f"limits {number}"] = [*ax.get_xlim(), *ax.get_ylim()]
        found[f"words {number}"] = words_of(ax)
        found[f"styles {number}"] = styles_of(ax)
        places = [f"{text.get_ha()} {text.get_va()}" for text in ax.texts]
        found[f"places of texts {number}"] = "; ".join(places)
        rotations = {label.get_rotation() for label in ax.get_xticklabels()}
        found[f"rotations {number}"] = sorted(rotations)
    plt.close("all")
    return found


def words_of(ax):
    """A checksum of the texts of some axes without their numbers, of which digits differ."""
    texts = [ax.get_title(), ax.get_xlabel(), ax.get_ylabel(), *ax.texts]
    if ax.get_legend() is not None:
        texts += ax.get_legend().get_texts()
    words = [one if isinstance(one, str) else one.get_text() for one in texts]
    without = re.sub(r"[-\d.,]+", "#", "; ".join(words))
    return f"{zlib.crc32(without.encode()):x}"


def styles_of(ax):
    """Widths and places in front of each other of what is drawn, and what is filled."""
    lines = [(line.get_linewidth(), line.get_zorder()) for line in ax.lines]
    patches = [
        (patch.get_linewidth(), patch.get_zorder(), patch.get_fill())
        for patch in ax.patches
    ]
    collections = [one.get_zorder() for one in ax.collections]
    return np.concatenate([np.ravel(lines), np.ravel(patches), collections])


def vertices_of(collection):
    return [path.vertices for path in collection.get_paths()]


ALL = (
    calls_of_displays,
    calls_of_functions,
    calls_of_maps,
    calls_of_models,
    calls_of_summaries,
    calls_of_monitors,
    *OTHERS,
    *EDGES,
    *PATHS,
    *OUTPUTS,
)


def calls():
    """{name: {title: function}} of all calls."""
    found = {}
    for group in ALL:
        for name, title, ask in group():
            found.setdefault(name, {})[title] = ask
    return found


def answer(ask):
    """{field: number or word} of a call, and the size of each number.

    Warnings and errors count by the numbers in their messages.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = ask()
        except (ValueError, TypeError, AttributeError) as error:
            result = {"": REFUSED, "message": numbers_of_messages([error])}
            if isinstance(error, InvalidInputError):
                result["words"] = str(error)
        messages = [
            one.message
            for one in caught
            if issubclass(one.category, CalibrationWarning)
        ]
        found = dict(parse_error_fields(result))
        if messages:
            found["warnings"] = numbers_of_messages(messages)
            found["words of warnings"] = checksum_of_words(map(str, messages))
    pairs = {key: number_of_field(one) for key, one in found.items()}
    values = {key: value for key, (value, _) in pairs.items()}
    return values, {key: size for key, (_, size) in pairs.items()}


def numbers_of_messages(messages):
    """How many messages there are, and the numbers in them."""
    found = [numbers_in(str(one)) for one in messages]
    return np.concatenate([[len(messages)], *found])


def checksum_of_words(texts):
    """A checksum of texts without their numbers, of which digits differ."""
    without = re.sub(r"-?\d[\d.,]*(e-?\d+)?", "#", "; ".join(texts))
    return f"{zlib.crc32(without.encode('utf-8', 'replace')):x}"


def number_of_field(one):
    """A word as it is, and of an array its number and its size."""
    return (one, 0.0) if isinstance(one, str) else number_of(one)


def rounded(values):
    return {
        key: one if isinstance(one, str) else float(f"{one:.8g}")
        for key, one in values.items()
    }


def write(names):
    """Store the numbers of all calls, or of those functions and classes that are named."""
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    stored, total = {}, 0.0
    for name, titles in calls().items():
        if names and name not in names:
            stored[name] = before.get(name, {})
            continue
        stored[name] = {}
        longest = LONGEST.get(name, 0.3 if name.endswith("Display") else USUALLY)
        for title, ask in titles.items():
            for _ in range(2):  # the first time may load and compile
                start = time.process_time()
                values, _ = answer(ask)
                took = time.process_time() - start
                if took <= longest or took > 5:
                    break
            total += took if took <= longest else 0.0
            stored[name][title] = rounded(values) if took <= longest else None
            if before.get(name, {}).get(title) not in (None, stored[name][title]):
                print("changed:", name, title)
    text = json.dumps(stored, indent=0, ensure_ascii=False)
    FILE.write_text(text + "\n", encoding="utf-8")
    print(f"{total:.1f} s, {len(text)} bytes")


if __name__ == "__main__":
    write(sys.argv[1:])
