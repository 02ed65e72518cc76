"""Rows that their own digits draw, beside a summary."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input

from sklearn_calib._cli._drawn import compare_losses
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import TemperatureScaling
from sklearn_calib.summary import (
    DrawAndScoreOptions,
    RowReservoir,
    get_max_sample_rows,
    summarize,
)

K = 3
P = [f"p{c}" for c in range(K)]


@pytest.fixture(scope="module")
def table():
    """A class of few rows, weights that are not counts, groups as text, a feature with holes."""
    proba, y = make_overconfident(K, 3000, random_state=1)
    rare = (y == 2) & (np.arange(len(y)) > 90)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(proba, columns=P).assign(
        y=y, w=rng.gamma(2.0, size=len(y)), g=[f"n{i // 7}" for i in range(len(y))]
    )
    frame["x"] = np.where(
        rng.random(len(y)) < 0.1, np.nan, rng.normal(size=len(y)).round(1)
    )
    return frame[~rare].reset_index(drop=True)


def drawn(data, most=200, weight=None, features=(), group=None, **options):
    draw = DrawAndScoreOptions(most, tuple(features), group, **options)
    found = summarize(
        data, label="y", prob=P, weight=weight, classes=range(K), _draw=draw
    )
    return found.drawn.get_sample()


def same(one, two, but=()):
    """Whether two draws agree in every bit."""
    for name in vars(one).keys() - {"predictions", "kind", *but}:
        a = getattr(one, name)
        b = getattr(two, name)
        if isinstance(a, pd.DataFrame):
            pd.testing.assert_frame_equal(a, b)
        elif a is not None:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("most", [200, pytest.param(100_000, marks=pytest.mark.slow)])
def test_any_order_and_any_parts(table, tmp_path, monkeypatch, most):
    """Rows shuffled, cut into blocks and files, read by processes, merged in another order."""
    given = {"most": most, "weight": "w", "features": ["x"], "group": "g"}
    whole = drawn(table, **given)
    shuffled = table.sample(frac=1, random_state=0)
    same(whole, drawn(shuffled, **given))
    monkeypatch.setattr("sklearn_calib.summary._parts.PIECE_ROWS", 509)
    same(whole, drawn(shuffled, **given))
    for number, part in enumerate(np.array_split(np.arange(len(table)), [1, 1, 700])):
        table.iloc[part].to_parquet(tmp_path / f"{number}.parquet")
    files = sorted(map(str, tmp_path.glob("*.parquet")))
    same(whole, drawn(files, **given))
    same(whole, drawn(files[::-1], **given))
    parts = [
        summarize(file, label="y", prob=P, weight="w", classes=range(K),
                  _draw=DrawAndScoreOptions(most, ("x",), "g"))
        for file in files
    ]  # fmt: skip
    merged = pickle.loads(pickle.dumps(parts[2])) + parts[0] + parts[1] + parts[3]
    same(whole, merged.drawn.get_sample())
    assert whole.is_complete == (most > 200)
    assert whole.n_drawn == len(table) if whole.is_complete else whole.n_drawn < 600


def test_csv_and_parquet_draw_the_same_rows(table, tmp_path):
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    given = {"features": ["x"], "group": "g"}
    one, two = (
        drawn(str(tmp_path / f"t.{kind}"), **given) for kind in ("csv", "parquet")
    )
    same(one, two, ["extras"])
    assert one.extras["g"].tolist() == two.extras["g"].tolist()


@pytest.mark.slow
def test_workers_draw_the_same_rows(table):
    dd = pytest.importorskip("dask.dataframe")
    import dask

    with dask.config.set(scheduler="synchronous"):
        for n in (1, 5, 13):
            rows = dd.from_pandas(table, npartitions=n)
            same(drawn(table, weight="w"), drawn(rows, weight="w"))


def test_rare_classes_are_kept_and_every_row_is_stood_for(table):
    found = drawn(table, most=60)
    rare = (table["y"] == 2).sum()
    assert rare < 40
    of_class = np.bincount(found.codes, found.counts, K)
    assert (
        of_class[2] >= min(10, rare)
        and of_class.sum() == found.n_drawn < len(table) / 3
    )
    stood_for = np.bincount(found.codes, found.counts * found.share, K)
    np.testing.assert_allclose(stood_for, np.bincount(table["y"]), rtol=1e-12)
    assert found.weight_per_count @ found.counts == pytest.approx(found.n_drawn)
    assert found.n_seen == len(table)


def test_a_smaller_draw_is_part_of_a_larger_one(table):
    draw = DrawAndScoreOptions(400)
    summary = summarize(table, label="y", prob=P, classes=range(K), _draw=draw)
    same(summary.drawn.limit_rows(100).get_sample(), drawn(table, 100))


def test_equal_rows_are_counted(table):
    """Few different rows: none is lost, however many there are; of many, no stratum counts less."""
    rounded = table.assign(**(table[P].round(1) + np.array([1e-9, 0, 0])))
    rounded["p0"] = 1 - rounded["p1"] - rounded["p2"]
    rounded = rounded[rounded["p0"] >= 0]
    found = drawn(rounded, 100_000)
    assert found.is_complete and found.n_drawn == len(rounded) > 5 * len(found.codes)
    weights = found.sample_weight
    one = TemperatureScaling().fit(found.scores, found.codes, sample_weight=weights)
    two = TemperatureScaling().fit(rounded[P].to_numpy(), rounded["y"])
    assert one.temperature_ == pytest.approx(two.temperature_, rel=1e-6)
    heavy = pd.concat([table, table.iloc[[5] * 4000]])
    for most in (50, 100, 200):
        some = drawn(heavy, most)
        loss = log_loss(some.codes, some.scores, sample_weight=some.sample_weight)
        assert loss == pytest.approx(log_loss(heavy["y"], heavy[P].to_numpy()), rel=0.2)


def test_weights_of_zero_and_counts(table):
    some = table.assign(w=np.arange(len(table)) % 3 * 1.0)
    found = drawn(some, weight="w", most=100_000)
    assert (
        found.n_seen == found.n_drawn == (some["w"] > 0).sum()
        and found.weight.min() == 1
    )
    counts = np.arange(len(table)) % 3
    rows = {"y": table["y"], "c": counts} | {name: table[name] for name in P}
    counted = summarize(
        rows,
        label="y",
        prob=P,
        counts="c",
        classes=range(K),
        _draw=DrawAndScoreOptions(10_000),
    )
    repeated = drawn(table.iloc[np.repeat(np.arange(len(table)), counts)], 10_000)
    same(counted.drawn.get_sample(), repeated)


def test_estimates_of_samples_are_right():
    """The loss of 40 samples: no bias, and an error as rows at random would have, or less."""
    proba, y = make_overconfident(4, 40_000, random_state=3)
    loss = -np.log(proba[np.arange(len(y)), y])
    errors = []
    for seed in range(40):
        rows = np.random.default_rng(seed).choice(len(y), 4000, replace=False)
        draw = RowReservoir(4, 300)
        draw.add(y[rows], proba[rows], np.exp(-loss[rows]))
        found = draw.get_sample()
        own = -np.log(found.scores[np.arange(len(found.codes)), found.codes])
        errors.append(np.average(own, weights=found.sample_weight) - loss[rows].mean())
    errors = np.array(errors)
    assert abs(errors.mean()) < 3 * errors.std() / 40**0.5
    assert errors.std() < loss.std() / 300**0.5


def test_logits():
    """Logits stay logits; the loss of the summary is that of their softmax."""
    proba, y = make_overconfident(K, 500)
    z = np.log(proba) + np.arange(500)[:, None]
    rows = dict(zip(P, z.T, strict=True)) | {"y": y}
    summary = summarize(
        rows,
        label="y",
        prob=P,
        classes=range(K),
        _draw=DrawAndScoreOptions(score_kind="logits"),
    )
    found = summary.drawn.get_sample(kind="logits")
    assert found.scores.max() > 400 and found.is_complete
    assert summary.measure("log_loss") == pytest.approx(log_loss(y, proba), rel=1e-9)
    assert found.predictions.proba.max() <= 1
    odds = {"y": y == 0, "z": z[:, 0] - z[:, 1]}
    two = summarize(
        odds,
        label="y",
        prob="z",
        classes=[False, True],
        _draw=DrawAndScoreOptions(score_kind="logits"),
    )
    assert two.drawn.get_sample().scores.shape == (500, 1)


def test_other_readings(table):
    percent = table.assign(**(100 * table[P]))
    np.testing.assert_allclose(drawn(percent, percent=True).scores.sum(axis=1), 1)
    off = table.assign(**(0.7 * table[P]))
    # the farthest from 1, however sums are rounded
    off.loc[239, P] = 0.6 * table.loc[239, P]
    np.testing.assert_allclose(drawn(off, tolerance=0.5).scores.sum(axis=1), 1)
    with raises_invalid_input(
        ValueError, expected=".*rows that sum to 1", value=r"a sum of 0\.6", row=239
    ):
        drawn(off)
    with raises_invalid_input(
        ValueError, expected="a group in every row", value="nan in row 4"
    ):
        drawn(table.assign(g=table["g"].where(table.index != 4)), group="g")
    wrong = table.assign(p1=table["p1"].where(table.index != 1900, 7.0))
    with pytest.raises(ValueError, match="in row 1900"):
        drawn(wrong)


def test_folds_part_the_rows_and_keep_groups(table):
    sample = drawn(table, 100_000, group="g")
    folds = sample.split_into_folds(5)
    assert np.array_equal(np.sum([left for _, left in folds], axis=0), sample.counts)
    held = sample.recalibrate_held_out("identity", folds)
    np.testing.assert_allclose(
        held.predictions.proba,
        sample.predictions.proba[held.sample_indices],
        rtol=1e-12,
    )
    groups = pd.factorize(sample.extras["g"])[0]
    for kept, left in sample.split_into_folds(5, groups):
        assert not set(groups[kept > 0]) & set(groups[left > 0])


def test_memory_does_not_grow_with_the_rows():
    """Ten times the rows: as much memory, beside one block."""
    peaks = []
    rng = np.random.default_rng(0)
    for n_blocks in (5, 50):
        draw = RowReservoir(5, 500)
        tracemalloc.start()
        for _ in range(n_blocks):
            proba = rng.dirichlet(np.ones(5), 2000)
            draw.add(rng.integers(0, 5, 2000), proba, proba[:, 0])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(draw.get_sample().codes) < 2000
    assert peaks[1] < 1.3 * peaks[0]


def test_many_classes_take_fewer_rows():
    sizes = [get_max_sample_rows(k) for k in (2, 10, 1000)]
    assert sizes == [100_000, 50_000, 20_000]


class Halved:
    """A map that is what it is, whatever it is fitted to: temperature 2."""

    classes_ = np.arange(3)

    def fit(self, proba, y, sample_weight=None, classes=None):
        return self

    def predict_proba(self, proba):
        root = np.sqrt(np.asarray(proba))
        return root / root.sum(axis=1, keepdims=True)

    def get_params(self, deep=True):
        return {}

    def set_params(self):
        return self


def gain_of(proba, y, most):
    """The interval that a fit prints for a fixed map, without its factor for folds."""
    data = dict(zip(P, proba.T, strict=True)) | {"y": y}
    summary = summarize(
        data, label="y", prob=P, classes=range(3), _draw=DrawAndScoreOptions(most)
    )
    sample = summary.drawn.get_sample()
    held = sample.recalibrate_held_out(Halved(), sample.split_into_folds(5))
    found = compare_losses(sample, held, summary.measure("log_loss"), 0.9)
    half = (found.high - found.low) / 2 / 2**0.5
    return found.difference, half


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [17, 2])
def test_the_interval_of_a_drawn_gain_covers(decimals):
    """Of 3000 rows 300 different ones: 0.89 of 300 intervals of 90 %.

    Where rounding makes many rows equal, which are drawn together, 0.85.
    """
    rng = np.random.default_rng(0)

    def drawn(n):
        truth = rng.dirichlet(np.full(3, 0.7), n)
        y = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
        proba = truth**1.5 / (truth**1.5).sum(axis=1, keepdims=True)
        proba = (proba + 1e-3) / (1 + 3e-3)
        proba[:, :2] = proba[:, :2].round(decimals).clip(0.01, 0.98)
        proba[:, 2] = 1 - proba[:, 0] - proba[:, 1]
        kept = proba[:, 2] > 0.005
        return proba[kept], y[kept], truth[kept]

    proba, _, truth = drawn(400_000)
    moved = np.log(proba) - np.log(Halved().predict_proba(proba))
    wanted = (truth * moved).sum(axis=1).mean()
    inside, places = [], []
    for _ in range(300):
        proba, y, _ = drawn(3000)
        place, half = gain_of(proba, y, 300)
        inside.append(abs(place - wanted) <= half)
        places.append(place)
    assert 0.84 < np.mean(inside) < 0.96
    # of a few equal rows in each stratum the shares are ratios, whose bias is below the
    # error
    assert abs(np.mean(places) - wanted) < 0.5 * np.std(places)
