"""``python benchmarks/run.py NAME``: the peers, a folder, or an experiment of a paper."""

import csv
import importlib
import runpy
import sys
from pathlib import Path

import runner

HERE = Path(__file__).parent


def peers(chosen):
    """Every file peers/bench_*.py whose peer is installed, or those of chosen peers.

    Rows of peers that are not measured are kept.
    """
    sys.path.insert(0, str(HERE / "peers"))
    with open(HERE / "peers" / "results.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for path in sorted((HERE / "peers").glob("bench_*.py")):
        peer = path.stem.removeprefix("bench_")
        if chosen and peer not in chosen:
            continue
        try:
            cases = importlib.import_module(path.stem).cases()
        except ImportError as error:
            print(f"skipped {peer}: {error}")
            continue
        rows = [row for row in rows if row["peer"] != peer]
        for case in cases:
            row = runner.measure(peer, case)
            print({k: v for k, v in row.items() if v}, flush=True)
            rows.append(row)
    columns = [
        "peer",
        "case",
        "ours_s",
        "theirs_s",
        "ratio",
        "difference",
        "bar",
        "note",
    ]
    rows.sort(key=lambda row: row["peer"])
    runner.write(HERE / "peers" / "results.csv", rows, columns)


def main():
    folders = {path.parent.name for path in HERE.glob("*/main.py")}
    single = [*HERE.glob("papers/*/*.py"), *HERE.glob("scale/*.py")]
    single += [
        HERE / "export" / f"{name}.py" for name in ("engines", "one_row", "speed")
    ]
    single += [
        HERE / "defaults" / f"{name}.py" for name in ("fourth_step", "end_to_end")
    ]
    single += [HERE / "stack" / "few_rows.py", HERE / "variational" / "report.py"]
    single += [HERE / "monitoring" / "after.py", HERE / "cluster_coverage" / "bins.py"]
    single += [
        HERE / "cluster_coverage" / f"{name}.py"
        for name in ("means", "hosmer_lemeshow")
    ]
    single += [HERE / "calibrated_mean" / "rates.py", HERE / "arena" / "packages.py"]
    single += [*(HERE / "validation").glob("internal*.py")]
    papers = {
        f"{path.parent.name}/{path.stem}": path
        for path in single
        if path.stem != "main"
    }
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    sys.argv[:2] = sys.argv[1:2]  # the rest is for the benchmark
    if name == "peers":
        peers(sys.argv[1:])
    elif name in folders:
        runpy.run_path(str(HERE / name / "main.py"), run_name="__main__")
    elif name in papers:
        # what the experiments of a paper share
        sys.path.insert(0, str(papers[name].parent))
        runpy.run_path(str(papers[name]), run_name="__main__")
    else:
        sys.exit(
            f"usage: run.py {' | '.join(['peers', *sorted(folders), *sorted(papers)])}"
        )


if __name__ == "__main__":
    main()
