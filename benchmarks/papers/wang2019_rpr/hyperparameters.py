"""Experiment 2: degree and bound of RPR on Adult, 80 rows to train, the others to judge."""

import setting
from sklearn.svm import SVC

from sklearn_calib.recalibrators import RestrictedPolynomialRegression as RPR

CASES = [
    *[("degree", {"degree": k, "l1": 100.0}) for k in (4, 6, 8, 40)],
    *[("bound", {"degree": 16, "l1": float(b)}) for b in (1, 10, 100, 1000)],
    ("none", {"degree": 16}),
    ("cross-validated", {}),
    ("published grid", {**RPR.paper().get_params()}),
]


def one_seed(seed):
    import numpy as np

    table, y = setting.load("adult")
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(y))
    train, test = chosen[:80], chosen[80:]
    if len(set(y[train])) < 2:
        return []
    model = setting.prepared(table)
    X = model.fit(table.iloc[train]).transform(table)
    machine = SVC(gamma=0.5 / X.shape[1]).fit(X[train], y[train])
    scores = machine.decision_function(X)
    rows = []
    for what, options in CASES:
        options = {"scale": "logit", **options}
        fitted = setting.fit(RPR(**options), scores[train], y[train])
        rows.append(
            {
                "seed": seed,
                "varied": what,
                "degree": str(options.get("degree", "cv"))
                if what != "published grid"
                else "grid",
                "l1": str(options.get("l1")) if what != "published grid" else "grid",
                "found": f"{fitted.degree_}",
                **setting.judged(fitted, scores[test], y[test]),
            }
        )
    return rows


def main():
    if setting.runner.data_folder() is None:
        print("skipped: no data folder")
        return
    rows = setting.rounds("hyperparameters", [(seed,) for seed in range(24)], one_seed)
    table = setting.summarised(rows, ["varied", "degree", "l1"])
    print(table.to_string(index=False))
    setting.runner.write(
        setting.HERE / "hyperparameters.csv", table.to_dict("records"), [*table.columns]
    )


if __name__ == "__main__":
    main()
