"""A document in sentences, for a file of evidence; labels and names are data and are escaped."""

import math
from typing import Any

import numpy as np

from .._show import plain, quoted
from ._document import MapDocument
from ._nodes import Chain, SoftmaxAffine

_LABELS = 10  # of which each is named
_NAMES = 20
_EXACT = 1e-12  # of a mean that was met


def description(document: MapDocument) -> str:
    """One sentence or two a line: the method, the rows, the mean, an offset, the checksum."""
    record = document.record
    lines = [_of_method(document), _of_rows(document, record)]
    if "columns" in record:
        said = (
            f"{plain(role)} {', '.join(quoted(name) for name in names[:_NAMES])}"
            + f" and {len(names) - _NAMES} more" * (len(names) > _NAMES)
            for role, names in record["columns"].items()
        )
        lines.append(f"Columns: {'; '.join(said)}.")
    if "scale" in record:
        low, high = record["scale"]
        lines.append(f"Scores: numbers from {low:g} to {high:g}, which became probabilities.")
    if "date" in record:
        lines.append(f"Date: {plain(record['date'])}.")
    if "mean_after" in record:
        lines += _of_means(document, record)
    lines += _of_offset(document, record)
    lines += [
        f"Its tables are right to {error:g} ({plain(name)})."
        for name, error in document.largest_error.items()
        if isinstance(error, int | float)
    ]
    if "edited" in document.estimator:
        lines.append("It was edited by hand since: the record is of the map as it was fitted.")
    lines.append(f"SHA-256 of the map, of its labels and numbers alone: {document.digest}.")
    return "\n".join(lines)


def _of_method(document):
    said = document.estimator
    name = plain(said.get("name", "unknown"))
    params = said.get("params")
    given = ""
    if isinstance(params, dict) and params:
        pairs = (f"{plain(key)}={plain(repr(value), 80)}" for key, value in params.items())
        given = f" ({', '.join(pairs)})"
    steps = said.get("steps")
    if isinstance(steps, list):
        names = (step.get("name") if isinstance(step, dict) else step for step in steps)
        given = f" of {', '.join(plain(one) for one in names)}"
    k = len(document.classes)
    package = plain(document.package)
    return f"A map of {k} classes: {name}{given}, written by sklearn-calib {package}."


def _of_rows(document, record):
    if "rows" not in record:
        return "It has no record of the rows that it was fitted to."
    rows, events = record["rows"], record.get("events")
    if events is None:
        return f"It was adapted to {rows} rows without labels."
    total = sum(events)
    weighted = "" if total == rows else f", weights that add up to {total:.10g}"
    named = list(zip(document.classes.tolist(), events, strict=True))
    parts = [
        f"{count:.10g} of {quoted(label)} ({count / total:.4g} of all)"
        for label, count in named[:_LABELS]
    ]
    more = f" and {len(named) - _LABELS} more classes" if len(named) > _LABELS else ""
    return f"It was fitted to {rows} rows{weighted}: {', '.join(parts)}{more}."


def _of_means(document, record):
    k = len(document.classes)
    columns = [1] if k == 2 else range(min(k, _LABELS))
    events, total = record.get("events"), sum(record.get("events", [0]))
    lines = []
    for column in columns:
        label = quoted(document.classes.tolist()[column])
        before, after = record["mean_before"][column], record["mean_after"][column]
        said = f"The mean probability of {label} on these rows is {before:.6g} as given and "
        said += f"{after:.6g} by the map"
        if events and events[column] > 0:
            seen = events[column] / total
            said += f"; observed is {seen:.6g}, so observed / expected goes from "
            said += f"{_ratio(seen, before)} to {_ratio(seen, after)}"
        lines.append(f"{said}.")
    if "rows_of_mean_after" in record:
        some = record["rows_of_mean_after"]
        lines.append(f"What the map adds to the mean is taken from {some} evenly spaced rows.")
    return lines


def _ratio(seen, expected):
    return f"{seen / expected:.4g}" if expected > 0 else "infinite"


def _of_offset(document, record):
    """What an offset does, if the map, or its last step, is one."""
    node = document.root
    last = node.parts[-1] if isinstance(node, Chain) else node
    if len(document.classes) != 2 or not isinstance(last, SoftmaxAffine):
        return []
    tree: Any = last.tree()
    if tree["coef"] != 1 or np.shape(tree["intercept"]) != (2,):
        return []
    added = tree["intercept"][1] - tree["intercept"][0]
    label = quoted(document.classes.tolist()[1])
    what = "The map" if last is node else "Its last step"
    factor = f"{math.exp(added):.4g}" if abs(added) < 700 else f"exp({added:.6g})"
    lines = [
        f"{what} adds {added:.6g} to the log-odds of {label}: the odds are multiplied by {factor}. "
        "The order of the rows stays, and every measure of ranking."
    ]
    if "slope" in record:
        slope, intercept = record["slope"], record["intercept"]
        lines.append(
            f"The calibration slope on these rows, {slope:.4g}, stays; the calibration intercept "
            f"goes from {intercept:.4g} to {intercept - slope * added:.4g}."
        )
    if "slope" in record and record.get("events"):
        lines.append(_verdict(record))
    return lines


def _verdict(record):
    seen = record["events"][1] / sum(record["events"])
    before, after = (abs(record[name][1] - seen) for name in ("mean_before", "mean_after"))
    if abs(before - after) <= _EXACT:
        return "The mean is as far from the observed frequency of these rows as before."
    words = "nearer to" if after < before else "further from"
    return (
        f"The mean is now {words} the observed frequency of these rows: {after:.4g} away, before "
        f"{before:.4g}."
    )
