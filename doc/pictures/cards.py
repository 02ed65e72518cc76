"""The pictures of the five cards on the first page: one small axes each."""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decisions import decision_curve
from sklearn_calib.export import from_json, to_json
from sklearn_calib.metrics import reliability_curve
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import get_recalibrator

_BEFORE, _AFTER, _GREY = "#0072b2", "#d55e00", "0.45"
_PROBA, _Y = make_overconfident(2, 6000)
_FIT, _TEST = slice(3000), slice(3000, None)
_RECALIBRATOR = get_recalibrator("default").fit(_PROBA[_FIT], _Y[_FIT])


def _axes(xlabel, ylabel):
    _, ax = plt.subplots(figsize=(3.6, 2.5))
    ax.spines[["top", "right"]].set_visible(False)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return ax


def _reliability(ax, proba, colour, marker, label):
    (curve,) = reliability_curve(_Y[_TEST], proba, n_bins=10, random_state=0)
    ax.plot(
        curve.predicted,
        curve.observed,
        marker,
        color=colour,
        ls="-",
        ms=4,
        lw=1,
        label=label,
    )


def diagnose():
    """The reliability diagram of probabilities that are too extreme."""
    ax = _axes("predicted probability", "observed frequency")
    ax.plot([0, 1], [0, 1], color=_GREY, ls="--", lw=1)
    _reliability(ax, _PROBA[_TEST], _BEFORE, "o", "the model")
    ax.legend(frameon=False)


def repair():
    """The same rows before and after the default recalibrator."""
    ax = _axes("predicted probability", "observed frequency")
    ax.plot([0, 1], [0, 1], color=_GREY, ls="--", lw=1)
    _reliability(ax, _PROBA[_TEST], _BEFORE, "o", "before")
    _reliability(ax, _RECALIBRATOR.predict_proba(_PROBA[_TEST]), _AFTER, "s", "after")
    ax.legend(frameon=False)


def ship():
    """The map in Python, and the same map read back from its text."""
    ax = _axes("score of the model", "calibrated probability")
    shipped = from_json(to_json(_RECALIBRATOR))
    score = np.linspace(0, 1, 201)
    scores = np.column_stack([1 - score, score])
    dots = slice(None, None, 12)
    ax.plot(
        score,
        _RECALIBRATOR.predict_proba(scores)[:, 1],
        color=_BEFORE,
        label="in Python",
    )
    exported = shipped.predict_proba(scores[dots])[:, 1]
    ax.plot(score[dots], exported, "o", color=_AFTER, ms=4, label="exported")
    ax.legend(frameon=False)


def decide():
    """Net benefit of acting on the probabilities, before and after recalibration."""
    ax = _axes("threshold of action", "net benefit")
    after = _RECALIBRATOR.predict_proba(_PROBA[_TEST])
    thresholds = np.linspace(0.05, 0.95, 91)
    drawn = (_PROBA[_TEST], _BEFORE, "-", "before"), (after, _AFTER, "--", "after")
    for proba, colour, style, label in drawn:
        curve = decision_curve(_Y[_TEST], proba, thresholds=thresholds)
        ax.plot(thresholds, curve.net_benefit, color=colour, ls=style, label=label)
    ax.axhline(0, color=_GREY, lw=1)
    ax.legend(frameon=False)


def watch():
    """The detector over a year of weeks; in the 31st the world changes."""
    ax = _axes("week", "detector [powers of ten]")
    rng, monitor, course = np.random.default_rng(0), CalibrationMonitor(), []
    for week in range(1, 53):
        logit = 1.5 * rng.normal(size=150)
        y = rng.random(150) < 1 / (1 + np.exp(-logit * (1.0 if week < 31 else 0.5)))
        monitor.update(y, 1 / (1 + np.exp(-logit)))
        if monitor.alarm_:
            course.append(np.log10(monitor.average_run_length))
            ax.plot(week, course[-1], "v", color=_AFTER, label="alarm")
            break
        course.append(monitor.log_detector_ / np.log(10))
    ax.plot(range(1, len(course) + 1), course, color=_BEFORE)
    ax.axvline(30.5, color=_GREY, ls="--", lw=1, label="something changes")
    ax.legend(frameon=False)
