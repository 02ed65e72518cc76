"""Many models at once: the numbers of `validation_summary`, model by model."""

import numpy as np
import pytest
from scipy.special import expit

from sklearn_calib._kernels._batch_measures import (
    MEASURE_METHODS,
    SortedMultiModelPredictions,
    compute_measures_by_weight_and_model,
)
from sklearn_calib.decomposition import integrated_calibration_index
from sklearn_calib.inference import validation_summary


@pytest.fixture(scope="module")
def models():
    """Four models of 90 rows, the last one with ties; and weights, some of them 0."""
    rng = np.random.default_rng(0)
    z = 1.3 * rng.normal(size=90)
    hit = (rng.random(90) < expit(0.8 * z + 0.2)).astype(float)
    proba = expit(z + 0.4 * rng.normal(size=(4, 90)))
    proba[3] = proba[3].round(1).clip(0.1, 0.9)
    weight = rng.integers(0, 4, (4, 90)).astype(float)
    return proba, hit, [np.ones(90), weight]


def test_numbers_of_each_model(models):
    proba, hit, weights = models
    found = compute_measures_by_weight_and_model(
        proba, hit, weights, [*MEASURE_METHODS]
    )
    for kind, weight in enumerate(weights):
        for model in (0, 3):
            given = weight if weight.ndim == 1 else weight[model]
            table = validation_summary(
                hit.astype(int),
                proba[model],
                sample_weight=given,
                smoother="cox",
                n_resamples=1,
            )
            for place, name in enumerate(MEASURE_METHODS):
                if name != "ICI":
                    value = found[kind, place, model]
                    assert value == pytest.approx(table[name].estimate, abs=1e-7), name


def test_blocks_change_nothing(models, monkeypatch):
    proba, hit, weights = models
    whole = compute_measures_by_weight_and_model(
        proba, hit, weights, [*MEASURE_METHODS]
    )
    monkeypatch.setattr("sklearn_calib._kernels._batch_measures._MAX_BLOCK_ENTRIES", 1)
    np.testing.assert_allclose(
        compute_measures_by_weight_and_model(proba, hit, weights, [*MEASURE_METHODS]),
        whole,
        atol=1e-12,
    )


@pytest.mark.parametrize("law", ["wide", "rare", "steep"])
def test_index_is_near_the_exact_one(law):
    rng = np.random.default_rng(len(law))
    size, mean = {"wide": (1.3, 0.0), "rare": (1.0, -3.0), "steep": (4.0, 0.0)}[law]
    z = mean + size * rng.normal(size=400)
    hit = (rng.random(400) < expit(0.7 * z + 0.3)).astype(float)
    proba, weight = (
        expit(z)[None],
        rng.multinomial(400, np.full(400, 1 / 400)).astype(float),
    )
    for one in (np.ones(400), weight):
        (((value,),),) = compute_measures_by_weight_and_model(
            proba, hit, [one], ["ICI"]
        )
        exact = integrated_calibration_index(
            hit.astype(int), proba[0], sample_weight=one
        )
        assert value == pytest.approx(exact, abs=0.003)


def test_a_straight_curve_is_reproduced():
    """Frequencies that are a parabola of the score are their own smooth."""
    proba = np.repeat(np.linspace(0.05, 0.95, 40), 2)[None]
    hit = np.tile([0.0, 1.0], 40)
    chance = 0.1 + 0.9 * proba[0] ** 2
    weight = np.where(hit == 1, chance, 1 - chance)
    score, frequency = SortedMultiModelPredictions(proba, hit).smooth_curves(weight)
    np.testing.assert_allclose(frequency, 0.1 + 0.9 * score**2, atol=2e-3)


def test_what_does_not_exist():
    proba = np.array([[0.1, 0.2, 0.7, 0.9], [0.5, 0.5, 0.5, 0.5], [0.9, 0.8, 0.2, 0.1]])
    names = ["slope", "intercept", "AUC", "O/E"]
    found = compute_measures_by_weight_and_model(
        proba, np.array([0, 0, 1, 1]), [np.ones(4)], names
    )[0]
    assert found[0].tolist()[::2] == [np.inf, -np.inf]
    assert np.isnan(found[0, 1]) and np.isnan(found[1]).all()
    assert found[2].tolist() == [1, 0.5, 0]
    none = compute_measures_by_weight_and_model(
        proba, np.zeros(4), [np.ones(4)], names
    )[0]
    assert np.isnan(none[:3]).all() and (none[3] == 0).all()
