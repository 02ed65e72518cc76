"""Experiment 1: points on a ring, a support vector machine, 24 draws of 200 rows."""

import matplotlib.pyplot as plt
import numpy as np
import setting
from sklearn.isotonic import isotonic_regression
from sklearn.svm import SVC

from sklearn_calib import canonical_proba
from sklearn_calib.displays import CalibratingFunctionDisplay
from sklearn_calib.recalibrators import (
    AdaptiveCalibration,
    HistogramBinning,
    NearIsotonicCalibration,
    RestrictedPolynomialRegression,
    TrendFiltering,
)


def draw(n, rng):
    """Half of the rows from each class."""
    y = np.repeat([0, 1], n // 2)
    radius = np.where(y, rng.beta(5, 2, n), rng.beta(2, 5, n))
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.sin(angle), radius * np.cos(angle)]), y


def methods():
    """The paper's fixed parameters where it gives some."""
    fixed = {
        "HistBin": HistogramBinning(25, prior_weight=0),
        "NearIso": NearIsotonicCalibration(2.0),
        "LiTE": TrendFiltering(2.0),
        "ACP": AdaptiveCalibration(share=0.05, prior_weight=0),
        "RPR k = 16, l1 = 1000": RestrictedPolynomialRegression(
            16, 1000.0, scale="logit"
        ),
        "RPR k = 16, l1 = 10": RestrictedPolynomialRegression(16, 10.0, scale="logit"),
        "RPR k = 16": RestrictedPolynomialRegression(16, scale="logit"),
    }
    return {**setting.methods(), **fixed}


def one_seed(seed):
    rng = np.random.default_rng(seed)
    X, y = draw(200, rng)
    machine = SVC(gamma=0.5).fit(X, y)
    X_test, y_test = draw(400_000, rng)
    scores, test = machine.decision_function(X), machine.decision_function(X_test)
    order = np.argsort(test, kind="stable")
    truth = np.empty(len(test))
    truth[order] = isotonic_regression(y_test[order].astype(float))
    rows = [
        {
            "method": "isotonic on the test rows",
            **setting.measures(y_test, truth),
            "L2": 0.0,
        }
    ]
    proba = canonical_proba(test, kind="logits")
    for name, method in methods().items():
        p = setting.fit(method, scores, y).predict_proba(proba)
        error = 100 * np.sqrt(np.mean((p[:, 1] - truth) ** 2))
        rows.append({"method": name, **setting.measures(y_test, p), "L2": float(error)})
    return [{"seed": seed, **row} for row in rows]


def picture():
    """Figure 2 for one draw."""
    rng = np.random.default_rng(0)
    X, y = draw(200, rng)
    machine = SVC(gamma=0.5).fit(X, y)
    X_test, y_test = draw(400_000, rng)
    scores = machine.decision_function(X)
    fitted = {
        name: setting.fit(method, scores, y)
        for name, method in methods().items()
        if name
        not in ("uncalibrated", "temperature", "NearIso (BIC)", "RPR k = 16, l1 = 10")
    }
    test = canonical_proba(machine.decision_function(X_test), kind="logits")
    display = CalibratingFunctionDisplay.from_recalibrators(
        fitted, y_test, test, n_bins=100
    )
    display.figure_.savefig(setting.HERE / "ring.png", dpi=80)
    plt.close(display.figure_)


def main():
    rows = setting.rounds("ring", [(seed,) for seed in range(24)], one_seed)
    table = setting.summarised(rows, "method")
    table["order"] = [float(cell.split()[0]) for cell in table["ECE"]]
    table = table.sort_values("order").drop(columns="order")
    print(table.to_string(index=False))
    setting.runner.write(
        setting.HERE / "ring.csv", table.to_dict("records"), [*table.columns]
    )
    picture()


if __name__ == "__main__":
    main()
