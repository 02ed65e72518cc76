"""Log loss of predictions made before each label, by `OnlineCalibration` and others."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from sklearn_calib.recalibrators import OnlineCalibration, PlattScaling

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
ROWS = 20_000  # of the simulated streams
EVERY, WINDOW = 200, 1000
_CLIP = 1e-12


# -- streams: probabilities and labels in the order of time ---------------------------------------


def simulated(kind, rng):
    z = 1.5 * rng.normal(size=ROWS)
    at = np.arange(ROWS) / ROWS
    slope, shift = {
        "calibrated": (1.0, 0.0 * at),
        "too extreme": (0.5, 0.0 * at),
        "shift 1 at half": (1.0, 1.0 * (at >= 0.5)),
        "slow wave": (1.0, np.sin(6 * np.pi * at)),
    }[kind]
    y = rng.random(ROWS) < expit(shift + slope * z)
    return expit(z), y.astype(int)


SIMULATED = (
    "calibrated",
    "too extreme",
    "shift 1 at half",
    "slow wave",
)


def games():
    rows = pd.read_csv(
        runner.data_folder() / "fivethirtyeight_games/fivethirtyeight_games.csv.gz"
    )
    rows = rows.sort_values("date", kind="stable")
    yield "games", rows["p"].to_numpy(), rows["target"].to_numpy()
    nba = rows[rows["league"] == "nba"]
    yield "NBA games", nba["p"].to_numpy(), nba["target"].to_numpy()


def moons():
    """A classifier that is trained once, on the first rows of a stream that drifts."""
    from sklearn.naive_bayes import GaussianNB

    rng = np.random.default_rng(5)
    angle = np.linspace(0, np.pi / 2, ROWS)
    X = rng.normal(size=(ROWS, 2)) * [1.0, 0.5]
    truth = expit(
        2 * (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] + X[:, 0] * X[:, 1])
    )
    y = (rng.random(ROWS) < truth).astype(int)
    p = GaussianNB().fit(X[:1000], y[:1000]).predict_proba(X[1000:])[:, 1]
    yield "rotating truth", p, y[1000:]


# -- methods: the probability of each row before its label is known -------------------------------


def mixture(p, y, share):
    """`OnlineCalibration` row by row, without the checks of its input."""
    from sklearn_calib._kernels._logistic_grid import (
        FINE_LINE_GRID,
        compute_proba_by_line,
        update_grid_weights,
    )

    z, log_weight = np.clip(logit(p), -30, 30), FINE_LINE_GRID.log_prior
    q = np.empty(len(y))
    for row in range(len(y)):
        q[row] = compute_proba_by_line(1.0, z[row : row + 1], FINE_LINE_GRID)[
            0
        ] @ np.exp(log_weight)
        given = compute_proba_by_line(
            2.0 * y[row] - 1, z[row : row + 1], FINE_LINE_GRID
        )
        log_weight = update_grid_weights(log_weight, given, None, FINE_LINE_GRID, share)
    return q


def batch_platt(p, y, window=None):
    """Platt scaling on the past, or on the last rows of it, every 200 rows."""
    q = p.copy()
    for start in range(EVERY, len(y), EVERY):
        past = slice(0 if window is None else max(0, start - window), start)
        if y[past].min() < y[past].max():
            fitted = PlattScaling().fit(p[past], y[past])
            rows = slice(start, start + EVERY)
            q[rows] = fitted.predict_proba(p[rows])[:, 1]
    return q


def online_newton(p, y, gamma=0.1):
    """Online Platt scaling of Gupta and Ramdas (2023): a Newton step for each label.

    With gamma = 0.1, D = 1 and A = I / (gamma D)^2 at the start, from the identity, and
    without a projection onto a ball.
    """
    z = np.clip(logit(p), -30, 30)
    matrix, theta, q = np.eye(2) / gamma**2, np.array([1.0, 0.0]), np.empty(len(y))
    for row in range(len(y)):
        x = np.array([z[row], 1.0])
        q[row] = expit(theta @ x)
        gradient = (q[row] - y[row]) * x
        matrix += np.outer(gradient, gradient)
        theta = theta - np.linalg.solve(matrix, gradient) / gamma
    return q


def river_logistic(p, y, optimizer):
    """River's logistic regression on the log-odds, from the identity."""
    from river import linear_model, optim

    known = {"SGD 0.01": lambda: optim.SGD(0.01), "Adam 0.01": lambda: optim.Adam(0.01)}
    model = linear_model.LogisticRegression(
        optimizer=known[optimizer](), initializer=optim.initializers.Constant(1.0)
    )
    z, q = np.clip(logit(p), -30, 30).tolist(), []
    for value, label in zip(z, y.tolist(), strict=True):
        x = {"z": value}
        q.append(model.predict_proba_one(x)[True])
        model.learn_one(x, bool(label))
    return np.array(q)


def hindsight(p, y):
    """The best constant Platt map, which knows all labels."""
    return PlattScaling(smooth_targets=False).fit(p, y).predict_proba(p)[:, 1]


METHODS = {
    "no recalibration": lambda p, y: p,
    "Platt on all the past, every 200 rows": batch_platt,
    "Platt on the last 1000 rows, every 200": partial(batch_platt, window=WINDOW),
    "online Newton step (OPS)": online_newton,
    "river, logistic regression, SGD 0.01": partial(
        river_logistic, optimizer="SGD 0.01"
    ),
    "river, logistic regression, Adam 0.01": partial(
        river_logistic, optimizer="Adam 0.01"
    ),
    "OnlineCalibration, share 0": partial(mixture, share=0.0),
    "OnlineCalibration, share 1e-3": partial(mixture, share=1e-3),
    "OnlineCalibration, share 1e-2": partial(mixture, share=1e-2),
    "best constant Platt map in hindsight": hindsight,
}


def loss(q, y):
    q = np.clip(q, _CLIP, 1 - _CLIP)
    return float(-np.log(np.where(y == 1, q, 1 - q)).mean())


def check_mixture():
    """What is timed above is what the class does."""
    p, y = simulated("calibrated", np.random.default_rng(0))
    online, q = OnlineCalibration(), []
    for row in range(200):
        known = hasattr(online, "classes_")
        q.append(online.predict_proba(p[row : row + 1])[0, 1] if known else np.nan)
        online.partial_fit(p[row : row + 1], y[row : row + 1], classes=[0, 1])
    assert np.allclose(q[1:], mixture(p[:200], y[:200], 1e-3)[1:], atol=1e-12)


def main():
    check_mixture()
    streams = [
        (name, *simulated(name, np.random.default_rng(number)))
        for number, name in enumerate(SIMULATED)
    ]
    streams += moons()
    if runner.data_folder() is None:
        print("skipped the games, which are not there")
    else:
        streams += games()
    rows = [{"method": method} for method in METHODS]
    for name, p, y in streams:
        p = np.clip(p, _CLIP, 1 - _CLIP)
        for row in rows:
            try:
                found = f"{loss(METHODS[row['method']](p, y), y):.4f}"
            except ImportError:
                found = "not installed"
            row[name] = found
            print(name, row["method"], found, flush=True)
    runner.write(HERE / "results.csv", rows)


if __name__ == "__main__":
    main()
