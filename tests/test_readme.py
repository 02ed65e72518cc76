"""The README says what its script measures, and its picture is what the script draws."""

import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
from checkout import ROOT

import sklearn_calib

import readme_picture  # isort: skip

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOT = r'class="dot" cx="([\d.]+)" cy="([\d.]+)"'


@pytest.fixture(scope="module")
def found():
    return readme_picture.predictions()


def test_the_figures_of_the_model_as_it_is():
    parts = readme_picture.naive_bayes()
    before = readme_picture.figures(*reversed(parts["test"]))
    assert f"in {before['sure']} of {before['rows']} test images" in README
    assert f"from {before['log_loss']:.2f} to" in README
    assert f"on\n{len(parts['calibrate'][1])} other images" in README


@pytest.mark.slow
def test_the_figures_are_those_of_the_script(found):
    before, after = (
        readme_picture.figures(found["y"], proba)
        for name, proba in found.items()
        if name != "y"
    )
    text = re.sub(r"\s+", " ", README)
    said = re.search(
        r"in (\d+) of (\d+) test images .* wrong in (\d+) of them.* on (\d+) other images it is "
        r"that sure in (\d+), and right in all of them\. .* from ([\d.]+) to ([\d.]+); the "
        r"accuracy goes from ([\d.]+) to ([\d.]+)\. ",
        text,
    ).groups()
    counts = before["sure"], before["rows"], before["wrong"], 539, after["sure"]
    assert tuple(map(int, said[:5])) == counts and after["wrong"] == 0
    losses = before["log_loss"], after["log_loss"]
    assert [float(x) for x in said[5:7]] == [round(x, 2) for x in losses]
    assert [float(x) for x in said[7:]] == [
        round(d["accuracy"], 3) for d in (before, after)
    ]


@pytest.mark.slow
def test_the_picture_is_what_the_script_draws(found):
    committed = readme_picture.PICTURE.read_text(encoding="utf-8")
    y = found["y"]
    drawn = readme_picture.picture(
        y, {name: p for name, p in found.items() if name != "y"}
    )
    dots = [np.array(re.findall(DOT, text), float) for text in (committed, drawn)]
    assert len(dots[0]) > 10
    np.testing.assert_allclose(*dots, atol=0.5)
    titles = [
        re.findall(r'class="(?:title|note)"[^>]*>([^<]+)<', t)
        for t in (committed, drawn)
    ]
    assert titles[0] == titles[1] and len(titles[0]) == 4


def test_the_picture_is_small_and_needs_nothing():
    text = readme_picture.PICTURE.read_text(encoding="utf-8")
    assert (
        len(text) < 60_000
        and f"]({readme_picture.PICTURE.relative_to(ROOT)})" in README
    )
    HTMLParser().feed(text)
    assert "prefers-color-scheme: dark" in text and "<script" not in text
    assert not re.search(r"(href|src|url\()", text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}


def test_the_two_commands_come_first():
    assert README.index("pip install '.[all]' && sklearn-calib demo\n") < 2000
    assert "\npip install '.[test]' && pytest\n" in README
    assert (
        "nothing is released yet" in README
        and "pip install sklearn-calib" not in README
    )
    assert len(README.split()) < 700, "a README of more than three minutes"
    assert "![](" not in README and "badge" not in README


def test_links_of_the_package_are_absolute(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    from package_readme import main

    (tmp_path / "sklearn_calib").mkdir()
    for name in ("README.md", "pyproject.toml", "sklearn_calib/_version.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    main(tmp_path)
    targets = r"\]\(([^)\s]+)\)"
    here = re.findall(targets, README)
    found = re.findall(targets, (tmp_path / "README.md").read_text(encoding="utf-8"))
    assert len(found) == len(here) > 15
    tag, pages = (
        f"v{sklearn_calib.__version__}",
        "https://sklearn-calib.readthedocs.io/page/",
    )
    for before, after in zip(here, found, strict=True):
        assert after.startswith("https://")
        if before.startswith(("https:", "#")):
            assert after == before
        elif before.endswith(".rst"):
            page = after.removeprefix(pages).removesuffix(".html")
            assert (ROOT / "doc" / f"{page}.rst").exists(), after
        else:
            path = after.partition(f"/{tag}/")[2].partition("?")[0]
            assert (ROOT / path).exists(), after
            assert ("raw." in after) == before.endswith(".svg")
