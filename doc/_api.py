"""The pages of the API reference: by task, each name where it is imported from."""

import importlib
import inspect
import pkgutil
import re

from offered import REPEATED, RETURNED, names_of
from sklearn.base import BaseEstimator

import sklearn_calib
from sklearn_calib.displays import Display
from sklearn_calib.metrics import Measure, ProperLoss

# tasks as in the user guide, the parts of the package in them, and their titles; a
# public part that is not named here follows the last
TASKS = {
    "Diagnose": {
        "metrics": "Measures and scorers",
        "inference": "Tests and intervals",
        "report": "Reports",
        "displays": "Displays",
        "groups": "Groups of rows",
        "decomposition": "Decomposition and refinement",
    },
    "Repair": {
        "classifiers": "Calibrated models",
        "recalibrators": "Recalibrators",
        "linear": "Linear classifiers",
    },
    "Ship and scale": {
        "export": "Maps outside Python",
        "summary": "Summaries of large data",
        "": "Compilation ahead of the first use",
    },
    "Decide and watch": {
        "decisions": "Decisions",
        "monitoring": "Monitoring in production",
    },
    "Science and methods of your own": {
        "datasets": "Data whose truth is known",
        "theory": "Theory",
        "staged": "Learners seen stage by stage",
        "testing": "Testing your own methods",
        "_validation": "Scores, labels and arrays of probabilities",
        "exceptions": "Errors and warnings",
    },
}
#: Names of modules whose `__all__` lists others.
NAMES = {
    "": ["compile_kernels"],
    "_validation": ["canonical_labels", "canonical_proba", "log_proba"],
}
_RETURNED = {name for names in RETURNED.values() for name in names.split()}
_WRITTEN = {
    "Capabilities",
    "Display",
    "Measure",
    "ProperLoss",
    "Recalibrator",
    "Staging",
}
_RESULTS = _RETURNED - _WRITTEN  # not what methods of your own are written against
FIRST = [
    "CalibratedModel",
    "RefineThenCalibrateCV",
    "report.calibration_report",
    "displays.ReliabilityDisplay",
    "inference.calibration_test",
    "metrics.expected_calibration_error",
    "metrics.log_loss",
    "metrics.get_scorer",
    "recalibrators.TemperatureScaling",
    "recalibrators.PlattScaling",
    "recalibrators.IsotonicCalibration",
    "recalibrators.PriorShift",
    "export.to_sql",
    "summary.summarize",
    "decisions.decision_curve",
    "monitoring.CalibrationMonitor",
]


def _names(module):
    """The public names of a part of the package, each as users import it."""
    home = importlib.import_module(
        f"sklearn_calib.{module}" if module else "sklearn_calib"
    )
    names = NAMES.get(module) or [
        n for n in names_of(module) if callable(getattr(home, n))
    ]
    offered = sklearn_calib.__all__
    found = [
        f"sklearn_calib.{n}" if n in offered else f"{home.__name__}.{n}" for n in names
    ]
    return sorted(found, key=lambda name: name.rpartition(".")[2].lower())


def tasks():
    """(task, {title of a page: names}), in the order of the reference."""
    found = [entry.name for entry in pkgutil.iter_modules(sklearn_calib.__path__)]
    known = {module for parts in TASKS.values() for module in parts} | set(REPEATED)
    *first, (last, parts) = TASKS.items()
    rest = {
        n: n.capitalize() for n in found if not n.startswith("_") and n not in known
    }
    # for users
    rest = {module: title for module, title in rest.items() if _names(module)}
    for task, modules in [*first, (last, parts | rest)]:
        yield task, {title: _names(module) for module, title in modules.items()}


def documented():
    """All names of the reference."""
    return [name for _, parts in tasks() for names in parts.values() for name in names]


def _thing(name):
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def _is_called(name):
    """Whether users call it, rather than being given it or writing one of its kind."""
    thing = _thing(name)
    if name.rpartition(".")[2] in _RETURNED:
        return False
    called = (BaseEstimator, Display, ProperLoss)
    plain = not inspect.isclass(thing) or isinstance(thing, Measure)
    return plain or (issubclass(thing, called) and thing not in (Display, ProperLoss))


def _list(names, folder=None, home=""):
    """Names with their first lines: of the module `home` short, others as they are imported."""
    lines = [".. autosummary::", *([f"   :toctree: {folder}"] if folder else []), ""]
    short = ["~" if name.rpartition(".")[0] == home else "" for name in names]
    return [
        *lines,
        *(f"   {s}{name}" for s, name in zip(short, names, strict=True)),
        "",
    ]


def pages():
    """One page per part of the package, what is called before what is returned; their index."""
    written = {}
    index = [
        *(
            ".. title:: API reference: temperature scaling, Platt scaling, ECE and more",
            "",
        ),
        *("API reference", "=============", ""),
        *(
            "Estimators follow scikit-learn: ``fit``, ``predict_proba``, ``get_params``.",
            "",
        ),
        *("The first names", "---------------", "", *_list(_full(FIRST))),
    ]
    for task, parts in tasks():
        index += [task, "-" * len(task), "", ".. toctree::", "   :hidden:"]
        index += [f"   :caption: {task}", ""]
        index += [f"   {_file(title)}" for title in parts] + [""]
        for title, names in parts.items():
            links = ", ".join(
                f":py:obj:`~{name}`" for name in names if _is_called(name)
            )
            links = links or ", ".join(f":py:obj:`~{name}`" for name in names)
            index += [f"* :doc:`{_file(title)}` (``{_home(names)}``): {links}"]
            written[_file(title)] = _page(title, names)
        index.append("")
    return {"index": "\n".join(index), **written}


def _full(names):
    return [f"sklearn_calib.{name}" for name in names]


def _file(title):
    return re.sub("[^a-z]+", "_", title.lower())


def _home(names):
    """The module that most of them are imported from."""
    homes = [name.rpartition(".")[0] for name in names]
    return max(homes, key=homes.count)


def _page(title, names):
    called = [name for name in names if _is_called(name)]
    returned = [name for name in names if name not in called]
    home = _home(names)
    said = (
        ""
        if all(n.rpartition(".")[0] == home for n in names)
        else ", but for names in full"
    )
    lines = [title, "=" * len(title), "", f"Imported from ``{home}``{said}."]
    lines += ["", *_list(called or returned, "generated", home)]
    if called and returned:
        heading = (
            "What these return, special cases, and protocols for methods of your own"
        )
        lines += [heading, "-" * len(heading), "", *_list(returned, "generated", home)]
    return "\n".join(lines)


def add_fields(app, what, name, thing, options, lines):
    """What the result of a function holds, below it on its page (an autodoc event)."""
    if not inspect.isfunction(thing) or "." in thing.__qualname__:
        return
    annotation = str(thing.__annotations__.get("return", ""))
    for found in sorted(_RESULTS & set(re.findall(r"\w+", annotation))):
        (path,) = (one for one in documented() if one.rpartition(".")[2] == found)
        lines += [
            f".. rubric:: What a :py:obj:`~{path}` holds",
            "",
            *_fields(_thing(path)),
            "",
        ]


def _fields(cls):
    """The lines of the docstring that describe the fields, or what it states and their names."""
    text = inspect.getdoc(cls)
    if found := re.search(
        r"(?s)(?:Attributes|Parameters)\n-+\n(.*?)(?=\n\n\S|\Z)", text
    ):
        return _listed(found[1].splitlines())
    names = ", ".join(f"``{name}``" for name in getattr(cls, "_fields", ()))
    return [text.splitlines()[0], *(["", f"Its fields are {names}."] if names else [])]


def _listed(lines):
    """Entries of a section of numpydoc as a list."""
    listed = []
    for line in lines:
        if line and line[0] != " ":
            name, _, kind = line.partition(" : ")
            listed += ["", f"* **{name}**" + (f" ({kind})" if kind else "")]
        elif line:
            listed.append(
                f"  {line.strip()}"
                if listed[-1][0] == " "
                else f"  \u2013 {line.strip()}"
            )
    return listed
