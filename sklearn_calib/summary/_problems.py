"""How rows become two-class problems, and what measures are given of their cells."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._argument_checks import check_choice, validate_count
from .._kernels import _classical_tests as tests
from .._kernels._cells import (
    COUNT_COLUMN_0,
    COUNT_COLUMN_1,
    N_WEIGHTED_COLUMNS,
    TOTAL_NAMES,
    compute_mean_label_proba_by_cell,
    get_label_weight_sums_and_squares,
)
from .._kernels._exact_sums import SUM_FRACTION_BITS
from .._kernels._two_class_problems import name_problem
from .._typing import AnyArray, FloatArray, IntArray, Multiclass
from ..exceptions import invalid_input
from ..metrics import BinaryProblem
from ._state import CellState

# The coarsest cells, octaves and cuts, must fit.
MIN_CELLS_PER_PROBLEM = 4096
#: Measures whose losses are added up, and what their sums are called.
SUM_NAME_BY_LOSS = {"log_loss": "log_loss", "brier_loss": "brier"}
# Stands for 1 - p if it is computed from p without a loss.
EMPTY_COMPLEMENT = np.zeros(0)


def get_scores_complements_and_events(
    codes: AnyArray, block: FloatArray, positive: int
) -> tuple[FloatArray, FloatArray, AnyArray]:
    """Return what `CellState.add` takes: scores, their complements, and events.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,), 0 or 1
    block : ndarray of shape (n_samples,) or (n_samples, 2)
        One dimension is the probability of the positive class.
    positive : {0, 1}
    """
    first, second = (EMPTY_COMPLEMENT, block) if block.ndim == 1 else block.T
    if positive == 0:
        # The event is always the positive class.
        codes = 1 - codes
        if block.ndim == 2:
            first, second = second, first
    return second, first, codes.astype(np.uint8, copy=False)


def make_empty_cell_states(
    kind: Multiclass, n_classes: int, max_cells: int
) -> list[CellState]:
    """Return empty states of the problems, which share `max_cells`: at least 4096 for each."""
    if n_classes == 2 or kind in ("auto", "confidence"):
        return [CellState(max_cells)]
    # All problems together take the memory of one, down to a least resolution.
    cells_per_class = max(max_cells // n_classes, min(MIN_CELLS_PER_PROBLEM, max_cells))
    return [CellState(cells_per_class) for _ in range(n_classes)]


class Totals(NamedTuple):
    """Sums over the rows of a summary; p is the score of the positive class, q = 1 - p.

    Parameters
    ----------
    n_samples : int
        Rows of positive weight.
    weight, squared_weight : float
        Sums of w and of w^2.
    log_loss, brier : float
        Weighted sums of the losses of the rows, as `log_loss` and `brier_loss` count
        them.
    variance, squared_variance, spiegelhalter_variance : float
        Sums of w p q, w^2 p q and w^2 p q (1 - 2 p)^2.
    certain_and_wrong : int
        Rows whose true class has probability 0.
    """

    n_samples: int
    weight: float
    squared_weight: float
    log_loss: float
    brier: float
    variance: float
    squared_variance: float
    spiegelhalter_variance: float
    certain_and_wrong: int


class MulticlassTotals(NamedTuple):
    """Sums over the rows of a summary of three or more classes; l is the loss of a row.

    For each of the losses, that of `log_loss` and that of `brier_loss`: its mean, the
    standard error of the mean, and what labels drawn from the predictions would give.

    Parameters
    ----------
    n_samples : int
        Rows of positive weight.
    weight, squared_weight : float
        Sums of w and of w^2.
    correct : float
        The weight of the rows whose first largest probability is that of the true
        class.
    certain_and_wrong : int
        Rows whose true class has probability 0.
    log_loss, log_loss_of_squares, squared_log_loss : float
        Sums of w l, w^2 l and w^2 l^2.
    expected_log_loss, variance_of_log_loss : float
        Sums of w E(l) and w^2 Var(l) for labels drawn from the predictions.
    brier, brier_of_squares, squared_brier, expected_brier, variance_of_brier : float
        The same of the Brier loss.
    """

    n_samples: int
    weight: float
    squared_weight: float
    correct: float
    certain_and_wrong: int
    log_loss: float
    log_loss_of_squares: float
    squared_log_loss: float
    expected_log_loss: float
    variance_of_log_loss: float
    brier: float
    brier_of_squares: float
    squared_brier: float
    expected_brier: float
    variance_of_brier: float


def compute_multiclass_totals(
    codes: AnyArray,
    block: FloatArray,
    weight: FloatArray | None,
    count: AnyArray | None,
) -> tuple[list[int], FloatArray, AnyArray]:
    """Return the numbers of `MulticlassTotals` of one block, as `_kernels._exact_sums`.

    Also the confidence of each row, and whether it is right.
    """
    from .._kernels._exact_sums_compiled import (
        compute_loss_terms_true_largest_and_argmax,
        sum_to_exact_integers,
    )

    terms, true, largest, place = compute_loss_terms_true_largest_and_argmax(
        np.ascontiguousarray(block.T), codes
    )
    hit = place == codes
    # Counts are shifted into the unit of exact sums; sums of squares are equal to sums
    # of weights here.
    if weight is None and count is None:
        sums = sum_to_exact_integers(terms)
        n, correct, wrong = (
            int(number) << SUM_FRACTION_BITS
            for number in (len(codes), hit.sum(), (true == 0).sum())
        )
        heads = [n, n, n, correct, wrong]
        sums = [*heads, *(sums[i] for i in (0, 0, 1, 2, 3, 4, 4, 5, 6, 7))]
        return sums, largest, hit
    row_count = np.ones(len(codes)) if count is None else count.astype(float)
    w = np.ones(len(codes)) if weight is None else weight
    # A row that is counted c times adds c times its weight and c times its squared
    # weight.
    cw = row_count * w
    cv = row_count * w**2
    rows = [row_count * (w > 0), cw, cv, cw * hit, row_count * ((w > 0) & (true == 0))]
    for loss, square, mean, spread in (terms[:4], terms[4:]):
        rows += [cw * loss, cv * loss, cv * square, cw * mean, cv * spread]
    return sum_to_exact_integers(np.array(rows)), largest, hit


class CellProblems:
    """A summary of three or more classes as two-class problems, in place of `Predictions`."""

    def __init__(
        self, kind: Multiclass, states: list[CellState], classes: AnyArray
    ) -> None:
        self.kind = kind
        self.states = states
        self.classes = classes

    def problems(self, multiclass: Multiclass = "auto") -> list[BinaryProblem]:
        """Return `Predictions.problems` of the one option that the cells were made for."""
        check_multiclass_matches_summary(multiclass, self.kind)
        masses = [
            get_label_weight_sums_and_squares(state.table)[0].sum()
            for state in self.states
        ]
        problems = []
        for number, (state, mass) in enumerate(zip(self.states, masses, strict=True)):
            if mass > 0:
                codes, proba, weight = expand_cells_to_label_rows(state)
                share = (
                    1 / len(masses) if self.kind == "classwise" else mass / sum(masses)
                )
                title = name_problem(self.kind, self.classes, number)
                events = codes.astype(float)
                problems.append(
                    BinaryProblem(proba[:, 1], events, weight, share, title)
                )
        return problems


def check_multiclass_matches_summary(multiclass: Multiclass, kind: Multiclass) -> None:
    """Raise ValueError if a summary of several classes was made for another option."""
    kind = "confidence" if kind == "auto" else kind
    if multiclass not in ("auto", kind):
        raise invalid_input(
            "multiclass",
            expected=f"multiclass {kind!r}, which was summarised",
            got=repr(multiclass),
            hint=f"Summarise the rows with CalibrationSummary(multiclass={multiclass!r})",
        )


def expand_cells_to_label_rows(
    state: CellState,
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return codes, probabilities and weights of two rows per cell; empty ones are left out.

    Both labels are at the common mean; at means of their own, isotonic regression would
    see them.
    """
    table = state.table
    weight = get_label_weight_sums_and_squares(table)[0].ravel()
    kept = weight > 0
    codes = np.tile(np.arange(2), len(table))
    return (
        codes[kept],
        np.repeat(compute_mean_label_proba_by_cell(table), 2, axis=0)[kept],
        weight[kept],
    )


_TestResult = tuple[float, float]


def _test_spiegelhalter(table: AnyArray, totals: dict[str, float]) -> _TestResult:
    excess = totals["brier"] - totals["variance"]
    variance = totals["spiegelhalter_variance"]
    return tests.run_spiegelhalter_test(excess, variance, totals["certain_and_wrong"])


def _test_hosmer_lemeshow(
    table: AnyArray, totals: dict[str, float], n_bins: int = 10
) -> _TestResult:
    n_bins = validate_count(n_bins, "n_bins")
    rows, events = _get_row_and_event_counts(table)
    return tests.run_hosmer_lemeshow_test(
        compute_mean_label_proba_by_cell(table)[:, 1],
        rows,
        events,
        n_bins,
        0,
    )


def _test_cox(table: AnyArray, totals: dict[str, float]) -> _TestResult:
    rest, score = compute_mean_label_proba_by_cell(table).T
    return tests.run_cox_test(score, rest, *_get_row_and_event_counts(table))


def _test_cumulative(
    table: AnyArray, totals: dict[str, float], *, statistic: str
) -> _TestResult:
    score = compute_mean_label_proba_by_cell(table)[:, 1]
    weight = get_label_weight_sums_and_squares(table)[0]
    # Observed less expected weight of the events of a cell.
    residual = weight[:, 1] - weight.sum(axis=1) * score
    return tests.run_cumulative_test(
        score, residual, totals["squared_variance"], statistic
    )


def _get_row_and_event_counts(table):
    """Return the numbers of rows and of events in each cell."""
    if table.shape[1] == N_WEIGHTED_COLUMNS:
        raise invalid_input(
            expected="rows without sample_weight for this test",
            got="weighted ones",
            hint="Test 'spiegelhalter', 'kuiper' or a measure",
        )
    return table[:, COUNT_COLUMN_0] + table[:, COUNT_COLUMN_1], table[:, COUNT_COLUMN_1]


#: The classical tests by name: functions of the cells, their totals and the opening of
#: errors.
CLASSICAL_TEST_BY_NAME: dict[str, Callable[..., _TestResult]] = {
    "spiegelhalter": _test_spiegelhalter,
    "hosmer_lemeshow": _test_hosmer_lemeshow,
    "cox": _test_cox,
    **{
        statistic: partial(_test_cumulative, statistic=statistic)
        for statistic in tests.SURVIVAL_FUNCTIONS
    },
}


def run_classical_test(
    name: str, state: CellState, options: dict[str, Any]
) -> _TestResult:
    """Return (statistic, p-value) of a classical test of a problem."""
    option_names = ("n_bins",) if name == "hosmer_lemeshow" else ()
    for option in options:
        check_choice(f"options of {name!r}", option, option_names)
    totals = dict(zip(TOTAL_NAMES, state.totals.tolist(), strict=True))
    return CLASSICAL_TEST_BY_NAME[name](state.table, totals, **options)
