"""Figures 1 to 4 and the numbers of section 7: six designs and links, heavy tails, 30 draws."""

import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib.classifiers import AngularCalibratedClassifier
from sklearn_calib.datasets import make_high_dimensional
from sklearn_calib.metrics import expected_calibration_error, log_loss
from sklearn_calib.recalibrators import AngularCalibration, Identity, PlattScaling

sys.path.insert(0, str(Path(__file__).parents[2]))
import runner

HERE = Path(__file__).parent
N_TEST = 20_000
SEEDS = 30
SETTINGS = {
    "gaussian, logistic": {},
    "gaussian, clipped": {"link": "clipped_relu", "link_intercept": 0.5},
    "rademacher, logistic": {"design": "rademacher"},
    "rademacher, clipped": {
        "design": "rademacher",
        "link": "clipped_relu",
        "link_intercept": 0.5,
    },
    "uniform, logistic": {"design": "uniform"},
    "uniform, clipped": {
        "design": "uniform",
        "link": "clipped_relu",
        "link_intercept": 0.5,
    },
    "elliptical, logistic": {
        "design": "elliptical",
        "n_samples": 1000,
        "n_features": 1000,
    },
}
MEASURES = ["ECE", "ECE of the truth", "distance", "log loss"]


def scored(truth, coef, n, seed):
    """Score, true probability and label of n rows, drawn in blocks."""
    parts = []
    for block in range(0, n, 4000):
        X, y = truth.draw(min(4000, n - block), seed + block)
        parts.append((X @ coef, truth.proba(X), y))
    return (np.concatenate(part) for part in zip(*parts, strict=True))


def logits(u):
    return canonical_proba(u, kind="logits")


def draw(setting, seed):
    """Training rows, the truth and ridge logistic regression as in section 7."""
    options = {"n_samples": 1000, "n_features": 2000, **SETTINGS[setting]}
    X, y, truth = make_high_dimensional(random_state=seed, **options)
    n, d = X.shape
    model = LogisticRegression(
        C=d / (0.5 * n), fit_intercept=False, tol=1e-8, max_iter=5000
    )
    return X, y, truth, model.fit(X, y)


def recalibrators(X, y, truth, model, held_out, link):
    """Fitted recalibrators of the model's scores by name, and the two classifiers refitted."""
    true = {"link": link, "link_slope": truth.slope, "link_intercept": truth.intercept}
    given = {"covariance": truth.covariance, "assume_centered": True}
    frozen = FrozenEstimator(model)
    rows = X[:2], [0, 1]
    found = {
        "uncalibrated": Identity().fit([0.1, 0.9], [0, 1]),
        "angular, true angle": AngularCalibration(
            truth.cos_theta(model.coef_), truth.norm(model.coef_), 0.0, **true
        ).fit(logits(model.decision_function(rows[0])), rows[1]),
        "angular": AngularCalibratedClassifier(frozen, **true, **given)
        .fit(X, y)
        .recalibrator_,
        "angular, link fitted": AngularCalibratedClassifier(frozen, link=link, **given)
        .fit(X, y)
        .recalibrator_,
        "ALO-Platt": CalibratedModel(frozen, "platt", cv="alo").fit(X, y).recalibrator_,
    }
    u, labels = held_out
    for n in (100, 1000, 20_000):
        found[f"Platt, {n} held out"] = PlattScaling().fit(logits(u[:n]), labels[:n])
    return found


def one_draw(setting, seed):
    warnings.simplefilter("ignore")
    X, y, truth, model = draw(setting, seed)
    link = SETTINGS[setting].get("link", "logit")
    coef = np.ravel(model.coef_)
    u_held, _, y_held = scored(truth, coef, 20_000, 10_000 + 50_000 * seed)
    u, p_true, y_test = scored(truth, coef, N_TEST, 5_000_000 + 50_000 * seed)
    fitted = recalibrators(X, y, truth, model, (u_held, y_held), link)
    best = fitted["angular, true angle"].predict_proba(logits(u))[:, 1]
    rows = []

    def judge(name, p, target=best):
        true_error = 0.0
        for part in np.array_split(np.argsort(p, kind="stable"), 20):
            true_error += abs(p[part].mean() - p_true[part].mean()) / 20
        values = (
            expected_calibration_error(y_test, p, n_bins=20, strategy="quantile"),
            true_error,
            np.abs(p - target).mean() if target is not None else np.nan,
            log_loss(y_test, p),
        )
        values = dict(zip(MEASURES, map(float, values), strict=True))
        rows.append({"setting": setting, "seed": seed, "method": name, **values})

    for name, recalibrator in fitted.items():
        judge(name, recalibrator.predict_proba(logits(u))[:, 1])
    folds = CalibratedClassifierCV(model, cv=5).fit(X, y)  # its five models score anew
    p = [
        folds.predict_proba(truth.draw(4000, 5_000_000 + 50_000 * seed + block)[0])[
            :, 1
        ]
        for block in range(0, N_TEST, 4000)
    ]
    judge("CalibratedClassifierCV(5)", np.concatenate(p), None)
    angular, platt = fitted["angular"], fitted["Platt, 20000 held out"]
    slope, intercept = truth.slope, truth.intercept
    rows[0] |= {
        "true product": truth.cos_theta(coef) * truth.norm(coef),
        "estimated product": angular.cos_theta_ * truth.norm(coef),
        "true cos": truth.cos_theta(coef),
        "estimated cos": angular.cos_theta_,
        "A": platt.slope_ / slope,
        "B": (platt.intercept_ - intercept) / slope,
        "A, equation 9": _equation_9(truth, coef, link)[0],
        "B, equation 9": _equation_9(truth, coef, link)[1],
        "wrong sign, printed": _wrong_sign(u_held, y_held, centred=False),
        "wrong sign, centred": _wrong_sign(u_held, y_held, centred=True),
    }
    return rows


def _equation_9(truth, coef, link):
    """(A, B) by the probit nearest to the logistic; no such thing for the clipped link."""
    if link != "logit":
        return np.nan, np.nan
    known = AngularCalibration(
        truth.cos_theta(coef),
        truth.norm(coef),
        0.0,
        link_slope=truth.slope,
        link_intercept=truth.intercept,
    )
    return known.fit(logits(np.array([-1.0, 1.0])), [0, 1]).platt_equivalent_


def _wrong_sign(u, y, centred):
    """Share of 200 sets of 100 held-out rows with a negative sum of equation 12."""
    u, y = u.reshape(200, 100), y.reshape(200, 100)
    if centred:
        u, y = u - u.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    return float(np.mean((u * y).sum(axis=1) < 0))


def tables(rows):
    table = pd.DataFrame(rows)
    names = list(dict.fromkeys(table["method"]))
    groups = table.groupby(["setting", "method"], sort=False)[MEASURES]
    mean, spread = groups.mean(), groups.std()
    out = [
        {
            "setting": setting,
            "method": method,
            **{
                m: f"{mean.loc[key, m]:.4f} ± {spread.loc[key, m]:.4f}"
                for m in MEASURES
            },
        }
        for setting in SETTINGS
        for method in names
        for key in [(setting, method)]
    ]
    for row in out:
        if row["distance"].startswith("nan"):
            row["distance"] = ""
    runner.write(HERE / "simulation.csv", out, ["setting", "method", *MEASURES])
    wide = mean["ECE of the truth"].unstack("setting")[list(SETTINGS)].loc[names]
    wide = wide.round(4).reset_index()
    runner.write(HERE / "simulation_ece.csv", wide.to_dict("records"), [*wide.columns])
    numbers = table[table["true cos"].notna()].drop(
        columns=["seed", "method", *MEASURES]
    )
    groups = numbers.groupby("setting", sort=False)
    mean, spread = groups.mean(), groups.std()
    shown = [
        {
            "setting": s,
            **{
                c: f"{mean.loc[s, c]:.4f} ± {spread.loc[s, c]:.4f}"
                for c in mean
                if np.isfinite(mean.loc[s, c])
            },
        }
        for s in SETTINGS
    ]
    error = table["estimated cos"] - table["true cos"]
    for row in shown:
        of = error[table["setting"] == row["setting"]].dropna()
        row["cos, bias and rmse"] = f"{of.mean():.4f}, {np.sqrt(np.mean(of**2)):.4f}"
    runner.write(HERE / "numbers.csv", shown)
    print(pd.DataFrame(out).to_string(index=False))
    print(pd.DataFrame(shown).T.to_string())


def picture():
    """Figures 1 to 4: the maps, and reliability with few and many held-out rows."""
    shown = [s for s in SETTINGS if not s.startswith("elliptical")]
    figure, axes = plt.subplots(
        len(shown), 3, figsize=(12, 3.6 * len(shown)), squeeze=False
    )
    for row, setting in zip(axes, shown, strict=True):
        X, y, truth, model = draw(setting, 0)
        coef = np.ravel(model.coef_)
        u_held, _, y_held = scored(truth, coef, 20_000, 10_000)
        u, _, y_test = scored(truth, coef, N_TEST, 5_000_000)
        link = SETTINGS[setting].get("link", "logit")
        fitted = recalibrators(X, y, truth, model, (u_held, y_held), link)
        for axis, n in zip(row, (100, 20_000), strict=False):
            for name in (
                "uncalibrated",
                "angular",
                f"Platt, {n} held out",
                "ALO-Platt",
            ):
                p = fitted[name].predict_proba(logits(u))[:, 1]
                parts = np.array_split(np.argsort(p), 20)
                axis.plot(
                    [p[i].mean() for i in parts],
                    [y_test[i].mean() for i in parts],
                    "o-",
                    ms=3,
                    lw=1,
                    label=name,
                )
            axis.plot([0, 1], [0, 1], "k--", lw=0.8)
            axis.set(xlabel="predicted", ylabel="observed", title=setting)
            axis.legend(fontsize=7, frameon=False)
        grid = np.linspace(u.min(), u.max(), 200)
        for name in (
            "Platt, 100 held out",
            "Platt, 1000 held out",
            "Platt, 20000 held out",
        ):
            row[2].plot(
                grid, fitted[name].predict_proba(logits(grid))[:, 1], "--", label=name
            )
        row[2].plot(
            grid, fitted["angular"].predict_proba(logits(grid))[:, 1], label="angular"
        )
        row[2].set(xlabel="score", ylabel="probability", title="the maps")
        row[2].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(HERE / "figures.png", dpi=70)
    plt.close(figure)


def main():
    jobs = [(setting, seed) for seed in range(SEEDS) for setting in SETTINGS]
    tables(runner.rounds(HERE / "simulation.partial.jsonl", jobs, one_draw))
    picture()


if __name__ == "__main__":
    main()
