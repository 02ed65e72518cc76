import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.dates import date2num
from numpy.testing import assert_array_equal

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.displays import MonitorDisplay
from sklearn_calib.monitoring import CalibrationMonitor


@pytest.mark.slow
@pytest.mark.parametrize("unit", [None, "number", "date"])
def test_lines_limits_and_alarms(unit):
    proba, y = make_overconfident(2, 400)
    monitor = CalibrationMonitor(average_run_length=500, alpha=0.1)
    times = {
        "number": np.arange(400) / 4,
        "date": np.datetime64("2026-01-01") + np.arange(400),
    }
    for rows in np.split(np.arange(400), 8):
        time = None if unit is None else times[unit][rows]
        monitor.update(y[rows], proba[rows], time=time)
    upper, lower = MonitorDisplay.from_monitor(monitor).axes_
    history, alarms = monitor.history_, monitor.alarms_
    evidence, detector, enough, bound, *vertical = upper.lines
    assert_array_equal(evidence.get_ydata(), history.log_e_value / np.log(10))
    assert_array_equal(
        evidence.get_xdata(), history.n_samples if unit is None else history.time
    )
    known = np.isfinite(history.log_detector)
    assert_array_equal(
        detector.get_ydata()[known], history.log_detector[known] / np.log(10)
    )
    assert enough.get_ydata()[0] == 1.0 and np.isclose(
        bound.get_ydata()[0], np.log10(500)
    )
    rows = np.array([alarm.n_samples for alarm in alarms])
    places = rows if unit is None else times[unit][rows - 1]
    assert len(alarms) > 1 and len(vertical) == len(alarms)
    drawn = [line.get_xdata()[0] for line in vertical]
    if unit == "date":
        drawn, places = date2num(drawn), date2num(places)
    assert_array_equal(drawn, places)
    assert_array_equal(lower.lines[0].get_ydata(), history.slope)
    assert_array_equal(lower.lines[1].get_ydata(), history.shift)
    assert lower.get_xlabel() == ("rows" if unit is None else "time")
    # Dates are long, so they are turned.
    rotation = {label.get_rotation() for label in lower.get_xticklabels()}
    assert rotation == {30.0 if unit == "date" else 0.0}
    plt.close("all")
