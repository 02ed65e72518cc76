"""The state of a monitor as JSON holds it."""

import itertools
import math
from typing import Any

import numpy as np

from .._files.checksum import CHECKSUM_KEY, compute_checksum
from .._typing import AnyArray
from ..exceptions import invalid_input
from ._aftermath import from_json_state, to_json_state
from ._record import StreamCellCounts
from ._result import Alarm
from ._rows import time_from_json, time_to_json

_STATE_FORMAT = "sklearn-calib monitor"
_STATE_VERSION = 1
#: Entries, and the attributes of the monitor that they are.
_ATTRIBUTE_BY_ARRAY_KEY = {
    "log_ratios": "_log_ratio_sums",
    "detector": "_detector",
    "impossible": "_n_impossible",
}
_ATTRIBUTE_BY_COUNT_KEY = {
    "n_samples": "n_samples_",
    "n_alarms": "n_alarms_",
    "n_before": "_n_alarms_before",
}


def convert_monitor_to_dict(monitor: Any) -> dict[str, Any]:
    """Return `CalibrationMonitor.state_dict`."""
    settings = monitor._get_settings()
    classes = convert_labels_to_list(monitor.classes_)
    for role, labels in (("groups", settings["groups"]), ("classes", classes)):
        for label in labels or ():
            # JSON would restore labels of other types as text.
            if not isinstance(label, str | int | float | bool):
                raise invalid_input(
                    expected=f"{role} that are numbers, booleans or text",
                    got=repr(label),
                    hint="Convert them first",
                )
    alarms = []
    for alarm in monitor.alarms_:
        *fields, diagnosis = alarm
        fields[2] = _finite_or_text(alarm.log_statistic)
        alarms.append([*fields, to_json_state(diagnosis)])
    n_columns = monitor._n_impossible.shape[1]
    records = []
    for record in monitor._records:
        diagnosis = to_json_state(record.diagnosis)
        records.append(record.to_dict() | {"diagnosis": diagnosis})
    course = []
    for n, *numbers, time in monitor._history.moments:
        course.append([n, *map(_finite_or_text, numbers), time_to_json(time)])
    state: dict[str, Any] = {
        "format": _STATE_FORMAT,
        "version": _STATE_VERSION,
        "settings": settings,
        "classes": classes,
        **{
            key: getattr(monitor, name) for key, name in _ATTRIBUTE_BY_COUNT_KEY.items()
        },
        **{
            key: getattr(monitor, name).tolist()
            for key, name in _ATTRIBUTE_BY_ARRAY_KEY.items()
        },
        "largest": _finite_or_text(monitor._largest_log_e_value),
        "rejected_at": monitor.rejected_at_,
        "time": time_to_json(monitor._last_time_and_text[0]),
        "time_as_given": monitor._last_time_and_text[1],
        "alarms": alarms,
        "records": [
            records[start : start + n_columns]
            for start in range(0, len(records), n_columns)
        ],
        "stride": monitor._history.stride,
        "course": course,
    }
    return state | {CHECKSUM_KEY: compute_checksum(state)}


def restore_monitor(cls: Any, state: Any) -> Any:
    """Restore a monitor: `CalibrationMonitor.from_state_dict`."""
    format_name = state.get("format") if isinstance(state, dict) else None
    if format_name != _STATE_FORMAT:
        raise invalid_input(
            expected="the state of a monitor",
            got="something else",
            hint="Give what state_dict returned",
        )
    version: Any = state.get("version")
    if isinstance(version, bool) or version != _STATE_VERSION:
        raise invalid_input(
            expected=f"a state of version {_STATE_VERSION}",
            got=f"version {version!r}",
            hint="Read it with the version of sklearn-calib that wrote it, or start anew",
        )
    try:
        monitor = _build_from_state(cls, state)
        if state[CHECKSUM_KEY] != compute_checksum(state):
            raise ValueError("its content has another checksum")
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise invalid_input(
            expected="an unchanged state",
            got=f"{type(error).__name__}: {error}".rstrip("."),
            hint="Take the last state that was whole",
        ) from error
    return monitor


def _build_from_state(cls, state):
    """Build a monitor from its state; raise if an entry cannot be right."""
    monitor = cls(**state["settings"])
    if state["classes"] is not None:
        monitor.classes_ = np.array(state["classes"])
        monitor._allocate_state()
    for key, name in _ATTRIBUTE_BY_ARRAY_KEY.items():
        empty = getattr(monitor, name)
        array = np.array(state[key], dtype=empty.dtype)
        if array.shape != empty.shape or not np.isfinite(array).all():
            raise ValueError(f"{key} of another shape, or not finite")
        if key != "log_ratios" and (array < 0).any():
            raise ValueError(f"{key} below 0")
        setattr(monitor, name, array)
    for key in (*_ATTRIBUTE_BY_COUNT_KEY, "stride"):
        # Counts are 0 or more, the stride is at least 1.
        smallest = 1 if key == "stride" else 0
        if not isinstance(state[key], int) or state[key] < smallest:
            raise ValueError(f"{key} is {state[key]!r}")
    for key, name in _ATTRIBUTE_BY_COUNT_KEY.items():
        setattr(monitor, name, int(state[key]))
    monitor.rejected_at_ = state["rejected_at"]
    monitor._largest_log_e_value = float(state["largest"])
    monitor._last_time_and_text = time_from_json(state["time"]), state["time_as_given"]
    monitor.alarms_ = [_restore_alarm(fields) for fields in state["alarms"]]
    pairs = zip(monitor._records, itertools.chain(*state["records"]), strict=True)
    monitor._records = [_restore_record(stored, new.n_classes) for new, stored in pairs]
    monitor._history.stride = int(state["stride"])
    monitor._history.moments = [
        (n, *map(float, numbers), time_from_json(time))
        for n, *numbers, time in state["course"]
    ]
    return monitor


def _restore_alarm(field_values):
    """Build an alarm from its fields as `convert_monitor_to_dict` lists them."""
    if len(field_values) != len(Alarm._fields):
        raise ValueError("an alarm with another number of fields")
    stored = Alarm(*field_values)
    return stored._replace(
        log_statistic=float(stored.log_statistic),
        diagnosis=from_json_state(field_values[-1]),
    )


def _restore_record(state, n_classes):
    record = StreamCellCounts.from_dict(state, n_classes)
    record.diagnosis = from_json_state(state["diagnosis"])
    return record


def _finite_or_text(number):
    """Return a number, or its text if JSON cannot hold it."""
    return number if math.isfinite(number) else str(number)


def convert_labels_to_list(labels: AnyArray | None) -> list[Any] | None:
    """Return labels as a list."""
    return None if labels is None else labels.tolist()
