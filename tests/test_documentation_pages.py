"""The pages of the documentation and the source agree: warnings, sources, names, imports, words."""

import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest
import test_architecture
from cases import run_every_case
from checkout import DOC, GUIDE, ROOT

import sklearn_calib
from sklearn_calib import decomposition, displays, inference, metrics, recalibrators

import _bibliography  # isort: skip
import _derived  # isort: skip
import _layers  # isort: skip
import _messages  # isort: skip
import changelog  # isort: skip

SOURCES = sorted(Path(sklearn_calib.__file__).parent.rglob("*.py"))
PAGES = sorted(
    [*DOC.glob("*.rst"), *GUIDE.glob("*.rst"), *(DOC / "extending").glob("*.rst")]
)
PAGES = [page for page in PAGES if page.name != "whats_new.rst"]

ORIENTATION = _layers.read_orientation()


def titles(page):
    return re.findall(r"(?m)^(\S.*)\n(?:=+|-+|~+)$", page.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_each_calibration_warning_has_an_entry():
    rules = {m.text for m in _messages.messages() if m.kind == "warning"}
    missing = sorted(rules - set(titles(GUIDE / "troubleshooting.rst")))
    assert rules and not missing, f"write what causes it and what to do: {missing}"


def test_messages_are_found(tmp_path):
    (tmp_path / "module.py").write_text(
        "def f(k, n):\n"
        "    rule = f'at most {k} rows'\n"
        "    raise invalid_input('k', expected=rule, got=n, hint='Pass ' 'fewer')\n"
        "    warn_calibration(expected='a rise' if k else 'a fall', got=n, hint=f'Wait {n} days')\n"
        "    warn_calibration(expected='light', got=n, hint='Look', category=UserWarning)\n",
        encoding="utf-8",
    )
    assert [tuple(m) for m in _messages.messages(tmp_path)] == [
        ("error", "module", "at most … rows", "Pass fewer"),
        ("warning", "module", "a rise / a fall", "Wait … days"),
    ]


@pytest.mark.slow
def test_bibliography():
    known = _bibliography.entries()
    keys = {entry.key for entry in known}
    assert len(keys) == len(known), "two entries with one key"
    used = set()
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for match, after in _bibliography.sources(text):
            entry = _bibliography.entry_of(match, after, known)
            assert entry, f"{path.name}: {match[0]} is not in references.bib"
            used.add(entry.key)
    for page in [*PAGES, *GUIDE.glob("*.inc"), *DOC.glob("whats_new/*/*.rst")]:
        for names in re.findall(
            r":cite:\w+:`([^`]+)`", page.read_text(encoding="utf-8")
        ):
            for key in names.split(","):
                assert key.strip() in keys, (
                    f"{page.name}: {key} is not in references.bib"
                )
                used.add(key.strip())
    assert keys == used, f"not cited: {sorted(keys - used)}"


def test_sources_of_one_year_are_told_apart():
    known = _bibliography.entries()
    text = 'Berta, Holzmueller, Jordan, Bach (2025), "Structured matrix"; Li and Sur (2025).'
    found = [
        _bibliography.entry_of(*pair, known).key for pair in _bibliography.sources(text)
    ]
    assert found == ["berta2025structured", "li2025optimal"]
    lines = [text]
    _bibliography.link_sources(None, "class", "name", None, None, lines)
    assert lines[0].count(":cite:yearpar:`") == 2
    assert "Bach :cite:yearpar:`berta2025structured`, " in lines[0]


def test_changelog_has_every_change():
    told = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert told == changelog.write_changelog(), "run python doc/changelog.py"
    texts = [
        page.read_text(encoding="utf-8")
        for page in DOC.glob("whats_new/*/overview.rst")
    ]
    listed = sum(len(re.findall(r"(?m)^\* ", text)) for text in texts)
    changes = [*DOC.glob("whats_new/*/*.*.rst")]
    assert told.count("\n* ") == listed + len(changes) > 0
    assert not re.search(r":\w+:`|``", told), "left in the other markup"


def test_addresses_of_the_hosts_are_in_one_file():
    """They lead nowhere before the first release, so that nothing else links to them."""
    addresses = ROOT / "doc" / "release" / "addresses.json"
    known = json.loads(addresses.read_text(encoding="utf-8"))
    assert known["documentation"].endswith("/page"), "a page of the default version"
    hosts = {address.split("/")[2] for address in known.values()} | {"sklearn-calib/"}
    texts = {
        path: path.read_text(encoding="utf-8")
        for folder in (".ci", ".github", "doc", "examples", "sklearn_calib")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {"", ".md", ".py", ".rst", ".inc", ".yml", ".yaml", ".json"}
        and path.is_file()
        and not {"_build", "generated", "auto_examples", "api"} & {*path.parts}
    }
    for path in (*ROOT.glob("*.md"), ROOT / "pyproject.toml", ROOT / "CITATION.cff"):
        texts[path] = path.read_text(encoding="utf-8")
    link = r"https?://(?:sklearn-calib\.[\w.-]+|[\w.-]+/sklearn-calib)"
    found = {path for path, text in texts.items() if re.search(link, text)}
    assert len(hosts) == 3 and len(texts) > 500
    assert found == {addresses}


def test_changes_of_a_candidate_stand_before_its_release():
    order = ["0.9.1", "0.10.0rc1", "0.10.0rc2", "0.10.0", "1.0.0"]
    assert sorted(order[::-1], key=changelog.order) == order


def test_a_change_of_no_known_kind_is_not_lost(tmp_path):
    (tmp_path / "0.1.0").mkdir()
    (tmp_path / "0.1.0" / "fix.slug.rst").write_text("A sentence.", encoding="utf-8")
    with pytest.raises(ValueError, match=r"added\|changed\|fixed.*'fix.slug.rst'"):
        list(changelog.changes(tmp_path))


def test_the_page_that_opens_a_version_stands_before_its_changes(tmp_path):
    (tmp_path / "0.1.0").mkdir()
    page = "What it offers:\n\nMeasures\n~~~~~~~~\n\n* ``one``\n  line\n* another\n"
    (tmp_path / "0.1.0" / "overview.rst").write_text(page, encoding="utf-8")
    (tmp_path / "0.1.0" / "fixed.slug.rst").write_text("A sentence.", encoding="utf-8")
    found = list(changelog.changes(tmp_path))
    assert [kind for _, kind, _ in found] == [changelog.OVERVIEW, "fixed"]
    expected = "What it offers:\n\n### Measures\n\n* `one` line\n* another\n"
    assert changelog.page_in_markdown(found[0][2][0]) == expected


def test_changes_in_markdown():
    given = (
        ":func:`~a.b.c` and :class:`D`, ``x=1`` "
        "(:doc:`/user_guide/any_size`), `site\n<u.html>`_."
    )
    expected = "`c` and `D`, `x=1` ({}), [site](u.html)."
    assert changelog.markdown(given) == expected.format('the page "any size"')
    page = "[any size](https://host/user_guide/any_size.html)"
    assert changelog.markdown(given, "https://host/") == expected.format(page)


def test_citation_and_pages_have_the_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8") + (
        DOC / "cite.rst"
    ).read_text(encoding="utf-8")
    stated = re.findall(r"(?m)^\s*version(?::| = )\s*\{?([^\s}]+)", text)
    assert stated == [sklearn_calib.__version__] * 2
    # in what reports and maps say
    shown = r'(?:sklearn-calib |"package": ")(\d+(?:\.\w+)+)'
    found = [
        version
        for page in PAGES
        for version in re.findall(shown, page.read_text(encoding="utf-8"))
    ]
    assert found and {*found} == {sklearn_calib.__version__}


def ours():
    """Calls on our side of the tables of "Coming from ..."."""
    text = (GUIDE / "coming_from.rst").read_text(encoding="utf-8")
    for cell in re.findall(r"(?ms)^     - (.*?)(?=^   \* -|^\S|\Z)", text):
        yield from re.findall(r"\b([A-Za-z_]+)\(((?:[^()`]|\([^()]*\))*)\)", cell)


@run_every_case(("name", "arguments"), sorted(set(ours())))
def test_names_in_coming_from(name, arguments):
    if name in ("FrozenEstimator", "make_pipeline", "class"):
        return
    homes = (sklearn_calib, recalibrators, metrics, displays, inference, decomposition)
    thing = next((getattr(home, name) for home in homes if hasattr(home, name)), None)
    thing = thing or getattr(recalibrators.VennAbers, name, None)
    assert thing is not None, f"{name} does not exist"
    accepted = set(inspect.signature(thing).parameters)
    outer = re.sub(r"\([^()]*\)", "", arguments)
    for keyword in re.findall(r"(\w+)=", outer):
        assert keyword in accepted, f"{name} has no {keyword}"
    if name == "get_recalibrator":
        recalibrators.get_recalibrator(arguments.strip("'\""))


def test_counterexample_of_the_multiclass_page(capsys):
    text = (GUIDE / "multiclass_calibration.rst").read_text(encoding="utf-8")
    (block,) = [b for b in code(text) if "classwise" in b and "np.repeat" in b]
    exec(block, names := {})
    value = {
        m: metrics.calibration_error(names["y"], names["p"], multiclass=m)
        for m in ("classwise", "confidence", "top_label")
    }
    np.testing.assert_allclose(value["classwise"], 0, atol=1e-12)
    np.testing.assert_allclose(value["confidence"], 0.05, atol=1e-12)
    assert "# 0.0\n" in block and "# 0.05:" in block


def code(text):
    blocks = re.findall(r"code-block:: python\n\n((?:(?:   .*)?\n)+)", text)
    return [re.sub(r"(?m)^   ", "", block) for block in blocks]


@pytest.mark.parametrize("page", ["install.rst", "user_guide/troubleshooting.rst"])
def test_code_of_the_pages_runs(page):
    names = {}
    for block in code((DOC / page).read_text(encoding="utf-8")):
        if "filterwarnings" not in block:
            exec(block, names)
    if "p" in names:  # anomalies get the larger probability
        assert (
            names["p"][names["y"] == 1].mean()
            > 0.5
            > names["p"][names["y"] == 0].mean()
        )


@pytest.mark.slow
def test_drawing_of_the_layers():
    graph = _layers.imports()
    layer = test_architecture.LAYER_NUMBER
    for part, others in graph.items():
        wrong = sorted(other for other in others if layer[other] >= layer[part])
        assert not wrong, f"{part} imports {wrong}"
    assert "_kernels" in graph["metrics"] and "metrics" in graph["decomposition"]
    layers = _layers.levels(graph)
    height = {part: number for number, layer in enumerate(layers) for part in layer}
    assert all(
        height[o] < height[part] for part, others in graph.items() for o in others
    )
    drawing = _layers.drawing()
    assert all(
        f">{part}</text>" in drawing for part in set(graph) - _layers.ground(graph)
    )
    with pytest.raises(ValueError, match="cycle"):
        _layers.levels({"a": {"b"}, "b": {"a"}})


def get_next_lower_sub_packages(part):
    """Return the sub-packages of the nearest layer below a part that has any."""
    layers = test_architecture.LAYERS[: test_architecture.LAYER_NUMBER[part]]
    for layer in reversed(layers):
        found = {name for name in layer if (test_architecture.ROOT / name).is_dir()}
        if found:
            return found
    return set()


@run_every_case("part", sorted(ORIENTATION))
def test_orientation_of_sub_packages(part):
    sentences = ORIENTATION[part]
    assert len(sentences) == 3 and all(sentence.endswith(".") for sentence in sentences)
    _, imports, start = sentences
    assert imports.startswith(("It may import ", "It may not import "))
    assert set(re.findall(r"`(\w+)`", imports)) == get_next_lower_sub_packages(part)
    name, file = re.fullmatch(
        r"Start reading with `(\w+)` in `(\w+\.py)`\.", start
    ).groups()
    source = (test_architecture.ROOT / part / file).read_text(encoding="utf-8")
    assert re.search(rf"(?m)^(def|class) {name}\b", source), f"{file} has no {name}"


def test_orientation_covers_all_sub_packages():
    folders = {
        path.parent.name
        for path in SOURCES
        if path.parent.parent == test_architecture.ROOT
    }
    assert set(ORIENTATION) == folders
    table = _derived.make_orientation_table()
    assert all(f"* - ``{part}``" in table for part in folders)


def test_links_of_the_readme_read_on_a_code_host():
    """They exist, and no table of a linked page is missing before the documentation is built."""
    links = re.findall(
        r"\]\((?!http)([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")
    )
    assert len(links) > 10
    for link in links:
        path = ROOT / link
        assert path.exists(), f"{link} does not exist"
        if path.suffix == ".rst":
            assert ".. include::" not in path.read_text(encoding="utf-8"), (
                f"{link} has a table that is built"
            )
