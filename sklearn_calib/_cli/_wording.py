"""Errors and warnings of the library, in the words of the command line."""

import shlex
from collections.abc import Callable
from typing import NoReturn

from ..exceptions import Setting
from ..exceptions import refuse as _refuse

#: What to say of labels that are text where some are missing.
AS_MISSING = (
    "In csv files empty cells and the texts NA, N/A, None, null and NaN count as missing: where "
    "one of them is a label, write it in other words"
)
#: The option that sets an argument.
OPTIONS = {
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
#: Values that an option says in other words.
_VALUES = {
    ("recalibrator", None): "--recalibrator none",
    ("sample_weight", None): "no --weight",
    ("scale", None): "--scale any",
}
#: Cures that are others on the command line.
_CHOICES = {
    "all_classes": "Name all of them with --classes",
    "coarser_groups": "name a column of larger groups with --by",
    "scale_order": "Name all of them with --classes",
    "csv_decimal": "--read decimal=,",
    "csv_header": "--read header=NAME,NAME",
    "csv_sep": "--read sep=CHARACTER",
    "csv_encoding": "--read encoding=NAME",
    "columns": "Name one column per class with --prob, or all classes with --classes in the order "
    "of the columns",
    "confidence": "of a confidence in one predicted class name that class's column with "
    "--prediction",
    "exchange": "name it with --positive, or exchange the columns of --prob or the two names in "
    "--classes",
    "fill": "Fill them, or leave out such rows with --missing drop",
    "folds": "Name a column of more groups with --cluster",
    "linear_predictor": "",
    "many_labels": "use the command labels",
    "missing_labels": f". {AS_MISSING}",
    "of_logits": "",
    "one_label": "add a column that says whether the label is the one whose share it is",
    "other_column": "Name the other class with --positive, or the other column with --prob",
    "percentages": "add --scale percent for percentages, or --scale 0,10 for marks",
}


#: The same cure of commands that can do something else.
KEEP_THEM = {"fill": "Fill them, or keep them with --missing keep"}
WITHOUT_LABEL = {
    "fill": "Give such rows when their labels come, or leave them out with --missing drop",
}

Said = tuple[str, str, str]  # rule, value and cure


def in_options(**words: str) -> Callable[[Setting], str]:
    """What the command line says of arguments and choices; `words` are those of one command."""

    def write(setting):
        name, value = setting.argument, setting.value
        choice = words.get(name, _CHOICES.get(name))
        if choice is not None:
            return choice
        if (name, value) in _VALUES:
            return _VALUES[name, value]
        option = OPTIONS.get(name)
        if option is None or value is ... or isinstance(value, bool):
            return option or setting.words
        return f"{option} {_written(value)}"

    return write


def _written(value):
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else shlex.quote(str(value))


def refuse(rule: str, got: str, cure: str, *, source: str = "") -> NoReturn:
    """Refuse what was given on the command line; it is no function that expects it."""
    _refuse("", rule, got, cure, Exception, source=source)


def sentence(rule: str, got: str, cure: str) -> str:
    """What `refuse` would say, as a remark."""
    return f"expected {rule}, got {got}. {cure}."
