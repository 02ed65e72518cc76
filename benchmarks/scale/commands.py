"""Every command at every size: CPU seconds and the most memory of a process of its own.

``python benchmarks/run.py scale/commands [COMMANDS] [ROWS] [CLASSES]``, each a list
with commas such as ``audit,compare 1e4,1e6 2``; rows that were measured before stay in
the table. Beside each the CPU seconds of a process that reads the same columns with
pyarrow, in the same run.
"""

import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import runner

HERE = Path(__file__).parent
TABLE = HERE / "commands.csv"
STEP = 500_000  # rows that are made at a time
SIZES = {2: (10**4, 10**6, 3 * 10**7), 10: (10**4, 10**6, 10**7)}
BARS = {  # (command, rows, classes): what its numbers should be
    ("fit", 3 * 10**7, 2): "<= 1.3 times audit, 600 MB",
    ("compare", 3 * 10**7, 2): "<= 2 times audit, 600 MB",
    ("audit", 10**7, 10): "<= 3 times reading, 800 MB",
}
_SUMMARIZE = """
from sklearn_calib.summary import summarize
summarize({file!r}, label="y", prob={columns!r}, classes={classes!r})
"""
_READ = """
from pyarrow.parquet import ParquetFile
with ParquetFile({file!r}, buffer_size=2**20, pre_buffer=False) as file:
    for batch in file.iter_batches(2**17, columns={columns!r}):
        pass
"""


def columns_of(k, model="p"):
    return (
        ["p"]
        if (k, model) == (2, "p")
        else ["q"]
        if k == 2
        else [f"{model}{c}" for c in range(k)]
    )


def make(path, n, k):
    """Labels and the probabilities of two models: p is calibrated, q is too certain and noisy."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # as models of either kind write them
    kind = pa.float64() if k == 2 else pa.float32()
    names = [*columns_of(k), *columns_of(k, "q")]
    schema = pa.schema([("y", pa.int64()), *((name, kind) for name in names)])
    rng = np.random.default_rng([n, k])
    with pq.ParquetWriter(path, schema, use_dictionary=["y"]) as writer:
        for start in range(0, n, STEP):
            m = min(STEP, n - start)
            z = 1.5 * rng.normal(size=(m, k))
            other = 1.4 * z + 0.3 * rng.normal(size=(m, k))
            y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
            columns = [y]
            for logits in (z, other):
                proba = np.exp(logits - logits.max(axis=1, keepdims=True))
                proba /= proba.sum(axis=1, keepdims=True)
                columns += [proba[:, 1]] if k == 2 else [*proba.T.astype(np.float32)]
            writer.write_table(
                pa.table(dict(zip(schema.names, columns, strict=True)), schema)
            )


def measured(words, folder):
    """CPU seconds and the largest memory in MB of a process; exit code 3 says no more than that."""
    with open(folder / "said", "wb") as said:
        process = subprocess.Popen(
            [sys.executable, *words], stdout=said, stderr=said, cwd=folder
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        raise RuntimeError((folder / "said").read_text(encoding="utf-8")[-2000:])
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit


def words_of(command, file, k):
    """What starts a command on a file, and the columns that it reads."""
    p, q = (",".join(columns_of(k, model)) for model in "pq")
    columns, rows = ["y", *columns_of(k)], ["--label", "y", "--prob", p]
    if command == "summarize":
        given = {"file": str(file), "columns": columns_of(k), "classes": [*range(k)]}
        return ["-c", _SUMMARIZE.format(**given)], columns
    line = {
        "audit": ["audit", str(file), *rows, "--out", "none"],
        "fit": ["fit", str(file), *rows, "--allow", "no-gain", "--out", "fitted.json"],
        "compare": [
            "compare",
            str(file),
            *rows,
            "--prob",
            q,
            "--name",
            "p",
            "--name",
            "q",
        ],
        "apply": ["apply", "map.json", str(file), "--prob", p, "--out", "out.parquet"],
        "monitor": ["monitor", str(file), *rows],
    }[command]
    if command == "compare":
        columns = [*columns, *columns_of(k, "q")]
    if command == "apply":
        columns = [*columns, *columns_of(k, "q")]  # all are copied
    return ["-m", "sklearn_calib", *line], columns


def rows_of(commands, n, k):
    """The rows of the table for one file."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make(folder / "few.parquet", 5000, k)
        few = [
            "fit",
            "few.parquet",
            *words_of("audit", "", k)[0][4:-1],
            "--out",
            "map.json",
        ]
        few += ["--recalibrator", "temperature", "--allow", "no-gain"]
        measured(["-m", "sklearn_calib", *few], folder)
        make(folder / "t.parquet", n, k)
        for command in commands:
            words, columns = words_of(command, folder / "t.parquet", k)
            seconds, memory = measured(words, folder)
            reading = _READ.format(file=str(folder / "t.parquet"), columns=columns)
            read, _ = measured(["-c", reading], folder)
            yield {
                "command": command,
                "rows": f"{n:.0e}".replace("+0", ""),
                "classes": str(k),
                "cpu_seconds": f"{seconds:.2f}",
                "peak_mb": f"{memory:.0f}",
                "read_seconds": f"{read:.2f}",
                "ratio": f"{seconds / read:.1f}",
                "bar": BARS.get((command, n, k), ""),
            }


COMMANDS = ("summarize", "audit", "fit", "compare", "apply", "monitor")


def main():
    given = [word.split(",") for word in sys.argv[1:]]
    commands = [
        c for c in COMMANDS if not given or c in given[0] or given[0] == ["all"]
    ]
    sizes = {int(float(n)) for n in given[1]} if len(given) > 1 else None
    kinds = [int(k) for k in given[2]] if len(given) > 2 else [*SIZES]
    known = {}
    if TABLE.exists():
        with TABLE.open(encoding="utf-8") as file:
            known = {
                (r["classes"], float(r["rows"]), r["command"]): r
                for r in csv.DictReader(file)
            }
    columns = ["command", "rows", "classes", "cpu_seconds", "peak_mb"]
    columns += ["read_seconds", "ratio", "bar"]
    for k in kinds:
        for n in SIZES[k] if sizes is None else sorted(sizes):
            for row in rows_of(commands, n, k):
                print(row, flush=True)
                known[row["classes"], float(row["rows"]), row["command"]] = row
                order = sorted(
                    known, key=lambda at: (int(at[0]), at[1], COMMANDS.index(at[2]))
                )
                runner.write(TABLE, [known[at] for at in order], columns)


if __name__ == "__main__":
    main()
