"""Checks of a recalibrator's contract, and of the declarations of its class."""

import contextlib
import inspect
import io
import pickle
import re
import warnings
from functools import partial

import numpy as np
from sklearn.base import clone

from .._validation import canonical_proba
from .._warnings import ignore_calibration_warnings
from ..datasets import make_overconfident
from ..metrics import log_loss
from ._contract import assert_refused, assert_same, assert_simplex, fit_clone_quietly

#: The rows that each check is given.
make_rows = make_overconfident


def _assert_predicts_simplex(fitted, proba):
    assert_simplex(fitted.predict_proba(proba), proba.shape)


def _check_simplex(recalibrator, k, proba, y):
    fitted = fit_clone_quietly(recalibrator, proba, y)
    out = fitted.predict_proba(proba)
    assert_simplex(out, proba.shape)
    assert np.array_equal(fitted.transform(proba), out)
    assert np.array_equal(fitted.predict(proba), out.argmax(axis=1))


def _check_weights_are_repetition(recalibrator, k, proba, y):
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    if not recalibrator.capabilities.sample_weight:
        assert_refused(
            lambda: fit_clone_quietly(recalibrator, proba, y, sample_weight=weight),
            "sample_weight",
        )
        return
    if recalibrator.capabilities.order_dependent:
        return
    weighted = fit_clone_quietly(
        recalibrator,
        proba,
        y,
        sample_weight=weight,
        classes=range(k),
    )
    repeated = fit_clone_quietly(
        recalibrator,
        np.repeat(proba, weight, axis=0),
        np.repeat(y, weight),
        classes=range(k),
    )
    assert_same(weighted.predict_proba(proba), repeated.predict_proba(proba))


def _check_weight_scale(recalibrator, k, proba, y):
    """Check that a common factor of fractional weights changes nothing, unless declared."""
    capabilities = recalibrator.capabilities
    if not capabilities.sample_weight or capabilities.weights == "counts":
        return
    weighted = partial(fit_clone_quietly, recalibrator, proba, y)
    weight = np.random.default_rng(8).exponential(size=len(y)) + 1e-3
    expected = weighted(sample_weight=weight).predict_proba(proba)
    for factor in (0.3, 1e-3, 700.0):
        assert_same(
            weighted(sample_weight=factor * weight).predict_proba(proba), expected
        )
    equal = weighted(sample_weight=np.full(len(y), 0.7)).predict_proba(proba)
    assert_same(equal, weighted().predict_proba(proba))
    if capabilities.weights == "ratios":
        assert_same(
            weighted(sample_weight=np.full(len(y), 3)).predict_proba(proba), equal
        )


def _check_order_invariance(recalibrator, k, proba, y):
    if recalibrator.capabilities.order_dependent:
        return
    # Rounded probabilities have many ties.
    proba = proba.round(1)
    proba[:, -1] += 1 - proba.sum(axis=1)
    proba = np.abs(proba)
    proba /= proba.sum(axis=1, keepdims=True)
    order = np.random.default_rng(2).permutation(len(y))
    first = fit_clone_quietly(recalibrator, proba, y)
    second = fit_clone_quietly(recalibrator, proba[order], y[order])
    assert_same(first.predict_proba(proba), second.predict_proba(proba))


def _check_class_permutation(recalibrator, k, proba, y):
    order = np.roll(np.arange(k), 1)
    first = fit_clone_quietly(recalibrator, proba, y).predict_proba(proba)
    second = fit_clone_quietly(recalibrator, proba[:, order], np.argsort(order)[y])
    assert_same(first[:, order], second.predict_proba(proba[:, order]))


def _check_row_alone(recalibrator, k, proba, y):
    fitted = fit_clone_quietly(recalibrator, proba, y)
    alone = np.vstack([fitted.predict_proba(proba[i : i + 1]) for i in range(20)])
    assert_same(alone, fitted.predict_proba(proba)[:20], 1e-14)


def _check_missing_class(recalibrator, k, proba, y):
    kept = y != k - 1
    fitted = fit_clone_quietly(recalibrator, proba[kept], y[kept], classes=range(k))
    assert fitted.classes_.tolist() == list(range(k))
    _assert_predicts_simplex(fitted, proba)
    if kept.any():
        assert_refused(
            lambda: fit_clone_quietly(recalibrator, proba[kept], y[kept]), "classes="
        )


def _check_zeros_and_ones(recalibrator, k, proba, y):
    hard = np.eye(k)
    with_zeros = np.vstack([proba, hard, np.full((1, k), 1 / k)])
    labels = np.r_[y, np.arange(k), 0]
    near = hard * (1 - 2e-8) + (1 - hard) * 2e-8 / (k - 1)
    for fitted in (
        fit_clone_quietly(recalibrator, with_zeros, labels),
        fit_clone_quietly(recalibrator, proba, y),
    ):
        _assert_predicts_simplex(fitted, hard)
        _assert_predicts_simplex(fitted, near)


def _check_constant_scores(recalibrator, k, *_):
    row = np.arange(1.0, k + 1)
    proba = np.tile(row / row.sum(), (40, 1))
    y = np.arange(40) % k
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = clone(recalibrator).fit(proba, y)
    assert any("different rows" in str(w.message) for w in caught), "no warning"
    _assert_predicts_simplex(fitted, make_overconfident(k)[0])


def _check_one_class(recalibrator, k, proba, y):
    y = np.zeros(len(proba), dtype=int)
    assert_refused(
        lambda: fit_clone_quietly(recalibrator, proba, y), "two classes", "classes="
    )
    fitted = fit_clone_quietly(recalibrator, proba, y, classes=range(k))
    _assert_predicts_simplex(fitted, proba)


def _check_tiny(recalibrator, k, proba, y):
    for n in (k, k + 1):
        fitted = fit_clone_quietly(recalibrator, proba[:n], np.arange(n) % k)
        _assert_predicts_simplex(fitted, proba)
    fitted = fit_clone_quietly(recalibrator, proba[:1], [0], classes=range(k))
    _assert_predicts_simplex(fitted, proba)


def _check_separable(recalibrator, k, proba, y):
    fitted = fit_clone_quietly(
        recalibrator, proba, proba.argmax(axis=1), classes=range(k)
    )
    _assert_predicts_simplex(fitted, proba)


def _check_extreme_logits(recalibrator, k, *_):
    rng = np.random.default_rng(3)
    for size in (1e-4, 1e5, 1e12):
        logits = canonical_proba(size * rng.normal(size=(80, k)), kind="logits")
        fitted = fit_clone_quietly(
            recalibrator,
            logits,
            rng.integers(0, k, 80),
            classes=range(k),
        )
        _assert_predicts_simplex(fitted, logits)


def _check_dtypes(recalibrator, k, proba, y):
    for dtype in (np.float32, np.float16):
        short = proba.astype(dtype)
        if dtype is np.float16:
            short = np.maximum(short, np.float16(1e-3))
            short = (short / short.sum(axis=1, keepdims=True)).astype(dtype)
        double = short.astype(np.float64)
        double /= double.sum(axis=1, keepdims=True)
        first = fit_clone_quietly(recalibrator, short, y)
        second = fit_clone_quietly(recalibrator, double, y)
        assert_same(first.predict_proba(short), second.predict_proba(double))


def _check_containers(recalibrator, k, proba, y):
    expected = fit_clone_quietly(recalibrator, proba, y).predict_proba(proba)
    from_lists = fit_clone_quietly(recalibrator, proba.tolist(), y.tolist())
    assert_same(from_lists.predict_proba(proba.tolist()), expected)
    if k == 2:
        single = fit_clone_quietly(recalibrator, proba[:, 1], y)
        assert_same(single.predict_proba(proba[:, [1]]), expected)
    try:
        import pandas as pd
    except ImportError:
        return
    index = np.random.default_rng(4).permutation(len(y)) + 1000
    frame = pd.DataFrame(proba, columns=[f"p{c}" for c in range(k)], index=index)
    fitted = fit_clone_quietly(recalibrator, frame, pd.Series(y, index=index[::-1]))
    assert_same(fitted.predict_proba(frame), expected)
    assert fitted.feature_names_in_.tolist() == frame.columns.tolist()
    out = fitted.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == list(fitted.get_feature_names_out())
    assert out.index.equals(frame.index)


def _check_labels(recalibrator, k, proba, y):
    expected = fit_clone_quietly(recalibrator, proba, y).predict_proba(proba)
    alphabets = [
        np.arange(1, k + 1),
        10 * np.arange(1, k + 1),
        np.array(["a", "bb", "ccc", "d"][:k]),
        np.array([b"a", b"b", b"c", b"d"][:k]),
        np.array(["a", "b", "c", "d"][:k], dtype=object),
        np.arange(k) * 1.0,
    ]
    if k == 2:
        alphabets += [np.array([-1, 1]), np.array([False, True])]
    for labels in alphabets:
        if "order" in recalibrator.get_params():  # of a scale, which text does not have
            recalibrator = clone(recalibrator).set_params(order=labels)
        fitted = fit_clone_quietly(recalibrator, proba, labels[y])
        assert_same(fitted.predict_proba(proba), expected, 1e-12)
        assert np.isin(fitted.predict(proba), labels).all()


def _check_inputs_untouched(recalibrator, k, proba, y):
    weight = np.ones(len(y))
    copies = proba.copy(), y.copy()
    for array in (proba, y, weight):
        array.flags.writeable = False
    mine = clone(recalibrator)
    before = repr(mine.get_params())
    fitted = fit_clone_quietly(mine, proba, y, sample_weight=weight)
    out = fitted.predict_proba(proba)
    assert np.array_equal(proba, copies[0]) and np.array_equal(y, copies[1])
    assert not np.shares_memory(out, proba), "the result is a view of the input"
    assert repr(fitted.get_params()) == before, "fit changed a constructor argument"


def _check_no_side_effects(recalibrator, k, *_):
    proba, y = make_overconfident(k, 5000)
    random = _get_global_random_state()
    errors = np.geterr()
    filters = list(warnings.filters)
    fitted = clone(recalibrator)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        fitted.fit(proba, y).predict_proba(proba)
    assert not output.getvalue(), "something was printed"
    assert _get_global_random_state() == random, (
        "numpy's global generator was drawn from"
    )
    assert np.geterr() == errors, "np.errstate changed"
    assert list(warnings.filters) == filters, "warnings filters changed"


def _get_global_random_state():
    """Return key and position of numpy's global generator.

    Few draws move only the position.
    """
    _, key, position, *rest = np.random.get_state()  # noqa: NPY002
    return key.tolist(), position, rest


def _check_pickle(recalibrator, k, *_):
    proba, y = make_overconfident(k, 5000)
    fitted = fit_clone_quietly(recalibrator, proba, y)
    text = pickle.dumps(fitted)
    again = pickle.loads(text)
    assert np.array_equal(again.predict_proba(proba), fitted.predict_proba(proba))
    if not fitted.capabilities.nonparametric:
        assert len(text) < 100_000, f"pickle of {len(text)} bytes: it holds data"


def _check_monotone(recalibrator, k, *_):
    if k != 2 or not recalibrator.capabilities.monotone:
        return
    proba, y = make_overconfident(2)
    grid = np.linspace(0, 1, 1001)
    out = fit_clone_quietly(recalibrator, proba, y).predict_proba(grid)[:, 1]
    smallest = np.diff(out).min()
    assert smallest >= -1e-12, f"falls by {-smallest:.3g}"


def _check_bad_input(recalibrator, k, proba, y):
    fitted = fit_clone_quietly(recalibrator, proba, y)

    def change_entry(value, row=17, column=0):
        bad = proba.copy()
        bad[row, column] = value
        return bad

    refit = partial(fit_clone_quietly, recalibrator)
    assert_refused(lambda: refit(change_entry(np.nan), y), "finite", "row 17")
    assert_refused(
        lambda: fitted.predict_proba(change_entry(np.inf)), "finite", "row 17"
    )
    assert_refused(lambda: refit(change_entry(3.2), y), "[0, 1]", "kind='logits'")
    assert_refused(lambda: refit(0.5 * proba, y), "sum to 1", "kind='logits'")
    assert_refused(lambda: refit(proba[:0], y[:0]), "at least one row")
    assert_refused(lambda: refit(proba[None], y), "dimensions")
    assert_refused(lambda: refit(proba.astype(str), y), "numbers")
    assert_refused(
        lambda: refit(proba.astype(str).astype(object), y), "numbers", "astype(float)"
    )
    assert_refused(lambda: refit(proba, y[:-1]), "as many labels")
    assert_refused(lambda: refit(proba, y, sample_weight=-np.ones(len(y))), ">= 0")
    assert_refused(lambda: refit(proba, y, sample_weight=np.zeros(len(y))), "all-zero")
    assert_refused(lambda: refit(proba, y, classes=range(1, k + 1)), "labels among")
    assert_refused(lambda: refit(proba, proba[:, 0]), "class labels")
    wrong = np.full((5, k + 1), 1 / (k + 1))
    assert_refused(lambda: fitted.predict_proba(wrong), "columns")


def _check_constructor(recalibrator, k, *_):
    """Check that the constructor stores its arguments untouched, and that each has a constraint."""
    cls = type(recalibrator)
    params = recalibrator.get_params(deep=False)
    built = cls(**params)
    for name, value in params.items():
        assert vars(built).get(name) is value, f"the constructor changed {name}"
    extra = sorted(set(vars(built)) - set(params))
    assert not extra, f"the constructor sets {extra}, which are no parameters"
    unchecked = sorted(set(params) - set(cls._parameter_constraints))
    assert not unchecked, f"parameters without a constraint: {unchecked}"


def _check_documented(recalibrator, k, *_):
    """Check that the docstring of the class describes each parameter and fitted attribute."""
    text = inspect.getdoc(type(recalibrator)) or ""
    fitted = _fit_to_default_rows(recalibrator, k)
    public = [name for name in vars(fitted) if name[0] != "_" and name.endswith("_")]
    inherited = {"feature_names_in_", "n_features_in_", "classes_", "one_vs_rest_"}
    for name in [
        *recalibrator.get_params(deep=False),
        *sorted(set(public) - inherited),
    ]:
        entry = rf"(?m)^(\w+, )*{re.escape(name)}(, \w+)*( :|$)"
        assert re.search(entry, text), f"{name} has no entry in the docstring"


def _check_refit(recalibrator, k, *_):
    """Check that a second fit forgets the first."""
    first, y_first = make_overconfident(k, random_state=11)
    second, y_second = make_overconfident(k, 90, random_state=12, sharpness=0.7)
    with ignore_calibration_warnings():
        used = clone(recalibrator).fit(
            *make_overconfident(3 if k == 2 else 2, random_state=13)
        )
        used = used.fit(first, y_first).fit(second, y_second)
        fresh = clone(recalibrator).fit(second, y_second)
    left = {name for name in set(vars(used)) - set(vars(fresh)) if name[0] != "_"}
    assert not left, f"attributes of an earlier fit are still there: {sorted(left)}"
    again = used.predict_proba(second)
    once = fresh.predict_proba(second)
    if not getattr(recalibrator, "warm_start", False):
        assert np.array_equal(again, once), "the second fit remembers the first"
    assert np.abs(again - once).max() < 1e-6, "the second fit remembers the first"


def _check_prediction_leaves_the_state(recalibrator, k, *_):
    """Check that predictions change nothing in the estimator, and can be repeated."""
    fitted = _fit_to_default_rows(recalibrator, k)
    before = pickle.dumps(fitted)
    proba = make_overconfident(k, random_state=14)[0]
    first = fitted.predict_proba(proba)
    assert np.array_equal(first, fitted.predict_proba(proba)), (
        "the second prediction differs"
    )
    assert pickle.dumps(fitted) == before, "predict_proba changes the estimator"


def _check_direction(recalibrator, k, *_):
    """Check that easy, overconfident data are predicted no worse than without recalibration."""
    new, labels = make_overconfident(k, 1500, random_state=21)
    fitted = fit_clone_quietly(
        recalibrator, *make_overconfident(k, 1500, random_state=20)
    )
    before, after = (
        log_loss(labels, p, labels=range(k)) for p in (new, fitted.predict_proba(new))
    )
    assert after <= before + 0.005, (
        f"the held-out log loss rises from {before:.3f} to {after:.3f}"
    )


def _check_learns(recalibrator, k, *_):
    """Check that other labels give other predictions."""
    proba, y = make_overconfident(k, 400)
    first = fit_clone_quietly(recalibrator, proba, y).predict_proba(proba)
    second = fit_clone_quietly(recalibrator, proba, (y + 1) % k).predict_proba(proba)
    assert np.abs(first - second).max() > 1e-3, "the labels make no difference"


def _check_double_precision(recalibrator, k, *_):
    """Check that nothing inside is rounded to single precision."""
    proba = make_overconfident(k, 300)[0]
    fitted = _fit_to_default_rows(recalibrator, k)
    out = fitted.predict_proba(proba)
    inner = out[(out > 0) & (out < 1)]
    single = inner == inner.astype(np.float32)
    assert not len(inner) or single.mean() < 0.5, (
        "the predictions are single precision numbers"
    )
    if not recalibrator.capabilities.continuous or k != 2:
        return
    # next to 1 single precision has only 1 and 1 - 6e-8; a change of the scores changes
    # the result
    step = 2.0**-32
    rows = np.array([0.3, 0.6])
    moved, near = (fitted.predict_proba(p)[:, 1] for p in (rows + step, rows))
    coarse = fitted.predict_proba(rows + 2.0**-12)[:, 1]
    reacts = coarse != near
    assert (moved[reacts] != near[reacts]).all(), (
        "scores are rounded to single precision"
    )


def _check_capabilities(recalibrator, k, *_):
    """Check the declared capabilities: growth of the state, multiclass form, stated cost."""
    declared = recalibrator.capabilities
    assert declared.multiclass in ("native", "one-vs-rest"), (
        f"multiclass={declared.multiclass!r}"
    )
    assert re.search(r"O\(.+\)|fits", declared.cost), (
        f"no cost of a fit: {declared.cost!r}"
    )
    sizes = []
    # 200 rows as well: an average of maps leaves some of them out at one size only
    for n in (200, 400, 4000):
        proba, y = make_overconfident(k, n)
        fitted = fit_clone_quietly(recalibrator, proba, y)
        sizes.append(len(pickle.dumps(fitted)))
    lifted = hasattr(fitted, "one_vs_rest_")
    assert lifted == (k > 2 and declared.multiclass == "one-vs-rest"), (
        "multiclass is not as said"
    )
    smallest, small, large = sizes
    if declared.nonparametric:
        # some grow with a root of n
        true = k > 2 or large > 1.05 * small
    else:
        true = large < 1.5 * max(smallest, small)
    assert true, (
        f"nonparametric={declared.nonparametric}, but 10 times the rows make the pickle "
        f"grow from {small} to {large} bytes"
    )


def _check_shape(recalibrator, k, *_):
    """Check `continuous` and `nonparametric_shape` on a map of three steps."""
    if k != 2:
        return
    rng = np.random.default_rng(0)
    p = rng.random(8000)
    truth = np.select([p < 0.3, p < 0.6], [0.1, 0.5], 0.9)
    fitted = fit_clone_quietly(recalibrator, p, (rng.random(8000) < truth).astype(int))
    jump = _find_largest_jump(fitted)
    declared = recalibrator.capabilities
    assert (jump < 1e-3) == declared.continuous, (
        f"continuous={declared.continuous}, jump {jump:.3g}"
    )
    error = np.abs(fitted.predict_proba(p)[:, 1] - truth).mean()
    assert (error < 0.045) == declared.nonparametric_shape, (
        f"nonparametric_shape={declared.nonparametric_shape}, error {error:.3g}"
    )


def _find_largest_jump(fitted):
    """Find the largest change between neighbours of a grid, refined by bisection."""

    def compute_curve(s):
        return fitted.predict_proba(s)[:, 1]

    grid = np.linspace(0.001, 0.999, 4001)
    jump_index = int(np.abs(np.diff(compute_curve(grid))).argmax())
    low = grid[jump_index]
    high = grid[jump_index + 1]
    for _ in range(40):
        middle = (low + high) / 2
        left, center, right = compute_curve(np.array([low, middle, high]))
        low, high = (
            (low, middle)
            if abs(center - left) > abs(right - center)
            else (middle, high)
        )
    return abs(np.diff(compute_curve(np.array([low, high])))[0])


def _fit_to_default_rows(recalibrator, k):
    return fit_clone_quietly(recalibrator, *make_overconfident(k, 300, random_state=10))
