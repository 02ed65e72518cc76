"""The compiled pass is tested with the readable one."""

import subprocess
import sys

import numpy as np
import pytest
from cases import run_every_case

from sklearn_calib._kernels import _temperature
from sklearn_calib._kernels._temperature import (
    _compute_six_sums_in_blocks,
    fit_temperature,
)
from sklearn_calib._kernels._temperature_compiled import (
    compute_six_temperature_loss_sums,
    exponentiate_nonpositive_float,
)


@run_every_case("k", [2, 3, 10, 31, 32, 100])
@run_every_case("n", [1, 127, 128, 129, 1003])
@run_every_case("beta", [1e-9, 0.7, 30.0, 1e6])
def test_sums(k, n, beta):
    rng = np.random.default_rng([k, n])
    z = 2.5 * rng.normal(size=(n, k))
    codes, weight = rng.integers(0, k, n), rng.exponential(size=n)
    expected = np.array(_compute_six_sums_in_blocks(z, codes, weight, beta))
    scale = weight.sum() * np.array([max(beta, 1), 1, 1, 1, 1, 1]) * 10
    found = compute_six_temperature_loss_sums(z, codes, weight, beta)
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-13)


def test_threads_do_not_change_the_result():
    import numba

    rng = np.random.default_rng(0)
    z, codes = rng.normal(size=(300_000, 7)), rng.integers(0, 7, 300_000)
    before, results = numba.get_num_threads(), []
    for threads in {1, numba.config.NUMBA_NUM_THREADS}:
        numba.set_num_threads(threads)
        results.append(
            compute_six_temperature_loss_sums(z, codes, np.ones(300_000), 0.7)
        )
    numba.set_num_threads(before)
    assert all(np.array_equal(r, results[0]) for r in results)
    np.testing.assert_allclose(
        results[0],
        _compute_six_sums_in_blocks(z, codes, np.ones(300_000), 0.7),
        rtol=1e-11,
    )


@pytest.mark.parametrize("k", [2, 5, 40])
def test_float32(k):
    rng = np.random.default_rng(1)
    z = rng.normal(size=(3000, k)).astype(np.float32)
    y = (z + rng.gumbel(size=(3000, k))).argmax(axis=1)
    short = fit_temperature(z, y, np.ones(3000))
    double = fit_temperature(z.astype(np.float64), y, np.ones(3000))
    assert short.beta == pytest.approx(double.beta, rel=1e-12)


def test_exponential():
    x = np.r_[0.0, -np.geomspace(1e-300, 700, 2000)]
    values = np.array([exponentiate_nonpositive_float(v) for v in x])
    np.testing.assert_allclose(values, np.exp(x), rtol=2e-14)
    assert 0 < exponentiate_nonpositive_float(-1e300) < 1e-300


@pytest.mark.parametrize(("n", "k"), [(30_000, 2), (20_000, 5), (2_000, 100)])
@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_subsample_start_does_not_move_the_optimum(n, k, smoothing, monkeypatch):
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(n, k))
    y = (0.4 * z + rng.gumbel(size=(n, k))).argmax(axis=1)
    z = z[np.argsort(y)]  # sorted rows, the worst case for a strided subsample
    y = np.sort(y)
    fit = fit_temperature(z, y, np.ones(n), smoothing)
    monkeypatch.setattr(_temperature, "_MIN_SUBSAMPLED_ENTRIES", np.inf)
    slow = fit_temperature(z, y, np.ones(n), smoothing, tol=1e-6)
    assert fit.beta == pytest.approx(slow.beta, rel=1e-6)
    assert fit.loss == pytest.approx(slow.loss, rel=1e-12)
    warm = fit_temperature(z, y, np.ones(n), smoothing, start=slow.beta * 1.02)
    assert warm.beta == pytest.approx(slow.beta, rel=1e-6) and warm.n_passes <= 2


@pytest.mark.slow
def test_small_fits_do_not_load_the_compiler():
    code = (
        "import sys; from sklearn_calib.recalibrators import TemperatureScaling;"
        "TemperatureScaling().fit([.1, .4, .6, .9, .8], [0, 1, 0, 1, 1]);"
        "print('numba' in sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "False"
