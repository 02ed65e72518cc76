"""Pages and tables that follow from the registries, the docstrings and the fragments."""

import argparse
import csv
import inspect
import re
from pathlib import Path

import _api
import _export
import _layers
import _messages
from changelog import OVERVIEW, changes

from sklearn_calib import metrics, recalibrators
from sklearn_calib._cli import build_parser as cli_parser
from sklearn_calib._cli._messages import MEANING_BY_EXIT_CODE


def write(folder):
    """Write everything below doc/api and the tables of the user guide."""
    folder = Path(folder)
    pages = _api.pages()
    for name, text in pages.items():
        _put(folder / "api" / f"{name}.rst", text)
    kept = {*pages, *_api.documented()}
    for page in (folder / "api").rglob("*.rst"):
        if page.stem not in kept:  # of an earlier build
            page.unlink()
    _put(
        folder / "user_guide" / "generated" / "recalibrators.inc", _recalibrator_table()
    )
    _put(folder / "user_guide" / "generated" / "arena.inc", _arena_table())
    _put(folder / "user_guide" / "generated" / "measures.inc", _measure_table())
    _put(folder / "user_guide" / "generated" / "errors.inc", _error_tables())
    _put(folder / "user_guide" / "generated" / "exit_codes.inc", exit_codes())
    _put(
        folder / "user_guide" / "generated" / "options_of_commands.inc",
        options_of_commands(),
    )
    for name, text in command_tables().items():
        _put(folder / "user_guide" / "generated" / f"command_{name}.inc", text)
    for name, text in _export.tables(_table).items():
        _put(folder / "user_guide" / "generated" / name, text)
    readme = (folder.parent / "README.md").read_text(encoding="utf-8")
    _put(folder / "user_guide" / "generated" / "picture.inc", _picture(readme))
    _put(folder / "user_guide" / "generated" / "proof.inc", convert_proof(readme))
    _put(folder / "extending" / "generated" / "layers.svg", _layers.drawing())
    _put(
        folder / "extending" / "generated" / "orientation.inc", make_orientation_table()
    )
    _put(folder / "whats_new.rst", _whats_new(folder / "whats_new"))
    for table in sorted((folder.parent / "benchmarks").rglob("*.csv")):
        name = f"{table.parent.name}_{table.stem}.inc"
        _put(folder / "user_guide" / "generated" / name, _result_table(table))


def _picture(readme):
    """The picture of the README, with its words for those who do not see it."""
    words, path = re.search(r"(?m)^!\[(.+)\]\(doc/(.+)\)$", readme).groups()
    return (
        f".. image:: /{path}\n   :alt: {words}\n   :width: 85%\n   :class: dark-light\n"
    )


def convert_proof(readme):
    """Return what the README shows between its picture and its quick start, as RST."""
    text = readme[readme.index("<!-- written by") : readme.index("## Quick start")]
    text = re.sub(r"<!--.*-->\n", "", text)
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    text = re.sub(r"`([^`]+)`", r"``\1``", text)
    text = re.sub(r"(?m)^## (.+)$", lambda m: f"{m[1]}\n{'-' * len(m[1])}", text)
    return re.sub(r"(?m)(^\|.*\|\n)+", _convert_table, text)


def _convert_table(match):
    """Return a table in Markdown as RST."""
    header, _, *rows = (
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in match[0].splitlines()
    )
    return _table(header, rows)


def make_orientation_table():
    """Return the sentences of the docstrings of the sub-packages as a table."""
    rows = []
    for part, sentences in _layers.read_orientation().items():
        cells = [f"`{part}`", *sentences]
        rows.append([re.sub("`+([^`]+)`+", r"``\1``", cell) for cell in cells])
    header = ["sub-package", "purpose", "imports", "where to start"]
    return _table(header, rows, widths="14 34 28 24")


def command_tables():
    """The options of each command of the command line, as tables of their groups."""
    (commands,) = (
        a for a in cli_parser()._actions if isinstance(a, argparse._SubParsersAction)
    )
    return {name: _option_tables(parser) for name, parser in commands.choices.items()}


def options_of_commands():
    """Which commands that read tables have which option about their columns and their reading."""
    (commands,) = (
        a for a in cli_parser()._actions if isinstance(a, argparse._SubParsersAction)
    )
    found: dict[str, list[str]] = {}
    for name, parser in commands.choices.items():
        for group in parser._action_groups:
            for action in (
                group._group_actions if group.title in ("columns", "reading") else ()
            ):
                found.setdefault(action.option_strings[0], []).append(name)
    readers = [
        name
        for name in commands.choices
        if any(name in names for names in found.values())
    ]
    rows = [
        (f"``{option}``", *("yes" if name in names else "" for name in readers))
        for option, names in found.items()
        if len(names) > 1
    ]
    return _table(("option", *(f"``{name}``" for name in readers)), rows)


def exit_codes():
    """What the exit codes of the command line mean."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 15 85", ""]
    for code, meaning in {"exit code": "meaning", **MEANING_BY_EXIT_CODE}.items():
        lines += [f"   * - {code}", f"     - {meaning}"]
    return "\n".join([*lines, ""])


def _option_tables(parser):
    lines = []
    for group in parser._action_groups:
        actions = [
            action
            for action in group._group_actions
            if "--help" not in action.option_strings
        ]
        if not actions:
            continue
        title = {"positional arguments": "files", "options": "options"}.get(
            group.title, group.title
        )
        lines += [".. list-table::", "   :header-rows: 1", "   :widths: 30 70", ""]
        lines += [f"   * - {title}", "     - meaning"]
        for action in actions:
            names = ", ".join(action.option_strings)
            given = (
                "" if action.nargs == 0 else f" {action.metavar or _choices(action)}"
            )
            text = action.help % {**vars(action), "prog": parser.prog}
            text = re.sub(r"([*|])", r"\\\1", text)
            text = re.sub(r'"[^"]+"|--[a-z][a-z-]*|[a-z0-9]+://', _as_code, text)
            lines += [f"   * - ``{(names + given).strip()}``", f"     - {text}"]
        lines.append("")
    return "\n".join(lines) or "No options.\n"


def _as_code(match):
    code = match[0].replace("\\", "")
    return f"``{code}``"


def _choices(action):
    return "|".join(action.choices or [])


def _put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def first_line(thing):
    return inspect.getdoc(thing).splitlines()[0]


def _table(header, rows, widths="auto"):
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [header, *rows]:
        lines += [
            f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)
        ]
    return "\n".join(lines) + "\n"


def _result_table(path):
    """A tracked table; what stands in every row alike, the machine, is said once below it."""
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    machine = ""
    if header[-1] == "machine":
        machine = f"\nMachine: {rows[0][-1]}.\n"
        header, rows = header[:-1], [row[:-1] for row in rows]
    wide = {"note", "difference"}  # they stay in the file
    kept = [
        i
        for i, name in enumerate(header)
        if name not in wide and any(r[i] for r in rows)
    ]
    rows = [[re.sub(r"([*|])", r"\\\1", row[i]) for i in kept] for row in rows]
    widths = [min(36, max(8, *(len(row[j]) for row in rows))) for j in range(len(kept))]
    names = [re.sub("_s$", " [s]", header[i]).replace("_", " ") for i in kept]
    return _table(names, rows, widths=" ".join(map(str, widths))) + machine


def _error_tables():
    """Every error of the package, by the module that raises it."""
    errors = [found for found in _messages.messages() if found.kind == "error"]
    lines = []
    for module in dict.fromkeys(found.module for found in errors):
        rows = [
            (_literal(found.text), _literal(found.hint))
            for found in errors
            if found.module == module
        ]
        title = f"``sklearn_calib.{module}``"
        lines += [
            title,
            "~" * len(title),
            "",
            _table(("rule, or message", "what to do"), rows),
        ]
    return "\n".join(lines)


def _literal(text):
    return re.sub(r"([\\`*|_])", r"\\\1", " ".join(text.split()))


def _arena(classes):
    """Rows of the registered methods in the table of CalArena's protocol, the best first."""
    path = Path(__file__).parents[1] / "benchmarks" / "arena" / "leaderboard.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            r
            for r in csv.DictReader(file)
            if (r["classes"], r["rows"]) == (classes, "all")
        ]
    return {
        r["method"]: r for r in rows if r["method"] in recalibrators.all_recalibrators()
    }


def _in_arena(classes):
    return {
        name: f"{float(row['log loss %']):+.0f} %, {float(row['hurt, log loss %']):.0f} %"
        for name, row in _arena(classes).items()
    }


def _arena_table(best=10):
    """The best registered methods for two classes, where combinators are "default", and several."""
    rows, combinators = [], ("one_vs_rest", "top_label")
    for classes in ("two", "several"):
        kept = [
            pair
            for pair in _arena(classes).items()
            if classes == "several" or pair[0] not in combinators
        ]
        for name, row in kept[:best]:
            interval = f"{float(row['low, log loss']):.2f} to {float(row['high, log loss']):.2f}"
            numbers = ("log loss %", "hurt, log loss %", "Brier %", "hurt, Brier %")
            rows.append(
                (
                    classes,
                    f'``"{name}"``',
                    f"{float(row['wins, log loss']):.2f} ({interval})",
                    f"{float(row['wins, Brier']):.2f}",
                    *(f"{float(row[number]):.1f}" for number in numbers),
                    f"{float(row['seconds']):.2g}"
                    if row["seconds"]
                    else "",  # kept losses
                )
            )
    header = (
        "classes",
        "method",
        "wins, log loss",
        "wins, Brier",
        "log loss [%]",
        "hurt [%]",
    )
    header += ("Brier [%]", "hurt [%]", "time [s]")
    return _table(header, rows)


def _recalibrator_table():
    two, several = _in_arena("two"), _in_arena("several")
    rows = [
        (
            f':class:`~sklearn_calib.recalibrators.{cls.__name__}` ``"{name}"``',
            first_line(cls),
            cls.capabilities.multiclass,
            ", ".join(
                name.replace("array_api", "array API")
                for name in (
                    "nonparametric_shape",
                    "monotone",
                    "continuous",
                    "array_api",
                )
                if getattr(cls.capabilities, name)
            ),
            cls.capabilities.cost,
            two.get(name, ""),
            several.get(name, ""),
        )
        for name, cls in recalibrators.all_recalibrators().items()
    ]
    header = (
        "class and name",
        "description",
        "several classes",
        "properties of the map",
        "cost",
        "arena, two classes",
        "arena, several",
    )
    return _table(header, rows, widths="24 32 10 12 8 9 9")


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
    header = (
        "measure",
        "description",
        "scorer",
        "range",
        "proper",
        "multiclass options",
    )
    return _table(header, rows)


def _whats_new(folder):
    """The changes of every version, the newest first."""
    lines, last = ["What's new", "==========", ""], ""
    for version, kind, texts in changes(folder):
        if version != last:
            lines += [f"Version {version}", "-" * (8 + len(version)), ""]
        last = version
        if kind == OVERVIEW:
            lines += [*texts, ""]
            continue
        lines += [f"**{kind.capitalize()}**", ""]
        for text in texts:
            lines += ["- " + text.replace("\n", "\n  "), ""]
    return "\n".join(lines)
