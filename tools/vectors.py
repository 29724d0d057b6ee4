#!/usr/bin/env python3
"""Runs every test that reads conformance vectors and prints one line per area.

Tests print `AREA: N passed, N failed, N listed deviations`; this collects those lines from all test
binaries that are named *vectors_test or whose tests are named *Vector* or CelSpec*. Areas given as arguments limit what is printed.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINE = re.compile(r"^([a-z][a-z0-9-]*): (\d+) passed, (\d+) failed, (\d+) listed deviations$")


def main():
    build = ROOT / "build" / sys.argv[1]
    wanted = set(sys.argv[2:])
    vectors = pathlib.Path(os.environ.get("DRAKKAR_VECTORS", ROOT / "../shared/vectors"))
    if not vectors.is_dir():
        print(f"no vectors in {vectors}; set DRAKKAR_VECTORS", file=sys.stderr)
        return 1
    environment = dict(os.environ, DRAKKAR_VECTORS=str(vectors.resolve()))
    totals, broken = {}, []
    binaries = sorted(p for p in build.rglob("*_test") if p.is_file() and os.access(p, os.X_OK))
    for binary in binaries:
        chosen = "*" if binary.name.endswith("vectors_test") else "*Vector*:CelSpec*"
        listed = subprocess.run([binary, "--gtest_list_tests", f"--gtest_filter={chosen}"],
                                capture_output=True, text=True, cwd=ROOT, check=False).stdout
        if len(listed.splitlines()) < 2:
            continue
        run = subprocess.run([binary, f"--gtest_filter={chosen}"], capture_output=True, text=True,
                             cwd=ROOT, env=environment, check=False)
        if run.returncode != 0:
            broken.append(binary.name)
        for line in run.stdout.splitlines():
            match = LINE.match(line.strip())
            if match:
                area, counts = match.group(1), [int(n) for n in match.groups()[1:]]
                old = totals.setdefault(area, [0, 0, 0])
                totals[area] = [a + b for a, b in zip(old, counts)]
    failed = 0
    for area, (passed, bad, deviations) in sorted(totals.items()):
        if wanted and area not in wanted:
            continue
        failed += bad
        print(f"{area}: {passed} passed, {bad} failed, {deviations} listed deviations")
    for missing in sorted(wanted - set(totals)):
        print(f"{missing}: no test reads these vectors")
        failed += 1
    for name in broken:
        print(f"(not all tests of {name} passed)", file=sys.stderr)
    return 1 if failed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
