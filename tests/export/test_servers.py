"""Maps on database servers of this machine: MariaDB and PostgreSQL, where they are installed."""

import re
import time

import numpy as np
import pytest
from export_cases import METHODS, TABULATED, fitted, probabilities
from servers import mariadb, postgres

from sklearn_calib.export import to_sql
from sklearn_calib.export._document import document_of

__all__ = ["mariadb", "postgres"]  # fixtures

pytestmark = [pytest.mark.cross, pytest.mark.slow]
ROWS, LONGEST = 2000, 2_000_000
NAMES = ["p", "a `quoted` \\ name", "p;--", "Σ"]


def filled(run, quote, double):
    """Tables of scores on a server, by the number of classes."""
    found = {}
    for k in (2, 4):
        found[k] = probabilities(k, ROWS)
        names = [f"{quote}{name.replace(quote, 2 * quote)}{quote}" for name in NAMES[:k]]
        fields = ", ".join(f"{name} {double}" for name in names)
        numbered = enumerate(found[k].tolist())
        values = ",".join(f"({i},{','.join(map(repr, row))})" for i, row in numbered)
        null = f"({len(found[k])}{', NULL' * k})"
        run(f"CREATE TABLE s{k} (id INT, {fields}); INSERT INTO s{k} VALUES {values}, {null}")
    return found


@pytest.fixture(scope="module")
def servers(request):
    """For each dialect a function that runs statements, and the tables that it knows."""
    known = {}

    def server(dialect):
        if dialect not in known:
            run = request.getfixturevalue({"mysql": "mariadb"}.get(dialect, dialect)).run
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
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dialect", ["mysql", "postgres"])
def test_methods(servers, dialect, name, k):
    run, rows = servers(dialect)
    try:
        method = fitted(name, k, 300)
    except ValueError:
        pytest.skip("not for so many classes")
    map_ = document_of(method, **({"tabulate": 1e-4} if name in TABULATED else {}))
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
        options = {"dialect": dialect, "source": "s2", "keep": ["id"], "table": f"t_{name}"}
        *made, query = re.split(r";\n", to_sql(map_, NAMES[1], into="table", **options).strip())
        check(run(";\n".join([*made, query])), expected[:, 1:])
