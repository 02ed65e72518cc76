"""Errors and warnings as fields, and their translation to options of the command line."""

import argparse
import ast
import inspect
import pickle
import re
import warnings

import code_metrics
import pytest
from cases import run_every_case

from sklearn_calib._cli import build_parser
from sklearn_calib._cli._messages import translate_message
from sklearn_calib._validation import canonical_proba
from sklearn_calib._warnings import warn_calibration
from sklearn_calib.exceptions import (
    CalibrationWarning,
    InvalidInputError,
    add_error_context,
    invalid_input,
)
from sklearn_calib.groups import grade_calibration
from sklearn_calib.metrics import brier_loss
from sklearn_calib.recalibrators import TemperatureScaling

(COMMANDS,) = (
    a.choices
    for a in build_parser()._actions
    if isinstance(a, argparse._SubParsersAction)
)


def catch_error(call, *given, **how):
    with pytest.raises(InvalidInputError) as raised:
        call(*given, **how)
    return raised.value


def test_fields_and_sentence():
    error = catch_error(brier_loss, [0, 1, 1], [0.2, 0.7, 1.3])
    assert isinstance(error, ValueError) and not isinstance(error, TypeError)
    assert (error.argument, error.value) == ("y_proba", "1.3")
    assert (error.row, error.column, error.expected) == (
        2,
        0,
        "probabilities in [0, 1]",
    )
    begin = "expected probabilities in [0, 1], got 1.3 in row 2, column 0 of y_proba. "
    assert str(error) == f"{begin}{error.hint}."
    assert isinstance(catch_error(brier_loss, ["a", "b"], ["x", "y"]), TypeError)


def test_the_argument_has_the_name_that_the_user_knows():
    fit = TemperatureScaling().fit
    assert catch_error(fit, [[0.2, 0.9]], [0]).argument == "X"
    assert catch_error(fit, [[0.2, 0.8]], [None]).argument == "y"
    assert catch_error(canonical_proba, [1.5]).argument == "scores"
    assert catch_error(
        brier_loss, [0, 1], [0.1, 0.2], sample_weight=[1, -1]
    ).argument == ("sample_weight")


def test_two_arguments_that_exclude_each_other():
    error = catch_error(
        brier_loss, [[0.5]], [[0.5]], soft_labels=True, multilabel="macro"
    )
    assert str(error).startswith(
        "soft_labels and multilabel cannot be combined. Call it for"
    )
    assert (error.argument, error.value) == ("soft_labels", "both")
    assert translate_message(error).startswith(
        "--soft-labels and multilabel cannot be combined."
    )


def test_an_argument_that_the_sentence_names_is_not_repeated():
    error = invalid_input("level", expected="a level between 0 and 1", got="2")
    assert str(error) == "expected a level between 0 and 1, got 2."
    error = invalid_input("level", expected="a number", got="'x'", hint="Pass 0.95")
    assert str(error) == "expected a number, got 'x' for level. Pass 0.95."


@pytest.mark.parametrize(
    "kind", [ValueError, TypeError, KeyError, AttributeError, RuntimeError]
)
def test_through_other_processes(kind):
    hint = "Pass tolerance=0.1"
    error = invalid_input(
        "x", expected="x above 0", got="-1", hint=hint, error=kind, row=3
    )
    copied = pickle.loads(pickle.dumps(error))
    assert isinstance(copied, InvalidInputError) and isinstance(copied, kind)
    assert vars(copied) == vars(error) and copied.args == error.args
    assert (
        translate_message(copied)
        == "expected x above 0, got -1 in row 3. Pass --tolerance 0.1."
    )


def test_words_of_the_command_line():
    def translate(hint, argument=None, **hints):
        error = invalid_input(argument, expected="a rule", got="1", hint=hint)
        return translate_message(error, **hints).split(". ")[1]

    assert translate("Pass scale=(1, 10)") == "Pass --scale 1,10."
    assert translate("Pass scale=None") == "Pass --scale any."
    assert translate("Pass soft_labels=True") == "Pass --soft-labels."
    assert (
        translate("Pass classes=['bad', 'good one']")
        == "Pass --classes 'bad,good one'."
    )
    assert translate("Pass n_bins=3") == "Pass n_bins=3."  # no option sets it
    assert translate("Pass other classes") == "Pass other classes."
    assert (
        translate("Pass other classes", argument="classes") == "Pass other --classes."
    )
    assert translate("Fill them, or leave out such rows") == (
        "Fill them, or leave out such rows with --missing drop."
    )
    assert translate("Fill them, or leave out such rows", fill="Wait") == "Wait."


def test_the_place_of_a_row_in_a_file():
    with (
        pytest.raises(InvalidInputError) as raised,
        add_error_context(source="b.csv"),
        add_error_context(source="a.csv", map_row=lambda row: row + 100),
    ):
        canonical_proba([0.5, 1.5])
    error = raised.value
    assert (error.source, error.row) == ("a.csv", 101)
    assert translate_message(error).startswith("a.csv: expected probabilities")
    assert str(error).startswith("a.csv: expected probabilities")


def test_a_warning_has_the_same_fields():
    how = {"argument": "cv", "estimator": TemperatureScaling()}
    with pytest.warns(CalibrationWarning) as seen:
        warn_calibration("cv above 1", "1", "Pass cv=5", **how)
    (one,) = seen
    assert one.filename == __file__ and one.message.argument == "cv"
    assert (
        str(one.message) == "TemperatureScaling: expected cv above 1, got 1. Pass cv=5."
    )
    assert translate_message(one.message) == "expected cv above 1, got 1. Pass cv=5."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CalibrationWarning, match="Pass cv=5"):
            warn_calibration("cv above 1", "1", "Pass cv=5", **how)


def test_errors_are_raised_visibly():
    """A call that only returns an error and is not raised would let the mistake through."""
    makers = ("invalid_input", "invalid_option", "invalid_field", "unknown_name_error")
    # A statement begins its line, so few files have to be parsed.
    begins = re.compile(rf"^ *({'|'.join(makers)})\(", re.MULTILINE)
    texts = [(path, path.read_text(encoding="utf-8")) for path in code_metrics.FILES]
    for path in (path for path, text in texts if begins.search(text)):
        for node in ast.walk(code_metrics.parsed(path)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                name = getattr(node.value.func, "id", "")
                assert name not in makers, f"{path.name}:{node.lineno}"


@run_every_case("name", COMMANDS)
def test_help_fits_on_two_screens(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert COMMANDS[name].format_help().count("\n") <= 100


def test_an_error_is_passed_on_with_more_words():
    error = catch_error(
        grade_calibration, [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], [0.3, 0.2]
    )
    assert (
        error.expected.startswith("grades with edges that")
        and error.value
        and error.hint
    )


def test_no_argument_for_the_name_of_the_caller():
    # The name of an argument is followed by its type, its default or the next one.
    named = re.compile(r"\b_?where\s*[:=,)]")
    texts = [(path, path.read_text(encoding="utf-8")) for path in code_metrics.FILES]
    for path in (path for path, text in texts if named.search(text)):
        for node in ast.walk(code_metrics.parsed(path)):
            if isinstance(node, ast.arguments):
                names = {
                    one.arg for one in [*node.posonlyargs, *node.args, *node.kwonlyargs]
                }
                assert not names & {"where", "_where"}, path.name
    assert "where" not in inspect.signature(canonical_proba).parameters
