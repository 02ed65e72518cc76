"""Sources named in docstrings, as in "Hu, Jambulapati, Tian, Yang (2024)", and the bibliography.

Docstrings are read in a terminal too, so they name a source in words. The documentation
turns the year into a link to the entry of `references.bib`; a test demands that there
is exactly one.
"""

import re
import unicodedata
from collections import namedtuple
from functools import cache
from pathlib import Path

BIBLIOGRAPHY = Path(__file__).parent / "references.bib"

Entry = namedtuple("Entry", "key surnames year title")

_NAME = r"(?:(?:Van|Le) )?[A-ZÀ-Ž][\w\-]+(?: Filho)?"
_NAMES = rf"(?P<names>{_NAME}(?:(?:,| and)\s+{_NAME})*)(?P<others> et al\.)?"
SOURCE = re.compile(rf"{_NAMES}\s+\((?P<year>(?:19|20)\d\d)\)")
UNNAMED = re.compile(
    r'"(?P<title>[^"]+)"\s+\((?P<year>(?:19|20)\d\d), submitted\s+without names\)'
)


# Each of 1,400 docstrings is compared with them.
@cache
def entries(path=BIBLIOGRAPHY):
    """The entries of the bibliography, in its order."""
    found = []
    for key, body in re.findall(
        r"@\w+\{([^,]+),\n(.*?)\n\}", Path(path).read_text(encoding="utf-8"), re.S
    ):
        field = dict(re.findall(r"^  (\w+) = \{(.*)\},?$", body, re.M))
        people = [part.split(",")[0] for part in field["author"].split(" and ")]
        names = tuple(_plain(person) for person in people)
        found.append(Entry(key, names, field["year"], _plain(field["title"])))
    return found


def sources(text):
    """(match, what is said after it) of each source that `text` names."""
    for match in [*SOURCE.finditer(text), *UNNAMED.finditer(text)]:
        yield match, text[match.end() : match.end() + 300]


def entry_of(match, after, known):
    """The one entry that is meant; several works of one year are told apart by the title."""
    if match.re is UNNAMED:
        named = [e for e in known if _words(e.title) == _words(_plain(match["title"]))]
    else:
        surnames = tuple(
            _plain(name) for name in re.split(r",\s+|\s+and\s+", match["names"])
        )
        shown = len(surnames) if match["others"] else None
        named = [
            e
            for e in known
            if (e.surnames[:shown], e.year) == (surnames, match["year"])
        ]
        title = re.match(r'\s*\(?,?\s*"([^"]+)"', after)
        if len(named) > 1 and title:
            start = _words(_plain(title[1]))
            named = [e for e in named if _words(e.title).startswith(start)]
    return named[0] if named else None


def link_sources(app, what, name, thing, options, lines):
    """Turn the year of each source in a docstring into a link (an autodoc event)."""
    known, text = entries(), "\n".join(lines)
    for match, after in reversed(
        sorted(sources(text), key=lambda found: found[0].start())
    ):
        entry = entry_of(match, after, known)
        if entry and match.re is SOURCE:
            start = match.start("year") - 1
            text = f"{text[:start]}:cite:yearpar:`{entry.key}`{text[match.end() :]}"
        elif entry:
            text = f"{text[: match.end()]} :cite:yearpar:`{entry.key}`{text[match.end() :]}"
    lines[:] = text.split("\n")


def _plain(text):
    r"""Without TeX and accents: Holzm{\"u}ller, Holzmüller and Holzmueller are one."""
    text = (
        text.replace("\\ell", "l")
        .replace("\\l", "l")
        .replace("ł", "l")
        .replace("$", "")
    )
    text = re.sub(r"\\[^a-zA-Z]|[{}]", "", text)
    text = "".join(
        c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c)
    )
    return re.sub(r"([aou])e(?=[lnkc])", r"\1", text).strip()


def _words(title):
    return " ".join(re.findall(r"[a-z0-9]+", title.lower()))
