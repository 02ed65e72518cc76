"""Fits on blocks of rows: the result of `fit` on all rows, memory and readings bounded."""

import pickle
import tracemalloc
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input

from sklearn_calib import canonical_proba
from sklearn_calib._kernels._block_passes import (
    fit_softmax_by_vector_passes,
    scale_logits_to_nonpositive,
    sum_vector_scaling_loss_and_gradient,
)
from sklearn_calib._kernels._temperature_compiled import (
    add_vector_scaling_loss_and_gradient,
)
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import (
    TemperatureScaling,
    VectorScaling,
    _temperature as temperature_file,
)


def problem(n, k, seed=0, scale=3.0, temperature=1.7, dtype=np.float32):
    """Logits, labels and weights."""
    rng = np.random.default_rng([seed, k])
    z = (scale * rng.normal(size=(n, k))).astype(dtype)
    y = (z / temperature + rng.gumbel(size=z.shape)).argmax(axis=1)
    return (
        z,
        np.where(rng.random(n) < 0.03, rng.integers(0, k, n), y),
        rng.exponential(size=n),
    )


def cut(*arrays, rows=700):
    return [
        tuple(a[i : i + rows] for a in arrays) for i in range(0, len(arrays[0]), rows)
    ]


def close(one, other, rel=1e-6):
    assert one.inverse_temperature_ == pytest.approx(
        other.inverse_temperature_, rel=rel
    )
    assert one.loss_ == pytest.approx(other.loss_, rel=1e-9)
    assert one.n_samples_ == pytest.approx(other.n_samples_)
    assert np.array_equal(one.classes_, other.classes_)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8])
@pytest.mark.parametrize("temperature", [0.05, 1.7, 30])
def test_equals_fit_on_all_rows(k, dtype, temperature):
    z, y, weight = problem(2000, k, temperature=temperature, dtype=dtype)
    weight[::7] = 0
    whole = TemperatureScaling().fit(canonical_proba(z, kind="logits"), y, weight)
    close(TemperatureScaling().fit_blocks(cut(z, y, weight)), whole)
    close(TemperatureScaling().fit_blocks([(z, y, weight)], start=20.0), whole)
    halves = [(z[:1], y[:1], weight[:1]), (z[1:], y[1:], weight[1:])]
    close(TemperatureScaling().fit_blocks(halves), whole)


@pytest.mark.parametrize("column", [False, True])
def test_one_column(column):
    z, y, _ = problem(4000, 2)
    margin = z[:, 1:] - z[:, :1] if column else z[:, 1] - z[:, 0]
    whole = TemperatureScaling().fit(canonical_proba(margin, kind="logits"), y)
    parts = TemperatureScaling().fit_blocks(cut(margin, y))
    close(parts, whole)
    assert parts.n_features_in_ == 1


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("column", [False, True])
def test_probabilities(zeros, column):
    z, y, _ = problem(6000, 2 if column else 5)
    proba = np.array(canonical_proba(z, kind="logits"))
    if zeros:
        proba[proba < 1e-3] = 0
        proba[-1] = [
            1 - 1e-5,
            *np.full(proba.shape[1] - 1, 1e-5 / (proba.shape[1] - 1)),
        ]
        proba /= proba.sum(axis=1, keepdims=True)
    p = proba[:, 1] if column else proba
    whole = TemperatureScaling().fit(p, y)
    parts = TemperatureScaling().fit_blocks(cut(p, y), kind="proba")
    close(parts, whole)
    assert parts.floor_ == pytest.approx(whole.floor_, rel=1e-9)
    assert parts.n_iter_ == 1
    other = TemperatureScaling().fit_blocks(
        cut(p, y), kind="proba", start=parts.inverse_temperature_
    )
    close(other, whole)
    assert other.floor_ == parts.floor_ and other.n_iter_ == 1 + zeros
    np.testing.assert_allclose(
        parts.predict_proba(p), whole.predict_proba(p), atol=1e-7
    )


def test_rows_that_lose_more_than_counts():
    """Their loss is cut off at 36.04 nats, in the sum as in `fit`."""
    z, y, _ = problem(3000, 4)
    z[:5] = [[400, 0, 0, 0]]
    y[:5] = 1
    whole = TemperatureScaling().fit(canonical_proba(z, kind="logits"), y)
    parts = TemperatureScaling().fit_blocks(cut(z, y))
    assert parts.inverse_temperature_ == pytest.approx(
        whole.inverse_temperature_, rel=1e-6
    )
    assert parts.loss_ == pytest.approx(whole.loss_, rel=1e-6)


def load(z, y, start):
    return z[start : start + 500], y[start : start + 500]


class Loader:
    """Can be read again, has a length, but no places: as a loader of batches."""

    def __init__(self, blocks):
        self.blocks, self.readings = blocks, 0

    def __len__(self):
        return len(self.blocks)

    def __iter__(self):
        for block in self.blocks:
            self.readings += len(block[0])
            yield list(block)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "options"), [(VectorScaling, {"tol": 1e-11}), (TemperatureScaling, {})]
)
def test_every_way_to_pass_blocks(make, options):
    z, y, _ = problem(3000, 4)
    expected = (
        make()
        .fit_blocks(cut(z, y, rows=500), **options)
        .predict_proba([[0.1, 0.2, 0.3, 0.4]])
    )
    functions = [partial(load, z, y, start) for start in range(0, 3000, 500)]
    for blocks in (
        functions,
        tuple(functions),
        Loader(cut(z, y)),
        [(z.tolist(), y.tolist())],
    ):
        found = (
            make().fit_blocks(blocks, **options).predict_proba([[0.1, 0.2, 0.3, 0.4]])
        )
        np.testing.assert_allclose(found, expected, atol=1e-5)
    with ThreadPoolExecutor(2) as pool:
        found = make().fit_blocks(functions, map=pool.map, **options)
        np.testing.assert_allclose(
            found.predict_proba([[0.1, 0.2, 0.3, 0.4]]), expected, atol=1e-5
        )


@pytest.mark.slow
def test_processes():
    z, y, _ = problem(3000, 4)
    functions = [partial(load, z, y, start) for start in range(0, 3000, 500)]
    one = TemperatureScaling().fit_blocks(functions)
    with ProcessPoolExecutor(2) as pool:
        two = TemperatureScaling().fit_blocks(functions, map=pool.map)
    assert two.temperature_ == one.temperature_


@pytest.mark.slow
def test_how_often_rows_are_read():
    """One pass, and of functions one in 20 for the start."""
    z, y, _ = problem(100_000, 10)
    calls = []

    def counted(start):
        calls.append(start)
        return load(z, y, start)

    ts = TemperatureScaling().fit_blocks(
        [partial(counted, i) for i in range(0, 100_000, 500)]
    )
    assert ts.n_iter_ == 1 and len(calls) <= 1.1 * 200
    assert len(TemperatureScaling().fit_blocks(cut(z, y)).classes_) == 10
    loader = Loader(cut(z, y))
    assert TemperatureScaling().fit_blocks(loader).n_iter_ == 1
    assert loader.readings <= 1.25 * 100_000  # its first 20,000 rows and all


@pytest.mark.slow
@pytest.mark.parametrize(("k", "scale"), [(2, 1.0), (20, 3.0), (50, 8.0)])
def test_one_pass_from_a_share_of_the_rows(k, scale):
    """The sample states what Halley's step leaves out."""
    z, y, _ = problem(100_000, k, scale=scale)
    whole = TemperatureScaling().fit(canonical_proba(z, kind="logits"), y)
    parts = TemperatureScaling().fit_blocks(cut(z, y, rows=9000))
    assert parts.n_iter_ == 1
    close(parts, whole)


def test_start_and_warm_start():
    z, y, _ = problem(3000, 4)
    cold = TemperatureScaling().fit_blocks(cut(z, y))
    far = TemperatureScaling().fit_blocks(cut(z, y), start=100.0)
    near = TemperatureScaling(warm_start=True).fit_blocks(
        cut(z, y), start=1.001 / cold.temperature_
    )
    assert far.n_iter_ > near.n_iter_ == 1
    for other in (far, near, near.fit_blocks(cut(z, y))):
        close(other, cold)


@pytest.mark.parametrize(("sign", "said"), [(1, "all correct"), (-1, "no better")])
def test_all_correct_and_without_information(sign, said):
    z, _, _ = problem(300, 3)
    y = z.argmax(axis=1)
    with pytest.warns(CalibrationWarning, match=said):
        parts = TemperatureScaling().fit_blocks(cut(sign * z, y))
    with pytest.warns(CalibrationWarning, match=said):
        whole = TemperatureScaling().fit(canonical_proba(sign * z, kind="logits"), y)
    assert parts.loss_ == pytest.approx(whole.loss_, rel=1e-7)
    if said == "all correct":
        close(parts, whole)


def test_labels_by_name():
    z, y, _ = problem(900, 3)
    names = np.array(["c", "a", "b"])
    ts = TemperatureScaling().fit_blocks(cut(z, names[y]), classes=names)
    assert ts.classes_.tolist() == ["c", "a", "b"]
    assert ts.temperature_ == TemperatureScaling().fit_blocks(cut(z, y)).temperature_
    with raises_invalid_input(ValueError, expected=r"labels among \[0, 1, 2\]"):
        TemperatureScaling().fit_blocks(cut(z, names[y]))


def test_empty_blocks_count_nothing():
    z, y, weight = problem(900, 3)
    nothing = (np.zeros((0, 3)), [])
    expected = TemperatureScaling().fit_blocks(cut(z, y))
    ts = TemperatureScaling().fit_blocks([nothing, *cut(z, y), nothing])
    assert ts.temperature_ == pytest.approx(expected.temperature_, rel=1e-9)
    weightless = TemperatureScaling().fit_blocks(
        [(z[:9], y[:9], 0 * weight[:9]), (z, y, weight)]
    )
    whole = TemperatureScaling().fit(canonical_proba(z, kind="logits"), y, weight)
    close(weightless, whole)


def damaged(what):
    """Three blocks of 10 rows, of which the last has one fault in row 3."""
    z, y, weight = problem(30, 3, dtype=np.float64)
    blocks = [list(block) for block in cut(z, y, weight, rows=10)]
    last = blocks[-1]
    if what == "nan":
        last[0][3, 1] = np.nan
    elif what == "infinite":
        last[0][3, 1] = -np.inf
    elif what == "label":
        last[1][3] = 3
    elif what == "weight":
        last[2][3] = -1
    elif what == "columns":
        last[0] = last[0][:, :2]
    elif what == "lengths":
        last[1] = last[1][:5]
    elif what == "single":
        blocks[-1] = [last[0]]
    elif what == "array":
        blocks[-1] = last[0]
    elif what == "text":
        last[0] = np.full((10, 3), "a")
    return blocks


@run_every_case("make", [TemperatureScaling, VectorScaling])
@run_every_case(
    ("what", "said"),
    [
        ("nan", "block 2: expected finite scores, got nan in row 3, column 1"),
        ("infinite", "block 2: expected finite scores, got -inf in row 3, column 1"),
        (
            "label",
            r"block 2: expected labels among \[0, 1, 2\], got (np.int64\()?3\)? in row 3",
        ),
        ("weight", "block 2: expected sample_weight >= 0 and finite, got -1 in row 3"),
        ("columns", "block 2: expected (labels among|3 columns)"),
        (
            "lengths",
            "block 2: expected as many labels as rows of scores, got 5 labels and 10 rows",
        ),
        (
            "single",
            "block 2: expected a tuple of scores and labels.*got list of length 1",
        ),
        ("array", "block 2: expected a tuple of scores and labels.*got ndarray"),
        ("text", "block 2: expected numbers as scores"),
    ],
)
def test_bad_blocks(make, what, said):
    estimator = make().fit_blocks(damaged("nothing"))
    with pytest.raises((ValueError, TypeError), match=f"^{said}"):
        estimator.fit_blocks(damaged(what))
    assert not hasattr(estimator, "classes_") and not hasattr(estimator, "n_iter_")


def test_the_row_is_counted_in_the_block_and_not_in_the_slice():
    z, y, _ = problem(400_000, 2)
    z[300_007, 1] = np.nan
    with pytest.raises(ValueError, match=r"block 1.*nan in row 300007, column 1"):
        TemperatureScaling().fit_blocks([(z[:10], y[:10]), (z, y)], start=1.0)
    p = np.full((400_000, 2), 0.5)
    p[300_007] = 0.4
    with pytest.raises(ValueError, match=r"block 0.*a sum of 0.8.*in row 300007"):
        TemperatureScaling().fit_blocks([(p, y)], kind="proba", start=1.0)


@run_every_case(
    ("blocks", "options", "said"),
    [
        (
            (b for b in []),
            {},
            "expected blocks that can be read more than once, got a generator",
        ),
        (iter([]), {}, "collect 50,000 rows and call fit"),
        (np.zeros((3, 3)), {}, "expected a list of blocks, got ndarray"),
        (3, {}, "expected a list of blocks, got int"),
        ([], {}, "expected at least one row, got no blocks with rows"),
        ([(np.zeros((0, 3)), [])], {}, "expected at least one row"),
        ([([[0.0, 1.0]], [1], [0])], {}, "expected at least one sample_weight above 0"),
        ([([[0.0, 1.0]], [1])], {"kind": "logit"}, "expected kind 'proba' or 'logits'"),
        ([([[0.0, 1.0]], [1])], {"classes": [1, 1]}, "expected different classes"),
        (
            [([[0.0, 1.0]], [1])],
            {"classes": [0, 1, 2]},
            "block 0: expected 3 columns of scores",
        ),
        ([([[[0.0, 1.0]]], [1])], {}, "block 0: expected scores of shape"),
    ],
)
@run_every_case("make", [TemperatureScaling, VectorScaling])
def test_bad_arguments(make, blocks, options, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make().fit_blocks(blocks, **options)


@pytest.mark.parametrize(
    ("make", "option"),
    [
        (TemperatureScaling, {"start": -1}),
        (VectorScaling, {"tol": 0}),
        (TemperatureScaling, {"start": np.nan}),
    ],
)
def test_bad_numbers(make, option):
    with raises_invalid_input(ValueError, expected=f"{next(iter(option))} > 0"):
        make().fit_blocks(cut(*problem(30, 3)), **option)


def peak(function):
    """The most that was allocated during a call, in bytes."""
    tracemalloc.start()
    function()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.fixture
def memory_map(tmp_path):
    """A function that puts logits or probabilities, and labels, into files."""

    def make(n, k, proba=False):
        z, y, _ = problem(n, k)
        if proba:
            z = np.asarray(canonical_proba(z, kind="logits")).astype(np.float32)
        mapped = np.memmap(tmp_path / f"{n}", np.float32, "w+", shape=z.shape)
        mapped[:] = z
        mapped.flush()
        return np.memmap(tmp_path / f"{n}", np.float32, "r", shape=z.shape), y

    return make


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(memory_map):
    peaks = []
    for n in (40_000, 160_000):
        z, y = memory_map(n, 30)
        TemperatureScaling().fit_blocks(cut(z[:99], y[:99]))
        peaks.append(
            peak(
                lambda z=z, y=y: TemperatureScaling().fit_blocks(cut(z, y, rows=10_000))
            )
        )
    assert peaks[1] < 1.2 * peaks[0] and peaks[1] < 12e6  # the file has 19 MB


@pytest.mark.slow
def test_fit_of_a_memory_map_makes_no_copy(memory_map, monkeypatch):
    p, y = memory_map(100_000, 50, proba=True)
    whole = TemperatureScaling().fit(np.array(p), y)
    monkeypatch.setattr(temperature_file, "_MAX_MEMORY_MAP_ENTRIES", 1_000_000)
    mapped = TemperatureScaling()
    most = peak(lambda: mapped.fit(p, y))
    close(mapped, whole)
    assert mapped.floor_ == pytest.approx(whole.floor_)
    # the sample of 20,000 rows and labels: not once all in float64
    assert most < p.size * 8
    with raises_invalid_input(ValueError, expected="one class for each"):
        TemperatureScaling().fit(p, np.minimum(y, 3))
    with pytest.raises(ValueError, match=r"block 0: .* in row 77777"):
        bad = np.memmap(f"{p.filename}b", np.float32, "w+", shape=p.shape)
        bad[:] = p
        bad[77_777] = 0.5
        TemperatureScaling().fit(bad, y)


@pytest.mark.slow
def test_checks_of_a_table_make_no_copies():
    """Beside the result: nothing for logits, blocks and row sums for probabilities."""
    z, _, _ = problem(50_000, 100)
    table = z.size * 8
    assert peak(lambda: canonical_proba(z, kind="logits")) < 2.2 * table
    p = np.asarray(canonical_proba(z, kind="logits")).astype(np.float32)
    assert peak(lambda: canonical_proba(p)) < 1.2 * table


@pytest.mark.slow
def test_prediction_makes_only_its_result():
    z, y, _ = problem(50_000, 100)
    proba = canonical_proba(z, kind="logits")
    ts = TemperatureScaling().fit(proba, y)
    assert peak(lambda: ts.predict_proba(proba)) < 1.2 * proba.nbytes


def readable_sums(z, codes, weight, beta, coef, intercept, gradient, _):
    """The readable form of `add_vector_scaling_loss_and_gradient`."""
    s, rows = scale_logits_to_nonpositive(z, beta), np.arange(len(codes))
    u = s * coef + intercept
    u -= u.max(axis=1, keepdims=True)
    residual, true = np.exp(u), u[rows, codes]
    total = residual.sum(axis=1)
    residual *= (weight / total)[:, None]
    residual[rows, codes] -= weight
    gradient += (residual * s).sum(axis=0), residual.sum(axis=0)
    return weight @ (np.log(total) - true)


@pytest.mark.parametrize("k", [2, 5, 33])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_vector_scaling(k, dtype):
    z, y, weight = problem(500, k, dtype=dtype)
    z[0, 0] = 3e5 if dtype == np.float64 else 100
    coef, intercept = np.linspace(-0.5, 2, k), np.linspace(3, -3, k)
    results = []
    for function in (readable_sums, add_vector_scaling_loss_and_gradient):
        gradient = np.zeros((2, k))
        loss = function(z, y, weight, 0.7, coef, intercept, gradient, np.empty((2, k)))
        results.append(np.r_[loss, gradient.ravel()])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", [2, 6])
@pytest.mark.parametrize("weighted", [False, True])
def test_vector_scaling_equals_fit(k, weighted):
    z, y, weight = problem(60_000, k)
    z = z * np.linspace(0.5, 1.5, k, dtype=np.float32) + np.arange(k, dtype=np.float32)
    arrays = (z, y, weight) if weighted else (z, y)
    whole = VectorScaling().fit(canonical_proba(z, kind="logits"), *arrays[1:])
    exact = VectorScaling().fit_blocks(cut(*arrays, rows=5000), tol=1e-11)
    np.testing.assert_allclose(exact.coef_, whole.coef_, atol=2e-5)
    np.testing.assert_allclose(exact.intercept_, whole.intercept_, atol=2e-5)
    assert exact.objective_ == pytest.approx(whole.objective_, abs=1e-10)
    quick = VectorScaling().fit_blocks(cut(*arrays, rows=5000))
    assert quick.n_iter_ <= 6
    quick_loss, loss = (
        penalised(v, z, y, weight if weighted else None) for v in (quick, whole)
    )
    assert -1e-12 < quick_loss - loss < 1.5 * k / (10 * 60_000)
    assert quick.objective_ == pytest.approx(quick_loss, abs=k / (10 * 60_000))


def penalised(vector, z, y, weight):
    proba = vector.predict_proba(canonical_proba(z, kind="logits"))
    loss = np.average(-np.log(proba[np.arange(len(y)), y]), weights=weight)
    return loss + 1e-4 * (
        np.square(vector.coef_ - 1).sum() + np.square(vector.intercept_).sum()
    )


def test_passes_end_within_a_tenth_of_the_statistical_error():
    """Of all rows, although they begin at the optimum of forty."""
    z, y, weight = problem(6000, 3, dtype=np.float64)
    z = z * np.array([0.5, 1.0, 2.0])
    run_pass = partial(sum_vector_scaling_loss_and_gradient, z, y, weight, 1.0)
    sample = (z[:40], y[:40], np.ones(40))
    losses = []
    for tol in (None, 1e-12):
        fit = fit_softmax_by_vector_passes(run_pass, sample, 1.0, 1e-4, tol=tol)
        found = run_pass(1 + fit.A, fit.b)
        size = np.square(fit.A).sum() + np.square(fit.b).sum()
        losses.append(found.loss / found.weight + 1e-4 * size)
    assert -1e-12 < losses[0] - losses[1] < 2 * 3 / (20 * weight.sum())


@pytest.mark.slow
def test_vector_scaling_where_the_sample_misses_a_class():
    """The sample's Hessian is uninformative about that class; the full gradients do."""
    z, y, _ = problem(60_000, 4)
    order = np.argsort(y == 3, kind="stable")
    z, y = z[order], y[order]
    whole = VectorScaling().fit(canonical_proba(z, kind="logits"), y)
    parts = VectorScaling().fit_blocks(Loader(cut(z, y, rows=5000)), tol=1e-10)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-4)


def test_fitted_on_blocks_is_a_recalibrator_like_any_other():
    z, y, _ = problem(900, 3)
    for make in (TemperatureScaling, VectorScaling):
        fitted = pickle.loads(pickle.dumps(make().fit_blocks(cut(z, y))))
        scores = canonical_proba(z, kind="logits")
        assert fitted.predict(scores).shape == (900,)
        assert fitted.get_feature_names_out().shape == (3,)
