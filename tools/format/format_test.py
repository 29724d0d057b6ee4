#!/usr/bin/env python3
"""Fails if clang-format would change a source file. `./dev format` applies the changes."""
import concurrent.futures
import os
import shutil
import subprocess
import sys

FORMATTER = "clang-format-16"
SKIPPED = 77
FILES_PER_CALL = 40


def sources():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.cc", "*.h", "*.c"],
        check=True, capture_output=True).stdout.decode()
    return sorted(path for path in listed.split("\0") if path and os.path.exists(path))


def unformatted(paths):
    """The files among `paths` that the formatter would change."""
    result = subprocess.run([FORMATTER, "--dry-run", "-Werror", "--ferror-limit=1", *paths],
                            capture_output=True, text=True)
    if result.returncode == 0:
        return []
    return sorted({line.split(":")[0] for line in result.stderr.splitlines() if ": error:" in line})


def main():
    if not shutil.which(FORMATTER):
        print(f"skipped: {FORMATTER} is not installed (./dev setup)")
        return SKIPPED
    paths = sources()
    groups = [paths[i:i + FILES_PER_CALL] for i in range(0, len(paths), FILES_PER_CALL)]
    if sys.argv[1:] == ["--fix"]:
        check = lambda group: subprocess.run([FORMATTER, "-i", *group], check=True) and []
    else:
        check = unformatted
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bad = [path for found in pool.map(check, groups) for path in found]
    for path in bad:
        print(f"{path}: not formatted; run ./dev format")
    print(f"{len(paths)} files, {len(bad)} unformatted")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
