"""The queries of the page on large data give the cells of the summary."""

import re
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from sklearn_calib._kernels._cells import keys_of
from sklearn_calib.summary import CalibrationSummary, summarize

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "large_data.rst"
if not PAGE.exists():
    pytest.skip("not a checkout", allow_module_level=True)


def queries():
    text = PAGE.read_text().split(".. code-block:: sql\n\n")[1:]
    return [re.match(r"(?:(?:   .*)?\n)+", block)[0] for block in text]


def around_octaves():
    """Numbers beside every power of two down to 1e-280, and beside what rounds to the next key."""
    powers = 2.0 ** np.arange(-930, 0)
    steps = [0, 1, 2**15 - 1, 2**15, 2**15 + 1, 2**16, 3 * 2**15 - 1, 3 * 2**15]
    bits = powers.view(np.int64)[:, None] + np.array([*steps, *np.negative(steps)])
    others = np.random.default_rng(0).random(20_000) ** 8
    t = np.concatenate([bits.view(np.float64).ravel(), others / 2])
    return np.unique(t[t <= 0.5])


def rows(p):
    rng = np.random.default_rng(1)
    p = np.repeat(p, 3)
    return {"y": (rng.random(len(p)) < p).astype(np.int64), "p": p}


def of_counts(counts, **options):
    return CalibrationSummary(**options).update(
        np.repeat([1, 0], len(counts["p"])),
        np.tile(counts["p"], 2),
        counts=np.concatenate([counts["n1"], counts["n0"]]),
    )


def polars_keys(frame):
    """The first query, in the words of polars."""
    two = pl.lit(2.0)
    frame = frame.with_columns(
        high=pl.col("p") > 0.5,
        t=pl.max_horizontal(pl.min_horizontal(pl.col("p"), 1 - pl.col("p")), 1e-290),
    )
    frame = frame.with_columns(e=pl.col("t").log(2).floor())
    frame = frame.with_columns(
        v=(pl.col("t") * two.pow(36 - pl.col("e")) + 0.5).floor() * two.pow(pl.col("e") - 36)
    )
    frame = frame.with_columns(f=(pl.col("v") * (1 + 2.0**-38)).log(2).floor())
    return frame.with_columns(
        k=(pl.col("f") + 1022) * 2.0**36 + pl.col("v") * two.pow(36 - pl.col("f"))
    )


def test_keys_in_sql():
    t = around_octaves()
    assert len(t) > 30_000
    p = np.concatenate([t, 1 - t[t > 1e-12]])
    data = rows(p)
    connection = duckdb.connect()
    connection.register("scores", pl.DataFrame(data).to_arrow())
    (exact, _) = queries()
    found = connection.sql(exact).fetchnumpy()
    wanted = keys_of(np.minimum(found["p"], 1 - found["p"]))
    assert np.array_equal(np.asarray(found["k"]).astype(np.int64), wanted)
    sides = found["p"] > 0.5
    assert len(np.unique(np.column_stack([wanted, sides]), axis=0)) == len(wanted)
    keyed = polars_keys(pl.DataFrame(data))
    wanted = keys_of(np.minimum(data["p"], 1 - data["p"]))
    assert np.array_equal(keyed["k"].to_numpy().astype(np.int64), wanted)


@pytest.mark.parametrize("max_cells", [4096, 65_536])
def test_counts_of_a_database_are_the_rows(max_cells):
    rng = np.random.default_rng(2)
    p = np.concatenate([rng.random(9000), rng.beta(0.1, 5, 9000), [0, 1, 0.5, 1e-280, 1 / 3] * 9])
    frame = pl.DataFrame(rows(p))
    connection = duckdb.connect()
    connection.register("scores", frame.to_arrow())
    direct = CalibrationSummary(max_cells).update(frame["y"], frame["p"])
    exact, coarse = queries()
    query = connection.sql("SELECT y, p FROM scores")
    assert summarize(query, label="y", prob="p", max_cells=max_cells) == direct
    grouped = (
        polars_keys(frame)
        .group_by("high", "k")
        .agg(p=pl.col("p").min(), n1=pl.col("y").sum(), n0=(1 - pl.col("y")).sum())
    )
    for counts in (connection.sql(exact).fetchnumpy(), grouped.to_dict()):
        found = of_counts(counts, max_cells=max_cells)
        ours, theirs = direct.to_arrow(), found.to_arrow()
        for name in ("id", "n0", "n1"):
            assert ours[name].equals(theirs[name])
        for name, value in direct.totals._asdict().items():
            assert getattr(found.totals, name) == pytest.approx(value, rel=1e-9), name
        for measure in ("smooth_calibration_error", "brier_loss"):
            assert found.measure(measure) == pytest.approx(direct.measure(measure), rel=1e-8)
    counts = connection.sql(coarse).fetchnumpy()
    assert counts["n1"].sum() + counts["n0"].sum() == len(frame)
    error = of_counts(counts, max_cells=max_cells).measure("smooth_calibration_error")
    assert error == pytest.approx(direct.measure("smooth_calibration_error"), abs=1e-6)
