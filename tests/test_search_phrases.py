"""What people search for leads to the page that answers it, by the rule of Sphinx's own search.

Of searchtools.js: a heading or an index entry counts if it holds the whole phrase and
at most as much again; a page counts if it holds all words, more if one of them is in a
heading. Of equal scores the first title comes first. Here the words are read from the
sources, their endings cut off.
"""

import re
from typing import NamedTuple

import pytest
from cases import run_every_case
from checkout import DOC, GUIDE, ROOT

import _entries  # isort: skip

README = ROOT / "README.md"
#: What is searched, and the page that must come first.
PHRASES = {
    "recalibration in the large": "class_frequencies_change",
    "calibration in the large": "clinical_prediction_models",
    "reliability curve": "pictures",
    "reliability diagram": "pictures",
    "undo SMOTE": "imbalanced_data",
    "class_weight balanced probabilities": "imbalanced_data",
    "scale_pos_weight": "imbalanced_data",
    "undersampling correct probabilities": "imbalanced_data",
    "expected calibration error with confidence interval": "is_my_model_calibrated",
    "temperature scaling pytorch": "calibrating_a_model",
    "calibrate xgboost probabilities": "calibrating_a_model",
    "calibration slope and intercept": "clinical_prediction_models",
    "Hosmer-Lemeshow": "is_my_model_calibrated",
    "predict_proba not calibrated": "is_my_model_calibrated",
    "isotonic vs sigmoid": "choosing_a_binary_recalibrator",
    "CalibratedClassifierCV": "coming_from",
    "cv=prefit": "calibrating_a_model",
    "Brier score decomposition": "refinement",
    "calibration by group": "groups_and_fairness",
    "multiclass calibration": "multiclass_calibration",
    "choose threshold": "decisions",
    "LLM confidence calibration": "confidence_of_language_models",
    "calibration drift monitoring": "production",
    "ONNX export calibrated": "export",
    "SQL scorecard": "credit_risk",
    "conformal": "what_belongs_here",
    "decision curve net benefit": "decisions",
    "integrated calibration index": "clinical_prediction_models",
    "calibration belt": "clinical_prediction_models",
    "early stopping calibration": "early_stopping",
}
STOPWORDS = {"a", "and", "by", "for", "in", "is", "not", "of", "the", "to", "with"}
ENDINGS = re.compile(
    r"(?:ations?|ators?|ated?|ates|ating|ings?|ions?|ies|es|ed|s|e|y)$"
)
HEADING = re.compile(r"(?m)^(\S.*)\n(=+|-+|~+)$")
ENTRY = re.compile(r"(?m)^\.\. index:: ! ([^,\n]+)$")
TERM = re.compile(r"(?m)^   (\S.*)\n      \S")


class Page(NamedTuple):
    """What the search has of one."""

    name: str
    headings: list
    entries: list
    words: frozenset
    heading_words: frozenset


def words(text):
    """The stems of a text; a name with underscores is one word, as it is for the search."""
    found = (word.lower() for word in re.findall(r"\w+", text))
    return frozenset(
        ENDINGS.sub("", word) if len(word) > 4 else word
        for word in found
        if word not in STOPWORDS and not word.isdigit()
    )


def pages():
    """All pages that are written by hand."""
    index = (GUIDE / "index.rst").read_text(encoding="utf-8")
    searched = {entry.page: entry.words for entry in _entries.entries(index)}
    for path in sorted(
        [*DOC.glob("*.rst"), *GUIDE.glob("*.rst"), *DOC.glob("extending/*.rst")]
    ):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"(?m)^\.\. include:: (\w+\.inc)$", text):
            text += (path.parent / name).read_text(encoding="utf-8")
        headings = [re.sub(r"[`*]", "", title) for title, _ in HEADING.findall(text)]
        entries = ENTRY.findall(text) + TERM.findall(text) * (path.stem == "glossary")
        said = words(f"{ENTRY.sub('', text)} {searched.get(path.stem, '')}")
        yield Page(path.stem, headings, entries, said, words(" ".join(headings)))


def ranking(phrase, of):
    """Pairs of score and title, the best first, with the name of the page."""
    query, wanted = phrase.lower(), words(phrase)
    found = []
    for page in of:
        title = page.headings[0]
        for heading in page.headings:
            if query in heading.lower() and 2 * len(query) >= len(heading):
                name = title if heading == title else f"{title} > {heading}"
                score = round(15 * len(query) / len(heading)) + (heading == title)
                found.append((-score, name.lower(), page.name))
        for entry in page.entries:
            if query in entry.lower() and 2 * len(query) >= len(entry):
                found.append(
                    (-round(100 * len(query) / len(entry)), title.lower(), page.name)
                )
        if wanted <= page.words | page.heading_words:
            score = 15 if wanted & page.heading_words else 5
            found.append((-score, title.lower(), page.name))
    return sorted(found)


@pytest.fixture(scope="module")
def known():
    return [*pages()]


@run_every_case(("phrase", "page"), PHRASES.items())
def test_the_page_is_found_first(phrase, page, known):
    found = ranking(phrase, known)
    assert found and found[0][-1] == page, found[:4]


def test_an_index_entry_is_said_on_its_page(known):
    """All its words stand in the text: an entry is not a bait."""
    for page in known:
        for entry in page.entries:
            missing = words(entry) - page.words - {"vs"}
            assert not missing, (
                f"{page.name}: {entry!r}, of which the page does not say {missing}"
            )


def test_the_table_of_the_readme_has_the_first_ten():
    table = words(
        " ".join(re.findall(r"(?m)^\|.*\|$", README.read_text(encoding="utf-8")))
    )
    for phrase in [*PHRASES][:10]:
        assert words(phrase) <= table, phrase


def test_the_readme_reads_without_our_own_words():
    text = re.sub(r"\]\([^)]*\)|`[^`]*`", " ", README.read_text(encoding="utf-8"))
    assert not re.search(r"(?i)\b(arenas?|maps?|thresholds?)\b", text)


def test_scores_are_those_of_the_search():
    """Worked out by hand from searchtools.js."""
    plain = Page("a", ["Alpha beta"], [], words("some gamma text"), words("Alpha beta"))
    entry = Page("b", ["Other"], ["alpha beta gamma"], words("nothing"), words("Other"))
    assert ranking("alpha beta", [plain, entry]) == [
        (-62, "other", "b"),  # 10 of 16 characters of an entry
        (-16, "alpha beta", "a"),  # the whole title of a page
        (-15, "alpha beta", "a"),  # its words
    ]
    assert ranking("gamma", [plain, entry]) == [(-5, "alpha beta", "a")]
    assert ranking("texts beta", [plain])[0][0] == -15
    assert not ranking("gamma delta", [plain, entry])
