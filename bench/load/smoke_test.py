#!/usr/bin/env python3
"""Runs every scenario of drakkar-load with small counts, so that all of them keep working.

usage: smoke_test.py DRAKKAR DRAKKAR_LOAD
"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import bench  # noqa: E402

TINY = ["--count=20", "--watchers=5", "--nodes=3", "--pods=3", "--initial-claims=4", "--objects=5",
        "--other-pods=2", "--milliseconds=100", "--connections=2"]


def main():
    bench.DRAKKAR, bench.LOAD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    bench.BUILD = bench.LOAD.parent
    usage = subprocess.run([bench.LOAD, "--help"], capture_output=True, text=True, check=False).stderr
    scenarios = re.findall(r"^  ([a-z]+\.\w+)", usage, re.M)
    listed = {name for name in bench.BENCHES if name.startswith(("api.", "sched.", "binding."))}
    missing = [s for s in scenarios if s not in listed]
    assert scenarios and not missing, f"not in tools/bench.py: {missing}"
    for scenario in scenarios:
        for figure_id, value, unit, detail in bench.load(scenario, *TINY, runs=1):
            print(f"{figure_id:32} {value:10.4g} {unit}")
            json.dumps(detail)
            assert unit in ("KB", "MB") or value > 0, figure_id


if __name__ == "__main__":
    main()
