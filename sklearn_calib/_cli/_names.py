"""Names of columns and classes, as they are given on the command line."""

import csv
from collections.abc import Collection, Iterable
from itertools import count, takewhile


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


def split_columns(values: Iterable[str], present: Collection[str]) -> list[str]:
    """Names of columns; that of a list, whose values are columns by place, stands for them all."""
    names: list[str] = []
    for name in split_names(values, present):
        places = takewhile(present.__contains__, (f"{name}.{place}" for place in count()))
        names += ([] if name in present else [*places]) or [name]
    return names
