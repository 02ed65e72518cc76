"""Maps in databases and engines that are not dependencies: each is run where it is found.

PostgreSQL and MariaDB are in `test_servers.py`; SQLite and DuckDB are in
`test_maps_in_sql.py`.
"""

import io

import numpy as np
import pyarrow
import pytest
from export_cases import (
    ONE_OF_EACH_KIND,
    QUICK,
    TABULATED,
    at_knots,
    fitted,
    probabilities,
)
from other_languages import at_last_digits
from servers import spark_session

from sklearn_calib.export import to_sql
from sklearn_calib.export._document import to_document

pytestmark = [pytest.mark.slow, pytest.mark.whole]
# characters; longer ones take them minutes
LONGEST = {
    "spark": 20_000,
    "clickhouse": 20_000,
}
NAMES = ["p", 'a "`quoted`"', "p;-- \\", "Σ"]
EDGES = [0.1, 0.3, 0.6]
# deeper than DataFusion and Polars read an expression; queries are not
TOO_DEEP = ("default", "one_vs_rest", "top_label", "pipeline")


def backticks(name):
    return f"`{name.replace('`', '``')}`"


def clickhouse(tables, folder):
    session = pytest.importorskip("chdb.session").Session(str(folder / "data"))
    parquet = pytest.importorskip("pyarrow.parquet")
    for name, table in tables.items():
        parquet.write_table(table, folder / name)
        source = f"file('{folder / name}', 'Parquet')"
        session.query(f"CREATE VIEW {name} AS SELECT * FROM {source}")

    def run(sql):
        found = io.BytesIO(bytes(session.query(sql, "Arrow").bytes()))
        table = pyarrow.ipc.open_file(found).read_all()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    yield run
    session.close()


def spark(tables, folder):
    with spark_session(folder, "local[1]") as session:
        for name, table in tables.items():
            fields = ", ".join(f"{backticks(one)} DOUBLE" for one in table.column_names)
            rows = list(
                zip(*(column.to_pylist() for column in table.columns), strict=True)
            )
            session.createDataFrame(rows, schema=fields).createOrReplaceTempView(name)
        yield lambda text: session.sql(text).collect()


def datafusion(tables, folder):
    context = pytest.importorskip("datafusion").SessionContext()
    for name, table in tables.items():
        context.from_arrow(table, name=name)
    yield lambda sql: [tuple(row.values()) for row in context.sql(sql).to_pylist()]


def polars(tables, folder):
    module = pytest.importorskip("polars")
    frames = {name: module.from_arrow(table) for name, table in tables.items()}
    context = module.SQLContext(frames, eager=True)
    yield lambda sql: context.execute(sql).rows()


ENGINES = {clickhouse: "clickhouse", spark: "spark", datafusion: "ansi", polars: "ansi"}
STARTED = [  # the first two for some minutes, once a week
    pytest.param(
        engine, marks=[pytest.mark.cross] if engine in (clickhouse, spark) else []
    )
    for engine in ENGINES
]


@pytest.fixture(scope="module")
def scores():
    """Rows by the number of classes: awkward ones, about the knots of maps and about thresholds."""
    found = {}
    for k in (2, 4):
        rows = [probabilities(k, 200)]
        for name in QUICK[2 if k == 2 else 3]:
            rows.append(at_knots(to_document(fitted(name, k)), 40))
        found[k] = np.vstack(rows)
    near = [fitted(name, 2).threshold(EDGES) for name in ("platt", "isotonic")]
    p = np.array([[one.score for one in thresholds] for thresholds in near]).ravel()
    p = np.concatenate([p, np.nextafter(p, 0), np.nextafter(p, 1)])
    found[2] = np.vstack([found[2], np.column_stack([1 - p, p])])
    return found


@pytest.fixture(scope="module", params=STARTED, ids=lambda engine: engine.__name__)
def engine(request, scores, tmp_path_factory):
    """A function that runs a query, and its dialect. The last two rows: NaN and NULL."""
    tables = {}
    for k, rows in scores.items():
        data = {"id": np.arange(len(rows) + 2.0)}
        for name, column in zip(NAMES, rows.T, strict=False):
            numbers = [*column.tolist(), float("nan"), None]
            data[name] = pyarrow.array(numbers, pyarrow.float64(), from_pandas=False)
        tables[f"s{k}"] = pyarrow.table(data)
    start = request.param(tables, tmp_path_factory.mktemp("engine"))
    run = next(start)
    yield run, ENGINES[request.param]
    next(start, None)


def answers(run, sql):
    """The results by the id, without those of the last two rows, which are NULL."""
    found = np.array([tuple(row) for row in run(sql)], dtype=float)
    found = found[found[:, 0].argsort(), 1:]
    assert np.isnan(found[-2:]).all()
    return found[:-2]


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_maps(engine, scores, name, k):
    run, dialect = engine
    if dialect == "clickhouse" and k == 4 and name in (*TOO_DEEP, "auto"):
        pytest.skip("not answered in 14 s")
    try:
        method = fitted(name, k)
    except ValueError:
        pytest.skip("not for so many classes")
    map_ = to_document(method, **({"tabulate": 0.01} if name in TABULATED else {}))
    source, ran = f"s{k}", 0
    queries = [NAMES[:k]] + [NAMES[1:2]] * (k == 2)
    texts = [
        to_sql(map_, one, dialect=dialect, source=source, keep=["id"])
        for one in queries
    ]
    if k == 2 and not (dialect == "ansi" and name in TOO_DEEP):
        texts.append(
            f"SELECT id, {to_sql(map_, NAMES[1], dialect=dialect)} FROM {source}"
        )
    for sql in texts:
        if len(sql) < LONGEST.get(dialect, 200_000):
            got, ran = answers(run, sql), ran + 1
            both = got if got.shape[1] == k else np.column_stack([1 - got, got])
            assert len(at_last_digits(map_, scores[k], both, 1e-9)) == 0
    if not ran:
        pytest.skip(f"{min(map(len, texts)):,} characters")


@pytest.mark.parametrize("name", ["platt", "isotonic"])
def test_bands(engine, scores, name):
    """At each threshold and at both of its neighbours."""
    run, dialect = engine
    method, p = fitted(name, 2), scores[2][:, 1]
    wanted = np.searchsorted(
        [one.score for one in method.threshold(EDGES)], p, side="right"
    )
    bands = to_sql(method, NAMES[1], dialect=dialect, bands=EDGES)
    assert np.array_equal(answers(run, f"SELECT id, {bands} FROM s2")[:, 0], wanted)
    names = ["it's", "a\\b", '"', "`"]
    named = dict(zip(names, [0, *EDGES], strict=True))
    bands = to_sql(method, NAMES[1], dialect=dialect, bands=named)
    found = {float(one): text for one, text in run(f"SELECT id, {bands} FROM s2")}
    assert [found[i] for i in range(len(p))] == [names[i] for i in wanted]
