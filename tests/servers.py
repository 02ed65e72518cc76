"""Database servers and Spark on this machine, started where they are installed."""

import getpass
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest


class Server(NamedTuple):
    """What runs statements and gives the lines that they print; and the place of its socket."""

    run: Callable[[str], list[str]]
    socket: str


@contextmanager
def mariadb_server(folder):
    """An empty server."""
    if not all(map(shutil.which, ("mariadbd", "mariadb-install-db", "mariadb"))):
        pytest.skip("MariaDB's server is not installed (Debian: mariadb-server)")
    data, socket, user = folder / "data", folder / "s", getpass.getuser()
    root = [
        "--auth-root-authentication-method=normal",
        f"--user={user}",
        f"--datadir={data}",
    ]
    subprocess.run(["mariadb-install-db", *root], check=True, capture_output=True)
    options = [
        "--skip-networking",
        f"--socket={socket}",
        f"--pid-file={folder / 'pid'}",
    ]
    server = subprocess.Popen(
        ["mariadbd", *root[1:], *options, f"--log-error={folder / 'log'}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def run(statements):
        command = ["mariadb", "--no-defaults", f"--socket={socket}", "-uroot", "-BNr"]
        command += ["--default-character-set=utf8mb4"]
        said = subprocess.run(
            command, input=statements.encode(), capture_output=True, check=True
        )
        return said.stdout.decode().splitlines()

    try:
        for _ in range(100):
            if socket.exists():
                break
            time.sleep(0.1)
        run("CREATE DATABASE t CHARACTER SET utf8mb4")
        yield Server(
            lambda text: run(f"USE t; SET max_statement_time = 20; {text}"), str(socket)
        )
    finally:
        server.kill()
        server.wait()


@contextmanager
def postgres_server(folder):
    """The same of PostgreSQL, which no superuser may start: Debian's user is taken then."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders or not shutil.which("psql"):
        pytest.skip("PostgreSQL's server is not installed (Debian: postgresql)")
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
    started = [
        "-o",
        f"-k {folder} -c listen_addresses=''",
        "-l",
        str(folder / "log"),
        "start",
    ]
    subprocess.run([*command, *started], cwd="/", check=True, stdout=subprocess.DEVNULL)

    def run(statements):
        connection = ["-h", str(folder), "-U", "test", "-d", "postgres"]
        words = ["psql", "-X", *connection, "-qAt", "-F", "\t", "-P", "null=NULL"]
        words += ["-v", "ON_ERROR_STOP=1"]
        said = subprocess.run(
            words, input=statements.encode(), capture_output=True, check=True
        )
        return said.stdout.decode().splitlines()

    try:
        yield Server(
            lambda text: run(f"SET statement_timeout = '20s'; {text}"), str(folder)
        )
    finally:
        subprocess.run([*command, "-m", "immediate", "stop"], **options)


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory):
    """A server for the tests of a file."""
    with mariadb_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """As `mariadb`."""
    with postgres_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@contextmanager
def spark_session(folder, place):
    """Spark in this process (`place` such as "local[2]") or in others of it, on loopback alone."""
    sql = pytest.importorskip("pyspark.sql")
    if not shutil.which("java"):
        pytest.skip("Java is not installed (Debian: default-jre-headless)")
    builder = sql.SparkSession.builder.master(place)
    builder = builder.config("spark.ui.enabled", "false")
    for end in ("bindAddress", "host"):
        builder = builder.config(f"spark.driver.{end}", "127.0.0.1")
    session = builder.config("spark.sql.warehouse.dir", str(folder)).getOrCreate()
    try:
        yield session
    finally:
        session.stop()
