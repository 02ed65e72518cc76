"""Tensors on their device: the numbers of numpy, and nothing on the host that need not be there."""

import tracemalloc
import warnings

import numpy as np
import pytest
import sklearn
from error_fields import raises_invalid_input
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks, get_tags

from sklearn_calib import canonical_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import ExportedMap, from_dict, to_dict
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import (
    Identity,
    IsotonicCalibration,
    PlattScaling,
    PriorShift,
    TemperatureScaling,
    VectorScaling,
    _temperature,
    all_recalibrators,
)

strict = pytest.importorskip(
    "array_api_strict", reason="array-api-strict is not installed"
)
if not hasattr(estimator_checks, "check_array_api_input"):
    pytest.skip("this scikit-learn has no array API", allow_module_level=True)

ARITHMETIC = [
    cls
    for cls in all_recalibrators().values()
    if getattr(cls.capabilities, "array_api", False)
]
AWAY = strict.Device("device1")  # numpy cannot read what is there


@pytest.fixture
def dispatch(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    try:
        with sklearn.config_context(array_api_dispatch=True):
            yield
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"scikit-learn does not dispatch here: {error}")


def problem(n, k, dtype=np.float64):
    rng = np.random.default_rng([n, k])
    z = (3 * rng.normal(size=(n, k))).astype(dtype)
    return z, (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)


def away(array):
    return strict.asarray(array, device=AWAY)


def home(array):
    return np.asarray(strict.asarray(array, device=strict.Device("CPU_DEVICE")))


def fitted(cls, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return cls().fit(*data)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("cls", ARITHMETIC)
def test_numbers_of_numpy(dispatch, cls, k):
    z, y = problem(60, k)
    for kind in ("logits", "proba"):
        scores = canonical_proba(z, kind="logits")
        scores = np.array(scores) if kind == "proba" else scores
        method = fitted(cls, scores, y)
        want = method.predict_proba(scores)
        for dtype, rtol in ((np.float64, 1e-11), (np.float32, 3e-5)):
            given = away((np.asarray(scores) if kind == "proba" else z).astype(dtype))
            found = method.predict_proba(canonical_proba(given, kind=kind))
            assert found.device == AWAY and found.dtype == given.dtype
            np.testing.assert_allclose(home(found), want, rtol=rtol, atol=1e-37)
            found = method.predict(canonical_proba(given, kind=kind))
            assert found.device == AWAY
            np.testing.assert_array_equal(home(found), method.predict(scores))


@pytest.mark.parametrize("k", [2, 3])
def test_declared_where_all_nodes_are_arithmetic(k):
    z, y = problem(60, k)
    for cls in ARITHMETIC:
        method = fitted(cls, canonical_proba(z, kind="logits"), y)
        assert method.map_.supports_tensors()
        assert get_tags(method).array_api_support
    assert not get_tags(IsotonicCalibration()).array_api_support


def test_one_column_and_zeros(dispatch):
    z, y = problem(60, 2)
    p = np.append(np.asarray(canonical_proba(z[:-2], kind="logits"))[:, 1], [0.0, 1.0])
    method = TemperatureScaling().fit(p, y)
    for given in (p, p[:, None]):
        found = home(method.predict_proba(away(given)))
        np.testing.assert_allclose(found, method.predict_proba(given), rtol=1e-12)
    margin = z[:, 1] - z[:, 0]
    found = home(method.predict_proba(canonical_proba(away(margin), kind="logits")))
    want = method.predict_proba(canonical_proba(margin, kind="logits"))
    np.testing.assert_allclose(found, want, rtol=1e-12)
    text = TemperatureScaling().fit(
        p, np.array(["no", "yes"])[y], classes=["no", "yes"]
    )
    assert text.predict(away(p)).tolist() == text.predict(p).tolist()


def test_columns_that_sum_to_1_are_not_rows_that_do(dispatch):
    method = TemperatureScaling().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    with raises_invalid_input(ValueError, expected="rows that sum to 1.*"):
        method.predict_proba(strict.asarray([[0.5, 0.2], [0.5, 0.8]]))


@pytest.mark.parametrize("kind", ["logits", "proba"])
def test_temperature_is_fitted_slice_by_slice(dispatch, kind):
    z, y = problem(5500, 200, np.float32)
    weight = np.where(np.arange(len(y)) % 3, 1.0, 2.0)
    scores = canonical_proba(z, kind="logits")
    given = z if kind == "logits" else np.asarray(scores)
    want = TemperatureScaling().fit(scores, y, weight, classes=np.arange(200))
    held = canonical_proba(away(given), kind=kind)
    found = TemperatureScaling().fit(
        held, away(y), away(weight), classes=away(np.arange(200))
    )
    assert found.temperature_ == pytest.approx(want.temperature_, rel=1e-6)
    assert found.n_samples_ == pytest.approx(want.n_samples_)
    again = TemperatureScaling().fit_blocks(
        [(away(given), away(y), away(weight))], kind=kind
    )
    assert again.temperature_ == pytest.approx(want.temperature_, rel=1e-6)


@pytest.mark.slow
def test_memory_of_very_many_classes(dispatch):
    z, y = problem(400, 50_000, np.float32)
    z = strict.asarray(z)
    tracemalloc.start()
    method = TemperatureScaling().fit(
        canonical_proba(z, kind="logits"), y, classes=np.arange(50_000)
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    found = method.predict_proba(canonical_proba(z, kind="logits"))
    more = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    size = 4 * 400 * 50_000
    assert peak < 1.5 * size and more < 1.5 * size
    assert found.dtype == strict.float32


def test_the_rest_copies_to_the_host(dispatch):
    z, y = problem(60, 3)
    p = np.asarray(canonical_proba(z, kind="logits"))
    method = IsotonicCalibration().fit(away(p), away(y))
    found = method.predict_proba(away(p))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(
        found, IsotonicCalibration().fit(p, y).predict_proba(p)
    )
    assert log_loss(away(y), away(p)) == log_loss(y, p)
    held = canonical_proba(away(z), kind="logits")
    assert log_loss(y, held) == log_loss(y, canonical_proba(z, kind="logits"))
    assert np.asarray(held).shape == held.shape == (60, 3) and "device1" in repr(held)


def test_without_dispatch_the_cure_is_named():
    method = Identity().fit([0.2, 0.8], [0, 1])
    with raises_invalid_input(ValueError, hint=r".*\.cpu\(\).*array_api_dispatch=True"):
        method.predict_proba(away(np.array([0.2, 0.4])))
    with raises_invalid_input(ValueError, hint=r".*\.cpu\(\).*array_api_dispatch=True"):
        canonical_proba(away(np.array([0.2, 0.4])))


def test_bad_tensors(dispatch):
    z, y = problem(60, 3)
    method = TemperatureScaling().fit(canonical_proba(z, kind="logits"), y)
    wrong = z.copy()
    wrong[7, 1] = np.nan
    with raises_invalid_input(
        ValueError, expected=".*finite scores", value="nan", row=7, column=1
    ):
        method.predict_proba(canonical_proba(away(wrong), kind="logits"))
    with raises_invalid_input(ValueError, hint="Turn logits into probabilities first"):
        method.predict_proba(away(z))
    with raises_invalid_input(
        ValueError, expected=".*3 columns of scores, one per class", value="4"
    ):
        method.predict_proba(away(np.full((2, 4), 0.25)))
    with raises_invalid_input(ValueError, expected="3 columns"):
        canonical_proba(away(np.full((2, 4), 0.25)), n_classes=3)
    with raises_invalid_input(ValueError, value="3 dimensions"):
        canonical_proba(away(np.zeros((2, 2, 2))), kind="logits")
    with raises_invalid_input(ValueError, expected=".*one column"):
        canonical_proba(away(np.zeros((0, 2))), kind="logits")
    with raises_invalid_input(
        ValueError, expected=".*scores of the kind 'logits'", value="'proba'"
    ):
        TemperatureScaling().fit_blocks(
            [(canonical_proba(away(np.full((2, 2), 0.5))), [0, 1])]
        )
    rough = np.array([[0.3, 0.3, 0.3]])
    with raises_invalid_input(ValueError, expected="rows that sum to 1"):
        method.predict_proba(canonical_proba(away(rough)))
    found = method.predict_proba(canonical_proba(away(rough), tolerance=0.2))
    np.testing.assert_allclose(home(found), 1 / 3)


class Outputs(ClassifierMixin, TransformerMixin, BaseEstimator):
    """A method without attributes, which are on the host and serve tensors of any device."""

    def __init__(self, method):
        self.method = method

    def fit(self, X, y):
        self._held = clone(self.method).fit(X, y)
        return self

    def __getattr__(self, name):
        if name in ("predict", "predict_proba", "transform", "classes_"):
            return getattr(self._held, name)
        raise AttributeError(name)


def check_as_scikit_learn(monkeypatch, method, *place):
    """In float32 with values: numpy's results are float64 by contract, and a tensor's are not."""

    def rows(n_samples, random_state, **options):
        # scikit-learn's accuracy of tensors is a float32; of 32 rows exact
        z, y = problem(32, 2)
        p = np.array(canonical_proba(z, kind="logits"))
        one_column = get_tags(method).input_tags.one_d_array  # the first of them
        return p[:, ::-1].copy() if one_column else p, y

    monkeypatch.setattr(estimator_checks, "make_classification", rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        name = type(method).__name__
        estimator_checks.check_array_api_input(name, method, *place, check_values=True)


PLACES = (
    ("array_api_strict", "CPU_DEVICE", "float64"),
    ("array_api_strict", "device1", "float32"),
)


@pytest.mark.parametrize("cls", ARITHMETIC)
def test_checks_of_scikit_learn(monkeypatch, dispatch, cls):
    for place in PLACES:
        check_as_scikit_learn(monkeypatch, Outputs(cls()), *place)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["temperature", "platt"])
def test_checks_of_scikit_learn_without_arrays_as_attributes(
    monkeypatch, dispatch, name, place
):
    check_as_scikit_learn(monkeypatch, all_recalibrators()[name](), *place)


def test_coefficients_stay_on_the_host(monkeypatch, dispatch):
    """The map serves tensors of any device; scikit-learn needs another thing."""
    with pytest.raises(AssertionError, match="'coef_' attribute is in wrong namespace"):
        check_as_scikit_learn(monkeypatch, all_recalibrators()["vector"](), *PLACES[0])


def test_a_tolerance_holds_in_slices(dispatch, monkeypatch):
    monkeypatch.setattr(_temperature, "_MAX_DEVICE_ENTRIES", 100)
    z, y = problem(100, 3)
    rough = np.asarray(canonical_proba(z, kind="logits")) * 0.99
    found = TemperatureScaling().fit(canonical_proba(away(rough), tolerance=0.02), y)
    want = TemperatureScaling().fit(canonical_proba(rough, tolerance=0.02), y)
    assert found.temperature_ == pytest.approx(want.temperature_, rel=1e-6)
    with raises_invalid_input(ValueError, expected="rows that sum to 1"):
        TemperatureScaling().fit(canonical_proba(away(rough)), y)
    with raises_invalid_input(
        ValueError, expected="rows that sum to 1"
    ):  # 0 is a tolerance, too
        method = Identity().fit(rough / 0.99, y)
        method.predict_proba(
            canonical_proba(away(rough / (0.99 + 3e-7)), tolerance=0.0)
        )


@pytest.mark.parametrize("k", [2, 3])
def test_a_map_that_was_read(dispatch, k):
    """On the device where its nodes are arithmetic; otherwise a copy, and numpy's result."""
    z, y = problem(60, k)
    p = np.asarray(canonical_proba(z, kind="logits"))
    chain = make_pipeline(
        PlattScaling(), PriorShift(mean=0.2) if k == 2 else PriorShift()
    )
    for one in (TemperatureScaling(laplace=True), VectorScaling(), chain):
        method = from_dict(to_dict(one.fit(p, y)))
        assert get_tags(method).array_api_support
        found = method.predict_proba(away(p))
        assert found.device == AWAY
        np.testing.assert_allclose(home(found), method.predict_proba(p), rtol=1e-11)
        np.testing.assert_array_equal(home(method.predict(away(p))), method.predict(p))
        np.testing.assert_allclose(
            home(one.predict_proba(away(p))), home(found), rtol=1e-11
        )
    method = from_dict(to_dict(IsotonicCalibration().fit(p, y)))
    assert not get_tags(method).array_api_support
    found = method.predict_proba(away(p))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, method.predict_proba(p))
    unread = ExportedMap(to_dict(TemperatureScaling().fit(p, y)))
    assert unread.predict_proba(away(p)).device == AWAY


@pytest.mark.slow  # for its import
def test_torch(dispatch, monkeypatch):
    torch = pytest.importorskip(
        "torch", reason="torch is not installed: tensors are not tested"
    )
    z, y = problem(200, 3, np.float32)
    tensor = torch.asarray(z)
    held = canonical_proba(tensor, kind="logits")
    assert held.array is tensor  # no copy
    method = TemperatureScaling().fit(held, torch.asarray(y))
    found = method.predict_proba(held)
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float32
    want = method.predict_proba(canonical_proba(z, kind="logits"))
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-5)
    assert torch.equal(method.predict(held), tensor.argmax(1))
    half = method.predict_proba(canonical_proba(tensor.bfloat16(), kind="logits"))
    assert half.dtype == torch.float32 and float(abs(half.sum(1) - 1).max()) < 1e-6
    part = tensor[:5].clone().requires_grad_()
    method.predict_proba(canonical_proba(part, kind="logits"))[:, 0].sum().backward()
    assert float(abs(part.grad).max()) > 0
    for cls in ARITHMETIC:
        for dtype in ("float64", "float32"):
            check_as_scikit_learn(monkeypatch, Outputs(cls()), "torch", "cpu", dtype)


@pytest.mark.slow
@pytest.mark.parametrize("entries", [10**6, 100])  # as a whole, and in slices
def test_tensors_of_every_kind(dispatch, monkeypatch, entries):
    """Whatever the numbers, the layout and the labels are, without a word: warnings are errors."""
    torch = pytest.importorskip(
        "torch", reason="torch is not installed: tensors are not tested"
    )
    monkeypatch.setattr(_temperature, "_MAX_DEVICE_ENTRIES", entries)
    z, y = problem(200, 3, np.float32)
    tensor, labels = torch.asarray(z), torch.asarray(y)
    weight = torch.linspace(0.5, 2.0, 200)
    best = TemperatureScaling().fit(
        canonical_proba(z, kind="logits"), y, weight.numpy()
    )
    proba = torch.softmax(tensor, 1)
    kinds = {"logits": tensor, "proba": proba}
    forms = [
        lambda a: a.clone().requires_grad_(),
        lambda a: a.T.contiguous().T,
        lambda a: torch.repeat_interleave(a, 2, dim=0)[::2],
        torch.nn.Parameter,
        lambda a: a.half(),
        lambda a: a.bfloat16(),
        lambda a: a.double(),
    ]
    for kind, scores in kinds.items():
        for form in forms:
            given = form(scores)
            held = canonical_proba(given, kind=kind)
            method = TemperatureScaling().fit(held, labels, weight)
            assert method.temperature_ == pytest.approx(best.temperature_, rel=3e-3)
            wide = torch.float64 if given.dtype == torch.float64 else torch.float32
            found = method.predict_proba(held)
            assert (
                found.dtype == wide
                and float(abs(found.detach().sum(1) - 1).max()) < 1e-6
            )
            if kind == "proba":
                # one stays, one copies
                for one in (
                    PlattScaling(),
                    IsotonicCalibration(),
                ):
                    q = one.fit(given, labels).predict_proba(given)
                    assert isinstance(q, np.ndarray) == (
                        type(one) is IsotonicCalibration
                    )
    for some in (
        y.tolist(),
        labels.int(),
        labels.to(torch.uint8),
        labels.bfloat16(),
        y,
    ):
        for w in (weight, weight.double().requires_grad_(), weight.tolist()):
            method = TemperatureScaling().fit(
                canonical_proba(tensor, kind="logits"), some, w
            )
            assert method.temperature_ == pytest.approx(best.temperature_, rel=1e-6)
    second = proba[:, 1]
    want = PlattScaling().fit(second.numpy(), y == 1)
    for column in (second, second[:, None]):
        method = PlattScaling().fit(column, labels == 1)
        assert method.slope_ == pytest.approx(want.slope_)
        np.testing.assert_allclose(
            method.predict_proba(column).numpy(),
            want.predict_proba(second.numpy()),
            rtol=1e-5,
        )
    shares = TemperatureScaling().fit(proba, proba.bfloat16(), soft_labels=True)
    assert shares.temperature_ == pytest.approx(1.0, rel=1e-3)


@pytest.mark.slow
def test_tensors_that_are_refused(dispatch):
    torch = pytest.importorskip(
        "torch", reason="torch is not installed: tensors are not tested"
    )
    z, y = problem(60, 3, np.float32)
    tensor = torch.asarray(z)
    method = TemperatureScaling().fit(canonical_proba(tensor, kind="logits"), y)
    eighth = tensor.to(torch.float8_e4m3fn)
    for wrong in (tensor.to_sparse(), torch.zeros((3, 3), device="meta"), eighth):
        with pytest.raises(
            TypeError, match=r"a dense tensor of real numbers .* \.to_dense\(\)"
        ):
            method.predict_proba(wrong)
    with pytest.raises(TypeError, match="dtype complex64"):
        canonical_proba(tensor.to(torch.complex64), kind="logits")
    empty = (
        (tensor[:0], "one row"),
        (tensor[:, :0], "one column"),
        (tensor[0, 0], "0 dimensions"),
    )
    for wrong, said in empty:
        for call in (canonical_proba, method.predict_proba):
            with pytest.raises(ValueError, match=said):
                call(wrong)
        with pytest.raises(ValueError, match=said):
            TemperatureScaling().fit(wrong, y[: len(wrong)] if wrong.ndim else 0)
