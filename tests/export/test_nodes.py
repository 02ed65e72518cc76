"""Nodes give what the methods predict; every method describes itself or states why it cannot."""

import warnings

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from export_cases import (
    DEFAULTS,
    METHODS,
    TABLE_ERROR,
    TABULATED,
    VARIANTS,
    fitted,
    inputs,
    tabulate,
)
from sklearn.base import clone

from sklearn_calib import canonical_proba
from sklearn_calib._kernels._log_odds import (
    compute_rounded_unclipped_log_odds,
    find_smallest_log_odds_rounding_beyond,
    round_to_36_bits,
)
from sklearn_calib._simplex_array import convert_log_odds
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import ExportedMap, from_dict, to_dict
from sklearn_calib.maps import Uniform
from sklearn_calib.recalibrators import (
    Capabilities,
    OneVsRest,
    PlattScaling,
    Recalibrator,
    VennAbers,
    all_recalibrators,
)

EXACT = 1e-12
KINDS = ("proba", "float32", "logits")


def worst(name, k, n=300):
    """The largest difference between a method and its nodes, over all inputs."""
    method = fitted(name, k, n)
    exported = from_dict(to_dict(method, **tabulate(name)))
    found = []
    for kind in KINDS:
        rows = inputs(k, kind)
        got = exported.predict_proba(rows)
        assert np.abs(got.sum(axis=1) - 1).max() <= 1e-12
        found.append(np.abs(got - method.predict_proba(rows)).max())
    return max(found)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", DEFAULTS)
def test_nodes_give_what_the_method_predicts(name, k):
    assert worst(name, k) <= (k * TABLE_ERROR if name in TABULATED else EXACT)


@pytest.mark.cross
@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("name", METHODS)
def test_nodes_give_what_the_method_predicts_in_full(name, k):
    n = 500 if name in TABULATED else 3000
    assert worst(name, k, n) <= (k * TABLE_ERROR if name in TABULATED else EXACT)


@run_every_case("name", [name for name in VARIANTS if name not in TABULATED])
def test_variants_with_two_classes(name):
    assert worst(name, 2) <= EXACT


@pytest.mark.parametrize("name", ["multiclass_binning.rounded", "top_label.per_class"])
def test_variants_with_three_classes(name):
    assert worst(name, 3) <= EXACT


# -- the registry -----------------------------------------------------------------------------


def silent(methods):
    """Names of methods that neither describe themselves nor say why they cannot."""
    return [
        name
        for name, cls in methods.items()
        if not cls._has_map_matching_predictions() and not cls.capabilities.export_error
    ]


class Mute(Recalibrator):
    """Describes nothing."""

    def _fit(self, proba, codes, weight):
        pass

    def _predict_proba(self, proba):
        return np.array(proba)


class Excused(Mute):
    """Says why."""

    capabilities = Capabilities(export_error="It asks an oracle; take 'platt'")


class Wrong(Mute):
    """Describes another map."""

    def _make_map(self):
        return Uniform()


def test_every_method_describes_itself_or_says_why_not():
    assert silent(all_recalibrators()) == []
    assert silent({"mute": Mute, "excused": Excused, "wrong": Wrong}) == ["mute"]


@pytest.mark.parametrize(
    ("cls", "error", "words"),
    [
        (Mute, NotImplementedError, "expected a recalibrator that describes its map"),
        (
            Excused,
            ValueError,
            "got Excused for fitted. It asks an oracle; take 'platt'",
        ),
        (
            Wrong,
            RuntimeError,
            "nodes that give what Wrong.predict_proba gives, got a difference",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused(cls, error, words):
    with pytest.raises(error, match=words.replace("(", r"\(")):
        to_dict(cls().fit(*make_overconfident(2, 50)))


def test_foreign_parts_are_named():
    from sklearn.linear_model import LogisticRegression

    method = OneVsRest(LogisticRegression()).fit(*make_overconfident(2, 100))
    with raises_invalid_input(
        TypeError,
        expected=".*a recalibrator of this package",
        value="LogisticRegression",
    ):
        to_dict(method)


# -- edges of steps, and rounding in other languages ----------------------------------------------


def test_edges_tell_rounded_scores_apart():
    rng = np.random.default_rng(0)
    size = 10.0 ** rng.uniform(-12, 4, 4000)
    bounds = np.concatenate(
        [size, -size, 2.0 ** np.arange(-40, 12), -(2.0 ** np.arange(-40, 12))]
    )
    bounds = np.concatenate([bounds, round_to_36_bits(bounds, 0), [0.0]])
    for inclusive in (True, False):
        edges = find_smallest_log_odds_rounding_beyond(bounds, inclusive=inclusive)
        compare = np.greater_equal if inclusive else np.greater
        assert compare(round_to_36_bits(edges, 0), bounds).all()
        below = np.nextafter(edges, -np.inf)
        assert not compare(round_to_36_bits(below, 0), bounds).any()


def test_ties_of_step_functions():
    """Scores that differ by rounding noise only: next to an edge, and on either side of it."""
    p, y = make_overconfident(2, 300)
    method = VennAbers().fit(p, y)
    noise = np.ldexp(1.0, np.frexp(method.scores_)[1] - 38)
    near = np.concatenate(
        [method.scores_ + part * noise for part in (-3, -1.01, -1, 0, 1, 1.01)]
    )
    rows = convert_log_odds(near)
    got = from_dict(to_dict(method)).predict_proba(rows)
    assert np.array_equal(got, method.predict_proba(rows))


def rounded_by_arithmetic(x, absolute):
    """The recipe of the documentation, for languages that cannot take a number apart."""
    big = 131073.0 * x
    relative = big - (big - x)
    if not absolute:
        return relative
    return np.where(np.abs(x) < 1, (x + 98304.0) - 98304.0, relative)


def test_rounding_by_arithmetic():
    rng = np.random.default_rng(1)
    x = rng.choice([-1, 1], 200_000) * 10.0 ** rng.uniform(-15, 5, 200_000)
    assert np.array_equal(rounded_by_arithmetic(x, True), round_to_36_bits(x, 0))
    p = 10.0 ** -rng.uniform(0, 290, 200_000)
    assert np.array_equal(rounded_by_arithmetic(p, False), round_to_36_bits(p))


# -- details ----------------------------------------------------------------------------------


def test_tables_are_asked_for():
    method = fitted("adaptive", 2)
    with raises_invalid_input(
        ValueError,
        expected=".*finite form",
        value="AdaptiveCalibration",
        hint="Pass tabulate=",
    ):
        to_dict(method)
    for bound in (0, 1e-12, 0.5):
        with raises_invalid_input(ValueError, expected=r"tabulate from 1e-09 to 0\.1"):
            to_dict(method, tabulate=bound)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TABULATED))
@pytest.mark.parametrize("bound", [1e-3, 1e-6])
def test_tables_keep_their_bound(name, bound):
    method = fitted(name, 2)
    document = to_dict(method, tabulate=bound)
    assert document["largest_error"] == {"tabulate": bound}
    rng = np.random.default_rng(2)
    size = np.repeat([0.01, 1.0, 4.0, 40.0, 4000.0], 4000)
    rows = canonical_proba(size * rng.normal(size=len(size)), kind="logits")
    if name.startswith("adaptive"):  # its jumps too
        knots = np.array(document["map"]["knots"])
        nearby = round_to_36_bits(np.append(knots, knots + 2.0**-30), 0)
        rows = canonical_proba(nearby, kind="logits")
    got = from_dict(document).predict_proba(rows)
    assert np.abs(got - method.predict_proba(rows)).max() <= bound


def test_parts_of_weight_zero_are_left_out():
    method = fitted("ensemble_temperature", 2)
    tree = to_dict(method)["map"]
    assert (method.weights_ == 0).sum() + len(tree["parts"][-1].get("parts", [0])) == 3


def test_a_map_of_a_map():
    method = PlattScaling().fit(*make_overconfident(2, 100))
    document = to_dict(method)
    again = to_dict(ExportedMap(document))
    assert again == document
    other = to_dict(document, input="logits")
    assert (other["map"], other["input"]) == (document["map"], "logits")
    assert other["check"] != document["check"]


def test_scores_of_pairs_as_ranks():
    """Zeros and the smallest numbers, which Platt scaling cannot tell apart, keep their order."""
    p = np.array([0.0, 5e-324, 1e-310, 1e-300, 1e-40, 0.5])
    rows = np.column_stack([1 - p, p])
    assert (np.diff(compute_rounded_unclipped_log_odds(rows)) > 0).all()
    method = fitted("isotonic", 2)
    assert np.array_equal(
        from_dict(to_dict(method)).predict_proba(rows), method.predict_proba(rows)
    )


def extreme(k):
    """Calibration rows far from those of other tests."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, k, 100)
    votes = rng.multinomial(20, np.full(k, 1 / k), size=100) / 20
    votes[:20] = np.eye(k)[y[:20]]
    small = 10.0 ** -rng.uniform(0, 323, (100, k))
    small[:, 0] = 1.0
    yield "votes", votes, y
    yield "small", small / small.sum(axis=1, keepdims=True), y
    yield "one class", votes, np.zeros(100, dtype=int)
    for size in (1e-4, 1e5, 1e12):
        logits = size * rng.normal(size=(100, k))
        yield f"logits of size {size:g}", canonical_proba(logits, kind="logits"), y


def worst_of_extremes(name, k):
    for title, rows, y in extreme(k):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            method = clone(METHODS[name]).fit(rows, y, classes=range(k))
        exported = from_dict(to_dict(method, **tabulate(name)))
        both = [
            (exported.predict_proba(new), method.predict_proba(new))
            for new in (rows, inputs(k, "proba"), inputs(k, "logits"))
        ]
        yield title, max(np.abs(got - expected).max() for got, expected in both)


# the second rejects rows of one class
LEFT_OUT_OF_EXTREMES = ("pipeline", "prior_shift.uniform")
SMALL_SAMPLE = (
    "smooth_isotonic",
    "matrix",
    "angular",
    "spline",
    "venn_abers",
    "quadratic",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL_SAMPLE)
def test_extreme_calibration_rows(name):
    for title, difference in worst_of_extremes(name, 2):
        assert difference <= (TABLE_ERROR if name in TABULATED else 2e-11), title


@pytest.mark.cross
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "name", [name for name in METHODS if name not in LEFT_OUT_OF_EXTREMES]
)
def test_extreme_calibration_rows_in_full(name, k):
    bound = k * TABLE_ERROR if name in TABULATED else 2e-11
    for title, difference in worst_of_extremes(name, k):
        if name == "auto" and title == "logits of size 0.0001":
            # its spline behind its default: what that flattens, that spreads again
            bound = 1e-6
        assert difference <= bound, title
