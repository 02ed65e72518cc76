"""Validation of costs and of the names of actions."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from .._show import quote_text
from .._typing import AnyArray, ArrayLike, FloatArray
from .._validation import read_numeric_array, reorder_columns_if_names_match
from ..exceptions import invalid_input
from ..metrics import BinaryProblem, Predictions, validate_predictions


def canonical_costs(
    costs: ArrayLike | None,
    classes: Any,
    *,
    n_rows: int | None = None,
    actions: AnyArray | None = None,
) -> FloatArray:
    """Validate costs of shape (n_classes, n_actions) or (n_rows, n_classes, n_actions).

    None is a cost of 1 for each error. `actions` are the names of the actions; without
    them there may be any number. Raises ValueError for another shape, missing or
    infinite costs, fewer than two actions, and costs under which an action never costs
    less than another one. Costs that differ by row may have such actions, since another
    row may need them. If the rows of a DataFrame are named after the classes, and its
    columns after the actions, they are put into that order.
    """
    n_classes = len(classes)
    # Without costs each error costs 1, so the cheapest action is the most probable
    # class.
    table = (
        1.0 - np.eye(n_classes) if costs is None else read_numeric_array(costs, "costs")
    )
    shape = f"({n_classes}, {'n_actions' if actions is None else len(actions)})"
    if n_rows is not None:
        shape += f" or ({n_rows}, {shape[1:]}"
    is_valid = table.ndim == 2 or (table.ndim == 3 and n_rows == len(table))
    is_valid = is_valid and table.shape[-2] == n_classes and table.shape[-1] > 1
    if not is_valid or (actions is not None and table.shape[-1] != len(actions)):
        raise invalid_input(
            "costs",
            expected=f"costs of shape {shape} with at least two actions",
            got=f"shape {table.shape}",
            hint=(
                "costs[j, a] is the cost of action a where class j is true; actions "
                "that are not the classes need names, as in actions=['no', 'yes', "
                "'ask']"
            ),
        )
    table = table.astype(np.float64)
    if not np.isfinite(table).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(table))[0])
        raise invalid_input(
            expected="finite costs",
            got=f"costs[{', '.join(map(str, index))}] = {table[index]}",
            hint="Write a large number for what must not happen",
        )
    frame: Any = costs
    # The index of a DataFrame names the classes, its columns the actions.
    if hasattr(frame, "iloc"):
        table = reorder_columns_if_names_match(table.T, frame.T, classes).T
    table = reorder_columns_if_names_match(
        table, costs, classes if actions is None else actions
    )
    # Costs of single rows may favour one action in all classes of a row, which is not
    # an error.
    if table.ndim == 2:
        names = range(table.shape[1]) if actions is None else actions
        _check_no_dominated_action(table, names)
    return table


def _check_no_dominated_action(table, names):
    """Reject a table in which some action never costs less than another one."""
    for column, name in enumerate(names):
        for other_column, other_name in enumerate(names):
            if (
                column != other_column
                and (table[:, other_column] <= table[:, column]).all()
            ):
                raise invalid_input(
                    "costs",
                    expected="costs under which each action can be the cheaper one of any two",
                    got=f"action {quote_text(name)}, which never costs less than "
                    f"{quote_text(other_name)}",
                    hint=(
                        "Leave it out, or check that rows of costs are true classes and columns "
                        "are actions"
                    ),
                )


def canonical_actions(
    actions: Sequence[object] | AnyArray | None, classes: AnyArray
) -> AnyArray:
    """Return the names of the actions in an array that keeps types.

    By default the classes.
    """
    if actions is None:
        return classes
    names = list(actions) if np.iterable(actions) else []
    are_hashable = all(isinstance(name, Hashable) for name in names)
    if len(names) < 2 or not are_hashable or len({*names}) < len(names):
        raise invalid_input(
            expected="the names of at least two different actions",
            got=repr(actions)[:200],
            hint="Name each action once",
        )
    return make_type_preserving_array(names)


def make_type_preserving_array(names: Sequence[object]) -> AnyArray:
    """Return names in an array that keeps their types: numbers beside text stay numbers."""
    if len({type(name) for name in names}) == 1:
        return np.asarray(names)
    # `numpy.asarray` would convert numbers beside text to text.
    array = np.empty(len(names), dtype=object)
    array[:] = list(names)
    return array


def validate_binary_predictions(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    *,
    input_name: str = "y_proba",
) -> tuple[Predictions, BinaryProblem]:
    """Return validated predictions of two classes, and its scores and events."""
    predictions = validate_predictions(
        y_true,
        y_proba,
        sample_weight,
        labels,
        pos_label,
        input_name=input_name,
    )
    if len(predictions.classes) != 2:
        raise invalid_input(
            expected="two classes",
            got=f"{len(predictions.classes)}",
            hint="Pass one class against the others, y == c with proba[:, c]",
        )
    return predictions, predictions.problems()[0]


def canonical_thresholds(thresholds: ArrayLike | None) -> FloatArray:
    """Validate increasing thresholds in (0, 1); the default is 0.01, 0.02, ... 0.99."""
    if thresholds is None:
        # A division gives the nearest float64 to each hundredth; `arange(0.01, 1,
        # 0.01)` does not.
        return np.arange(1, 100) / 100
    table = read_numeric_array(thresholds, "thresholds").astype(np.float64)
    if table.ndim != 1 or not len(table):
        raise invalid_input(
            expected="thresholds of shape (n_thresholds,), at least one",
            got=f"shape {table.shape}",
            hint="Pass a list of probabilities",
        )
    # NaN is outside too.
    is_outside = ~((table > 0) & (table < 1))
    if is_outside.any():
        raise invalid_input(
            "thresholds",
            expected="thresholds strictly between 0 and 1",
            got=f"{table[is_outside][0]:g}",
            hint="At 0 all rows are acted on and at 1 none, so leave them out",
        )
    falls = np.diff(table) <= 0
    if falls.any():
        row = int(falls.argmax())
        raise invalid_input(
            expected="increasing thresholds",
            got=f"{table[row]:g} before {table[row + 1]:g}",
            hint="Pass them through numpy.unique",
        )
    return table
