"""100 classes and 5000 rows: time of a fit, and log loss on fresh rows.

``python benchmarks/run.py scale/many_classes``. A simulated model that is too confident
and mixes up the classes of a group, and CIFAR-100 where its file is there. CPU seconds
of one thread.
"""

import time
from pathlib import Path

import numpy as np
import runner

from sklearn_calib import canonical_proba
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import (
    DirichletCalibration,
    StructuredMatrixScaling,
    TemperatureScaling,
)

HERE = Path(__file__).parent
N, K = 5000, 100
METHODS = {
    "temperature": TemperatureScaling(),
    "structured matrix": StructuredMatrixScaling(),
    "dirichlet": DirichletCalibration(),
}
BARS = {"dirichlet": "<= 5 s, log loss <= that of temperature"}


def simulated(rng, n):
    group = np.arange(K) // 5
    z = 1.3 * rng.normal(size=(n, K)) + 1.2 * rng.normal(size=(n, K // 5))[:, group]
    y = rng.integers(0, K, n)
    z += 1.2 * (group == group[y][:, None])
    z[np.arange(n), y] += rng.normal(3.2, 2.0, n)
    return 2 * z + 0.4 * rng.normal(size=K), y


def problems():
    yield "simulated", *simulated(np.random.default_rng(0), N + 20_000)
    folder = runner.data_folder()
    file = folder and folder / "cifar100_densenet_bc100" / "cifar100_densenet_bc100.npz"
    if file and file.exists():
        data, rows = np.load(file), np.random.default_rng(0).permutation(10_000)
        yield (
            "CIFAR-100",
            data["logits"][rows].astype(float),
            data["labels"][rows].astype(int),
        )


def main():
    rows = []
    for data, z, y in problems():
        proba = canonical_proba(z, kind="logits")
        for name, method in METHODS.items():
            start = time.process_time()
            method.fit(proba[:N], y[:N])
            seconds = time.process_time() - start
            loss = log_loss(y[N:], method.predict_proba(proba[N:]))
            row = {"data": data, "method": name, "cpu_s": f"{seconds:.2f}"}
            rows.append(row | {"log_loss": f"{loss:.4f}", "bar": BARS.get(name, "")})
            print(rows[-1], flush=True)
    runner.write(
        HERE / "many_classes.csv", rows, ["data", "method", "cpu_s", "log_loss", "bar"]
    )


if __name__ == "__main__":
    main()
