#!/usr/bin/env python3
"""Sums up the gtest results of a run and prints one line."""
import json
import pathlib
import sys


def main():
    passed = failed = skipped = 0
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
        report = json.loads(file.read_text())
        for suite in report.get("testsuites", []):
            for case in suite.get("testsuite", []):
                if case.get("failures"):
                    failed += 1
                    print(f"failed: {suite['name']}.{case['name']}")
                elif case.get("result") == "SKIPPED" or case.get("status") == "NOTRUN":
                    skipped += 1
                else:
                    passed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")


if __name__ == "__main__":
    main()
