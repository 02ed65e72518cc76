"""Figures 7 and 8: where calibration and refinement of ridge logistic regression are smallest."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from sklearn_calib.theory import GaussianLogisticModel

sys.path.insert(0, str(Path(__file__).parents[2]))
import runner

HERE = Path(__file__).parent
SPECTRA = {"Beta(5, 1)": (5, 1), "Beta(1, 1)": (1, 1), "Beta(1, 5)": (1, 5)}
RATES = [0.001, 0.01, 0.05, 0.1, 0.2, 0.3]
RATIOS = [10.0**e for e in (-1.0, -0.7, -0.4, -0.1, 0.2, 0.5)]
STRENGTHS = np.logspace(-5, 2, 211)


def shrunk(p, q):
    """Cross-entropy of two probabilities, both moved by 1 % towards 1/2: as in the published."""
    p, q = (0.99 * (value - 0.5) + 0.5 for value in (p, q))
    return -q * np.log(p) - (1 - q) * np.log1p(-p)


def figure_7(n=2000, seeds=10):
    model = GaussianLogisticModel(ratio=0.5, error_rate=0.1)
    strengths = np.logspace(-3, 0, 121)
    limit = model.limit(strengths)
    tried = np.logspace(-3, 0, 7)
    found = np.empty((seeds, len(tried), 3))
    for seed in range(seeds):
        X, y, _, mean, eigenvalues = model.sample(n, random_state=seed)
        for i, strength in enumerate(tried):
            learner = LogisticRegression(
                C=1 / (n * strength), fit_intercept=False, max_iter=5000
            )
            w = learner.fit(X, y).coef_[0]
            parts = GaussianLogisticModel.compute_weight_loss(
                2 * w @ mean, np.sqrt(w**2 @ eigenvalues)
            )
            found[seed, i] = parts[:3]
    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    spread = 1.96 * found.std(axis=0, ddof=1) / np.sqrt(seeds)
    for j, name in enumerate(("risk", "calibration", "refinement")):
        curve = getattr(limit, name)
        (line,) = ax.semilogx(
            strengths, curve, label={"risk": "log loss"}.get(name, name)
        )
        ax.plot(strengths[curve.argmin()], curve.min(), "o", color=line.get_color())
        ax.errorbar(
            tried,
            found[:, :, j].mean(axis=0),
            spread[:, j],
            fmt=".k",
            capsize=3,
            elinewidth=1,
        )
    ax.errorbar([], [], [], fmt=".k", label=f"fitted, n = {n}: mean and 95 % interval")
    ax.set(xlabel="strength of the regularisation", ylabel="nats", ylim=(0, 0.9))
    ax.legend(frameon=False)
    figure.savefig(HERE / "figure_7.png", dpi=80)
    at = {
        name: getattr(limit, name).argmin()
        for name in ("risk", "refinement", "calibration")
    }
    for i, strength in enumerate(tried):
        theory = model.limit(strength)
        yield {
            "figure": "7",
            "case": f"strength {strength:.3g}",
            "log_loss_theory": f"{theory.risk[0]:.4f}",
            "log_loss_simulated": f"{found[:, i, 0].mean():.4f} +- {spread[i, 0]:.4f}",
            "refinement_theory": f"{theory.refinement[0]:.4f}",
            "refinement_simulated": f"{found[:, i, 2].mean():.4f} +- {spread[i, 2]:.4f}",
        }
    gain = 100 * (1 - limit.refinement[at["refinement"]] / limit.risk[at["risk"]])
    fair = 100 * (1 - limit.refinement[at["refinement"]] / limit.refinement[at["risk"]])
    yield {"figure": "7", "case": "gain in percent", "gain": f"{gain:.2f}"}
    yield {
        "figure": "7",
        "case": "gain, both calibrated",
        "gain_calibrated": f"{fair:.2f}",
    }


def figure_8():
    shape = len(RATES), len(RATIOS)
    tables = {name: np.empty((4, *shape)) for name in SPECTRA}
    for name, spectrum in SPECTRA.items():
        for r, c in np.ndindex(shape):
            model = GaussianLogisticModel(RATIOS[c], RATES[r], spectrum)
            limit = model.limit(STRENGTHS)
            at_risk, at_best = limit.risk.argmin(), limit.refinement.argmin()
            best = limit.refinement[at_best]
            gap = np.log10(STRENGTHS[limit.calibration.argmin()] / STRENGTHS[at_best])
            moved = [
                GaussianLogisticModel.compute_weight_loss(i, n, shrunk)
                for i, n in zip(limit.inner, limit.norm, strict=True)
            ]
            risk, rest = (np.array([m[k] for m in moved]) for k in (0, 2))
            tables[name][:, r, c] = (
                gap,
                100 * (1 - best / limit.risk[at_risk]),
                100 * (1 - best / limit.refinement[at_risk]),
                100 * (1 - rest.min() / risk.min()),
            )
            yield {
                "figure": "8",
                "case": f"{name}, error rate {RATES[r]:g}, p/n {RATIOS[c]:.3g}",
                "log_gap": f"{gap:+.2f}",
                "gain": f"{tables[name][1, r, c]:.2f}",
                "gain_calibrated": f"{tables[name][2, r, c]:.2f}",
                "gain_shrunk": f"{tables[name][3, r, c]:.2f}",
            }
    titles = {
        0: "log10 of the ratio of the strengths\nof least calibration and refinement error",
        1: "gain of log loss [%]",
        3: "the same with probabilities\nshrunk by 1 %, as published [%]",
    }
    figure, axes = plt.subplots(3, 3, figsize=(13, 11), layout="constrained")
    for column, (name, values) in enumerate(tables.items()):
        for row, (which, title) in enumerate(titles.items()):
            ax = axes[row, column]
            colours = {"cmap": "RdYlGn_r", "vmin": -6, "vmax": 6} if row == 0 else {}
            ax.imshow(values[which], aspect="auto", **colours)
            for (r, c), number in np.ndenumerate(values[which]):
                ax.text(
                    c, r, f"{number:.1f}", ha="center", va="center", fontsize="small"
                )
            ax.set_xticks(range(len(RATIOS)), [f"{ratio:.2g}" for ratio in RATIOS])
            ax.set_yticks(range(len(RATES)), [f"{100 * rate:g} %" for rate in RATES])
            ax.set(xlabel="features per row", ylabel="error rate at best")
            ax.set_title(f"{name}: {title}", fontsize="medium")
    figure.savefig(HERE / "figure_8.png", dpi=70)


def main():
    rows = [*figure_7(), *figure_8()]
    columns = dict.fromkeys(key for row in rows for key in row)
    runner.write(HERE / "theory.csv", rows, list(columns))


if __name__ == "__main__":
    main()
