"""Tensors on their device: the numbers of numpy, and nothing on the host that need not be there."""

import tracemalloc
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.utils import estimator_checks, get_tags

from sklearn_calib import canonical_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import (
    Identity,
    IsotonicCalibration,
    TemperatureScaling,
    all_recalibrators,
)
from sklearn_calib.recalibrators._device_map import DeviceMap

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
if not hasattr(estimator_checks, "check_array_api_input"):
    pytest.skip("this scikit-learn has no array API", allow_module_level=True)

ARITHMETIC = [
    cls for cls in all_recalibrators().values() if getattr(cls.capabilities, "array_api", False)
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
    def kinds(tree):
        inner = [kinds(part) for part in tree.get("parts", []) if part]
        return {tree["node"]}.union(*inner)

    known = {name.removeprefix("_node_") for name in dir(DeviceMap) if name.startswith("_node_")}
    z, y = problem(60, k)
    for cls in ARITHMETIC:
        method = fitted(cls, canonical_proba(z, kind="logits"), y)
        assert set().union(*map(kinds, method._all_nodes())) <= known
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
    text = TemperatureScaling().fit(p, np.array(["no", "yes"])[y])
    assert text.predict(away(p)).tolist() == text.predict(p).tolist()


@pytest.mark.parametrize("kind", ["logits", "proba"])
def test_temperature_is_fitted_slice_by_slice(dispatch, kind):
    z, y = problem(5500, 200, np.float32)
    weight = np.where(np.arange(len(y)) % 3, 1.0, 2.0)
    scores = canonical_proba(z, kind="logits")
    given = z if kind == "logits" else np.asarray(scores)
    want = TemperatureScaling().fit(scores, y, weight, classes=np.arange(200))
    held = canonical_proba(away(given), kind=kind)
    found = TemperatureScaling().fit(held, away(y), away(weight), classes=away(np.arange(200)))
    assert found.temperature_ == pytest.approx(want.temperature_, rel=1e-6)
    assert found.n_samples_ == pytest.approx(want.n_samples_)
    again = TemperatureScaling().fit_blocks([(away(given), away(y), away(weight))], kind=kind)
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
    np.testing.assert_array_equal(found, IsotonicCalibration().fit(p, y).predict_proba(p))
    assert log_loss(away(y), away(p)) == log_loss(y, p)
    held = canonical_proba(away(z), kind="logits")
    assert log_loss(y, held) == log_loss(y, canonical_proba(z, kind="logits"))
    assert np.asarray(held).shape == held.shape == (60, 3) and "device1" in repr(held)


def test_without_dispatch_the_cure_is_named():
    method = Identity().fit([0.2, 0.8], [0, 1])
    with pytest.raises(ValueError, match=r"\.cpu\(\).*array_api_dispatch=True"):
        method.predict_proba(away(np.array([0.2, 0.4])))
    with pytest.raises(ValueError, match=r"\.cpu\(\).*array_api_dispatch=True"):
        canonical_proba(away(np.array([0.2, 0.4])))


def test_bad_tensors(dispatch):
    z, y = problem(60, 3)
    method = TemperatureScaling().fit(canonical_proba(z, kind="logits"), y)
    wrong = z.copy()
    wrong[7, 1] = np.nan
    with pytest.raises(ValueError, match="finite scores, got nan in row 7, column 1"):
        method.predict_proba(canonical_proba(away(wrong), kind="logits"))
    with pytest.raises(ValueError, match="For logits call canonical_proba"):
        method.predict_proba(away(z))
    with pytest.raises(ValueError, match="3 columns of scores, one per class, got 4"):
        method.predict_proba(away(np.full((2, 4), 0.25)))
    with pytest.raises(ValueError, match="3 columns"):
        canonical_proba(away(np.full((2, 4), 0.25)), n_classes=3)
    with pytest.raises(ValueError, match="3 dimensions"):
        canonical_proba(away(np.zeros((2, 2, 2))), kind="logits")
    with pytest.raises(ValueError, match="one column"):
        canonical_proba(away(np.zeros((0, 2))), kind="logits")
    with pytest.raises(ValueError, match="scores of the kind 'logits', got 'proba'"):
        TemperatureScaling().fit_blocks([(canonical_proba(away(np.full((2, 2), 0.5))), [0, 1])])
    rough = np.array([[0.3, 0.3, 0.3]])
    with pytest.raises(ValueError, match="rows that sum to 1"):
        method.predict_proba(canonical_proba(away(rough)))
    found = method.predict_proba(canonical_proba(away(rough), tolerance=0.2))
    np.testing.assert_allclose(home(found), 1 / 3)


def simplex_rows(n_samples, random_state, **options):
    z, y = problem(n_samples, 2)
    return np.asarray(canonical_proba(z, kind="logits")), y


@pytest.mark.parametrize("place", ["CPU_DEVICE", "device1"])
@pytest.mark.parametrize("name", ["temperature", "platt", "identity", "quadratic", "vector"])
def test_checks_of_scikit_learn(monkeypatch, dispatch, name, place):
    """In float64: in float32 numpy's results are float64 by contract, and a tensor's are not."""
    monkeypatch.setattr(estimator_checks, "make_classification", simplex_rows)
    method = all_recalibrators()[name]()

    def check():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            estimator_checks.check_array_api_input(
                name, method, "array_api_strict", place, "float64", check_values=True
            )

    if name == "vector":  # coefficients stay on the host: the map serves tensors of any device
        with pytest.raises(AssertionError, match="'coef_' attribute is in wrong namespace"):
            check()
    else:
        check()


@pytest.mark.slow  # for its import
def test_torch(dispatch):
    torch = pytest.importorskip("torch", reason="torch is not installed: tensors are not tested")
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
    TemperatureScaling().fit(canonical_proba(tensor.bfloat16(), kind="logits"), y)
    part = tensor[:5].clone().requires_grad_()
    method.predict_proba(canonical_proba(part, kind="logits"))[:, 0].sum().backward()
    assert float(abs(part.grad).max()) > 0
