"""The layers, the lazy imports and the registries, read off the source with ast."""

import ast
import inspect
import re
import subprocess
import sys
import typing
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from cases import run_every_case
from offered import REPEATED, RETURNED, list_subpackages, offered

import sklearn_calib
from sklearn_calib.metrics import all_metrics

ROOT = Path(sklearn_calib.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Each line uses the lines above it, and nothing of its own line but itself.
LAYERS = (
    ("_atomic", "_show", "_spelling", "_typing", "exceptions"),
    (
        "_argument_checks",
        "_base_meta_classifier",
        "_blas_threads",
        "_callbacks",
        "_clone",
        "_count_weights",
        "_group_folds",
        "_random",
        "_simplex_array",
        "_sklearn_compat",
        "_version",
        "_warnings",
    ),
    ("_kernels", "_validation"),
    ("_files", "datasets", "maps", "staged"),
    ("metrics", "recalibrators"),
    ("decisions", "decomposition", "linear", "monitoring"),
    ("inference", "classifiers", "testing"),
    ("export", "groups", "summary", "theory"),
    ("_compile_kernels", "displays"),
    ("extending", "report"),
    ("_cli",),
    ("__init__", "__main__"),
)
LAYER_NUMBER = {name: number for number, layer in enumerate(LAYERS) for name in layer}
HEAVY = {
    "numba",
    "cvxpy",
    "matplotlib",
    "pandas",
    "rich",
    "xgboost",
    "lightgbm",
    "catboost",
    "pyarrow",
    "dask",
    "distributed",
    "duckdb",
    "polars",
    "onnx",
    "onnxruntime",
    "skl2onnx",
    "onnxmltools",
}


def layer(path):
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


def imports(tree, path):
    """(module as a dotted path from the root of the package or absolute, node) of each import."""
    package = list(path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module, node
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            for name in (
                [node.module] if node.module else [alias.name for alias in node.names]
            ):
                yield ".".join(["sklearn_calib", *base, name]), node


def broken_rules(source, path):
    """What the source text of a file of the package imports against the rules."""
    tree = ast.parse(source)
    own = layer(path)
    at_top = {id(node) for node in tree.body}
    for module, node in imports(tree, path):
        parts = module.split(".")
        names = [alias.name for alias in node.names if alias.name.startswith("_")]
        if parts[0] == "sklearn_calib" and len(parts) > 1:
            target = parts[1]
            if target != own and LAYER_NUMBER[target] >= LAYER_NUMBER[own]:
                yield f"{own} imports {target}"
            foreign = target != own and target not in (
                "_kernels",
                *LAYERS[0],
                *LAYERS[1],
            )
            private = [part for part in parts[2:] if part.startswith("_")] + names
            if foreign and private:
                yield f"{own} imports a private name: {module} {private}"
        if parts[0] == "sklearn" and path.name != "_sklearn_compat.py":
            private = [
                p for p in parts[1:] if p.startswith("_") and p != "_param_validation"
            ]
            if private or names:
                yield f"private name of scikit-learn: {module} {names}"
        if own == "_kernels":
            if parts[0] == "sklearn":
                yield "a kernel imports scikit-learn"
        elif id(node) in at_top:
            if parts[0] in HEAVY:
                yield f"{module} is imported at the top of {path.name}"
            if "_kernels" in parts and imports_numba(parts):
                yield f"compiled kernel imported at the top of {path.name}"


@pytest.mark.slow
@run_every_case(
    "subpackage", sorted({path.relative_to(ROOT).parts[0] for path in FILES})
)
def test_layers_and_lazy_imports(subpackage):
    files = [path for path in FILES if path.relative_to(ROOT).parts[0] == subpackage]
    broken = {
        path.name: [*broken_rules(path.read_text(encoding="utf-8"), path)]
        for path in files
    }
    assert not any(broken.values()), {
        name: rules for name, rules in broken.items() if rules
    }


@run_every_case(
    ("file", "source", "broken"),
    [
        (
            "displays/_new.py",
            "from ..metrics._measure import Measure",
            "imports a private name",
        ),
        (
            "displays/_new.py",
            "from ..recalibrators import _base",
            "imports a private name",
        ),
        (
            "classifiers/_new.py",
            "def f():\n    from ..staged._xgboost import own",
            "imports a private name",
        ),
        (
            "classifiers/_new.py",
            "import sklearn_calib.staged._base",
            "classifiers imports a private name",
        ),
        (
            "metrics/_new.py",
            "from ..recalibrators import PlattScaling",
            "imports recalibrators",
        ),
        (
            "metrics/_new.py",
            "from sklearn.utils._tags import Tags",
            "private name of scikit-learn",
        ),
        (
            "_kernels/_new.py",
            "from sklearn.base import clone",
            "a kernel imports scikit-learn",
        ),
        (
            "displays/_new.py",
            "import matplotlib.pyplot as plt",
            "imported at the top of _new.py",
        ),
        (
            "metrics/_new.py",
            "from .._kernels._range_sums import RangeSums",
            "compiled kernel",
        ),
        (
            "metrics/_new.py",
            "def f():\n    from .._kernels._range_sums import RangeSums",
            None,
        ),
        (
            "displays/_new.py",
            "from ._base import Display\nfrom ..metrics import log_loss",
            None,
        ),
    ],
)
def test_planted_imports(file, source, broken):
    found = [*broken_rules(source, ROOT / file)]
    assert len(found) == (broken is not None)
    assert broken is None or broken in found[0]


def imports_numba(parts):
    path = ROOT / "_kernels" / f"{parts[-1]}.py"
    return path.exists() and re.search(
        "(from|import) numba|from ._compile", path.read_text(encoding="utf-8")
    )


# files without a name of their own
SHARED = (
    "__init__",
    "_softmax_family",
    "_penalty_paths",
    "_device_map",
    "_stacking",
    "_measure",
    "_blocks",
    "_booster",
)


def files_without_line(folder):
    """The files of a sub-package that its ``__init__.py`` does not import from."""
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    imported = {
        module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for module in ([node.module] if node.module else [a.name for a in node.names])
    }
    return [
        path.name
        for path in sorted(folder.glob("_*.py"))
        if path.stem not in {*SHARED, *imported}
    ]


@pytest.mark.parametrize("package", ["recalibrators", "metrics", "displays", "staged"])
def test_each_file_has_its_line(package):
    assert not files_without_line(ROOT / package)


def test_no_layer_is_unknown():
    assert {layer(path) for path in FILES} <= set(LAYER_NUMBER)


LATER = (
    "sklearn",
    "pandas",
    "scipy",
    "rich",
    "numba",
    "cvxpy",
    "matplotlib",
    "xgboost",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "also"),
    [
        ("", "numpy"),
        ("c = sklearn_calib.CalibratedModel", "sklearn_calib.report"),
        *(
            (
                f"from sklearn_calib._cli import main; main({line.split()!r})",
                "sklearn_calib.report",
            )
            for line in (
                "--help",
                "--version",
                "audit --help",
                "fit --nonsense",
                "nonsense",
            )
        ),
    ],
)
def test_imports_are_light(code, also):
    """What is asked for is imported, and no more."""
    heavy = [also, *(LATER[4:] if "CalibratedModel" in code else LATER)]
    code = f"""
import sys, sklearn_calib
try:
    {code or "pass"}
except SystemExit:
    pass
print("heavy:", [m for m in {heavy} if m in sys.modules])"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.splitlines()[-1] == "heavy: []", "it imports them"


@pytest.mark.slow
def test_the_registry_is_whole_when_it_is_asked():
    """Of sub-packages too that have not been imported; they are not imported before."""
    code = """
import sys, sklearn_calib.metrics as metrics
print("sklearn_calib.decisions" in sys.modules)
metrics.get_scorer("neg_area_under_risk_coverage")
print(sorted(metrics._MEASURE_REGISTRY))"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.splitlines() == ["False", str(sorted(all_metrics()))]
    assert {"expected_cost_score", "integrated_calibration_index"} < set(all_metrics())


def test_every_name_of_the_root_has_a_home():
    assert {"CalibratedModel", "metrics", "canonical_proba"} <= set(dir(sklearn_calib))
    exec("from sklearn_calib import *", found := {})
    assert set(sklearn_calib.__all__) <= set(found)
    assert found["CalibratedModel"] is sklearn_calib.classifiers.CalibratedModel


def test_completion_shows_what_a_user_calls():
    """After the dot come seven names and the sub-packages; in these, their own names."""
    public = [name for name in [*list_subpackages(), *REPEATED] if name[0] != "_"]
    assert dir(sklearn_calib) == sorted([*sklearn_calib.__all__, *public])
    for subpackage in list_subpackages():
        module = import_module(f"sklearn_calib.{subpackage}")
        assert dir(module) == sorted(module.__all__)
        returned = RETURNED.get(subpackage, "").split()
        assert not set(returned) & set(module.__all__)
        assert all(hasattr(module, name) for name in returned)


def test_no_result_is_forgotten():
    """A class that a function returns is offered, so the contracts and the reference have it."""
    known = {id(thing) for _, thing in offered()}
    for name, thing in offered():
        if inspect.isfunction(thing):
            hint = thing.__annotations__.get("return")
            for cls in (hint, *typing.get_args(hint)):
                cls = typing.get_origin(cls) or cls
                ours = getattr(cls, "__module__", "").startswith("sklearn_calib")
                assert not ours or id(cls) in known, f"{name} returns {cls}"
    assert len(known) >= 260


def test_sub_packages_are_imported_when_asked_for():
    assert sklearn_calib.report.__name__ == "sklearn_calib.report"
    assert sklearn_calib.inference.calibration_test.__name__ == "calibration_test"
    assert {"inference", "displays", "report", "metrics"} <= set(dir(sklearn_calib))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = sklearn_calib.nonsense


@pytest.mark.slow
def test_benchmarks_and_examples_import_names_that_exist():
    checkout = Path(__file__).parents[1]
    folders = [checkout / name for name in ("benchmarks", "examples", "doc")]
    missing = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_own = isinstance(node, ast.ImportFrom) and (
                node.module or ""
            ).startswith("sklearn_calib")
            if not is_own:
                continue
            module = import_module(node.module)
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                is_submodule = hasattr(module, "__path__") and find_spec(name)
                if not hasattr(module, alias.name) and not is_submodule:
                    missing.append(f"{path.name}:{node.lineno} {name}")
    assert not missing
