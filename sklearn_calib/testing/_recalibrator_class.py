"""Checks of what a recalibrator's class says of itself: parameters, documentation, capabilities."""

import inspect
import pickle
import re
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from ..datasets import make_overconfident
from ..exceptions import no_cautions
from ._common import fit, held_out_loss

if TYPE_CHECKING:
    from ..recalibrators import Recalibrator


def check_constructor(recalibrator: "Recalibrator", k: int) -> None:
    """The constructor stores its arguments untouched, adds nothing, and each has a constraint."""
    cls, given = type(recalibrator), recalibrator.get_params(deep=False)
    built = cls(**given)
    for name, value in given.items():
        assert vars(built).get(name) is value, f"the constructor changed {name}"
    extra = sorted(set(vars(built)) - set(given))
    assert not extra, f"the constructor sets {extra}, which are no parameters"
    unchecked = sorted(set(given) - set(cls._parameter_constraints))
    assert not unchecked, f"parameters without a constraint: {unchecked}"


def check_documented(recalibrator: "Recalibrator", k: int) -> None:
    """Each parameter and each fitted attribute has an entry in the docstring of the class."""
    text = inspect.getdoc(type(recalibrator)) or ""
    fitted = _fitted(recalibrator, k)
    public = [name for name in vars(fitted) if name[0] != "_" and name.endswith("_")]
    ours = {"feature_names_in_", "n_features_in_", "classes_", "one_vs_rest_", "record_"}
    for name in [*recalibrator.get_params(deep=False), *sorted(set(public) - ours)]:
        entry = rf"(?m)^(\w+, )*{re.escape(name)}(, \w+)*( :|$)"
        assert re.search(entry, text), f"{name} has no entry in the docstring"


def check_refit(recalibrator: "Recalibrator", k: int) -> None:
    """A second fit forgets the first."""
    first, y_first = make_overconfident(k, random_state=11)
    second, y_second = make_overconfident(k, 90, random_state=12, sharpness=0.7)
    with no_cautions():
        used = clone(recalibrator).fit(*make_overconfident(3 if k == 2 else 2, random_state=13))
        used = used.fit(first, y_first).fit(second, y_second)
        fresh = clone(recalibrator).fit(second, y_second)
    left = {name for name in set(vars(used)) - set(vars(fresh)) if name[0] != "_"}
    assert not left, f"attributes of an earlier fit are still there: {sorted(left)}"
    again, once = used.predict_proba(second), fresh.predict_proba(second)
    if not getattr(recalibrator, "warm_start", False):
        assert np.array_equal(again, once), "the second fit remembers the first"
    assert np.abs(again - once).max() < 1e-6, "the second fit remembers the first"


def check_prediction_leaves_the_state(recalibrator: "Recalibrator", k: int) -> None:
    """Predictions change nothing in the estimator, and repeat themselves."""
    fitted = _fitted(recalibrator, k)
    before = pickle.dumps(fitted)
    proba = make_overconfident(k, random_state=14)[0]
    first = fitted.predict_proba(proba)
    assert np.array_equal(first, fitted.predict_proba(proba)), "the second prediction differs"
    assert pickle.dumps(fitted) == before, "predict_proba changes the estimator"


def check_direction(recalibrator: "Recalibrator", k: int) -> None:
    """On easy, overconfident data new rows are predicted no worse than without recalibration."""
    before, after = held_out_loss(recalibrator, k)
    assert after <= before + 0.005, f"the held-out log loss rises from {before:.3f} to {after:.3f}"


def check_learns(recalibrator: "Recalibrator", k: int) -> None:
    """Other labels give other predictions."""
    proba, y = make_overconfident(k, 400)
    first = fit(recalibrator, proba, y).predict_proba(proba)
    second = fit(recalibrator, proba, (y + 1) % k).predict_proba(proba)
    assert np.abs(first - second).max() > 1e-3, "the labels make no difference"


def check_double_precision(recalibrator: "Recalibrator", k: int) -> None:
    """Nothing inside is rounded to single precision."""
    proba = make_overconfident(k, 300)[0]
    fitted = _fitted(recalibrator, k)
    out = fitted.predict_proba(proba)
    inner = out[(out > 0) & (out < 1)]
    single = inner == inner.astype(np.float32)
    assert not len(inner) or single.mean() < 0.5, "the predictions are single precision numbers"
    if not recalibrator.capabilities.continuous or k != 2:
        return
    # next to 1 single precision knows only 1 and 1 - 6e-8; what moves the scores moves the result
    step, rows = 2.0**-32, np.array([0.3, 0.6])
    moved, near = (fitted.predict_proba(p)[:, 1] for p in (rows + step, rows))
    coarse = fitted.predict_proba(rows + 2.0**-12)[:, 1]
    reacts = coarse != near
    assert (moved[reacts] != near[reacts]).all(), "scores are rounded to single precision"


def check_capabilities(recalibrator: "Recalibrator", k: int) -> None:
    """Capabilities are true: the growth of the state, the multiclass form, the stated cost."""
    declared = recalibrator.capabilities
    assert declared.multiclass in ("native", "one-vs-rest"), f"multiclass={declared.multiclass!r}"
    assert re.search(r"O\(.+\)|fits", declared.cost), f"no cost of a fit: {declared.cost!r}"
    sizes, lifted = [], False
    for n in (400, 4000):
        proba, y = make_overconfident(k, n)
        fitted = fit(recalibrator, proba, y)
        sizes.append(len(pickle.dumps(fitted)))
        lifted = hasattr(fitted, "one_vs_rest_")
    assert lifted == (k > 2 and declared.multiclass == "one-vs-rest"), "multiclass is not as said"
    if declared.nonparametric:
        true = k > 2 or sizes[1] > 1.05 * sizes[0]  # some grow with a root of n
    else:
        true = sizes[1] < 1.5 * sizes[0]
    assert true, (
        f"nonparametric={declared.nonparametric}, but 10 times the rows make the pickle grow from "
        f"{sizes[0]} to {sizes[1]} bytes"
    )


def check_shape(recalibrator: "Recalibrator", k: int) -> None:
    """``continuous`` and ``flexible`` are true: three steps, which only a flexible map follows."""
    if k != 2:
        return
    rng = np.random.default_rng(0)
    p = rng.random(8000)
    truth = np.select([p < 0.3, p < 0.6], [0.1, 0.5], 0.9)
    fitted = fit(recalibrator, p, (rng.random(8000) < truth).astype(int))
    jump = _largest_jump(fitted)
    declared = recalibrator.capabilities
    assert (jump < 1e-3) == declared.continuous, (
        f"continuous={declared.continuous}, jump {jump:.3g}"
    )
    error = np.abs(fitted.predict_proba(p)[:, 1] - truth).mean()
    assert (error < 0.045) == declared.flexible, f"flexible={declared.flexible}, error {error:.3g}"


def _largest_jump(fitted):
    """The largest change between neighbours of a grid, followed by bisection."""

    def curve(s):
        return fitted.predict_proba(s)[:, 1]

    grid = np.linspace(0.001, 0.999, 4001)
    at = int(np.abs(np.diff(curve(grid))).argmax())
    low, high = grid[at], grid[at + 1]
    for _ in range(40):
        middle = (low + high) / 2
        left, center, right = curve(np.array([low, middle, high]))
        low, high = (low, middle) if abs(center - left) > abs(right - center) else (middle, high)
    return abs(np.diff(curve(np.array([low, high])))[0])


def _fitted(recalibrator, k):
    return fit(recalibrator, *make_overconfident(k, 300, random_state=10))
