"""The arena of ``benchmarks/arena``: reads CalArena's files, counts wins, stops in time."""

import importlib
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
FOLDER = Path(__file__).parents[1] / "benchmarks"
NAMES = (
    "runner",
    "tables",
    "split",
    "tasks",
    "methods",
    "custom_calibrators",
    "leaderboard",
)


@pytest.fixture
def arena(monkeypatch):
    """Import a module of the arena; they are forgotten afterwards."""
    for folder in (FOLDER, FOLDER / "arena"):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delenv("CALARENA_DATA", raising=False)
    yield importlib.import_module
    for name in (*NAMES, "main"):
        sys.modules.pop(name, None)


def test_calarena_files(arena, tmp_path, monkeypatch):
    """Groups {data set}/{model} with four arrays; float32, two classes as one column or none."""
    h5py = pytest.importorskip("h5py")
    rng, kept = np.random.default_rng(0), {}
    for benchmark, k in (("tiny-binary", 2), ("tiny-multiclass", 3)):
        with h5py.File(tmp_path / f"{benchmark}.h5", "w") as file:
            for model in ("one", "two"):
                group = file.create_group(f"abalone/{model}")
                for part, n in (("cal", 40), ("test", 30)):
                    p = rng.dirichlet(np.ones(k), n).astype(np.float32)
                    p = (p[:, 1] if model == "one" else p[:, 1:]) if k == 2 else p
                    y = rng.integers(0, k, n).astype(np.int32)
                    group.create_dataset(f"probas_{part}", data=p, compression="gzip")
                    group.create_dataset(f"labels_{part}", data=y, compression="gzip")
                    kept[benchmark, model, part] = p.ravel() if k == 2 else p, y
    tasks = arena("tasks")
    monkeypatch.setattr(tasks, "ARENA", str(tmp_path))
    found = tasks.everything()
    assert found == [
        (benchmark, "abalone", model, 40, 0)
        for benchmark in ("tiny-binary", "tiny-multiclass")
        for model in ("one", "two")
    ]
    for task in found:
        p_cal, y_cal, p_test, y_test = tasks.load(*task)
        for part, got in (("cal", (p_cal, y_cal)), ("test", (p_test, y_test))):
            for array, expected in zip(got, kept[task[0], task[2], part], strict=True):
                np.testing.assert_array_equal(array, expected)
        for factories in (
            arena("methods").competitors()[name] for name in ("platt", "identity")
        ):
            (row,) = arena("main").one_task(factories, *task)
            assert row["problem"] == ""
            assert 0 < row["log loss"] < 10


def test_wins_are_those_of_calarena(arena):
    """Strictly smaller losses only, a share of the others, means over tasks."""
    board = arena("leaderboard")
    losses = pd.DataFrame({"a": [1.0, 1.0], "b": [2.0, 1.0], "c": [3.0, 0.5]})
    won = board.wins(losses)
    np.testing.assert_allclose(won, [[1, 0.5, 0], [0, 0, 1]])
    means = board.resampled(won, np.array(["x", "y"]))
    # both twice, or one of each
    assert set(np.round(means[:, 0], 6)) == {
        0.0,
        0.5,
        1.0,
    }


def test_hurt_and_relative_loss(arena):
    """Beside doing nothing: 10 % better and 5 % worse, and a ratio that is clipped."""
    rows = [
        {"source": "local", "data set": f"set {i}", "model": "m", "n": 100, "draw": 0}
        | {
            "method": method,
            "log loss": loss,
            "Brier": loss,
            "seconds": 0.1,
            "problem": "",
        }
        for i in range(2)
        for method, loss in (
            ("identity", 1.0),
            ("platt", (0.9, 1.05)[i]),
            ("beta", (1.0, 99)[i]),
        )
    ]
    board = arena("leaderboard").leaderboard(pd.DataFrame(rows))
    assert board.loc["platt", "hurt, log loss %"] == 50
    assert np.isclose(board.loc["platt", "log loss %"], 100 * (np.sqrt(0.9 * 1.05) - 1))
    assert np.isclose(board.loc["beta", "Brier %"], 100 * (np.sqrt(2) - 1))
    assert board.loc["identity", "wins, log loss"] == np.mean([0, 1])


def test_a_slow_or_failing_method_leaves_the_probabilities(arena, monkeypatch):
    """It is judged as doing nothing, and said to have a problem."""
    main = arena("main")
    rng = np.random.default_rng(0)
    p, y = rng.random(50), rng.integers(0, 2, 50)
    monkeypatch.setattr(main, "loaded", lambda *task: (p, y, p, y))
    monkeypatch.setattr(main, "LIMIT", 0.05)

    class Slow:
        def fit(self, p, y):
            while True:
                time.process_time()

    class Empty(Slow):
        def fit(self, p, y):
            return self

        def predict_proba(self, p):
            return np.full((len(p), 2), np.nan)

    task = ("local", "set", "model", 50, 0)
    (base,) = main.one_task((main.competitors()["identity"][0], None), *task)
    for method, said in ((Slow, "TimeoutError"), (Empty, "ValueError")):
        (row,) = main.one_task((method, None), *task)
        assert row["problem"].startswith(said)
        assert row["log loss"] == base["log loss"]
    assert main.one_task((None, Slow), *task) == []


def test_kept_losses_are_those_of_the_same_tasks(arena, tmp_path):
    """Methods that were not measured anew keep the losses of the tables, the others do not."""
    main, board = arena("main"), arena("leaderboard")
    task = {"source": "local", "model": "given", "n": 100, "draw": 0, "k": 2}
    table = pd.DataFrame(
        [
            task
            | {"data set": "htru2", "identity": 0.33333, "Beta": 0.33333, "platt": 0.3},
            task
            | {"data set": "spambase", "identity": 0.5, "Beta": 0.25, "platt": 0.3},
            task | {"data set": "adult", "identity": 9.0, "Beta": 9.0, "platt": 9.0},
        ]
    ).assign(machine="one", CatBoost=[np.nan, 0.2, 0.2])
    for file in ("log_loss.csv", "brier.csv"):
        table.to_csv(tmp_path / file, index=False)
    results = pd.DataFrame(
        [
            task
            | {"data set": name, "method": method, "seconds": 1.0, "problem": ""}
            | dict.fromkeys(board.LOSSES, loss)
            for name, base in (("htru2", 1 / 3), ("spambase", 0.5))
            for method, loss in (("identity", base), ("platt", 0.1))
        ]
    )
    found = main.kept(results, tmp_path).set_index(["method", "data set"])
    # no task that was not measured, no loss that was not
    assert len(found) == 4 + 2 + 1
    assert set(found.loc["platt", "log loss"]) == {0.1}
    # in all digits: a tie, not a win
    assert found.loc[("Beta", "htru2"), "Brier"] == 1 / 3
    assert found.loc[("Beta", "spambase"), "log loss"] == 0.25
    assert list(found.loc["Beta", "problem"].ne("")) == [True, False]
    for wrong in (
        results.assign(**{"log loss": 0.4}),
        results[results["method"] == "platt"],
    ):
        with pytest.raises(SystemExit, match="no match"):
            main.kept(wrong, tmp_path)


def test_only_tables_that_chose_nothing(arena, monkeypatch):
    """The local tasks are those of the part for judging."""
    tasks = arena("tasks")
    monkeypatch.setattr(tasks, "DATA", None)
    monkeypatch.setattr(tasks, "_labels", lambda name: np.arange(3000) % 10)
    names = {task[1] for task in tasks.local()}
    assert "digits" in names
    assert not names & {"wine", "breast_cancer"}
