"""Names of columns and classes, as they are given on the command line."""

import csv
from collections.abc import Collection, Iterable


def split_names(values: Iterable[str], present: Collection[str] = ()) -> list[str]:
    """Names out of arguments such as ``a,b`` and ``"x,y",z``; an argument may be one name."""
    names = []
    for value in values:
        if value in present:
            names.append(value)
            continue
        try:
            parts = next(csv.reader([value], skipinitialspace=True), [])
        except csv.Error:  # a line break inside
            parts = value.split(",")
        names += [part.strip() for part in parts]
    return names
