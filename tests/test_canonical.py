import datetime
import pickle
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy import sparse, special

from sklearn_calib._kernels._two_class_problems import (
    pair_top_with_rest,
    pair_with_rest,
)
from sklearn_calib._simplex_array import (
    SimplexArray,
    compute_log_odds,
    log_proba,
    stack_proba_rows,
    take_columns_or_zeros,
)
from sklearn_calib._validation import (
    canonical_labels,
    canonical_proba,
    canonical_weight,
    validate_soft_labels,
)
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import (
    expected_calibration_error,
    log_loss,
    lp_calibration_error,
)
from sklearn_calib.recalibrators import TemperatureScaling
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary, summarize


@run_every_case(
    ("scores", "kind", "error", "message"),
    [
        (
            [],
            "proba",
            ValueError,
            "expected at least one row and one column of scores, got shape",
        ),
        ([[]], "proba", ValueError, "expected at least one row and one column"),
        (
            [[[0.5, 0.5]]],
            "proba",
            ValueError,
            "expected one or two dimensions of scores, got 3",
        ),
        (
            [0.2, np.nan],
            "proba",
            ValueError,
            "expected finite scores, got nan in row 1, column 0",
        ),
        ([[0.2, 0.8], [np.inf, 0]], "proba", ValueError, "got inf in row 1, column 0"),
        (
            [[0.0, -np.inf]],
            "logits",
            ValueError,
            "pass their exponentials with kind='proba'",
        ),
        (
            [0.2, 3.2],
            "proba",
            ValueError,
            r"expected probabilities in \[0, 1\], got 3.2 in row 1",
        ),
        (
            [-0.1],
            "proba",
            ValueError,
            r"got -0.1 in row 0.*canonical_proba\(scores, kind='logits'",
        ),
        (
            [[0.2, 0.2]],
            "proba",
            ValueError,
            "rows that sum to 1, got a sum of 0.4 in row 0",
        ),
        (["0.2"], "proba", TypeError, "expected numbers as scores, got dtype <U3"),
        (
            np.array([".2"], object),
            "proba",
            TypeError,
            r"got '.2' in row 0.*astype\(float\)",
        ),
        (np.array([1j]), "proba", TypeError, "got dtype complex128"),
        (sparse.eye(2), "proba", TypeError, r"got a sparse matrix\. Call .toarray\(\)"),
        ([1e200], "logits", ValueError, "expected logits of size at most 1e\\+150"),
        ([0.5], "guess", ValueError, "expected kind 'proba' or 'logits', got 'guess'"),
    ],
)
def test_refused_scores(scores, kind, error, message):
    with pytest.raises(error, match=message):
        canonical_proba(scores, kind=kind)


def test_columns_are_counted():
    with raises_invalid_input(
        ValueError, expected="3 columns of scores, one per class", value="2"
    ):
        canonical_proba([0.5], n_classes=3)


@pytest.mark.parametrize("shape", ["1d", "column", "two"])
def test_shapes_of_two_classes(shape):
    p = np.array([0.0, 0.25, 1.0, 1 - 2e-8])
    scores = {"1d": p, "column": p[:, None], "two": np.column_stack([1 - p, p])}[shape]
    assert np.array_equal(canonical_proba(scores), np.column_stack([1 - p, p]))


def test_rounding_is_divided_out_and_input_kept():
    scores = np.array([[0.3, 0.7 + 5e-7], [0.5, 0.5]])
    kept = scores.copy()
    proba = canonical_proba(scores)
    assert np.abs(proba.sum(axis=1) - 1).max() <= 1e-15
    assert np.array_equal(scores, kept)
    assert np.array_equal(canonical_proba(proba), proba)
    assert canonical_proba([1 + 5e-7]).max() == 1.0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, bool])
def test_dtypes(dtype):
    proba = canonical_proba(np.array([[0, 1], [1, 0]], dtype=dtype))
    assert proba.dtype == np.float64 and proba.tolist() == [[0, 1], [1, 0]]


def test_softmax_of_many_classes_in_half_precision():
    logits = np.random.default_rng(0).normal(size=(50, 30))
    proba = special.softmax(logits, axis=1).astype(np.float16)
    assert np.abs(canonical_proba(proba).sum(axis=1) - 1).max() <= 1e-15


def test_tables():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    data = {"a": [0.25, 0.5], "b": [0.75, 0.5]}
    for frame in (pd.DataFrame(data, index=[7, 3]), pl.DataFrame(data)):
        assert canonical_proba(frame).tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert canonical_proba(pd.Series([0.5], index=[9])).tolist() == [[0.5, 0.5]]


def test_logits_keep_what_probabilities_lose():
    logits = np.array([[0.0, 1e4], [0.0, 2e4], [3e5, 0.0]])
    scores = canonical_proba(logits, kind="logits")
    assert compute_log_odds(scores).tolist() == [1e4, 2e4, -3e5]
    assert compute_log_odds(scores[1:]).tolist() == [2e4, -3e5]
    assert compute_log_odds(scores[[False, False, True]]).tolist() == [-3e5]
    assert compute_log_odds(scores.copy()).tolist() == [1e4, 2e4, -3e5]
    assert compute_log_odds(pickle.loads(pickle.dumps(scores))).tolist() == [
        1e4,
        2e4,
        -3e5,
    ]
    assert compute_log_odds(stack_proba_rows([scores, scores]))[-1] == -3e5
    assert canonical_proba(scores) is scores
    assert type(scores[:, 1]) is np.ndarray and type(scores * 2) is np.ndarray
    assert type(scores.sum()) is np.float64
    assert log_proba(np.asarray(scores)).min() == pytest.approx(-87.3365447505531)
    with pytest.raises(ValueError, match="read-only"):
        scores[0] = 0.5


def test_softmax():
    logits = np.random.default_rng(0).normal(size=(20, 5))
    proba = canonical_proba(logits, kind="logits")
    assert isinstance(proba, SimplexArray)
    np.testing.assert_allclose(proba, special.softmax(logits, axis=1), atol=1e-15)
    np.testing.assert_allclose(
        canonical_proba([2.0], kind="logits")[0, 1], special.expit(2.0)
    )


def test_one_class_against_the_rest():
    logits = np.random.default_rng(1).normal(size=(9, 4)) * 800
    scores = canonical_proba(logits, kind="logits")
    for column in range(4):
        pair = pair_with_rest(scores, column)
        rest = special.logsumexp(np.delete(logits, column, axis=1), axis=1)
        np.testing.assert_allclose(
            compute_log_odds(pair), logits[:, column] - rest, rtol=1e-12
        )
    top = logits.argmax(axis=1)
    expected = compute_log_odds(pair_with_rest(scores, 3))[top == 3]
    found = compute_log_odds(pair_top_with_rest(scores, top))[top == 3]
    np.testing.assert_allclose(found, expected)
    plain = np.asarray(scores)
    np.testing.assert_allclose(pair_top_with_rest(plain, top)[:, 1], plain.max(axis=1))


def test_take_columns():
    scores = canonical_proba([[0.0, 1000.0]], kind="logits")
    wide = take_columns_or_zeros(scores, [1, -1, 0])
    assert wide.tolist() == [[1.0, 0.0, 0.0]]
    assert log_proba(wide)[0, 2] == -1000.0 and log_proba(wide)[0, 1] == -1000.0
    assert take_columns_or_zeros(np.array([[0.3, 0.7]]), [-1, 0, 1]).tolist() == [
        [0, 0.3, 0.7]
    ]


@run_every_case(
    ("y", "classes", "error", "message"),
    [
        (None, None, ValueError, "expected labels y, got None"),
        ([], None, ValueError, "expected at least one label"),
        (
            [0, 1, 5],
            [0, 1],
            ValueError,
            r"expected labels among \[0, 1\], got .*5.* in row 2",
        ),
        (["a"], ["b", "c"], ValueError, r"got 'a' in row 0 of y\. Pass all classes"),
        (["a"], [0, 1], ValueError, "expected labels among"),
        ([0.5, 1.0], None, ValueError, "expected class labels, got fractions"),
        (
            [0.0, np.nan],
            None,
            ValueError,
            "expected a label in every row, got nan in row 1",
        ),
        (["a", None], None, ValueError, "got None in row 1"),
        ([[0, 1], [1, 0]], None, ValueError, "expected one label per row.*argmax"),
        ([0], [0, 0], ValueError, "expected different classes"),
        (
            np.array(["a", 1], object),
            None,
            TypeError,
            "expected labels of one type.*got int and",
        ),
    ],
)
def test_refused_labels(y, classes, error, message):
    with pytest.raises(error, match=message):
        canonical_labels(y, classes=classes)


@run_every_case(
    "labels",
    [[1, 2, 3], [-1, 1], [10, 20], ["a", "b"], [False, True], [b"x", b"y"], [0.0, 1.0]],
    ids=str,
)
def test_labels(labels):
    codes = np.array([1, 0, 0, 1])
    y = np.array(labels)[codes]
    classes, found = canonical_labels(y)
    assert np.array_equal(classes[found], y)
    classes, found = canonical_labels(y, classes=labels[::-1])
    assert classes.tolist() == labels[::-1] and np.array_equal(classes[found], y)


def test_tables_of_labels():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for y in (
        pd.Series(["n", "y", "n"], index=[5, 3, 1]),
        pd.Series(["n", "y", "n"], dtype="category"),
        pl.Series(["n", "y", "n"]),
    ):
        classes, codes = canonical_labels(y)
        assert classes.tolist() == ["n", "y"] and codes.tolist() == [0, 1, 0]
    with raises_invalid_input(ValueError, value="(<NA>|nan)", row=1):
        canonical_labels(pd.Series([1, pd.NA, 0], dtype="Int64"))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            [1.0],
            r"expected one sample_weight per row, shape \(2,\), a 1d array, got shape \(1,\)",
        ),
        ([1.0, -1.0], "expected sample_weight >= 0 and finite, got -1 in row 1"),
        ([np.nan, 1.0], "got nan in row 0"),
        (
            [0.0, 0.0],
            "expected at least one sample_weight above 0, got all-zero weights",
        ),
    ],
)
def test_refused_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        canonical_weight(weight, 2)


# -- hostile input: the right result, or `where: expected RULE, got VALUE. DO THIS.` ---------------


def _hostile(kind):
    """Input of every make: name -> (values, the right result or the words of the error)."""
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    day = np.array(["2021-01-01", "2020-01-01"], "M8[D]")
    huge = np.array([2**63 + 2, 2**63 + 1], np.uint64)
    if kind == "labels":
        return {
            "masked": (np.ma.array([0, 1], mask=[0, 1]), "a masked entry in row 1"),
            "nothing masked": (np.ma.array([1, 0]), [1, 0]),
            "nullable integers": (pd.array([1, pd.NA], dtype="Int64"), "in row 1"),
            "nullable integers, whole": (pd.array([1, 0], dtype="Int64"), [1, 0]),
            "nullable booleans": (
                pd.array([True, False], dtype="boolean"),
                [True, False],
            ),
            "nullable text": (pd.Series(["b", None], dtype="string"), "in row 1"),
            "arrow integers": (
                pd.Series([1, None], dtype="int64[pyarrow]"),
                "in row 1",
            ),
            "category": (pd.Categorical(["b", "a"], ["z", "b", "a"]), ["b", "a"]),
            "category of integers": (pd.Series([3, 1]).astype("category"), [3, 1]),
            "category, missing": (pd.Categorical(["b", None]), "in row 1"),
            "polars nulls": (pl.Series([1, None]), "in row 1"),
            "polars text nulls": (pl.Series(["a", None]), "got None in row 1"),
            "polars categorical": (
                pl.Series(["b", "a"], dtype=pl.Categorical),
                ["b", "a"],
            ),
            "polars enum": (
                pl.Series(["b", "a"], dtype=pl.Enum(["b", "c", "a"])),
                ["b", "a"],
            ),
            "pyarrow text": (pa.array(["b", "a"]), ["b", "a"]),
            "pyarrow chunks": (pa.chunked_array([["b"], ["a"]]), ["b", "a"]),
            "pyarrow nulls": (pa.array([1, None]), "in row 1"),
            "pyarrow dictionary": (
                pa.array(["b", "a"]).dictionary_encode(),
                ["b", "a"],
            ),
            "dates": (day, day.tolist()),
            "dates of Python": (day.tolist(), day.tolist()),
            "not a time": (
                np.array(["2020-01-01", "NaT"], "M8[D]"),
                "got NaT in row 1",
            ),
            "not a duration": (np.array([1, "NaT"], "m8[s]"), "got NaT in row 1"),
            "not a time, pandas": (
                pd.Series([pd.Timestamp("2020"), pd.NaT]),
                "got NaT in row 1",
            ),
            "not a time, object": (
                np.array([day[0], np.datetime64("NaT", "D")], object),
                "got NaT",
            ),
            "decimals": ([Decimal(1), Decimal(0)], [1, 0]),
            "decimal nan": ([Decimal(1), Decimal("sNaN")], "got sNaN in row 1"),
            "fractions": (
                [Fraction(3, 2), Fraction(1, 2)],
                [Fraction(3, 2), Fraction(1, 2)],
            ),
            "uint64 above int64": (huge, huge.tolist()),
            "uint64, wide": (np.array([2**64 - 1, 0], np.uint64), [2**64 - 1, 0]),
            "integers above uint64": ([2**70 + 1, 2**70], [2**70 + 1, 2**70]),
            "integers above a float": ([10**400, 1], [10**400, 1]),
            "integers that numpy would round": (
                [2**63, 2**63 + 1, -1],
                "floats below 2**53",
            ),
            "int8, whole range": (np.array([127, -128], np.int8), [127, -128]),
            "half precision": (np.array([1, 0], np.float16), [1, 0]),
            "long double": (np.array([1, 0], np.longdouble), [1, 0]),
            "negative zero": ([0.0, -0.0, 1.0], [0, 0, 1]),
            "booleans and integers": ([True, 2], [1, 2]),
            "nan of float32": (
                np.array([np.float32("nan"), 1], object),
                "got nan in row 0",
            ),
            "infinity": ([np.inf, 1], "got inf in row 0"),
            "bytes": ([b"b", b"a"], [b"b", b"a"]),
            "text of numpy 2": (_numpy_text(["b", "a"]), ["b", "a"]),
            "empty text": (["", "a"], ["", "a"]),
            "complex": ([1j, 0], "labels that have an order, got dtype complex128"),
            "record": (np.zeros(2, [("a", int)]), "labels that have an order"),
            "void": (np.zeros(2, "V4"), "labels that have an order"),
            "dicts": (
                np.array([{}, {}], object),
                "labels that are single values, got dict",
            ),
            "lists": (pd.Series([[0], [1]]), "labels that are single values, got list"),
            "ragged": ([[0], [0, 1]], "an array of labels with rows of one length"),
            "number": (3, "one label per row"),
            "text": ("yes", "an array of labels, got a str"),
            "set": ({0, 1}, "an array of labels, got a set for y. Pass a list"),
            "dict": ({0: 1}, "got a dict"),
            "generator": ((v for v in [0, 1]), "got a generator"),
            "text and numbers": (np.array(["1", 2], object), "labels of one type"),
        }
    if kind == "scores":
        frame = pd.DataFrame({"a": [0.5, 0.25], "b": [0.5, 0.75]})
        holed = frame.mask(frame == 0.75)
        right = [0.5, 0.75]
        return {
            "masked": (
                np.ma.array(frame, mask=frame == 0.75),
                "a masked entry in row 1",
            ),
            "nothing masked": (np.ma.array(right), right),
            "nullable": (frame.astype("Float64"), right),
            "nullable, missing": (
                holed.astype("Float64"),
                "got nan in row 1, column 1",
            ),
            "arrow": (frame.astype("float64[pyarrow]"), right),
            "arrow, missing": (
                holed.astype("float64[pyarrow]"),
                "got nan in row 1, column 1",
            ),
            "mixed columns": (frame.astype({"a": "Float64"}), right),
            "category": (pd.Series(right).astype("category"), right),
            "polars nulls": (pl.from_pandas(holed), "got nan in row 1, column 1"),
            "polars decimals": (pl.Series([Decimal("0.50"), Decimal("0.75")]), right),
            "lazy": (pl.LazyFrame({"a": right}), right),
            "pyarrow": (pa.array(right), right),
            "pyarrow table": (pa.Table.from_pandas(frame), right),
            "pyarrow nulls": (pa.array([0.5, None]), "got nan in row 1"),
            "decimals": ([Decimal("0.5"), Decimal("0.75")], right),
            "fractions": ([Fraction(1, 2), Fraction(3, 4)], right),
            "objects": (np.array(right, object), right),
            "long double": (np.array(right, np.longdouble), right),
            "uint64": (np.array([0, 1], np.uint64), [0, 1]),
            "None in a list": ([0.5, None], "got nan in row 1"),
            "text among numbers": (frame.assign(b="x"), "got 'x' in row 0, column 1"),
            "text of numpy 2": (_numpy_text(["0.5"]), "numbers as scores, got dtype"),
            "huge integer": (np.array([10**400], object), "that float64 cannot hold"),
            "dates": (day, "numbers as scores, got dtype datetime64"),
            "durations": (day - day[0], "numbers as scores, got dtype timedelta64"),
            "record": (np.zeros(2, [("a", float)]), "numbers as scores"),
            "bytes": ([b"0.5"], "numbers as scores, got dtype |S3"),
            "ragged": ([[0.5], [0.5, 0.5]], "with rows of one length"),
            "number": (0.5, "one or two dimensions of scores, got 0"),
            "nothing": (None, "an array of scores, got None"),
            "text": ("0.5", "an array of scores, got a str"),
            "set": ({0.5}, "an array of scores, got a set"),
            "dict": ({"a": right}, "an array of scores, got a dict"),
            "generator": ((v for v in right), "got a generator"),
        }
    return {
        "masked": (np.ma.array([1, 2], mask=[0, 1]), "a masked entry in row 1"),
        "nothing masked": (np.ma.array([1, 2]), [1, 2]),
        "nullable": (pd.array([1, pd.NA], dtype="Int64"), "got nan in row 1"),
        "nullable, whole": (pd.array([1, 2], dtype="Int64"), [1, 2]),
        "NA object": (pd.Series([1, pd.NA], dtype=object), "got nan in row 1"),
        "other index": (pd.Series([1, 2], index=[5, 3]), [1, 2]),
        "polars nulls": (pl.Series([1, None]), "got nan in row 1"),
        "pyarrow nulls": (pa.array([1, None]), "got nan in row 1"),
        "None": ([1, None], "got nan in row 1"),
        "booleans": ([True, False], [1, 0]),
        "decimals": ([Decimal(1), Decimal(2)], [1, 2]),
        "fractions": ([Fraction(1, 2), Fraction(2)], [0.5, 2]),
        "uint64": (np.array([1, 2**63], np.uint64), [1, 2**63]),
        "one number": (2, [2, 2]),
        "complex": ([1 + 0j, 1], "numbers as sample_weight, got dtype complex128"),
        "dates": (day, "got dtype datetime64"),
        "durations": (day - day[1], "got dtype timedelta64"),
        "text": (["1", "2"], "got dtype <U1"),
        "text objects": (np.array(["1", "2"], object), "got '1' in row 0"),
        "bytes": ([b"1", b"2"], "got dtype |S1"),
        "one text": ("2", "got a str"),
        "record": (np.zeros(2, [("a", float)]), "numbers as sample_weight"),
        "huge integer": ([10**400, 1], "that float64 cannot hold"),
        "column": ([[1], [2]], "one sample_weight per row"),
        "ragged": ([[1], [1, 2]], "with rows of one length"),
        "set": ({1, 2}, "got a set"),
        "dict": ({1: 1}, "got a dict"),
        "generator": ((v for v in [1, 2]), "got a generator"),
        "sparse": (sparse.eye(2), "got a sparse matrix"),
    }


def _numpy_text(values):
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return np.array(values)
    return np.array(values, np.dtypes.StringDType())


def _read(kind, values):
    if kind == "labels":
        classes, codes = canonical_labels(values)
        assert sorted(classes.tolist()) == classes.tolist()
        return classes[codes].tolist()
    if kind == "scores":
        proba = canonical_proba(values)
        assert proba.dtype == np.float64
        return proba[:, 1].tolist()
    weight = canonical_weight(values, 2)
    assert weight.dtype == np.float64
    return weight.tolist()


@pytest.mark.parametrize("kind", ["labels", "scores", "weights"])
def test_hostile_input(kind):
    for name, (values, expected) in _hostile(kind).items():
        if not isinstance(expected, str):
            assert _read(kind, values) == list(expected), name
            continue
        with pytest.raises(
            (ValueError, TypeError), match=re.escape(expected)
        ) as caught:
            _read(kind, values)
        form = r"expected .+, got .+\. [A-Z].+\."
        assert re.fullmatch(form, str(caught.value)), (name, str(caught.value))


@run_every_case(
    ("y", "classes"),
    [
        (np.array([1, 0], np.int8), np.array([0, 1], np.uint64)),
        (np.array([2**63 + 1, 2**63], np.uint64), [2**63, 2**63 + 1]),
        (np.array([2**53], np.int64), np.array([2**53 + 1, 2**53], np.uint64)),
        ([1, 0], [0.0, 1.0]),
        ([1, 0], [Decimal(1), Decimal(0)]),
        ([True, False], [1, 0]),
        (
            np.array(["2020-01-01"], "M8[D]"),
            np.array(["2021-01-01", "2020-01-01"], "M8[s]"),
        ),
        (
            [datetime.date(2020, 1, 1)],
            [datetime.date(2021, 1, 1), datetime.date(2020, 1, 1)],
        ),
    ],
    ids=str,
)
def test_classes_of_another_type(y, classes):
    known, codes = canonical_labels(y, classes=classes)
    assert known.tolist() == np.asarray(classes).tolist()
    assert np.array_equal(known[codes], np.asarray(y))


def test_unused_categories_are_classes_when_they_are_named():
    pd = pytest.importorskip("pandas")
    y = pd.Categorical(["b", "a"], ["z", "b", "a"])
    classes, codes = canonical_labels(y, classes=y.categories)
    assert classes.tolist() == ["z", "b", "a"] and codes.tolist() == [1, 2]


# -- rows that do not sum to 1 because they were rounded -------------------------------------------


def test_softmax_of_half_precision_stored_in_single():
    logits = np.random.default_rng(0).normal(size=(200, 10))
    half = special.softmax(logits, axis=1).astype(np.float16).astype(np.float32)
    assert np.abs(half.sum(axis=1) - 1).max() > 1e-4
    with pytest.warns(
        CalibrationWarning, match="as numbers of half precision make them"
    ):
        warned = canonical_proba(half)
    with raises_invalid_input(
        ValueError, hint=".*numbers of half precision: divide rows"
    ) as caught:
        canonical_proba(half, tolerance=1e-6)
    tolerance = float(re.search(r"tolerance=([\d.]+)", str(caught.value))[1])
    proba = canonical_proba(half, tolerance=tolerance)
    expected = half.astype(float) / half.astype(float).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(proba, expected, rtol=0, atol=1e-15)
    assert np.array_equal(proba, warned)
    assert np.abs(proba.sum(axis=1) - 1).max() <= 1e-15


def test_bfloat16_stored_in_single():
    """Eight binary digits and the range of float32: many are not numbers of half precision."""
    proba = special.softmax(
        4 * np.random.default_rng(0).normal(size=(200, 100)), axis=1
    )
    bits = proba.astype(np.float32).view(np.uint32)
    brain = (bits + 0x8000 & 0xFFFF0000).astype(np.uint32).view(np.float32)  # rounded
    total = brain.astype(float).sum(axis=1, keepdims=True)
    assert 2e-3 < np.abs(total - 1).max() < 4e-3
    with pytest.warns(
        CalibrationWarning, match="0.01 away from it, as bfloat16 numbers make them"
    ):
        found = canonical_proba(brain)
    np.testing.assert_allclose(found, brain / total, rtol=1e-15)
    np.testing.assert_array_equal(found, canonical_proba(brain, tolerance=0.01))
    with raises_invalid_input(ValueError, expected="rows that sum to 1"):
        canonical_proba(brain, tolerance=1e-3)
    with raises_invalid_input(ValueError, expected="rows that sum to 1"):
        canonical_proba(brain * np.float32(0.98))  # too far, and other numbers
    with raises_invalid_input(ValueError, expected="rows that sum to 1"):
        canonical_proba(brain * np.float32(1 + 1e-6))  # other numbers
    soft = validate_soft_labels(brain)
    np.testing.assert_allclose(np.bincount(soft.items, soft.weight), 1.0)
    with raises_invalid_input(ValueError, expected=".*whose rows sum to 1"):
        validate_soft_labels(brain * np.float32(1 + 1e-6))


def test_bfloat16_of_jax():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    given = np.array([[0.25, 0.75], [0.5, 0.5]], dtype=ml_dtypes.bfloat16)
    np.testing.assert_array_equal(canonical_proba(given), [[0.25, 0.75], [0.5, 0.5]])


@pytest.mark.parametrize("k", [10, 1000])
def test_half_precision_of_many_classes(k):
    """A softmax whose normaliser was added up in float16 as well."""
    logits = np.random.default_rng(k).normal(size=(50, k)).astype(np.float16)
    powers = np.exp(logits)
    total = np.zeros((50, 1), dtype=np.float16)
    for column in powers.T:
        total += column[:, None]
    half = powers / total
    worst = np.abs(half.astype(float).sum(axis=1) - 1).max()
    assert worst > 1e-3 * (k / 100) ** 0.5  # 4e-3 and more for 1000 classes
    assert np.abs(canonical_proba(half).sum(axis=1) - 1).max() <= 1e-15
    with raises_invalid_input(ValueError, expected="rows that sum to 1"):
        canonical_proba((half * (1 - 2e-3 * k**0.5)).astype(np.float16))


@pytest.mark.parametrize("decimals", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [3, 12])
def test_rounded_decimals_are_recognised(decimals, dtype, k):
    proba = np.random.default_rng(k).dirichlet(np.ones(k), 300)
    rounded = proba.round(decimals).astype(dtype)
    if decimals > 1:
        with pytest.warns(
            CalibrationWarning, match=f"as {decimals} decimals make them"
        ) as said:
            warned = canonical_proba(rounded)
        assert len(said) == 1
    with raises_invalid_input(ValueError, expected="rows that sum to 1") as caught:
        canonical_proba(rounded, tolerance=None if decimals == 1 else 1e-7)
    unit = "decimal," if decimals == 1 else "decimals,"
    assert f"rounded to {decimals} {unit}" in str(caught.value)
    tolerance = float(re.search(r"tolerance=([\de.-]+)\)", str(caught.value))[1])
    assert tolerance == pytest.approx(k / 2 * 10.0**-decimals, rel=0.02)
    repaired = canonical_proba(rounded, tolerance=tolerance)
    assert np.abs(repaired.sum(axis=1) - 1).max() <= 1e-15
    assert decimals == 1 or np.array_equal(repaired, warned)


def test_one_rule_for_rounded_rows_everywhere():
    """Losses, measures, fits, predictions, summaries and reports take them, and say it once."""
    proba, y = make_overconfident(10, 300)
    rounded = proba.round(2)
    divided = rounded / rounded.sum(axis=1, keepdims=True)
    fitted = TemperatureScaling().fit(proba, y)
    uses = {
        "loss": lambda p: log_loss(y, p),
        "measure": lambda p: expected_calibration_error(y, p),
        "of vectors": lambda p: lp_calibration_error(y, p),
        "fit": lambda p: TemperatureScaling().fit(p, y).temperature_,
        "prediction": lambda p: float((fitted.predict_proba(p) ** 2)[:, 0].sum()),
        "summary": lambda p: CalibrationSummary(classes=range(10)).update(y, p).totals,
        "report": lambda p: calibration_report(y, p, n_resamples=20).rows[0].value,
    }
    for name, use in uses.items():
        with pytest.warns(
            CalibrationWarning, match="rows that sum to 1, got sums up to"
        ) as said:
            found = use(rounded)
        assert len(said) == 1, name
        assert found == pytest.approx(use(divided), rel=1e-9), name
    off = rounded.copy()
    off[7, 0] += 0.06
    for use in uses.values():
        with raises_invalid_input(
            ValueError, expected=".*rows that sum to 1", value="a sum of"
        ):
            use(off)


def test_what_the_message_says_of_other_sums():
    with raises_invalid_input(
        ValueError, hint=r".*were rounded, divide .*tolerance=0.042\)"
    ):
        canonical_proba([[0.123456789, 0.836543211]])
    with raises_invalid_input(ValueError, hint=".*logits") as caught:
        canonical_proba([[0.2, 0.2]])
    assert "tolerance" not in str(caught.value)
    assert canonical_proba([[0.33, 0.66]], tolerance=0.01).sum() == pytest.approx(1)
    assert canonical_proba([[0.5, 0.5]], tolerance=0).tolist() == [[0.5, 0.5]]
    for tolerance in (-0.1, 1, True, "auto", np.nan):
        with raises_invalid_input(ValueError, expected=r"a tolerance in \[0, 1\)"):
            canonical_proba([0.5], tolerance=tolerance)
    with raises_invalid_input(
        ValueError, expected="tolerance without kind", value="both", hint="Leave"
    ):
        canonical_proba([0.5], kind="logits", tolerance=0.1)


def test_a_tolerance_does_not_widen_the_range():
    with raises_invalid_input(
        ValueError, expected=r"probabilities in \[0, 1\]", value="-0.01"
    ):
        canonical_proba([[-0.01, 1.01]], tolerance=0.1)


def test_float32_logits_lose_no_digits_in_the_difference():
    logits = np.array([[1000.125, 0.1, 999.7], [3e4, -1.7, 29999.3]], dtype=np.float32)
    single = log_proba(canonical_proba(logits, kind="logits"))
    double = log_proba(canonical_proba(logits.astype(np.float64), kind="logits"))
    np.testing.assert_allclose(single, double, rtol=1e-15)


def test_a_lazy_table_is_collected():
    pl = pytest.importorskip("polars")
    y, p = [0, 1, 1, 0], [0.1, 0.8, 0.6, 0.3]
    table = pl.DataFrame({"no": [1 - one for one in p], "yes": p})
    lazy = table.lazy()
    assert np.array_equal(canonical_proba(lazy), canonical_proba(table))
    assert log_loss(y, lazy) == log_loss(y, table)
    assert CalibrationSummary().update(y, lazy) == CalibrationSummary().update(y, table)
    rows = pl.DataFrame({"y": y, "p": p})
    assert summarize(rows.lazy(), label="y", prob="p") == summarize(
        rows, label="y", prob="p"
    )


@run_every_case(
    ("kind", "table"),
    [
        ("proba", [[0.25, 0.75], [0.5, 0.5]]),
        ("proba", [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]),
        ("proba", [[0.25, 0.75 + 1e-9], [0.5, 0.5]]),
        ("proba", [[-1e-9, 1.0], [0.5, 0.5]]),
        ("proba", [[0.25, 0.7], [0.5, 0.5]]),
        ("proba", [[np.nan, 1.0], [0.5, 0.5]]),
        ("proba", [[0.3], [0.6]]),
        ("proba", [0.3, 0.6]),
        ("logits", [0.3, -800.0]),
        ("logits", [[0.3, -2.0, 5.0]]),
        ("logits", [[0.3, np.inf, 5.0]]),
        ("logits", [[0.3, -1e151, 5.0]]),
    ],
)
@run_every_case("n_classes", [None, 2])
def test_an_array_of_floats_is_read_as_a_list_of_them(kind, table, n_classes):
    """What is right at a glance is what the longer way makes of it."""
    results = []
    for scores in (np.array(table), table):
        try:
            proba = canonical_proba(scores, kind=kind, n_classes=n_classes)
            results.append([proba.tobytes(), log_proba(proba).tobytes(), type(proba)])
        except ValueError as error:
            results.append(str(error))
    assert results[0] == results[1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_options_that_rows_lack_are_hinted_at_from_three_classes_on(n_classes):
    table = np.full((4, n_classes), 1 / n_classes)
    table[1, 0] = np.nan
    with pytest.raises(ValueError, match="row 1, column 0") as raised:
        canonical_proba(table)
    hint = raised.value.hint
    assert hint.startswith("Drop or repair those rows first")
    assert ("absent='nan'" in hint) == (n_classes > 2)
