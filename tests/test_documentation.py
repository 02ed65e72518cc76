"""What the documentation promises: docstrings are complete, and the code in the texts runs."""

import inspect
import re
import sys
import types
from pathlib import Path

import pytest
from boosters import imported
from offered import offered

from sklearn_calib import metrics, recalibrators

ROOT = Path(__file__).parent.parent
PUBLIC = [
    thing
    for _, thing in offered("exceptions")
    if getattr(thing, "__module__", "").startswith("sklearn_calib")
]
REGISTERED = [*metrics.all_metrics().values(), *recalibrators.all_recalibrators().values()]


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda t: t.__name__)
def test_docstring(thing):
    text = inspect.getdoc(thing)
    assert text and text.splitlines()[0].rstrip().endswith((".", "?")), "no summary line"
    if inspect.isfunction(thing) and "Examples" in text:
        for name, parameter in inspect.signature(thing).parameters.items():
            described = parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            if described and name[0] != "_":
                assert re.search(rf"`?{name}`?", text), f"{name} is not described"


@pytest.mark.parametrize("thing", REGISTERED, ids=lambda t: t.__name__)
def test_registered_things_are_documented_in_full(thing):
    text = inspect.getdoc(thing)
    wanted = ["Examples\n---"]
    if thing.__name__ != "Identity":
        wanted += ["References\n---", "ost"]  # a source, and the cost
    for section in wanted:
        assert section in text, f"no {section!r}"


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        pytest.param("doc/user_guide/a_judge_and_200_labels.rst", marks=pytest.mark.slow),
        pytest.param("doc/user_guide/calibrating_a_model.rst", marks=pytest.mark.slow),
        pytest.param("doc/user_guide/class_frequencies_change.rst", marks=pytest.mark.slow),
        pytest.param("doc/user_guide/decisions.rst", marks=pytest.mark.slow),
        "doc/user_guide/export.rst",
        "doc/user_guide/from_0_1_to_0_2.rst",
        pytest.param("doc/user_guide/groups_and_fairness.rst", marks=pytest.mark.slow),
        pytest.param("doc/user_guide/large_data_logits.inc", marks=pytest.mark.slow),
        pytest.param("doc/user_guide/many_labels.rst", marks=pytest.mark.slow),
        pytest.param("doc/user_guide/measures.rst", marks=pytest.mark.slow),
        pytest.param("doc/user_guide/pictures.rst", marks=pytest.mark.slow),
        pytest.param("doc/user_guide/production.rst", marks=pytest.mark.slow),
        pytest.param("doc/user_guide/what_to_do.rst", marks=pytest.mark.slow),
    ],
)
def test_code_in_the_texts_runs(path, tmp_path, monkeypatch, capsys):
    file = ROOT / path
    if not file.exists():
        pytest.skip("not a checkout")
    text = file.read_text(encoding="utf-8")
    if "xgboost" in text:
        imported("xgboost")
    if "skops" in text:
        pytest.importorskip("skops")
    if "onnxruntime" in text:
        pytest.importorskip("onnxruntime")
        pytest.importorskip("skl2onnx")
    if path.endswith(".md"):
        blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    else:
        blocks = [
            re.sub(r"(?m)^   ", "", block)
            for block in re.findall(r"code-block:: python\n\n((?:(?:   .*)?\n)+)", text)
        ]
    assert blocks
    module = types.ModuleType("snippet")
    monkeypatch.setitem(sys.modules, "snippet", module)  # so that its classes can be pickled
    monkeypatch.chdir(tmp_path)  # some write files
    before = {*ROOT.iterdir()}
    for block in blocks:
        exec(block, vars(module))
    assert not [at for at in {*ROOT.iterdir()} - before if at.suffix == ".html"]
    printed = capsys.readouterr().out
    if path == "README.md":  # which says how the verdicts begin
        (said,) = re.findall(r"```text\n(.*?)```", text, re.S)
        assert said.count("...\n") == 2
        assert all(line.removesuffix(" ...") in printed for line in said.splitlines())
