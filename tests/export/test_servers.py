"""Maps on database servers of this machine: MariaDB and PostgreSQL, where they are installed."""

import getpass
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

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
def postgres(tmp_path_factory):
    """As `mariadb`, by PostgreSQL, which no superuser may start: Debian's user is taken then."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders or not shutil.which("psql"):
        pytest.skip("PostgreSQL's server is not installed (Debian: postgresql)")
    folder = tmp_path_factory.mktemp("server")
    before = []
    if os.geteuid() == 0:
        before = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
        for parent in folder.parents[:3]:
            parent.chmod(parent.stat().st_mode | 0o011)
    command = [*before, str(folders[-1] / "pg_ctl"), "-D", str(folder / "data")]
    options = {"cwd": "/", "check": True, "capture_output": True}
    initial = [*command, "init", "-o", "-A trust -U test"]
    subprocess.run(initial, **options)
    started = ["-o", f"-k {folder} -c listen_addresses=''", "-l", str(folder / "log"), "start"]
    subprocess.run([*command, *started], cwd="/", check=True, stdout=subprocess.DEVNULL)

    def run(statements):
        connection = ["-h", str(folder), "-U", "test", "-d", "postgres"]
        words = ["psql", "-X", *connection, "-qAt", "-F", "\t", "-P", "null=NULL"]
        words += ["-v", "ON_ERROR_STOP=1"]
        said = subprocess.run(words, input=statements.encode(), capture_output=True, check=True)
        return said.stdout.decode().splitlines()

    try:
        yield lambda text: run(f"SET statement_timeout = '20s'; {text}")
    finally:
        subprocess.run([*command, "-m", "immediate", "stop"], **options)


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
            run = request.getfixturevalue({"mysql": "mariadb"}.get(dialect, dialect))
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
