"""Pages and tables that follow from the registries, the docstrings and the fragments."""

import csv
import inspect
import re
from pathlib import Path

import sklearn_calib
from sklearn_calib import (
    canonical,
    datasets,
    decomposition,
    displays,
    exceptions,
    inference,
    meta,
    metrics,
    recalibrators,
    report,
    staging,
    testing,
)

# page title, module, names; the names come from the modules
API = [
    ("Scores and labels", sklearn_calib, ["canonical_proba", "canonical_labels", "log_proba"]),
    ("Calibrated models", meta, meta.__all__),
    ("Recalibrators", recalibrators, recalibrators.__all__),
    ("Measures and scorers", metrics, metrics.__all__),
    ("Tests and intervals", inference, inference.__all__),
    ("Decomposition and refinement", decomposition, decomposition.__all__),
    ("Learners seen stage by stage", staging, staging.__all__),
    ("Displays", displays, displays.__all__),
    ("Data and theory", datasets, datasets.__all__),
    ("Reports", report, ["calibration_report", "CalibrationReport", "ReportRow"]),
    ("Testing your own methods", testing, testing.__all__),
    ("Compilation ahead of the first use", sklearn_calib, ["compile_kernels"]),
    ("Warnings", exceptions, ["CalibrationWarning"]),
    ("Arrays of probabilities", canonical, ["SimplexArray"]),
]


def write(folder):
    """Write everything below doc/api and the tables of the user guide."""
    folder = Path(folder)
    _put(folder / "api" / "index.rst", _api())
    _put(folder / "user_guide" / "generated" / "recalibrators.inc", _recalibrator_table())
    _put(folder / "user_guide" / "generated" / "measures.inc", _measure_table())
    _put(folder / "whats_new.rst", _whats_new(folder / "whats_new"))
    for table in sorted((folder.parent / "benchmarks").rglob("*.csv")):
        name = f"{table.parent.name}_{table.stem}.inc"
        _put(folder / "user_guide" / "generated" / name, _result_table(table))


def _put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def first_line(thing):
    return inspect.getdoc(thing).splitlines()[0]


def _api():
    lines = ["API reference", "=============", ""]
    for title, module, names in API:
        lines += [title, "-" * len(title), "", f".. currentmodule:: {module.__name__}", ""]
        lines += [".. autosummary::", "   :toctree: generated", ""]
        lines += [f"   {name}" for name in sorted(names, key=str.lower)] + [""]
    return "\n".join(lines)


def _table(header, rows, widths="auto"):
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [header, *rows]:
        lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def _result_table(path):
    """A tracked table; what stands in every row alike, the machine, is said once below it."""
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    machine = ""
    if header[-1] == "machine":
        machine = f"\nMachine: {rows[0][-1]}.\n"
        header, rows = header[:-1], [row[:-1] for row in rows]
    wide = {"note", "difference"}  # they stay in the file
    kept = [i for i, name in enumerate(header) if name not in wide and any(r[i] for r in rows)]
    rows = [[row[i] for i in kept] for row in rows]
    widths = [min(36, max(8, *(len(row[j]) for row in rows))) for j in range(len(kept))]
    names = [re.sub("_s$", " [s]", header[i]).replace("_", " ") for i in kept]
    return _table(names, rows, widths=" ".join(map(str, widths))) + machine


def _recalibrator_table():
    yes = {True: "yes", False: ""}
    rows = [
        (
            f':class:`~sklearn_calib.recalibrators.{cls.__name__}` ``"{name}"``',
            first_line(cls),
            cls.capabilities.multiclass,
            yes[cls.capabilities.flexible],
            yes[cls.capabilities.monotone],
            yes[cls.capabilities.continuous],
            cls.capabilities.cost,
        )
        for name, cls in recalibrators.all_recalibrators().items()
    ]
    header = (
        "class and name",
        "what it does",
        "more classes",
        "flexible",
        "monotone",
        "continuous",
        "cost",
    )
    return _table(header, rows, widths="28 34 10 8 9 10 10")


def _home(function):
    """The sub-package that a measure is imported from."""
    return ".".join(function.__module__.split(".")[:2])


def _measure_table():
    rows = [
        (
            f":func:`~{_home(function)}.{name}`",
            first_line(function),
            f'``"{function.spec.scorer_name}"``',
            f"[{function.spec.range[0]:g}, {function.spec.range[1]:g}]",
            "yes" if function.spec.proper else "",
            ", ".join(function.spec.multiclass),
        )
        for name, function in metrics.all_metrics().items()
    ]
    header = ("measure", "what it is", "scorer", "range", "proper", "multiclass options")
    return _table(header, rows)


def _whats_new(folder):
    """Fragments ``<version>/<kind>.<slug>.rst``, newest version first."""
    lines = ["What's new", "==========", ""]
    versions = sorted(
        (path for path in folder.iterdir() if path.is_dir()),
        key=lambda path: tuple(int(part) for part in path.name.split(".")),
        reverse=True,
    )
    for version in versions:
        lines += [f"Version {version.name}", "-" * (8 + len(version.name)), ""]
        for kind in ("added", "changed", "fixed"):
            fragments = sorted(version.glob(f"{kind}.*.rst"))
            if fragments:
                lines += [f"**{kind.capitalize()}**", ""]
                for fragment in fragments:
                    text = fragment.read_text().strip().replace("\n", "\n  ")
                    lines += [f"- {text}", ""]
    return "\n".join(lines)
