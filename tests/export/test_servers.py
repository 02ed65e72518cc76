"""Maps on database servers of this machine: MariaDB and PostgreSQL, where they are installed."""

import re
import time

import numpy as np
import pytest
from export_cases import ONE_OF_EACH_KIND, TABULATED, fitted, probabilities
from servers import mariadb, postgres

from sklearn_calib.export import to_sql
from sklearn_calib.export._document import to_document

__all__ = ["mariadb", "postgres"]  # fixtures

pytestmark = [pytest.mark.slow, pytest.mark.whole]
ROWS, LONGEST = 2000, 2_000_000
NAMES = ["p", "a `quoted` \\ name", "p;--", "Σ"]


def filled(run, quote, double):
    """Tables of scores on a server, by the number of classes."""
    found = {}
    for k in (2, 4):
        found[k] = probabilities(k, ROWS)
        names = [
            f"{quote}{name.replace(quote, 2 * quote)}{quote}" for name in NAMES[:k]
        ]
        fields = ", ".join(f"{name} {double}" for name in names)
        numbered = enumerate(found[k].tolist())
        values = ",".join(f"({i},{','.join(map(repr, row))})" for i, row in numbered)
        null = f"({len(found[k])}{', NULL' * k})"
        run(
            f"CREATE TABLE s{k} (id INT, {fields}); INSERT INTO s{k} VALUES {values}, {null}"
        )
    return found


@pytest.fixture(scope="module")
def servers(request):
    """For each dialect a function that runs statements, and the tables that it has."""
    known = {}

    def server(dialect):
        if dialect not in known:
            run = request.getfixturevalue(
                {"mysql": "mariadb"}.get(dialect, dialect)
            ).run
            types = {"mysql": ("`", "DOUBLE"), "postgres": ('"', "DOUBLE PRECISION")}
            known[dialect] = run, filled(run, *types[dialect])
        return known[dialect]

    return server


def check(lines, expected):
    got = sorted([line.split("\t") for line in lines], key=lambda line: int(line[0]))
    assert set(got.pop()[1:]) == {"NULL"}
    values = np.array([line[1:] for line in got], dtype=float)
    np.testing.assert_allclose(values, expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
@pytest.mark.parametrize("dialect", ["mysql", "postgres"])
def test_methods(servers, dialect, name, k):
    run, rows = servers(dialect)
    try:
        method = fitted(name, k, 300)
    except ValueError:
        pytest.skip("not for so many classes")
    map_ = to_document(method, **({"tabulate": 1e-4} if name in TABULATED else {}))
    sql = to_sql(map_, NAMES[:k], dialect=dialect, source=f"s{k}", keep=["id"])
    if len(sql) > LONGEST:
        pytest.skip(f"{len(sql):,} characters")
    started = time.perf_counter()
    found = run(sql)
    assert time.perf_counter() - started < 10  # without fences some never ended
    expected = map_.rows(rows[k])
    check(found, expected)
    if k == 2 and name in ("isotonic", "isotonic.step", "platt", "histogram_binning"):
        one = to_sql(map_, NAMES[1], dialect=dialect)
        check(run(f"SELECT id, {one} FROM s2"), expected[:, 1:])
    if k == 2 and name in ("isotonic", "histogram_binning"):
        options = {
            "dialect": dialect,
            "source": "s2",
            "keep": ["id"],
            "table": f"t_{name}",
        }
        *made, query = re.split(
            r";\n", to_sql(map_, NAMES[1], into="table", **options).strip()
        )
        check(run(";\n".join([*made, query])), expected[:, 1:])


@pytest.mark.parametrize("name", ["platt", "isotonic", "histogram_binning"])
@pytest.mark.parametrize("dialect", ["mysql", "postgres"])
def test_bands(servers, dialect, name):
    """At each threshold and at both of its neighbours, by numbers and by names."""
    run, _ = servers(dialect)
    method, edges = fitted(name, 2), [0.1, 0.3, 0.6]
    ends = [end for one in method.threshold(edges) for end in np.ravel(one.intervals)]
    scores = np.concatenate([ends, np.nextafter(ends, 0), np.nextafter(ends, 1)]).clip(
        0, 1
    )
    numbers = np.searchsorted(edges, method.predict_proba(scores)[:, 1], side="right")
    names = ["it's", "a\\b", '"', "`"]
    rows = ",".join(f"({i},{score!r})" for i, score in enumerate(scores.tolist()))
    double = {"mysql": "DOUBLE", "postgres": "DOUBLE PRECISION"}[dialect]
    run(
        f"CREATE TABLE bands_{name} (id INT, p {double}); INSERT INTO bands_{name} VALUES {rows}"
    )
    for bands in (edges, dict(zip(names, [0, *edges], strict=True))):
        sql = to_sql(method, "p", dialect=dialect, bands=bands)
        found = dict(
            line.split("\t") for line in run(f"SELECT id, {sql} FROM bands_{name}")
        )
        wanted = numbers if bands is edges else [names[i] for i in numbers]
        assert [found[str(i)] for i in range(len(scores))] == [*map(str, wanted)]
