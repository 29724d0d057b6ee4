#!/usr/bin/env python3
"""Every row of docs/conformance names a test that exists.

./dev conformance runs those tests; this check takes no build and notices a renamed test at once. The argument is the
build directory, whose CTestTestfile.cmake files list the programs.
"""
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASE = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.M)
PROGRAM = re.compile(r'^add_test\(\[?=?\[?"?([\w.-]+)', re.M)


def rows(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("|") and cells[0] != "statement" and not set(cells[0]) <= set("-|"):
            yield number, cells


def cases():
    found = set()
    for folder in ("src", "sdk", "tests", "cmd"):
        for pattern in ("*.cc", "*.h"):
            for path in (ROOT / folder).rglob(pattern):
                text = path.read_text(errors="replace")
                if "TEST" in text:
                    found |= {f"{suite}.{name}" for suite, name in CASE.findall(text)}
    return found


def main():
    build = pathlib.Path(sys.argv[1])
    programs = set()
    for listing in build.rglob("CTestTestfile.cmake"):
        programs |= set(PROGRAM.findall(listing.read_text()))
    known, problems, count = cases(), [], 0
    for path in sorted((ROOT / "docs/conformance").glob("kep-*.md")):
        for number, cells in rows(path):
            count += 1
            where = f"{path.relative_to(ROOT)}:{number}"
            test = re.fullmatch(r"([\w.-]+): (\S+)", cells[-1])
            if len(cells) != 3 or not test:
                problems.append(f"{where}: expected | statement | section | binary: Suite.Name |")
                continue
            program, name = test.groups()
            if program == "ctest":
                program, name = name, None
            if program not in programs:
                problems.append(f"{where}: no test program {program}")
            elif name:
                # "Values/Suite.Name/0" is the case Suite.Name.
                suite, _, case = name.partition(".")
                wanted = f"{suite.split('/')[-1]}.{case.split('/')[0]}"
                if not fnmatch.filter(known, wanted):
                    problems.append(f"{where}: no test {wanted}")
    print("\n".join(problems) or f"{count} rows name existing tests")
    raise SystemExit(1 if problems or count == 0 else 0)


if __name__ == "__main__":
    main()
