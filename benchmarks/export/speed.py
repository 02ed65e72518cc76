"""Rows per second of exported maps on one core: ours, C, JavaScript, Python, DuckDB, onnxruntime.

Platt scaling, an isotonic map with 1000 knots, and the mixture "auto"; two columns of
probabilities in, two out.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "export")]

import runner  # noqa: E402
from other_languages import (  # noqa: E402
    CC,
    NODE,
    called,
    compiled,
    loop_over_rows,
    python_function,
)

from sklearn_calib.datasets import make_overconfident  # noqa: E402
from sklearn_calib.export import from_dict, to_code, to_dict, to_sql  # noqa: E402
from sklearn_calib.recalibrators import (  # noqa: E402
    IsotonicCalibration,
    PlattScaling,
    StackedCalibration,
)

ROWS = 1_000_000
KNOTS = 1000
REPEATS = 7


def with_knots(isotonic, count, evenness):
    """A document of an isotonic map with so many knots, the more even the steps between them."""
    knots = np.linspace(-8, 8, count)
    steps = np.random.default_rng(0).dirichlet(np.full(count, evenness))
    table = {
        "knots": knots.tolist(),
        "values": np.minimum(np.cumsum(steps), 1.0).tolist(),
        "domain": knots[[0, -1]].tolist(),
    }
    changed = isotonic | {"map": isotonic["map"] | table}
    return to_dict(from_dict(changed, edited=True))


def maps():
    """Documents by name."""
    proba, y = make_overconfident(2, 20_000, random_state=0)
    found = {"platt": to_dict(PlattScaling().fit(proba, y))}
    isotonic = to_dict(IsotonicCalibration().fit(proba, y))
    found[f"isotonic, {KNOTS} knots"] = with_knots(isotonic, KNOTS, 0.3)
    return found | {"auto": to_dict(StackedCalibration().fit(proba[:2000], y[:2000]))}


def seconds(function):
    """The median of several runs, after one."""
    function()
    found = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def in_c(document, rows):
    if CC is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        code = to_code(document, "c") + loop_over_rows("calibrate", 2)
        loop = compiled(code, folder, ("-O2",)).calibrate_rows
        return len(rows) / seconds(lambda: called(loop, rows))


def in_javascript(document, rows):
    if NODE is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        np.ascontiguousarray(rows).tofile(f"{folder}/rows")
        code = to_code(document, "javascript") + (
            f'const bytes = require("fs").readFileSync("{folder}/rows");\n'
            "const p = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8);\n"
            "const n = p.length / 2, row = [0, 0], out = [0, 0], found = [];\n"
            f"for (let run = 0; run <= {REPEATS}; run++) {{\n"
            "  const start = process.hrtime.bigint();\n"
            "  for (let i = 0; i < n; i++) {\n"
            "    row[0] = p[2 * i]; row[1] = p[2 * i + 1]; calibrate(row, out);\n"
            "  }\n"
            "  found.push(Number(process.hrtime.bigint() - start) / 1e9);\n"
            "}\nconsole.log(JSON.stringify(found.slice(1)));\n"
        )
        Path(folder, "map.js").write_text(code, encoding="utf-8")
        done = subprocess.run(
            [NODE, f"{folder}/map.js"], check=True, capture_output=True
        )
        return len(rows) / statistics.median(json.loads(done.stdout))


def in_python(document, rows):
    calibrate, some = python_function(document), rows[: len(rows) // 10].tolist()
    return len(some) / seconds(lambda: [calibrate(row) for row in some])


def in_duckdb(document, rows):
    import duckdb
    import pyarrow

    database = duckdb.connect(config={"threads": 1})
    given = pyarrow.table({"p": rows[:, 1]})
    database.register("given", given)
    database.execute("CREATE TABLE scores AS SELECT p FROM given")
    expression = to_sql(document, "p", dialect="duckdb", into=None)
    query = f"SELECT AVG({expression}) FROM scores"
    return len(rows) / seconds(lambda: database.execute(query).fetchall())


def in_duckdb_table(document, rows):
    """With the table of intervals."""
    import duckdb
    import pyarrow

    if "knots" not in document["map"]:
        return None
    database = duckdb.connect(config={"threads": 1})
    database.register("given", pyarrow.table({"p": rows[:, 1]}))
    database.execute("CREATE TABLE scores AS SELECT p FROM given")
    sql = to_sql(document, "p", dialect="duckdb", into="table")
    *first, query = [part for part in sql.split(";\n") if part]
    for statement in first:
        database.execute(statement)
    return len(rows) / seconds(
        lambda: database.execute(f"SELECT AVG(calibrated) FROM ({query})").fetchall()
    )


def in_onnxruntime(document, rows):
    try:
        import onnxruntime

        from sklearn_calib.export import to_onnx
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = to_onnx(document).SerializeToString()
    session = onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"]
    )
    name = session.get_inputs()[0].name
    return len(rows) / seconds(lambda: session.run(None, {name: rows}))


def in_numpy(document, rows):
    exported = from_dict(document)
    return len(rows) / seconds(lambda: exported.predict_proba(rows))


TARGETS = {
    "sklearn_calib": in_numpy,
    "C": in_c,
    "JavaScript": in_javascript,
    "Python": in_python,
    "DuckDB": in_duckdb,
    "DuckDB, table": in_duckdb_table,
    "onnxruntime": in_onnxruntime,
}


def main():
    rows, _ = make_overconfident(2, ROWS, random_state=1)
    lines = []
    for name, document in maps().items():
        for target, rows_per_second in TARGETS.items():
            speed = rows_per_second(document, rows)
            if speed is None:
                print(f"skipped {target}")
                continue
            lines.append(
                {"map": name, "target": target, "rows per second": f"{speed:.2g}"}
            )
            print(lines[-1], flush=True)
    runner.write(HERE / "speed.csv", lines)


if __name__ == "__main__":
    main()
