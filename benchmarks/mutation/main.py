"""Wrong versions of chosen files: how many do the tests let pass? See the README of this folder."""

import argparse
import ast
import csv
import difflib
import importlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
# file: the tests that know it
TARGETS = json.loads((HERE / "targets.json").read_text(encoding="utf-8"))


def main():
    options = _options()
    os.environ |= {"MPLBACKEND": "Agg", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for name in ("OMP", "OPENBLAS", "NUMBA"):
        # before numpy loads; forked threads would be lost
        os.environ[f"{name}_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        # mutants are written to disk: into a copy
        for part in (
            "sklearn_calib",
            "tests",
        ):
            shutil.copytree(
                ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__")
            )
        shutil.copy(ROOT / "setup.cfg", tree)
        os.environ["NUMBA_CACHE_DIR"] = str(tree / "numba")
        end = time.monotonic() + 60 * options.minutes
        rows = []
        for number, file in enumerate(options.files):
            left = end - time.monotonic()
            if left > 0:  # each file has an equal part of the time that is left
                rows += _run(tree, file, options, left / (len(options.files) - number))
                # after each file, so that an interruption loses little
                _write(rows, options)


def _options():
    parser = argparse.ArgumentParser(prog="run.py mutation", description=__doc__)
    parser.add_argument(
        "files", nargs="*", help="below sklearn_calib/; default: all of the list"
    )
    parser.add_argument(
        "--mutants", type=int, default=60, help="drawn per file; 0 for all (60)"
    )
    parser.add_argument(
        "--minutes", type=float, default=60, help="start no mutant after them (60)"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.files = options.files or list(TARGETS)
    unknown = [file for file in options.files if file not in TARGETS]
    if unknown:
        parser.error(f"not in targets.json: {', '.join(unknown)}")
    return options


def _run(tree, file, options, seconds):
    """One row per mutant of a file that was tested."""
    path, target = tree / "sklearn_calib" / file, TARGETS[file]
    right = path.read_text(encoding="utf-8")
    _, _, modules = _tested(tree, target, None)  # and it compiles the kernels
    for name in modules:  # once, here: what is forked from now on has them
        try:
            importlib.import_module(name)
        except Exception:  # a module of a test, or one that is made on the way
            continue
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()
    passed, took, _ = _tested(tree, target, None)
    if not passed:
        sys.exit(
            f"the tests of {file} fail on the right code: {' '.join(target['tests'])}"
        )
    end, mutants = time.monotonic() + seconds - 2 * took, _mutants(path)
    chosen = mutants
    if 0 < options.mutants < len(mutants):
        chosen = random.Random(options.seed).sample(mutants, options.mutants)
    rows = []
    try:
        for line, operator, wrong in chosen:
            if time.monotonic() > end:
                break
            path.write_text(wrong, encoding="utf-8")
            outcome = "killed"
            if _compiles(wrong):
                passed, _, _ = _tested(tree, target, 3 * took + 10)
                outcome = {True: "survived", False: "killed", None: "timeout"}[passed]
            rows.append(
                {
                    "file": file,
                    "mutants": len(mutants),
                    "line": line,
                    "operator": operator,
                    "outcome": outcome,
                    "becomes": _changed(right, wrong),
                }
            )
    finally:
        path.write_text(right, encoding="utf-8")
    print(
        f"{file}: {len(rows)} of {len(mutants)} mutants, survived {_survivors(rows)}",
        flush=True,
    )
    return rows


def _tested(tree, target, limit):
    """Whether the tests pass in a fork of this process (None: not in time), the time, modules."""
    start = time.monotonic()
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(tree, target, limit is None, there))
    child.start()
    there.close()
    passed, modules = None, []
    if here.poll(limit):
        try:
            passed, modules = here.recv()
        except EOFError:  # it crashed
            passed = False
    child.kill()
    child.join()
    return passed, time.monotonic() - start, modules


def _child(tree, target, right, pipe):
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    sys.dont_write_bytecode = not right
    os.environ["NUMBA_DISABLE_JIT"] = str(int(target.get("interpreted", False)))
    if "numba" in sys.modules:
        sys.modules["numba"].config.reload_config()
    before = set(sys.modules)

    import pytest

    options = [
        "-x",
        "-q",
        "-o",
        "addopts=",
        "-m",
        "not slow and not cross",
        "-p",
        "no:cacheprovider",
    ]
    code = pytest.main([*options, *target["tests"]])
    own = {path.stem for path in tree.glob("tests/**/*.py")} | {
        "sklearn_calib",
        "tests",
    }
    loaded = [
        name for name in sys.modules if name.split(".")[0] not in own | {"__main__"}
    ]
    pipe.send((code == 0, [name for name in loaded if name not in before]))
    os._exit(0)


# without `@metric`, `@kernel` or `@dataclass` a file is not the same program in another
# version
_POINTLESS = {"core/RemoveDecorator"}


def _mutants(path):
    """Line, operator and text of every mutant."""
    from cosmic_ray.commands.init import _all_work_items
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    items = [item.mutations[0] for item in _all_work_items([path], {})]
    text = path.read_text(encoding="utf-8")
    return [
        (
            item.start_pos[0],
            item.operator_name.removeprefix("core/"),
            mutate_code(text, get_operator(item.operator_name)(), item.occurrence),
        )
        for item in items
        if item.operator_name not in _POINTLESS
    ]


def _compiles(text):
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _changed(right, wrong):
    lines = difflib.unified_diff(right.splitlines(), wrong.splitlines(), n=0)
    return " ".join(x[1:].strip() for x in lines if x[:1] == "+" and x[:3] != "+++")


def _survivors(rows):
    return sum(row["outcome"] == "survived" for row in rows)


def _write(rows, options):
    """The table of the files, and the survivors, of which each is to be killed or explained.

    What an earlier run found out about other files stays.
    """
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
    done, order = {row["file"] for row in rows}, list(TARGETS)
    for name, table, columns in (
        (
            "results.csv",
            files,
            ["file", "mutants", "tested", "survived", "share", "bar"],
        ),
        ("survivors.csv", survivors, ["file", "line", "operator", "becomes"]),
    ):
        with open(HERE / name, newline="", encoding="utf-8") as file:
            table += [row for row in csv.DictReader(file) if row["file"] not in done]
        with open(HERE / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(
                file, columns, extrasaction="ignore", lineterminator="\n"
            )
            writer.writeheader()
            writer.writerows(sorted(table, key=lambda row: order.index(row["file"])))


if __name__ == "__main__":
    main()
