"""The request of a command: one description of columns and reading, made by the parser."""

import argparse
import csv
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .._files.columns import expand_list_column_name
from .._files.tables import CSV_OPTION_NAMES
from .._show import quote_text
from ._messages import invalid_option

#: What the attributes are called that a word of an option sets.
_OPTION_BY_ATTRIBUTE = {
    "absent": "missing absent",
    "drop_missing": "missing drop",
    "group": "cluster",
    "logits": "scale logits",
}


@dataclass
class Request(argparse.Namespace):
    """The options that several commands have; those of one command stand beside them.

    A command that lacks an option leaves it at its default here.
    """

    run: Callable[..., int | None] | None = None
    modules: Sequence[str] = ("rich", "pandas")  # what the command needs
    words: dict[str, str] = field(default_factory=dict)  # as in `in_options`
    files: Sequence[str] = ()
    # columns
    label: Any = None  # a text; several of soft labels
    second_label: str | None = None  # the column of labels in the second of two files
    prob: Any = None  # texts
    weight: str | None = None
    classes: list[str] | None = None
    positive: str | None = None
    group: str | None = None
    prediction: str | None = None
    time: str | None = None
    by: list[str] | None = None
    features: list[str] | None = None
    soft_labels: bool | None = None
    grades: Any = None
    # what cells mean
    percent: bool = False
    logits: bool = False
    scale: tuple[float, float] | None = None
    drop_missing: bool = False
    allow_missing: bool = False
    absent: Literal["nan"] | None = None
    tolerance: float | None = None
    normalize: bool = False
    sums: list[str] | None = None  # the words of --tolerance
    # how files are read
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: list[str] | None = None
    skip_rows: int | None = None
    allow_remote: bool = False
    any_order: bool | None = None  # None of commands without --allow order
    edited: bool = False
    repeated: bool = False
    force: bool = False
    recalibrate: bool = False
    dask: str | None = None
    query: str | None = None
    # results
    out: Any = None  # a text if there is one
    no_page: bool = False
    save: str | None = None
    json: str | None = None
    markdown: str | None = None

    @property
    def csv_options(self) -> dict[str, Any]:
        """How csv files are to be read, as `load_table` takes it; only what was given."""
        form = {name: getattr(self, name) for name in CSV_OPTION_NAMES}
        return {name: value for name, value in form.items() if value is not None}

    @property
    def score_kind(self) -> Literal["proba", "logits"]:
        """What the columns of scores hold."""
        return "logits" if self.logits else "proba"

    @property
    def scale_ends_if_declared(self) -> tuple[float, float] | None:
        """The ends of the scale of the scores; None of probabilities and logits."""
        return (0.0, 100.0) if self.percent else self.scale

    @property
    def sum_tolerance(self) -> float | None:
        """How far sums of rows may be from 1."""
        return 1 - 1e-6 if self.normalize else self.tolerance

    def get_label_columns(self, present: Collection[str] = ()) -> list[str]:
        """Return the column of labels, or those of soft labels.

        `present` is the argument of `parse_column_names_expanding_lists`.
        """
        if self.label is None:
            return []
        named_columns = [self.label] if isinstance(self.label, str) else self.label
        if self.soft_labels:
            return parse_column_names_expanding_lists(named_columns, present)
        return named_columns

    def find_roles(self, present: Sequence[str]) -> "ColumnRoles":
        """Return the columns that are named among those that are present; reject two roles."""
        scores = parse_column_names_expanding_lists(self.prob, present)
        labels = self.get_label_columns(present)
        groups = self.get_group_columns(present)
        check_label_and_prob_columns(labels, scores)
        _check_groups(groups, labels, scores)
        others = [*filter(None, (self.weight, self.time, self.group, self.prediction))]
        roles = ColumnRoles(labels, scores, others, groups, [])
        roles.features.extend(
            self._parse_features_option(present, roles.required_columns)
        )
        return roles

    def pick_columns(self, present: Sequence[str]) -> list[str]:
        """Return all columns that are read."""
        return self.find_roles(present).all_columns

    def get_group_columns(self, present: Sequence[str]) -> list[str]:
        """Return the columns of ``--by``, each once."""
        return _parse_distinct_option_columns("--by", self.by, present)

    def _parse_features_option(self, present, measured):
        """Return the columns of ``--features``, each once; "all" is all others."""
        names = _parse_distinct_option_columns("--features", self.features, present)
        if names == ["all"] and "all" not in present:
            return [name for name in present if name not in measured]
        if self.label in names:
            raise invalid_option(
                expected="features that are known with the scores",
                got=f"{quote_text(self.label)}, the column of --label, which "
                f"determines the outcome",
                hint="Leave it out of --features",
            )
        return names

    def check_required_columns_named(
        self, columns_text: str = "the labels and of the probabilities"
    ) -> None:
        """Reject a table of which the label or the probabilities are not named."""
        if self.label is None or self.prob is None:
            missing = " and ".join(
                f"--{n}" for n in ("label", "prob") if getattr(self, n) is None
            )
            raise invalid_option(
                sentence=(
                    f"--label and --prob, the columns of {columns_text}, are required; "
                    f"missing: {missing}"
                ),
                hint="Name it",
            )
        if not isinstance(self.label, str) and not self.soft_labels:
            raise invalid_option(
                sentence=f"--label was given {len(self.label)} times",
                hint=(
                    "For shares of several classes add --soft-labels; many labels per row "
                    "go with the command audit-multilabel"
                ),
            )

    def check_conflicting_options(self, option: str, others: Iterable[str]) -> None:
        """Reject options that would be wrong for the rows that another one makes."""
        for name in others:
            if getattr(self, name):
                raise invalid_option(
                    sentence=(
                        f"{option} and {format_option_name(name)} cannot be combined: the "
                        "results would be wrong for "
                        "these rows"
                    ),
                    hint="Leave one of the two out",
                )

    def check_combinations(self) -> None:
        """Reject what would be wrong beside --scale, --prediction, --missing or --soft-labels."""
        if self.sums is not None and self.logits:
            raise invalid_option(
                sentence="--tolerance and --scale logits cannot be combined",
                hint="Leave one out",
            )
        beside = {
            "soft_labels": ("positive", "prediction", "absent"),
            "prediction": ("classes", "positive", "features", "absent", "logits"),
            "absent": ("drop_missing",),
        }
        for option, others in beside.items():
            if getattr(self, option) is not None:
                self.check_conflicting_options(format_option_name(option), others)


def format_option_name(name: str) -> str:
    """Return the option, with its word if it has words, that sets an attribute."""
    return f"--{_OPTION_BY_ATTRIBUTE.get(name, name.replace('_', '-'))}"


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of a table by what they are for.

    Attributes
    ----------
    labels, scores : list of str
    others : list of str
        The columns of weights, times, clusters and predicted classes.
    groups, features : list of str
        Of ``--by`` and ``--features``, which may have missing values.
    """

    labels: list[str]
    scores: list[str]
    others: list[str]
    groups: list[str]
    features: list[str]

    @property
    def required_columns(self) -> list[str]:
        """The columns that must have a value, each once."""
        return [*dict.fromkeys([*self.labels, *self.scores, *self.others])]

    @property
    def all_columns(self) -> list[str]:
        """All columns that are read, each once."""
        return [*dict.fromkeys([*self.required_columns, *self.groups, *self.features])]


# -- names ----------------------------------------------------------------------------------------


def parse_names(values: Iterable[str], present: Collection[str] = ()) -> list[str]:
    """Return names out of arguments such as ``a,b`` and ``"x,y",z``.

    An argument may be one name.
    """
    names = []
    for value in values:
        if value in present:
            names.append(value)
            continue
        try:
            parts = next(csv.reader([value], skipinitialspace=True), [])
        except csv.Error:  # a line break inside
            parts = value.split(",")
        names += [name.strip() for name in parts]
    return names


def parse_column_names_expanding_lists(
    values: Iterable[str], present: Collection[str]
) -> list[str]:
    """Return names of columns.

    That of a list, whose values are columns by place, stands for them all.
    """
    names = parse_names(values, present)
    return [
        column for name in names for column in expand_list_column_name(name, present)
    ]


def _parse_distinct_option_columns(option, values, present):
    """Return columns that an option names, each once."""
    names = list(
        dict.fromkeys(parse_column_names_expanding_lists(values or (), present))
    )
    if values and not any(names):
        raise invalid_option(
            expected=f"a column after {option}",
            got="an empty text",
            hint="Name it, or leave it out",
        )
    return names


def check_label_and_prob_columns(
    labels: Sequence[str], columns: list[str], option: str = "--prob"
) -> None:
    """Raise an error for a column that has two roles."""
    shared_column = next((label for label in labels if label in columns), None)
    if shared_column is not None:
        raise invalid_option(
            expected="different columns for --label and --prob",
            got=f"{shared_column!r} for both",
            hint="Name the column of the probabilities with --prob",
        )
    if len(labels) > 1:
        check_label_and_prob_columns([], [*labels], "--label")
        if len(labels) != max(len(columns), 2):
            raise invalid_option(
                expected=(
                    "one column of --label in all, or one for each column of --prob (two "
                    "for a single one)"
                ),
                got=f"{len(labels)} and {len(columns)} of --prob",
                hint="Name one per class, in the order of --prob",
            )
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise invalid_option(
            expected=f"each column once in {option}",
            got=f"{twice!r} twice",
            hint="Name one column per class",
        )


def _check_groups(by, labels, columns):
    """Reject groups that the labels or the probabilities make: each is wrong by itself."""
    for option, names in (("--label", labels), ("--prob", columns)):
        twice = next((name for name in by if name in names), None)
        if twice is not None:
            raise invalid_option(
                expected="columns of --by that are known with the scores",
                got=(
                    f"{quote_text(twice)}, the column of {option}: such groups are not "
                    "calibrated even where all rows are"
                ),
                hint="Name another column, or leave --by out",
            )
