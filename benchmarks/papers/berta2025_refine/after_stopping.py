"""Which recalibrator should follow in `RefineThenCalibrateCV`? Loss on test rows, and the time.

Three folds, 100 rounds, the stage chosen by refinement, and the recalibrator fitted on
the out-of-fold scores of that stage. The search does not depend on the recalibrator
that follows, so that each is run once, with all of them in the recalibrator's place.
Generated tables, and real ones by which no method was chosen (``split.py``).
"""

import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from early_stopping import load
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from sklearn_calib import RefineThenCalibrateCV
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import get_recalibrator

sys.path.insert(0, str(Path(__file__).parents[2]))
import runner

HERE = Path(__file__).parent
CACHE = (
    Path(os.environ.get("SKLEARN_CALIB_CACHE", tempfile.gettempdir()))
    / "after_stopping"
)
TABLES = ["bank_full", "spambase", "htru2", "letter"]
DATA = ["digits", "classification_2", "classification_5", *TABLES]
METHODS = ["identity", "temperature", "default", "auto"]
FIT = (400, 1000, 6000)


def learners(seed):
    import xgboost

    return {
        "XGBoost": xgboost.XGBClassifier(n_estimators=100, random_state=seed, n_jobs=1),
        "HistGB": HistGradientBoostingClassifier(
            early_stopping=False, random_state=seed
        ),
    }


class Each(BaseEstimator):
    """All methods in the place of one; `use` is the one that predicts, `spent` their seconds."""

    use = METHODS[0]
    spent = dict.fromkeys(METHODS, 0.0)  # of all clones

    def fit(self, proba, y, classes=None):
        self.classes_, self.fitted_ = classes, {}
        for method in METHODS:
            start = time.process_time()
            self.fitted_[method] = get_recalibrator(method).fit(
                proba, y, classes=classes
            )
            Each.spent[method] += time.process_time() - start
        return self

    def predict_proba(self, proba):
        return self.fitted_[Each.use].predict_proba(proba)


def one(name, n, seed):
    """Rows (data, n, learner, seed, recalibrator, loss, seconds)."""
    warnings.simplefilter("ignore")
    X, y = load(name)
    if len(y) < 1.3 * n and n > FIT[0]:
        return []
    n = min(n, round(0.7 * len(y)))
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=n, stratify=y, random_state=seed
    )
    rows = []
    for key, learner in learners(seed).items():
        Each.spent.update(dict.fromkeys(METHODS, 0.0))
        start = time.process_time()
        search = RefineThenCalibrateCV(learner, recalibrator=Each(), cv=3).fit(X, y)
        without = time.process_time() - start - sum(Each.spent.values())
        for method in METHODS:
            Each.use = method
            loss = log_loss(y_test[:20_000], search.predict_proba(X_test[:20_000]))
            keys = {
                "data": name,
                "n": n,
                "learner": key,
                "seed": seed,
                "recalibrator": method,
            }
            rows.append({**keys, "loss": loss, "seconds": without + Each.spent[method]})
    return rows


def summary(rows):
    """Loss relative to temperature scaling: mean over seeds, 95 % interval, wins and losses."""
    table = pd.DataFrame(rows)
    keys = ["data", "n", "learner", "seed"]
    base = table[table.recalibrator == "temperature"].set_index(keys)
    of = table.set_index(keys)
    table["percent"] = 100 * (of.loss / base.loss.reindex(of.index) - 1).to_numpy()
    table["more"] = (of.seconds - base.seconds.reindex(of.index)).to_numpy()
    for place, group in table.groupby([*keys[:3], "recalibrator"], sort=False):
        count, spread = len(group), group.percent.std(ddof=1)
        half = (
            stats.t.ppf(0.975, count - 1) * spread / np.sqrt(count)
            if count > 1
            else None
        )
        yield dict(zip([*keys[:3], "recalibrator"], place, strict=True)) | {
            "test_log_loss": f"{group.loss.mean():.5f}",
            "percent": f"{group.percent.mean():+.2f}",
            "ci95": "" if half is None else f"{half:.2f}",
            "better": int((group.percent < -1e-9).sum()),
            "worse": int((group.percent > 1e-9).sum()),
            "seeds": count,
            "seconds": f"{group.seconds.median():.2f}",
            "seconds_more": f"{group.more.median():+.2f}",
        }


def main(n_seeds=3):
    names = DATA if runner.data_folder() else DATA[: -len(TABLES)]
    print("skipped", sorted({*DATA} - {*names})) if len(names) < len(DATA) else None
    CACHE.mkdir(parents=True, exist_ok=True)
    jobs = [(name, n, seed) for seed in range(n_seeds) for n in FIT for name in names]
    rows = list(summary(runner.rounds(CACHE / "rounds.jsonl", jobs, one, processes=1)))
    runner.write(HERE / "after_stopping.csv", rows)
    table = pd.DataFrame(rows)
    table["percent"] = table["percent"].astype(float)
    print(
        table.pivot_table(
            index="recalibrator", columns=["n", "learner"], values="percent"
        )
    )


if __name__ == "__main__":
    main()
