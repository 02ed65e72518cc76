"""The README states what its command measures, and its picture is what it draws."""

import re
import shutil
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from checkout import ROOT

import sklearn_calib

import front_page  # isort: skip

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOT = r'class="dot" cx="([\d.]+)" cy="([\d.]+)"'


@pytest.fixture(scope="module")
def found():
    return front_page.predict_digits()


@pytest.mark.slow
def test_the_figures_are_those_of_the_command(found):
    assert front_page.BEGIN + front_page.write_block(found) + front_page.END in README


@pytest.mark.slow
def test_one_example_in_text_picture_and_output(found):
    y = front_page.split_digits()["test"][1]
    pictured = front_page.select_pictured(found)
    before, after = (front_page.measure(y, proba) for proba in pictured.values())
    losses = f"{before['log_loss']:.2f}", f"{after['log_loss']:.2f}"
    assert "falls from {} to {}.".format(*losses) in README
    assert "log loss {} before, {} after recalibration:".format(*losses) in README
    drawn = front_page.PICTURE.read_text(encoding="utf-8")
    notes = re.findall(r'class="note"[^>]*>.*log loss ([\d.]+)<', drawn)
    assert tuple(notes) == losses


def test_the_table_of_packages_is_that_of_the_committed_losses():
    rows = front_page.list_packages(front_page.read_arena())
    for row in rows:
        assert f"| {' | '.join(row)} |" in README
    names = [row[0] for row in rows]
    assert names[2:6] == ["probmetrics", "probcal", "netcal", "scikit-learn"]


def test_excess_and_harm():
    losses = {
        "identity": np.array([1.0, 1.0, 1.0, 1.0]),
        "good": np.array([0.5, 0.8, 1.0, 1.02]),
        "best": np.array([0.5, 0.4, 0.5, 1.0]),
        "rows": np.array([1, 2, 3, 4]),
    }
    excess, harm = front_page.summarize_method(losses, "good")
    # 0, 100 and 100 (which count as 50), and 2 %
    assert excess == pytest.approx((0 + 50 + 50 + 2) / 4)
    assert harm == 25.0
    assert front_page.summarize_method(losses, "best") == (0.0, 0.0)


def test_tasks_that_another_package_wins():
    losses = {
        "identity": np.array([9.0, 9.0]),
        "auto": np.array([0.5, 0.6]),
        "default": np.array([0.1, 0.1]),
        "TS (peer)": np.array([0.6, 0.5]),
        "rows": np.array([1, 2]),
    }
    assert front_page.count_lost_tasks({"two": losses, "several": losses}) == (
        2,
        4,
        1,
    )


@pytest.mark.slow
def test_the_picture_is_what_the_command_draws(found):
    committed = front_page.PICTURE.read_text(encoding="utf-8")
    y = front_page.split_digits()["test"][1]
    drawn = front_page.draw_picture(y, front_page.select_pictured(found))
    dots = [np.array(re.findall(DOT, text), float) for text in (committed, drawn)]
    assert len(dots[0]) > 10
    np.testing.assert_allclose(*dots, atol=0.5)
    titles = [
        re.findall(r'class="(?:title|note)"[^>]*>([^<]+)<', t)
        for t in (committed, drawn)
    ]
    assert titles[0] == titles[1] and len(titles[0]) == 4


def test_the_picture_is_small_and_needs_nothing():
    text = front_page.PICTURE.read_text(encoding="utf-8")
    assert len(text) < 60_000 and f"]({front_page.PICTURE.relative_to(ROOT)})" in README
    HTMLParser().feed(text)
    assert "prefers-color-scheme: dark" in text and "<script" not in text
    assert not re.search(r"(href|src|url\()", text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}


def test_badges_are_what_the_project_declares():
    for name, words in front_page.list_badges().items():
        committed = ROOT / "doc" / "static" / f"{name}.svg"
        assert committed.read_text(encoding="utf-8") == front_page.draw_badge(*words)
        assert f"![{' '.join(words)}](doc/static/{name}.svg)" in README


def test_the_two_commands_come_first():
    assert README.index("pip install '.[all]' && sklearn-calib demo\n") < 1200
    assert "\npip install '.[test]' && pytest\n" in README
    assert (
        "nothing is released yet" in README
        and "pip install sklearn-calib" not in README
    )
    read = re.sub(r"[|]|```python\n.*?```", " ", README, flags=re.S)
    assert len(read.split()) < 1100, "a README of more than five minutes"
    # Blocks of code, tables and marks; the addresses of links and pictures.
    prose = re.sub(r"(?ms)^```.*?^```|<!--.*?-->|^\|[^\n]*$", "", README)
    prose = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", prose)
    assert 300 < len(prose.split()) <= 700, "too much prose"
    assert README.count("CalibratedClassifierCV") > 2


@pytest.fixture
def released(tmp_path, monkeypatch):
    """A tree as the release script leaves it."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    monkeypatch.setattr("sys.path", [*sys.path])
    from package_readme import main

    for name in ("README.md", "CHANGELOG.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("sklearn_calib/_version.py", "doc/release/addresses.json"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "doc" / "whats_new", tmp_path / "doc" / "whats_new")
    main(tmp_path)
    return tmp_path


def test_links_of_the_package_are_absolute(released):
    targets = r"\]\(([^)\s]+)\)"
    here = re.findall(targets, README)
    found = re.findall(targets, (released / "README.md").read_text(encoding="utf-8"))
    assert len(found) == len(here) > 10
    tag = f"v{sklearn_calib.__version__}"
    for before, after in zip(here, found, strict=True):
        assert after.startswith("https://")
        path = after.partition(f"/{tag}/")[2].partition("?")[0]
        assert path == before and (ROOT / path).exists(), after
        assert ("raw." in after) == before.endswith(".svg")


def test_addresses_of_the_package(released):
    project = (released / "pyproject.toml").read_text(encoding="utf-8")
    lines = re.search(r"(?s)\[project.urls\]\n(.*?)\n\[project.scripts\]", project)[1]
    addresses = dict(re.findall(r'(\w+) = "(https://\S+)"', lines))
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} == {
        *addresses
    }
    changes = (released / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"[What's new]({addresses['Changelog']})" in changes
    folder = addresses["Changelog"].removesuffix("whats_new.html")
    pages = re.findall(rf"\]\({re.escape(folder)}([^)]+)\.html\)", changes)
    assert len(pages) > 10
    assert all((ROOT / "doc" / f"{page}.rst").exists() for page in pages[1:])


def test_no_link_shows_raw_markup():
    assert not re.search(r"\]\([^)]+\.rst\)", README)
