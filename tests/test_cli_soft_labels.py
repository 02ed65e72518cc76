"""--soft-labels: the shares of a column of labels, on the command line."""

import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from sklearn_calib import summary
from sklearn_calib._cli import _large, _prediction_batches, _tables, build_parser, main
from sklearn_calib._cli._prediction_batches import PredictionBatch
from sklearn_calib._cli._result import format_fit_and_apply_commands
from sklearn_calib._files import tables
from sklearn_calib.export import from_dict
from sklearn_calib.inference import paired_difference
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import PlattScaling, get_recalibrator
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary, _draw_options

AUDIT = [
    "--label",
    "yes",
    "--prob",
    "p",
    "--out",
    "none",
    "--resamples",
    "20",
    "--no-advice",
]


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(150)
    n = rng.integers(1, 8, 150)
    frame = pd.DataFrame({"p": p, "yes": rng.binomial(n, p**2) / n, "n": n})
    frame.to_csv(tmp_path / "votes.csv", index=False)
    return tmp_path, frame


def test_audit_reads_shares(table, capsys):
    folder, frame = table
    given = [
        str(folder / "votes.csv"),
        *AUDIT,
        "--weight",
        "n",
        "--json",
        str(folder / "r.json"),
    ]
    assert main(["audit", *given, "--soft-labels"]) == 0
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    report = calibration_report(
        frame.yes, frame.p, sample_weight=frame.n, soft_labels=True, n_resamples=20
    )
    rows = {row["measure"]: row["value"] for row in found["models"][0]["measures"]}
    assert rows["log_loss"] == pytest.approx(
        next(row.value for row in report.rows if row.measure == "log_loss"), rel=1e-9
    )
    assert (found["n_rows"], found["n_clusters"]) == (150, 150)
    options = build_parser().parse_args(["audit", *given, "--soft-labels"])
    assert " --soft-labels" in format_fit_and_apply_commands(options).splitlines()[0]
    assert main(["audit", *given]) == 2
    assert "pass --soft-labels" in " ".join(capsys.readouterr().err.split())
    assert main(["audit", *given, "--soft-labels", "--by", "n"]) == 2
    assert "--soft-labels and --by cannot be combined" in capsys.readouterr().err


def test_fit_learns_shares(table, capsys):
    folder, frame = table
    out = folder / "map.json"
    given = [
        str(folder / "votes.csv"),
        "--label",
        "yes",
        "--prob",
        "p",
        "--weight",
        "n",
    ]
    given += ["--recalibrator", "platt", "--soft-labels", "--out", str(out)]
    assert main(["fit", *given]) == 0
    assert "150 rows, classes 0, 1" in capsys.readouterr().out
    expected = PlattScaling().fit(frame.p, frame.yes, frame.n, soft_labels=True)
    read = from_dict(json.loads(out.read_text(encoding="utf-8")))
    points = np.linspace(0.01, 0.99, 9)
    np.testing.assert_allclose(
        read.predict_proba(points), expected.predict_proba(points), atol=1e-9
    )
    assert main(["fit", *given, "--classes", "0,1"]) == 2
    assert (
        "--classes does not apply to a single column of shares"
        in capsys.readouterr().err
    )
    given[given.index("platt")] = "online"
    assert main(["fit", *given]) == 2
    assert "Choose another --recalibrator" in capsys.readouterr().err


def test_what_is_no_share_is_refused(table, capsys):
    folder, frame = table
    frame.assign(yes=2 * frame.yes).to_csv(folder / "twice.csv", index=False)
    assert main(["audit", str(folder / "twice.csv"), *AUDIT, "--soft-labels"]) == 2
    assert "expected shares from 0 to 1 in column 'yes'" in " ".join(
        capsys.readouterr().err.split()
    )


@pytest.fixture
def votes(tmp_path):
    """Three classes: shares a, b, c, votes na, nb, nc, and probabilities."""
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), 200).round(3)
    proba[:, 2] = 1 - proba[:, 0] - proba[:, 1]
    counts = np.array(
        [rng.multinomial(rng.integers(1, 6), p) for p in 0.6 * proba + 0.4 / 3]
    )
    frame = pd.DataFrame(
        np.c_[counts, proba], columns=["na", "nb", "nc", "p,a", "pb", "pc"]
    )
    frame[["a", "b", "c"]] = counts / counts.sum(axis=1, keepdims=True)
    frame["n"] = counts.sum(axis=1)
    frame["question"] = np.arange(200) // 2
    frame.to_csv(tmp_path / "votes.csv", index=False)
    return tmp_path, frame


VOTED = ["na", "nb", "nc"]
PROB = ["--prob", "p,a", "--prob", "pb,pc"]
SHARES = ["--label", "a,b", "--label", "c", "--weight", "n", "--soft-labels"]
VOTES = ["--label", "na,nb,nc", "--classes", "a,b,c", "--soft-labels"]


@pytest.mark.parametrize("label", [SHARES, VOTES])
def test_audit_reads_a_column_per_class(votes, label):
    folder, frame = votes
    given = [
        str(folder / "votes.csv"),
        *PROB,
        *label,
        "--out",
        "none",
        "--resamples",
        "20",
    ]
    assert main(["audit", *given, "--no-advice", "--json", str(folder / "r.json")]) == 0
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    report = calibration_report(
        frame[["a", "b", "c"]].to_numpy(),
        frame[["p,a", "pb", "pc"]].to_numpy(),
        labels=list("abc"),
        sample_weight=frame.n,
        soft_labels=True,
        n_resamples=20,
    )
    rows = {row["measure"]: row for row in found["models"][0]["measures"]}
    for row in report.rows:
        assert rows[row.measure]["value"] == pytest.approx(row.value, abs=1e-12)
        assert rows[row.measure]["low"] == pytest.approx(row.low, abs=1e-12)
    assert found["n_clusters"] == 200
    options = build_parser().parse_args(["audit", *given])
    (fit, _) = format_fit_and_apply_commands(options).splitlines()
    words = "--label a,b --label c" if label is SHARES else "--label na,nb,nc"
    assert f"{words} --prob p,a --prob pb,pc" in fit


def fitted(folder, *words):
    out = folder / "map.json"
    assert (
        main(
            [
                "fit",
                str(folder / "votes.csv"),
                *words,
                "--allow",
                "no-gain",
                "--out",
                str(out),
            ]
        )
        == 0
    )
    return from_dict(json.loads(out.read_text(encoding="utf-8")))


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("label", [SHARES, VOTES])
def test_fit_of_a_column_per_class(votes, label, large, monkeypatch, capsys):
    """Files read block by block give the map of all rows at once."""
    folder, frame = votes
    if large:
        monkeypatch.setattr(_large, "_MAX_WHOLE_TABLE_BYTES", 0)
        monkeypatch.setattr(_prediction_batches, "load_batch_without_classes", None)
    read = fitted(folder, *PROB, *label, "--recalibrator", "temperature")
    assert "200 rows, classes a, b, c" in capsys.readouterr().out
    proba = frame[["p,a", "pb", "pc"]].to_numpy()
    given = frame[["a", "b", "c"]].to_numpy(), frame.n, list("abc")
    expected = get_recalibrator("temperature").fit(proba, *given, soft_labels=True)
    np.testing.assert_allclose(
        read.predict_proba(proba), expected.predict_proba(proba), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(
    "more",
    [
        [],
        pytest.param(["--cluster", "question"], marks=pytest.mark.slow),
        pytest.param(["--scale", "logits"], marks=pytest.mark.slow),
    ],
)
def test_fit_of_blocks_is_that_of_a_table(votes, more, monkeypatch, capsys):
    folder, _ = votes
    words = ["--label", "a", "--prob", "pb", "--weight", "n", "--soft-labels", *more]
    words += ["--recalibrator", "platt"]
    whole = fitted(folder, *words)
    first = capsys.readouterr().out
    monkeypatch.setattr(_large, "_MAX_WHOLE_TABLE_BYTES", 0)
    monkeypatch.setattr(_prediction_batches, "load_batch_without_classes", None)
    parts = fitted(folder, *words)
    kept = (
        first.splitlines()[:1]
        if more == ["--cluster", "question"]
        else first.splitlines()
    )
    assert capsys.readouterr().out.splitlines()[:1] == kept[:1]
    points = np.linspace(0.01, 0.99, 9)
    one, other = (each.predict_proba(points) for each in (whole, parts))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("subpackage", [summary, _draw_options])
def test_fit_of_more_items_than_are_drawn(votes, subpackage, monkeypatch, capsys):
    """Some items: `_draw_options` draws them by their digits, with weights; else of equal ones."""
    folder, _ = votes
    whole = fitted(folder, *PROB, *SHARES, "--recalibrator", "temperature")
    capsys.readouterr()
    monkeypatch.setattr(_large, "_MAX_WHOLE_TABLE_BYTES", 0)
    monkeypatch.setattr(subpackage, "get_max_sample_rows", lambda n_classes: 120)
    some = fitted(folder, *PROB, *SHARES, "--recalibrator", "temperature")
    said = " ".join(capsys.readouterr().out.split())
    (n_drawn,) = re.findall(r"fitted to (\d+) of these 200 rows", said)
    assert n_drawn == "120" if subpackage is summary else 120 <= int(n_drawn) < 200
    points = np.array([[0.9, 0.05, 0.05], [0.4, 0.3, 0.3]])
    gap = whole.predict_proba(points) - some.predict_proba(points)
    assert 0 < abs(gap).max() < 0.1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--label a,b --prob pb,pc,n", "got 2 and 3 of --prob. Name one per class"),
        ("--label a,b,c --prob pb", "got 3 and 1 of --prob"),
        (
            "--label a,a --prob pb,pc",
            "expected each column once in --label, got 'a' twice",
        ),
        (
            "--label a,pb --prob pb,pc",
            "expected different columns for --label and --prob, got 'pb'",
        ),
        (
            "--label a --prob a",
            "expected different columns for --label and --prob, got 'a'",
        ),
        ("--label a --prob pb,pc,n", "Name one column of --label for each of them"),
        (
            "--label na --prob pb --weight n",
            "name both columns of votes, --label no,yes",
        ),
        ("--label na,nb --prob pb --missing drop", "Drop rows without a vote"),
        ("--label a,b,n --prob pb,pc,c", "got a sum of"),
        (
            "--label ma,mb,mc --prob pb,pc,n",
            "shares, or numbers of votes, in all rows, got shares in some",
        ),
        (
            "--label x,y,z --prob pb,pc,n",
            "For many labels per row use the command audit-multilabel",
        ),
        ("--label text --prob pb", "expected numbers in column 'text'"),
        ("--label hole --prob pb", "expected a label in every row, got nan"),
        ("--label hole,a --prob pb", "expected a label in every row, got nan"),
        (
            "--label a,b,c --prob pb,pc,n --classes x,y",
            "expected 3 different names in --classes",
        ),
        (
            "--label a --prob pb --classes x,y",
            "--classes does not apply to a single",
        ),
        (
            "--label a --prob pb --positive 1",
            "--soft-labels and --positive cannot be combined",
        ),
    ],
)
@pytest.mark.parametrize("command", ["audit", "fit"])
def test_hostile_columns(votes, command, words, said, capsys):
    folder, frame = votes
    half = frame.index < 100  # votes, then shares; and many labels per row
    frame[["ma", "mb", "mc"]] = np.where(
        half[:, None], frame[VOTED], frame[["a", "b", "c"]]
    )
    frame[["x", "y", "z"]] = np.where(half[:, None], [[1, 1, 0]], [[0, 0, 1]])
    frame = frame.assign(text="yes", hole=frame.a.where(frame.index > 3))
    frame.to_csv(folder / "votes.csv", index=False)
    more = (
        ["--out", str(folder / "map.json")] if command == "fit" else ["--out", "none"]
    )
    given = [command, str(folder / "votes.csv"), *words.split(), "--soft-labels", *more]
    assert main(given) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_several_columns_of_labels_are_shares(votes, capsys):
    folder, _ = votes
    for words in (["--label", "a", "--label", "b"], ["--label", "a,b"]):
        assert (
            main(["audit", str(folder / "votes.csv"), *words, "--prob", "pb,pc"]) == 2
        )
    said = " ".join(capsys.readouterr().err.split())
    assert "--label was given 2 times. For shares of several classes add --soft" in said


@pytest.mark.parametrize(
    ("label", "more"),
    [
        (SHARES, []),
        pytest.param(VOTES, [], marks=pytest.mark.slow),
        pytest.param(SHARES, ["--cluster", "question"], marks=pytest.mark.slow),
    ],
)
def test_compare_of_shares(votes, label, more):
    folder, frame = votes
    frame = frame.assign(qa=0.5 * frame["p,a"] + 0.1, qb=0.5 * frame.pb + 0.2)
    frame = frame.assign(qc=1 - frame.qa - frame.qb)
    frame.to_csv(folder / "votes.csv", index=False)
    out = folder / "r.json"
    words = [
        "--prob",
        '"p,a",pb,pc',
        "--prob",
        "qa,qb,qc",
        *label,
        *more,
        "--json",
        str(out),
    ]
    assert (
        main(["compare", str(folder / "votes.csv"), *words, "--resamples", "20"]) == 0
    )
    found = json.loads(out.read_text(encoding="utf-8"))
    assert (found["n_samples"], found["models"]) == (200, ['"p,a",pb,pc', "qa,qb,qc"])
    first, second = (
        frame[["p,a", "pb", "pc"]].to_numpy(),
        frame[["qa", "qb", "qc"]].to_numpy(),
    )
    given = {
        "sample_weight": frame.n,
        "soft_labels": True,
        "level": 0.9,
        "n_resamples": 20,
    }
    given["groups"] = frame.question.astype(str) if more else None
    for row in found["differences"][:4]:
        shares = frame[["a", "b", "c"]].to_numpy()
        expected = paired_difference(shares, first, second, row["measure"], **given)
        for end in ("first", "second", "low", "high"):
            assert row[end] == pytest.approx(getattr(expected, end), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [[], ["--cluster", "question"]], ids=["items", "clusters"]
)
def test_compare_shares_in_blocks_of_some_rows(votes, monkeypatch, more):
    """Each item is a cluster of its own, also of another block."""
    folder, frame = votes
    frame.assign(qb=0.5 * frame.pb + 0.2).to_csv(folder / "votes.csv", index=False)
    out, found = folder / "r.json", []
    words = [
        "--label",
        "a",
        "--weight",
        "n",
        "--soft-labels",
        "--prob",
        "pb",
        "--prob",
        "qb",
    ]
    words += ["--resamples", "20", "--json", str(out), *more]
    for size in (2**23, 400):
        blocks = partial(tables.iter_table_blocks, size=size)
        monkeypatch.setattr(_tables, "iter_table_blocks", blocks)
        assert main(["compare", str(folder / "votes.csv"), *words]) == 0
        found.append(json.loads(out.read_text(encoding="utf-8"))["differences"])
    for one, other in zip(*found, strict=True):
        assert one == pytest.approx(other, abs=1e-9)


def test_weights_beside_votes():
    """A row of three votes and weight 2 counts six times, whatever is missing of the two."""
    votes, weight = np.array([3.0, 1.0, 4.0]), np.array([2.0, 0.5, 1.0])
    for number, given, expected in (
        (votes, weight, [6, 0.5, 4]),
        (votes, None, [3, 1, 4]),
        (None, weight, [2, 0.5, 1]),
    ):
        batch = PredictionBatch(np.zeros((3, 2)), None, weight=given, votes=number)
        assert batch.get_weights_with_votes().tolist() == expected
    assert PredictionBatch(np.zeros(3), None).get_weights_with_votes() is None


def test_shares_that_differ_in_one_row_of_two_files(votes, capsys):
    folder, frame = votes
    files = [str(folder / name) for name in ("old.csv", "new.csv")]
    words = ["--prob", '"p,a",pb,pc', *SHARES, "--resamples", "20"]
    frame.to_csv(files[0], index=False)
    other = frame.copy()
    other.loc[7, ["a", "b", "c"]] = other.loc[7, ["b", "c", "a"]].to_numpy()
    other.to_csv(files[1], index=False)
    assert main(["compare", *files, *words]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "expected the same labels in both files" in said
    assert "in row 7 (of 1 such rows)" in said


@pytest.mark.slow
def test_compare_of_two_files_with_shares(votes, capsys):
    folder, frame = votes
    files = [str(folder / name) for name in ("old.csv", "new.csv")]
    words = [
        "--label",
        "a",
        "--prob",
        "pb",
        "--weight",
        "n",
        "--soft-labels",
        "--resamples",
        "20",
    ]
    frame.to_csv(files[0], index=False)
    frame.assign(pb=frame.pb**2).to_csv(files[1], index=False)
    assert main(["compare", *files, *words]) == 0
    assert "200 rows, 2 classes" in capsys.readouterr().out
    frame.assign(a=frame.b).to_csv(files[1], index=False)
    assert main(["compare", *files, *words]) == 2
    assert "expected the same labels in both files" in capsys.readouterr().err
    assert main(["compare", *files, *words, "--positive", "1"]) == 2
    assert "--soft-labels and --positive cannot be combined" in capsys.readouterr().err
    frame.assign(a=2 * frame.a).to_csv(files[0], index=False)
    assert main(["compare", *files, *words]) == 2
    assert "expected shares from 0 to 1 in column 'a'" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--label a,b,c", "--label na,nb,nc --classes a,b,c"])
def test_monitor_of_shares(votes, words, capsys):
    folder, frame = votes
    path, state = str(folder / "votes.csv"), str(folder / "state.json")
    given = ["monitor", path, *words.split(), *PROB, "--soft-labels", "--state", state]
    assert main(given) in (0, 3)
    found = CalibrationMonitor(classes=list("abc"))
    proba = frame[["p,a", "pb", "pc"]].to_numpy()
    found.update(frame[["a", "b", "c"]].to_numpy(), proba, soft_labels=True)
    assert str(found) in capsys.readouterr().out
    assert (
        json.loads((folder / "state.json").read_text(encoding="utf-8"))["n_samples"]
        == 200
    )
    assert main([*given, "--allow", "repeated"]) in (0, 3)
    assert (
        json.loads((folder / "state.json").read_text(encoding="utf-8"))["n_samples"]
        == 400
    )
    given[2:4] = ["--label", "a,pb,c"]
    assert main(given) == 2
    assert (
        "expected different columns for --label and --prob" in capsys.readouterr().err
    )
    given[2:4] = ["--label", "a"]
    assert main(given) == 2
    assert "Name one column of --label for each" in " ".join(
        capsys.readouterr().err.split()
    )
    assert main([*given, "--positive", "1"]) == 2
    assert "--soft-labels and --positive cannot be combined" in capsys.readouterr().err


def test_saved_summaries_of_shares_are_refused(votes, capsys):
    folder, frame = votes
    path = str(folder / "soft.parquet")
    CalibrationSummary().update(
        frame.a, frame.pb, frame.n, soft_labels=True
    ).to_parquet(path)
    for words in (
        ["audit", path, "--out", "none"],
        ["fit", path, "--out", str(folder / "m.json")],
    ):
        assert main(words) == 2
        assert "got a summary of soft labels. Pass the rows" in capsys.readouterr().err
    more = ["--label", "a", "--prob", "pb", "--soft-labels"]
    assert main(["fit", path, *more, "--out", str(folder / "m.json")]) == 2
    assert "expected rows for --soft-labels, got summaries" in capsys.readouterr().err
