"""Logistic likelihoods of a stream from whole numbers per cell of log-odds.

Rows that come one by one are counted in cells of their log-odds: rows, events, and the sums of the
places within the cell, of their squares, and of those of the events. All are whole numbers, so they
are the same in every bit whatever the batches and their order. The likelihood of
sigmoid(shift + slope * log-odds) follows from them: that of the events without loss, that of all
rows as if each cell were two atoms of the same mean and variance.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, expit, log_expit

from .._typing import AnyArray, FloatArray, IntArray
from ._logistic_grid import Grid
from ._newton import damped_newton

_FAR = 700.0  # log-odds beyond are counted there
_STEPS = 4096  # of a place within a cell
_SPREAD = np.array([1.0, 0.5])  # of shift and slope in the mixture, around 0 and 1
_IDENTITY = np.array([0.0, 1.0])
_RAYS = 256
_ENDLESS = 100.0  # of a shift or a slope; half of it is said to be infinite


class LogOddsCells:
    """Cells of log-odds z with a width in proportion to sqrt(z^2 + 4).

    Parameters
    ----------
    fineness : int
        Cells for each unit of log-odds near 0, times 2.
    """

    def __init__(self, fineness: int) -> None:
        self.fineness = fineness
        self.last = round(fineness * float(np.arcsinh(_FAR / 2)))
        self.n = 2 * self.last + 1
        self.edges = 2 * np.sinh((np.arange(self.n + 1) - self.last - 0.5) / fineness)
        self.centre = 2 * np.sinh((np.arange(self.n) - self.last) / fineness)
        self.width = np.diff(self.edges)

    def count(self, z: FloatArray, hit: AnyArray, part: IntArray, n_parts: int) -> IntArray:
        """Whole numbers of the rows of each part; shape (n_parts, 5, n_cells)."""
        near = np.clip(z, -_FAR, _FAR)
        cell = np.rint(self.fineness * np.arcsinh(near / 2)).astype(np.intp) + self.last
        place = np.rint((near - self.centre[cell]) * (_STEPS / self.width[cell]))
        cell += self.n * part
        found = np.empty((n_parts, 5, self.n), dtype=np.int64)
        for number, weight in enumerate((None, hit, place, place * place, place * hit)):
            sums = np.bincount(cell, weight, minlength=n_parts * self.n)
            found[:, number] = sums.reshape(n_parts, self.n)
        return found


FINE, COARSE_CELLS = LogOddsCells(16), LogOddsCells(4)


class Atoms(NamedTuple):
    """Log-odds with their numbers of rows, and of events."""

    z: FloatArray  # of shape (n_atoms,)
    n: FloatArray
    z_hit: FloatArray  # of shape (n_event_atoms,)
    k: FloatArray

    @property
    def sums(self) -> FloatArray:
        """Of the events: their number, and that of their log-odds."""
        return np.array([self.k.sum(), self.k @ self.z_hit])


def atoms(counts: IntArray, cells: LogOddsCells) -> Atoms:
    """Two atoms per cell, with its mean and its variance; `counts` of shape (5, n_cells)."""
    used = counts[0] > 0
    n, k, d, square, hits = counts[:, used].astype(np.float64)
    step = cells.width[used] / _STEPS
    mean = d / n
    apart = step * np.sqrt(np.maximum(square / n - mean * mean, 0.0))
    z = cells.centre[used] + step * mean
    some = k > 0
    z_hit = cells.centre[used][some] + step[some] * hits[some] / k[some]
    apart_hit = apart[some]
    return Atoms(
        np.concatenate([z - apart, z + apart]),
        np.concatenate([n, n]) / 2,
        np.concatenate([z_hit - apart_hit, z_hit + apart_hit]),
        np.concatenate([k[some], k[some]]) / 2,
    )


def likelihood(found: Atoms, shift: FloatArray, slope: FloatArray) -> FloatArray:
    """Log-likelihood of each pair less that of the predictions as they are, in nats."""
    total, linear = found.sums
    pair = np.multiply.outer(slope, found.z) + np.asarray(shift)[..., None]
    here = total * np.asarray(shift) + linear * (np.asarray(slope) - 1.0)
    return here + (log_expit(-pair) - log_expit(-found.z)) @ found.n


def pair_gains(found: Atoms, grid: Grid) -> FloatArray:
    """How much likelier each pair of a grid makes the labels; shape (n_pairs,), in nats."""
    return likelihood(found, grid.shift, grid.slope)


# -- fits -----------------------------------------------------------------------------------------


def fit_line(found: Atoms, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The most probable (shift, slope) with normal priors around (0, 1), and the information there.

    A `precision` of inf keeps a parameter where it is.
    """
    free = np.isfinite(precision)
    own = np.where(free, precision, 0.0)
    basis = np.column_stack([np.ones_like(found.z), found.z])

    def evaluate(theta):
        return 0.5 * own @ (theta - _IDENTITY) ** 2 - float(likelihood(found, *theta)), None

    def derivatives(theta):
        p = expit(basis @ theta)
        slope = basis.T @ (found.n * p) - found.sums + own * (theta - _IDENTITY)
        information = _information(basis, found, p)
        return slope * free, information * np.outer(free, free) + np.diag(np.where(free, own, 1.0))

    def direction(theta, _):
        gradient, hessian = derivatives(theta)
        step = -np.linalg.solve(hessian, gradient)
        return step, -gradient @ step

    theta = damped_newton(evaluate, direction, _IDENTITY, 1e-13).theta
    return theta, derivatives(theta)[1]


def _information(basis, found, p):
    return basis.T @ (basis * (found.n * p * (1 - p))[:, None])


# -- a region that holds at every look ------------------------------------------------------------


def log_evidence(found: Atoms) -> tuple[float, FloatArray, FloatArray]:
    """Logarithm of the mean likelihood over normal shifts and slopes; mode and square root.

    The sum over points of a regular lattice around the mode, which for a function this smooth is
    the integral; what lies outside the lattice is left out, which makes it smaller.

    Returns
    -------
    log_evidence : float
    mode : ndarray of shape (2,)
    root : ndarray of shape (2, 2)
        Of the covariance at the mode.
    """
    precision = _SPREAD**-2.0
    mode, information = fit_line(found, precision)
    root = np.linalg.cholesky(np.linalg.inv(information))
    side = np.arange(-6.0, 7.0)  # in standard deviations
    lattice = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    theta = mode + lattice @ root.T
    log = likelihood(found, theta[:, 0], theta[:, 1])
    log = log - 0.5 * ((theta - _IDENTITY) ** 2) @ precision
    top = float(log.max())
    volume = abs(float(np.linalg.det(root))) / (2 * np.pi * float(np.prod(_SPREAD)))
    return top + float(np.log(np.exp(log - top).sum() * volume)), mode, root


def region(found: Atoms, level: float) -> tuple[FloatArray, FloatArray]:
    """The border of {pairs: mean likelihood < their likelihood / (1 - level)}, a convex set.

    Returns
    -------
    centre : ndarray of shape (2,)
        A shift and a slope within.
    border : ndarray of shape (256, 2)
        In turn around the centre; infinite where it is beyond 50.
    """
    log, mode, root = log_evidence(found)
    bound = log + np.log1p(-level)
    if float(likelihood(found, mode[0], mode[1])) < bound:  # far from the prior
        mode, information = fit_line(found, np.full(2, 1e-6))
        root = np.linalg.cholesky(np.linalg.inv(information))
    angle = 2 * np.pi * np.arange(_RAYS) / _RAYS
    way = np.column_stack([np.cos(angle), np.sin(angle)]) @ root.T

    def inside(far):
        at = mode + far[:, None] * way
        return likelihood(found, at[:, 0], at[:, 1]) >= bound

    most = _ENDLESS / np.abs(way).max(axis=1)
    low, high = np.zeros(_RAYS), np.minimum(1.0, most)
    going = inside(high)
    while going.any():
        low[going] = high[going]
        high[going] = np.minimum(2 * high[going], most[going])
        going &= (low < most) & inside(high)
    for _ in range(40):
        middle = (low + high) / 2
        within = inside(middle)
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    border = mode + low[:, None] * way
    return mode, np.where(np.abs(border) > _ENDLESS / 2, np.copysign(np.inf, border), border)


def contains(found: Atoms, level: float, shift: float, slope: float) -> bool:
    """Whether a pair is in the region."""
    log = log_evidence(found)[0]
    here = float(likelihood(found, np.float64(shift), np.float64(slope)))
    return bool(here >= log + np.log1p(-level))


# -- what is enough -------------------------------------------------------------------------------


def is_enough(found: Atoms, cells: LogOddsCells) -> tuple[FloatArray, FloatArray, float, float]:
    """The best shift alone, the best line, and the score tests of what they leave.

    The bends are at the edges of cells that are nearest to the thirds of the rows.

    Returns
    -------
    offset, line : ndarray of shape (2,)
        Shift and slope; of the first, slope 1.
    p_line, p_bent : float
        P-values: that no slope is missing beside the shift; that no bends at the thirds of the rows
        are missing beside the line. 1 where the rows cannot tell.
    """
    weak = np.full(2, 1e-4)
    offset = fit_line(found, np.array([1e-4, np.inf]))[0]
    line = fit_line(found, weak)[0]
    order = np.argsort(found.z, kind="stable")
    share = np.cumsum(found.n[order])
    places = np.searchsorted(share, share[-1] * np.array([1 / 3, 2 / 3]))
    thirds = found.z[order][np.minimum(places, len(order) - 1)]
    bends = cells.edges[np.abs(cells.edges[:, None] - thirds).argmin(axis=0)]

    def basis(z):
        return np.column_stack([np.ones_like(z), z, *(np.maximum(z - bend, 0) for bend in bends)])

    every, events = basis(found.z), basis(found.z_hit)
    p_line = _score_test(found, every[:, :2], events[:, :2], offset, 1)
    return offset, line, p_line, _score_test(found, every, events, line, 2)


def _score_test(found: Atoms, every: Any, events: Any, theta: FloatArray, fitted: int) -> float:
    """Rao's test of the columns behind the first `fitted` ones."""
    p = expit(theta[0] + theta[1] * found.z)
    score = events.T @ found.k - every.T @ (found.n * p)
    information = _information(every, found, p)
    inner, cross = information[:fitted, :fitted], information[:fitted, fitted:]
    solved = np.linalg.lstsq(inner, cross, rcond=None)[0]
    left = information[fitted:, fitted:] - cross.T @ solved
    own = score[fitted:] - solved.T @ score[:fitted]
    values, vectors = np.linalg.eigh((left + left.T) / 2)
    sure = values > 1e-9 * max(float(np.abs(information).max()), 1e-300)
    if not sure.any():
        return 1.0
    return float(chdtrc(sure.sum(), float(((vectors[:, sure].T @ own) ** 2 / values[sure]).sum())))


# -- when it changed ------------------------------------------------------------------------------


def onset(
    gains: FloatArray, rows: IntArray, log_prior: FloatArray, level: float
) -> tuple[int, int, int]:
    """After which block the change began, with the blocks that bound an interval.

    Before the change the predictions hold, behind it one of the pairs, by their prior weights; each
    row is as likely to be the first one behind it. Within a block the logarithm is taken as linear.

    Parameters
    ----------
    gains : ndarray of shape (n_blocks, n_pairs)
    rows : ndarray of shape (n_blocks,)
    log_prior : ndarray of shape (n_pairs,)
    level : float

    Returns
    -------
    likely, low, high : int
        Blocks: the change is likeliest at the first row of `likely`, and with probability `level`
        between the first row of `low` and the last row of `high`.
    """
    behind = np.cumsum(gains[::-1], axis=0)[::-1] + log_prior
    top = behind.max(axis=1)
    log = np.append(top + np.log(np.exp(behind - top[:, None]).sum(axis=1)), 0.0)
    weight = np.exp(log - log.max())
    mass = rows * (weight[:-1] + weight[1:]) / 2
    share = np.cumsum(mass) / mass.sum()
    outside = (1 - level) / 2
    low, high = np.searchsorted(share, [outside, 1 - outside])
    return int(log[:-1].argmax()), int(low), int(min(high, len(rows) - 1))
