"""SQL in PostgreSQL, in a server of its own that ends with this process: queries on all columns.

Needs `initdb`, `pg_ctl` and `psql`.
"""

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cache

import numpy as np
from other_languages import LARGEST

from sklearn_calib.export import to_sql

if not all(map(shutil.which, ("initdb", "pg_ctl", "psql"))):
    raise ImportError("no PostgreSQL")

_TIMEOUT = 300


def _as_owner():
    """PostgreSQL rejects to run as root."""
    if os.getuid():
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@cache
def _folder():
    folder = tempfile.mkdtemp()
    owner = _as_owner()
    if owner:
        os.chown(folder, owner["user"], owner["group"])
    more = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder, **owner}
    subprocess.run(
        ["initdb", "-D", f"{folder}/data", "-U", "tester", "-A", "trust"], **more
    )
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    start = [
        "pg_ctl",
        "-D",
        f"{folder}/data",
        "-o",
        options,
        "-l",
        f"{folder}/log",
        "-w",
        "start",
    ]
    subprocess.run(start, **more)

    def stop():
        subprocess.run(
            ["pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "stop"], **more
        )
        shutil.rmtree(folder)

    atexit.register(stop)
    return folder


def _psql(text):
    command = [
        "psql",
        "-h",
        _folder(),
        "-U",
        "tester",
        "-d",
        "postgres",
        "-qAtX",
        "-F",
        ",",
    ]
    command += ["-v", "ON_ERROR_STOP=1"]
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[:2000])
    return done.stdout


def predict(document, rows):
    if len(str(document["map"])) > LARGEST:
        return None
    columns = [f"score {i}" for i in range(rows.shape[1])]
    sql = to_sql(document, columns, dialect="postgres", keep=["id"])
    fields = ", ".join(f'"{column}" double precision' for column in columns)
    data = "\n".join(
        ",".join(map(repr, [i, *row])) for i, row in enumerate(rows.tolist())
    )
    found = _psql(
        f"CREATE TEMP TABLE scores (id integer, {fields});\n"
        f"COPY scores FROM STDIN (FORMAT csv);\n{data}\n\\.\n{sql} ORDER BY id;\n"
    )
    lines = [line.split(",")[1:] for line in found.split("\n") if line]
    return np.array(lines, dtype=float)
