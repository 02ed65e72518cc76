"""The page of a report: CPU seconds and size, beside the same pictures drawn by matplotlib.

``python benchmarks/run.py scale/page``; CPU seconds of one thread in one process,
medians of five runs after one. The report and its verdict are there before the clock
starts.
"""

import io
import os
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import runner

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.report import calibration_report

HERE = Path(__file__).parent
MEGABYTES = 1.5  # a page may have


def by_matplotlib(report):
    """Bins, the isotonic curve and up to twelve classes, as PNG."""
    import matplotlib.pyplot as plt

    pictures = [{}, {"strategy": "isotonic"}]
    if 2 < len(report.classes) <= 12:
        pictures.append({"multiclass": "classwise"})
    for options in pictures:
        figure = report.plot(**options).figure_
        figure.savefig(io.BytesIO(), format="png", dpi=110)
        plt.close(figure)


def models_of(proba, count):
    """Models that are more and less sure than the first."""
    powers = {
        f"model {number}": proba ** (1 - number / (2 * count))
        for number in range(count)
    }
    return {name: p / p.sum(axis=1, keepdims=True) for name, p in powers.items()}


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "page.html")
        for n_classes, n, n_models, advised in (
            (2, 10**4, 1, False),
            (2, 10**4, 1, True),
            (2, 10**6, 1, False),
            (10, 2000, 1, False),
            (10, 2000, 1, True),
            (100, 6000, 20, False),
        ):
            proba, y = make_overconfident(n_classes, n)
            models = models_of(proba, n_models)
            report = calibration_report(
                y, models, labels=np.arange(n_classes), n_resamples=10
            )
            if advised:
                report.advise()
            report.verdicts  # noqa: B018
            ours = runner.cpu_seconds(partial(report.to_html, path))
            megabytes = os.path.getsize(path) / 1e6
            assert megabytes < MEGABYTES
            job = f"page, {n:.0e} rows, {n_classes} classes, {n_models} models"
            row = {"job": f"{job}{', with advice' if advised else ''}"}
            row |= {"cpu_seconds": f"{ours:.3f}", "megabytes": f"{megabytes:.3f}"}
            if n_models == 1 and not advised:
                theirs = runner.cpu_seconds(partial(by_matplotlib, report), runs=3)
                row |= {
                    "matplotlib_seconds": f"{theirs:.3f}",
                    "ratio": f"{theirs / ours:.0f}x",
                }
            rows.append(row | {"bar": f"< {MEGABYTES} MB"})
            print(rows[-1], flush=True)
    columns = ["job", "cpu_seconds", "matplotlib_seconds", "ratio", "megabytes", "bar"]
    runner.write(HERE / "page.csv", rows, columns)


if __name__ == "__main__":
    main()
