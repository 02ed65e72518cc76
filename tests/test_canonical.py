import pickle

import numpy as np
import pytest
from scipy import sparse, special

from sklearn_calib._simplex import (
    SimplexArray,
    log_odds,
    log_proba,
    one_against_one,
    one_against_rest,
    stack_rows,
    take_columns,
    top_against_rest,
)
from sklearn_calib.canonical import canonical_labels, canonical_proba, canonical_weight


@pytest.mark.parametrize(
    ("scores", "kind", "error", "message"),
    [
        ([], "proba", ValueError, "expected at least one row and one column of scores, got shape"),
        ([[]], "proba", ValueError, "expected at least one row and one column"),
        ([[[0.5, 0.5]]], "proba", ValueError, "expected one or two dimensions of scores, got 3"),
        ([0.2, np.nan], "proba", ValueError, "expected finite scores, got nan in row 1, column 0"),
        ([[0.2, 0.8], [np.inf, 0]], "proba", ValueError, "got inf in row 1, column 0"),
        ([[0.0, -np.inf]], "logits", ValueError, "pass their exponentials with kind='proba'"),
        ([0.2, 3.2], "proba", ValueError, r"expected probabilities in \[0, 1\], got 3.2 in row 1"),
        ([-0.1], "proba", ValueError, r"got -0.1 in row 0.*canonical_proba\(scores, kind='logits'"),
        ([[0.2, 0.2]], "proba", ValueError, "rows that sum to 1, got row 0, which sums to 0.4"),
        (["0.2"], "proba", TypeError, "expected numbers as scores, got dtype <U3. Convert"),
        (np.array([0.2], object), "proba", TypeError, r"got dtype object.*astype\(float\)"),
        (np.array([1j]), "proba", TypeError, "got dtype complex128"),
        (sparse.eye(2), "proba", TypeError, r"got a sparse matrix. Call .toarray\(\)"),
        ([1e200], "logits", ValueError, "expected logits of size at most 1e\\+150"),
        ([0.5], "guess", ValueError, "expected kind 'proba' or 'logits', got 'guess'"),
    ],
)
def test_refused_scores(scores, kind, error, message):
    with pytest.raises(error, match=message):
        canonical_proba(scores, kind=kind)


def test_columns_are_counted():
    with pytest.raises(ValueError, match="expected 3 columns of scores, one per class, got 2"):
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
    assert log_odds(scores).tolist() == [1e4, 2e4, -3e5]
    assert log_odds(scores[1:]).tolist() == [2e4, -3e5]
    assert log_odds(scores[[False, False, True]]).tolist() == [-3e5]
    assert log_odds(scores.copy()).tolist() == [1e4, 2e4, -3e5]
    assert log_odds(pickle.loads(pickle.dumps(scores))).tolist() == [1e4, 2e4, -3e5]
    assert log_odds(stack_rows([scores, scores]))[-1] == -3e5
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
    np.testing.assert_allclose(canonical_proba([2.0], kind="logits")[0, 1], special.expit(2.0))


def test_pairs_of_classes():
    logits = np.random.default_rng(1).normal(size=(9, 4)) * 800
    scores = canonical_proba(logits, kind="logits")
    for column in range(4):
        pair = one_against_rest(scores, column)
        rest = special.logsumexp(np.delete(logits, column, axis=1), axis=1)
        np.testing.assert_allclose(log_odds(pair), logits[:, column] - rest, rtol=1e-12)
    np.testing.assert_allclose(
        log_odds(one_against_one(scores, 0, 2)), logits[:, 2] - logits[:, 0], rtol=1e-12
    )
    top = logits.argmax(axis=1)
    expected = log_odds(one_against_rest(scores, 3))[top == 3]
    np.testing.assert_allclose(log_odds(top_against_rest(scores, top))[top == 3], expected)
    plain = np.asarray(scores)
    np.testing.assert_allclose(top_against_rest(plain, top)[:, 1], plain.max(axis=1))


def test_take_columns():
    scores = canonical_proba([[0.0, 1000.0]], kind="logits")
    wide = take_columns(scores, [1, -1, 0])
    assert wide.tolist() == [[1.0, 0.0, 0.0]]
    assert log_proba(wide)[0, 2] == -1000.0 and log_proba(wide)[0, 1] == -1000.0
    assert take_columns(np.array([[0.3, 0.7]]), [-1, 0, 1]).tolist() == [[0, 0.3, 0.7]]


@pytest.mark.parametrize(
    ("y", "classes", "error", "message"),
    [
        (None, None, ValueError, "expected labels y, got None"),
        ([], None, ValueError, "expected at least one label"),
        ([0, 1, 5], [0, 1], ValueError, r"expected labels among \[0, 1\], got .*5.* in row 2"),
        (["a"], ["b", "c"], ValueError, "in row 0. Pass all classes"),
        (["a"], [0, 1], ValueError, "expected labels among"),
        ([0.5, 1.0], None, ValueError, "expected class labels, got fractions"),
        ([0.0, np.nan], None, ValueError, "expected a label in every row, got nan in row 1"),
        (["a", None], None, ValueError, "got None in row 1"),
        ([[0, 1], [1, 0]], None, ValueError, "expected one label per row.*argmax"),
        ([0], [0, 0], ValueError, "expected different classes"),
        (np.array(["a", 1], object), None, TypeError, "expected labels of one type, got int and"),
    ],
)
def test_refused_labels(y, classes, error, message):
    with pytest.raises(error, match=message):
        canonical_labels(y, classes=classes)


@pytest.mark.parametrize(
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
    with pytest.raises(ValueError, match=r"got (<NA>|nan) in row 1"):
        canonical_labels(pd.Series([1, pd.NA, 0], dtype="Int64"))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], r"expected one sample_weight per row, shape \(2,\), a 1d array, got shape \(1,\)"),
        ([1.0, -1.0], "expected sample_weight >= 0 and finite, got -1 in row 1"),
        ([np.nan, 1.0], "got nan in row 0"),
        ([0.0, 0.0], "expected at least one sample_weight above 0, got all-zero weights"),
    ],
)
def test_refused_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        canonical_weight(weight, 2)
