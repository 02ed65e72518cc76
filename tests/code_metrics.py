"""Count the size and the readability of the package: ``python tests/code_metrics.py``.

`test_code_metrics.py` keeps the numbers in `LIMITS` from growing.
"""

import argparse
import ast
import contextlib
import io
import re
import sys
import tempfile
import tokenize
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from functools import cache
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from test_architecture import FILES, LAYERS, ROOT, imports, layer

from sklearn_calib._cli import build_parser

ENTRY_FILES = {"__init__", "__main__"}  # not sub-packages
RUN = 6  # lines that are equal in two places
LOSSES = {"log", "brier", "spherical", "log_loss", "brier_loss", "spherical_loss"}
#: Upper limits, which are only ever lowered.
LIMITS = {
    "tokens without annotations and line breaks": 446_487,
    "tokens per 100 code lines": 735,
    "where parameters": 0,
    "tuples that are only unpacked": 0,
    "parallel assignments that are not swaps": 2,
    "nested conditional expressions": 0,
    "vague constants": 0,
    "percent of function names of one word": 9.3,
    "percent of function names with a participle": 2.9,
    "percent of function names with of": 0.0,
    "percent of docstrings that are not imperative": 3.2,
    "files": 370,
    "row types": 30,
    "public names": 155,
    "sub-packages": 23,
    "layers": 11,
    "import cycles": 0,
    "options of audit": 29,
    "most options of another command": 21,
}
#: Lower limits, which are only ever raised.
MINIMA = {"comment lines per 100 code lines": 6.0}
#: Of the path of a call: (files, depth) at most.
CALL_PATH_LIMITS = {
    "audit": (84, 20),
    "report": (66, 15),
    "fit": (37, 18),
    "predict_proba": (15, 14),
}
#: Words that name no thing and no unit.
VAGUE = set(
    """
    MOST FEW FEWEST FAR FARTHEST LARGEST SMALLEST LEAST MANY BLOCK CELLS ROWS ROUNDING EXACT
    ENTRIES CLOSE NEAR BEYOND NEVER SHORT NARROW WIDE LONGEST SAME ALIKE EQUAL HUGE TINY
    """.split()  # noqa: SIM905
)
#: Endings of names of classes for rows, or for what is made of rows.
ROW_TYPES = (
    *("Row", "Rows", "Cells", "Sample", "Case", "Scores"),
    *("Block", "Batch", "Problem", "Job", "Data"),
)
#: Participles without the ending of most.
PARTICIPLES = set(
    """
    begun built chosen cut drawn found given held kept known left made met put read said
    seen set shown split taken thawed told worn written
    """.split()  # noqa: SIM905
)
#: Verbs that docstrings start with.
VERBS = set(
    """
    accept add advise align allow answer append apply ask assert assign average boost
    bound bring build call cast change check choose clear clip clone close collect
    combine compare compile complete compute convert copy correct count create cut
    decide decompose describe display divide do download draw drop eliminate embed emit
    encode end ensure escape estimate evaluate exchange expand explain export extract
    factor feed fetch fill filter find fit follow forget format formulate generate get
    give go group grow guard guess handle hold ignore import improve infer insert
    install integrate interpolate invert iterate join judge keep learn leave let limit
    list load locate log look lower make map mark match maximise measure merge minimise
    move multiply name normalise note number obtain offer open order parse pass pick
    plot pool predict prepare print process project provide put quote raise rank read
    recalibrate record reduce refer refit refuse register reject release remember remove
    rename repair repeat replace report require rescale reset resolve restore retrain
    return rewrite round route run sample save say scale score search see select send
    separate serialise set share shorten show shrink simplify simulate skip smooth solve
    sort split start state stop store strip subsample subtract sum summarise swap take
    tell test tie transform translate treat truncate try turn undo unpack unwrap update
    use validate vary verify visit wait walk warn watch weigh widen work wrap write
    yield
    """.split()  # noqa: SIM905
)
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path):
    return list(imports(parsed(path), path))


def name_of(path):
    return str(path.relative_to(ROOT))


@cache
def code_lines(path):
    """(number, text) of the lines that are neither blank nor comment nor docstring."""
    text = path.read_text(encoding="utf-8")
    documented = set()
    for node in ast.walk(parsed(path)):
        if (
            isinstance(node, ast.Module | DEFINITIONS)
            and ast.get_docstring(node) is not None
        ):
            documented |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    silent = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
    )
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (*silent, tokenize.ENDMARKER):
            found |= set(range(token.start[0], token.end[0] + 1))
    lines = text.splitlines()
    return [(i, lines[i - 1].strip()) for i in sorted(found - documented)]


def list_tokens(text):
    """Return the NAME, OP and NUMBER tokens of a program."""
    counted = (tokenize.NAME, tokenize.OP, tokenize.NUMBER)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token for token in tokens if token.type in counted]


@cache
def read_tokens(path):
    """Return the NAME, OP and NUMBER tokens of a file."""
    return list_tokens(path.read_text(encoding="utf-8"))


def count_tokens(path):
    """Return the number of tokens of a file.

    Unlike lines, tokens do not become fewer when statements are joined.
    """
    return len(read_tokens(path))


def count_unformatted_tokens(path):
    """Return the number of tokens without annotations, and however lines are broken.

    A longer name may need parentheses and a comma at a new end of a line.
    """
    # Not `parsed`, whose tree others read with its annotations.
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return len(list_tokens(ast.unparse(tree)))


def count_comments(path):
    """Return the number of comments that explain something to a reader."""
    directive = re.compile(r"#\s*(noqa|type:|pragma|fmt:|pyright:|isort:)|# -- ")
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline)
    return sum(
        token.type == tokenize.COMMENT and not directive.match(token.string)
        for token in tokens
    )


def percent_of_comments():
    """Return the comment lines per 100 code lines, to one decimal below."""
    lines = sum(len(code_lines(path)) for path in FILES)
    return int(1000 * sum(map(count_comments, FILES)) / lines) / 10


def count_function_tokens(path):
    """Iterate over (name, number of tokens) of the functions of a file."""
    lines = [token.start[0] for token in read_tokens(path)]
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = bisect_left(lines, node.lineno)
            last = bisect_right(lines, node.end_lineno)
            yield node.name, last - first


# -- what makes code hard to read --------------------------------------------------------------


@cache
def nodes_of_kind(*kinds):
    """Return all syntax nodes of some kinds in the package."""
    return [
        node
        for path in FILES
        for node in ast.walk(parsed(path))
        if isinstance(node, kinds)
    ]


@cache
def function_names():
    """Return the name of each function and method, without special methods."""
    names = [node.name for node in nodes_of_kind(ast.FunctionDef, ast.AsyncFunctionDef)]
    return [
        name for name in names if not (name.startswith("__") and name.endswith("__"))
    ]


def percent_of_names(condition):
    """Return the percentage of function names whose list of words fulfils a condition."""
    names = function_names()
    words = [name.strip("_").split("_") for name in names]
    return round(100 * sum(map(condition, words)) / len(names), 1)


def starts_with_participle(words):
    """Return whether a name of one or two words starts with a participle."""
    is_participle = words[0] in PARTICIPLES or re.search(r"[^e]ed$", words[0])
    return len(words) <= 2 and bool(is_participle)


def percent_not_imperative():
    """Return the percentage of docstrings of functions that do not start with a verb."""
    texts = map(ast.get_docstring, nodes_of_kind(ast.FunctionDef, ast.AsyncFunctionDef))
    first = [text.split()[0].lower() for text in texts if text and text.strip()]
    return round(100 * sum(word not in VERBS for word in first) / len(first), 1)


def count_where_parameters():
    """Return how many parameters take the name of the calling function for messages."""
    count = 0
    for node in nodes_of_kind(ast.FunctionDef, ast.AsyncFunctionDef):
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        count += sum(one.arg in ("where", "_where") for one in given)
    return count


def count_unpacked_tuples():
    """Return how many local tuples are used only as the ``*arguments`` of calls."""
    count = 0
    for function in nodes_of_kind(ast.FunctionDef, ast.AsyncFunctionDef):
        tuples, reads, starred = set(), defaultdict(list), set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                tuples |= {one.id for one in node.targets if isinstance(one, ast.Name)}
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                reads[node.id].append(id(node))
            elif isinstance(node, ast.Call):
                starred |= {
                    id(one.value) for one in node.args if isinstance(one, ast.Starred)
                }
        count += sum(
            name in reads and starred.issuperset(reads[name]) for name in tuples
        )
    return count


def count_parallel_assignments():
    """Return how many assignments give several values to several names, except swaps."""
    count = 0
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Assign) or not isinstance(
                node.value, ast.Tuple
            ):
                continue
            (target, *_) = node.targets
            if not isinstance(target, ast.Tuple):
                continue
            given = {ast.unparse(one) for one in target.elts}
            used = {ast.unparse(one) for one in node.value.elts}
            count += not given & used
    return count


def count_nested_conditions():
    """Return how many conditional expressions hold another one."""
    count = 0
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.IfExp):
                inner = (one for one in ast.walk(node) if one is not node)
                count += any(isinstance(one, ast.IfExp) for one in inner)
    return count


def count_vague_constants():
    """Return how many constants are named by a bare adjective or quantity."""
    count = 0
    for path in FILES:
        for node in parsed(path).body:
            if isinstance(node, ast.Assign):
                names = [
                    one
                    for one in ast.walk(node.targets[0])
                    if isinstance(one, ast.Name)
                ]
                count += sum(name.id.strip("_") in VAGUE for name in names)
    return count


# -- import cycles ----------------------------------------------------------------------------


@cache
def file_of(module):
    """The file of a dotted path below the package, or None."""
    place = ROOT.joinpath(*module.split(".")[1:])
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def sources(path):
    """Where the names that a file imports from the package come from: name -> module."""
    found = {}
    for module, node in imported(path):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = module
    return found


def defining(module, name):
    """The file of a name that is imported from a module: its own, or where it is passed on from."""
    path = file_of(f"{module}.{name}") or file_of(module)
    if path is not None and path.name == "__init__.py" and name in sources(path):
        passed = sources(path)[name]
        if passed != module:
            return defining(passed, name)
    return path


def depends(path):
    """The files of the package that a file imports from, lazily or not."""
    found = set()
    for module, node in imported(path):
        if module.split(".")[0] != "sklearn_calib":
            continue
        names = (
            [a.name for a in node.names] if isinstance(node, ast.ImportFrom) else [""]
        )
        found |= {defining(module, name) for name in names}
    return found - {None, path}


def find_import_cycles():
    """Sets of files, each of which imports the others, directly or through others."""
    graph = {path: depends(path) for path in FILES}
    order, seen = [], set()

    def visit(path, edges, into):
        waiting = [(path, iter(edges[path]))]
        seen.add(path)
        while waiting:
            one, ahead = waiting[-1]
            after = next((other for other in ahead if other not in seen), None)
            if after is None:
                into.append(one)
                waiting.pop()
            else:
                seen.add(after)
                waiting.append((after, iter(edges[after])))

    for path in FILES:
        if path not in seen:
            visit(path, graph, order)
    back = {path: [] for path in FILES}
    for path, targets in graph.items():
        for target in targets:
            back[target].append(path)
    seen.clear()
    found = []
    for path in reversed(order):
        if path not in seen:
            together = []
            visit(path, back, together)
            if len(together) > 1:
                found.append(sorted(map(name_of, together)))
    return found


# -- what is said several times ---------------------------------------------------------------


def repeats():
    """(file, line, file, line, number of lines) of runs of six or more equal lines.

    Imports, and lines of brackets alone, do not count.
    """
    texts, places = {}, defaultdict(list)
    for path in FILES:
        skipped = set()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                skipped |= set(range(node.lineno, node.end_lineno + 1))
        kept = [
            (i, t)
            for i, t in code_lines(path)
            if i not in skipped and t.strip("()[]{},:")
        ]
        texts[path] = kept
        for start in range(len(kept) - RUN + 1):
            places[tuple(text for _, text in kept[start : start + RUN])].append(
                (path, start)
            )
    found = []
    for several in places.values():
        for (a, i), (b, j) in combinations(several, 2):
            before = i > 0 and j > 0 and texts[a][i - 1][1] == texts[b][j - 1][1]
            if before or (a == b and abs(i - j) < RUN):
                continue
            length = RUN
            ends = texts[a][i + length :], texts[b][j + length :]
            for (_, one), (_, other) in zip(*ends, strict=False):
                if one != other:
                    break
                length += 1
            found.append(
                (name_of(a), texts[a][i][0], name_of(b), texts[b][j][0], length)
            )
    return sorted(found, key=lambda one: -one[-1])


def classes():
    """Files of each class that is defined at the top of a file."""
    found = defaultdict(list)
    for path in FILES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(name_of(path))
    return found


def row_types():
    """file and name of each class for rows or for what is made of them."""
    return [
        (file, name)
        for name, files in classes().items()
        for file in files
        if name.endswith(ROW_TYPES)
    ]


def named_losses():
    """file:line of a loss named by a string.

    Not those of docstrings, of defaults and of lists of names; in `export` "log" is a
    function.
    """
    found = set()
    for path in FILES:
        if layer(path) == "export":
            continue
        quiet = set()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.arguments):
                quiet |= {id(one) for one in [*node.defaults, *node.kw_defaults]}
            elif (
                isinstance(node, ast.Assign)
                and ast.unparse(node.targets[0]) == "__all__"
            ):
                quiet |= {id(one) for one in ast.walk(node.value)}
        for node in ast.walk(parsed(path)):
            if (
                isinstance(node, ast.Constant)
                and id(node) not in quiet
                and node.value in LOSSES
            ):
                found.add(f"{name_of(path)}:{node.lineno}")
    return sorted(found)


def public_names():
    """Return what the public sub-packages and modules list for users, each once.

    What `extending` repeats for authors of methods is not counted.
    """
    subpackages = sorted(
        {layer(path) for path in FILES if layer(path)[0] != "_"} - {"extending"}
    )
    modules = [
        import_module(f"sklearn_calib.{subpackage}") for subpackage in subpackages
    ]
    return {
        (name, id(getattr(m, name)))
        for m in modules
        for name in getattr(m, "__all__", [])
    }


# -- the path of a call ------------------------------------------------------------------------


class Way(NamedTuple):
    """The functions of the package that a call passes, without comprehensions and lambdas."""

    calls: Counter  # of (file, line, name)
    deepest: list  # functions, the outermost first
    # the functions around the first of `_kernels`, and that one; empty without any
    before: list
    # those of other sub-packages that are called while `_show` writes HTML
    written: set

    @property
    def files(self):
        return {file for file, *_ in self.calls}

    def __str__(self):
        counts = (
            len(self.calls),
            sum(n == 1 for n in self.calls.values()),
            len(self.files),
        )
        counts += len(self.deepest), len(self.before), len(self.written)
        return "".join(f"{count:>10}" for count in counts)


def trace_call(call):
    """The path of a call: its functions by `sys.setprofile`."""
    calls, open_, deepest, before, written = Counter(), [], [], [], set()

    def note(frame, event, _):
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(
            str(ROOT)
        ):
            return
        if event == "return":
            open_.pop()
            return
        file = name_of(Path(code.co_filename))
        function = file, code.co_firstlineno, code.co_name
        open_.append(function)
        if code.co_name[0] != "<":
            calls[function] += 1
            subpackage = file.split("/")[0]
            if subpackage not in ("_show", "report") and any(
                f == "_show/_html.py" for f, *_ in open_
            ):
                written.add(function)
        if len(open_) > len(deepest):
            deepest[:] = open_
        if not before and file.startswith("_kernels/"):
            before[:] = open_

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Way(calls, deepest, before, written)


@cache
def measure_call_paths():
    """The paths of the most frequent calls on 600 rows of two classes, each the second time."""
    from sklearn.linear_model import LogisticRegression

    from sklearn_calib._cli import main as command
    from sklearn_calib.classifiers import CalibratedModel
    from sklearn_calib.datasets import make_overconfident
    from sklearn_calib.report import calibration_report

    proba, y = make_overconfident(2, 600)
    X = proba - 0.5
    model = CalibratedModel(LogisticRegression()).fit(X, y)
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        table, page = Path(folder, "rows.csv"), Path(folder, "page.html")
        lines = ["y,p", *(f"{hit},{p}" for hit, p in zip(y, proba[:, 1], strict=True))]
        table.write_text("\n".join(lines), encoding="utf-8")
        options = "--label", "y", "--prob", "p", "--out", str(page), "--no-advice"
        calls = {
            "audit": lambda: command(["audit", str(table), *options]),
            "report": lambda: calibration_report(y, proba).to_html(page),
            "fit": lambda: CalibratedModel(LogisticRegression()).fit(X, y),
            "predict_proba": lambda: model.predict_proba(X),
        }
        for call in calls.values():
            call()  # what is imported when it is first needed
        return {name: trace_call(call) for name, call in calls.items()}


def options():
    """How many options each command has, all spellings counted."""
    (commands,) = (
        a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction)
    )
    return {
        name: sum(
            option not in ("-h", "--help") for option in command._option_string_actions
        )
        for name, command in commands.choices.items()
    }


COUNTS = {
    "tokens": lambda: sum(count_tokens(path) for path in FILES),
    "tokens without annotations and line breaks": lambda: sum(
        count_unformatted_tokens(path) for path in FILES
    ),
    "code lines": lambda: sum(len(code_lines(path)) for path in FILES),
    "tokens per 100 code lines": lambda: (
        100
        * sum(map(count_tokens, FILES))
        // sum(len(code_lines(path)) for path in FILES)
    ),
    "comment lines per 100 code lines": percent_of_comments,
    "where parameters": count_where_parameters,
    "tuples that are only unpacked": count_unpacked_tuples,
    "parallel assignments that are not swaps": count_parallel_assignments,
    "nested conditional expressions": count_nested_conditions,
    "vague constants": count_vague_constants,
    "percent of function names of one word": lambda: percent_of_names(
        lambda words: len(words) == 1
    ),
    "percent of function names with a participle": lambda: percent_of_names(
        starts_with_participle
    ),
    "percent of function names with of": lambda: percent_of_names(
        lambda words: "of" in words
    ),
    "percent of docstrings that are not imperative": percent_not_imperative,
    "files": lambda: len(FILES),
    "sub-packages": lambda: len({path.parent for path in FILES}) - 1,
    "layers": lambda: len([layer for layer in LAYERS if not ENTRY_FILES & set(layer)]),
    "import cycles": lambda: len(find_import_cycles()),
    "pairs of places that repeat six or more lines": lambda: len(repeats()),
    "classes": lambda: sum(map(len, classes().values())),
    "row types": lambda: len(row_types()),
    "names of classes in several files": lambda: sum(
        len(f) > 1 for f in classes().values()
    ),
    "places where a loss is named by a string": lambda: len(named_losses()),
    "public names": lambda: len(public_names()),
    "options of audit": lambda: options()["audit"],
    "most options of another command": lambda: max(
        number for name, number in options().items() if name != "audit"
    ),
}


def main():
    for name, count in COUNTS.items():
        print(f"{count():>7,}  {name}")
    heads = "functions", "once", "files", "depth", "before", "written"
    print("the path of", " " * 6, *(f"{head:>9}" for head in heads))
    for name, found in measure_call_paths().items():
        print(f"  {name:<15}{found}")
    if "-v" in sys.argv:
        print(
            "row types:", *(f"{file} {name}" for file, name in row_types()), sep="\n  "
        )
        for cycle in find_import_cycles():
            print("cycle:", ", ".join(cycle))
        for one, line, other, at, length in repeats():
            print(f"{length} lines: {one}:{line} and {other}:{at}")
        for name, files in sorted(classes().items()):
            if len(files) > 1:
                print(f"class {name}: {', '.join(files)}")
        print("losses:", *named_losses(), sep="\n  ")
        for name, found in measure_call_paths().items():
            for what in ("deepest", "before", "written"):
                print(f"{what} of {name}:", *getattr(found, what), sep="\n  ")


if __name__ == "__main__":
    main()
