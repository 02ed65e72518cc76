"""Values of columns and cells by combination: sums over rows, in any order, in bounded memory."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from sklearn_calib._files.tables import iter_table_blocks
from sklearn_calib._kernels import _float_order
from sklearn_calib.summary import CalibrationSummary, _pattern_cells, count_values
from sklearn_calib.summary._pattern_cells import ScoreGroupTable


def rows(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 1.0, n)
    p[:300], p[300:310] = np.round(p[:300], 1), 1.0
    given = rng.integers(0, 7, n), p, np.zeros(0), (rng.random(n) < p).astype(np.uint8)
    return *given, rng.choice([0.5, 1.0, 2.0], n)


def cells_of(*parts, weighted):
    made = ScoreGroupTable()
    for part in parts:
        *given, weight = part
        other = ScoreGroupTable()
        other.add_rows(*given, weight if weighted else None)
        made.merge(other)
    return made


def taken(given, place):
    return [column[place] if len(column) else column for column in given]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("most", [pytest.param(2**20, marks=pytest.mark.slow), 600])
def test_sums_are_those_of_the_rows_whatever_their_order(weighted, most, monkeypatch):
    monkeypatch.setattr(_pattern_cells, "_MAX_FINE_PAIRS", most)
    monkeypatch.setattr(_pattern_cells, "_MIN_TABLE_SLOTS", 64)
    given = rows()
    pattern, p, _, y, w = given
    w = w if weighted else np.ones(len(p))
    whole = ScoreGroupTable()
    whole.add_rows(*given[:4], w if weighted else None)
    order = np.random.default_rng(1).permutation(len(p))
    parts = [taken(given, place) for place in np.array_split(order, 5)]
    found, merged = (
        whole.compute_sums(),
        cells_of(*parts, weighted=weighted).compute_sums(),
    )
    for one, other in zip(found, merged, strict=True):
        np.testing.assert_array_equal(one, other)  # weights are multiples of 1 / 2
    assert (len(found.pattern) <= 600) == (most == 600)
    for k in range(7):
        here, rest = found.pattern == k, pattern == k
        mass = found.weight[here].sum(axis=1)
        assert found.counts[here].sum(axis=0).tolist() == np.bincount(y[rest]).tolist()
        assert found.weight[here, 1].sum() == w[rest & (y == 1)].sum()
        assert found.squares[here].sum() == (w[rest] ** 2).sum()
        assert mass @ found.proba[here, 1] == pytest.approx(w[rest] @ p[rest], rel=1e-9)
    if most > 600 and not weighted:
        exact = pd.Series(y).groupby([pattern, p]).agg(["size", "sum"]).reset_index()
        np.testing.assert_array_equal(found.proba[:, 1], exact["level_1"])
        np.testing.assert_array_equal(found.counts[:, 1], exact["sum"])


def test_more_combinations_than_memory_are_refused(monkeypatch):
    monkeypatch.setattr(_pattern_cells, "_MAX_FINE_PAIRS", 50)
    monkeypatch.setattr(_pattern_cells, "_MIN_TABLE_SLOTS", 64)
    monkeypatch.setattr(_pattern_cells, "_MAX_SCORE_GROUP_PAIRS", 500)
    given = list(rows())
    given[0] = np.arange(2000)
    with pytest.raises(
        ValueError, match=r"at most 500 combinations .* Name fewer columns"
    ):
        cells_of(given, weighted=False)


def test_a_summary_adds_what_it_was_given():
    pattern, p, _, y, w = rows()
    w = w * (np.arange(len(p)) % 4 > 0)
    summary, cells = (
        CalibrationSummary(classes=["no", "yes"], pos_label="no"),
        ScoreGroupTable(),
    )
    summary.update(np.array(["no", "yes"])[y], p, w)
    cells.add_block(pattern, y, p, w, summary._labels.positive)
    found = cells.compute_sums()
    assert found.weight.sum() == summary.weight
    assert found.counts.sum() == summary.n_samples
    assert found.weight[:, 1].sum() == w[y == 0].sum()
    assert found.weight.sum(axis=1) @ found.proba[:, 1] == pytest.approx(w @ p)


def values_in(data, name="a", **options):
    values, counts = count_values(data, [name], **options)[
        name
    ].list_values_and_counts()
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def test_values_of_every_kind():
    day = np.array(["2026-01-01", "NaT", "2026-01-01"], dtype="M8[ns]")
    assert values_in({"a": np.array([3, 1, 3])}) == {1: 1, 3: 2}
    assert values_in({"a": np.array(["x", None, "x"], dtype=object)}) == {
        "x": 2,
        None: 1,
    }
    assert values_in({"a": np.array([True, False, True])}) == {True: 2, False: 1}
    assert [*values_in({"a": day}).values()] == [2, 1]
    for frame in (
        pd.DataFrame({"a": pd.array([1, None, 1], "Int64")}),
        {"a": [1.0, np.nan, 1]},
    ):
        table = count_values(frame, ["a"])["a"].list_values_and_counts()
        assert np.isnan(table[0][-1]) and table[1].tolist() == [2, 1]


def test_blocks_of_several_kinds_are_read_as_they_are_written(tmp_path, monkeypatch):
    blocks = partial(iter_table_blocks, size=500)
    monkeypatch.setattr("sklearn_calib.summary._parts.iter_table_blocks", blocks)
    cells = ["05"] * 300 + ["x", "", "1.50"] * 100
    (tmp_path / "t.csv").write_text(
        "a,b\n" + "".join(f"{cell},1\n" for cell in cells), encoding="utf-8"
    )
    found = count_values(tmp_path / "t.csv", ["a", "b"])
    assert found["a"].as_text and not found["b"].as_text
    assert values_in(tmp_path / "t.csv") == {
        "05": 300,
        "x": 100,
        "1.50": 100,
        None: 100,
    }


@pytest.mark.parametrize("kind", [float, int])
def test_many_numbers_are_thinned_whatever_their_order(kind, monkeypatch):
    monkeypatch.setattr(_float_order, "MAX_KEPT_VALUES", 200)
    monkeypatch.setattr("sklearn_calib.summary._values._MAX_WAITING_NUMBERS", 300)
    rng = np.random.default_rng(2)
    x = (rng.normal(size=3000) * 1000).astype(kind)
    whole = values_in({"a": x})
    assert values_in({"a": rng.permutation(x)}) == whole
    assert len(whole) <= 200 and set(whole) <= set(x.tolist())
    reached = np.cumsum([*whole.values()])
    assert reached.tolist() == [np.count_nonzero(x <= value) for value in whole]
    assert np.diff(reached).max() < 100  # thirds of them are thirds
