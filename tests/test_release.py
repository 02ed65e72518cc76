"""What a release needs states what the package states."""

import json
import re

import pytest
from checkout import ROOT

import sklearn_calib

RECIPE = (ROOT / "doc/release/recipe.yaml").read_text(encoding="utf-8")


def words(requirement):
    return re.fullmatch(r"([\w-]+) ?(.*)", requirement).groups()


def test_the_recipe_has_the_dependencies_and_the_version():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {words(one) for one in project["project"]["dependencies"]}
    needed.add(("python", project["project"]["requires-python"]))
    found = RECIPE.split("  run:\n")[1].split("\n\n")[0]
    assert {words(line.strip(" -")) for line in found.splitlines()} == needed
    [build] = project["build-system"]["requires"]
    assert f"    - {' '.join(words(build))}\n" in RECIPE
    assert f'  version: "{sklearn_calib.__version__}"\n' in RECIPE
    [(name, target)] = project["project"]["scripts"].items()
    assert f"- {name} = {target}\n" in RECIPE


def test_archives_and_citations_agree():
    archived = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'title: "{archived["title"]}"' in cited
    assert f"version: {sklearn_calib.__version__}\n" in cited
    assert f"license: {archived['license']}\n" in cited


def test_the_paper_cites_what_is_there():
    paper = (ROOT / "doc/release/paper.md").read_text(encoding="utf-8")
    files = (ROOT / "doc/references.bib", ROOT / "doc/release/paper.bib")
    known = "".join(file.read_text(encoding="utf-8") for file in files)
    cited = set(re.findall(r"@([a-z]+\d{4}[a-z]+)", paper))
    assert len(cited) > 5 and all(f"{{{key}," in known for key in cited)
    assert len(paper.split()) < 1000  # two pages
