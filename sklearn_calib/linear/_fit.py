"""Fitted linear classifiers of scikit-learn, read as penalised M-estimators with their derivatives.

All are minimisers of sum_i s_i l(f_i, y_i) + l2 |w|^2 / 2 + l1 |w|_1 over coefficients
w and an intercept that is free or absent; one that is penalised (liblinear) is the
coefficient of a constant column.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp, softmax
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_sample_weight

from .._kernels._leverage import (
    compute_leverage_blocks,
    compute_leverages_and_weighted_complements,
)
from .._kernels._newton import minimise_by_newton
from .._typing import AnyArray, ArrayLike, Estimator, Features, FloatArray
from .._validation import (
    canonical_weight,
    check_and_get_common_index,
    read_labels,
    read_numeric_array,
)
from .._warnings import warn_calibration
from ..exceptions import invalid_input

FREE_INTERCEPT = "free"
PENALISED_INTERCEPT = "penalised"
NO_INTERCEPT = "absent"
# The gradient, relative to what it would be without cancellation.
MAX_RELATIVE_GRADIENT = 1e-10
# The same if quasi-Newton steps have ended too early.
MAX_STALLED_RELATIVE_GRADIENT = 1e-6
# Newton's method takes the Hessian of at most this many coefficients.
MAX_NEWTON_COEFFICIENTS = 1000
# Scores this close to those of the minimum, in standard deviations, are converged.
MAX_SCORE_ERROR_DEVIATIONS = 1e-3
# A matrix of this many rows takes 3.2 GB and some minutes.
MAX_HESSIAN_ORDER = 20_000
# If scores move farther, the rows are not those of the fit, or the training has hardly
# begun.
MAX_POLISHING_SCORE_MOVE = 0.2


@dataclass(frozen=True)
class LinearFit:
    """One penalised fit: rows, coefficients and what was minimised.

    Binary: coef (d,), target +-1. Multinomial: coef (K, d), target class positions.
    If the intercept is penalised the last column of X is its constant, and
    `intercept` is 0.
    """

    X: Any
    target: AnyArray
    weight: FloatArray
    coef: FloatArray
    intercept: Any
    loss: str
    l2: float
    l1: float = 0.0
    intercept_kind: str = FREE_INTERCEPT
    # How far the polishing moved the scores, in their standard deviations.
    score_move_deviations: float = 0.0

    @property
    def scores(self) -> FloatArray:
        return self.X @ self.coef.T + self.intercept

    def get_weighted_loss_and_derivatives(
        self, scores: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute the value, psi = -dl/df and D = d2l/df2 of each row's loss, times its weight.

        For the multinomial loss the probabilities stand in place of D.
        """
        value, psi, curvature = LOSS_DERIVATIVES_BY_NAME[self.loss](scores, self.target)
        if psi.ndim == 2:
            return self.weight * value, self.weight[:, None] * psi, curvature
        return self.weight * value, self.weight * psi, self.weight * curvature


# -- losses: value, minus first, and second derivative in the score ----------------------


def _compute_log_loss_and_derivatives(f, y):
    # The probability of being wrong.
    p = expit(-y * f)
    return -log_expit(y * f), y * p, p * (1 - p)


def _compute_squared_loss_and_derivatives(f, y):
    return (y - f) ** 2 / 2, y - f, np.ones_like(f)


def _compute_hinge_square_and_derivatives(f, y):
    short = np.maximum(1 - y * f, 0)
    return short**2, 2 * y * short, 2.0 * (short > 0)


def _compute_huber_loss_and_derivatives(f, y):
    margin = y * f
    short = np.maximum(1 - margin, 0)
    far = margin < -1
    value = np.where(far, -4 * margin, short**2)
    return value, np.where(far, 4 * y, 2 * y * short), 2.0 * ((short > 0) & ~far)


def _compute_multinomial_loss_residuals_and_proba(f, codes):
    p = softmax(f, axis=1)
    labels = np.arange(len(f)), codes
    psi = -p
    psi[labels] += 1
    return logsumexp(f, axis=1) - f[labels], psi, p


LOSS_DERIVATIVES_BY_NAME = {
    "log": _compute_log_loss_and_derivatives,
    "squared": _compute_squared_loss_and_derivatives,
    "squared_hinge": _compute_hinge_square_and_derivatives,
    "modified_huber": _compute_huber_loss_and_derivatives,
    "multinomial": _compute_multinomial_loss_residuals_and_proba,
}


# -- reading estimators ------------------------------------------------------------------


def _find_reader(model):
    """Return the reader of a fitted model, and reject models without one."""
    reader = next(
        (
            read
            for estimator_class, read in READER_BY_ESTIMATOR.items()
            if isinstance(model, estimator_class)
        ),
        None,
    )
    # A model that chose its penalty by cross-validation depends on each row through
    # that choice too, which the formulas neglect.
    if reader is None or type(model).__name__.endswith("CV"):
        raise invalid_input(
            expected=(
                "a fitted LogisticRegression, RidgeClassifier, LinearSVC or "
                "SGDClassifier, or a pipeline that ends in one"
            ),
            got=repr(model),
            hint=(
                "For a model that chose its penalty by cross-validation fit one of "
                "these with the chosen value; for others use CalibratedModel with its "
                "default cv"
            ),
            error=TypeError,
        )
    if not hasattr(model, "coef_"):
        raise invalid_input(
            expected="a fitted model",
            got=repr(model),
            hint="Call fit first; the rows passed here are those of that fit",
        )
    return reader


def read_linear(
    model: Estimator, X: Features, y: ArrayLike, sample_weight: ArrayLike | None
) -> list[LinearFit]:
    """Read the penalised fits of a fitted classifier: one, or one per class."""
    check_and_get_common_index(X, y, sample_weight)
    if isinstance(model, Pipeline):
        X = model[:-1].transform(X) if len(model.steps) > 1 else X
        model = model[-1]
    reader = _find_reader(model)
    if not sparse.issparse(X):
        X = read_numeric_array(X, "X")
    if X.ndim != 2:
        raise invalid_input(
            expected="X of shape (n_samples, n_features)",
            got=f"shape {X.shape}",
            hint="Reshape it",
        )
    X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    _, codes = read_labels(y, classes=model.classes_, input_name="y")
    n_rows = len(codes)
    weight = canonical_weight(sample_weight, n_rows, keeps_unit=True)
    coef = np.atleast_2d(model.coef_)
    if X.shape != (n_rows, coef.shape[1]):
        raise invalid_input(
            expected=f"the training rows, with {coef.shape[1]} features and a label each",
            got=f"shape {X.shape} and {n_rows} labels",
            hint="Pass the X and y of the model's fit",
        )
    if isinstance(model.class_weight, str) and not (weight == weight[0]).all():
        raise invalid_input(
            expected="class weights in numbers beside sample weights",
            got=f"class_weight={model.class_weight!r}",
            hint="Pass class_weight as a dict, or no sample_weight",
        )
    if model.class_weight is not None:
        weight = weight * compute_sample_weight(
            model.class_weight, model.classes_[codes]
        )
    common = reader(model, n_rows)
    intercept = np.ravel(model.intercept_) + np.zeros(len(coef))
    if common["intercept_kind"] == PENALISED_INTERCEPT:
        # liblinear penalises the intercept as the coefficient of a constant column, so
        # it is read as one.
        constant = float(model.intercept_scaling)
        column = np.full((n_rows, 1), constant)
        if sparse.issparse(X):
            X = sparse.hstack([X, column]).tocsr()
        else:
            X = np.hstack([X, column])
        coef = np.column_stack([coef, intercept / constant])
        intercept = np.zeros(len(coef))
    if common["loss"] == "multinomial":
        return [LinearFit(X, codes, weight, coef, intercept, **common)]
    # One-vs-rest models are one binary fit per class.
    positive = [1] if len(model.classes_) == 2 else range(len(model.classes_))
    return [
        LinearFit(X, np.where(codes == c, 1.0, -1.0), weight, w, float(b), **common)
        for c, w, b in zip(positive, coef, intercept, strict=True)
    ]


def _get_intercept_kind_as_dict(model, penalised=False):
    intercept_kind = PENALISED_INTERCEPT if penalised else FREE_INTERCEPT
    return {"intercept_kind": intercept_kind if model.fit_intercept else NO_INTERCEPT}


def split_penalty(
    penalty: str | None, strength: float, l1_ratio: float | None
) -> dict[str, float]:
    """Return the l2 and l1 strength of a penalty by its name, as a dict."""
    if penalty in (None, "none"):
        return {"l2": 0.0, "l1": 0.0}
    ratio = {"l2": 0.0, "l1": 1.0}.get(penalty, l1_ratio or 0.0)
    return {"l2": strength * (1 - ratio), "l1": strength * ratio}


def get_logistic_penalties(model: Any) -> dict[str, float]:
    """Return the l2 and l1 strength of a LogisticRegression, as a dict.

    From scikit-learn 1.8 on they follow from l1_ratio and C.
    """
    penalty = getattr(model, "penalty", "deprecated")
    if penalty == "deprecated":
        penalty = "elasticnet" if float("inf") > model.C else None
    return split_penalty(penalty, 1 / model.C, getattr(model, "l1_ratio", None))


def _get_logistic_objective_fields(model, n):
    """Return loss, penalties and intercept of LogisticRegression for n rows."""
    liblinear = model.solver == "liblinear"
    # Without a multinomial loss liblinear fits one class after the other.
    one_vs_rest = liblinear or getattr(model, "multi_class", "auto") == "ovr"
    multinomial = len(model.classes_) > 2 and not one_vs_rest
    penalties = get_logistic_penalties(model)
    if multinomial and penalties["l1"] > 0:
        raise invalid_input(
            expected="a multinomial model without l1 penalty",
            got=f"l1_ratio={model.l1_ratio!r}, penalty={model.penalty!r}",
            hint="Use an l2 penalty, or CalibratedModel with its default cv",
        )
    loss = "multinomial" if multinomial else "log"
    return {
        "loss": loss,
        **penalties,
        **_get_intercept_kind_as_dict(model, penalised=liblinear),
    }


def _get_ridge_objective_fields(model, n):
    if model.positive:
        raise invalid_input(
            expected="coefficients of any sign",
            got="positive=True",
            hint="Fit without the constraint",
        )
    return {
        "loss": "squared",
        "l2": float(model.alpha),
        **_get_intercept_kind_as_dict(model),
    }


def _get_svc_objective_fields(model, n):
    """Return loss, penalties and intercept of LinearSVC."""
    if model.loss != "squared_hinge" or model.multi_class != "ovr":
        raise invalid_input(
            expected="a twice differentiable loss",
            got=f"loss={model.loss!r}, multi_class={model.multi_class!r}",
            hint="Use LinearSVC(loss='squared_hinge', multi_class='ovr'), which is the default",
        )
    penalties = split_penalty(model.penalty, 1 / model.C, 0.0)
    return {
        "loss": "squared_hinge",
        **penalties,
        **_get_intercept_kind_as_dict(model, penalised=True),
    }


def _get_sgd_objective_fields(model, n):
    """Return loss, penalties and intercept of SGDClassifier for n rows."""
    names = {
        "log_loss": "log",
        "squared_error": "squared",
        "squared_hinge": "squared_hinge",
        "modified_huber": "modified_huber",
    }
    if model.loss not in names or model.early_stopping:
        raise invalid_input(
            expected=f"one of the losses {', '.join(names)} trained on all rows",
            got=f"loss={model.loss!r}, early_stopping={model.early_stopping}",
            hint="Choose one of them, with early_stopping=False and a small tol",
        )
    # SGDClassifier minimises the mean loss; the penalty is multiplied by n to belong to
    # the sum.
    penalties = split_penalty(model.penalty, n * model.alpha, model.l1_ratio)
    return {
        "loss": names[model.loss],
        **penalties,
        **_get_intercept_kind_as_dict(model),
    }


READER_BY_ESTIMATOR = {
    LogisticRegression: _get_logistic_objective_fields,
    RidgeClassifier: _get_ridge_objective_fields,
    LinearSVC: _get_svc_objective_fields,
    SGDClassifier: _get_sgd_objective_fields,
}


# -- at the minimum ----------------------------------------------------------------------


def polish_fit(fit: LinearFit, are_fit_rows: bool = False) -> LinearFit:
    """Continue a fit to its minimum, and record how far its scores moved.

    `are_fit_rows` means that the rows are certainly those of the fit, so that no
    distance is too far.

    Solvers stop early: scikit-learn's default tolerance leaves errors larger than those
    of statistics. An l1 penalty is not polished; there the optimality conditions are
    checked.
    """
    # An l1 penalty is not smooth, so its fit is only checked, not improved.
    if fit.l1 > 0:
        return replace(fit, score_move_deviations=_measure_relative_l1_violation(fit))
    objective, start = _make_objective_and_start(fit)
    # The gradient is a sum that cancels at the minimum; relative to the sum of absolute
    # values, a tolerance means the same for all data.
    scale = _compute_gradient_scale(fit)
    if np.abs(objective(start)[1]).max() <= MAX_RELATIVE_GRADIENT * scale:
        return fit
    options = {
        "ftol": 0,
        "gtol": MAX_RELATIVE_GRADIENT * scale,
        "maxiter": 1000,
        "maxcor": 30,
    }
    parameters = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options=options,
    ).x
    # L-BFGS stalls if the Hessian is ill-conditioned; Newton's method does not.
    stuck = (
        np.abs(objective(parameters)[1]).max() > MAX_STALLED_RELATIVE_GRADIENT * scale
    )
    if stuck and fit.coef.size <= MAX_NEWTON_COEFFICIENTS and fit.loss != "multinomial":
        parameters = _minimise_newton(fit, objective, parameters)
    coef, intercept = _unpack_parameters(fit, parameters)
    better = replace(fit, coef=coef, intercept=intercept)
    before = fit.scores
    after = better.scores
    spread = np.std(after)
    # The change of the scores is what matters for leave-one-out, and unlike
    # coefficients it has a scale.
    score_move = np.sqrt(np.mean((after - before) ** 2)) / spread if spread > 0 else 0.0
    if not np.isfinite(after).all() or (
        score_move > MAX_POLISHING_SCORE_MOVE and not are_fit_rows
    ):
        raise invalid_input(
            expected="a converged fit of these rows",
            got=(
                f"coefficients whose scores are {score_move:.2g} standard deviations "
                "from the minimum's"
            ),
            hint=(
                "Pass the rows, labels and weights that the model was fitted on, or fit "
                "it with a smaller tol and a larger max_iter; without a penalty the "
                "classes must overlap"
            ),
        )
    return replace(better, score_move_deviations=float(score_move))


def _make_objective_and_start(fit):
    """Return (function from packed parameters to value and gradient, packed parameters)."""
    free = fit.intercept_kind == FREE_INTERCEPT

    def evaluate_objective(packed):
        coef, intercept = _unpack_parameters(fit, packed)
        value, psi, _ = fit.get_weighted_loss_and_derivatives(
            fit.X @ coef.T + intercept
        )
        gradient = (fit.l2 * coef - (fit.X.T @ psi).T).ravel()
        if free:
            gradient = np.append(gradient, -psi.sum(axis=0))
        return value.sum() + fit.l2 / 2 * np.sum(coef**2), gradient

    start = fit.coef.ravel()
    return evaluate_objective, np.append(start, fit.intercept) if free else start


def _minimise_newton(fit, objective, packed):
    """Minimise with Newton's method, for a few hundred coefficients of any conditioning."""
    free = fit.intercept_kind == FREE_INTERCEPT
    d = fit.coef.size

    def find_step_and_decrement(packed, gradient):
        """Return Newton's direction at a vector of coefficients and intercept."""
        coef, intercept = _unpack_parameters(fit, packed)
        curvature = fit.get_weighted_loss_and_derivatives(fit.X @ coef + intercept)[2]
        hessian = np.diag(np.append(np.full(d, fit.l2), np.zeros(int(free))))
        weighted = (
            fit.X.T.multiply(curvature)
            if sparse.issparse(fit.X)
            else fit.X.T * curvature
        )
        product = weighted @ fit.X
        hessian[:d, :d] += product.toarray() if sparse.issparse(product) else product
        if free:
            hessian[:d, d] = hessian[d, :d] = fit.X.T @ curvature
            hessian[d, d] += curvature.sum()
        step = -np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
        return step, -gradient @ step

    return minimise_by_newton(
        objective,
        find_step_and_decrement,
        packed,
        0.0,
        max_iter=100,
    ).theta


def _unpack_parameters(fit, packed):
    coef = packed[: fit.coef.size].reshape(fit.coef.shape)
    if fit.intercept_kind != FREE_INTERCEPT:
        return coef, fit.intercept
    intercept = packed[fit.coef.size :]
    return coef, intercept if fit.coef.ndim == 2 else float(intercept[0])


def _compute_gradient_scale(fit):
    """Compute the size of a component of the gradient without cancellation."""
    _, psi, _ = fit.get_weighted_loss_and_derivatives(fit.scores)
    size = abs(fit.X).T @ np.abs(psi)
    return max(float(np.max(size)), 1e-300)


def _measure_relative_l1_violation(fit):
    """Compute how far an l1 fit is from optimality, relative to the l1 penalty."""
    _, psi, _ = fit.get_weighted_loss_and_derivatives(fit.scores)
    gradient = fit.l2 * fit.coef - fit.X.T @ psi
    active = fit.coef != 0
    # The conditions of optimality of the lasso: the gradient equals minus the penalty
    # for active coefficients and is at most the penalty for the others.
    on = np.abs(gradient + fit.l1 * np.sign(fit.coef))[active]
    off = np.maximum(np.abs(gradient[~active]) - fit.l1, 0)
    return float(max(on.max(initial=0), off.max(initial=0)) / fit.l1)


def refine_fits_and_update_own_model(
    fits: list[LinearFit], model: Estimator, is_own_model: bool = False
) -> list[LinearFit]:
    """Return the fits at their minimum.

    A model that is ours (`is_own_model`) takes the polished coefficients; the user's stays as it
    is, and a warning gives its distance from the minimum. So it does of an l1 fit,
    which is checked only.
    """
    fits = [polish_fit(fit, is_own_model) for fit in fits]
    if is_own_model and fits[0].l1 == 0:
        _write_coefficients_to_model(model, fits)
    else:
        _warn_if_not_converged(fits)
    return fits


def _write_coefficients_to_model(model, fits):
    if isinstance(model, Pipeline):
        model = model[-1]
    coef = np.vstack([fit.coef for fit in fits])
    intercept = np.concatenate([np.ravel(fit.intercept) for fit in fits])
    if fits[0].intercept_kind == PENALISED_INTERCEPT:
        coef, intercept = coef[:, :-1], coef[:, -1] * model.intercept_scaling
    model.coef_ = coef.reshape(np.shape(model.coef_))
    if np.ndim(model.intercept_):
        model.intercept_ = intercept.reshape(np.shape(model.intercept_))


def _warn_if_not_converged(fits):
    """Warn if polishing has moved the scores, so the model had not converged."""
    moved = max(fit.score_move_deviations for fit in fits)
    what = "standard deviations between its scores and the minimum's, which are used"
    close = MAX_SCORE_ERROR_DEVIATIONS
    if fits[0].l1 > 0:
        what = "relative error of the conditions of optimality"
        close = 10 * MAX_SCORE_ERROR_DEVIATIONS
    if moved > close:
        warn_calibration(
            expected="a converged fit",
            got=f"{moved:.2g} {what}",
            hint="Fit with a smaller tol and a larger max_iter",
        )


# -- leverages ---------------------------------------------------------------------------


def compute_derivatives_and_leverages(
    fit: LinearFit,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return (psi, D, h, m) of a binary fit, without coefficients that an l1 penalty sets to 0."""
    _, psi, curvature = fit.get_weighted_loss_and_derivatives(fit.scores)
    X = fit.X
    if fit.l1 > 0:
        # Leaving out one row rarely changes which coefficients are 0, so only the
        # active ones enter the Hessian.
        X = X[:, np.flatnonzero(fit.coef)]
    _check_hessian_size(min(int((curvature > 0).sum()), X.shape[1]))
    try:
        h, m = compute_leverages_and_weighted_complements(
            X,
            curvature,
            fit.l2,
            fit.intercept_kind == FREE_INTERCEPT,
        )
    except np.linalg.LinAlgError:
        raise _make_singular_fit_error() from None
    # The fit reproduces such a row for any label, so its score without it is
    # not determined.
    if m[fit.weight > 0].min(initial=1.0) < 1e-9:
        raise _make_singular_fit_error(int(np.argmin(m)))
    return psi, curvature, h, m


def compute_leave_one_out(fit: LinearFit) -> FloatArray:
    """Compute the score of each row by the fit without it, to first order."""
    if fit.loss == "multinomial":
        return _compute_multinomial_leave_one_out(fit)
    psi, _, h, m = compute_derivatives_and_leverages(fit)
    # One Newton step without the row: the change of its score is its leverage times its
    # residual, over 1 - D h.
    return fit.scores - psi * h / m


def _compute_multinomial_leave_one_out(fit):
    """Compute `compute_leave_one_out` with matrices for numbers, between contrasts of the classes.

    The sum of the scores over the classes bears no loss, so that diag(p) - pp' is
    singular.
    """
    scores = fit.scores
    _, psi, p = fit.get_weighted_loss_and_derivatives(scores)
    k = scores.shape[1]
    # Softmax scores are determined up to a common constant. An orthonormal basis of
    # contrasts removes it, so the matrices are regular.
    basis = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, 1:]]))[0][:, 1:]
    mean = p @ basis
    inner = (
        np.einsum("ka,ik,kb->iab", basis, p, basis)
        - mean[:, :, None] * mean[:, None, :]
    )
    inner *= fit.weight[:, None, None]
    _check_hessian_size((k - 1) * min(fit.X.shape))
    try:
        J = compute_leverage_blocks(
            fit.X,
            inner,
            fit.l2,
            fit.intercept_kind == FREE_INTERCEPT,
        )
    except np.linalg.LinAlgError:
        raise _make_singular_fit_error() from None
    rest = np.eye(k - 1) - J @ inner
    step = np.linalg.solve(rest, J @ (psi @ basis)[:, :, None])[:, :, 0]
    return scores - step @ basis.T


def _check_hessian_size(size):
    if size > MAX_HESSIAN_ORDER:
        raise invalid_input(
            expected=(
                f"a Hessian of at most {MAX_HESSIAN_ORDER} rows (the smaller of "
                "rows and features, times the classes less one for a multinomial model)"
            ),
            got=f"{size}",
            hint="Use CalibratedModel with its default cv",
        )


def _make_singular_fit_error(row=None):
    """Return the error for a fit that leaving a row out would change without bounds."""
    got = (
        "a singular Hessian"
        if row is None
        else f"row {row}, which the fit reproduces exactly"
    )
    return invalid_input(
        expected="a fit that does not change without bounds when a row is left out",
        got=got,
        hint="Add a penalty, or use CalibratedModel with its default cv",
    )


def approximate_leave_one_out(
    model: Estimator, X: Features, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> FloatArray:
    """Score each training row by the model fitted without it, approximately and without refitting.

    A recalibrator needs scores of rows that the model has not seen. Cross-validation
    provides them at the cost of many fits, and for other models; here they are those of
    the model itself. One factorisation of its Hessian gives all: u_i = f_i - psi_i h_i
    / (1 - D_i h_i), with the score f_i, minus the derivative psi_i and the curvature
    D_i of the row's loss, and the leverage h_i of the row.

    Parameters
    ----------
    model : classifier
        A fitted ``LogisticRegression`` (every solver and penalty, two classes or
        multinomial), ``RidgeClassifier``, ``LinearSVC`` (squared hinge), converged
        ``SGDClassifier``, or a pipeline that ends in one; the transformers before it
        are held fixed.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows that the model was fitted on.
    y : array-like of shape (n_samples,)
        Their labels.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights of that fit. Class weights are the model's; balanced ones are held
        fixed.

    Returns
    -------
    scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        In place of ``model.decision_function(X)``. Of a multinomial model the mean over
        the classes is arbitrary.

    Raises
    ------
    TypeError
        Another model.
    ValueError
        Rows that the model was not fitted on, or a fit far from its minimum; a loss
        without second derivative; a multinomial model with an l1 penalty; a fit that
        reproduces a row exactly (no penalty and more features than rows); a Hessian of
        more than 20,000 rows.

    Warns
    -----
    CalibrationWarning
        The fit stopped early: the scores are those of its minimum. An l1 fit is only
        checked.

    Notes
    -----
    Exact for squared loss. Otherwise the error is of second order in the leverage: for
    150 rows of 300 features 0.0005 root mean square, whereas the training scores are
    off by 0.8. An l1 penalty takes the active set as given, the squared hinge the set
    of rows inside the margin. The penalty on the sum of the losses is held fixed, that
    is C, or n alpha. Cost: one Cholesky factor, n d^2 + d^3 / 3 with more rows than
    features, else d n^2 + n^3, and memory for min(n, d)^2 numbers; K - 1 times the size
    for a multinomial model of K classes.

    Rows must be independent: with near duplicates (many rows of one patient) leaving
    one out is not enough; use grouped folds. And steps before the model should not
    depend on single rows: a vocabulary of few texts or a target encoding does, and
    folds see that.

    References
    ----------
    Rad, Maleki (2020), "A scalable estimate of the out-of-sample prediction error via
    approximate leave-one-out cross-validation"; Li, Sur (2025), section 6, for the same
    quantities.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn_calib import canonical_proba
    >>> from sklearn_calib.linear import approximate_leave_one_out
    >>> from sklearn_calib.metrics import log_loss
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)[:100]
    >>> model = LogisticRegression(C=10, tol=1e-8, max_iter=1000).fit(X, y[:100])
    >>> honest = approximate_leave_one_out(model, X, y[:100])
    >>> seen = log_loss(y[:100], model.predict_proba(X))
    >>> bool(log_loss(y[:100], canonical_proba(honest, kind="logits")) > 2 * seen)
    True
    """
    fits = refine_fits_and_update_own_model(
        read_linear(model, X, y, sample_weight), model
    )
    return compute_leave_one_out_scores(fits)


def compute_leave_one_out_scores(fits: list[LinearFit]) -> FloatArray:
    """Return one array of the scores of one fit, or of one fit per class."""
    scores = [compute_leave_one_out(fit) for fit in fits]
    return scores[0] if len(scores) == 1 else np.column_stack(scores)
