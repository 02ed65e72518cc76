"""Wrong versions of chosen files: how many do the tests let pass? See the README of this folder."""

import argparse
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TARGETS = json.loads((HERE / "targets.json").read_text())  # file: the tests that know it


def main():
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for part in ("sklearn_calib", "tests"):  # mutants are written to disk: into a copy
            shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "setup.cfg", tree)
        end = time.monotonic() + 60 * options.minutes
        rows = []
        for file in options.files:
            rows += _run(tree, file, options, end)
    _write(rows, options)


def _options():
    parser = argparse.ArgumentParser(prog="run.py mutation", description=__doc__)
    parser.add_argument("files", nargs="*", help="below sklearn_calib/; default: all of the list")
    parser.add_argument("--mutants", type=int, default=60, help="drawn per file; 0 for all (60)")
    parser.add_argument("--minutes", type=float, default=60, help="start no mutant after them (60)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.files = options.files or list(TARGETS)
    unknown = [file for file in options.files if file not in TARGETS]
    if unknown:
        parser.error(f"not in targets.json: {', '.join(unknown)}")
    return options


def _run(tree, file, options, end):
    """One row per mutant of a file that was tested."""
    from cosmic_ray.work_db import WorkDB
    from cosmic_ray.work_item import WorkerOutcome, WorkResult

    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", *TARGETS[file]["tests"]]
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(tree / "numba"),
        "NUMBA_DISABLE_JIT": str(int(TARGETS[file].get("interpreted", False))),
    }

    def call(*arguments, **more):
        return subprocess.run(arguments, cwd=tree, env=environment, check=True, **more)

    start = time.monotonic()
    call(*command, stdout=subprocess.DEVNULL)  # right code passes; and it compiles the kernels
    seconds = 3 * (time.monotonic() - start) + 30
    config, session = tree / "config.toml", tree / f"{file.replace('/', '_')}.sqlite"
    config.write_text(
        f'[cosmic-ray]\nmodule-path = ["sklearn_calib/{file}"]\ntimeout = {seconds:.0f}\n'
        f'excluded-modules = []\ntest-command = "{" ".join(command)}"\n'
        '[cosmic-ray.distributor]\nname = "local"\n'
    )
    cosmic_ray = str(Path(sys.executable).parent / "cosmic-ray")
    call(cosmic_ray, "init", config, session)
    database = WorkDB(session, WorkDB.Mode.open)
    items = sorted(database.work_items, key=lambda item: str(item.mutations))
    items = [i for i in items if i.mutations[0].operator_name not in _POINTLESS]
    chosen = items
    if 0 < options.mutants < len(items):
        chosen = random.Random(options.seed).sample(items, options.mutants)
    kept = {item.job_id for item in chosen}
    skipped = [item.job_id for item in database.work_items if item.job_id not in kept]
    database.set_multiple_results(skipped, WorkResult(WorkerOutcome.SKIPPED))
    database.close()
    left = end - time.monotonic()
    try:
        call(cosmic_ray, "exec", config, session, timeout=max(left, 0.1))
    except subprocess.TimeoutExpired:  # a mutant may be on disk
        shutil.copy(ROOT / "sklearn_calib" / file, tree / "sklearn_calib" / file)
    database = WorkDB(session, WorkDB.Mode.open)
    by_job = {item.job_id: item.mutations[0] for item in database.work_items}
    rows = []
    for job, result in database.results:
        if result.worker_outcome != WorkerOutcome.SKIPPED:
            rows.append({"file": file, "mutants": len(items), **_row(by_job[job], result)})
    database.close()
    print(f"{file}: {len(rows)} of {len(items)} mutants, survived {_survivors(rows)}", flush=True)
    return rows


# without `@metric`, `@kernel` or `@dataclass` a file is not the same program in another version
_POINTLESS = {"core/RemoveDecorator"}


def _row(mutation, result):
    changed = [
        line[1:].strip()
        for line in (result.diff or "").splitlines()
        if line[:1] == "+" and line[:3] != "+++"
    ]
    return {
        "line": mutation.start_pos[0],
        "operator": mutation.operator_name.removeprefix("core/"),
        "outcome": str(result.test_outcome.value if result.test_outcome else "timeout"),
        "becomes": " ".join(changed),
    }


def _survivors(rows):
    return sum(row["outcome"] == "survived" for row in rows)


def _write(rows, options):
    """The table of the files, and the survivors, of which each is to be killed or explained."""
    files = []
    for file in options.files:
        mine = [row for row in rows if row["file"] == file]
        if mine:
            share = _survivors(mine) / len(mine)
            files.append(
                {
                    "file": file,
                    "mutants": mine[0]["mutants"],
                    "tested": len(mine),
                    "survived": _survivors(mine),
                    "share": f"{share:.3f}",
                    "bar": "<= 0.1",
                }
            )
    survivors = [row for row in rows if row["outcome"] == "survived"]
    for name, table, columns in (
        ("results.csv", files, ["file", "mutants", "tested", "survived", "share", "bar"]),
        ("survivors.csv", survivors, ["file", "line", "operator", "becomes"]),
    ):
        with open(HERE / name, "w", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
