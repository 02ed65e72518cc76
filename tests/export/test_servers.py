"""Maps on a database server of this machine: MariaDB, where Debian's `mariadb-server` is there."""

import getpass
import shutil
import subprocess
import time

import numpy as np
import pytest
from export_cases import METHODS, TABULATED, fitted, probabilities

from sklearn_calib.export import to_sql
from sklearn_calib.export._document import document_of

pytestmark = [pytest.mark.cross, pytest.mark.slow]
ROWS, LONGEST = 2000, 2_000_000
NAMES = ["p", "a `quoted` \\ name", "p;--", "Σ"]


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory):
    """A function that runs statements on an empty server and gives the lines that they print."""
    if not all(map(shutil.which, ("mariadbd", "mariadb-install-db", "mariadb"))):
        pytest.skip("MariaDB's server is not installed (Debian: mariadb-server)")
    folder = tmp_path_factory.mktemp("server")
    data, socket, user = folder / "data", folder / "s", getpass.getuser()
    root = ["--auth-root-authentication-method=normal", f"--user={user}", f"--datadir={data}"]
    subprocess.run(["mariadb-install-db", *root], check=True, capture_output=True)
    options = ["--skip-networking", f"--socket={socket}", f"--pid-file={folder / 'pid'}"]
    server = subprocess.Popen(
        ["mariadbd", *root[1:], *options, f"--log-error={folder / 'log'}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def run(statements):
        command = ["mariadb", "--no-defaults", f"--socket={socket}", "-uroot", "-BN"]
        command += ["--default-character-set=utf8mb4"]
        said = subprocess.run(command, input=statements.encode(), capture_output=True, check=True)
        return said.stdout.decode().splitlines()

    try:
        for _ in range(100):
            if socket.exists():
                break
            time.sleep(0.1)
        run("CREATE DATABASE t CHARACTER SET utf8mb4")
        yield lambda text: run(f"USE t; SET max_statement_time = 20; {text}")
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="module")
def rows(mariadb):
    """Tables of scores, by the number of classes."""
    found = {}
    for k in (2, 4):
        found[k] = probabilities(k, ROWS)
        fields = ", ".join(f"`{name.replace('`', '``')}` DOUBLE" for name in NAMES[:k])
        numbered = enumerate(found[k].tolist())
        values = ",".join(f"({i},{','.join(map(repr, row))})" for i, row in numbered)
        null = f"({len(found[k])}{', NULL' * k})"
        mariadb(f"CREATE TABLE s{k} (id INT, {fields}); INSERT INTO s{k} VALUES {values}, {null}")
    return found


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", METHODS)
def test_mariadb(mariadb, rows, name, k):
    try:
        method = fitted(name, k, 300)
    except ValueError:
        pytest.skip("not for so many classes")
    map_ = document_of(method, **({"tabulate": 1e-4} if name in TABULATED else {}))
    sql = to_sql(map_, NAMES[:k], dialect="mysql", source=f"s{k}", keep=["id"])
    if len(sql) > LONGEST:
        pytest.skip(f"{len(sql):,} characters")
    started = time.perf_counter()
    got = sorted([line.split("\t") for line in mariadb(sql)], key=lambda line: int(line[0]))
    assert time.perf_counter() - started < 5  # without fences some never ended
    assert got.pop()[1:] == ["NULL"] * k
    values = np.array([line[1:] for line in got], dtype=float)
    np.testing.assert_allclose(values, map_.rows(rows[k]), atol=1e-9, rtol=0)
