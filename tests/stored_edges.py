"""Calls of `stored_numbers` at boundaries: scores of 0, 1/2 and 1, the fewest rows, one label."""

import inspect

import numpy as np
import test_functions
import test_methods
from stored_calls import THREE, TWO, tied_rows
from test_functions import FUNCTIONS, TWO_CLASSES, call

from sklearn_calib import displays, maps
from sklearn_calib.recalibrators import Identity

N = test_functions.N
REFUSED = "refused"
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
FLAT = {
    ("AngularCalibration", "one label"),
    ("AngularCalibration", "two rows"),
    ("EnsembleTemperatureScaling", "corners"),
    ("EnsembleTemperatureScaling", "one label"),
}


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
        found["thresholds"] = thresholds_of(model, (0, 0.25, 0.5, 1))
    return found


def thresholds_of(model, targets):
    try:
        return model.threshold(targets)
    except (ValueError, TypeError):
        return REFUSED


#: Values of four pieces or knots, with flat pieces before and after each turn.
COURSES = {
    "rising": [0.0, 0.3, 0.7, 1.0],
    "falling": [0.9, 0.5, 0.4, 0.0],
    "flat": [0.4, 0.4, 0.4, 0.4],
    "flat, rising": [0.2, 0.2, 0.6, 0.9],
    "rising, flat, falling": [0.1, 0.6, 0.6, 0.2],
    "falling, flat, falling": [0.9, 0.5, 0.5, 0.1],
    "falling, flat, rising": [0.9, 0.5, 0.5, 0.8],
}
POLYNOMIALS = {
    "constant": [0.4],
    "slope of 0": [0.4, 0.0],
    "line": [0.5, 0.4],
    "falling line": [0.5, -0.4],
    "clipped line": [0.5, 0.6],
    "parabola": [0.3, 0.0, 0.3],
    "cubic": [0.5, 0.1, 0.0, 0.3],
}
KNOTS = [0.0, 0.25, 0.5, 1.0]


def curves():
    """(title, map) of curves of each kind."""
    for title, values in COURSES.items():
        linear = {"knots": KNOTS, "values": values, "domain": [0.0, 1.0]}
        yield title, maps.Steps(input="proba", edges=KNOTS[1:], values=values)
        yield title, maps.PiecewiseLinear(input="proba", **linear)
        yield (
            title,
            maps.PiecewiseCubic(input="proba", slopes=[0.0, 0.0, 0.0, 0.0], **linear),
        )
    for title, coef in POLYNOMIALS.items():
        yield title, maps.SigmoidPoly(input="logit", coef=coef)
        yield (
            title,
            maps.ClippedChebyshev(input="proba", domain=[0.0, 1.0], coef=coef),
        )


def calls_of_curves():
    for title, curve in curves():
        yield curve.kind, title, lambda curve=curve: of_curve(curve)


class OfCurve(Identity):
    def __init__(self, curve=None):
        self.curve = curve

    def _make_map(self):
        return self.curve


def of_curve(curve):
    """Values at knots and next to them, direction, turning points and thresholds."""
    at = np.unique(
        np.clip([np.nextafter(KNOTS, -1), KNOTS, np.nextafter(KNOTS, 2)], 0, 1)
    )
    fitted = OfCurve(curve).fit([0.2, 0.8], [0, 1])
    direction = curve.direction()
    return {
        "values": fitted.predict_proba(at),
        "direction": 9 if direction is None else direction,
        "turns": np.append(curve.find_turns(every=False), 9.0),
        "pieces": np.append(curve.find_turns(every=True), 9.0),
        "thresholds": thresholds_of(fitted, (0, *KNOTS[1:], 0.6)),
    }


def calls_of_several_curves():
    """Displays of two models, and of three classes by themselves."""
    models = {"a": TWO["first"][:, 1], "b": TWO["second"][:, 1]}
    for name in displays.__all__:
        make = getattr(getattr(displays, name), "from_predictions", None)
        known = inspect.signature(make).parameters if make is not None else {}
        more = {"grades": [0.3, 0.6]} if "grades" in known else {}
        if "groups" in known:
            more |= {"groups": TWO["groups"], "min_rows": 10}
        if "n_resamples" in known:
            more["n_resamples"] = 9
        if make is not None:
            yield (
                name,
                "two models",
                lambda make=make, more=more: drawn_parts(make, TWO["y"], models, more),
            )
        if "multiclass" in known:
            more = more | {"multiclass": "classwise"}
            yield (
                name,
                "classes",
                lambda make=make, more=more: drawn_parts(
                    make, THREE["y"], THREE["first"], more
                ),
            )


def drawn_parts(make, y, proba, more):
    from stored_numbers import drawn_by

    return drawn_by(make(y, proba, **more))


EDGES = (
    calls_of_functions_at_edges,
    calls_of_maps_at_edges,
    calls_of_curves,
    calls_of_several_curves,
)
