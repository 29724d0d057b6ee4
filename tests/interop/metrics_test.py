#!/usr/bin/env python3
"""metrics-server's own scraper, decoder and storage read a node: what `kubectl top` would show."""
import json
import pathlib
import subprocess
import sys

from go_peer import build

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from cluster import Cluster, skip_without_containers, wait_until  # noqa: E402

PODS = """apiVersion: v1
kind: Pod
metadata: {name: busy, namespace: default}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: burn
    image: localhost/busybox:latest
    command: ["sh", "-c", "while :; do :; done"]
    resources: {limits: {cpu: 300m, memory: 64Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: idle, namespace: default}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: sleep, image: "localhost/busybox:latest", command: ["sleep", "1000"]}]
"""


def main(drakkar, build_directory):
    skip_without_containers()
    peer = build("gometrics", build_directory)
    with Cluster(drakkar) as cluster:
        cluster.start()
        cluster.run("apply", "-f", "-", stdin=PODS)
        for name in ("busy", "idle"):
            wait_until(f"{name} runs", lambda name=name: (cluster.get("pod", name) or {}).get("status", {}).get("phase") == "Running")
        shown = json.loads(subprocess.run([peer, cluster.data / "admin.kubeconfig", "n1"], capture_output=True, text=True,
                                          check=True, timeout=60).stdout)
        print(shown)
        # Limited to 300 m; a machine that is busy may give it less.
        assert 50 <= shown["busy/burn"]["milliCPU"] <= 350, shown
        assert shown["idle/sleep"]["milliCPU"] <= 20, shown
        assert 0 < shown["idle/sleep"]["memory"] < 64 << 20, shown
        assert shown["node n1"]["milliCPU"] >= shown["busy/burn"]["milliCPU"] // 2, shown
        assert shown["node n1"]["memory"] > 16 << 20, shown


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
