"""Seconds of the leverages and of the angle, beside the model's own converged fit."""

import sys
from pathlib import Path

from sklearn.linear_model import LogisticRegression

from sklearn_calib.datasets import make_high_dimensional
from sklearn_calib.linear import approximate_leave_one_out
from sklearn_calib.linear._angle import (
    compute_mean_gradient_quadratic_form,
    estimate_overlap_numerator_and_square,
    make_angle_formula_inputs,
)
from sklearn_calib.linear._fit import (
    compute_derivatives_and_leverages,
    polish_fit,
    read_linear,
)

sys.path.insert(0, str(Path(__file__).parents[2]))
import runner

HERE = Path(__file__).parent
SHAPES = {
    (1000, 2000): "<= 0.3 s",
    (2000, 1000): "",
    (5000, 5000): "<= 1.5 fits",
    (50_000, 300): "",
}


def one(n, d):
    X, y, truth = make_high_dimensional(n, d, random_state=0)
    model = LogisticRegression(C=2 * d / n, tol=1e-10, max_iter=10_000)
    times = 5 if n * d < 1e7 else 3
    own = runner.seconds(lambda: model.fit(X, y), times)
    fit = polish_fit(read_linear(model, X, y, None)[0])

    def angle():
        psi, curvature, _, m = compute_derivatives_and_leverages(fit)
        seen = make_angle_formula_inputs(fit.scores, psi, curvature, m, d, True)
        norm2 = fit.coef @ truth.covariance @ fit.coef
        return estimate_overlap_numerator_and_square(
            seen, compute_mean_gradient_quadratic_form(X, psi, truth.covariance), norm2
        )

    leverage = runner.seconds(lambda: compute_derivatives_and_leverages(fit), times)
    both = runner.seconds(angle, times)
    whole = runner.seconds(lambda: approximate_leave_one_out(model, X, y), times)
    row = {
        "n": n,
        "d": d,
        "fit": own,
        "leverages": leverage,
        "leverages and angle": both,
        "ratio to fit": both / own,
        "approximate_leave_one_out": whole,
    }
    row = {k: v if isinstance(v, int) else f"{v:.3g}" for k, v in row.items()}
    return row | {"bar": SHAPES[n, d]}


def main():
    table = []
    for shape in SHAPES:
        table.append(one(*shape))
        print(table[-1], flush=True)
    runner.write(HERE / "speed.csv", table)


if __name__ == "__main__":
    main()
