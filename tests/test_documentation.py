"""What the documentation promises: docstrings are complete, and the code in the texts runs."""

import inspect
import pydoc
import re
from pathlib import Path

import pytest
from cases import run_every_case
from offered import offered

from sklearn_calib import metrics, recalibrators

ROOT = Path(__file__).parent.parent
PUBLIC = [
    thing
    for _, thing in offered("exceptions")
    if getattr(thing, "__module__", "").startswith("sklearn_calib")
]
REGISTERED = [
    *metrics.all_metrics().values(),
    *recalibrators.all_recalibrators().values(),
]


@run_every_case("thing", PUBLIC, ids=lambda t: t.__name__)
def test_docstring(thing):
    text = inspect.getdoc(thing)
    assert text and text.splitlines()[0].rstrip().endswith((".", "?")), (
        "no summary line"
    )
    if inspect.isfunction(thing) and "Examples" in text:
        for name, parameter in inspect.signature(thing).parameters.items():
            described = parameter.kind not in (
                parameter.VAR_KEYWORD,
                parameter.VAR_POSITIONAL,
            )
            if described and name[0] != "_":
                assert re.search(rf"`?{name}`?", text), f"{name} is not described"


@run_every_case("thing", REGISTERED, ids=lambda t: t.__name__)
def test_registered_things_are_documented_in_full(thing):
    text = inspect.getdoc(thing)
    wanted = ["Examples\n---"]
    if thing.__name__ != "Identity":
        wanted += ["References\n---", "ost"]  # a source, and the cost
    for section in wanted:
        assert section in text, f"no {section!r}"


@pytest.mark.slow
def test_code_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    if not (ROOT / "README.md").exists():
        pytest.skip("not a checkout")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert blocks
    monkeypatch.chdir(tmp_path)  # some write files
    names = {}
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    (said,) = re.findall(r"```text\n(.*?)```", text, re.S)  # how the verdicts begin
    assert said.endswith("verdict: recalibrate\n")
    assert all(line.removesuffix(" ...") in printed for line in said.splitlines())


@run_every_case(
    "call",
    [*metrics.all_metrics().values(), *filter(inspect.isfunction, PUBLIC)],
    ids=lambda call: call.__name__,
)
def test_help_lists_every_option(call):
    """Also of measures, which are objects that wrap a function."""
    text = pydoc.plain(pydoc.render_doc(call))
    head = text.split("\n")[2]
    assert head.startswith(f"{call.__name__}(")
    described = text.partition("Parameters\n")[2]
    if not described:
        return
    for option in inspect.signature(call).parameters:
        assert option[0] == "_" or (option in head and option in described), option
