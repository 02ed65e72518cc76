"""Test log loss of `RefineThenCalibrateCV` beside stopping by the log loss.

Each learner is trained once on the same rows for every rule. The rule chooses a stage on
the validation rows, and the default recalibrator is fitted to the scores of that stage
on the same rows. The first rule is the class itself, with a hold-out split.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV
from sklearn_calib.metrics import log_loss
from sklearn_calib.staged import find_staging

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
import early_stopping
import runner

HERE = Path(__file__).parent
TABLES = (
    "adult",
    "bank_full",
    "credit_default",
    "htru2",
    "letter",
    "spambase",
    "classification_2",
    "classification_5",
    "digits",
)
LEARNERS = ("XGBoost", "LightGBM", "MLP")
BASELINE = "log loss, recalibrated"
N_SEEDS = 2


def measure_rules(name, key, seed):
    """Return the test log loss of each rule, for one learner on one table."""
    X, X_valid, y, y_valid, X_test, y_test = early_stopping.split(name, seed)
    n_train = len(y)
    X_all = np.vstack([X, X_valid])
    y_all = np.concatenate([y, y_valid])
    rows = np.arange(len(y_all))
    holdout = [(rows[:n_train], rows[n_train:])]

    search = RefineThenCalibrateCV(
        early_stopping.learners(seed)[key], cv=holdout, refit=False
    ).fit(X_all, y_all)

    learner = early_stopping.learners(seed)[key]
    staging = find_staging(learner)
    staging.fit(learner, X, y)
    risk = search.cv_results_["risk"]
    stages = search.cv_results_["stage"]
    by_log_loss = staging.truncate_to_stage(learner, int(stages[np.argmin(risk)]))
    recalibrated = CalibratedModel(FrozenEstimator(by_log_loss)).fit(X_valid, y_valid)
    last = CalibratedModel(FrozenEstimator(learner)).fit(X_valid, y_valid)
    models = {
        "RefineThenCalibrateCV": search,
        BASELINE: recalibrated,
        "last stage, recalibrated": last,
        "log loss, as it is": by_log_loss,
    }
    return {
        rule: log_loss(y_test, model.predict_proba(X_test))
        for rule, model in models.items()
    }


def bootstrap_mean(values, n_resamples=4000):
    """Return the ends of a 95 % interval for the mean over tables and learners."""
    rng = np.random.default_rng(0)
    draws = rng.choice(values, (n_resamples, len(values))).mean(axis=1)
    return np.quantile(draws, [0.025, 0.975])


def summarize_rules(losses):
    """Return the change of each rule against the baseline, in percent."""
    table = pd.DataFrame(losses)
    change = 100 * (table.div(table[BASELINE], axis=0) - 1)
    change.index = pd.MultiIndex.from_tuples([key[:2] for key in table.index])
    cells = change.groupby(level=[0, 1]).mean()
    rows = []
    for learner in ("all", *LEARNERS):
        some = cells if learner == "all" else cells.xs(learner, level=1)
        for rule in cells.columns:
            if rule == BASELINE:
                continue
            low, high = bootstrap_mean(some[rule].to_numpy())
            rows.append(
                {
                    "learner": learner,
                    "rule": rule,
                    "change_percent": f"{some[rule].mean():+.2f}",
                    "low": f"{low:+.2f}",
                    "high": f"{high:+.2f}",
                    "better": int((some[rule] < 0).sum()),
                    "of": len(some),
                }
            )
    return rows


def main():
    warnings.simplefilter("ignore")
    if runner.data_folder() is None:
        print("skipped: no folder of data; set SKLEARN_CALIB_DATA")
        return
    losses = {}
    for name in TABLES:
        for key in LEARNERS:
            for seed in range(N_SEEDS):
                losses[name, key, seed] = measure_rules(name, key, seed)
                print(name, key, seed, losses[name, key, seed], flush=True)
    frame = pd.DataFrame.from_dict(losses, orient="index")
    runner.write(HERE / "search.csv", summarize_rules(frame))


if __name__ == "__main__":
    main()
