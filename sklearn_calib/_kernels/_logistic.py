"""Small logistic regressions: soft targets, sign constraints, errors, when they have an end."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from ._newton import damped_newton, nearest, newton_step
from ._softmax_regression import JointFit, SoftmaxFit

_DAMPING = 1e-12  # curvature per unit of residual: keeps a direction that only saturated rows see
_FLAT = 1e-12  # decrement per unit of loss from which on rounding hides what a step gains
_MANY_ROWS, _EVERY = 40_000, 8  # of many rows some give the start
_FARTHEST = 2.0**40  # of an end of an interval, in standard errors
_BLOCK = 4096  # rows whose temporaries stay in the cache


class LogisticFit(NamedTuple):
    """The coefficients, the mean cross-entropy in nats, and half the last Newton decrement.

    The latter is the distance to the optimum, to second order, before the last step.
    """

    coef: np.ndarray
    loss: float
    gap: float


def fit_logistic(features, target, weight, nonnegative=(), start=None, max_iter=200, tol=1e-20):
    """Minimise the cross-entropy of expit(features @ coef), the columns `nonnegative` at coef >= 0.

    Convex, with a handful of columns of any scale, which may be nearly collinear. Each step
    minimises the second-order model under the constraints by nonnegative least squares (a projected
    Newton step is no descent where columns are nearly collinear). Along the step
    Armijo's rule shortens, and a slope that hardly flattens lengthens: a row of huge features
    costs a few evaluations. Where rounding hides what the loss gains, whole steps go on until the
    decrement is rounding too: the end does not depend on the order of the rows. Begins at `start`
    where that is better than 0.
    """
    columns = np.ascontiguousarray(np.asarray(features, dtype=float).T)
    share = weight / weight.sum()

    def at(coef):
        return _Point(coef, *logistic_terms(coef @ columns, target, share))

    point, gap = at(np.zeros(len(columns)) if start is None else np.asarray(start, float)), np.inf
    if not point.loss < np.log(2.0):
        point = at(np.zeros(len(columns)))
    model, before = _LogisticModel(columns), np.inf
    for _ in range(max_iter):
        step, decrement = model.step(point, nonnegative)
        gap, scale = decrement / 2, max(point.loss, 1e-3)
        enough, last = max(tol, _FLAT) * scale, decrement <= tol * scale
        near = decrement <= enough
        if near and before == np.inf:  # a decided row of huge features may hide what others need
            wider, drop = model.step(point.undecided(share), nonnegative)
            if drop > enough:
                step, decrement, near, last = wider, drop, False, False
        if near and not decrement < before / 4:
            break  # nor does the slope become smaller
        along, whole = step @ columns, _kept(point.coef + step, nonnegative)
        if last and np.abs(along).max() < 1e-6:  # what the loss gains is below its last digit
            point = point._replace(coef=whole)
            break
        reached = at(whole) if near else None
        if reached is not None and reached.loss <= point.loss + _FLAT * scale:
            before = decrement
        else:
            reached = _line_search(at, point, step, along, -decrement, nonnegative)
            if reached is None or not reached.loss < point.loss:
                break  # no progress is possible in floating point
        point = reached
        if last:
            break
    return LogisticFit(point.coef, float(point.loss), float(gap))


class _Point(NamedTuple):
    coef: np.ndarray
    loss: float
    residual: np.ndarray  # weighted
    curvature: np.ndarray  # weighted

    def undecided(self, share):
        """The same without the rows whose probability is that of their label to 1e-9."""
        rows = np.abs(self.residual) > 1e-9 * share
        return self._replace(residual=self.residual * rows, curvature=self.curvature * rows)


def logistic_terms(z, target, share):
    """Loss, weighted residuals and curvatures, exact at both ends: one exponential a row."""
    if len(z) <= _BLOCK:
        return _terms_of_block(z, target, share)
    loss, residual, curvature = 0.0, np.empty_like(z), np.empty_like(z)
    for begin in range(0, len(z), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        part, residual[rows], curvature[rows] = _terms_of_block(z[rows], target[rows], share[rows])
        loss += part
    return loss, residual, curvature


def _terms_of_block(z, target, share):
    small = np.exp(-np.abs(z))
    losses = np.maximum(z, 0)
    losses -= target * z
    losses += np.log1p(small)
    inverse = 1 / (1 + small)
    small *= inverse  # the smaller of the two probabilities
    residual = (z >= 0) - target
    residual -= np.copysign(small, z)
    residual *= share
    small *= inverse
    small *= share
    small += _DAMPING * np.abs(residual)
    return share @ losses, residual, small


class _LogisticModel:
    """The second-order model, a distance in coordinates that stay near to orthogonal.

    columns = triangle' basis. The basis is the columns themselves until the Gram matrix in the
    current curvatures is ill-conditioned; then it is made orthogonal in these.
    """

    def __init__(self, columns):
        self.columns = self.basis = columns
        self.triangle = np.eye(len(columns))
        self.weighted = np.empty_like(columns)

    def step(self, point, nonnegative):
        """From the point to the minimiser under the constraints, and its Newton decrement."""
        top = point.curvature.max()
        if not top > 0:
            return np.zeros_like(point.coef), 0.0
        curvature = point.curvature / top
        gram = np.multiply(self.basis, curvature, out=self.weighted) @ self.basis.T
        if not _well_conditioned(gram):
            self.basis, self.triangle = _orthogonal(self.columns, curvature)
            root, pull = self.triangle, self.basis @ point.residual
        else:
            lower = np.linalg.cholesky(gram)
            root = lower.T @ self.triangle
            pull = np.linalg.solve(lower, self.basis @ point.residual)
        pull /= -top
        scale = np.sqrt((root**2).sum(axis=0))
        scale[scale == 0] = 1.0
        lowest = np.full(len(scale), -np.inf)
        lowest[[*nonnegative]] = -(point.coef * scale)[[*nonnegative]]
        step = nearest(root / scale, pull, lowest) / scale
        return step, float(top * pull @ (root @ step))


def _well_conditioned(gram):
    scale = np.sqrt(gram.diagonal())
    if not 1e-140 < scale.min() <= scale.max() < np.inf:
        return False
    return np.linalg.eigvalsh(gram / scale / scale[:, None])[0] > 1e-6


def _orthogonal(columns, curvature):
    """Basis B and triangle R: columns = R'B, with B diag(curvature) B' = 1 (0 where collinear)."""
    count = len(columns)
    basis, weighted = np.zeros_like(columns), np.zeros_like(columns)
    triangle = np.zeros((count, count))
    root = np.sqrt(curvature)
    for j, column in enumerate(columns):
        top = (root * np.abs(column)).max()
        if not top > 1e-290:
            continue
        rest = column / top
        size = np.sqrt(curvature @ rest**2)
        for _ in range(2):  # twice is enough
            for i in range(j):
                part = weighted[i] @ rest
                rest -= part * basis[i]
                triangle[i, j] += part * top
        left = np.sqrt(curvature @ rest**2)
        if left > 1e-14 * size:
            basis[j] = rest / left
            weighted[j] = curvature * basis[j]
            triangle[j, j] = left * top
    return basis, triangle


def _kept(coef, nonnegative):
    for j in nonnegative:
        coef[j] = max(coef[j], 0.0)
    return coef


def _line_search(at, point, step, along, slope, nonnegative):
    """A point of lower loss on the step or beyond that keeps the constraints, or None."""
    if not slope < 0:
        return None
    falling = [point.coef[j] / -step[j] for j in nonnegative if step[j] < 0]
    longest = max(min(falling, default=np.inf), 1.0)

    def moved(length):
        return at(_kept(point.coef + length * step, nonnegative))

    length = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        found = moved(length)
        while not found.loss <= point.loss + 1e-4 * length * slope:
            length *= 0.3
            if length < 1e-100:
                return None
            found = moved(length)
        growth = 4.0
        while length < longest and found.residual @ along < 0.3 * slope:
            length = min(growth * length, longest)
            further = moved(length)
            if not further.loss < found.loss:
                break
            found, growth = further, growth**2
    return found


def fit_slope_and_intercept(score, codes, weight, prior_rows, intercept=True):
    """`fit_temperature_and_offsets` of two classes, from their log-odds; or a alone.

    A logistic regression; of many rows some give the start.
    """
    invented = invented_log_odds(score, weight)
    centre = np.clip(0.0, score.min(), score.max()) if intercept else 0.0
    score = np.append(score, invented)
    columns = [score - centre, np.ones_like(score)]
    features = np.column_stack(columns if intercept else columns[:1])
    target = np.append(codes.astype(float), expit(invented))
    weight = np.append(weight, np.full(2, prior_rows / 2))
    start = None
    if len(score) >= _MANY_ROWS:
        start = fit_logistic(features[::_EVERY], target[::_EVERY], weight[::_EVERY], tol=1e-4).coef
    fit = fit_logistic(features, target, weight, start=start)
    slope = float(fit.coef[0])
    half = float(fit.coef[1] - slope * centre) / 2 if intercept else 0.0
    return JointFit(slope, np.array([-half, half]))


def fit_structured_pair(log, codes, weight, ridge):
    """Minimise the mean log loss + ridge (|c - 1|^2 + |b|^2) of softmax(c log + b), c >= 0, b sums
    to 0.

    `log`, (2, n), are logarithms of both probabilities. The log-odds are c_1 log_1 - c_0 log_0 + e
    with b = (-e, e) / 2. Returns a `SoftmaxFit` with A = c - 1.
    """
    columns, w = np.stack([-log[0], log[1], np.ones(log.shape[1])]), weight / weight.sum()
    hit, gradient = codes.astype(float), np.zeros(3)
    target, penalty = np.array([1.0, 1.0, 0.0]), ridge * np.array([2.0, 2.0, 1.0])
    lowest = np.array([0.0, 0.0, -np.inf])

    def evaluate(theta):
        loss, residual, curvature = logistic_terms(theta @ columns, hit, w)
        away = theta - target
        return loss + penalty @ (away * away) / 2, (residual, curvature)

    def direction(theta, rest):
        residual, curvature = rest
        gradient[:] = columns @ residual + penalty * (theta - target)
        hessian = (columns * curvature) @ columns.T + np.diag(penalty)
        return newton_step(hessian, gradient, lowest - theta)

    theta, value, decrement, n_iter = damped_newton(evaluate, direction, target, 1e-12, lowest)
    half, size = theta[2] / 2, float(np.abs(gradient[theta > lowest]).max())
    return SoftmaxFit(theta[:2] - 1, np.array([-half, half]), float(value), size, decrement, n_iter)


def invented_log_odds(log_odds, weight):
    """Where two rows stand on which the score is right: at 1/4 and 3/4, but where the scores are.

    Nearer to each other where the scores have a deviation below 1, and at the end of the scores
    that is nearest to 1/2 where all are on one side of it: they never cost what no row could.
    """
    away = log_odds - np.average(log_odds, weights=weight)
    spread = np.sqrt(np.average(away * away, weights=weight))
    centre = np.clip(0.0, log_odds.min(), log_odds.max())
    return centre + np.log(3.0) * min(1.0, spread) * np.array([-1.0, 1.0])


def smoothed_targets(codes, weight):
    """Platt's targets: (N+ + 1)/(N+ + 2) for the positives, 1/(N- + 2) for the negatives.

    Platt (1999), section 2.2. N+ and N- are sums of weights.
    """
    positive = weight[codes == 1].sum()
    negative = weight[codes == 0].sum()
    return np.where(codes == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))


# -- where the maximum likelihood is infinite: some direction is wrong in no row and right in one --


def threshold_separates(score, codes, *, increasing=False):
    """For z = a score + c, with `increasing` a >= 0: one threshold splits the classes.

    A tie at the threshold splits them as well; so does a missing class.
    """
    if np.all(codes == codes[0]):
        return True
    negative, positive = score[codes == 0], score[codes == 1]
    if negative.max() == positive.min() == negative.min() == positive.max():
        return False  # equal scores
    rising = negative.max() <= positive.min()
    return bool(rising or (not increasing and positive.max() <= negative.min()))


def zero_separates(score, codes):
    """For z = a f(score) + b g(score), a, b >= 0, f and g rising through f(0) = g(0) = 0."""
    signed = np.where(codes == 1, score, -score)
    return bool((signed >= 0).all() and (signed > 0).any())


def interval_separates(score, codes):
    """For z = a score^2 + b score + c: one class lies within an interval, the other outside.

    Rows of both classes may share its two ends, where z = 0.
    """
    if np.all(codes == codes[0]):
        return True
    for inside in (0, 1):
        within, others = score[codes == inside], score[codes != inside]
        low, high = within.min(), within.max()
        if not ((others > low) & (others < high)).any():
            cells = [codes[score == end] for end in {low, high}]
            rows = sum(map(len, cells))
            mixed = all(np.any(cell != cell[0]) for cell in cells)
            return not (mixed and rows == len(codes))
    return False


def logistic_covariance(train, weight, z, ridge=0.0):
    """Of the coefficients, by the information of the training scores z."""
    information = (train * (weight * expit(z) * expit(-z))[:, None]).T @ train
    information[np.diag_indices_from(information)] += ridge
    return np.linalg.pinv(information)


def standard_error(rows, covariance):
    """Of the scores of these rows."""
    return np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows))


# -- logit P(event) = a + b z for log-odds z; `hit` is 1 for the event, else 0 --------------------


def rows_of_both_labels(features, rows, events):
    """(features, hit, weight) of cells of `rows`, of which `events`: one row a label, none of 0."""
    both, hit = np.concatenate([features, features]), np.repeat([1.0, 0.0], len(features))
    weight = np.concatenate([events, rows - events]).astype(np.float64)
    return both[weight > 0], hit[weight > 0], weight[weight > 0]


def log_likelihood(eta, hit, weight):
    """Of log-odds eta; a sum over the rows."""
    return -float(weight @ np.logaddexp(0.0, np.where(hit == 1, -eta, eta)))


def climb(offset, column, hit, weight, start=0.0, tol=1e-13):
    """The c of largest likelihood of offset + c column, and that likelihood.

    Newton's steps inside the bracket that the signs of the slope have shown so far; at most
    tenfold steps before. Both outcomes occur, and the maximum is finite.
    """
    c, low, high = float(start), -np.inf, np.inf
    for _ in range(200):
        mean = expit(offset + c * column)
        slope = weight @ (column * (hit - mean))
        low, high = (c, high) if slope > 0 else (low, c)
        curvature = weight @ (column**2 * mean * (1 - mean))
        most = 10 * (1 + abs(c))
        step = np.clip(slope / curvature, -most, most) if curvature > 0 else np.sign(slope) * most
        if not low < c + step < high:
            step = (low + high) / 2 - c if np.isfinite(low + high) else step
        c += step
        if abs(step) <= tol * (1 + abs(c)):
            break
    return float(c), log_likelihood(offset + c * column, hit, weight)


def fit_line(z, hit, weight):
    """(a, b) and the largest likelihood; its supremum where the outcomes are separated."""
    columns = np.column_stack([np.ones_like(z), z])
    fitted = fit_logistic(columns, hit, weight, (), [0, 1])
    return fitted.coef, -float(fitted.loss * weight.sum())


def covariance(columns, eta, hit, weight, squares=None):
    """Of the coefficients of `columns` at log-odds eta, by the model.

    By the sandwich where the sums of squared weights are given; cells have such of their own. Of
    clusters see `_cluster_sums.compute_jackknife`.
    """
    bread = logistic_covariance(columns, weight, eta)
    if squares is None:
        return bread
    pull = columns * (np.sqrt(squares) * (hit - expit(eta)))[:, None]
    return bread @ (pull.T @ pull) @ bread


def profile_interval(profile, estimate, top, step, drop):
    """Where 2 (top - profile(c)) <= drop: from the estimate outwards on both sides.

    `step` is a first guess of the distance. An end that is not found within 2^40 of these is
    infinite. An infinite estimate is an end; the other one is sought from `step` with its sign.
    """
    root = np.sqrt(drop)

    def beyond(c):  # nearly linear in c
        return np.sqrt(max(2 * (top - profile(c)), 0.0)) - root

    def end(start, direction):
        width = step
        while beyond(start + direction * width) < 0:
            start, width = start + direction * width, 2 * width
            if width > _FARTHEST * step:
                return direction * np.inf
        found = sorted([start, start + direction * width])
        return brentq(beyond, *found, xtol=1e-10 * step, rtol=1e-13)

    if np.isfinite(estimate):
        return end(estimate, -1), end(estimate, 1)
    sign, inside = int(np.sign(estimate)), step * np.sign(estimate)
    while beyond(inside) >= 0:
        inside *= 2
    finite = end(inside, -sign)
    return (finite, np.inf) if sign > 0 else (-np.inf, finite)
