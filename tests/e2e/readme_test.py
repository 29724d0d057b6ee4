#!/usr/bin/env python3
"""Pastes the README's "Use it" block into a shell, as a reader would.

It runs in separate mount and network namespaces, so that /var/lib/drakkar and port 6443 are free. It skips the build
and installation: the binary under test is in PATH instead.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cluster  # noqa: E402


def block_that_runs_a_pod():
    text = (cluster.ROOT / "README.md").read_text()
    section = text[text.index("## Use it"):]
    blocks = re.findall(r"```\n(.*?)```", section, re.S)
    return next(block for block in blocks if "drakkar up" in block)


PRELUDE = """
set -m
mount -t tmpfs tmpfs /var/lib/drakkar
ip link set lo up
PATH={path}:$PATH
cd {copy}
"""
# The pod must still run when the reader looks; then stop everything through the shell's job.
POSTLUDE = """
echo "--- afterwards"
drakkar get pod hello-device
drakkar delete pod hello-device
kill %1
wait %1
"""


def main():
    cluster.skip_without_containers()
    if not shutil.which("unshare") or not shutil.which("ip"):
        print("skipped: needs unshare and ip")
        return cluster.SKIP
    had_folder = os.path.exists("/var/lib/drakkar")
    os.makedirs("/var/lib/drakkar", exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="drakkar-readme-") as work:
        binaries = pathlib.Path(work, "bin")
        binaries.mkdir()
        (binaries / "drakkar").symlink_to(os.path.realpath(sys.argv[1]))
        copy = pathlib.Path(work, "copy")
        for folder in ("examples", "tools"):
            shutil.copytree(cluster.ROOT / folder, copy / folder)
        script = PRELUDE.format(path=binaries, copy=copy) + block_that_runs_a_pod() + POSTLUDE
        try:
            result = subprocess.run(["unshare", "--mount", "--net", "bash", "-c", script],
                                    capture_output=True, text=True, timeout=150, check=False)
        finally:
            if not had_folder:
                os.rmdir("/var/lib/drakkar")
        log = copy / "drakkar.log"
        output = result.stdout + result.stderr
        print(output)
        for wanted in (r"pod/hello-device condition met", r"hello-device +1/1 +Running",
                       r"sim-0", r"hello from sim-", r"--- afterwards\n.*\nhello-device +1/1 +Running"):
            if not re.search(wanted, output):
                print(f"the block did not show: {wanted}\n{log.read_text()[-3000:] if log.exists() else ''}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
