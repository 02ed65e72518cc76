"""What recalibration without a choice does: this package's default, its methods, scikit-learn's."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import brier_score_loss, log_loss

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib.recalibrators import PlattScaling, get_recalibrator

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import rounds
import runner
import split

HERE = Path(__file__).parent
DATA = runner.data_folder()
NAMED = [
    "default",
    "temperature",
    "platt",
    "beta",
    "structured_matrix",
    "structured_vector",
]
NAMED += ["venn_abers", "vector"]
FOR_TWO = ["quadratic", "restricted_polynomial", "platt of probabilities"]
RULES = {  # what smaller probabilities are raised to, from calibration probabilities
    "1.18e-38": lambda p: 1.18e-38,
    "half the smallest positive": lambda p: p[p > 0].min() / 2,
    "the same, at most .01": lambda p: min(p[p > 0].min() / 2, 0.01),
    ".5 / (N + 1)": lambda p: 0.5 / (len(p) + 1),
    "the larger of the two": lambda p: max(p[p > 0].min() / 2, 0.5 / (len(p) + 1)),
}
FLOORED = ["temperature", "platt", "beta", "structured_matrix"]


def one_round(table, model, size):
    """Test losses of all candidates, the mean over the splits of a small table."""
    found = []
    for classifier, calib, y_calib, test, y in rounds.scored(table, model, size, DATA):
        k = len(classifier.classes_)
        row = {"raw": losses(y, classifier.predict_proba(test), k)}
        frozen = FrozenEstimator(classifier)
        theirs = CalibratedClassifierCV(frozen).fit(calib[:, None], y_calib)
        row["scikit-learn"] = losses(y, theirs.predict_proba(test[:, None]), k)
        for name in NAMED + (FOR_TWO if k == 2 else []):
            method = (
                PlattScaling("proba") if name == FOR_TWO[-1] else get_recalibrator(name)
            )
            ours = CalibratedModel(frozen, method).fit(calib[:, None], y_calib)
            row[name] = losses(y, ours.predict_proba(test[:, None]), k)
        if classifier.kind == "proba":
            given = (
                classifier.predict_proba(calib),
                y_calib,
                classifier.predict_proba(test),
                y,
            )
            row |= with_floors(*given)
        found.append({**row, "classes": (k, k), "rows": (len(calib), len(test))})
    return [
        {"table": table, "model": model, "n_calib": found[0]["rows"][0], "of": measure}
        | {name: float(np.mean([row[name][i] for row in found])) for name in found[0]}
        for i, measure in enumerate(("log loss", "Brier"))
    ]


def losses(y, proba, k):
    """Log loss with scikit-learn's clip at 2.2e-16, for both sides; and Brier."""
    labels = np.arange(k)
    brier = brier_score_loss(y, proba if k > 2 else proba[:, 1], labels=labels)
    return log_loss(y, proba, labels=labels), brier


def with_floors(calib, y_calib, test, y):
    """The log-odds methods with each rule; exact logarithms, so that no other floor is learned."""
    found = {}
    for rule, floor in RULES.items():
        low = max(floor(calib), 1.18e-38)
        given, asked = (
            canonical_proba(np.log(np.maximum(p, low)), kind="logits")
            for p in (calib, test)
        )
        for name in FLOORED:
            fitted = get_recalibrator(name).fit(
                given, y_calib, classes=range(calib.shape[1])
            )
            found[f"{name}: {rule}"] = losses(
                y, fitted.predict_proba(asked), calib.shape[1]
            )
    return found


def overall(table, names):
    """Geometric mean of the ratio to scikit-learn's default, the largest, and who is worse."""
    rows = []
    for name in names:
        row = {"method": name}
        for title, few in (("two", True), ("several", False)):
            part = table[(table.classes == 2) == few]
            logs, brier = (part[part.of == of] for of in ("log loss", "Brier"))
            if logs[name].isna().any():
                continue
            ratio = logs[name] / logs["scikit-learn"]
            row[f"rounds, {title}"] = len(logs)
            row[f"log loss ratio, {title}"] = f"{np.exp(np.log(ratio).mean()):.3f}"
            row[f"largest, {title}"] = f"{ratio.max():.2f}"
            brier = (brier[name] / brier["scikit-learn"]).to_numpy()
            row[f"Brier ratio, {title}"] = f"{np.exp(np.log(brier).mean()):.3f}"
            row[f"worse than raw, {title}"] = int((logs[name] > logs["raw"]).sum())
        rows.append(row)
    return rows


def networks():
    """Probabilities of networks, tiny but real: each rule beside exact logits."""
    for name in ("cifar10_wideresnet16_4", "cifar100_densenet_bc100"):
        kept = np.load(DATA / name / f"{name}.npz")
        z, y = kept["logits"].astype(float), kept["labels"]
        order = np.random.default_rng(0).permutation(len(y))
        for n in (500, 3000):
            calib, test = order[:n], order[n:]
            proba = softmax(z, axis=1)
            for method in ("temperature", "structured_matrix"):
                row = {"network": name, "n_calib": n, "method": method}
                logits = canonical_proba(z, kind="logits")
                for title, scores in (("logits", logits), ("probabilities", proba)):
                    fitted = get_recalibrator(method).fit(
                        scores[calib], y[calib], classes=range(z.shape[1])
                    )
                    found = losses(
                        y[test], fitted.predict_proba(scores[test]), z.shape[1]
                    )
                    row[title] = f"{found[0]:.4f}"
                low = np.maximum(proba, 0.5 / (n + 1))
                logits = canonical_proba(np.log(low), kind="logits")
                fitted = get_recalibrator(method).fit(
                    logits[calib], y[calib], classes=range(z.shape[1])
                )
                found = losses(y[test], fitted.predict_proba(logits[test]), z.shape[1])
                row["floor .5 / (N + 1)"] = f"{found[0]:.4f}"
                yield row


def main():
    jobs = [job for job in rounds.jobs(DATA) if split.part_of(job[0]) == "judging"]
    table = pd.DataFrame(
        runner.rounds(HERE / "rounds.partial.jsonl", jobs, quiet_round)
    )
    names = ["raw", "scikit-learn", *NAMED, *FOR_TWO]
    rows = overall(table, names)
    runner.write(HERE / "results.csv", rows)
    logs = table[table.of == "log loss"].copy()
    columns = ["table", "model", "classes", "n_calib", "raw", "scikit-learn", "default"]
    logs = logs[columns].astype({"classes": int}).round(5)
    runner.write(HERE / "rounds.csv", logs.to_dict("records"), columns)
    zeros = table.dropna(subset=[f"{FLOORED[0]}: {next(iter(RULES))}"])
    rows = overall(zeros, [f"{name}: {rule}" for name in FLOORED for rule in RULES])
    runner.write(HERE / "floors.csv", rows)
    if DATA:
        rows = list(networks())
        runner.write(HERE / "networks.csv", rows)


def quiet_round(*job):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return one_round(*job)


if __name__ == "__main__":
    main()
