"""Small logistic regressions.

They have soft targets, sign constraints, errors, and a test for an optimum.
"""

from typing import NamedTuple

import numpy as np

# These take half the time of numpy's functions.
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs
from scipy.optimize import brentq
from scipy.special import expit

from ._newton import (
    minimise_by_newton,
    solve_bounded_step,
    solve_newton_step_and_decrement,
)
from ._softmax_regression import SoftmaxFit, TemperatureOffsetsFit

# A curvature of so much per unit of residual keeps a direction that only saturated rows
# determine.
_CURVATURE_PER_RESIDUAL = 1e-12
# Rounding hides the gain of a step if the decrement, per unit of loss, is smaller.
_RELATIVE_DECREMENT_TOLERANCE = 1e-12
# The part of the square of a column that the others do not explain.
_MIN_PIVOT = 4e-6
# From so many rows on, every eighth row gives the start.
_MIN_SUBSAMPLED_ROWS = 40_000
_SUBSAMPLING_STEP = 8
# The ends of an interval are searched up to so many standard errors away.
_MAX_INTERVAL_STANDARD_ERRORS = 2.0**40
# The temporaries of so many rows stay in the cache.
_BLOCK_ROWS = 4096


class LogisticFit(NamedTuple):
    """The coefficients, the mean cross-entropy in nats and half the Newton decrement.

    The latter is the distance to the optimum, to second order, before the last step.
    """

    coef: np.ndarray
    loss: float
    gap: float


def fit_logistic(
    features, target, weight, nonnegative=(), start=None, max_iter=200, tol=1e-20
):
    """Minimise the cross-entropy of expit(features @ coef).

    The coefficients of the columns `nonnegative` are at least 0.

    Convex, with a handful of columns of any scale, which may be nearly collinear. Each
    step minimises the second-order model under the constraints by nonnegative least
    squares (a projected Newton step is not a descent step if columns are nearly
    collinear). Along the step Armijo's rule shortens, and a slope that hardly flattens
    lengthens: a row of huge features costs a few evaluations. If rounding hides what
    the loss gains, whole steps go on until the decrement is rounding too: the end does
    not depend on the order of the rows. Begins at `start` if its loss is below that of
    the second-order model at 0.
    """
    columns = np.ascontiguousarray(np.asarray(features, dtype=float).T)
    weight_fraction = weight / weight.sum()

    def compute_fit_point(coef):
        coef = _clip_negatives_in_place_and_return(coef, nonnegative)
        return _FitPoint(
            coef, *compute_logistic_terms(coef @ columns, target, weight_fraction)
        )

    point = _FitPoint(
        np.zeros(len(columns)),
        np.log(2.0),
        weight_fraction * (0.5 - target),
        weight_fraction / 4,
    )
    model = _LogisticNewtonModel(columns)
    step, decrement = model.find_step_and_decrement(point, nonnegative)
    started = point if start is None else compute_fit_point(np.array(start, float))
    if started.loss < point.loss - decrement / 2:
        point = started
        step, decrement = model.find_step_and_decrement(point, nonnegative)
    else:
        # Divided by the squares that least squares leave, the step from zeros leads to
        # the slopes of a linear discriminant analysis.
        unexplained = max(1 - decrement, 0.1)
        step /= unexplained
        decrement /= unexplained
    del started
    gap = np.inf
    before = np.inf
    for _ in range(max_iter):
        gap = decrement / 2
        # Relative to the loss, but not below 1e-3: nearly separated classes have a loss
        # near 0.
        scale = max(point.loss, 1e-3)
        enough = max(tol, _RELATIVE_DECREMENT_TOLERANCE) * scale
        last = decrement <= tol * scale
        near = decrement <= enough
        undecided = None
        if near and before == np.inf:
            # The curvature of decided rows dominates the model and hides the directions
            # that only the other rows determine.
            undecided = point.drop_certain_rows_if_any(weight_fraction)
        if undecided is not None:
            wider, drop = model.find_step_and_decrement(undecided, nonnegative)
            if drop > enough:
                step = wider
                decrement = drop
                near = False
                last = False
        if near and not decrement < before / 4:
            # The loss cannot show progress, and neither does the slope become smaller.
            break
        change = step @ columns
        largest = np.abs(change).max() if near else np.inf
        # What the loss gains is below its last digit, or the next step would be: it is
        # about the square of this one.
        if largest < (1e-6 if last else 1e-8):
            end = _clip_negatives_in_place_and_return(point.coef + step, nonnegative)
            point = point._replace(coef=end)
            break
        reached = compute_fit_point(point.coef + step) if near else None
        if (
            reached is not None
            and reached.loss <= point.loss + _RELATIVE_DECREMENT_TOLERANCE * scale
        ):
            before = decrement
        else:
            # Newton's step may overshoot far from the optimum. The line search also
            # lengthens it, because saturated rows make steps too short.
            reached = _find_lower_point_on_line_if_any(
                compute_fit_point,
                point,
                step,
                change,
                -decrement,
                nonnegative,
            )
            if reached is None or not reached.loss < point.loss:
                # No progress is possible in floating point.
                break
        point = reached
        if last:
            break
        step, decrement = model.find_step_and_decrement(point, nonnegative)
    return LogisticFit(point.coef, float(point.loss), float(gap))


class _FitPoint(NamedTuple):
    coef: np.ndarray
    loss: float
    # The residual and the curvature of each row, multiplied by its weight.
    residual: np.ndarray
    curvature: np.ndarray

    def drop_certain_rows_if_any(self, weight_fraction):
        """Drop the rows whose probability is that of their label to 1e-9, if there are any."""
        rows = np.abs(self.residual) > 1e-9 * weight_fraction
        if rows.all():
            return None
        return self._replace(
            residual=self.residual * rows, curvature=self.curvature * rows
        )


def compute_logistic_terms(log_odds, target, weight_fraction):
    """Return loss, weighted residuals and curvatures, exact at both ends.

    Takes one exponential per row.
    """
    if len(log_odds) <= _BLOCK_ROWS:
        return _compute_block_loss_residual_and_curvature(
            log_odds, target, weight_fraction
        )
    loss = 0.0
    residual = np.empty_like(log_odds)
    curvature = np.empty_like(log_odds)
    for begin in range(0, len(log_odds), _BLOCK_ROWS):
        rows = slice(begin, begin + _BLOCK_ROWS)
        block_loss, residual[rows], curvature[rows] = (
            _compute_block_loss_residual_and_curvature(
                log_odds[rows], target[rows], weight_fraction[rows]
            )
        )
        loss += block_loss
    return loss, residual, curvature


def _compute_block_loss_residual_and_curvature(log_odds, target, weight_fraction):
    """Compute the terms in place, which halves the temporaries."""
    # Written in exp(-|z|), loss, residual and curvature are exact for log-odds of any
    # size.
    small = np.exp(-np.abs(log_odds))
    losses = np.maximum(log_odds, 0)
    losses -= target * log_odds
    losses += np.log1p(small)
    inverse = 1 / (1 + small)
    # Now the smaller of the two probabilities, afterwards the product of both.
    small *= inverse
    residual = (log_odds >= 0) - target
    residual -= np.copysign(small, log_odds)
    residual *= weight_fraction
    small *= inverse
    small *= weight_fraction
    # The curvature of a saturated, wrong row underflows before its residual does; a
    # multiple of the residual keeps the Hessian positive.
    small += _CURVATURE_PER_RESIDUAL * np.abs(residual)
    return weight_fraction @ losses, residual, small


class _LogisticNewtonModel:
    """The second-order model, a distance in coordinates that stay near to orthogonal.

    columns = triangle' basis. The basis is the columns themselves until the Gram matrix
    in the current curvatures is ill-conditioned; then it is made orthogonal in these.
    """

    def __init__(self, columns):
        self.columns = self.basis = columns
        self.triangle = np.eye(len(columns))
        self.is_turned = False
        self.weighted = np.empty_like(columns)

    def find_step_and_decrement(self, point, nonnegative):
        """Return the step to the constrained minimiser, and its Newton decrement."""
        top = point.curvature.max()
        if not top > 0:
            return np.zeros_like(point.coef), 0.0
        curvature = point.curvature / top
        gram = np.multiply(self.basis, curvature, out=self.weighted) @ self.basis.T
        lower = _factorise_gram_if_well_conditioned(gram)
        if lower is not None:
            pull = self.basis @ point.residual
            step = dpotrs(lower, pull, lower=1)[0] / -top
            decrement = -float(pull @ step)
            if self.is_turned:
                step = dtrtrs(self.triangle, step)[0]
            if all(point.coef[j] + step[j] >= 0 for j in nonnegative):
                return step, decrement
            root = lower.T @ self.triangle
            pull = dtrtrs(lower, pull, lower=1)[0]
        else:
            self.basis, self.triangle = _make_orthogonal_basis_and_triangle(
                self.columns, curvature
            )
            self.is_turned = True
            root = self.triangle
            pull = self.basis @ point.residual
        pull /= -top
        scale = np.sqrt((root**2).sum(axis=0))
        scale[scale == 0] = 1.0
        lowest = np.full(len(scale), -np.inf)
        # A step may reduce a constrained coefficient to 0, but not further.
        lowest[[*nonnegative]] = -(point.coef * scale)[[*nonnegative]]
        step = solve_bounded_step(root / scale, pull, lowest) / scale
        return step, float(top * pull @ (root @ step))


def _factorise_gram_if_well_conditioned(gram):
    """Return the lower triangle of Cholesky, or None for an ill-conditioned matrix."""
    lower, failed = dpotrf(gram, lower=1)
    squares = gram.diagonal()
    is_independent = lower.diagonal() ** 2 > _MIN_PIVOT * squares
    if failed or not is_independent.all() or not squares.min() > 1e-280:
        return None
    return lower


def _make_orthogonal_basis_and_triangle(columns, curvature):
    """Return basis B and triangle R with columns = R'B, B diag(curvature) B' = 1.

    Rows of B are 0 for collinear columns.
    """
    count = len(columns)
    basis = np.zeros_like(columns)
    weighted = np.zeros_like(columns)
    triangle = np.zeros((count, count))
    root = np.sqrt(curvature)
    for j, column in enumerate(columns):
        top = (root * np.abs(column)).max()
        if not top > 1e-290:
            continue
        residual = column / top
        size = np.sqrt(curvature @ residual**2)
        # Gram-Schmidt loses orthogonality in one pass if columns are nearly dependent
        # (Kahan and Parlett: "twice is enough").
        for _ in range(2):
            for i in range(j):
                projection = weighted[i] @ residual
                residual -= projection * basis[i]
                triangle[i, j] += projection * top
        norm = np.sqrt(curvature @ residual**2)
        if norm > 1e-14 * size:
            basis[j] = residual / norm
            weighted[j] = curvature * basis[j]
            triangle[j, j] = norm * top
    return basis, triangle


def _clip_negatives_in_place_and_return(coef, nonnegative_indices):
    for j in nonnegative_indices:
        coef[j] = max(coef[j], 0.0)
    return coef


def _find_lower_point_on_line_if_any(
    evaluate_at, point, step, change, slope, nonnegative
):
    """Return a feasible point of lower loss on the step or beyond, or None."""
    if not slope < 0:
        return None
    falling = [point.coef[j] / -step[j] for j in nonnegative if step[j] < 0]
    longest = max(min(falling, default=np.inf), 1.0)
    length = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        reached = evaluate_at(point.coef + length * step)
        while not reached.loss <= point.loss + 1e-4 * length * slope:
            length *= 0.3
            if length < 1e-100:
                return None
            reached = evaluate_at(point.coef + length * step)
        growth = 4.0
        while length < longest and reached.residual @ change < 0.3 * slope:
            length = min(growth * length, longest)
            further = evaluate_at(point.coef + length * step)
            if not further.loss < reached.loss:
                break
            reached = further
            growth **= 2
    return reached


def fit_slope_and_opposite_offsets(score, y_encoded, weight, prior_rows):
    """Fit `fit_temperature_and_offsets` of two classes from their log-odds.

    A logistic regression; of many rows some give the start.
    """
    pseudo_log_odds = find_two_pseudo_row_log_odds(score, weight)
    centre = np.clip(0.0, score.min(), score.max())
    score = np.append(score, pseudo_log_odds)
    features = np.stack([score - centre, np.ones_like(score)]).T
    target = np.append(y_encoded.astype(float), expit(pseudo_log_odds))
    weight = np.append(weight, np.full(2, prior_rows / 2))
    start = None
    if len(score) >= _MIN_SUBSAMPLED_ROWS:
        # A fit to every eighth row is near enough that the full fit needs two or three
        # steps.
        start = fit_logistic(
            features[::_SUBSAMPLING_STEP],
            target[::_SUBSAMPLING_STEP],
            weight[::_SUBSAMPLING_STEP],
            tol=1e-4,
        ).coef
    fit = fit_logistic(features, target, weight, start=start)
    slope = float(fit.coef[0])
    # Centring made the columns nearly orthogonal; this undoes it. The offsets of the
    # two classes are opposite by convention.
    half = float(fit.coef[1] - slope * centre) / 2
    return TemperatureOffsetsFit(slope, np.array([-half, half]))


def fit_two_class_vector_scaling(log_proba, y_encoded, weight, ridge) -> SoftmaxFit:
    """Minimise the penalised log loss of softmax(c log + b).

    The penalty is ridge (|c - 1|^2 + |b|^2), with c >= 0 and b of sum 0.

    `log_proba`, (2, n), are logarithms of both probabilities. The log-odds are c_1
    log_1 - c_0 log_0 + e with b = (-e, e) / 2. Returns a `SoftmaxFit` with A = c - 1.
    """
    # With two classes only the difference of the logits counts: c_1 log p_1 - c_0 log
    # p_0 + b.
    columns = np.stack([-log_proba[0], log_proba[1], np.ones(log_proba.shape[1])])
    w = weight / weight.sum()
    outcome = y_encoded.astype(float)
    gradient = np.zeros(3)
    target = np.array([1.0, 1.0, 0.0])
    # The objective penalises the squares of all four parameters; the offset stands for
    # two of them, -b / 2 and b / 2.
    penalty = ridge * np.array([2.0, 2.0, 1.0])
    lowest = np.array([0.0, 0.0, -np.inf])

    def evaluate_objective_and_row_terms(theta):
        loss, residual, curvature = compute_logistic_terms(theta @ columns, outcome, w)
        away = theta - target
        return loss + penalty @ (away * away) / 2, (residual, curvature)

    def find_step_and_decrement(theta, terms):
        residual, curvature = terms
        gradient[:] = columns @ residual + penalty * (theta - target)
        hessian = (columns * curvature) @ columns.T + np.diag(penalty)
        return solve_newton_step_and_decrement(hessian, gradient, lowest - theta)

    theta, value, decrement, n_iter = minimise_by_newton(
        evaluate_objective_and_row_terms, find_step_and_decrement, target, 1e-12, lowest
    )
    half = theta[2] / 2
    size = float(np.abs(gradient[theta > lowest]).max())
    return SoftmaxFit(
        theta[:2] - 1,
        np.array([-half, half]),
        float(value),
        size,
        decrement,
        n_iter,
    )


def find_two_pseudo_row_log_odds(log_odds, weight):
    """Return the log-odds of two pseudo rows on which the score is right.

    They are at 1/4 and 3/4, but within the scores.

    Nearer to each other if the scores have a deviation below 1, and at the end of
    the scores that is nearest to 1/2 if all are on one side of it: they never cost
    what no row could.
    """
    away = log_odds - np.average(log_odds, weights=weight)
    spread = np.sqrt(np.average(away * away, weights=weight))
    # The two pseudo rows lie within the scores, where they regularise the slope without
    # extrapolation.
    centre = np.clip(0.0, log_odds.min(), log_odds.max())
    return centre + np.log(3.0) * min(1.0, spread) * np.array([-1.0, 1.0])


def compute_platt_targets(y_encoded, weight):
    """Return (N+ + 1)/(N+ + 2) for the positives and 1/(N- + 2) for the negatives.

    Platt (1999), section 2.2. N+ and N- are sums of weights.
    """
    # The posterior means of the two label probabilities under a uniform prior.
    is_positive = y_encoded == 1
    positive = weight @ is_positive
    negative = weight @ ~is_positive
    return np.where(is_positive, (positive + 1) / (positive + 2), 1 / (negative + 2))


# -- infinite estimates: some direction is wrong in no row and right in one -----------------------


def threshold_separates(score, y_encoded, *, increasing=False):
    """Return whether one threshold splits the classes, for z = a score + c.

    With `increasing`, a >= 0.

    A tie at the threshold splits them as well; so does a missing class.
    """
    if np.all(y_encoded == y_encoded[0]):
        return True
    negative = score[y_encoded == 0]
    positive = score[y_encoded == 1]
    if negative.max() == positive.min() == negative.min() == positive.max():
        # Equal scores do not separate anything.
        return False
    # Equality separates too: the likelihood then increases without bound along a step
    # at the shared score, although it stays below 1 there.
    rising = negative.max() <= positive.min()
    return bool(rising or (not increasing and positive.max() <= negative.min()))


def zero_separates(score, y_encoded):
    """Return whether 0 splits the classes, for z = a f(score) + b g(score), a, b >= 0.

    f and g rise through f(0) = g(0) = 0.
    """
    signed = np.where(y_encoded == 1, score, -score)
    return bool((signed >= 0).all() and (signed > 0).any())


def can_interval_separate_classes(score, y_encoded):
    """Return whether an interval holds one class, for z = a score^2 + b score + c.

    The other class lies outside.

    Rows of both classes may share its two ends, where z = 0.
    """
    if np.all(y_encoded == y_encoded[0]):
        return True
    for inside in (0, 1):
        inside_scores = score[y_encoded == inside]
        outside_scores = score[y_encoded != inside]
        low = inside_scores.min()
        high = inside_scores.max()
        if not ((outside_scores > low) & (outside_scores < high)).any():
            # If both labels occur at the ends of the interval and nowhere else, a
            # finite parabola is optimal.
            cells = [y_encoded[score == end] for end in {low, high}]
            rows = sum(map(len, cells))
            mixed = all(np.any(cell != cell[0]) for cell in cells)
            return not (mixed and rows == len(y_encoded))
    return False


def compute_model_covariance(train, weight, log_odds, ridge=0.0):
    """Return the covariance of the coefficients from the information at `log_odds`."""
    information = (
        train * (weight * expit(log_odds) * expit(-log_odds))[:, None]
    ).T @ train
    information[np.diag_indices_from(information)] += ridge
    return np.linalg.pinv(information)


def compute_standard_error(rows, covariance):
    """Return the standard errors of the scores of these rows."""
    return np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows))


# -- logit P(event) = a + b z for log-odds z; `hit` is 1 for the event, else 0 --------------------


def split_rows_by_label(features, rows, events):
    """Return (features, outcome, weight) with one row per label, none of weight 0.

    `rows` and `events` count the rows of each cell.
    """
    stacked = np.concatenate([features, features])
    outcome = np.repeat([1.0, 0.0], len(features))
    weight = np.concatenate([events, rows - events]).astype(np.float64)
    return stacked[weight > 0], outcome[weight > 0], weight[weight > 0]


def compute_log_likelihood(log_odds, outcome, weight):
    """Return the log-likelihood of log-odds, a sum over the rows."""
    return -float(
        weight @ np.logaddexp(0.0, np.where(outcome == 1, -log_odds, log_odds))
    )


def fit_coefficient_and_likelihood(
    offset, column, outcome, weight, start=0.0, tol=1e-13
):
    """Return the c of largest likelihood of offset + c column, and that likelihood.

    Newton's steps inside the bracket that the signs of the slope have shown so far; at
    most tenfold steps before. Both outcomes occur, and the maximum is finite.
    """
    c = float(start)
    low = -np.inf
    high = np.inf
    for _ in range(200):
        mean = expit(offset + c * column)
        slope = weight @ (column * (outcome - mean))
        # The likelihood is concave, so the sign of its slope brackets the maximum;
        # Newton steps outside the bracket are replaced by bisection.
        low, high = (c, high) if slope > 0 else (low, c)
        curvature = weight @ (column**2 * mean * (1 - mean))
        max_step = 10 * (1 + abs(c))
        step = (
            np.clip(slope / curvature, -max_step, max_step)
            if curvature > 0
            else np.sign(slope) * max_step
        )
        if not low < c + step < high:
            step = (low + high) / 2 - c if np.isfinite(low + high) else step
        c += step
        if abs(step) <= tol * (1 + abs(c)):
            break
    return float(c), compute_log_likelihood(offset + c * column, outcome, weight)


def fit_logistic_line_and_likelihood(log_odds, outcome, weight):
    """Return (a, b) and the largest likelihood; its supremum if outcomes are separated."""
    columns = np.column_stack([np.ones_like(log_odds), log_odds])
    fitted = fit_logistic(columns, outcome, weight, (), [0, 1])
    return fitted.coef, -float(fitted.loss * weight.sum())


def compute_coefficient_covariance(columns, log_odds, outcome, weight, squares=None):
    """Return the covariance of the coefficients at these log-odds, by the model.

    By the sandwich if the sums of squared weights are given; cells have such of
    their own. Of clusters see `_cluster_sums.compute_jackknife_standard_errors_and_df`.
    """
    bread = compute_model_covariance(columns, weight, log_odds)
    if squares is None:
        return bread
    # The sandwich estimator: weights that are not counts enter the information once and
    # the variance of the score twice.
    pull = columns * (np.sqrt(squares) * (outcome - expit(log_odds)))[:, None]
    return bread @ (pull.T @ pull) @ bread


def find_profile_interval(profile, estimate, top, step, deviance_drop):
    """Return where 2 (top - profile(c)) <= deviance_drop, searched outwards.

    `step` is a first guess of the distance. An end that is not found within 2^40 of
    these is infinite. An infinite estimate is an end; the other one is sought from
    `step` with its sign.
    """
    # The square root of twice the fall of the likelihood is nearly linear in c, so few
    # steps find the end.
    root = np.sqrt(deviance_drop)

    def measure_fall_beyond_limit(c):
        return np.sqrt(max(2 * (top - profile(c)), 0.0)) - root

    def find_end(start, direction):
        width = step
        while measure_fall_beyond_limit(start + direction * width) < 0:
            start += direction * width
            width *= 2
            if width > _MAX_INTERVAL_STANDARD_ERRORS * step:
                return direction * np.inf
        bracket = sorted([start, start + direction * width])
        return brentq(
            measure_fall_beyond_limit, *bracket, xtol=1e-10 * step, rtol=1e-13
        )

    # If the estimate is infinite, only one end of the interval is finite.
    if np.isfinite(estimate):
        return find_end(estimate, -1), find_end(estimate, 1)
    sign = int(np.sign(estimate))
    inner = step * np.sign(estimate)
    while measure_fall_beyond_limit(inner) >= 0:
        inner *= 2
    finite = find_end(inner, -sign)
    return (finite, np.inf) if sign > 0 else (-np.inf, finite)
