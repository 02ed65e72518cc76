"""Which criterion should stop and tune a model that will be recalibrated afterwards?

Every learner is trained once per seed; each criterion picks a stage on the validation
rows; the model at that stage is temperature scaled on the same rows and judged on the
test rows.
"""

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import stats
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    make_classification,
    make_hastie_10_2,
)
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import ParameterSampler, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_calib import canonical_proba
from sklearn_calib.decomposition import refinement_curve, refinement_error
from sklearn_calib.metrics import brier_loss, log_loss
from sklearn_calib.recalibrators import TemperatureScaling
from sklearn_calib.staged import find_staging

sys.path.insert(0, str(Path(__file__).parents[2]))
import runner

HERE = Path(__file__).parent
N_FIT, N_VALID, N_TEST = 6400, 1600, 8000
CSV = ["adult", "bank_full", "letter", "credit_default", "spambase", "htru2"]
GENERATED = {
    "digits": lambda: load_digits(return_X_y=True),
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "hastie": lambda: make_hastie_10_2(12000, random_state=0),
    "classification_2": partial(
        make_classification, 12000, 20, n_informative=10, flip_y=0.05, random_state=0
    ),
    "classification_5": partial(
        make_classification,
        12000,
        20,
        n_informative=10,
        n_classes=5,
        flip_y=0.05,
        random_state=0,
    ),
}


def load(name):
    """Features as float32, categories as whole numbers, labels as 0, 1, ..."""
    if name in GENERATED:
        X, y = GENERATED[name]()
        return X.astype(np.float32), np.unique(y, return_inverse=True)[1]
    table = pd.read_csv(runner.data_folder() / name / f"{name}.csv.gz")
    y = pd.factorize(table["target"], sort=True)[0]
    X = table.drop(columns=["target", *({"split"} & set(table))])
    for column in X.select_dtypes(exclude="number"):
        X[column] = pd.factorize(X[column], sort=True)[0]
    return X.to_numpy(dtype=np.float32), y


def learners(seed):
    import lightgbm
    import xgboost

    quiet = {"random_state": seed, "n_jobs": 1}
    return {
        "XGBoost": xgboost.XGBClassifier(n_estimators=300, **quiet),
        "LightGBM": lightgbm.LGBMClassifier(n_estimators=300, verbose=-1, **quiet),
        "HistGB": HistGradientBoostingClassifier(
            max_iter=200, early_stopping=False, random_state=seed
        ),
        "MLP": make_pipeline(
            StandardScaler(), MLPClassifier((128, 128), max_iter=40, random_state=seed)
        ),
    }


SPACE = {
    "learning_rate": stats.loguniform(0.02, 0.5),
    "num_leaves": [4, 8, 16, 32, 64],
    "min_child_samples": [5, 20, 80],
    "reg_lambda": stats.loguniform(1e-3, 10),
}


def auc(proba, y):
    """Mean over the classes of the area under the ROC curve of class against rest."""
    ranks = stats.rankdata(proba, axis=0)
    hits = y[:, None] == np.arange(proba.shape[1])
    n = hits.sum(axis=0)
    area = ((ranks * hits).sum(axis=0) - n * (n + 1) / 2) / (n * (len(y) - n))
    return area.mean()


def staged(learner, fitted, X, n_classes):
    staging = find_staging(learner)
    for kind, scores in staging.staged_scores(fitted, X):
        yield canonical_proba(scores, kind=kind, n_classes=n_classes)


def criteria(valid, y, folds):
    """Of each criterion: its value at every stage (smaller is better), and the seconds it took."""
    values, seconds = {}, {}

    def run(name, function):
        start = time.perf_counter()
        values[name] = np.array([function(p) for p in valid])
        seconds[name] = time.perf_counter() - start

    labels = np.arange(valid[0].shape[1])
    run("log loss", lambda p: log_loss(y, p, labels=labels))
    run("Brier", lambda p: brier_loss(y, p, labels=labels))
    run("error rate", lambda p: (np.asarray(p).argmax(axis=1) != y).mean())
    run("1 - AUC", lambda p: 1 - auc(np.asarray(p), y))
    run("refinement", lambda p: refinement_error(y, p, labels=labels))
    if folds:
        run("refinement, 5-fold", lambda p: refinement_error(y, p, cv=5, labels=labels))
    start = time.perf_counter()
    curve = refinement_curve(y, valid, labels=labels)
    values["refinement, smoothed"] = curve.criterion
    close = np.arange(len(valid)) == curve.best("one_standard_error")
    values["refinement, one standard error"] = np.where(
        close, curve.criterion.min() - 1, 0
    )
    values["last stage"] = np.arange(len(valid), 0, -1)
    seconds["refinement, smoothed"] = time.perf_counter() - start
    return values, seconds


def judged(valid, y_valid, test, y_test):
    """Test log loss of one stage after temperature scaling on the validation rows."""
    labels = np.arange(valid.shape[1])
    scaler = TemperatureScaling(laplace=True).fit(valid, y_valid, classes=labels)
    return log_loss(y_test, scaler.predict_proba(test), labels=labels)


def split(name, seed):
    X, y = load(name)
    total = min(len(y), N_FIT + N_VALID + N_TEST)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:total]
    X, y = X[rows], y[rows]
    n_test = N_TEST if total == N_FIT + N_VALID + N_TEST else round(0.2 * total)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=n_test, stratify=y, random_state=seed
    )
    parts = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    return *parts, X_test, y_test


def one(name, seed):
    """Rows (task, data, learner, seed, criterion, stage, test log loss, seconds)."""
    import warnings

    warnings.simplefilter("ignore")
    X, X_valid, y, y_valid, X_test, y_test = split(name, seed)
    n_classes = y.max() + 1
    rows = []
    models = learners(seed)
    candidates = [("stop", key, [learner]) for key, learner in models.items()]
    draws = ParameterSampler(SPACE, 6, random_state=seed)
    grid = [
        models["LightGBM"].__class__(**models["LightGBM"].get_params())
        for _ in range(6)
    ]
    grid = [
        learner.set_params(**draw) for learner, draw in zip(grid, draws, strict=True)
    ]
    candidates.append(("tune", "LightGBM", grid))
    for task, key, group in candidates:
        table, valid, fitted, fit_seconds, spent = {}, [], [], 0.0, {}
        for number, learner in enumerate(group):
            start = time.perf_counter()
            find_staging(learner).fit(learner, X, y)
            fit_seconds += time.perf_counter() - start
            fitted.append(learner)
            valid.append(list(staged(learner, learner, X_valid, n_classes)))
            values, seconds = criteria(valid[-1], y_valid, task == "stop")
            for criterion, value in values.items():
                stage = int(value.argmin())
                table.setdefault(criterion, []).append((value[stage], number, stage))
                spent[criterion] = spent.get(criterion, 0.0) + seconds.get(
                    criterion, 0.0
                )
        chosen = {criterion: min(found)[1:] for criterion, found in table.items()}
        # a stage by this rule is not a value to compare candidates by
        if task == "tune":
            for odd in ("last stage", "refinement, one standard error"):
                chosen.pop(odd)
        wanted = set(chosen.values())
        result = {}
        for number, learner in enumerate(fitted):
            stages = {stage for which, stage in wanted if which == number}
            for stage in stages:
                short = find_staging(learner).truncate_to_stage(learner, stage + 1)
                last = scores_of(short, X_test)
                result[number, stage] = judged(
                    valid[number][stage], y_valid, last, y_test
                )
        for criterion, place in chosen.items():
            rows.append(
                {
                    "task": task,
                    "data": name,
                    "learner": key,
                    "seed": seed,
                    "criterion": criterion,
                    "stage": place[1] + 1,
                    "loss": result[place],
                    "fit_s": fit_seconds,
                    "criterion_s": spent.get(criterion, 0.0),
                }
            )
    print(name, seed, flush=True)
    return rows


def scores_of(short, X):
    from sklearn_calib.classifiers._classifier_scores import (
        compute_canonical_classifier_scores,
    )

    return compute_canonical_classifier_scores(short, X, "auto")


def summary(rows):
    """Test loss relative to stopping on the log loss: mean, 95 % interval, wins and losses."""
    table = pd.DataFrame(rows)
    keys = ["task", "data", "learner"]
    base = table[table.criterion == "log loss"].set_index([*keys, "seed"]).loss
    relative = table.set_index([*keys, "seed"])
    table["percent"] = (
        100 * (relative.loss / base.reindex(relative.index) - 1).to_numpy()
    )
    out = []
    for (task, data, learner, criterion), group in table.groupby(
        [*keys, "criterion"], sort=False
    ):
        n, spread = len(group), group.percent.std(ddof=1)
        out.append(
            {
                "task": task,
                "data": data,
                "learner": learner,
                "criterion": criterion,
                "test_log_loss": f"{group.loss.mean():.5f}",
                "relative_percent": f"{group.percent.mean():+.2f}",
                "ci95": f"{stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n):.2f}",
                "better": int((group.percent < -1e-9).sum()),
                "worse": int((group.percent > 1e-9).sum()),
                "seeds": n,
                "stage": f"{group.stage.mean():.0f}",
                "fit_s": f"{group.fit_s.median():.2f}",
                "criterion_s": f"{group.criterion_s.median():.3f}",
            }
        )
    return out, table


def overall(table):
    """Over all data: the mean over data sets of the mean relative loss; wins by seed."""
    out = []
    for (task, learner, criterion), group in table.groupby(
        ["task", "learner", "criterion"], sort=False
    ):
        by_data = group.groupby("data").percent.mean()
        large = by_data.drop(["breast_cancer", "digits"], errors="ignore")
        out.append(
            {
                "task": task,
                "learner": learner,
                "criterion": criterion,
                "mean_percent": f"{by_data.mean():+.2f}",
                "percent_large_data": f"{large.mean():+.2f}",
                "better_data_sets": int((by_data < 0).sum()),
                "data_sets": len(by_data),
                "better": int((group.percent < -1e-9).sum()),
                "worse": int((group.percent > 1e-9).sum()),
            }
        )
    return out


def main(n_seeds=10):
    names = list(GENERATED)
    if runner.data_folder() is None:
        print("skipped the real data: no folder; set SKLEARN_CALIB_DATA")
    else:
        missing = [
            n for n in CSV if not (runner.data_folder() / n / f"{n}.csv.gz").exists()
        ]
        print("skipped", missing) if missing else None
        names += [name for name in CSV if name not in missing]
    jobs = [(name, seed) for seed in range(n_seeds) for name in names]
    done = Parallel(n_jobs=2)(delayed(one)(*job) for job in jobs)
    rows = [row for part in done for row in part]
    report, table = summary(rows)
    runner.write(HERE / "early_stopping.csv", report)
    short = overall(table)
    runner.write(HERE / "early_stopping_overall.csv", short)


if __name__ == "__main__":
    main()
