"""Errors and warnings in the words of the command line; what its exit codes mean."""

import re
import shlex
import signal
from ast import literal_eval

from ..exceptions import InvalidInputError, StructuredMessage, invalid_input

#: What to add about labels that are text if some are missing.
MISSING_TEXTS_HINT = (
    "In csv files empty cells and the texts NA, N/A, None, null and NaN count as missing: where "
    "one of them is a label, write it in other words"
)
#: The option that sets an argument.
OPTION_BY_ARGUMENT = {
    "bounds": "--bounds",
    "check_columns": "--allow order",
    "classes": "--classes",
    "edited": "--allow edited",
    "grades": "--grades",
    "groups": "--cluster",
    "labels": "--classes",
    "pos_label": "--positive",
    "recalibrator": "--recalibrator",
    "sample_weight": "--weight",
    "scale": "--scale",
    "simplify": "--simplify",
    "skip_rows": "--skip-rows",
    "soft_labels": "--soft-labels",
    "tabulate": "--tabulate",
    "tolerance": "--tolerance",
    "y_proba": "--prob",
    "y_true": "--label",
}
#: Assignments that an option expresses in other words.
_OPTION_BY_ASSIGNMENT = {
    "recalibrator=None": "--recalibrator none",
    "sample_weight=None": "no --weight",
    "scale=None": "--scale any",
}
_COLUMN_PER_CLASS_HINT = (
    "Name one column per class with --prob, or all classes with --classes in the order of the "
    "columns"
)
_OTHER_COLUMN_HINT = (
    "Name the other class with --positive, or the other column with --prob"
)
#: Hints that differ on the command line: (pattern of the library's hint, text) by
#: topic.
_HINT_BY_TOPIC = {
    "all_classes": (r"Pass all classes", "Name all of them with --classes"),
    "coarser_groups": (
        r"lower min_rows, or pass coarser groups",
        "name a column of larger groups with --by",
    ),
    "scale_order": (
        r"Pass order=\[.*?\], rearranged",
        "Name all of them with --classes",
    ),
    "csv_decimal": (r"csv=\{'decimal': ','\}", "--read decimal=,"),
    "csv_header": (r"csv=\{'header': \[\.\.\.\]\}", "--read header=NAME,NAME"),
    "csv_sep": (r"csv=\{'sep': \.\.\.\}", "--read sep=CHARACTER"),
    "csv_encoding": (r"csv=\{'encoding': \.\.\.\}", "--read encoding=NAME"),
    "skip_rows": (r"csv=\{'skip_rows': (?:\.\.\.|(\d+))\}", r"--skip-rows \1"),
    "columns": (r"Pass one column per class", _COLUMN_PER_CLASS_HINT),
    "ordered_columns": (
        r"Pass the columns in the order of classes_",
        _COLUMN_PER_CLASS_HINT,
    ),
    "confidence": (
        r"where y_proba is the confidence in one predicted class, pass y_true == y_pred as y_true",
        "of a confidence in one predicted class name that class's column with --prediction",
    ),
    "exchange": (
        r"pass 1 - p, or exchange the columns or the two names in classes=",
        "name it with --positive, or exchange the columns of --prob or the two names in --classes",
    ),
    "fill": (
        r"Fill them, or leave out such rows",
        "Fill them, or leave out such rows with --missing drop",
    ),
    "folds": (
        r"Pass fewer folds as cv, or groups that are finer",
        "Name a column of more groups with --cluster",
    ),
    "linear_predictor": (
        r", or say their law by linear_predictor=\(mean, deviation\)",
        "",
    ),
    "many_labels": (r"see the page Many labels", "use the command audit-multilabel"),
    "missing_labels": (
        r"(?:; an empty cell is a missing label|(labels must not hold NaN or infinity))",
        rf"\1. {MISSING_TEXTS_HINT}",
    ),
    "logits": (r", with canonical_proba\(scores, kind='logits'\)", ""),
    "one_label": (
        r"pass labels that are equal to it or not, y == label",
        "add a column that says whether the label is the one whose share it is",
    ),
    "other_column": (
        r"(?:Pass|Summarise) the other column, or 1 - p",
        _OTHER_COLUMN_HINT,
    ),
    "percentages": (
        r"divide percentages by 100",
        "add --scale percent for percentages, or --scale 0,10 for marks",
    ),
    "tolerance": (r"canonical_proba\(scores, tolerance=([^)]*)\)", r"--tolerance \1"),
    "soft_labels": (
        r"soft_labels=True to fit, to the measure or to the report",
        "--soft-labels",
    ),
    "classes": (r"fit\(\.\.\., classes=\)", "--classes"),
}
#: Hints of a command that can do something else, by topic.
KEEP_MISSING_HINTS = {"fill": "Fill them, or keep them with --missing keep"}
MISSING_LABEL_HINTS = {
    "fill": "Give such rows when their labels come, or leave them out with --missing drop",
}
_VALUE_PATTERN = r"None|True|False|'[^']*'|\[[^\]]*\]|\([^)]*\)|-?[\w.+-]*\w"
_ASSIGNMENT_PATTERN = re.compile(
    rf"\b({'|'.join(OPTION_BY_ARGUMENT)})=({_VALUE_PATTERN})?"
)
#: Names of arguments that are not English words.
_ARGUMENT_NAME_PATTERN = re.compile(
    rf"\b({'|'.join(name for name in OPTION_BY_ARGUMENT if '_' in name)})\b"
)


def translate_message(message: StructuredMessage, **hints: str) -> str:
    """Return the text of a message in the words of the command line.

    `hints` are those of one command, by topic.
    """
    if not message.expected:  # a single sentence
        return str(message)
    shown = StructuredMessage()
    fields = dict(vars(message))
    fields["expected"] = _translate_text(message.expected, message.argument, hints)
    fields["hint"] = _translate_text(message.hint, message.argument, hints)
    fields["sentence"] = _translate_text(message.sentence, message.argument, hints)
    shown.set_fields(**fields)
    return shown.format_text(show_argument=False)


def _translate_text(text, argument, hints):
    for topic, (pattern, option) in _HINT_BY_TOPIC.items():
        text = re.sub(pattern, hints.get(topic, option), text)
    text = _ASSIGNMENT_PATTERN.sub(_translate_assignment, text)
    text = _ARGUMENT_NAME_PATTERN.sub(lambda match: OPTION_BY_ARGUMENT[match[1]], text)
    if argument in OPTION_BY_ARGUMENT:  # the words that also are English ones
        text = re.sub(
            rf"(?<![\w-]){argument}\b", OPTION_BY_ARGUMENT[argument], text, count=1
        )
    return text


def _translate_assignment(match):
    name = match[1]
    value = match[2]
    if match[0] in _OPTION_BY_ASSIGNMENT:
        return _OPTION_BY_ASSIGNMENT[match[0]]
    option = OPTION_BY_ARGUMENT[name]
    if value is None or value in ("True", "False"):
        return option
    return f"{option} {_format_option_value(value)}"


def _format_option_value(text):
    """Return the value of an option for the text of a value in Python."""
    try:
        value = literal_eval(text)
    except (SyntaxError, ValueError):
        return shlex.quote(text)
    if isinstance(value, tuple | list):
        return shlex.quote(",".join(map(str, value)))
    if isinstance(value, float):
        return f"{value:g}"
    return shlex.quote(str(value))


def invalid_option(
    *, expected: str = "", got: str = "", sentence: str = "", hint: str
) -> InvalidInputError:
    """Return the error to raise about what was given on the command line.

    Its text is either a `sentence` or what was `expected` and what one `got`.
    """
    return invalid_input(
        expected=expected or sentence,
        got=got,
        sentence=sentence,
        hint=hint,
        error=Exception,
    )


# -- exit codes --------------------------------------------------------------------------------

EXIT_SUCCESS, EXIT_DEFECT, EXIT_USER_ERROR, EXIT_FINDING = range(4)

#: Signals that end a command in order: its temporary files go, and its code is the
#: usual one.
TERMINATING_SIGNALS = ("SIGHUP", "SIGTERM")

EXIT_INTERRUPTED = 128 + signal.SIGINT

#: Meanings of the exit codes, as in the documentation.
MEANING_BY_EXIT_CODE = {
    f"{EXIT_SUCCESS}": "success",
    f"{EXIT_DEFECT}": "a defect of this program, which the message describes; with "
    "``SKLEARN_CALIB_TRACEBACK=1`` in the environment Python prints the traceback",
    f"{EXIT_USER_ERROR}": "an error that you can correct, which the message describes: an "
    "option, a table, a full disk, a state that another process has locked. "
    "Nothing has been written, with two exceptions: the standard output is full "
    "or closed (the message then names the files that were written), or the disk "
    "is full only for a later one of several files. A state and the files of an "
    "earlier run are unchanged",
    f"{EXIT_FINDING}": "a condition of ``--fail-if`` holds, ``fit`` found no gain and wrote "
    "nothing, or ``monitor`` raised an alarm, which is in the state. The code is "
    "still 3 if the standard output is full, closed, or a pipe that no process "
    "reads",
    f"129, {EXIT_INTERRUPTED}, 143": "the terminal was closed (SIGHUP), or the command was "
    "interrupted (Ctrl-C) or terminated (SIGTERM). Temporary files are removed, "
    "and each output file is absent, unchanged or complete",
    "137": "the command was killed (SIGKILL), for instance by the system for lack of "
    "memory. Each output file is absent, unchanged or complete. A temporary file "
    "with a point before its name remains until the next run that writes there. "
    "The lock of a state ends with its process",
}
