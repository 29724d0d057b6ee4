#!/usr/bin/env python3
"""A node with a corrupt checkpoint does not start, but the rest of `drakkar up` keeps running."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from cluster import ROOT, Cluster, skip_without_containers, wait_until  # noqa: E402


def main():
    skip_without_containers()
    with Cluster(sys.argv[1]) as cluster:
        root = cluster.data / "kubelet"
        root.mkdir(parents=True)
        (root / "dra_manager_state").write_text('{"checksum": 1, "data": "torn')
        cluster.log = open(cluster.work / "up.log", "a")
        cluster.process = subprocess.Popen(
            [cluster.drakkar, "up", f"--data-dir={os.path.relpath(cluster.data, ROOT)}", f"--port={cluster.ports[0]}",
             f"--node-port={cluster.ports[1]}", "--node-name=n1"], cwd=ROOT, stdout=cluster.log, stderr=cluster.log)
        log = cluster.work / "up.log"
        wait_until("everything else is ready", lambda: "drakkar is ready" in log.read_text(), 60)
        said = [line for line in log.read_text().splitlines() if "node agent: " in line]
        assert len(said) == 1 and "dra_manager_state" in said[0] and "keep running" in said[0], said
        assert cluster.run("get", "namespaces", "-o", "name"), "the API answers"
        assert cluster.process.poll() is None
        cluster.stop()
        assert cluster.process.returncode == 0, cluster.process.returncode
        print("ok")


if __name__ == "__main__":
    main()
