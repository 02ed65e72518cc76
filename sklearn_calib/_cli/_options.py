"""Options that commands share: the columns of a table, and how its file is to be read."""

import argparse
import re
import sys
from collections.abc import Collection, Sequence
from typing import Any, Literal

from .._show import plain, quoted
from ..exceptions import nearest
from ._names import split_columns, split_names
from ._wording import refuse


class Parser(argparse.ArgumentParser):
    """Examples keep their lines, options are written in full."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options["allow_abbrev"] = False
        super().__init__(*args, **options)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does; an option that is not known gets the nearest one."""
        given = sys.argv[1:] if args is None else [*args]
        found, extra = self.parse_known_args(given, namespace)
        if extra:
            unknown = next((text for text in extra if text.startswith("-")), extra[0])
            options = self._options_of(given[0]) if unknown.startswith("--") else ()
            near = nearest(unknown.partition("=")[0], options)
            cure = f" (do you mean {near}?)" if near else ""
            self.error(f"unrecognized arguments: {plain(' '.join(extra), 200)}{cure}")
        return found

    def _options_of(self, command):
        """All options of a command."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and command in action.choices:
                return action.choices[command]._option_string_actions
        return self._option_string_actions

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A choice that is not known gets the nearest one."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = nearest(value, action.choices or ())
            if near:
                error.message += f" (do you mean {near}?)"
            raise


def examples(*lines: str) -> str:
    """The end of a help text."""
    return "\n  ".join(["examples:", *lines])


def add_files(
    parser: argparse.ArgumentParser,
    what: str = "a table: csv or JSON lines (also compressed), parquet, Arrow, Excel; a folder or "
    "a pattern of these; - is the standard input",
) -> None:
    """Add the files that a command reads."""
    parser.add_argument("files", nargs="+", metavar="FILE", help=what)


class _Once(argparse.Action):
    """A text; all of them as a list where the option is given several times."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        known = getattr(namespace, self.dest)
        found = (
            values if known is None else [*([known] if isinstance(known, str) else known), values]
        )
        setattr(namespace, self.dest, found)


def add_columns(parser: argparse.ArgumentParser) -> Any:
    """Add the options that say what the columns are; returns their group."""
    group = parser.add_argument_group("columns")
    add_label(group)
    add_scores(group)
    group.add_argument("--weight", metavar="COLUMN", help="sample weights, at least 0")
    return group


def add_label(group: Any) -> None:
    """Add the option that names the labels."""
    group.add_argument(
        "--label",
        action=_Once,
        metavar="COLUMN",
        help="the true labels: numbers, text or booleans; with --soft-labels also several columns, "
        "named as those of --prob",
    )


def add_scores(group: Any, order: str = "the sorted labels") -> None:
    """Add the options that say which columns hold the scores of which class; `order` by default."""
    group.add_argument(
        "--prob",
        action="append",
        metavar="COLUMN[,COLUMN...]",
        help="one column: the probability of the positive class; several: one per class, in the "
        f"order of {order} or of --classes; may be given several times, which also "
        'serves names that hold a comma: --prob "a,b" --prob c',
    )
    group.add_argument(
        "--classes",
        action="append",
        metavar="LABEL[,LABEL...]",
        help="the classes in the order of the columns, where it is not that of "
        f"{order} or the table misses a class; may be given several times",
    )
    group.add_argument(
        "--positive",
        "--pos-label",
        metavar="LABEL",
        help="the positive class of two (default: the second)",
    )


def add_clusters(group: Any, more: str) -> None:
    """Add the option that says which rows belong together; `more`: what follows from it."""
    group.add_argument(
        "--cluster",
        "--group",
        dest="group",
        metavar="COLUMN",
        help="rows that belong together, such as the samples of one question, have one value of "
        f"this column: {more}",
    )


def add_soft_labels(
    group: Any,
    weigh: str = ", which weigh. Each row is a cluster, if --cluster names no larger ones",
) -> None:
    """Add the option that says that labels are shares; `weigh`: what numbers of votes do."""
    group.add_argument(
        "--soft-labels",
        action="store_const",
        const=True,
        help="labels are shares, from 0 to 1, such as those of several annotators. One column of "
        "--label: the share of the class of --prob; a --weight may hold the number of annotators. "
        "One per class, --label a,b,c in the order of --prob: shares, or whole numbers of "
        f"annotators{weigh}",
    )


def add_confidence(group: Any) -> None:
    """Add the options of tables that hold a predicted class and how sure the model was of it."""
    group.add_argument(
        "--prediction",
        metavar="COLUMN",
        help="the predicted class, where the one column of --prob is the confidence in it: what is "
        "looked at is whether it is the class of --label (the tables are then read whole)",
    )
    add_marks(group)


def add_marks(group: Any) -> None:
    """Add the options of numbers that are no probabilities yet, and of options that differ."""
    group.add_argument(
        "--absent",
        action="store_const",
        const="nan",
        help="an empty cell (null) in a column of --prob, or the missing end of a list, is an "
        "option that the row does not have, as for questions of three to five choices",
    )
    group.add_argument(
        "--scale",
        type=ends_of_scale,
        metavar="LOW,HIGH",
        help="the numbers of --prob are marks from LOW (0 %%) to HIGH (100 %%), such as 0,10",
    )


def ends_of_scale(text: str) -> tuple[float, float]:
    """Two numbers, the lower one first."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low = high = 0.0
    if not (low < high and abs(low) < float("inf") and abs(high) < float("inf")):
        raise argparse.ArgumentTypeError(
            f"expected two numbers, the lower one first, got {quoted(text)}. Write for instance "
            "0,10"
        )
    return low, high


def absent_in(options: argparse.Namespace) -> Literal["nan"] | None:
    """How options that a row does not have are marked."""
    return getattr(options, "absent", None)


def check_confidence(options: argparse.Namespace) -> None:
    """Refuse what would be wrong beside --prediction, --scale, --absent or --soft-labels."""
    beside = {
        "soft_labels": ("positive", "prediction", "absent"),
        "prediction": ("classes", "positive", "features", "absent", "logits"),
        "scale": ("percent", "logits"),
        "absent": ("drop_missing",),
    }
    for asked, others in beside.items():
        for name in others if getattr(options, asked, None) is not None else ():
            if getattr(options, name, None):
                name, asked = (word.replace("_", "-") for word in (name, asked))
                refuse(
                    f"--{asked} without --{name}",
                    f"both: what --{name} does would be wrong for these rows",
                    "Leave one of the two out",
                )


def add_logits(group: Any) -> None:
    """Add the option that says that scores are no probabilities."""
    group.add_argument(
        "--logits",
        action="store_true",
        help="the columns of --prob hold logits; a single one the log-odds of the positive class",
    )


def add_reading(
    parser: argparse.ArgumentParser,
    *,
    rows_go: bool = True,
    mends: bool = False,
    probabilities: bool = True,
) -> None:
    """Add the options that say how a file is to be read.

    With `rows_go` rows may be left out, with `mends` rounded rows are divided by their sums. Some
    options are for `probabilities` alone.
    """
    rounded = "rows that were rounded are divided with a warning, others refused"
    others = rounded if mends else "such rows are refused"
    group = parser.add_argument_group("reading")
    if rows_go:
        group.add_argument(
            "--drop-missing",
            action="store_true",
            help="leave out rows with a missing value in one of the columns, and say which they "
            "were",
        )
    if probabilities:
        _add_repairs(group, others)
    group.add_argument(
        "--sep",
        metavar="CHARACTER",
        help="between the cells of a csv file; tab is a name for the tab (default: the one of "
        "comma, semicolon, tab and | under which the header holds the named columns)",
    )
    group.add_argument(
        "--decimal",
        choices=(".", ","),
        help="the decimal mark of a csv file (default: the point; a comma where cells are not "
        "separated by commas and it fits)",
    )
    group.add_argument(
        "--encoding",
        metavar="NAME",
        help="of a file of text, for instance cp1252 for older ones of Windows (default: utf-8; "
        "UTF-16 is told by its mark)",
    )
    group.add_argument(
        "--header",
        action="append",
        metavar="NAME[,NAME...]",
        help="the names of all columns, for csv files without a line of names",
    )
    group.add_argument(
        "--allow-remote",
        action="store_true",
        help="also read addresses (https://, s3://, file://); each file is copied to a temporary "
        "folder first",
    )


def _add_repairs(group, others):
    """Add the options that say how rows of probabilities become ones."""
    group.add_argument(
        "--percent", action="store_true", help="the probabilities are numbers from 0 to 100"
    )
    sums = group.add_mutually_exclusive_group()
    sums.add_argument(
        "--normalize",
        action="store_true",
        help="divide each row of probabilities by its sum, whatever it is, and say nothing "
        f"(default: {others})",
    )
    sums.add_argument(
        "--tolerance",
        type=any_number,
        metavar="T",
        help="the same, for sums up to T from 1; others are refused",
    )


def add_dask(group: Any) -> None:
    """Add the option that has others read the files."""
    group.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="share the files out to the workers of this dask scheduler (extra dask)",
    )


def form_of(options: argparse.Namespace) -> dict[str, Any]:
    """How csv files are to be read, as `read_table` takes it; only what was given."""
    form = {name: getattr(options, name) for name in ("sep", "decimal", "encoding")}
    form["header"] = None if options.header is None else split_names(options.header)
    return {key: value for key, value in form.items() if value is not None}


def kind_of(options: argparse.Namespace) -> Literal["proba", "logits"]:
    """What the columns of scores hold."""
    return "logits" if getattr(options, "logits", False) else "proba"


def tolerance_of(options: argparse.Namespace) -> float | None:
    """How far sums of rows may be from 1."""
    if options.normalize:
        return 1 - 1e-6
    return options.tolerance


def check_named(
    options: argparse.Namespace, of: str = "the labels and of the probabilities"
) -> None:
    """Refuse a table of which the label or the probabilities are not named."""
    if options.label is None or options.prob is None:
        missing = " and ".join(f"--{n}" for n in ("label", "prob") if getattr(options, n) is None)
        refuse(f"--label and --prob, the columns of {of}", f"no {missing}", "Name it")
    if not isinstance(options.label, str) and not getattr(options, "soft_labels", None):
        refuse(
            "--label once",
            f"it {len(options.label)} times",
            "For shares of several classes add --soft-labels; many labels per row go with audit "
            "--labels",
        )


def check_of_logits(options: argparse.Namespace) -> None:
    """Refuse what only probabilities can have."""
    given = {"--percent": options.percent, "--normalize": options.normalize}
    given["--tolerance"] = options.tolerance is not None
    for option, there in given.items():
        if there and kind_of(options) == "logits":
            refuse(f"{option} with probabilities", "--logits", "Leave one out")


def label_columns(options: argparse.Namespace, present: Collection[str] = ()) -> list[str]:
    """The column of labels, or those of soft labels; `present` as in `split_columns`."""
    if options.label is None:
        return []
    if not getattr(options, "soft_labels", None):
        return [options.label]
    return split_columns(
        [options.label] if isinstance(options.label, str) else options.label, present
    )


def check_different(labels: Sequence[str], columns: list[str], option: str = "--prob") -> None:
    """Refuse a column that has two roles."""
    both = next((label for label in labels if label in columns), None)
    if both is not None:
        refuse(
            "different columns for --label and --prob",
            f"{both!r} for both",
            "Name the column of the probabilities with --prob",
        )
    if len(labels) > 1:
        _check_shares(labels, columns)
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        refuse(
            f"each column once in {option}",
            f"{twice!r} twice",
            f"Name one column per {'label' if option == '--labels' else 'class'}",
        )


def _check_shares(labels, columns):
    """Refuse columns of shares that are not those of the classes of the probabilities."""
    check_different([], [*labels], "--label")
    if len(labels) != max(len(columns), 2):
        refuse(
            "one column of --label in all, or one for each column of --prob (two for a single one)",
            f"{len(labels)} and {len(columns)} of --prob",
            "Name one per class, in the order of --prob",
        )


def check_groups(by: list[str], labels: Sequence[str], columns: list[str]) -> None:
    """Refuse groups that the labels or the probabilities make: each is wrong by itself."""
    for option, names in (("--label", labels), ("--prob", columns)):
        twice = next((name for name in by if name in names), None)
        if twice is not None:
            refuse(
                "columns of --by that are known with the scores",
                f"{quoted(twice)}, the column of {option}: such groups are not calibrated even "
                "where all rows are",
                "Name another column, or leave --by out",
            )


def whole_number(least: int) -> Any:
    """A type of argparse: whole numbers from `least`."""

    def number(text):
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number from {least}, got {text!r}")
        return int(text)

    return number


def as_number(text: str) -> str | None:
    """What to write for a number with a percent sign or a decimal comma; None for other texts."""
    found = re.fullmatch(r"\s*([+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*", text)
    if found is None or not (found[2] or "," in found[1]):
        return None
    number = float(found[1].replace(",", ".")) / (100 if found[2] else 1)
    return f"Write {number:.15g} for {text.strip()}"


def any_number(text: str) -> float:
    """A type of argparse: numbers."""
    try:
        return float(text)
    except ValueError:
        cure = as_number(text) or "Write one with a point"
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}. {cure}") from None


def share(text: str) -> float:
    """A type of argparse: numbers between 0 and 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < 1:
        cure = f". {as_number(text)}" if as_number(text) else ""
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, got {text!r}{cure}")
    return number
