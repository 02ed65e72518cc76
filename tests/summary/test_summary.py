import pickle

import numpy as np
import pytest
from cases import run_every_case
from cells_by_sorting import by_sorting
from error_fields import raises_invalid_input
from laws import LAWS, kept_bits, sample

from sklearn_calib import metrics
from sklearn_calib._kernels._cells import COUNT_COLUMN_0, OFFSET_COLUMN, view_as_float
from sklearn_calib.decomposition import isotonic_refinement_brier
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import spiegelhalter_test
from sklearn_calib.summary import CalibrationSummary


def golden():
    i = np.arange(1, 100_001)
    p = 0.6180339887498949 * i % 1
    return p, (0.7548776662466927 * i % 1 < p**1.5).astype(int)


def test_golden_values():
    p, y = golden()
    assert y.sum() == 39979
    fine, coarse = (
        CalibrationSummary().update(y, p),
        CalibrationSummary(4096).update(y, p),
    )
    for summary, cells, bits, offsets in (
        (fine, 56986, 13, 418713335178),
        (coarse, 2482, 7, 26146760298397),
    ):
        assert (summary.n_cells, summary.significant_bits, summary.exact) == (
            cells,
            bits,
            False,
        )
        assert (
            view_as_float(summary._states[0].table)[:, OFFSET_COLUMN].sum() == offsets
        )
        assert summary.measure("brier_loss") == pytest.approx(
            0.1620546470555, abs=1e-13
        )
        assert summary.measure("log_loss") == pytest.approx(0.4883312380901, abs=1e-13)
        for strategy in ("uniform", "quantile"):
            found = summary.measure("expected_calibration_error", strategy=strategy)
            assert found == pytest.approx(0.10021448912007, abs=1e-13)
        totals = summary.totals
        z = (totals.brier - totals.variance) / totals.spiegelhalter_variance**0.5
        assert z == pytest.approx(-7.99099084, abs=1e-8)
    for summary, smooth, isotonic in (
        (fine, 0.10021563751677, 0.15007655380),
        (coarse, 0.10021458773824, 0.15009820076),
    ):
        assert summary.measure("smooth_calibration_error") == pytest.approx(
            smooth, abs=1e-13
        )
        assert summary.measure("isotonic_refinement_brier") == pytest.approx(
            isotonic, abs=1e-11
        )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("max_cells", [4096, 65_536])
def test_equal_to_sorting(law, max_cells):
    p, y = sample(law, 6000)
    rng = np.random.default_rng(1)
    weight, counts = (
        rng.gamma(1.0, size=len(p)) * (rng.random(len(p)) < 0.9),
        rng.integers(0, 3, len(p)),
    )
    for w in (None, weight):
        for c in (None, counts):
            summary = CalibrationSummary(max_cells)
            for rows in np.array_split(rng.permutation(len(p)), 4):
                take = [None if column is None else column[rows] for column in (w, c)]
                summary.update(y[rows], p[rows], *take)
            table, shift = by_sorting(p, y, max_cells, w, c)
            found = summary._states[0].table
            assert summary._states[0].shift == shift
            assert np.array_equal(found[:, :OFFSET_COLUMN], table[:, :OFFSET_COLUMN])
            assert np.allclose(
                view_as_float(found)[:, OFFSET_COLUMN:],
                view_as_float(table)[:, OFFSET_COLUMN:],
                1e-12,
                0,
            )


@run_every_case("law", LAWS)
def test_totals(law):
    p, y = sample(law, 5000)
    w = np.random.default_rng(2).gamma(1.0, size=len(p))
    totals = CalibrationSummary().update(y, p, sample_weight=w).totals
    q, p = 1 - p.astype(float), p.astype(float)
    right = np.where(y == 1, p, q)
    assert totals.n_samples == 5000 and totals.certain_and_wrong == (right == 0).sum()
    expected = [
        w.sum(),
        w @ w,
        w @ -np.log(np.maximum(right, np.finfo(float).eps)),
        w @ (1 - right) ** 2,
        w @ (p * q),
        w**2 @ (p * q),
        w**2 @ (p * q * (1 - 2 * p) ** 2),
    ]
    assert np.allclose(totals[1:-1], expected, 1e-12, 0)
    result = spiegelhalter_test(y, p, sample_weight=w)
    if np.isfinite(result.statistic):
        z = (totals.brier - totals.variance) / totals.spiegelhalter_variance**0.5
        assert z == pytest.approx(result.statistic, rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_order_and_partition_do_not_matter(law, small_cells):
    p, y = sample(law, 3000)
    rng = np.random.default_rng(3)
    w = rng.integers(1, 4, len(p)).astype(float)
    for max_cells, weight in ((200, None), (700, w), (5000, None)):
        once = CalibrationSummary(max_cells).update(y, p, weight)
        parts = []
        for rows in np.array_split(rng.permutation(len(p)), [10, 11, 11, 1500]):
            part = CalibrationSummary(max_cells)
            part.update(y[rows], p[rows], None if weight is None else weight[rows])
            parts.append(pickle.loads(pickle.dumps(part)))
        while len(parts) > 1:
            first = parts.pop(rng.integers(len(parts)))
            parts.append(first + parts.pop(rng.integers(len(parts))))
        assert parts[0] == once
        assert np.array_equal(
            parts[0]._states[0].table[:, : OFFSET_COLUMN + 1],
            once._states[0].table[:, : OFFSET_COLUMN + 1],
        )


def test_merge_algebra():
    p, y = sample("atoms", 9000)
    a, b, c = (CalibrationSummary(4096).update(y[i::3], p[i::3]) for i in range(3))
    before = a.copy()
    assert a + b == b + a and (a + b) + c == a + (b + c) == sum([a, b, c])
    assert a + CalibrationSummary(4096) == a == CalibrationSummary(4096) + a
    assert a == before and a is not before and a != b
    fine = CalibrationSummary().update(y[1::3], p[1::3])
    assert a + fine == fine + a == a + b  # the smaller max_cells holds
    assert a.merge(b) is a and a == before + b
    weighted = CalibrationSummary(4096).update(y[1::3], p[1::3], np.ones(3000))
    assert np.array_equal(
        (before + weighted)._states[0].table[:, :3],
        (before + b)._states[0].table[:, :3],
    )
    assert (before + weighted).totals == pytest.approx((before + b).totals, rel=1e-12)


@run_every_case("law", LAWS)
def test_counts_are_repeated_rows(law):
    p, y = sample(law, 2000)
    counts = np.random.default_rng(4).integers(0, 4, len(p))
    repeated = CalibrationSummary().update(np.repeat(y, counts), np.repeat(p, counts))
    assert CalibrationSummary().update(y, p, counts=counts) == repeated
    w = np.random.default_rng(5).random(len(p))
    given = CalibrationSummary().update(y, p, w, counts)
    rows = [np.repeat(column, counts) for column in (y, p, w)]
    assert given == CalibrationSummary().update(*rows)


def test_whole_weights_are_repetitions_for_what_reads_weights():
    p, y = sample("uniform", 2000)
    w = np.random.default_rng(6).integers(0, 4, len(p))
    weighted = CalibrationSummary().update(y, p, sample_weight=w)
    repeated = CalibrationSummary().update(y, p, counts=w)
    for name in (
        "brier_loss",
        "log_loss",
        "expected_calibration_error",
        "smooth_calibration_error",
    ):
        assert weighted.measure(name) == pytest.approx(
            repeated.measure(name), rel=1e-12
        )
    assert weighted.n_samples == (w > 0).sum() and repeated.n_samples == w.sum()


NEEDS_ROWS = {"lp_calibration_error"}


@pytest.mark.parametrize("name", sorted(metrics.all_metrics()))
@pytest.mark.parametrize("law", ["uniform", "atoms", "rates", "float32", "saturated"])
@pytest.mark.parametrize("weighted", [False, True])
def test_measures_of_rows_while_exact(name, law, weighted):
    p, y = sample(law, 400)
    p = kept_bits(p)
    w = np.random.default_rng(7).gamma(1.0, size=len(p)) if weighted else None
    summary = CalibrationSummary().update(y, p, w)
    assert summary.exact and summary.significant_bits == 52
    expected = metrics.all_metrics()[name](y, p, sample_weight=w)
    assert summary.measure(name) == pytest.approx(expected, abs=1e-12, rel=1e-12)


def test_arbitrary_scores_while_exact():
    p, y = sample("uniform", 5000)
    rows = CalibrationSummary().update(y, p).rows()
    order = np.argsort(p)
    assert np.abs(rows.proba[:, 1] - p[order]).max() < 4e-12
    assert np.array_equal(rows.y, y[order]) and (rows.sample_weight == 1).all()


@pytest.mark.parametrize("n_bins", [2, 3, 5, 6, 10, 15, 60])
@pytest.mark.parametrize("law", LAWS)
def test_bins_of_equal_width_stay_exact(law, n_bins, small_cells):
    """1 / n_bins divides into sixtieths, so no cell, however coarse, crosses the edge of a bin."""
    p, y = sample(law, 4000)
    summary = CalibrationSummary(300).update(y, p)
    assert not summary.exact
    for norm in ("l1", "l2", "max"):
        options = {"strategy": "uniform", "n_bins": n_bins, "norm": norm}
        expected = metrics.calibration_error(y, p.astype(float), **options)
        assert summary.measure("calibration_error", **options) == pytest.approx(
            expected, abs=1e-11
        )


def test_forms_of_scores():
    p, y = sample("uniform", 3000)
    one = CalibrationSummary().update(y, p)
    for scores in (
        p.tolist(),
        p[:, None],
        np.column_stack([1 - p, p]),
        np.asfortranarray(np.column_stack([1 - p, p])),
    ):
        assert CalibrationSummary().update(y.tolist(), scores) == one
    assert CalibrationSummary().update(y == 1, p) == one
    assert CalibrationSummary().update(y.astype(float), p) == one
    for dtype in (np.float32, np.float16):
        low = p.astype(dtype)
        assert CalibrationSummary().update(y, low) == CalibrationSummary().update(
            y, low.astype(float)
        )
    sloppy = np.column_stack([1 - p, p]).astype(np.float32)
    total = sloppy.astype(float).sum(axis=1)
    exact = CalibrationSummary().update(y, sloppy.astype(float)[:, 1] / total)
    assert CalibrationSummary().update(y, sloppy).measure(
        "brier_loss"
    ) == pytest.approx(exact.measure("brier_loss"), rel=1e-12)


def test_digits_near_one_are_kept():
    from sklearn_calib import canonical_proba

    z = np.array([-80.0, -79.0, 79.0, 80.0])
    summary = CalibrationSummary().update(
        [0, 0, 1, 1], canonical_proba(z, kind="logits")
    )
    assert summary.n_cells == 4
    assert np.allclose(summary.rows().proba[2:, 0], np.exp(-z[2:]), 1e-9, 0)


def test_rounding_out_of_the_interval_is_clipped():
    near = CalibrationSummary().update([0, 1], [-1e-7, 1 + 1e-7])
    assert near == CalibrationSummary().update([0, 1], [0.0, 1.0])
    assert CalibrationSummary().update(
        [0, 1], [-0.0, 1.0]
    ) == CalibrationSummary().update([0, 1], [0.0, 1.0])


def test_labels():
    p, y = sample("uniform", 500)
    words = np.where(y == 1, "yes", "no")
    plain = CalibrationSummary().update(y, p)
    both = CalibrationSummary(classes=["no", "yes"]).update(words, p)
    assert both.rows().y.tolist() == np.array(["no", "yes"])[plain.rows().y].tolist()
    named = CalibrationSummary(pos_label="yes").update(["yes"], [0.5])
    assert named.classes is None and named.measure("brier_loss") == 0.25
    assert named.rows().y.tolist() == ["yes"]
    assert named.merge(both).classes.tolist() == ["no", "yes"]
    learned = CalibrationSummary(pos_label="yes").update(words, p)
    assert learned == both
    first = CalibrationSummary(classes=["no", "yes"], pos_label="no").update(words, p)
    for name in ("expected_calibration_error", "brier_loss", "log_loss"):
        expected = metrics.all_metrics()[name](words, p, pos_label="no")
        assert first.measure(name) == pytest.approx(expected, abs=1e-11)
    assert (np.diff(first.rows().proba[:, 0]) >= 0).all()
    assert CalibrationSummary(pos_label=0).update(y, p).measure(
        "smooth_calibration_error"
    ) == pytest.approx(metrics.smooth_calibration_error(y, p, pos_label=0), abs=1e-11)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only(label):
    p = np.random.default_rng(0).random(50)
    summary = CalibrationSummary().update(np.full(50, label), p)
    for name in (
        "brier_loss",
        "expected_calibration_error",
        "smooth_calibration_error",
    ):
        expected = metrics.all_metrics()[name](np.full(50, label), p, labels=[0, 1])
        assert summary.measure(name) == pytest.approx(expected, abs=1e-11)


def test_nothing():
    empty = CalibrationSummary()
    assert empty.update([], []) is empty and empty.n_samples == 0
    assert empty.update([0, 1], [0.2, 0.3], sample_weight=[0, 0]).n_samples == 0
    assert empty == CalibrationSummary() == pickle.loads(pickle.dumps(empty))
    assert repr(empty) == "<CalibrationSummary of no rows, max_cells=65536>"
    with raises_invalid_input(
        ValueError, expected="a summary of at least one row", value="an empty"
    ):
        empty.rows()
    with raises_invalid_input(ValueError, expected="a summary of at least one row"):
        empty.measure("brier_loss")


BAD = {
    "nan": (([0, 1], [0.1, np.nan]), "expected finite scores, got nan in row 1"),
    "above": (
        ([0, 1], [0.1, 1.5]),
        r"expected probabilities in \[0, 1\], got 1.5 in row 1",
    ),
    "below": (
        ([0, 1], [-0.1, 0.5]),
        r"expected probabilities in \[0, 1\], got -0.1 in row 0",
    ),
    "sum": (
        ([0, 1], [[0.5, 0.5], [0.5, 0.6]]),
        "expected rows that sum to 1, got a sum of 1.1 in row 1",
    ),
    "label": (
        ([0, 2], [0.1, 0.5]),
        r"expected labels among \[0, 1\], got .*2.* in row 1",
    ),
    "text": (
        (["no", "yes"], [0.1, 0.5]),
        r"expected labels among \[0, 1\], got .*no.* in row 0",
    ),
    "missing": (
        ([0, np.nan], [0.1, 0.5]),
        "expected a label in every row, got nan in row 1",
    ),
    "length": (
        ([0, 1, 1], [0.1, 0.5]),
        "expected as many labels as rows of scores, got .*3",
    ),
    "weight": (
        ([0, 1], [0.1, 0.5], [1, -1]),
        "expected sample_weight >= 0 and finite, got -1 in row 1",
    ),
    "nan weight": (([0, 1], [0.1, 0.5], [1, np.nan]), "got nan in row 1"),
    "weights": (
        ([0, 1], [0.1, 0.5], [1]),
        r"expected one of sample_weight per row, shape \(2,\)",
    ),
    "counts": (
        ([0, 1], [0.1, 0.5], None, [1, 1.5]),
        "expected counts that are whole numbers .* 1.5 in row 1",
    ),
    "columns": (
        ([0, 1], [[0.2, 0.3, 0.5]] * 2),
        "expected scores of 2 classes, got 3 columns",
    ),
    "nothing": ((None, [0.2, 0.3]), "expected labels y, got None"),
}


@run_every_case("case", BAD)
def test_a_refused_batch_changes_nothing(case):
    batch, message = BAD[case]
    summary = CalibrationSummary().update([0, 1, 1], [0.25, 0.5, 1.0], [1, 2, 3])
    before = pickle.dumps(summary)
    with pytest.raises((ValueError, TypeError), match=".*" + message):
        summary.update(*batch)
    assert pickle.dumps(summary) == before


def test_the_last_row_of_a_large_batch_is_named():
    p, y = sample("uniform", 200_000)
    p[-1] = np.nan
    summary = CalibrationSummary()
    with raises_invalid_input(ValueError, value="nan", row=199999):
        summary.update(y, p)
    assert summary == CalibrationSummary()


@run_every_case(
    ("call", "message"),
    [
        (lambda: CalibrationSummary(1000), "max_cells from 4096 to"),
        (lambda: CalibrationSummary(4096.0), "max_cells from 4096 to"),
        (
            lambda: CalibrationSummary(classes=["a"]),
            "expected at least two classes, got 1",
        ),
        (lambda: CalibrationSummary(classes=["a", "a"]), "expected different classes"),
        (
            lambda: CalibrationSummary(classes=["a", "b"], pos_label="c"),
            r"pos_label among \['a', 'b'\]",
        ),
        (
            lambda: CalibrationSummary(pos_label="b").update(["c", "b"], np.eye(2)),
            "to be the second",
        ),
        (
            lambda: CalibrationSummary(pos_label="b").update(
                list("abd"), [0.1, 0.2, 0.3]
            ),
            "and one other",
        ),
        (
            lambda: CalibrationSummary().merge(3),
            "expected a CalibrationSummary, got int",
        ),
        (
            lambda: CalibrationSummary(classes=["ab"]) + CalibrationSummary(),
            "expected at least two classes",
        ),
        (
            lambda: CalibrationSummary(classes=["a", "b"]) + CalibrationSummary(),
            "expected summaries of the same classes",
        ),
        (
            lambda: CalibrationSummary().measure("smooth"),
            "expected a measure among area_",
        ),
        (
            lambda: (
                CalibrationSummary().update([1], [1.0]).measure("brier_loss", bins=3)
            ),
            "expected options of brier_loss among none, got 'bins'",
        ),
        (
            lambda: (
                CalibrationSummary()
                .update([1], [1.0])
                .measure("expected_calibration_error", debias=True)
            ),
            "an option that reads single rows",
        ),
        (
            lambda: (
                CalibrationSummary()
                .update([1], [1.0])
                .measure("isotonic_refinement_brier", cv=5)
            ),
            "expected cv=None, got 5",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.slow
def test_a_number_of_bins_by_the_rows():
    p, y = sample("uniform", 30_000)
    found = (
        CalibrationSummary(4096)
        .update(y, p)
        .measure("calibration_error", n_bins="cube_root")
    )
    assert found == pytest.approx(
        metrics.calibration_error(y, p, n_bins="cube_root"), abs=2e-3
    )
    assert found == CalibrationSummary(4096).update(y, p).measure(
        "calibration_error", n_bins=31
    )


def test_isotonic_regression_does_not_see_the_labels_through_the_means():
    """Both labels of a cell sit at one score; at means of their own a step would part them."""
    p, y = sample("uniform", 100_000)
    summary = CalibrationSummary(4096).update(y, p)
    found = summary.measure("isotonic_refinement_brier")
    assert found == pytest.approx(isotonic_refinement_brier(y, p), abs=2e-4)
    rows = summary.rows()
    assert len(np.unique(rows.proba[:, 1])) == summary.n_cells < len(rows.y)


def test_repr_and_properties():
    p, y = sample("uniform", 10_000)
    summary = CalibrationSummary(4096).update(y, p)
    assert (
        repr(summary)
        == f"<CalibrationSummary of 10000 rows in {summary.n_cells} cells, 9 significant bits>"
    )
    assert summary.weight == summary.n_samples == 10_000 and summary.max_cells == 4096
    assert summary._states[0].table[:, COUNT_COLUMN_0].sum() == (y == 0).sum()
    assert (
        repr(CalibrationSummary().update([1], [0.5]))
        == "<CalibrationSummary of 1 rows in 1 cells, exact>"
    )


def try_partitions(n_cases, seed):
    """Random rows in random parts, orders and trees of merges: one state, bit by bit."""
    rng = np.random.default_rng(seed)
    laws = list(LAWS)
    for _ in range(n_cases):
        p, y = sample(laws[rng.integers(len(laws))], int(rng.integers(2, 300)), rng)
        p = p[rng.integers(0, len(p), len(p))]  # ties
        weight = (
            rng.integers(0, 4, len(p)).astype(float) if rng.random() < 0.4 else None
        )
        counts = rng.integers(0, 4, len(p)) if rng.random() < 0.3 else None
        max_cells = int(rng.choice([2, 8, 30, 100]))
        columns = y, p, weight, counts
        once = CalibrationSummary(max_cells).update(*columns)
        cuts = np.sort(rng.integers(0, len(p) + 1, rng.integers(0, 6)))
        parts = []
        for rows in np.split(rng.permutation(len(p)), cuts):
            own = [None if column is None else column[rows] for column in columns]
            more = max_cells * (1 + rng.integers(3)) if parts else max_cells
            part = CalibrationSummary(int(more))
            for batch in np.array_split(np.arange(len(rows)), rng.integers(1, 4)):
                part.update(
                    *(None if column is None else column[batch] for column in own)
                )
                if rng.random() < 0.3:
                    assert part.n_cells <= 2500  # reading changes nothing
            parts.append(
                pickle.loads(pickle.dumps(part)) if rng.random() < 0.2 else part
            )
        while len(parts) > 1:
            first = parts.pop(rng.integers(len(parts)))
            parts.append(first + parts.pop(rng.integers(len(parts))))
        (merged,) = parts
        assert merged == once
        assert merged._states[0].shift == once._states[0].shift
        mine, theirs = (view_as_float(s._states[0].table) for s in (merged, once))
        columns = min(mine.shape[1], theirs.shape[1])
        assert mine[:, :columns].tobytes() == theirs[:, :columns].tobytes()
        kept = np.ones(len(p)) if counts is None else counts
        kept = kept > 0 if weight is None else (kept > 0) & (weight > 0)
        table, shift = by_sorting(
            p[kept],
            y[kept],
            max_cells,
            *(c if c is None else c[kept] for c in (weight, counts)),
        )
        assert shift == once._states[0].shift
        assert (
            view_as_float(table).tobytes()
            == view_as_float(once._states[0].table)[:, : table.shape[1]].tobytes()
        )


@pytest.mark.slow
def test_partitions(small_cells):
    try_partitions(150, 0)


@pytest.mark.cross
def test_many_partitions(small_cells):
    try_partitions(2000, 1)


def test_coarser_summaries_have_labels_of_their_own():
    """What `coarsen` and `copy` return learns classes without telling the summary it came from."""
    first = CalibrationSummary(pos_label="yes").update(["yes", "yes"], [0.4, 0.6])
    for other in (first.coarsen(4096), first.copy()):
        other.update(["no"], [0.1])
        assert other.classes.tolist() == ["no", "yes"] and other.n_samples == 3
        assert first.classes is None and first.n_samples == 2
    first.update(["a"], [0.2])  # no trace of "no"
    assert first.classes.tolist() == ["a", "yes"]
    flipped = CalibrationSummary(classes=["a", "b"], pos_label="a").update(
        ["a", "b"], [0.3, 0.9]
    )
    assert flipped.coarsen(4096).positive_label == "a" == flipped.copy().positive_label
    assert flipped.coarsen(4096).rows().proba.tolist() == flipped.rows().proba.tolist()


def test_settling_the_classes_of_a_coarser_summary_leaves_the_first_as_it_was():
    first = CalibrationSummary()
    coarse = first.coarsen(4096)
    # three classes, which the first never saw
    coarse.update([0, 2, 1], [[0.5, 0.3, 0.2]] * 3)
    assert coarse.classes.tolist() == [0, 1, 2]
    assert first.classes.tolist() == [0, 1] and not first.n_samples
    first.update([0, 1], [0.2, 0.7])
    assert (first.n_samples, first.positive_label) == (2, 1)
    assert coarse.classes.tolist() == [0, 1, 2]

    first = CalibrationSummary(pos_label="b").update(["b"], [0.4])
    coarse = first.coarsen(4096)
    # the other way round: the copy does not learn from the first
    first.update(["a"], [0.1])
    assert first.classes.tolist() == ["a", "b"]
    assert coarse.classes is None and coarse.positive_label == "b"

    first = CalibrationSummary(pos_label="yes").update(["yes"], [0.4])
    coarse = first.coarsen(4096)
    coarse.merge(
        CalibrationSummary(classes=["no", "yes"], pos_label="yes").update(["no"], [0.1])
    )
    assert (
        first.classes is None and first.positive_label == "yes" and first.n_samples == 1
    )
    first.update(["a"], [0.2])
    assert sorted(first.classes) == ["a", "yes"] and first.positive_label == "yes"


def test_summaries_that_differ_in_some_classes_differ():
    """A row of the third class whose first two probabilities change places."""
    proba = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1]])
    turned = proba.copy()
    turned[0, :2] = 0.3, 0.2
    first, second = (
        CalibrationSummary(multiclass="classwise").update([2, 0, 1], table)
        for table in (proba, turned)
    )
    assert first == first.copy() and first != second


def test_weights_that_are_counts_up_to_rounding_are_counted_exactly():
    p = np.arange(300) / 299
    found, exact = (
        CalibrationSummary().update(np.arange(300) % 2, p, np.full(300, weight))
        for weight in (10 * (0.1 + 0.2), 3.0)
    )
    assert found.to_arrow().equals(exact.to_arrow())


@pytest.mark.parametrize("beyond", [2.0**-52, 1e-12, 1e-7])
def test_probabilities_outside_by_rounding_are_those_at_the_end(beyond):
    given, ends = (
        CalibrationSummary().update([0, 1, 1, 0], [low, 0.5, high, high])
        for low, high in ((0.0, 1 + beyond), (0.0, 1.0))
    )
    assert given == ends
    below = CalibrationSummary().update([0, 1, 1, 0], [-beyond, 0.5, 1.0, 1.0])
    assert below == ends


def test_few_rows_leave_no_doubt_about_the_order_of_the_columns():
    """Rows that another order would fit are doubted only if they are many."""
    p = np.array([0.3, 0.4, 0.6, 0.7, 0.45, 0.55])
    y = np.array(["yes", "yes", "no", "no", "yes", "no"])
    proba = np.column_stack([p, 1 - p])
    CalibrationSummary(classes=["yes", "no"]).update(y, proba)
    with pytest.warns(CalibrationWarning, match="in the order of classes"):
        CalibrationSummary(classes=["yes", "no"]).update(
            np.tile(y, 400), np.tile(proba, (400, 1))
        )
