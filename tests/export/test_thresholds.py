"""Thresholds on the raw score: score >= t if and only if p >= q, to the last bit of the map."""

import sqlite3
import warnings
from contextlib import closing

import duckdb
import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from export_cases import METHODS, fitted
from scipy.special import expit
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_calib import canonical_proba
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import from_dict, to_dict, to_sql
from sklearn_calib.export._dialects import DIALECTS
from sklearn_calib.recalibrators import (
    AdaptiveCalibration,
    BetaCalibration,
    HistogramBinning,
    Identity,
    MatrixScaling,
    OneVsRest,
    PlattScaling,
    PriorShift,
    QuadraticScaling,
    SplineCalibration,
    StackedCalibration,
)

NO_TABLE = ("adaptive", "adaptive.interval")  # they jump at unknown places
OWN = ("pipeline", "top_label.per_class")  # no recalibrator; for several classes
#: Scores that may be on the wrong side have a probability this near the target:
#: rounding.
LAST_BITS = 4e-15
# the same of the angular method, which is flat at both ends but for rounding
OF_INTEGRALS = 1e-13
#: Or they are log-odds this near a threshold, over the smaller probability of the two
#: classes: the other one rounds to either side of a step.
NEAR = 1e-15
KINDS = ("proba", "logits")


def second(map_, scores, kind):
    return map_.predict_proba(canonical_proba(np.asarray(scores), kind=kind))[:, 1]


def neighbours(ends, dtype):
    """The numbers of a type around others: up to 3 steps, and some thousand."""
    found = [np.asarray(ends, dtype=dtype)]
    found[0] = found[0][np.abs(found[0]) < 1e30]
    for sign in (-np.inf, np.inf):
        x = found[0]
        for _ in range(3):
            x = np.nextafter(x, dtype(sign), dtype=dtype)
            found.append(x)
    spacing = np.spacing(np.abs(found[0]))
    found += [found[0] + dtype(k) * spacing for k in (-5000, -64, 64, 5000)]
    return np.concatenate(found)


def check(map_, targets, kind, rng, dtype=np.float64, bits=LAST_BITS):
    """How many scores around all thresholds there are, and how many are on the wrong side.

    None of the latter may be farther from the target than rounding.
    """
    thresholds = map_.threshold(targets, input=kind, dtype=np.dtype(dtype).name)
    low, high = (0.0, 1.0) if kind == "proba" else (-1e30, 1e30)
    sizes = (1.0, 1e-3, 1e-9)
    drawn = np.concatenate(
        [expit(rng.normal(0, 4, 300)), *(rng.random(50) * s for s in sizes)]
    )
    drawn = (
        drawn
        if kind == "proba"
        else np.concatenate([rng.normal(0, s, 150) for s in (9, 1)])
    )
    drawn = drawn.astype(dtype)
    values = second(map_, drawn, kind)
    number = wrong = 0
    for one, target in zip(thresholds, np.ravel(targets).tolist(), strict=True):
        assert one.target == target
        near = neighbours(np.ravel(one.intervals), dtype)
        near = near[(near >= low) & (near <= high)]
        scores = np.append(near, drawn)
        p = np.append(second(map_, near, kind) if len(near) else [], values)
        reached = np.zeros(len(scores), dtype=bool)
        for begin, end in one.intervals:
            assert dtype(begin) == begin and dtype(end) == end
            reached |= (scores >= dtype(begin)) & (scores <= dtype(end))
        if one.score is not None:
            compared = {">=": np.greater_equal, "<=": np.less_equal}[one.side]
            assert np.array_equal(compared(scores, dtype(one.score)), reached)
            assert one.range[0] <= target <= one.range[1]
        beyond = max(one.range[0] - p.min(), p.max() - one.range[1])
        assert beyond <= bits, (one, beyond, scores[[p.argmin(), p.argmax()]])
        other = reached != (p >= target)
        number, wrong = number + len(near), wrong + np.count_nonzero(other)
        other &= np.abs(p - target) > bits
        if kind == "logits" and other.any():
            apart = np.abs(
                np.subtract.outer(scores[other], np.ravel(one.intervals))
            ).min(axis=1)
            there = np.abs(scores[other])
            other[other] = apart > NEAR * (there + 1 / expit(-there))
        assert not other.any(), (one, scores[other], p[other])
    return number, wrong


def targets_of(map_, rng, n):
    """Values of the map, which flat pieces have, its ends, and others."""
    values = second(map_, np.append(rng.random(n), [0.0, 1.0]), "proba")
    return np.concatenate(
        [rng.choice(values, n // 2), rng.random(n - n // 2), values[-2:]]
    )


TWO_CLASSES = [name for name in METHODS if name not in OWN]


@pytest.mark.slow
@run_every_case("name", TWO_CLASSES)
def test_every_method(name):
    """Of a hundred targets and thousands of scores beside the thresholds."""
    rng = np.random.default_rng(3)
    map_ = fitted(name, 2)
    if name in NO_TABLE:
        with raises_invalid_input(
            ValueError, value=type(map_).__name__, hint=r".*tabulate=1e-6.*threshold"
        ):
            map_.threshold(0.5)
        map_ = from_dict(to_dict(map_, tabulate=1e-3))
    bits = OF_INTEGRALS if name.startswith("angular") else LAST_BITS
    for kind in KINDS:
        number, wrong = check(map_, targets_of(map_, rng, 12), kind, rng, bits=bits)
        assert wrong <= 0.15 * number, (name, kind)
    check(map_, targets_of(map_, rng, 4), "proba", rng, np.float32, bits)


@pytest.mark.parametrize("name", ["platt", "isotonic", "enir", "quadratic", "pipeline"])
def test_documents(name):
    rng = np.random.default_rng(4)
    exported = from_dict(to_dict(fitted(name, 2)))
    for kind in KINDS:
        number, wrong = check(exported, targets_of(exported, rng, 12), kind, rng)
        assert wrong <= 0.15 * number


def random_maps(rng):
    """Each method fitted to few rows of its own: falling scores, equal scores, and others."""
    n = int(rng.integers(12, 200))
    p, y = make_overconfident(2, n, random_state=int(rng.integers(1 << 30)))
    p = p[:, 1]
    if rng.random() < 0.3:
        p = np.round(p, int(rng.integers(1, 3)))
    if rng.random() < 0.2:
        y = 1 - y
    y[:2] = 0, 1
    for name in TWO_CLASSES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            map_ = clone(METHODS[name]).fit(p, y)
        yield (
            name,
            from_dict(to_dict(map_, tabulate=1e-3)) if name in NO_TABLE else map_,
        )


@pytest.mark.cross
def test_random_maps():
    """1e5 pairs of a map and a target: all right but for rounding, nearly all to the last bit."""
    rng = np.random.default_rng(5)
    pairs = number = wrong = 0
    while pairs < 100_000:
        for name, map_ in random_maps(rng):
            angular = name.startswith("angular")
            kind, dtype = (
                KINDS[rng.integers(2)],
                (np.float64, np.float32)[rng.random() < 0.2],
            )
            targets = targets_of(map_, rng, 98)
            bits = OF_INTEGRALS if angular else LAST_BITS
            near, bad = check(map_, targets, kind, rng, dtype, bits)
            pairs += len(targets)
            if not angular:
                number, wrong = number + near, wrong + bad
    print(
        f"{pairs} pairs, {number} scores beside thresholds, {wrong} on the other side"
    )
    assert wrong < 0.002 * number, (wrong, number)


def test_rising_falling_flat_and_outside():
    identity = Identity().fit([0.1, 0.9], [0, 1])
    assert identity.threshold(0.25).score == 0.25
    assert identity.threshold(0.0).score == 0.0 and identity.threshold(1.0).score == 1.0
    falling = PlattScaling().fit([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0])
    found = falling.threshold(0.5)
    assert found.side == "<=" and abs(found.score - 0.5) < 1e-9
    steps = HistogramBinning(2).fit([0.1, 0.2, 0.7, 0.9], [0, 0, 1, 1])
    low, high = second(steps, [0.1, 0.9], "proba")
    at_step = steps.threshold(high)
    # the left end of the piece
    assert at_step.score == steps.threshold((low + high) / 2).score
    assert steps.threshold(low).score == 0.0
    above, below = steps.threshold([np.nextafter(high, 1), np.nextafter(low, 0)])
    assert above.score is None and above.intervals == ()
    assert below.score is None and below.intervals == ((0.0, 1.0),)
    assert "no score (the map gives 0.132 to 0.836)" in str(above) and "every" in str(
        below
    )


def test_float32_comparisons_need_their_own_number():
    """The nearest float32 of a threshold lies on the wrong side for one half of them."""
    map_ = Identity().fit([0.1, 0.9], [0, 1])
    targets = np.linspace(0.01, 0.99, 50)
    plain = np.array([t.score for t in map_.threshold(targets)]).astype(np.float32)
    own = np.array(
        [t.score for t in map_.threshold(targets, dtype="float32")], np.float32
    )
    assert (plain.astype(np.float64) < targets).any()
    assert (own.astype(np.float64) >= targets).all()
    assert (np.nextafter(own, np.float32(0)).astype(np.float64) < targets).all()


def test_maps_that_turn():
    """A parabola, opposite exponents, and a curve of several turns, found by their pieces."""
    p = np.linspace(0.02, 0.98, 200)
    rng = np.random.default_rng(0)
    y = (rng.random(200) < np.where(np.abs(p - 0.5) < 0.25, 0.9, 0.2)).astype(int)
    parabola = QuadraticScaling().fit(p, y)
    found = parabola.threshold(0.5)
    assert (
        found.score is None
        and len(found.intervals) == 1
        and "<= score <=" in found.rule
    )
    top = parabola.threshold(found.range[1])
    assert len(top.intervals) >= 1 and 0.4 < top.intervals[0][0] < 0.6
    matrix = MatrixScaling().fit(p, y)
    wavy = (rng.random(4000) < 0.5 + 0.4 * np.sin(12 * np.linspace(0, 1, 4000))).astype(
        int
    )
    spline = SplineCalibration(monotone=False).fit(
        np.linspace(1e-3, 1 - 1e-3, 4000), wavy
    )
    assert max(len(t.intervals) for t in spline.threshold([0.3, 0.5, 0.7])) >= 2
    for map_ in (parabola, matrix, spline):
        for kind in KINDS:
            check(map_, targets_of(map_, rng, 20), kind, rng)


def test_steps_behind_another_map():
    """Edges are carried back through what comes before them."""
    p, y = make_overconfident(2, 300, random_state=2)
    behind = OneVsRest(make_pipeline(PlattScaling(), HistogramBinning(5))).fit(p, y)
    exported = from_dict(
        to_dict(make_pipeline(BetaCalibration(), HistogramBinning(7)).fit(p, y))
    )
    rng = np.random.default_rng(1)
    for map_ in (behind, exported):
        check(map_, targets_of(map_, rng, 20), "proba", rng)


def test_sums_of_curves_that_rise_and_fall_are_searched():
    p = np.linspace(0.01, 0.99, 400)
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.2 + 0.6 * np.abs(2 * p - 1)).astype(int)
    parts = ("quadratic", "platt", "histogram_binning")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        map_ = StackedCalibration(parts, monotone=False).fit(p, y)
    found = map_.threshold(0.6)
    assert found.score is None and len(found.intervals) >= 2
    check(map_, targets_of(map_, rng, 20), "proba", rng)


def test_units_of_documents():
    p, y = make_overconfident(2, 300)
    fitted_ = PlattScaling().fit(p, y)
    of_logits = from_dict(to_dict(fitted_, input="logits")).threshold(0.2)
    assert of_logits.input == "logits"
    assert abs(expit(of_logits.score) - fitted_.threshold(0.2).score) < 1e-12
    assert fitted_.threshold(0.2, input="logits").to_dict()["input"] == "logits"


@run_every_case(
    ("target", "options", "match"),
    [
        (2, {}, r"targets from 0 to 1, got 2\. .*divide percentages by 100"),
        (float("nan"), {}, "targets from 0 to 1, got nan"),
        ("0.5", {}, "targets from 0 to 1"),
        (True, {}, "targets from 0 to 1"),
        ([], {}, "one target or a list"),
        ([[0.1]], {}, "one target or a list"),
        (0.5, {"input": "logit"}, "'logits', the nearest"),
        (0.5, {"dtype": "float16"}, "dtype among float64, float32"),
    ],
)
def test_bad_targets(target, options, match):
    with pytest.raises(ValueError, match=match):
        PriorShift().fit([0.1, 0.9], [0, 1]).threshold(target, **options)


def test_several_classes_are_refused_with_the_way():
    map_ = PlattScaling().fit(*make_overconfident(3, 200))
    with raises_invalid_input(
        ValueError,
        expected=".*two classes",
        value="3 classes",
        hint=r".*fit\(proba\[:, c\], y == c",
    ):
        map_.threshold(0.5)
    with raises_invalid_input(ValueError, expected=".*two classes"):
        from_dict(to_dict(map_)).threshold(0.5)
    with raises_invalid_input(ValueError, hint=".*tabulate"):
        AdaptiveCalibration().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).threshold(0.5)


# -- bands as SQL -----------------------------------------------------------------------------

NAMES = {"A": 0, "it's \\ B": 0.2, "C": 0.5}


@pytest.mark.parametrize(
    "name", ["platt", "isotonic", "histogram_binning", "enir", "quadratic"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_bands_in_databases(name, kind):
    """The bands of the scores themselves, of their neighbours, and of what is not a score."""
    map_, edges = fitted(name, 2), [0.2, 0.5]
    ends = [
        end
        for one in map_.threshold(edges, input=kind)
        for end in np.ravel(one.intervals)
    ]
    scores = neighbours(ends, np.float64)
    scores = scores[(scores >= 0) & (scores <= 1)] if kind == "proba" else scores
    scores = scores[np.abs(scores) < 1e100]
    number = np.searchsorted(edges, second(map_, scores, kind), side="right")
    for bands, expected in ((edges, number), (NAMES, np.array([*NAMES])[number])):
        for dialect, quoted, connect in (
            ("sqlite", "`a ``b```", sqlite3.connect),
            ("duckdb", '"a `b`"', duckdb.connect),
        ):
            sql = to_sql(
                map_, "a `b`", dialect=dialect, into=None, input=kind, bands=bands
            )
            with closing(connect(":memory:")) as database:
                database.execute(f"CREATE TABLE t ({quoted} DOUBLE)")
                rows = [(x,) for x in (*scores.tolist(), None, -2e200)]
                database.executemany("INSERT INTO t VALUES (?)", rows)
                found = [
                    row[0]
                    for row in database.execute(f"SELECT {sql} FROM t").fetchall()
                ]
            assert found == [*expected.tolist(), None, None]


def test_texts_of_bands_are_data():
    map_ = fitted("platt", 2)
    for dialect in DIALECTS:
        sql = to_sql(map_, "p", dialect=dialect, bands=NAMES)
        escaped = dialect in (
            "mysql",
            "bigquery",
            "snowflake",
            "clickhouse",
            "spark",
            "databricks",
        )
        assert ("'it\\'s \\\\ B'" if escaped else "'it''s \\ B'") in sql
        assert to_sql(map_, "p", dialect=dialect, bands=[]).count("THEN 0 END") == 1


@run_every_case(
    "bands",
    [[0.5, 0.2], ["a"], {"A": 0.1, "B": 0.2}, {1: 0, 2: 0.5}, {}, {"A\n": 0, "B": 0.5}],
)
def test_bad_bands(bands):
    with raises_invalid_input(ValueError, expected=".*increasing probabilities"):
        to_sql(fitted("platt", 2), "p", bands=bands)
    with raises_invalid_input(ValueError, expected="one column for bands"):
        to_sql(fitted("platt", 2), ["p", "q"], bands=[0.5])
