"""Whether columns of probabilities fit another order of the classes far better than the given."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from .._typing import AnyArray, FloatArray, IntArray
from ..exceptions import caution, setting
from ._labels import has_own_order

_CHANCE = np.log(1e-9)  # of ranks as good as those of the other order
FARTHER = 0.3  # by how much more rows have the largest probability on the true class
_LEAST_AUC = 0.65  # of each class under the other order
_BACKWARDS = 3.09  # of a score without information in one of a thousand tables


def better_order(
    proba: FloatArray, codes: IntArray, weight: FloatArray | None = None
) -> IntArray | None:
    """The class of each column where it cannot be the given one; see `find_column_order`."""
    k = proba.shape[1]
    table = np.bincount(codes * k + proba.argmax(axis=1), weight, k * k).reshape(k, k)
    column = _assignment(table)
    moved = np.flatnonzero(column != np.arange(k))
    rows = np.flatnonzero(np.isin(codes, moved))
    if not len(rows):
        return None
    scores, mine = proba[rows], codes[rows]
    top = moved[scores[:, moved].argmax(axis=1)]
    farther = np.average(
        (top == column[mine]) * 1.0 - (top == mine),
        weights=None if weight is None else weight[rows],
    )
    if farther < FARTHER:
        return None
    ranks = [ranks_of(scores[:, column[one]], mine == one) for one in moved[np.isin(moved, mine)]]
    return np.argsort(column) if rank_well(ranks, k) else None


_EITHER_ORDER = "pass the order that they have, or the columns in the order that is named"


def order_in_doubt(
    proba: FloatArray,
    codes: IntArray,
    classes: AnyArray,
    given: str,
    weight: FloatArray | None = None,
) -> tuple[str, str, str] | None:
    """What to say of columns named in an order of their own that must have another one.

    Only an order that is not that of the sorted labels is doubted: who names it may have meant the
    order of a scale, and the columns of scikit-learn are sorted. `given` is the argument's name.
    The words are the rule, what was got and the cure, as `caution` takes them.
    """
    names, plain = classes.tolist(), np.asarray(proba)
    if not has_own_order(classes) or not len(plain) or plain.shape[1] != len(names):
        return None
    places = better_order(plain, codes, weight)
    if places is None:
        return None
    right = plain.argmax(axis=1)
    fits = [names[place] for place in places]
    return (
        f"columns in the order of {given}={names[:20]}",
        f"columns that fit {fits[:20]}: the largest probability is that of the true class in "
        f"{np.average(right == codes, weights=weight):.2f} of the rows as given, in "
        f"{np.average(places[right] == codes, weights=weight):.2f} in that order",
        f"{given}= names the columns and does not move them: "
        + setting("column_order", words=_EITHER_ORDER),
    )


def warn_of_order(
    proba: FloatArray,
    codes: IntArray,
    classes: AnyArray,
    given: str,
    where: str,
    weight: FloatArray | None = None,
) -> None:
    """Warn where `order_in_doubt` finds columns that must have another order."""
    words = order_in_doubt(proba, codes, classes, given, weight)
    if words is not None:
        caution(where, *words)


def warn_of_positive(proba: FloatArray, codes: IntArray, classes: AnyArray, where: str) -> None:
    """Warn where one column is that of the first class, as the order of the rows by it shows.

    With that class as `pos_label` it was meant as scikit-learn's ``brier_score_loss`` and curves
    take it; labels that are text were meant in an order that is not theirs.
    """
    one, (first, second) = np.asarray(proba)[:, 0], classes.tolist()
    if not ranks_of(1 - one, codes == 1).shown:
        return
    share = ((one > 0.5) == codes).mean()
    caution(
        where,
        f"one column with the probability of the second class, {second!r}",
        f"one with which {first!r} becomes more frequent, far beyond chance (the likelier class is "
        f"the true one in {share:.2f} of the rows)",
        "One column belongs to the last of the labels, whatever pos_label= is: pass "
        f"1 - y_proba, or labels={[second, first]}",
    )


def _assignment(table):
    """The column of each class: that of the most rows, its own among equals."""
    k = len(table)
    if (table.argmax(axis=1) == np.arange(k)).all():
        return np.arange(k)
    return linear_sum_assignment(table + 1e-6 * np.eye(k), maximize=True)[1]


class Ranks(NamedTuple):
    """Pairs of a row of a class and one of another in this order, and the numbers of both."""

    pairs: float
    ones: float
    others: float

    @property
    def auc(self) -> float:
        return self.pairs / (self.ones * self.others)

    @property
    def z(self) -> float:
        """Mann and Whitney's statistic, standard normal for ranks without information."""
        spread = np.sqrt((self.ones + self.others + 1) / (12 * self.ones * self.others))
        return float((self.auc - 0.5) / spread)

    @property
    def shown(self) -> bool:
        """Whether the order holds at the level 0.001, one-sided."""
        return bool(self.ones and self.others and self.z > _BACKWARDS)


def ranks_of(score: AnyArray, hit: AnyArray) -> Ranks:
    """The pairs of a score, of which `hit` says which rows are of the class."""
    ones, others = float(hit.sum()), float((~hit).sum())
    return Ranks(stats.rankdata(score)[hit].sum() - ones * (ones + 1) / 2, ones, others)


def rank_well(ranks: Sequence[Ranks], k: int) -> bool:
    """Whether all classes are ranked well, and together so that chance cannot have done it."""
    if not all(one.others and one.auc >= _LEAST_AUC for one in ranks):
        return False
    chance = stats.norm.logsf(np.mean([one.z for one in ranks]))
    return bool(chance + gammaln(k + 1) < _CHANCE)
