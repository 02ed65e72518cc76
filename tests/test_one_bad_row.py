"""Every call with rows raises an error for one bad entry among good ones, and names its row.

Of two bad entries the first is named.

The calls are those of `test_row_indexes`, so a new one comes by itself.
"""

import warnings

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from test_row_indexes import CALLS, SLOW, rows_with, without_pictures  # noqa: F401

ROW, LATER_ROW = 5, 8
#: What no label, probability, interval or weight can be.
BAD = {
    "y": None,
    "p": np.nan,
    "pair": np.nan,
    "intervals": np.nan,
    "sample_weight": -1.0,
    "time": np.nan,
}
#: Calls that leave a name to others, each with its reason.
NOT_READ = {
    ("CostSensitiveClassifier.fit", "sample_weight"): "scikit-learn reads the weights",
    ("ExportedMap.fit", "sample_weight"): "nothing is fitted",
}


def pairs():
    """Parameters of a test: each call with each kind of rows that it reads."""
    for call, (names, _) in CALLS.items():
        for name in names:
            if name in BAD and (call, name) not in NOT_READ:
                marks = [pytest.mark.slow] * (call in SLOW)
                yield pytest.param(call, name, marks=marks)


@pytest.mark.whole
@run_every_case(("call", "name"), pairs())
def test_one_bad_row_is_named(call, name):
    names, function = CALLS[call]
    rows = rows_with(names)
    changed = rows[name].astype(object if BAD[name] is None else float)
    column = () if changed.ndim == 1 else (0,)
    for row in (ROW, LATER_ROW):
        changed.iloc[(row, *column)] = BAD[name]
        with (
            raises_invalid_input((ValueError, TypeError), row=ROW),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            function(rows | {name: changed})
