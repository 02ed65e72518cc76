"""Checks of the adapters by which learners are seen stage by stage."""

import pickle
import warnings
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from .._typing import AnyArray
from .._validation import canonical_proba
from ..staged import Staging, classifier_logits, find_staging
from ._contract import PROBA_TOLERANCE, assert_same


def make_rows(k: int) -> tuple[AnyArray, AnyArray]:
    """Return the rows that each check is given."""
    return make_classification(
        240,
        n_features=8,
        n_informative=6,
        n_classes=k,
        random_state=0,
    )


def _find_adapter(estimator):
    staging = find_staging(estimator)
    assert staging is not None, (
        f"{type(estimator).__name__} has no adapter; call register_staging(cls, adapter), and see "
        "that its applies() is true for this instance"
    )
    return staging


def _find_adapter_and_fit(estimator, X, y):
    staging = _find_adapter(estimator)
    model = staging.with_recording(clone(estimator))
    staging.fit(model, X, y)
    return staging, model


def _compute_stage_proba_and_own_proba(staging, model, X):
    """Compute scores after each stage, and the learner's own probabilities."""
    k = len(model.classes_)
    scores = []
    for kind, values in staging.staged_scores(model, X):
        assert kind in ("proba", "logits"), (
            f"kind {kind!r}, neither 'proba' nor 'logits'"
        )
        scores.append(canonical_proba(values, kind=kind, n_classes=k))
    staged_proba = staging.staged_proba(model, X)
    return scores, scores if staged_proba is None else [
        canonical_proba(p, n_classes=k) for p in staged_proba
    ]


def _predict_model_proba_or_none(model, X):
    """Predict probabilities, or return None for a model without them."""
    if not hasattr(model, "predict_proba"):
        return None
    return canonical_proba(model.predict_proba(X), n_classes=len(model.classes_))


def _assert_predicts(model, X, score, own):
    """Assert that the model itself predicts the scores of its last stage."""
    if _predict_model_proba_or_none(model, X) is not None:
        assert_same(own, _predict_model_proba_or_none(model, X))
    if hasattr(model, "decision_function") and classifier_logits(model, X) is None:
        assert_same(score, canonical_proba(model.decision_function(X), kind="logits"))


def _select_stages(n_stages):
    return sorted({1, (n_stages + 1) // 2, n_stages})


def _check_unit_and_number(estimator, k, X, y):
    assert isinstance(_find_adapter(estimator), Staging), "the adapter is not a Staging"
    assert (
        isinstance(_find_adapter(estimator).unit, str) and _find_adapter(estimator).unit
    ), "no unit"
    most = _find_adapter(estimator).n_stages(clone(estimator))
    staging, model = _find_adapter_and_fit(estimator, X, y)
    n_stages = staging.n_stages(model)
    for number in (most, n_stages):
        assert isinstance(number, Integral), f"n_stages is {number!r}, no whole number"
    assert 1 <= n_stages <= most, (
        f"{n_stages} stages after fit, at most {most} were promised"
    )
    assert n_stages >= 3, (
        f"{n_stages} stages are too few to check; pass a learner with more"
    )
    scores, staged_proba = _compute_stage_proba_and_own_proba(staging, model, X)
    assert len(scores) == n_stages, (
        f"{len(scores)} arrays of scores for {n_stages} stages"
    )
    assert len(staged_proba) == n_stages, (
        f"{len(staged_proba)} arrays of staged_proba for {n_stages} stages"
    )
    for values in (*scores, *staged_proba):
        assert values.shape == (len(X), k), f"scores of shape {values.shape}"


def _get_adapter_model_stage_and_own_proba(estimator, X, y):
    """Fit the first rows, and compute `_compute_stage_proba_and_own_proba` of all."""
    staging, model = _find_adapter_and_fit(estimator, X[:160], y[:160])
    return staging, model, *_compute_stage_proba_and_own_proba(staging, model, X)


def _check_last_stage_is_the_model(estimator, k, X, y):
    _, model, scores, staged_proba = _get_adapter_model_stage_and_own_proba(
        estimator, X, y
    )
    _assert_predicts(model, X, scores[-1], staged_proba[-1])


def _check_stages_are_truncations(estimator, k, X, y):
    staging, model, scores, staged_proba = _get_adapter_model_stage_and_own_proba(
        estimator, X, y
    )
    for stage in _select_stages(len(scores)):
        short = staging.truncate_to_stage(model, stage)
        if find_staging(short) is not None:  # some (epochs) know their last stage only
            again, _ = _compute_stage_proba_and_own_proba(staging, short, X)
            assert len(again) == stage, (
                f"truncated to {stage} stages, it has {len(again)}"
            )
        _assert_predicts(short, X, scores[stage - 1], staged_proba[stage - 1])


def _check_stages_differ(estimator, k, X, y):
    _, _, scores, _ = _get_adapter_model_stage_and_own_proba(estimator, X, y)
    assert np.abs(scores[0] - scores[-1]).max() > 0, "the first stage equals the last"


def _check_fit_with_so_many_stages(estimator, k, X, y):
    staging, model = _find_adapter_and_fit(estimator, X, y)
    _, twin = _find_adapter_and_fit(estimator, X, y)
    model_scores = _compute_stage_proba_and_own_proba(staging, model, X)[0]
    twin_scores = _compute_stage_proba_and_own_proba(staging, twin, X)[0]
    repeatable = np.abs(model_scores[-1] - twin_scores[-1]).max() <= PROBA_TOLERANCE
    stage = (len(model_scores) + 1) // 2
    limited = clone(
        staging.with_max_stages(staging.with_recording(clone(estimator)), stage)
    )
    staging.fit(limited, X, y)
    reached = staging.n_stages(limited)
    assert reached >= stage, f"limited to stage {stage}, the fit reached {reached}"
    short = _compute_stage_proba_and_own_proba(staging, limited, X)[0][stage - 1]
    if repeatable:
        assert_same(short, model_scores[stage - 1])


def _check_truncation_leaves_the_model_alone(estimator, k, X, y):
    staging, model = _find_adapter_and_fit(estimator, X, y)
    before = model.predict(X)
    params = repr(model.get_params())
    attributes = dict(vars(model))
    scores, _ = _compute_stage_proba_and_own_proba(staging, model, X)
    for stage in reversed(_select_stages(len(scores))):
        short = staging.truncate_to_stage(model, stage)
        assert short is not model, "truncate returned the model itself"
        short.predict(X)
    assert staging.n_stages(model) == len(scores), (
        "truncation shortened the fitted model"
    )
    again, _ = _compute_stage_proba_and_own_proba(staging, model, X)
    assert_same(np.stack(again), np.stack(scores), 0)
    assert np.array_equal(model.predict(X), before), (
        "truncation changed the predictions"
    )
    assert repr(model.get_params()) == params, "truncation changed a parameter"
    assert vars(model).keys() == attributes.keys(), (
        "truncation added or removed an attribute"
    )


def _check_preparation_leaves_the_estimator_alone(estimator, k, *_):
    mine = clone(estimator)
    before = repr(mine.get_params())
    attributes = set(vars(mine))
    staging = _find_adapter(mine)
    staging.with_max_stages(staging.with_recording(mine), 2)
    assert repr(mine.get_params()) == before, (
        "with_recording or with_max_stages changed a parameter"
    )
    assert set(vars(mine)) == attributes, (
        "with_recording or with_max_stages set an attribute"
    )


def _check_truncated_models_travel(estimator, k, X, y):
    staging, model = _find_adapter_and_fit(estimator, X, y)
    short = staging.truncate_to_stage(model, 2)
    assert np.array_equal(short.classes_, model.classes_), (
        "the truncated model has other classes"
    )
    copy = pickle.loads(pickle.dumps(short))
    assert np.array_equal(copy.predict(X), short.predict(X)), (
        "the pickled model predicts otherwise"
    )


def _check_rows_alone(estimator, k, X, y):
    staging, model = _find_adapter_and_fit(estimator, X, y)
    scores = _compute_stage_proba_and_own_proba(staging, model, X)[0]
    some = _compute_stage_proba_and_own_proba(staging, model, X[:3])[0]
    for all_rows, some_rows in zip(scores, some, strict=True):
        assert_same(all_rows[:3], some_rows)


def _check_tables_and_pipelines(estimator, k, X, y):
    shapes = [(estimator, X), (make_pipeline(FunctionTransformer(), estimator), X)]
    if get_tags(estimator).input_tags.sparse:
        shapes.append((estimator, sparse.csr_matrix(X)))
    try:
        import pandas as pd
    except ImportError:
        pass
    else:
        names = [f"c{i}" for i in range(X.shape[1])]
        shapes.append(
            (estimator, pd.DataFrame(X, columns=names, index=range(len(X), 0, -1)))
        )
    for learner, features in shapes:
        staging, model = _find_adapter_and_fit(learner, features, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # names of columns that got lost
            scores, staged_proba = _compute_stage_proba_and_own_proba(
                staging, model, features
            )
        assert len(scores) == staging.n_stages(model)
        if _predict_model_proba_or_none(model, features) is not None:
            assert_same(staged_proba[-1], _predict_model_proba_or_none(model, features))
