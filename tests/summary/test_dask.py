"""Dask: the summary of all partitions is the summary of all rows, also when a worker dies."""

import os
import re
import signal
import threading
import time
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from error_fields import raises_invalid_input
from systems import SIGNALS

from sklearn_calib.groups import group_calibration
from sklearn_calib.recalibrators import get_recalibrator
from sklearn_calib.summary import CalibrationSummary, summarize

COLUMNS = {"label": "y", "prob": "p", "max_cells": 4096}
# distributed closes its sockets in its own time
pytestmark = pytest.mark.filterwarnings(
    "default::ResourceWarning", "default::DeprecationWarning"
)


def table(n):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p**1.5).astype(int)
    return pd.DataFrame(
        {"p": p, "y": y, "w": rng.random(n), "shop": rng.choice([*"ab"], n)}
    )


@pytest.fixture
def frame():
    with dask.config.set(scheduler="synchronous"):
        yield table(20_000)


def of_rows(frame, **options):
    return CalibrationSummary(4096, **options).update(frame["y"], frame["p"])


@pytest.mark.parametrize(
    "partitions", [1, 3, 20, pytest.param(70, marks=pytest.mark.slow)]
)
def test_partitions(frame, partitions):
    rows = dd.from_pandas(frame, npartitions=partitions)
    assert summarize(rows, **COLUMNS) == of_rows(frame)
    found = summarize(rows, by="shop", weight="w", **COLUMNS)
    for shop, part in frame.groupby("shop"):
        weighted = CalibrationSummary(4096).update(part["y"], part["p"], part["w"])
        assert found[shop] == weighted


def test_the_audit_of_groups_is_the_local_one_in_every_bit(frame):
    small = frame[:2000]
    local = summarize(small, by=["shop"], **COLUMNS)
    rows = dd.from_pandas(small, npartitions=5)
    found = group_calibration(summarize(rows, by=["shop"], **COLUMNS), groups=["shop"])
    assert found.rows == group_calibration(local, groups=["shop"]).rows
    assert len(found.rows) == 3


@pytest.mark.slow
def test_partitions_without_rows(frame):
    rows = dd.from_pandas(frame, npartitions=9)
    assert summarize(rows[rows["p"] < 0.1], **COLUMNS) == of_rows(
        frame[frame["p"] < 0.1]
    )
    assert summarize(rows[rows["p"] > 2], **COLUMNS).n_samples == 0
    names = frame.assign(y=frame["y"].map({0: "no", 1: "yes"}))
    first = dd.from_pandas(names.sort_values("y").reset_index(drop=True), npartitions=9)
    found = summarize(first, pos_label="yes", **COLUMNS)
    assert found == of_rows(
        names.assign(y=names["y"].to_numpy(object)), pos_label="yes"
    )


def test_arrays(frame):
    y, p = frame["y"].to_numpy(), frame["p"].to_numpy()
    two = np.column_stack([1 - p, p])
    wanted = CalibrationSummary(4096).update(y, two)
    labels = da.from_array(y, chunks=3000)
    for proba in (da.from_array(p, chunks=3000), da.from_array(p, chunks=1100)):
        assert summarize({"y": labels, "p": proba}, **COLUMNS) == of_rows(frame)
    assert (
        summarize({"y": labels, "p": da.from_array(two, chunks=(4000, 1))}, **COLUMNS)
        == wanted
    )
    for data, message in (
        ({"y": labels}, "expected arrays ['y', 'p'], got ['y']"),
        (
            {"y": labels, "p": p},
            "expected 'p' as a dask array like the others, got a ndarray",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            summarize(data, **COLUMNS)


def test_errors_name_the_partition(frame):
    frame.loc[15_500, "p"] = 1.5
    rows = dd.from_pandas(frame, npartitions=20)
    with raises_invalid_input(
        ValueError, source="partition 15", expected="prob", value="1.5", row=500
    ):
        summarize(rows, **COLUMNS)
    with raises_invalid_input(ValueError, expected="the column 'q'"):
        summarize(rows, label="y", prob="q")


@pytest.mark.slow
def test_predictions_of_partitions(frame):
    """What the page on large data states of `map_partitions`."""
    recalibrator = get_recalibrator("beta").fit(frame["p"], frame["y"])
    rows = dd.from_pandas(frame, npartitions=7)

    def repaired(part):
        return part.assign(p=recalibrator.predict_proba(part["p"].to_numpy())[:, 1])

    found = rows.map_partitions(repaired, meta=rows._meta).compute()
    assert found["p"].to_numpy() == pytest.approx(
        recalibrator.predict_proba(frame["p"].to_numpy())[:, 1], rel=1e-12
    )


def test_a_merge_can_be_run_twice(frame):
    """A scheduler that lost a result runs the task again on inputs it still has."""
    from sklearn_calib.summary._sources import (
        GroupSummaryTally,
        SummaryPlan,
        _merge_tallies,
        _tally_partition,
    )

    plan = SummaryPlan(
        ("y",), ("p",), None, None, ("shop",), True, 4096, "auto", None, None
    )
    make = partial(GroupSummaryTally, plan)
    tallies = [_tally_partition(frame[i::3], f"partition {i}", make) for i in range(3)]
    first, again = (
        _merge_tallies(tallies, make).get_summary_or_groups() for _ in range(2)
    )
    assert first == again
    assert sum(first.values()) == of_rows(frame)


@pytest.mark.slow
def test_threads_of_a_cluster(frame):
    rows = dd.from_pandas(frame, npartitions=12)
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
        as cluster,
        Client(cluster),
        dask.config.set(scheduler=None),
    ):  # fmt: skip
        assert summarize(rows, **COLUMNS) == of_rows(frame)


@SIGNALS
@pytest.mark.slow
def test_a_killed_worker_changes_no_bit(tmp_path):
    frame = table(400_000)
    (tmp_path / "rows").mkdir()
    for number in range(60):
        frame.iloc[number::60].to_parquet(tmp_path / "rows" / f"{number}.parquet")
    killed = []

    def kill_the_first():
        """As soon as it has finished a task."""
        for _ in range(3000):
            done = os.listdir(tmp_path / "done")
            if done:
                killed.append(int(done[0]))
                os.kill(killed[0], signal.SIGKILL)
                return
            time.sleep(0.01)

    (tmp_path / "done").mkdir()

    def slowly(part):
        time.sleep(0.1)
        (tmp_path / "done" / str(os.getpid())).touch()
        return part

    rows = dd.read_parquet(tmp_path / "rows")
    assert rows.optimize().npartitions >= 10
    rows = rows.map_partitions(slowly, meta=rows._meta)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        killer = threading.Thread(target=kill_the_first)
        killer.start()
        found = summarize(rows, **COLUMNS)
        killer.join()
    assert len(killed) == 1, "a worker was killed in the middle"
    assert found == of_rows(frame)
