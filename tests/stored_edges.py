"""Calls of `stored_numbers` at boundaries: scores of 0, 1/2 and 1, the fewest rows, one label."""

import inspect

import numpy as np
import test_functions
import test_methods
from stored_calls import tied_rows
from test_functions import FUNCTIONS, TWO_CLASSES, call

N = test_functions.N
#: Rows whose scores are 0, 1/2 or 1, some of them certain of a wrong label, in turn.
CORNERS = {
    2: np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.5, 0.5]]),
    3: np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.5, 0.5]])
    / np.array([[1.0], [1.0], [3.0], [1.0]]),
}


def corner_rows(k):
    """Rows of `tied_rows` whose scores are at corners and ties of the simplex."""
    data = tied_rows(k)
    data["first"] = CORNERS[k][np.arange(N) % 4]
    data["second"] = CORNERS[k][np.arange(N) // 4 % 4]
    return data


def few_rows(k, n):
    return {key: one[:n] for key, one in tied_rows(k).items()}


def one_label(k):
    return tied_rows(k) | {"y": np.zeros(N, dtype=int)}


def few_clusters(k, n):
    return tied_rows(k) | {"clusters": np.arange(N) % n}


EDGES_OF_ROWS = {
    "corners": corner_rows,
    "one row": lambda k: few_rows(k, 1),
    "two rows": lambda k: few_rows(k, 2),
    "five rows": lambda k: few_rows(k, 5),
    "one label": one_label,
}
FEW_DRAWS = {"n_resamples": 9, "level": 0.5}


def calls_of_functions_at_edges():
    for name, function in sorted(FUNCTIONS.items()):
        known = inspect.signature(function).parameters
        few = {key: one for key, one in FEW_DRAWS.items() if key in known}
        alone = {"groups": None} if takes_clusters(name, known) else {}
        for title, make in EDGES_OF_ROWS.items():
            for k in (2,) if name in TWO_CLASSES else (2, 3):
                if title in ("one row", "two rows") and k == 3:
                    continue
                labels = {"labels": range(k)} if "labels" in known else {}
                yield (
                    name,
                    f"{title}, {k} classes",
                    lambda f=function, m=make, k=k, how=few | alone | labels: call(
                        f, m(k), **how
                    ),
                )
        if alone:
            for n in (1, 2, 3):
                yield (
                    name,
                    f"{n} clusters",
                    lambda f=function, n=n, how=few: call(f, few_clusters(2, n), **how),
                )


def takes_clusters(name, known):
    return (
        "groups" in known
        and known["groups"].default is None
        and name != "group_calibration"
    )


FITTED = {
    "corners": corner_rows,
    "two rows": lambda k: few_rows(k, 2),
    "ten rows": lambda k: few_rows(k, 10),
    "one label": one_label,
}


#: Fits with a flat minimum, whose place depends on the processor.
FLAT = {("AngularCalibration", "one label"), ("EnsembleTemperatureScaling", "corners")}


def calls_of_maps_at_edges():
    for cls in test_methods.CLASSES:
        for title, make in FITTED.items():
            if (cls.__name__, title) in FLAT:
                continue
            for k in (2, 3) if title == "corners" else (2,):
                yield (
                    cls.__name__,
                    f"{title}, {k} classes",
                    lambda c=cls, m=make, k=k: map_at_edges(c, m(k), k),
                )


def map_at_edges(cls, data, k):
    """A map, its values at corners and next to them, and its thresholds at the ends and at 1/2."""
    model, given, at = test_methods.build(cls), {}, {}
    corners = np.vstack([CORNERS[k], 0.999999 * CORNERS[k] + 0.000001 / k])
    if "groups" in inspect.signature(model.predict_proba).parameters:
        given = {"groups": data["groups"]}
        at = {"groups": np.arange(len(corners)) % 2}
    model.fit(data["first"], data["y"], classes=range(k), **given)
    found = {"self": model, "values": model.predict_proba(corners, **at)}
    if k == 2 and hasattr(model, "threshold") and not at:
        found["thresholds"] = [threshold_of(model, target) for target in (0, 0.5, 1)]
    return found


def threshold_of(model, target):
    try:
        return model.threshold(target).score
    except (ValueError, TypeError):
        return -1.0


EDGES = (calls_of_functions_at_edges, calls_of_maps_at_edges)
