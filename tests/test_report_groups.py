"""Groups in a report and on the command line: the same audit, everywhere that a report is shown."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input
from scipy.special import expit

from sklearn_calib._cli import main
from sklearn_calib._files.tables import iter_table_blocks
from sklearn_calib.exceptions import InvalidInputError
from sklearn_calib.groups import group_calibration
from sklearn_calib.report import CalibrationReport, calibration_report
from sklearn_calib.summary import CalibrationSummary

HOSTILE = "<b>$x_1$|west"


def rows(n=3000, shift=0.09):
    """Right on the whole, too low in the north and too high in the south."""
    rng = np.random.default_rng(2)
    p, site = rng.uniform(0.1, 0.9, n), rng.choice(["north", "south", HOSTILE], n)
    chance = p + shift * (site == "north") - shift * (site == "south")
    table = pd.DataFrame({"site": site, "age": rng.integers(18, 90, n)})
    return (rng.random(n) < chance).astype(int), p, table


@pytest.fixture(scope="module")
def report():
    y, p, table = rows()
    return calibration_report(y, p, by=table, n_resamples=4)


def test_the_audit_is_that_of_group_calibration(report):
    y, p, table = rows()
    found = report.groups["model"]
    assert found.rows == group_calibration(y, p, table, depth=2).rows
    assert len(found.rows) == 1 + 3 + 3 + 9


def test_one_sentence_where_the_whole_is_right_and_a_group_is_not(report):
    verdict = report.verdict
    assert verdict.calibrated is not False
    (said,) = [one for one in verdict.sentences if one.topic == "groups"]
    wrong = [row for row in report.groups["model"].rejected if row.group != "all rows"]
    assert said.text.startswith(
        f"But {len(wrong)} groups are not calibrated; the worst is site = "
    )
    assert said.numbers["rejected"] == len(wrong) > 1
    assert said.numbers["worst"]["group"] == wrong[0].group
    assert f"{wrong[0].observed_over_expected:.2f} times as many events" in said.text


def find_sentence(report, topic):
    found = [one for one in report.verdict.sentences if one.topic == topic]
    return found[0] if found else None


def test_no_sentence_if_all_groups_are_right():
    y, p, table = rows(shift=0.0)
    report = calibration_report(y, p, by=table[["site"]], n_resamples=2)
    assert find_sentence(report, "groups") is None
    assert not report.groups["model"].rejected


def test_repairs_all_rows_if_all_groups_are_wrong():
    y, p, table = rows(shift=0.0)
    y = np.where(p > 0.3, 1, y)
    report = calibration_report(y, p, by=table[["site"]], n_resamples=2)
    said = find_sentence(report, "groups")
    assert said.numbers["repair"] == [] and said.numbers["rejected"] == 3
    assert said.text.startswith("3 groups are not calibrated; the worst is site = ")
    assert said.text.endswith("Other rows are wrong, too: repair all of them.")


def one_wrong_site(seed, error, n=4000):
    """Return labels, probabilities and groups; log-odds of some rows are too low."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-1.2, 1.2, n)
    site = rng.choice(["north", "south", "east", "west"], n)
    sex = rng.choice(["f", "m"], n)
    y = rng.random(n) < expit(z + error(site))
    return y.astype(int), expit(z), {"site": site, "sex": sex}


def test_repairs_the_wrong_group_if_the_other_rows_are_right():
    y, p, table = one_wrong_site(3, lambda site: 0.75 * (site == "south"))
    report = calibration_report(y, p, by={"site": table["site"]}, n_resamples=2)
    assert report.verdict.calibrated is False
    said = find_sentence(report, "groups")
    n_others = int((table["site"] != "south").sum())
    assert said.numbers["repair"] == ["site = south"]
    assert (
        said.numbers["other_rows"] == n_others
        and said.numbers["p_of_other_rows"] > 0.05
    )
    assert said.text.startswith(
        f"The error is in site = south, {4000 - n_others} rows: 1."
    )
    assert "repair this group and leave the other rows as they are" in said.text


@pytest.mark.slow
def test_pages_say_how_to_repair_the_wrong_group(tmp_path):
    y, p, table = one_wrong_site(3, lambda site: 0.75 * (site == "south"))
    report = calibration_report(y, p, by=table, n_resamples=2, advice=True)
    assert "one map for all rows" in find_sentence(report, "gain").text
    assert find_sentence(report, "map") is None
    report.to_html(tmp_path / "page.html")
    for shown in (report.to_markdown(), (tmp_path / "page.html").read_text("utf-8")):
        assert "To repair site = south alone and leave the other rows" in shown
        assert "To repair all rows by one map:" in shown


@pytest.mark.slow
def test_two_wrong_groups():
    wrong = {"south": 0.9, "east": 0.7}
    y, p, table = one_wrong_site(
        3, lambda site: np.array([wrong.get(one, 0.0) for one in site])
    )
    report = calibration_report(y, p, by={"site": table["site"]}, n_resamples=2)
    said = find_sentence(report, "groups")
    assert said.numbers["repair"] in ([], ["site = south", "site = east"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "n_least", "n_most"),
    [
        (lambda site: 0.75 * (site == "south"), 17, 20),
        (lambda site: 0.25 + 0.0 * (site == "south"), 0, 1),
        pytest.param(
            lambda site: 0.12 + 0.0 * (site == "south"), 0, 1, marks=pytest.mark.cross
        ),
    ],
)
def test_how_often_one_group_is_repaired(error, n_least, n_most):
    """One wrong site is found; an error of all rows is rarely taken for one of a group."""
    local = 0
    for seed in range(20):
        y, p, table = one_wrong_site(seed, error, 3000)
        report = calibration_report(
            y, p, by={"site": table["site"]}, n_resamples=0, measures=["log_loss"]
        )
        said = find_sentence(report, "groups")
        local += said is not None and bool(said.numbers["repair"])
    assert n_least <= local <= n_most


def test_shown_everywhere_and_names_are_safe(report, tmp_path):
    text, markdown = str(report), report.to_markdown()
    report.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    found = report.groups["model"]
    for shown in (text, markdown, page):
        assert "adjusted p" in shown
        assert f"p = {found.p_value:.3g} for all together" in shown.replace("\n", " ")
    assert "<h2>Groups</h2>" in page
    assert "&lt;b&gt;$x_1$|west" in page
    assert "<b>$x" not in page
    assert r"\<b\>$x\_1$\|west" in markdown
    (model,) = json.loads(report.to_json())["models"]
    assert list(model["groups"]) == [
        "p_value", "sigma", "critical_sigma", "level", "n_rows", "n_left_out", "min_rows",
        "n_resamples", "groups",
    ]  # fmt: skip
    assert [one["group"] for one in model["groups"]["groups"]] == [
        r.group for r in found.rows
    ]


def test_rows_without_weight_and_several_models_and_classes():
    y, p, table = rows(600)
    weight = np.where(np.arange(600) % 3, 2.0, 0.0)
    models = {"a": p, "b": 1 - p}
    report = calibration_report(
        y, models, by=table, sample_weight=weight, n_resamples=0, check_columns=False
    )
    alone = group_calibration(y, p, table, depth=2, sample_weight=weight)
    assert report.groups["a"].rows == alone.rows
    assert report.groups["b"].sigma > alone.sigma
    proba = np.column_stack([p / 2, p / 2, 1 - p])
    three = calibration_report(
        np.arange(600) % 3,
        proba,
        by={"site": table["site"]},
        n_resamples=0,
        check_columns=False,
    )
    assert three.groups["model"].rows[1].event == "confidence"
    assert (
        calibration_report(y, p, n_resamples=0).to_dict()["models"][0]["groups"] is None
    )


def test_summaries_have_no_rows_to_group():
    y, p, table = rows(100)
    with raises_invalid_input(
        ValueError,
        expected=".*labels and probabilities of each row, for by",
        value="summ",
    ):
        calibration_report(CalibrationSummary().update(y, p), by=table)
    with raises_invalid_input(
        ValueError, expected=".*one value for each of the 100 rows"
    ):
        calibration_report(y, p, by=table[:50])


ADDED = {
    "by": (CalibrationReport.add_groups, {"site": np.repeat(["north", "south"], 60)}),
    "features": (CalibrationReport.add_features, np.arange(120)[:, None] % 7),
    "grades": (
        CalibrationReport.add_grades,
        {"edges": [0.3, 0.6], "names": ["A", "B", "C"]},
    ),
}


def few_rows():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 120)
    return (rng.random(120) < p).astype(int), {"a": p, "b": np.sqrt(p)}


@pytest.mark.parametrize(
    "argument", ["by", "grades", pytest.param("features", marks=pytest.mark.slow)]
)
def test_what_is_added_later_is_what_the_argument_adds(argument, tmp_path):
    add, table = ADDED[argument]
    y, models = few_rows()
    models = models if argument == "grades" else models["a"]
    later = calibration_report(y, models, n_resamples=2)
    before = {name: str(verdict) for name, verdict in later.verdicts.items()}
    assert add(later, table) is getattr(later, {"by": "groups"}.get(argument, argument))
    at_once = calibration_report(y, models, n_resamples=2, **{argument: table})
    assert later.to_json() == at_once.to_json()
    assert later.to_markdown() == at_once.to_markdown()
    pages = [
        Path(one.to_html(tmp_path / f"{id(one)}.html")) for one in (later, at_once)
    ]
    assert pages[0].read_text(encoding="utf-8") == pages[1].read_text(encoding="utf-8")
    mentioned = any(
        str(verdict) != before[name] for name, verdict in later.verdicts.items()
    )
    assert mentioned == (argument == "features")  # these groups are right


def test_the_verdict_has_groups_that_are_added_later(report):
    y, p, table = rows()
    later = calibration_report(y, p, n_resamples=4)
    assert "groups" not in [one.topic for one in later.verdict.sentences]
    later.add_groups(table)
    assert later.verdict == report.verdict


WRONG = {
    "by of other rows": ("by", {"site": ["north"] * 7}, {}),
    "features of other rows": ("features", np.zeros((7, 1)), {}),
    "edges that fall": ("grades", [0.5, 0.2], {}),
    "grades of weights": ("grades", [0.5], {"sample_weight": np.full(120, 0.5)}),
    **{
        f"{argument} of clusters": (argument, table, {"groups": np.arange(120) // 2})
        for argument, (_, table) in ADDED.items()
    },
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_later_raises_the_error_of_the_argument(case):
    argument, wrong, options = WRONG[case]
    y, models = few_rows()
    with pytest.raises(InvalidInputError) as at_once:
        calibration_report(
            y, models["a"], n_resamples=0, **options, **{argument: wrong}
        )
    later = calibration_report(y, models["a"], n_resamples=0, **options)
    with pytest.raises(InvalidInputError) as error:
        ADDED[argument][0](later, wrong)
    assert str(error.value) == str(at_once.value)
    content = later.to_dict()["models"][0]
    assert [content[key] for key in ("groups", "features", "grades")] == [
        None,
        None,
        None,
    ]


@pytest.mark.parametrize("argument", ["by", "features"])
def test_nothing_that_needs_rows_is_added_to_summaries(argument):
    y, models = few_rows()
    summary = CalibrationSummary().update(y, models["a"])
    add, table = ADDED[argument]
    with raises_invalid_input(
        ValueError, expected=f".*of each row, for {argument}", value="summaries"
    ):
        add(calibration_report(summary, n_resamples=0), table)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y, p, table = rows()
    table["age"] = table["age"].where(table["age"] > 25)  # empty cells
    table.assign(p=p, y=y).to_csv("t.csv", index=False)
    return tmp_path


def audit(*arguments):
    common = ("--label", "y", "--prob", "p", "--resamples", "2", "--no-advice")
    return main(["audit", *arguments, *common])


@pytest.mark.slow
def test_audit_by_columns(folder, capsys):
    assert (
        audit("t.csv", "--by", "site,age", "--json", "r.json", "--markdown", "r.md")
        == 0
    )
    out = capsys.readouterr().out
    assert "for all together" in out.replace("\n", " ")
    assert "site = north" in out
    assert "adjusted p" in out
    (model,) = json.loads((folder / "r.json").read_text(encoding="utf-8"))["models"]
    names = {one["group"]: one["n_rows"] for one in model["groups"]["groups"]}
    frame = pd.read_csv("t.csv")
    assert names["age missing"] == frame["age"].isna().sum() > 50
    assert names["site = north"] == (frame["site"] == "north").sum()
    assert "<h2>Groups</h2>" in (folder / "report.html").read_text(encoding="utf-8")
    assert "## Groups" in (folder / "r.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_groups_of_numbers_with_a_decimal_comma(folder, capsys):
    frame = pd.read_csv("t.csv")
    frame["age"] += 0.5
    frame.to_csv("t.csv", index=False, sep=";", decimal=",")
    assert audit("t.csv", "--by", "age", "--out", "none", "--json", "r.json") == 0
    (model,) = json.loads((folder / "r.json").read_text(encoding="utf-8"))["models"]
    names = {one["group"] for one in model["groups"]["groups"]}
    assert any(name.startswith("age <= ") for name in names), names


@pytest.mark.parametrize("last", ["2024-02-29T23:00", "2024-02-30"])
def test_dates_in_a_csv_file_are_ordered(folder, capsys, last):
    frame = pd.read_csv("t.csv")
    frame["day"] = pd.date_range("2024-01-01", periods=len(frame), freq="h").astype(str)
    frame.loc[5, "day"] = None
    frame.loc[6, "day"] = last
    frame.to_csv("t.csv", index=False)
    assert audit("t.csv", "--by", "day", "--out", "none", "--json", "r.json") == 0
    (model,) = json.loads((folder / "r.json").read_text(encoding="utf-8"))["models"]
    names = [one["group"] for one in model["groups"]["groups"]]
    ordered = any(name.startswith("day <= 2024-0") for name in names)
    assert ordered == (last != "2024-02-30"), names  # there is no such day: it is text


def test_an_empty_name_after_by_is_refused(folder, capsys):
    assert audit("t.csv", "--by", "", "--out", "none") == 2
    assert "expected a column after --by, got an empty text" in capsys.readouterr().err


def test_advice_is_quoted_for_the_shell(folder, capsys):
    frame = pd.read_csv("t.csv")
    frame["y"] = frame["y"].map({1: "a|b", 0: "c"})
    frame.to_csv("t.csv", index=False)
    assert audit("t.csv", "--out", "none") == 2
    assert "--positive 'a|b'" in " ".join(capsys.readouterr().err.split())


def test_missing_groups_are_rows_all_the_same(folder, capsys):
    """--missing drop is for the columns that are measured."""
    frame = pd.read_csv("t.csv")
    frame.loc[:9, "p"] = np.nan
    frame.to_csv("t.csv", index=False)
    assert (
        audit(
            "t.csv",
            "--by",
            "age",
            "--missing",
            "drop",
            "--out",
            "none",
            "--json",
            "r.json",
        )
        == 0
    )
    (model,) = json.loads((folder / "r.json").read_text(encoding="utf-8"))["models"]
    sizes = {one["group"]: one["n_rows"] for one in model["groups"]["groups"]}
    assert sizes["all rows"] == 2990
    assert sizes["age missing"] == frame["age"][10:].isna().sum()


@pytest.mark.slow
def test_conditions_are_about_all_rows(folder, capsys):
    """Wrong groups change no exit code, as in the audit of large files."""
    assert (
        audit("t.csv", "--by", "site", "--out", "none", "--fail-if", "log_loss > 0.9")
        == 0
    )
    assert "not calibrated; the worst is" in capsys.readouterr().out.replace("\n", " ")
    assert (
        audit("t.csv", "--by", "site", "--out", "none", "--fail-if", "log_loss > 0.1")
        == 3
    )


@pytest.mark.slow
def test_rounded_rows_and_several_classes_have_groups_too(folder, capsys):
    frame = pd.read_csv("t.csv")
    frame = frame.assign(q=1 - frame["p"]).round(2)
    frame.to_csv("t.csv", index=False)
    given = (
        "--label",
        "y",
        "--prob",
        "q,p",
        "--resamples",
        "2",
        "--no-advice",
        "--out",
        "none",
    )
    assert (
        main(["audit", "t.csv", *given, "--tolerance", "0.02", "--by", "site,site"])
        == 0
    )
    assert "in 4 groups" in capsys.readouterr().out


def test_a_column_that_is_not_there(folder, capsys):
    assert audit("t.csv", "--by", "town") == 2
    assert "expected a column 'town' in t.csv" in capsys.readouterr().err


def odd_rows(n=1200):
    """Columns of every kind: numbers, holes, blocks of several kinds, dates, names of strangers."""
    y, p, table = rows(n)
    i = np.arange(n)
    table["age"] = table["age"].where(table["age"] > 25)
    table["x"] = np.random.default_rng(1).normal(size=n)
    table["mixed"] = np.where(i < n // 2, (i % 7).astype(str), "abc")
    table["day"] = pd.date_range("2024-01-01", periods=n, freq="h").astype(str)
    table["flag"], table["id"] = i % 3 == 0, np.char.add("u", i.astype(str))
    return table.assign(y=y, p=p.round(2), **{HOSTILE: i % 4})


def write(frame, kind):
    if kind == "comma":
        frame.to_csv("t.csv", index=False, sep=";", decimal=",")
    elif kind == "csv":
        frame.to_csv("t.csv", index=False)
    elif kind == "jsonl":
        frame.to_json("t.jsonl", orient="records", lines=True)
    else:
        frame.to_parquet("t.parquet", row_group_size=500)
    return {"comma": "t.csv", "csv": "t.csv"}.get(kind, f"t.{kind}")


def small_blocks(monkeypatch):
    blocks = partial(iter_table_blocks, size=20_000)
    monkeypatch.setattr("sklearn_calib.summary._parts.iter_table_blocks", blocks)


def audit_of(kind, monkeypatch, capsys, size, *by):
    """The groups of the numbers, the table on the screen and that of the text."""
    monkeypatch.setattr("sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", size)
    small_blocks(monkeypatch)
    assert (
        audit(kind, *by, "--out", "none", "--json", "r.json", "--markdown", "r.md") == 0
    )
    with (
        open("r.json", encoding="utf-8") as numbers,
        open("r.md", encoding="utf-8") as text,
    ):
        (model,) = json.load(numbers)["models"]
        told = capsys.readouterr().out.partition("Groups\n")[2]
        assert "for all" in told
        return model["groups"], told, text.read().partition("## Groups")[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "by"),
    [
        ("csv", "site,age,x"),
        ("csv", "mixed,flag"),
        ("comma", "age,mixed,x,flag"),
        ("parquet", "day,id"),
        ("parquet", HOSTILE),
        ("jsonl", "age,day"),
    ],
)
def test_rows_that_are_streamed_have_the_same_groups(
    kind, by, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    file = write(odd_rows(), kind)
    small = audit_of(file, monkeypatch, capsys, 2**23, "--by", by)
    large = audit_of(file, monkeypatch, capsys, 100, "--by", by)
    assert small == large
    assert len(small[0]["groups"]) > 1


@pytest.mark.slow
def test_groups_of_blocks_are_those_of_all_rows(tmp_path, monkeypatch):
    """The same without the report around it."""
    from sklearn_calib._cli._large import audit_groups
    from sklearn_calib.summary import DrawAndScoreOptions

    monkeypatch.chdir(tmp_path)
    small_blocks(monkeypatch)
    frame = odd_rows()
    by = ["site", "age", "mixed", "x", HOSTILE]
    for kind in ("csv", "parquet"):
        files = [write(frame, kind)]
        plan = {
            "label": "y",
            "prob": ["p"],
            "weight": None,
            "classes": [0, 1],
            "pos_label": 1,
        }
        summary, groups = audit_groups(
            files, by, plan | {"csv": {}, "drop_missing": False}, DrawAndScoreOptions(0)
        )
        alone = group_calibration(frame["y"], frame["p"], frame[by], depth=2)
        assert groups.rows == alone.rows
        assert summary == CalibrationSummary().update(frame["y"], frame["p"])


def three_classes(frame):
    """The odd rows with labels and probabilities of three classes."""
    rng = np.random.default_rng(5)
    proba = rng.dirichlet(np.ones(3), len(frame)).round(2)
    proba[:, 2] = 1 - proba[:, 0] - proba[:, 1]
    y = (proba.cumsum(axis=1) < rng.random((len(frame), 1))).sum(axis=1)
    own = dict(zip("abc", np.clip(proba, 0, 1).T, strict=True))
    return frame.assign(y=np.array(["k", "l", "m"])[np.minimum(y, 2)], **own)


def certain_rows(n=1200):
    """Ten classes in float32, some of probability 1, and weights."""
    rng = np.random.default_rng(6)
    z = 8 * rng.normal(size=(n, 10)).astype(np.float32)
    proba = np.exp(z - z.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    assert proba.max() == 1
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    frame = pd.DataFrame(proba, columns=[*"abcdefghij"])
    return frame.assign(
        y=y, site=rng.integers(0, 5, n), age=rng.normal(size=n), w=rng.random(n)
    )


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, "w"])
def test_groups_of_several_classes_in_blocks(tmp_path, monkeypatch, weight):
    """In every bit those of rows in memory."""
    from sklearn_calib._cli._large import audit_groups
    from sklearn_calib.summary import DrawAndScoreOptions

    monkeypatch.chdir(tmp_path)
    small_blocks(monkeypatch)
    frame = certain_rows() if weight else three_classes(odd_rows())
    prob = [*("abcdefghij" if weight else "abc")]
    files, by = [write(frame, "parquet" if weight else "csv")], ["site", "age"]
    plan = {
        "label": "y",
        "prob": prob,
        "weight": weight,
        "classes": np.unique(frame["y"]),
    }
    plan |= {"pos_label": None, "csv": {}, "drop_missing": False}
    summary, groups = audit_groups(files, by, plan, DrawAndScoreOptions(None))
    own = None if weight is None else frame["w"]
    alone = group_calibration(
        frame["y"], frame[prob], frame[by], depth=2, sample_weight=own
    )
    assert groups.rows == alone.rows
    assert {row.event for row in alone.rows} == {"confidence"}
    assert summary.drawn.get_sample().n_drawn == 1200  # from which the advice is learnt


@pytest.mark.slow
def test_an_audit_of_several_classes_has_the_same_groups(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = write(three_classes(odd_rows()), "csv")
    given = [
        file,
        "--label",
        "y",
        "--prob",
        "a,b,c",
        "--by",
        "site,age",
        "--out",
        "none",
    ]
    found = []
    for size in (2**23, 100):
        monkeypatch.setattr("sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", size)
        small_blocks(monkeypatch)
        assert main(["audit", *given, "--resamples", "2", "--json", "r.json"]) == 0
        (model,) = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))[
            "models"
        ]
        found.append(
            (model["groups"], capsys.readouterr().out.partition("Groups\n")[2])
        )
    assert found[0] == found[1]
    assert len(found[0][0]["groups"]) > 1


@pytest.mark.slow
def test_every_option_of_reading_is_heeded_where_groups_are_streamed(
    folder, capsys, monkeypatch
):
    frame = pd.read_csv("t.csv")
    frame["w"], frame["y"] = (
        np.arange(len(frame)) % 3,
        frame["y"].map({0: "no", 1: "yes"}),
    )
    frame.loc[:9, "p"] = np.nan
    frame.to_csv("t.csv", index=False)
    monkeypatch.setattr("sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", 100)
    given = (
        "--by",
        "age",
        "--weight",
        "w",
        "--missing",
        "drop",
        "--positive",
        "no",
        "--allow",
        "order",
    )
    assert audit("t.csv", *given, "--out", "none", "--json", "r.json") == 0
    (model,) = json.loads((folder / "r.json").read_text(encoding="utf-8"))["models"]
    kept = frame[10:][frame["w"][10:] > 0]
    groups = {one["group"]: one for one in model["groups"]["groups"]}
    assert groups["all rows"]["n_rows"] == len(kept)
    assert groups["all rows"]["events"] == kept["w"][kept["y"] == "no"].sum()
    assert groups["age missing"]["n_rows"] == kept["age"].isna().sum()
    assert {one["event"] for one in groups.values()} == {"class no"}


def run_printed_code(page, **given):
    """Run the code under "To repair ... alone"; return what it defines."""
    page = page.split(" alone and leave the other rows as they are:")[1]
    names = dict(given)
    exec(page.split("```")[1].removeprefix("python"), names)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("value", ["south", "so\"u'th\n|`"])
@pytest.mark.parametrize("single", [True, False])
def test_printed_code_repairs_the_rows_of_the_group_alone(value, single):
    y, p, table = one_wrong_site(3, lambda site: 0.75 * (site == "south"))
    inside = table["site"] == "south"
    by = {"site": np.where(inside, value, table["site"].astype(object))}
    p = p if single else np.column_stack([1 - p, p])
    report = calibration_report(y, p, by=by, n_resamples=0, measures=["log_loss"])
    page = report.to_markdown()
    repaired = run_printed_code(page, y_true=y, y_proba=p, by=by)["repaired"]
    assert (repaired[~inside] == p[~inside]).all()
    moved = repaired[inside] - p[inside]
    assert (moved if single else moved[:, 1]).mean() > 0.08


def test_a_group_of_a_wrong_slope_is_described_by_the_slope():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 4000)
    task = np.where(rng.random(4000) < 0.3, "math", "code")
    y = rng.random(4000) < expit(np.where(task == "math", z / 2.5, z))
    report = calibration_report(
        y, expit(z), by={"task": task}, n_resamples=0, measures=["log_loss"]
    )
    said = find_sentence(report, "groups")
    worst = said.numbers["worst"]
    assert worst["ratio_low"] < 1 < worst["ratio_high"]
    assert f"the slope of the log-odds is {worst['slope']:.2f} where 1" in said.text
    assert f"{worst['slope_low']:.2f} to {worst['slope_high']:.2f}" in said.text
    assert "times as many" not in said.text


@pytest.mark.slow
def test_printed_code_of_the_command_reads_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y, p, table = one_wrong_site(3, lambda site: 0.75 * (site == "south"))
    pd.DataFrame(table).assign(y=y, p=p).to_csv("t.csv", index=False)
    arguments = ["--label", "y", "--prob", "p", "--by", "site", "--markdown", "r.md"]
    main(["audit", "t.csv", *arguments])
    names = run_printed_code(Path("r.md").read_text("utf-8"))
    inside = table["site"] == "south"
    assert (names["repaired"][~inside] == p[~inside]).all()
    assert (names["repaired"][inside] > p[inside]).mean() > 0.9
