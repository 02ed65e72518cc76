"""Options that commands share: the columns of a table, and how its file is to be read."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from .._files.tables import CSV_OPTION_NAMES
from .._show import make_printable, quote_text
from .._spelling import find_nearest_name
from ._request import Request, parse_names


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Examples keep their lines; the usage has what must be there, the rest is in the list."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=20)

    def add_usage(
        self, usage: Any, actions: Any, groups: Any, prefix: Any = None
    ) -> None:
        needed = [
            action for action in actions if action.required or not action.option_strings
        ]
        super().add_usage(usage, needed, [], prefix)

    def _format_action(self, action: argparse.Action) -> str:
        """List commands without a line for the word COMMAND."""
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        self._dedent()
        text = super()._format_action(action)
        self._indent()
        return text.partition("\n")[2]


class _StoreOneOrListAction(argparse.Action):
    """A text; all of them as a list if the option is given several times."""

    def __call__(
        self, parser: Any, namespace: Any, values: Any, option: Any = None
    ) -> None:
        earlier_values = getattr(namespace, self.dest)
        if isinstance(earlier_values, str):
            earlier_values = [earlier_values]
        setattr(
            namespace,
            self.dest,
            values if earlier_values is None else [*earlier_values, values],
        )


class _SetAttributesAction(argparse.Action):
    """An option whose words set the attributes in `means`; the words themselves are kept, too."""

    def __init__(
        self, *names: Any, means: Callable[[str], dict[str, Any]], **how: Any
    ) -> None:
        super().__init__(*names, **how)
        self.means = means

    def __call__(
        self, parser: Any, namespace: Any, values: Any, option: Any = None
    ) -> None:
        try:
            values_by_attribute = self.means(values)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        vars(namespace).update(values_by_attribute)
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or []), values])


CONDITION_FORM = "MEASURE[.low|.high] > or < NUMBER"
#: What --allow permits, and the attribute that it sets.
_ATTRIBUTE_BY_ALLOWED_WORD = {
    "remote": "allow_remote",
    "order": "any_order",
    "no-gain": "force",
    "edited": "edited",
    "repeated": "repeated",
}
#: Options and commands by the words that other tools, or Python, have for them.
_MEANING_BY_FOREIGN_WORD = {
    "--pos-label": "--positive",
    "--on": "--id",
    "--key": "--id",
    "summary": "audit --save",
    "summarize": "audit --save",
    "report": "audit",
    "calibrate": "fit",
    "recalibrate": "fit",
    "predict": "apply",
    "transform": "apply",
}
_REMOTE_HELP = (
    "also read addresses (https://, s3://, file://), each copied to a temporary "
    "folder first"
)
_MISSING_CHOICES = {
    "drop": (
        "drop_missing",
        True,
        "leave out rows with a missing value, and print which",
    ),
    "keep": (
        "allow_missing",
        True,
        "leave the new cells empty if the probability is missing",
    ),
    "absent": (
        "absent",
        "nan",
        "an empty cell (null) of --prob, or the missing end of a list, is a choice "
        "that the row does not have",
    ),
}


class OptionContainer(argparse._ActionsContainer):
    """Base of parsers and of groups of options, with methods that add options."""

    def add_argument_group(self, *args: Any, **options: Any) -> "_Group":
        """Add a group, as argparse does, that has the methods of `Options`."""
        group = _Group(self, *args, **options)
        self._action_groups.append(group)
        return group

    def add_repeatable_option(self, name: str, metavar: str, text: str) -> None:
        """Add an option that can be given several times, described by a text."""
        self.add_argument(name, action="append", metavar=metavar, help=text)

    def add_file_arguments(
        self,
        what: str = "a table: csv or JSON lines (also compressed), parquet, Arrow, Excel; a folder "
        "or a pattern of these; - is the standard input",
    ) -> None:
        """Add the files that a command reads."""
        self.add_argument("files", nargs="+", metavar="FILE", help=what)

    def add_column_options(self) -> "_Group":
        """Add the options that name the columns; returns their group."""
        group = self.add_argument_group("columns")
        group.add_shared_options("--label")
        group.add_score_options()
        group.add_shared_options("--weight")
        return group

    def add_shared_options(self, *names: str) -> None:
        """Add options that are the same in several commands."""
        for name in names:
            self.add_argument(name, **_SHARED_OPTIONS[name])

    def add_score_options(
        self,
        order: str = "the sorted labels",
        positive: str = "1, or true; other labels need it",
        *,
        classes: bool = True,
    ) -> None:
        """Add the options that name the columns with the scores of each class.

        Without ``--classes`` they are in the `order` that this text names, and a single
        column belongs to the class `positive` without ``--positive``.
        """
        self.add_repeatable_option(
            "--prob",
            "COLUMN,...",
            "one column with the probability of the positive class, or one column per "
            f"class, in the order of {order} or of --classes; can be given several times, "
            "which also allows names that contain a comma",
        )
        if not classes:
            return
        self.add_repeatable_option(
            "--classes",
            "LABEL,...",
            f"the classes in the order of the columns, if it is not that of {order} or the "
            "table lacks a class",
        )
        self.add_argument(
            "--positive",
            metavar="LABEL",
            help="the class that a single column belongs to, pos_label in Python (default: "
            f"{positive})",
        )

    def add_cluster_option(self, more: str) -> None:
        """Add the option for rows that belong together; `more`: what follows from it."""
        self.add_argument(
            "--cluster",
            dest="group",
            metavar="COLUMN",
            help="rows with the same value of this column belong together, such as the "
            f"samples of one question: {more}",
        )

    def add_soft_labels_option(
        self,
        weigh: str = ", which count as weights. Each row is a cluster without --cluster",
    ) -> None:
        """Add the option for labels that are shares; `weigh`: what numbers of votes do."""
        self.add_argument(
            "--soft-labels",
            action="store_const",
            const=True,
            help="labels are shares from 0 to 1, such as those of several annotators: --label "
            "names one column with the share of the class of --prob, or one column per class "
            f"in the order of --prob, with shares or with numbers of annotators{weigh}",
        )

    def add_report_options(self) -> None:
        """Add the options of the results of a report."""
        self.add_argument(
            "--name", metavar="TEXT", help="name of the model (default: its columns)"
        )
        self.add_argument(
            "--out",
            dest="pages",
            action=_SetAttributesAction,
            means=lambda word: {"out": word, "no_page": word == "none"},
            metavar="FILE",
            help="the page to write, or none (default: report.html)",
        )
        self.set_defaults(out="report.html")
        self.add_shared_options("--json", "--markdown")
        self.add_repeatable_option(
            "--fail-if",
            "RULE",
            f'exit with code 3 if this condition holds: "{CONDITION_FORM}", for '
            'instance "smooth_calibration_error > null_mean" for more than chance, or '
            '"accuracy < 0.7"; can be given several times',
        )

    def add_allow_option(self, **texts: str) -> None:
        """Add the option that allows what is rejected by default, as its texts describe."""
        what = {name.replace("_", "-"): text for name, text in texts.items()}
        self.add_argument(
            "--allow",
            action=_SetAttributesAction,
            means=lambda word: {_ATTRIBUTE_BY_ALLOWED_WORD[word]: True},
            choices=(*what,),
            metavar="WORD",
            help="; ".join(f"{name}: {text}" for name, text in what.items()),
        )
        if "order" in what:
            self.set_defaults(any_order=False)

    def _add_missing_values_option(self, choices):
        texts = "; ".join(f"{word}: {_MISSING_CHOICES[word][2]}" for word in choices)
        self.add_argument(
            "--missing",
            action=_SetAttributesAction,
            means=lambda word: dict([_MISSING_CHOICES[word][:2]]),
            choices=choices,
            metavar="WORD",
            help=f"{texts} (default: an error)",
        )

    def add_scale_option(self, *, marks: bool = True, logits: bool = False) -> None:
        """Add the option for columns of scores that do not hold probabilities."""
        kinds = {"percent": "from 0 to 100"}
        if logits:
            kinds["logits"] = "a single column holds log-odds of the positive class"
        if marks:
            kinds["LOW,HIGH"] = "marks from LOW (0 %%) to HIGH (100 %%), such as 0,10"

        def parse_scale_kind_or_ends_as_dict(word):
            attributes: dict[str, Any] = {
                "percent": False,
                "logits": False,
                "scale": None,
            }
            if word in ("percent", "logits") and word in kinds:
                return attributes | {word: True}
            if not marks:
                raise argparse.ArgumentTypeError(
                    f"expected percent, got {quote_text(word)}"
                )
            return attributes | {"scale": parse_scale_ends(word)}

        self.add_argument(
            "--scale",
            dest="numbers",
            action=_SetAttributesAction,
            means=parse_scale_kind_or_ends_as_dict,
            metavar="KIND",
            help="kind of the numbers in --prob, if they are not probabilities: "
            + "; ".join(f"{kind}, {text}" for kind, text in kinds.items()),
        )

    def add_reading_options(
        self,
        *,
        missing: Sequence[str] = ("drop", "absent"),
        divides_rounded_rows: bool = False,
        has_tolerance_option: bool = True,
        **allowed: str,
    ) -> None:
        """Add the options for reading a file.

        `missing` is what may become of holes. With `has_tolerance_option` rows of
        several columns may be divided by their sums; with `divides_rounded_rows`
        rounded ones always are. The texts list what else may be `allowed`.
        """
        group = self.add_argument_group("reading")
        group._add_missing_values_option(tuple(missing))
        if has_tolerance_option:
            otherwise = "such rows are an error"
            if divides_rounded_rows:
                otherwise = (
                    "rounded rows are divided with a warning, others are an error"
                )
            group.add_argument(
                "--tolerance",
                dest="sums",
                action=_SetAttributesAction,
                means=_parse_normalize_and_tolerance_as_dict,
                metavar="T",
                help="divide rows of probabilities by their sums, without a message, if the "
                "sums differ from 1 by at most T, or by any amount with any (default: "
                f"{otherwise})",
            )
        group.add_argument(
            "--read",
            dest="form",
            action=_SetAttributesAction,
            means=_parse_csv_option_as_dict,
            metavar="WHAT=HOW",
            help="format of a csv file, if it is not detected: sep=; or sep=tab, "
            "decimal=, for a decimal comma, encoding=cp1252 (default: utf-8), "
            "header=NAME,NAME; can be repeated",
        )
        group.add_argument(
            "--skip-rows",
            type=make_integer_parser(0),
            metavar="N",
            help="leave out N lines of a csv file, or rows of a workbook, above the names of the "
            "columns: titles and comments",
        )
        group.add_allow_option(remote=_REMOTE_HELP, **allowed)


class _Group(OptionContainer, argparse._ArgumentGroup):
    """Options that the help lists together."""


class Parser(OptionContainer, argparse.ArgumentParser):
    """Examples keep their lines, options are written in full.

    The help ends with the `examples`, and the `epilog` if there is one.
    """

    def __init__(
        self, examples: Sequence[str] = (), epilog: str = "", **options: Any
    ) -> None:
        options |= {
            "formatter_class": _HelpFormatter,
            "allow_abbrev": False,
            "add_help": False,
        }
        options["epilog"] = "\n  ".join(["examples:", *examples]) + epilog
        super().__init__(**options)
        self.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does; the error about an unknown option names the nearest one."""
        arguments = sys.argv[1:] if args is None else [*args]
        parsed, extra = self.parse_known_args(arguments, namespace or Request())
        if extra:
            unknown = next((text for text in extra if text.startswith("-")), extra[0])
            options = (
                self._get_action_by_option(arguments[0])
                if unknown.startswith("--")
                else ()
            )
            near = _suggest_option_or_command_if_any(unknown.partition("=")[0], options)
            hint = f" (do you mean {near}?)" if near else ""
            self.error(
                f"unrecognized arguments: {make_printable(' '.join(extra), 200)}{hint}"
            )
        return parsed

    def _get_action_by_option(self, command):
        """Return the actions of a command by the names of its options."""
        for action in self._actions:
            if (
                isinstance(action, argparse._SubParsersAction)
                and command in action.choices
            ):
                return action.choices[command]._option_string_actions
        return self._option_string_actions

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the nearest choice beside one that is not known."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = _suggest_option_or_command_if_any(value, action.choices or ())
            if near:
                error.message += f" (do you mean {near}?)"
            raise


def _suggest_option_or_command_if_any(word, known_words):
    """Return what a word of other tools means here, else the nearest name, or None."""
    meant = _MEANING_BY_FOREIGN_WORD.get(str(word).replace("_", "-"))
    if meant is not None and meant.split()[0] in known_words:
        return meant
    return find_nearest_name(word, known_words)


def parse_scale_ends(text: str) -> tuple[float, float]:
    """Return a type of argparse: two numbers, the lower one first."""
    try:
        low, high = (float(number) for number in text.split(","))
    except ValueError:
        low = high = 0.0
    if not -float("inf") < low < high < float("inf"):
        raise argparse.ArgumentTypeError(
            f"expected two numbers, the lower one first, got {quote_text(text)}. "
            f"Write for instance "
            "0,10"
        )
    return low, high


def _parse_normalize_and_tolerance_as_dict(word):
    if word == "any":
        return {"normalize": True, "tolerance": None}
    return {"normalize": False, "tolerance": parse_float_text(word)}


def _parse_csv_option_as_dict(word):
    name, _, value = word.partition("=")
    if name not in CSV_OPTION_NAMES[:-1] or not value:
        raise argparse.ArgumentTypeError(
            f"expected {', '.join(CSV_OPTION_NAMES[:-1])} with = and a value, got "
            f"{quote_text(word)}"
        )
    if name == "decimal" and value not in (".", ","):
        raise argparse.ArgumentTypeError(
            f"expected decimal=. or decimal=, got {quote_text(word)}"
        )
    return {name: parse_names([value]) if name == "header" else value}


def make_integer_parser(minimum: int) -> Any:
    """Return a type of argparse: whole numbers from `minimum`."""
    rule = f"a whole number from {minimum}"
    return make_number_parser(
        rule, lambda n: n >= minimum, lambda text: int(text) if text.isdigit() else -1
    )


def make_number_parser(
    rule: str,
    fits: Callable[[float], bool],
    read: Callable[[str], float] = float,
    hint: Callable[[str], str | None] = lambda text: None,
) -> Any:
    """Return a type of argparse: numbers that fit.

    `hint` returns what to write in place of some texts.
    """

    def parse_number(text):
        with suppress(ValueError):
            if fits(value := read(text)):
                return value
        more = f". {hint(text)}" if hint(text) else ""
        raise argparse.ArgumentTypeError(f"expected {rule}, got {text!r}{more}")

    return parse_number


def suggest_plain_number(text: str) -> str | None:
    """Return what to write for a number with a percent sign or a decimal comma.

    None for other texts.
    """
    match = re.fullmatch(
        r"\s*([+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*", text
    )
    if match is None or not (match[2] or "," in match[1]):
        return None
    number = float(match[1].replace(",", ".")) / (100 if match[2] else 1)
    return f"Write {number:.15g} for {text.strip()}"


def parse_float_text(text: str) -> float:
    """Parse a number, as a type of argparse."""
    try:
        return float(text)
    except ValueError:
        hint = suggest_plain_number(text) or "Write one with a point"
        raise argparse.ArgumentTypeError(
            f"expected a number, got {text!r}. {hint}"
        ) from None


#: A type of argparse.
parse_fraction = make_number_parser(
    "a number between 0 and 1", lambda number: 0 < number < 1, hint=suggest_plain_number
)

_SHARED_OPTIONS: dict[str, dict[str, Any]] = {
    "map": {"metavar": "MAP", "help": "the map, as fit wrote it"},
    "--label": {
        "action": _StoreOneOrListAction,
        "metavar": "COLUMN",
        "help": "column of the true labels: numbers, text or booleans; with "
        "--soft-labels, several columns can be named as in --prob",
    },
    "--weight": {"metavar": "COLUMN", "help": "sample weights, at least 0"},
    "--prediction": {
        "metavar": "COLUMN",
        "help": "column of the predicted class, if the one column of --prob is the "
        "confidence in it, not the probability of one fixed answer: for that use "
        "--positive; the outcome is then whether it equals --label "
        "(tables are held in memory)",
    },
    "--resamples": {
        "type": make_integer_parser(2),
        "metavar": "N",
        "help": "resamples per interval (default: 200, fewer for many rows)",
    },
    "--level": {
        "type": parse_fraction,
        "default": 0.9,
        "metavar": "L",
        "help": "level of the intervals, between 0 and 1 (default: %(default)s)",
    },
    "--query": {
        "metavar": "SQL",
        "help": "read what this query of the database FILE returns",
    },
    "--dask": {
        "metavar": "ADDRESS",
        "help": "distribute the files to the workers of this dask scheduler",
    },
    "--json": {"metavar": "FILE", "help": "write all numbers"},
    "--markdown": {
        "metavar": "FILE",
        "help": "write the tables as text for a wiki",
    },
}
