"""Errors and warnings as fields, and what the command line makes of them."""

import argparse
import ast
import pickle
import re
import warnings

import code_metrics
import pytest

from sklearn_calib._cli import parser
from sklearn_calib._cli._wording import in_options
from sklearn_calib.canonical import canonical_proba
from sklearn_calib.exceptions import (
    CalibrationWarning,
    Refusal,
    caution,
    named,
    placed,
    refuse,
    setting,
)
from sklearn_calib.groups import grade_calibration
from sklearn_calib.metrics import brier_loss

(COMMANDS,) = (a.choices for a in parser()._actions if isinstance(a, argparse._SubParsersAction))


def caught(call, *given, **how):
    with pytest.raises(Refusal) as raised:
        call(*given, **how)
    return raised.value


def test_fields_and_sentence():
    error = caught(brier_loss, [0, 1, 1], [0.2, 0.7, 1.3])
    assert isinstance(error, ValueError) and not isinstance(error, TypeError)
    assert (error.where, error.argument, error.value) == ("brier_loss", "y_proba", "1.3")
    assert (error.row, error.column, error.rule) == (2, 0, "probabilities in [0, 1]")
    begin = "brier_loss: expected probabilities in [0, 1], got 1.3 in row 2, column 0 (y_proba). "
    assert str(error) == f"{begin}{error.cure}."
    assert isinstance(caught(brier_loss, ["a", "b"], ["x", "y"]), TypeError)


@pytest.mark.parametrize("kind", [ValueError, TypeError, KeyError, AttributeError, RuntimeError])
def test_through_other_processes(kind):
    cure = "Pass " + setting("tolerance", 0.1)
    error = caught(refuse, "f", named("x") + " above 0", "-1", cure, kind, row=3)
    copied = pickle.loads(pickle.dumps(error))
    assert isinstance(copied, Refusal) and isinstance(copied, kind) and isinstance(error, kind)
    assert vars(copied) == vars(error) and copied.args == error.args
    assert copied.settings == {"tolerance": 0.1} and copied.argument == "x"
    assert (
        copied.worded(in_options()) == "expected x above 0, got -1 in row 3. Pass --tolerance 0.1."
    )


def test_words_of_the_command_line():
    def said(text, **words):
        return caught(refuse, "f", "a rule", "1", text).worded(in_options(**words)).split(". ")[1]

    assert said("Pass " + setting("scale", (1, 10))) == "Pass --scale 1,10."
    assert said("Pass " + setting("scale", None)) == "Pass --scale any."
    assert said("Pass " + setting("soft_labels", True)) == "Pass --soft-labels."
    assert said("Pass " + setting("n_bins", 3)) == "Pass n_bins=3."  # no option sets it
    assert said(setting("fill", words="Fill") + " them") == (
        "Fill them, or leave out such rows with --missing drop them."
    )
    assert said(setting("fill", words="Fill"), fill="Wait") == "Wait."


def test_the_place_of_a_row_in_a_file():
    with pytest.raises(Refusal) as raised, placed("b.csv"), placed("a.csv", lambda row: row + 100):
        canonical_proba([0.5, 1.5])
    error = raised.value
    assert (error.source, error.row) == ("a.csv", 101)
    assert error.worded(in_options()).startswith("a.csv: expected probabilities")
    assert str(error).startswith("canonical_proba: a.csv: expected probabilities")


def test_a_warning_has_the_same_fields():
    with pytest.warns(CalibrationWarning) as seen:
        caution("f", named("cv") + " above 1", "1", "Pass " + setting("cv", 5))
    (one,) = seen
    assert one.filename == __file__ and one.message.argument == "cv"
    assert str(one.message) == "f: expected cv above 1, got 1. Pass cv=5."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CalibrationWarning, match="Pass cv=5"):
            caution("f", named("cv") + " above 1", "1", "Pass " + setting("cv", 5))


def test_settings_are_not_lost_in_texts():
    """In an f-string `Words` become plain text, and the command line would say Python's words."""
    for path in code_metrics.FILES:
        if not re.search(r"\b(setting|named)\(", path.read_text(encoding="utf-8")):
            continue
        for node in ast.walk(code_metrics.parsed(path)):
            if isinstance(node, ast.JoinedStr):
                calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
                names = {getattr(one.func, "id", "") for one in calls}
                assert not names & {"setting", "named"}, f"{path.name}:{node.lineno}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_on_two_screens(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert COMMANDS[name].format_help().count("\n") <= 100


def test_a_refusal_is_passed_on_with_more_words():
    error = caught(grade_calibration, [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], [0.3, 0.2])
    assert error.where == "grade_calibration" and error.rule.startswith("grades with edges that")
    assert error.value and error.cure
