#!/usr/bin/env python3
"""Runs the tests that docs/conformance names and prints a table per proposal.

A row is `| statement | section | binary: Suite.Name |`, or `ctest: NAME` for other tests. A row is green if its test exists,
ran and passed, otherwise red. Exits with 1 if a row is red.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def rows_of(path):
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if len(cells) == 3 and cells[0] != "statement" and not set(cells[0]) <= set("-|"):
            yield cells


def find_binary(build, name):
    matches = [p for p in build.rglob(name) if p.is_file() and os.access(p, os.X_OK)]
    return matches[0] if matches else None


def run(build, binary, tests):
    """Runs the named tests of one binary; returns {test: status}."""
    path = find_binary(build, binary)
    if path is None:
        return {test: "no such test binary" for test in tests}
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        subprocess.run([path, f"--gtest_filter={':'.join(tests)}", f"--gtest_output=json:{report.name}"],
                       cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        try:
            suites = json.loads(pathlib.Path(report.name).read_text())["testsuites"]
        except (ValueError, KeyError):
            return {test: "the binary did not finish" for test in tests}
    results = {}
    for suite in suites:
        for case in suite["testsuite"]:
            if case.get("failures"):
                status = "failed"
            elif case.get("result") != "COMPLETED":
                status = "did not run"
            else:
                status = "ok"
            results[f"{suite['name']}.{case['name']}"] = status
    answers = {}
    for test in tests:
        matching = [s for name, s in results.items() if pathlib.PurePath(name).match(test) or name == test]
        if "*" in test:
            import fnmatch
            matching = [s for name, s in results.items() if fnmatch.fnmatch(name, test)]
        bad = [s for s in matching if s != "ok"]
        answers[test] = "no such test" if not matching else (bad[0] if bad else "ok")
    return answers


def run_ctest(build, tests):
    """Tests by their ctest name: end to end, interop."""
    answers = {}
    for test in set(tests):
        output = subprocess.run(["ctest", "--test-dir", build, "-R", f"^{test}$"], capture_output=True, text=True,
                                check=False).stdout
        answers[test] = ("no such test" if "No tests were found" in output else
                         "did not run" if "Skipped" in output else
                         "ok" if "100% tests passed" in output else "failed")
    return answers


def main():
    build = ROOT / "build" / (sys.argv[1] if len(sys.argv) > 1 else "dev")
    red_total = 0
    for path in sorted((ROOT / "docs/conformance").glob("kep-*.md")):
        rows = list(rows_of(path))
        by_binary = {}
        for _, _, test in rows:
            binary, _, name = test.partition(": ")
            by_binary.setdefault(binary, []).append(name)
        results = {b: run_ctest(build, names) if b == "ctest" else run(build, b, names)
                   for b, names in by_binary.items()}
        green = 0
        print(f"\n{path.stem.upper()}")
        for statement, section, test in rows:
            binary, _, name = test.partition(": ")
            status = results[binary].get(name, "no such test")
            green += status == "ok"
            mark = "green" if status == "ok" else f"RED ({status})"
            print(f"  {mark:8} {statement}  [{section}]  {test}")
        red_total += len(rows) - green
        print(f"  {green} of {len(rows)} statements covered")
    return 1 if red_total else 0


if __name__ == "__main__":
    sys.exit(main())
