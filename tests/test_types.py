"""The package states that it is typed: every parameter of what users call has an annotation."""

import ast
import inspect
from pathlib import Path

import pytest
from cases import run_every_case

import sklearn_calib
from sklearn_calib.groups import group_calibration

ROOT = Path(sklearn_calib.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if "_kernels" not in path.parts]
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def public(tree, prefix="", method=False):
    """(name, function, whether it is a method) of all functions outside of other functions."""
    for node in ast.iter_child_nodes(tree):
        name = getattr(node, "name", "")
        if isinstance(node, FUNCTIONS):
            if name[0] != "_" or name.endswith("__"):
                yield prefix + name, node, method
        elif isinstance(node, ast.ClassDef):
            if name[0] != "_":
                yield from public(node, f"{prefix}{name}.", method=True)
        else:
            yield from public(node, prefix, method)


def bare(source):
    """Names of what has no annotation, and the number of parameters and results."""
    missing, number = [], 0
    for name, function, method in public(ast.parse(source)):
        arguments = function.args
        named = [*arguments.posonlyargs, *arguments.args]
        static = any(
            getattr(d, "id", "") == "staticmethod" for d in function.decorator_list
        )
        named = named[1:] if method and not static else named
        starred = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        for argument in [*named, *arguments.kwonlyargs, *starred]:
            number += 1
            if argument.annotation is None:
                missing.append(f"{name}({argument.arg})")
        number += 1
        if function.returns is None:
            missing.append(f"{name} ->")
    return missing, number


@pytest.mark.slow
@run_every_case(
    "subpackage", sorted({path.relative_to(ROOT).parts[0] for path in FILES})
)
def test_annotated(subpackage):
    files = [path for path in FILES if path.relative_to(ROOT).parts[0] == subpackage]
    missing = [
        f"{path.name}: {one}"
        for path in files
        for one in bare(path.read_text(encoding="utf-8"))[0]
    ]
    assert not missing, f"without a type: {', '.join(missing)}"


@run_every_case(
    ("source", "missing"),
    [
        ("def f(x): ...", ["f(x)", "f ->"]),
        (
            "def f(x: int, *args, y=1, **options) -> None: ...",
            ["f(args)", "f(y)", "f(options)"],
        ),
        (
            "class A:\n    def __init__(self, x): ...",
            ["A.__init__(x)", "A.__init__ ->"],
        ),
        ("class A:\n    @property\n    def b(self): ...", ["A.b ->"]),
        ("class A:\n    @staticmethod\n    def b(x) -> int: ...", ["A.b(x)"]),
        ("if True:\n    def f(x) -> int: ...", ["f(x)"]),
        ("def f(x: int) -> int:\n    def inner(z): ...", []),
        ("class _A:\n    def b(self, x): ...\ndef _f(x): ...", []),
    ],
)
def test_what_is_missing_is_found(source, missing):
    found, _ = bare(source)
    assert sorted(found) == sorted(missing)


@pytest.mark.slow
def test_results_are_annotated():
    """Fields of the public dataclasses and named tuples name more than `object`."""
    vague = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name[0] != "_":
                vague += [
                    f"{node.name}.{ast.unparse(field.target)}"
                    for field in node.body
                    if isinstance(field, ast.AnnAssign)
                    and ast.unparse(field.annotation)
                    in ("object", "list", "dict", "tuple")
                    and ast.unparse(field.target)[0] != "_"
                ]
    assert not vague, f"say of what: {', '.join(vague)}"


def test_each_wrong_call_names_its_error():
    """Without a comment it would go unnoticed that type checkers accept a call in this file."""
    source = (Path(__file__).parent / "typing" / "rejected.py").read_text(
        encoding="utf-8"
    )
    lines = source.splitlines()
    first, *calls = [
        node for node in ast.parse(source).body if isinstance(node, ast.Expr)
    ]
    assert isinstance(first.value, ast.Constant) and calls
    for call in calls:
        assert "# type: ignore[" in lines[call.end_lineno - 1], ast.unparse(call)


@pytest.mark.parametrize(
    "thing", [sklearn_calib.CalibratedModel.fit, group_calibration]
)
def test_help_shows_short_types(thing):
    """numpy's ArrayLike is a union that takes 270 letters for each parameter."""
    signature = str(inspect.signature(thing))
    assert "numpy.typing.ArrayLike" in signature and "_NestedSequence" not in signature
