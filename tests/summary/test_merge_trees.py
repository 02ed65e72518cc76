"""Any merge tree of any batches of the rows in any order gives the same summary in every bit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sklearn_calib._kernels._exact_sums import (
    convert_floats_to_sums,
    convert_sums_to_floats,
)
from sklearn_calib._kernels._exact_sums_compiled import (
    CHUNK_ROWS,
    fill_negative_logs,
    sum_to_exact_integers,
)
from sklearn_calib.summary import CalibrationSummary, _summary


def in_a_tree(rng, columns, make):
    """Rows in another order, in batches of any size, merged in any order."""
    n = len(columns[0])
    order = rng.permutation(n)
    cuts = np.sort(rng.integers(0, n + 1, rng.integers(0, 9)))
    parts = []
    for rows in np.split(order, cuts):
        part = make()
        for some in np.array_split(rows, rng.integers(1, 4)):
            part.update(
                *(None if column is None else column[some] for column in columns)
            )
        parts.append(part)
    while len(parts) > 1:
        one, other = (parts.pop(rng.integers(len(parts))) for _ in range(2))
        parts.append(one + other)
    return parts[0]


def rows(rng, n_classes, n):
    scale = rng.choice([1.0, 20.0])
    z = scale * rng.normal(size=(n, n_classes))
    z = np.round(z, rng.integers(0, 3)) if rng.random() < 0.3 else z
    proba = np.exp(z - z.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    if n_classes == 2:
        proba = proba[:, 1]
        proba[rng.random(n) < 0.05] = rng.choice([0.0, 1.0, 5e-324])
    return rng.integers(0, n_classes, n), proba


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([2, 3, 5]), st.sampled_from([30, 4096]))
def test_any_tree_gives_every_bit(seed, n_classes, max_cells):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(seed)
    y, proba = rows(rng, n_classes, int(rng.integers(1, 700)))
    kind = rng.choice(["none", "whole", "any"])
    weight = {
        "none": None,
        "whole": rng.integers(1, 9, len(y)).astype(float),
        "any": rng.gamma(0.3, size=len(y)) * 10.0 ** rng.integers(-9, 9, len(y)),
    }[kind]
    multiclass = "auto" if n_classes == 2 else rng.choice(["confidence", "classwise"])
    least, _summary.MIN_CELLS_PER_PROBLEM = _summary.MIN_CELLS_PER_PROBLEM, 1
    try:

        def make():
            return CalibrationSummary(max_cells, str(multiclass), np.arange(n_classes))

        whole = make().update(y, proba, weight)
        tree = in_a_tree(rng, (y, proba, weight), make)
    finally:
        _summary.MIN_CELLS_PER_PROBLEM = least
    assert tree.totals == whole.totals  # in every bit
    if kind != "any":
        one, other = tree.to_arrow(), whole.to_arrow()
        assert one.equals(other) and one.schema.metadata == other.schema.metadata
        for name in ("log_loss", "brier_loss", "smooth_calibration_error"):
            assert tree.measure(name) == whole.measure(name)


@pytest.mark.parametrize(
    "exponents", [(-5, 5), (-1074, -1000), (-1074, 800), (800, 1020)]
)
def test_sums_are_exact(exponents):
    rng = np.random.default_rng(0)
    terms = np.ldexp(
        rng.normal(size=(2, 9000)), rng.integers(*exponents, size=(2, 9000))
    )
    exact = [sum(map(Fraction, row)) for row in terms.tolist()]
    found = sum_to_exact_integers(terms)
    assert found == [number * 2**1074 for number in exact]
    assert convert_sums_to_floats(found).tolist() == [float(number) for number in exact]


def test_sums_of_what_is_too_large():
    assert convert_sums_to_floats(
        sum_to_exact_integers(np.array([[1e308, 1e308, 1.0]]))
    ).tolist() == [np.inf]
    assert convert_sums_to_floats(
        convert_floats_to_sums([np.inf, 2.5, 0.0])
    ).tolist() == [
        np.inf,
        2.5,
        0.0,
    ]


def test_logarithms_are_right_to_the_last_place():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.random(5000), 10.0 ** -rng.uniform(0, 300, 5000)])
    x = np.concatenate(
        [x, [1.0, 0.5, 1 - 2.0**-53, 0.0, 2.0**-52, np.nextafter(0.5**0.5, 1)]]
    )
    out = np.empty(len(x))
    fill_negative_logs(x, 2.0**-1000, out)
    expected = -np.log(np.maximum(x, 2.0**-1000))
    assert (np.abs(out - expected) <= np.spacing(expected)).all()


def test_totals_of_rows_are_fine_enough():
    """Terms without weights are rounded to 2^-84: losses of scores near the ends keep digits."""
    p = np.full(100_000, 1e-12)
    totals = CalibrationSummary().update(np.zeros(len(p), int), p).totals
    assert totals.log_loss == pytest.approx(-1e5 * np.log(1 - 1e-12), rel=1e-11)
    assert totals.variance == pytest.approx(1e-7, rel=1e-11)
    assert len(p) > CHUNK_ROWS
