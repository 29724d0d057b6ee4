#!/usr/bin/env python3
"""Without npm or its registry a build gets a page that says so, unless the real one is required."""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2] / "web/dashboard"


def build(work, mode, path):
    output = pathlib.Path(work) / "page_files.cc"
    result = subprocess.run([sys.executable, HERE / "build_page.py", f"--source={SOURCE}", f"--work={work}/web",
                             f"--output={output}", f"--mode={mode}"], env={"PATH": path}, capture_output=True, text=True,
                            check=False)
    return result, output


def expect(what, truth):
    if not truth:
        raise AssertionError(what)
    print(f"ok: {what}")


def main():
    with tempfile.TemporaryDirectory() as work:
        result, output = build(work, "AUTO", work)
        expect("a build without npm succeeds", result.returncode == 0)
        expect("it warns", "no dashboard page" in result.stderr)
        expect("the page says how to build it", "./dev setup" in output.read_text())
        expect("the next ./dev build tries again", output.with_suffix(".missing").exists())
        result, _ = build(work, "ON", work)
        expect("a build that needs the page fails", result.returncode == 1 and "npm is not installed" in result.stderr)
        result, output = build(work, "OFF", work)
        expect("a build without the page does not try again", result.returncode == 0 and not output.with_suffix(".missing").exists())
        # A program that behaves like npm without a network.
        for name in ("npm", "node"):
            (pathlib.Path(work) / name).write_text("#!/bin/sh\necho 'network <down>' >&2\nexit 1\n")
            os.chmod(pathlib.Path(work) / name, 0o755)
        result, output = build(work, "AUTO", f"{work}:/usr/bin:/bin")
        expect("a build without the registry succeeds", result.returncode == 0)
        expect("the page has the reason, escaped", "network &lt;down>" in output.read_text())
    lock = (SOURCE / "package-lock.json").read_text()
    expect("the lock file names no registry", "resolved" not in lock and "http" not in lock.replace("https://opencollective", ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
