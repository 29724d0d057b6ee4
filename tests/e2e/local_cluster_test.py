#!/usr/bin/env python3
"""`drakkar cluster create|status|delete`, `drakkar up --separate-processes`, `drakkar down` and the systemd units: what
they start works, only a killed component is restarted, and nothing is left behind."""
import configparser
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

from cluster import ROOT, Cluster, free_port, remove_work, skip_without_containers, wait_until

DRAKKAR = os.path.realpath(sys.argv[1])


def drakkar(*arguments, check=True, **environment):
    result = subprocess.run([DRAKKAR, *arguments], env=dict(os.environ, **environment), capture_output=True, text=True,
                            check=False, cwd=ROOT)
    assert not check or result.returncode == 0, f"drakkar {' '.join(arguments)}: {result.stdout}{result.stderr}"
    return result


def processes_of(directory):
    """PIDs with the directory on their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if str(directory) in (entry / "cmdline").read_bytes().decode(errors="replace"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def cgroups_of(ids):
    return [path for path in subprocess.run(["find", "/sys/fs/cgroup", "-type", "d"], capture_output=True, text=True,
                                            check=False).stdout.splitlines() if any(each in path for each in ids)]


def test_cluster(work):
    skip_without_containers()
    directory = work / "cluster"
    created = drakkar("cluster", "create", f"--dir={directory}", "--nodes=2", "--devices=3", "--wait").stdout
    kubeconfig = re.search(r"KUBECONFIG=(\S+)", created)[1]
    nodes = drakkar("get", "nodes", "-o", "name", KUBECONFIG=kubeconfig).stdout.split()
    assert sorted(nodes) == ["node/node-1", "node/node-2"], nodes
    devices = drakkar("get", "devices", "-o", "name", KUBECONFIG=kubeconfig).stdout.split()
    assert len(devices) == 6, devices
    status = drakkar("cluster", "status", f"--dir={directory}").stdout
    assert "nodes ready: 2 of 2" in status and "scheduler: running" in status, status
    again = drakkar("cluster", "create", f"--dir={directory}", check=False)
    assert again.returncode == 1 and "delete it first" in again.stderr, again.stderr
    assert (directory / "logs" / "apiserver.log").stat().st_size > 0
    pid = int(re.search(r"scheduler: running, process (\d+)", status)[1])
    os.kill(pid, signal.SIGKILL)
    wait_until("status shows it", lambda: drakkar("cluster", "status", f"--dir={directory}", check=False).returncode == 1)
    drakkar("cluster", "delete", f"--dir={directory}")
    assert not directory.exists()
    assert not processes_of(directory), processes_of(directory)
    assert str(directory) not in pathlib.Path("/proc/mounts").read_text()
    refused = drakkar("cluster", "delete", f"--dir={work}", check=False)
    assert refused.returncode == 1 and work.exists(), "deleted a directory that is no cluster"


POD = """apiVersion: v1
kind: Pod
metadata: {name: stays}
spec:
  containers:
  - {name: c, image: "localhost/busybox:latest", command: [sleep, "600"]}
"""


def test_down(_work):
    skip_without_containers()
    cluster = Cluster(DRAKKAR)
    try:
        cluster.start()
        cluster.run("apply", "-f", "-", stdin=POD)
        wait_until("the pod runs", lambda: (cluster.get("pod", "stays") or {}).get("status", {}).get("phase") == "Running")
        container = cluster.get("pod", "stays")["status"]["containerStatuses"][0]["containerID"].split("//")[1]
        assert cgroups_of([container]), "the test looks for cgroups in the wrong place"
        refused = drakkar("down", f"--data-dir={cluster.data}", "--delete-data", check=False)
        assert refused.returncode == 1 and "use --stop" in refused.stderr, refused.stderr
        down = drakkar("down", f"--data-dir={cluster.data}", "--stop").stdout
        assert "stopped drakkar" in down and "removed 1 pod" in down, down
        wait_until("up has ended", lambda: cluster.process.poll() is not None)
        assert not cluster.processes("conmon"), "a container is left"
        assert str(cluster.work) not in pathlib.Path("/proc/mounts").read_text(), "a mount is left"
        assert not cgroups_of([container]), "a cgroup is left"
        assert (cluster.data / "store" / "store.db").exists(), "data was deleted without being asked"
        drakkar("down", f"--data-dir={cluster.data}", "--delete-data")
        assert not cluster.data.exists()
        assert "no node has run pods" in drakkar("down", f"--data-dir={cluster.data}").stdout
    finally:
        cluster.stop()
        remove_work(cluster.work)


def test_separate(_work):
    skip_without_containers()
    cluster = Cluster(DRAKKAR, "--separate-processes", f"--scheduler-port={free_port()}",
                      f"--controllers-port={free_port()}")
    try:
        cluster.start()

        def pid_of(component):
            return next((pid for pid, words in cluster.processes("drakkar") if words[1] == component), None)
        server = wait_until("the API server runs", lambda: pid_of("apiserver"))
        for component in ("scheduler", "controllers", "node", "driver"):
            old = wait_until(f"{component} runs", lambda c=component: pid_of(c))
            os.kill(old, signal.SIGKILL)
            wait_until(f"{component} is restarted", lambda c=component, o=old: pid_of(c) not in (None, o))
            assert pid_of("apiserver") == server, f"the end of {component} took the API server with it"
        log = (cluster.work / "up.log").read_text()
        assert log.count("a component ended; restarting it") == 4 and "memory" in log, log[-2000:]
        cluster.run("apply", "-f", "-", stdin=POD)
        wait_until("a pod runs", lambda: (cluster.get("pod", "stays") or {}).get("status", {}).get("phase") == "Running", 60)
        # Each controller requests tokens for an account of its own, when it has something to do.
        wait_until("the controllers have accounts", lambda: "generic-garbage-collector" in
                   cluster.run("get", "serviceaccounts", "-n", "kube-system", "-o", "name"))
        os.kill(server, signal.SIGKILL)
        wait_until("the API server is restarted", lambda: pid_of("apiserver") not in (None, server))
        wait_until("and serves", lambda: cluster.get("pod", "stays"))
        drakkar("down", f"--data-dir={cluster.data}", "--stop")
        wait_until("up has ended", lambda: cluster.process.poll() is not None)
        assert not cluster.processes("drakkar"), cluster.processes("drakkar")
        assert not cluster.processes("conmon"), "a container is left"
    finally:
        cluster.stop()
        remove_work(cluster.work)


def test_units(work):
    """Every unit runs a command that exists with flags that it has, and the API server's starts with them."""
    units = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
    assert len(units) == 5, units
    for unit in units:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.optionxform = str
        parser.read(unit)
        program, command, flags = shlex.split(parser["Service"]["ExecStart"])
        assert program == "/usr/local/bin/drakkar" and flags == "$FLAGS", parser["Service"]["ExecStart"]
        assert parser["Service"]["Restart"] == "always"
        configuration = pathlib.Path(parser["Service"]["EnvironmentFile"]).name
        text = (ROOT / "deploy" / "systemd" / configuration).read_text()
        words = shlex.split(re.search(r'^FLAGS="(.*)"$', text, re.M)[1])
        help_text = drakkar(command, "--help").stdout
        for word in words:
            assert word.split("=")[0] in help_text, f"{configuration}: {word}"
        if shutil.which("systemd-analyze"):
            copy = work / unit.name
            copy.write_text(unit.read_text().replace("/usr/local/bin/drakkar", DRAKKAR))
            verified = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
            assert "Unknown" not in verified.stderr, verified.stderr


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-local-"))
    try:
        {"cluster": test_cluster, "down": test_down, "separate": test_separate, "units": test_units}[sys.argv[2]](work)
    finally:
        if (work / "cluster").exists():
            drakkar("cluster", "delete", f"--dir={work / 'cluster'}", check=False)
        remove_work(work)
    print(f"ok: {sys.argv[2]}")


if __name__ == "__main__":
    main()
