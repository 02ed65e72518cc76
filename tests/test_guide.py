"""What a visitor sees first: README, first page, the guide's index and the reference agree."""

import inspect
import json
import re
from types import SimpleNamespace

from checkout import DOC, GUIDE, ROOT
from offered import offered

import sklearn_calib
from sklearn_calib.groups import grade_calibration
from sklearn_calib.inference import cox_test
from sklearn_calib.metrics import all_metrics, lower_distance_interval

import _api  # isort: skip
import _entries  # isort: skip
import _site  # isort: skip

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_table_of_methods_is_the_same_in_the_readme():
    text = (GUIDE / "which_method.rst").read_text(encoding="utf-8")
    (short,) = re.findall(r"(?s)short table begins(.*)\.\. short table ends", text)
    rows = re.findall(r"\* - (.*)\n     - (.*)", short)
    written = [f"| {have} | {start} |".replace("``", "`") for have, start in rows]
    assert len(written) > 5
    written.insert(1, "|---|---|")
    assert "\n".join(written) in README, "README.md and which_method.rst differ"
    index = (DOC / "index.rst").read_text(encoding="utf-8")
    for marker in re.findall(r":(?:start-after|end-before): (.+)", index):
        assert marker in README + text, f"the first page includes from {marker!r}"


def test_each_page_of_the_guide_has_one_entry():
    found = _entries.entries((GUIDE / "index.rst").read_text(encoding="utf-8"))
    pages = {page.stem for page in GUIDE.glob("*.rst")} - {"index"}
    assert sorted(entry.page for entry in found) == sorted(pages)
    for entry in found:
        assert 20 < len(entry.line) <= 160, (
            f"{entry.page}: a line that search engines show whole"
        )
        assert entry.line[-1] in ".?" and entry.words, (
            f"{entry.page}: a sentence, search words"
        )
        assert len(entry.title) <= 90, entry.page
    searched = " ".join(f"{entry.title} {entry.words}" for entry in found)
    for word in (
        "temperature scaling",
        "Platt",
        "reliability diagram",
        "ECE",
        "prior shift",
    ):
        assert word in searched


def test_an_entry_is_read_whole():
    text = (
        "A\n-\n\n.. pages:: A\n\n   one\n      First,\n      and second.\n      :words: a, b\n"
        "   two\n      Third.\n      :title: T\n\nB\n-\n\n.. pages:: B\n\n   three\n      Last.\n"
    )
    assert [tuple(entry) for entry in _entries.entries(text)] == [
        ("one", "First, and second.", "", "a, b"),
        ("two", "Third.", "T", ""),
        ("three", "Last.", "", ""),
    ]


def test_reference_has_each_name_once_where_it_is_imported_from():
    names = _api.documented()
    assert len(names) == len(set(names))
    assert {f"sklearn_calib.{n}" for n in sklearn_calib.__all__ if n[0] != "_"} <= set(
        names
    )
    assert "sklearn_calib.classifiers.CalibratedModel" not in names
    assert set(_api._full(_api.FIRST)) <= set(names)
    last = {name.rpartition(".")[2] for name in names}
    for part in ("recalibrators", "metrics", "report", "decisions", "monitoring"):
        assert set(getattr(sklearn_calib, part).__all__) <= last
    pages = _api.pages()
    called, returned = pages["measures_and_scorers"].split("What these return")
    assert (
        "log_loss" in called and "CurveRows" in returned and "CurveRows" not in called
    )
    assert "LpCalibrationResult" in returned and "LpCalibrationResult" not in called


def test_what_a_function_returns_is_described_on_its_page():
    functions = [thing for _, thing in offered() if inspect.isfunction(thing)]
    described = {}
    for function in functions:
        _api.add_fields(
            None, "", "", function, None, described.setdefault(function, [])
        )
        words = re.findall(r"\w+", str(function.__annotations__.get("return", "")))
        lines = "\n".join(described[function])
        assert all(
            f".{word}` holds\n\n" in lines for word in _api._RESULTS & set(words)
        )
    assert "* **rows** (list of GradeRow)" in described[grade_calibration]
    assert "* **bound** (float)" in described[lower_distance_interval]
    assert "Its fields are ``statistic``, ``pvalue``." in described[cox_test]
    assert not described[all_metrics]


def test_no_level_of_a_sidebar_has_more_than_seven_entries():
    text = (GUIDE / "index.rst").read_text(encoding="utf-8")
    groups = re.findall(r"(?m)^\.\. pages:: (.*)\n((?:\n|   .*\n)+)", text + "\n")
    counts = {
        title: len(_entries.parsed(lines.splitlines())) for title, lines in groups
    }
    counts["guide"] = len(groups)
    counts["examples"] = len([*(ROOT / "examples").glob("*/README.rst")])
    for task, parts in _api.tasks():
        counts[task] = len(parts)
    for page in (DOC / "index.rst", DOC / "extending" / "index.rst"):
        tocs = re.findall(
            r"(?m)^\.\. toctree::\n((?:\n|   .*\n)+)", page.read_text("utf-8")
        )
        for number, toc in enumerate(tocs):
            counts[f"{page} {number}"] = len(re.findall(r"(?m)^   \w", toc))
    assert len(counts) > 12
    assert not {level: count for level, count in counts.items() if not 1 < count <= 7}


def test_what_a_hosted_site_has_in_addition():
    assert _site.list_theme_options("", "0.1") == {}
    options = _site.list_theme_options("https://host/en/latest/", "0.1")
    assert "version-switcher" in options["navbar_end"]
    assert options["switcher"]["json_url"] == (
        "https://host/en/latest/_static/switcher.json"
    )
    assert options["icon_links"][0]["url"].startswith("https://")
    assert _site.split_words("TemperatureScaling") == "temperature scaling"


def test_pages_for_developers_are_found_last():
    text = (DOC / "static" / "scorer.js").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"/(\^\(.*?\))/\.test", text)
    pattern = pattern.replace("\\/", "/")
    pages = [f"extending/{page.stem}" for page in (DOC / "extending").glob("*.rst")]
    assert len(pages) > 5 and all(re.match(pattern, page) for page in pages)
    assert not re.match(pattern, "user_guide/recalibrators")


def test_examples_are_listed_on_the_pages_of_what_they_use(tmp_path):
    known = {"sklearn_calib.a.One.plot": [], "sklearn_calib.a.OneMore": []}
    file = tmp_path / "api" / "backreferences" / "backreferences_all.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(known), encoding="utf-8")
    app = SimpleNamespace(srcdir=tmp_path)
    pages = {}
    for name in ("sklearn_calib.a.One", "sklearn_calib.a.Two"):
        pages[name] = ["page"]
        _site.add_examples(app, f"api/generated/{name}", pages[name])
    (one,), (two,) = pages.values()
    assert one.startswith("page\n\nExamples using One\n------------------\n")
    assert one.endswith(".. minigallery::\n\n   sklearn_calib.a.One.plot\n")
    assert two == "page"


def test_a_card_of_the_first_page_leads_where_its_last_line_does():
    first = (ROOT / "doc" / "index.rst").read_text(encoding="utf-8")
    cards = first.split(".. grid-item-card::")[1:]
    links = [
        re.search(r":link: (\S+)\n\s+:link-type: doc\n", card)[1] for card in cards
    ]
    assert len(links) == 5
    for card, link in zip(cards, links, strict=True):
        assert f":doc:`{link}`" in card and (ROOT / "doc" / f"{link}.rst").exists()
