"""Which columns of a table are read for what: the options of a command beside the header."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._show import quoted
from ._names import split_columns
from ._options import check_different, check_groups, label_columns
from ._wording import refuse

if TYPE_CHECKING:
    import argparse


@dataclass(frozen=True)
class Roles:
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

    @classmethod
    def of(cls, options: "argparse.Namespace", present: Sequence[str]) -> "Roles":
        """The columns that the options name among those that are present; refuses two roles."""
        scores, groups = split_columns(options.prob, present), named_groups(options, present)
        labels = label_columns(options, present)
        check_different(labels, scores)
        check_groups(groups, labels, scores)
        few = (getattr(options, name, None) for name in ("weight", "time", "group", "prediction"))
        roles = cls(labels, scores, [*filter(None, few)], groups, [])
        roles.features.extend(_named_features(options, present, roles.measured))
        return roles

    @property
    def measured(self) -> list[str]:
        """The columns that must have a value, each once."""
        return [*dict.fromkeys([*self.labels, *self.scores, *self.others])]

    @property
    def all(self) -> list[str]:
        """All columns that are read, each once."""
        return [*dict.fromkeys([*self.measured, *self.groups, *self.features])]


def picked(options: "argparse.Namespace", present: Sequence[str]) -> list[str]:
    """All columns that are read."""
    return Roles.of(options, present).all


def named_groups(options: "argparse.Namespace", present: Sequence[str]) -> list[str]:
    """The columns of ``--by``, which only `audit` has, each once."""
    given = getattr(options, "by", None) or ()
    names = list(dict.fromkeys(split_columns(given, present)))
    if given and not names:
        refuse("a column after --by", "an empty text", "Name it, or leave it out")
    return names


def _named_features(options, present, measured):
    """The columns of ``--features``, which only `audit` has, each once; "all" is all others."""
    given = getattr(options, "features", None) or ()
    names = list(dict.fromkeys(split_columns(given, present)))
    if given and not any(names):
        refuse("a column after --features", "an empty text", "Name it, or leave it out")
    if names == ["all"] and "all" not in present:
        return [name for name in present if name not in measured]
    if options.label in names:
        refuse(
            "features that are known with the scores",
            f"{quoted(options.label)}, the column of --label: it tells everything",
            "Leave it out of --features",
        )
    return names
