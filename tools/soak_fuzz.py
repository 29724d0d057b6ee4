#!/usr/bin/env python3
"""Runs every fuzz target of the tree, for an hour in total.

soak_fuzz.py BUILD_DIR [--seconds N] [-j J] [TARGET ...]
  N: wall clock for all targets together; J: how many at a time (2, or 1 on a single core);
  TARGET: part of a name

Each target starts from its seeds in tests/corpus/<target>; a target without seeds is an error. New inputs go to
<BUILD_DIR>/corpus/<target> and are used again by the next run. The time is divided evenly; time that a target does not
use is divided among the remaining ones. A finding does not stop the run: it is reported with the file that reproduces
it, and the exit status is 1.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def has_seeds(name, corpus):
    folder = corpus / name
    return folder.is_dir() and any(folder.iterdir())


class Shares:
    """Divides the seconds of `jobs` workers among the targets that have not started."""

    def __init__(self, seconds, jobs, targets):
        self.left = seconds * jobs
        self.waiting = targets
        self.lock = threading.Lock()

    def take(self):
        with self.lock:
            share = max(1, int(self.left / self.waiting))
            self.waiting -= 1
            self.left -= share
            return share

    def give_back(self, seconds):
        with self.lock:
            self.left += seconds


def run_target(binary, build, corpus, shares):
    """(ok, number of runs, seconds, output, findings folder)"""
    share = shares.take()
    learned = build / "corpus" / binary.name
    learned.mkdir(parents=True, exist_ok=True)
    artifacts = build / "findings" / binary.name
    artifacts.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    run = subprocess.run(
        [str(binary), f"-max_total_time={share}", "-max_len=65536", "-timeout=25", "-rss_limit_mb=2048",
         "-print_final_stats=1", f"-artifact_prefix={artifacts}/", str(learned), str(corpus / binary.name)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    seconds = time.monotonic() - begun
    shares.give_back(share - seconds)
    runs = next((int(line.split()[-1]) for line in run.stdout.splitlines()
                 if line.startswith("stat::number_of_executed_units")), 0)
    return run.returncode == 0, runs, seconds, run.stdout, artifacts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("-j", "--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--corpus", type=pathlib.Path, default=ROOT / "tests" / "corpus", help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_intermixed_args()
    if options.jobs < 1 or options.seconds < 1:
        sys.exit("soak_fuzz: --jobs and --seconds must be at least 1")
    binaries = sorted((p for p in options.build.rglob("*_fuzz") if p.is_file() and os.access(p, os.X_OK)),
                      key=lambda p: p.name)
    if options.targets:
        binaries = [b for b in binaries if any(t in b.name for t in options.targets)]
    if not binaries:
        sys.exit(f"soak_fuzz: no fuzz targets under {options.build}")
    bare = [b.name for b in binaries if not has_seeds(b.name, options.corpus)]
    if bare:
        sys.exit(f"soak_fuzz: no seeds in {options.corpus} for {', '.join(bare)}")
    print(f"{len(binaries)} targets, {options.seconds} s, {options.jobs} at a time", flush=True)
    shares = Shares(options.seconds, options.jobs, len(binaries))
    begun = time.monotonic()
    failed, all_runs = [], 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        pending = {pool.submit(run_target, b, options.build, options.corpus, shares): b for b in binaries}
        for future in concurrent.futures.as_completed(pending):
            binary = pending[future]
            ok, runs, seconds, output, artifacts = future.result()
            all_runs += runs
            print(f"{'ok' if ok else 'FINDING':8}{binary.name:45}{runs:>12} runs {seconds:7.0f} s", flush=True)
            if not ok:
                failed.append(binary.name)
                print("\n".join(output.splitlines()[-60:]))
                print(f"reproduce with: {binary} {artifacts}/*", flush=True)
    print(f"{len(binaries)} targets, {all_runs} runs in {time.monotonic() - begun:.0f} s, "
          f"findings: {', '.join(failed) or 'none'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
