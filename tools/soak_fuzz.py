#!/usr/bin/env python3
"""Runs every fuzz target of the tree, for an hour in all.

soak_fuzz.py BUILD_DIR [--seconds N] [TARGET ...]   N: for all targets together; TARGET: a part of a name

Each target starts from tests/corpus/<target>, if there is one; what it learns goes to
<BUILD_DIR>/corpus/<target> and is used again by the next run. A finding stops nothing: it is reported at
the end, with the file that reproduces it, and the exit status is 1.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    binaries = sorted(p for p in options.build.rglob("*_fuzz") if p.is_file() and os.access(p, os.X_OK))
    if options.targets:
        binaries = [b for b in binaries if any(t in b.name for t in options.targets)]
    if not binaries:
        sys.exit(f"soak_fuzz: no fuzz targets under {options.build}")
    each = max(1, options.seconds // len(binaries))
    print(f"{len(binaries)} targets, {each} s each", flush=True)
    failed = []
    for binary in binaries:
        learned = options.build / "corpus" / binary.name
        learned.mkdir(parents=True, exist_ok=True)
        corpora = [str(learned)]
        seeds = ROOT / "tests" / "corpus" / binary.name
        if seeds.is_dir():
            corpora.append(str(seeds))
        artifacts = options.build / "findings" / binary.name
        artifacts.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        run = subprocess.run(
            [str(binary), f"-max_total_time={each}", "-max_len=65536", "-timeout=25", "-rss_limit_mb=2048",
             "-print_final_stats=1", f"-artifact_prefix={artifacts}/", *corpora],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        runs = next((line.split()[-1] for line in run.stdout.splitlines()
                     if line.startswith("stat::number_of_executed_units")), "?")
        seconds = time.monotonic() - begun
        verdict = "ok" if run.returncode == 0 else "FINDING"
        print(f"{verdict:8}{binary.name:45}{runs:>12} runs {seconds:7.0f} s", flush=True)
        if run.returncode != 0:
            failed.append(binary.name)
            print("\n".join(run.stdout.splitlines()[-60:]))
            print(f"reproduce with: {binary} {artifacts}/*", flush=True)
    if failed:
        sys.exit(f"soak_fuzz: findings in {', '.join(failed)}")


if __name__ == "__main__":
    main()
