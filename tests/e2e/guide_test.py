#!/usr/bin/env python3
"""Runs a guide of docs/guides verbatim: writes its files and runs its commands in order."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from cluster import ROOT, SKIP, free_port, remove_work, skip_without_containers
from etcd import find_etcd

FILES = ("c", "cpp", "cmake", "yaml")
# What each guide's commands print.
EXPECTED = {"three-machines": ("one CA", "drakkar node --join https://127.0.1.", "machine-3   Ready", "\n42\n", "stopped"),
            "run-on-etcd": ("one CA", "\n42\n", "\n43\n", "stopped"),
            "replace-kube-apiserver": ("42 example.com/keep\n", "43 example.com/keep\n", "stopped"),
            "upgrade": ("same pod, container and device; after-upgrade ran",
                        "same pod, container and device; after-downgrade ran", "intact:", "stopped"),
            "write-a-driver": ("reading by lamp-1", "7 watts", "0 failed"), "write-a-driver-in-c": ("rolling.handover", "0 failed"),
            "backup-and-restore": ("intact: backup of", "restored ", "the store before is now", "\n42", "nothing to repair",
                                   "objects in etcd at revision", "on etcd: 42", "embedded: 42", "migrated and verified",
                                   "stopped"),
            "use-device-metadata": (
                "-device vfio-pci,host=0000:81:00.1\n"
                "-device vfio-pci,sysfsdev=/sys/bus/mdev/devices/c2a8e1f0-6a0e-4f3b-9d52-0f4f4f0f6e11\n",
                "-a 0000:3b:00.0 # net0 mac=02:00:00:00:00:00 mtu=9000 ip=192.0.2.10/24\n"
                "-a 0000:3b:00.1 # net1 mac=02:00:00:00:00:01 mtu=9000 ip=192.0.2.11/24\n")}


def main():
    guide = sys.argv[2]
    on_etcd = ("run-on-etcd", "replace-kube-apiserver", "three-machines", "backup-and-restore", "upgrade")
    if guide in on_etcd:
        find_etcd()
    if guide in ("three-machines", "upgrade"):
        skip_without_containers()
    elif guide not in on_etcd and guide != "write-a-driver-in-c":
        skip_without_containers()
    if guide == "replace-kube-apiserver" and not (ROOT / "build/peers/interop/kube/kube-apiserver").exists():
        print("skipped: kube-apiserver is not built; run ./dev peers kube")
        raise SystemExit(SKIP)
    text = (ROOT / f"docs/guides/{guide}.md").read_text()
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-guide-"))
    environment = dict(os.environ, BUILD=sys.argv[1], WORK=str(work), PORT=str(free_port()), NODE_PORT=str(free_port()),
                       ETCD_PORT=str(free_port()), PEER_PORT=str(free_port()), SERVING_PORT=str(free_port()))
    environment.pop("KUBECONFIG", None)
    script = "set -eu\n"
    for language, name, body in re.findall(r"^```(\w+) (\S+)\n(.*?)^```$", text, re.S | re.M):
        if language in FILES:
            (work / "project").mkdir(exist_ok=True)
            (work / "project" / name).write_text(body)
        else:
            script += f"echo '== {name}'\n{body}"
    try:
        result = subprocess.run(["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True,
                                check=False, timeout=280)
        assert result.returncode == 0, f"{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
        for expected in EXPECTED[guide]:
            assert expected in result.stdout, result.stdout[-2000:]
    finally:
        # etcd last: the others would wait for it.
        for path in sorted(work.glob("*.pid"), key=lambda path: path.name.startswith("etcd")):
            pid = int(path.read_text())
            try:
                os.kill(pid, signal.SIGTERM)
                for _ in range(200):
                    os.kill(pid, 0)
                    subprocess.run(["sleep", "0.05"], check=True)
            except ProcessLookupError:
                pass
        remove_work(work)
    print(f"ok: {guide} works as written")


if __name__ == "__main__":
    main()
