"""The queries of the page on large data give the cells of the summary."""

import re

import duckdb
import numpy as np
import polars as pl
import pytest
from checkout import GUIDE

from sklearn_calib.summary import CalibrationSummary, summarize

PAGE = GUIDE / "large_data.rst"


def queries():
    """That for the counts of both labels, and the coarser one."""
    text = PAGE.read_text(encoding="utf-8")
    (coarse,) = re.findall(r"code-block:: sql\n\n((?:(?:   .*)?\n)+)", text)
    (exact,) = re.findall(r'query = "(SELECT p, sum.+)"', text)
    return exact, coarse


def rows(p):
    rng = np.random.default_rng(1)
    p = np.repeat(p, 3)
    return {"outcome": (rng.random(len(p)) < p).astype(np.int64), "p": p}


def of_counts(counts, **options):
    return CalibrationSummary(**options).update(
        np.repeat([1, 0], len(counts["p"])),
        np.tile(counts["p"], 2),
        counts=np.concatenate([counts["n1"], counts["n0"]]),
    )


@pytest.mark.parametrize("max_cells", [4096, 65_536])
def test_counts_of_a_database_are_the_rows(max_cells):
    rng = np.random.default_rng(2)
    p = np.concatenate(
        [rng.random(9000), rng.beta(0.1, 5, 9000), [0, 1, 0.5, 1e-280, 1 / 3] * 9]
    )
    p = np.concatenate([p, np.nextafter(p[:99], 1)])
    frame = pl.DataFrame(rows(p))
    connection = duckdb.connect()
    connection.register("scores", frame.to_arrow())
    direct = CalibrationSummary(max_cells).update(frame["outcome"], frame["p"])
    exact, coarse = queries()
    query = connection.sql("SELECT outcome, p FROM scores")
    assert summarize(query, label="outcome", prob="p", max_cells=max_cells) == direct
    grouped = frame.group_by("p").agg(
        n1=pl.col("outcome").sum(), n0=(1 - pl.col("outcome")).sum()
    )
    for counts in (connection.sql(exact).fetchnumpy(), grouped.to_dict()):
        found = of_counts(counts, max_cells=max_cells)
        ours, theirs = direct.to_arrow(), found.to_arrow()
        for name in ("id", "n0", "n1", "offset"):
            assert ours[name].equals(theirs[name])
        for name, value in direct.totals._asdict().items():
            assert getattr(found.totals, name) == pytest.approx(value, rel=1e-9), name
        for measure in ("smooth_calibration_error", "brier_loss"):
            assert found.measure(measure) == pytest.approx(
                direct.measure(measure), rel=1e-8
            )
    counts = connection.sql(coarse).fetchnumpy()
    assert counts["n1"].sum() + counts["n0"].sum() == len(frame)
    error = of_counts(counts, max_cells=max_cells).measure("smooth_calibration_error")
    assert error == pytest.approx(direct.measure("smooth_calibration_error"), abs=1e-6)
