"""Experiment 4: seconds of RPR against the number of rows; the other bars of the methods."""

from functools import partial

import numpy as np
import setting

from sklearn_calib._kernels._monotone_program import (
    compute_chebyshev_t_yt_and_y2_means,
    fit_bounded_polynomials,
    fit_polynomial_by_cvxpy,
)
from sklearn_calib._kernels._trend_filter import find_largest_penalty, fit_trend_filter
from sklearn_calib.recalibrators import (
    BBQ,
    ENIR,
    NearIsotonicCalibration,
    RestrictedPolynomialRegression,
)


def data(n):
    rng = np.random.default_rng(n)
    p = rng.random(n)
    return p, (rng.random(n) < np.where(p < 0.5, 0.2, 0.8)).astype(float)


def fit_one(mean_t, mean_y, square, degree):
    """The polynomial of this degree with the least mean squared error."""
    [[found]] = fit_bounded_polynomials([(mean_t, mean_y, square)], degree, [np.inf])
    return found


def one_size(n):
    p, y = data(n)
    x, one, few = 2 * p - 1, np.ones(n), 7 if n < 1e6 else 3
    row = {"rows": n}
    for degree in (16, 40):
        found = compute_chebyshev_t_yt_and_y2_means(x, y, one, degree)
        row[f"moments k={degree}"] = setting.runner.seconds(
            partial(compute_chebyshev_t_yt_and_y2_means, x, y, one, degree), few
        )
        row[f"solve k={degree}"] = setting.runner.seconds(
            partial(fit_one, *found, degree)
        )
    estimator = RestrictedPolynomialRegression(degree=16)
    row["fit k=16"] = setting.runner.seconds(partial(estimator.fit, p, y), few)
    if n <= 38400:
        program = partial(
            fit_polynomial_by_cvxpy,
            *compute_chebyshev_t_yt_and_y2_means(x, y, one, 16),
            16,
            np.inf,
            "CLARABEL",
        )
        row["cvxpy from moments k=16"] = setting.runner.seconds(program, 3)
    print(row, flush=True)
    return {
        key: value if key == "rows" else f"{value:.4g}" for key, value in row.items()
    }


def bars():
    rng = np.random.default_rng(0)
    s = rng.random(200)
    y = (rng.random(200) < s).astype(float)
    x = 2 * (s - s.min()) / (s.max() - s.min()) - 1
    bounds = [5.0**e for e in range(-10, 11)]

    def grid():
        for degree in range(4, 21):
            parts = [
                compute_chebyshev_t_yt_and_y2_means(
                    x[f::2], y[f::2], np.ones(100), degree
                )
                for f in (0, 1)
            ]
            fit_bounded_polynomials(parts, degree, bounds, 1e-8)

    points = np.sort(rng.random(63_301))
    labels = (rng.random(63_301) < points).astype(float)
    one = np.ones(63_301)
    top = find_largest_penalty(points, labels, one)
    p, z = data(38_400)
    fixed = RestrictedPolynomialRegression(degree=16)
    timed = setting.runner.seconds
    rows = [
        ("RPR fit, k = 16, 38400 rows [s]", 0.015, timed(lambda: fixed.fit(p, z))),
        ("RPR published grid, 714 programs, 200 rows [s]", 1.2, timed(grid, 3)),
        ("RPR, largest optimality gap of 400 random problems", 1e-6, largest_gap()),
    ]
    for share in (1e-1, 1e-2, 1e-3, 1e-4):
        what = f"trend filter, 63301 points, {share:g} of the largest penalty [s]"
        call = partial(fit_trend_filter, points, labels, one, share * top)
        rows.append((what, 0.5, timed(call, 5)))
    p, z = data(1_000_000)
    for estimator, bar in ((NearIsotonicCalibration(), 2), (BBQ(), 5), (ENIR(), 3)):
        what = f"{type(estimator).__name__} fit, 1000000 rows [s]"
        rows.append((what, bar, timed(partial(estimator.fit, p, z), 3)))
    return [{"case": c, "at most": b, "measured": f"{t:.3g}"} for c, b, t in rows]


def largest_gap():
    """Uniform, tied, Cauchy, nearly equal, separable, constant and reversed data."""
    rng, worst = np.random.default_rng(0), 0.0
    for i in range(400):
        n, kind = int(rng.integers(3, 800)), i % 8
        s = rng.standard_cauchy(n) if kind == 2 else rng.random(n)
        s = np.round(s, 1) if kind == 1 else s
        s = 0.3 + 1e-9 * s if kind == 3 else s
        y = rng.random(n) < np.clip(s, 0, 1)
        y = {4: s > 0.5, 5: np.full(n, i % 16 == 5), 6: rng.random(n) > s}.get(kind, y)
        x = 2 * (s - s.min()) / (s.max() - s.min()) - 1
        degree = min(int(rng.integers(1, 41)), len(np.unique(s)) - 1)
        if degree >= 1:
            found = fit_one(
                *compute_chebyshev_t_yt_and_y2_means(
                    x, y.astype(float), np.ones(n), degree
                ),
                degree,
            )
            worst = max(worst, float(found.gap))
    return worst


def main():
    table = bars()
    for row in table:
        print(row)
    setting.runner.write(
        setting.HERE / "bars.csv", table, ["case", "at most", "measured"]
    )
    sizes = [*(150 * 2**i for i in range(9)), 100_000, 1_000_000, 10_000_000]
    table = [one_size(n) for n in sizes]
    setting.runner.write(setting.HERE / "speed.csv", table)


if __name__ == "__main__":
    main()
