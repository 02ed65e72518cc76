"""Words and forms that are not used, in docstrings, comments, messages and pages."""

import ast
import io
import re
import textwrap
import tokenize
from functools import cache
from pathlib import Path

import pytest
import test_architecture
from cases import run_every_case

ROOT = Path(__file__).parents[1]
PACKAGE = test_architecture.ROOT
DOC = ROOT / "doc"

FOLDERS = {"package": PACKAGE, "doc": DOC, "examples": ROOT / "examples"}
FOLDERS["tests"] = ROOT / "tests"

_DEGREES = r"(longer|better|worse|fewer|more|less|further|later|larger|smaller|wider)\b"
_PARTS = r"(column|row|rows|entry|array|panel|file|line|copy|bytes|curve)"
_WHOLES = (
    r"(class|row|stage|fold|bin|panel|method|model|measure|feature|cell|recalibrator)"
)

#: Pattern -> what to write in its place.
WORDS = {
    r"(?<!\")\b[Rr]efus(e|es|ed|ing|als?)\b": "reject, or raise an error",
    r"\b[Cc]ures?\b": "hint",
    r"\b[Hh]onest(y|ly)?\b": "true, or calibrated",
    r"\b(whoever|Whoever|[Nn]obody|[Aa]nybody)\b": "a user, a caller, or a passive",
    r"\b([Dd]oors?|[Rr]ooms?)\b(?! :)(?! for it\")": "the thing itself: input validation, space",
    r"(?<!who )\b(says|tells|asks|knows|speaks|remembers)\b": "a verb for a thing: shows, has",
    rf"(?<![Tt]here )\b(is|are|was|were) no (?!{_DEGREES}|one\b|such\b|reason\b)[a-z]": (
        "is not a"
    ),
    r"(?<![\w.)\]\"'/*:-])\.(?!632)\d": "a leading zero",
    r"\b(None|NaN|[Ii]nfinite|ValueError|[Aa]lso|[Ee]mpty) where\b": "if",
    rf"\b{_PARTS} a {_WHOLES}\b": "one column per class",
}
#: Messages: "expected no X, got one" and others that do not name what was found.
UNCLEAR_MESSAGE = re.compile(r"^expected no |got (both|it|them|once)( \d+ times)?$")


def read_docstrings(tree):
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node):
            yield "\n\n".join(
                part
                for part in ast.get_docstring(node).split("\n\n")
                if ">>>" not in part
            )


def read_comments(source):
    """Iterate over comments; those of consecutive lines are one text."""
    lines, last = [], None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if lines and token.start[0] != last + 1:
                yield " ".join(lines)
                lines = []
            lines.append(token.string.lstrip("#: "))
            last = token.start[0]
    yield " ".join(lines)


def read_literal(node):
    """Return the text of a string; what is filled in at run time is an ellipsis."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(read_literal(part) for part in node.values)
    return "…"


def read_messages(tree):
    """Iterate over the messages of errors and warnings, as a user reads them."""
    names = {"invalid_input", "invalid_option", "invalid_field", "warn_calibration"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = {word.arg: read_literal(word.value) for word in node.keywords}
            if name in names and {"expected", "sentence"} & {*given}:
                rule = f"expected {given.get('expected')}, got {given.get('got', '…')}"
                yield given.get("sentence", rule)
                yield given.get("hint", "")


def read_page(source):
    """Return the text of a page without its code."""
    source = re.sub(r"(?ms)^```.*?^```", "", source)
    code = r"(?m)^( *)(\.\. code-block::.*|.*[^:\n]::|\.\. [a-z:]+::.*)\n(\s*\n|\1 +\S.*\n)+"
    return re.sub(r"`[^`]*`", "", re.sub(code, "\n", source))


@cache
def read_texts(folder):
    """Return (file, text) of the docstrings, comments, messages and pages of a folder."""
    texts = []
    for path in sorted(FOLDERS[folder].rglob("*")):
        if path.suffix in (".rst", ".inc") and "generated" not in path.parts:
            texts.append((path, read_page(path.read_text(encoding="utf-8"))))
        elif path.suffix == ".py" and path.name != "test_plain_words.py":
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source)
            found = [*read_docstrings(tree), *read_comments(source)]
            if folder == "package":
                found += read_messages(tree)
            # Names of functions and values in backticks are not words of a sentence.
            texts += [(path, re.sub(r"`[^`]*`", "", text)) for text in found]
    return texts


def find_words(texts):
    """Return each use of a word or form in `WORDS`, with its file."""
    found = []
    for path, text in texts:
        text = " ".join(text.split())
        for pattern, better in WORDS.items():
            for match in re.finditer(pattern, text):
                near = text[max(0, match.start() - 40) : match.end() + 40]
                found.append(f"{path.name}: write {better}: {near!r}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_words(folder):
    found = find_words(read_texts(folder))
    assert not found, "\n" + "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_words_of_the_pages_at_the_root(name):
    text = read_page((ROOT / name).read_text(encoding="utf-8"))
    assert not find_words([(ROOT / name, text)])


@pytest.mark.slow
def test_messages_name_what_was_found():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        texts = read_messages(ast.parse(path.read_text(encoding="utf-8")))
        found += [
            f"{path.name}: {text}" for text in texts if UNCLEAR_MESSAGE.search(text)
        ]
    assert not found, "\n" + "\n".join(found)


@run_every_case(
    "text",
    [
        "Labels are refused.",
        "Whoever reads it",
        "what is no array",
        "the level is .05",
        "None where it is missing",
        "The report says it.",
        "one column a class",
    ],
)
def test_each_form_is_found(text):
    source = (
        f'def f():\n    """Return it.\n\n    {text}\n    """\n    x = 1  # {text}\n'
    )
    tree = ast.parse(source)
    for read in (read_docstrings(tree), read_comments(source)):
        assert find_words([(ROOT, part) for part in read])


def test_other_uses_are_not_found():
    text = """There is no bandwidth. It is no longer 0.5, and p is 0.632. The place where
    it lies; `x.refuses` has [0.5, .5].""".replace(", .5", "")
    assert not find_words([(ROOT, re.sub(r"`[^`]*`", "", text))])
    page = "Text::\n\n    it says .5\n\nand more.\n\n.. code-block:: python\n\n    x = .5\n"
    assert not find_words([(ROOT, read_page(page))])


def test_messages_are_read():
    source = textwrap.dedent("""
        raise invalid_input(expected="no X", got="one", hint="Leave it out")
        raise invalid_input(expected="x", got="both", sentence="x and y differ")
    """)
    texts = [*read_messages(ast.parse(source))]
    assert texts == ["expected no X, got one", "Leave it out", "x and y differ", ""]
    assert [bool(UNCLEAR_MESSAGE.search(text)) for text in texts] == [True] + [
        False
    ] * 3
