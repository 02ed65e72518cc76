"""The columns of a table of groups: numbers or categories, read once and coded for trees."""

from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._kernels._binning import BIN_EDGE_TOLERANCE_IN_BINS, find_mass_midpoint_fractions
from .._show import quote_text
from .._typing import AnyArray, ArrayLike, FloatArray, IntArray
from .._validation import (
    convert_dates_to_numpy_if_any,
    convert_list_to_object_array,
    is_missing_or_infinite,
    iter_named_columns,
    read_array,
)
from ..exceptions import add_error_context, invalid_input

_NUMBER_TYPES = (Real, Decimal, np.bool_)
# The mean residual of a category is shrunk by this many rows of residual 0.
SHRINKAGE_ROWS = 20.0
# Bins of a column, besides that of the missing values; a bin takes one byte.
MAX_COLUMN_BINS = 255


def read_group_columns(
    groups: object, n_rows: int, what: str = "groups"
) -> dict[Any, AnyArray]:
    """Return the columns of a table by name, as arrays of `n_rows` entries.

    Tables of pandas, polars or Arrow, a dict of columns, an array of two dimensions,
    one column, or a list of boolean masks. Columns of an array are numbered.
    """
    with add_error_context(what):
        columns = _convert_group_table(groups, what)
    if not columns:
        raise invalid_input(
            expected=f"at least one column of {what}",
            got="none",
            hint="Name or pass one",
        )
    for name, column in columns.items():
        if column.shape != (n_rows,):
            raise invalid_input(
                expected=f"one entry of {what} for each of the {n_rows} rows",
                got=f"shape {column.shape} in column {quote_text(name)}",
                hint="Check that table and probabilities come from the same selection",
            )
    return columns


def _convert_group_table(groups, what):
    """Return {name: column} of a table, a single column or a list of masks."""
    if groups is None or isinstance(groups, str):
        got = "none" if groups is None else f"the text {quote_text(groups)}"
        raise invalid_input(
            expected=f"a table of {what}",
            got=got,
            hint=f"Pass {what}=, a table of columns, or one column",
            error=TypeError,
        )
    masks = (
        isinstance(groups, list | tuple) and len(groups) and all(map(_is_mask, groups))
    )
    pairs = list(
        enumerate(groups)
        if masks
        else iter_named_columns(convert_list_to_object_array(groups))
    )
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise invalid_input(
            expected="different names of columns",
            got=f"{quote_text(twice)} twice",
            hint="Rename them",
        )
    return {
        name: _convert_column_to_floats_or_objects(column, name)
        for name, column in pairs
    }


def _is_mask(value):
    # The names of the types of numpy, pandas and polars.
    dtype_name = str(getattr(value, "dtype", "")).lower()
    return dtype_name in ("bool", "boolean") and np.ndim(value) == 1


def _convert_column_to_floats_or_objects(column, name):
    """Convert a column to an array: float64 for numbers and dates, else objects."""
    # The dtype of a categorical column of pandas.
    is_categorical = getattr(getattr(column, "dtype", None), "name", "") == "category"
    if isinstance(column, np.ma.MaskedArray):
        column = column.astype(object).filled(None)
    values = convert_dates_to_numpy_if_any(
        read_array(convert_list_to_object_array(column), f"column {quote_text(name)}")
    )
    if values.dtype.kind in "mM":
        missing = np.isnat(values)
        # Dates become numbers, so that trees can cut them into periods.
        values = np.where(missing, np.nan, values.astype(np.int64).astype(float))
    if values.dtype.kind in "biuf" and not is_categorical:
        return values.astype(np.float64)
    if values.dtype.kind == "c":
        raise invalid_input(
            expected="numbers or categories",
            got=f"dtype {values.dtype}",
            hint="Pass two columns",
        )
    values = values.astype(object)
    value_types = set(map(type, values.ravel()))
    if unhashable := [
        value_type for value_type in value_types if value_type.__hash__ is None
    ]:
        raise invalid_input(
            expected="single values as groups",
            got=f"{unhashable[0].__name__} in column {quote_text(name)}",
            hint="Pass text or numbers",
            error=TypeError,
        )
    are_numbers = all(
        issubclass(value_type, _NUMBER_TYPES) or is_missing_type(value_type)
        for value_type in value_types
    )
    # Objects that are all numbers, such as Decimals or integers with None, are numbers.
    if are_numbers and not is_categorical and values.size:
        return np.array(
            [np.nan if is_missing_or_infinite(v) else float(v) for v in values.ravel()]
        )
    return values


def select_columns(columns: dict[Any, AnyArray], names: list[Any]) -> list[AnyArray]:
    """Return the columns of a fit in its order; a missing one is an error."""
    if missing := [name for name in names if name not in columns]:
        first_names = ", ".join(map(quote_text, names[:10]))
        raise invalid_input(
            expected=f"the columns {first_names} of groups, as at fit",
            got=f"{len(columns)} columns",
            sentence=(
                f"The table of groups lacks {quote_text(missing[0])}; at fit it had the columns "
                f"{first_names}"
            ),
            hint="Pass the table with all columns of the fit",
        )
    return [columns[name] for name in names]


def is_missing_type(kind: type) -> bool:
    """Return whether a type is that of a missing value."""
    return kind.__name__ in ("NoneType", "NAType", "NaTType", "MaskedConstant")


def encode_groups(groups: ArrayLike, n_rows: int) -> IntArray:
    """Return the number of each row's group, counted from 0.

    There is one value of any type for each row, and none is missing.
    """
    try:
        values = np.asarray(groups)
    except ValueError:
        # Rows of several lengths.
        values = np.empty((len(groups), 0))  # type: ignore[arg-type]
    if values.shape != (n_rows,):
        raise invalid_input(
            expected=f"groups: one value for each of the {n_rows} rows",
            got=f"shape {values.shape}",
            hint=(
                "Pass one column, such as the number of the patient; calibration_report "
                "audits the groups of a table with by=table, or report.add_groups(table)"
            ),
        )
    if values.dtype.kind == "O":
        values = np.array(
            ["\0" if is_missing_value(value) else str(value) for value in values]
        )
        missing = values == "\0"
    else:
        # NaN and NaT differ from themselves.
        missing = values != values
    if missing.any():
        raise invalid_input(
            expected="a group for every row",
            got="none",
            hint="Give a row that belongs to no other a group of its own",
            row=missing.argmax(),
        )
    return np.unique(values, return_inverse=True)[1].ravel()


class ColumnNamesAndCategories(NamedTuple):
    """The columns that a fit has seen.

    `categories` has for each column the places of its categories, or None for numbers.
    """

    names: list[Any]
    categories: list[dict[Any, int] | None]

    @classmethod
    def learn_categories(
        cls, columns: dict[Any, AnyArray]
    ) -> "ColumnNamesAndCategories":
        """Learn the categories, in the order in which they come."""
        categories: list[dict[Any, int] | None] = []
        for column in columns.values():
            different = dict.fromkeys(column.tolist() if column.dtype == object else ())
            places = {
                v: i
                for i, v in enumerate(v for v in different if not is_missing_value(v))
            }
            categories.append(places if column.dtype == object else None)
        return cls(list(columns), categories)

    def encode_columns(self, columns: dict[Any, AnyArray]) -> list[AnyArray]:
        """Encode the same columns of other rows; -1 marks missing or new categories."""
        triples = zip(
            select_columns(columns, self.names),
            self.names,
            self.categories,
            strict=True,
        )
        return [
            _convert_number_column(column, name) if categories is None
            else _encode_categories_or_minus_one(column, categories, name)
            for column, name, categories in triples
        ]  # fmt: skip


def is_missing_value(value: object) -> bool:
    """Return whether an entry of an object column is missing.

    An infinite number is not.
    """
    return is_missing_type(type(value)) or (
        is_missing_or_infinite(value) and value not in (np.inf, -np.inf)
    )


def _convert_number_column(column, name):
    """Return a column of numbers as at fit; a column of missing values only becomes NaN."""
    if column.dtype == object:
        # A categorical column of numbers is read as objects.
        numbers = np.full(len(column), np.nan)
        for row, value in enumerate(column.tolist()):
            if is_missing_value(value):
                continue
            if not isinstance(value, _NUMBER_TYPES):
                raise invalid_input(
                    expected="numbers, as at fit",
                    got=f"{value!r} in column {quote_text(name)}",
                    hint="Pass the column as it was at fit",
                )
            numbers[row] = value
        column = numbers
    # The limits keep the middle of two numbers finite.
    return np.clip(column, -1e300, 1e300)


def _encode_categories_or_minus_one(column, number_by_category, name):
    """Return the number of each category, and -1 for new ones."""
    values = column.tolist()
    # A column of numbers at fit and of text at predict would otherwise silently be all
    # new categories.
    kinds = {isinstance(key, _NUMBER_TYPES) for key in number_by_category}
    for value in dict.fromkeys(values):
        if (
            kinds
            and isinstance(value, _NUMBER_TYPES) not in kinds
            and not is_missing_value(value)
        ):
            got = f"the number {value:g}" if column.dtype != object else repr(value)
            got += f" in column {quote_text(name)}"
            raise invalid_input(
                expected="categories, as at fit",
                got=got,
                hint="Pass the column as it was at fit",
            )
    return np.fromiter(
        (number_by_category.get(v, -1) for v in values), np.intp, count=len(values)
    )


class ColumnBinner:
    """Bins of one byte for columns, learned on the training rows of one fit.

    Numbers: at most `n_bins` bins of equal weight, one for each value if these are
    few. Categories: one each; too many share bins with those of like mean residual,
    shrunk to 0. Bin 0: missing, or a category that the rows did not have. `unordered`:
    which have categories.
    """

    def __init__(
        self,
        columns: list[AnyArray],
        residual: FloatArray,
        weight: FloatArray,
        n_bins: int,
    ) -> None:
        self.maps = [
            compute_inner_bin_edges(c, weight, n_bins) if c.dtype.kind == "f"
            else _assign_bins_to_categories_and_unknown(c, residual, weight)
            for c in columns
        ]  # fmt: skip
        self.unordered = [c.dtype.kind != "f" for c in columns]

    def write_bins(self, columns: list[AnyArray], out: AnyArray) -> None:
        """Write the bins of the rows into the first columns of a uint8 array."""
        for j, (values, learned) in enumerate(zip(columns, self.maps, strict=True)):
            if values.dtype.kind == "f":
                fill_bin_codes_with_zero_if_nan(values, learned, out[:, j])
            else:
                out[:, j] = learned[np.where(values < len(learned) - 1, values, -1)]


def compute_inner_bin_edges(
    values: FloatArray, weight: FloatArray, n_bins: int
) -> FloatArray:
    """Return inner edges of at most `n_bins` bins of about equal weight."""
    is_present = ~np.isnan(values)
    distinct, distinct_index = np.unique(values[is_present], return_inverse=True)
    n_distinct = len(distinct)
    if n_distinct < 2:
        return np.empty(0)
    mass = np.bincount(distinct_index, weight[is_present], minlength=n_distinct)
    cumulative_weight = np.cumsum(mass)
    last_indices = np.arange(n_distinct - 1)
    if n_distinct > n_bins:
        shares = (np.arange(1, n_bins) - BIN_EDGE_TOLERANCE_IN_BINS) / n_bins
        indices = np.searchsorted(cumulative_weight, cumulative_weight[-1] * shares)
        last_indices = np.unique(np.minimum(indices, n_distinct - 2))
    return 0.5 * (distinct[last_indices] + distinct[last_indices + 1])


def fill_bin_codes_with_zero_if_nan(
    values: FloatArray, edges: FloatArray, out: AnyArray
) -> None:
    """Write 1 + the number of edges below each value; 0 for NaN."""
    out[:] = np.searchsorted(edges, values) + 1
    out[np.isnan(values)] = 0


def _assign_bins_to_categories_and_unknown(places: IntArray, residual, weight):
    """Return the bin of each category, and 0 after the last."""
    is_present = places >= 0
    size = int(places.max(initial=-1)) + 1
    mass = np.bincount(places[is_present], weight[is_present], minlength=size)
    # Rare categories have noisy means, which are shrunk to 0 before the categories are
    # ordered.
    mean = np.bincount(places[is_present], residual[is_present], minlength=size) / (
        mass + SHRINKAGE_ROWS
    )
    seen = np.flatnonzero(mass > 0)
    seen = seen[np.argsort(mean[seen], kind="stable")]
    bins = np.zeros(size + 1, dtype=np.uint8)
    if len(seen) <= MAX_COLUMN_BINS:
        bins[seen] = 1 + np.arange(len(seen))
    else:
        # More categories than bins: neighbours in the order of their residuals share a
        # bin.
        middle = (
            find_mass_midpoint_fractions(mass[seen]) * MAX_COLUMN_BINS
            + BIN_EDGE_TOLERANCE_IN_BINS
        )
        bins[seen] = 1 + np.minimum(middle, MAX_COLUMN_BINS - 1)
    return bins
