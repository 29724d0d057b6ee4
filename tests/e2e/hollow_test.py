#!/usr/bin/env python3
"""`drakkar cluster create --hollow`: nodes in one process, with a scheduler, controllers and an API server of their own. A Job
with devices completes on them, pods of a Deployment are ready, and deleting works. With a number as second argument, it makes
that many nodes and prints the memory of their process."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from cluster import ROOT, remove_work, wait_until

DRAKKAR = os.path.realpath(sys.argv[1])
NODES = int(sys.argv[2]) if len(sys.argv) > 2 else 30

WORK = """apiVersion: batch/v1
kind: Job
metadata: {name: work, namespace: default}
spec:
  completions: 20
  parallelism: 20
  template:
    metadata: {annotations: {hollow.drakkar.io/runs-for: 1s}}
    spec:
      restartPolicy: Never
      containers:
      - {name: c, image: "registry.example.com/any:1", resources: {claims: [{name: dev}]}}
      resourceClaims: [{name: dev, resourceClaimTemplateName: one-device}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: default}
spec:
  replicas: 10
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers:
      - name: c
        image: registry.example.com/any:1
        readinessProbe: {httpGet: {port: 80}}
        resources: {claims: [{name: dev}]}
      resourceClaims: [{name: dev, resourceClaimTemplateName: one-device}]
"""


def drakkar(*arguments, stdin=None, **environment):
    result = subprocess.run([DRAKKAR, *arguments], env=dict(os.environ, **environment), input=stdin, capture_output=True,
                            text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, f"drakkar {' '.join(arguments)}: {result.stdout}{result.stderr}"
    return result.stdout


def memory_mb(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) / 1e3


def main(work):
    directory = work / "cluster"
    begun = time.monotonic()
    created = drakkar("cluster", "create", f"--dir={directory}", f"--nodes={NODES}", "--devices=8", "--hollow", "--wait",
                      "--timeout=10m")
    print(f"{NODES} nodes are ready after {time.monotonic() - begun:.1f} s")
    kubeconfig = re.search(r"KUBECONFIG=(\S+)", created)[1]
    try:
        def items(kind):
            return json.loads(drakkar("get", kind, "-o", "json", KUBECONFIG=kubeconfig))["items"]

        for manifest in ("class.yaml", "claim-template.yaml"):
            drakkar("apply", "-f", str(ROOT / "examples/hello-device" / manifest), KUBECONFIG=kubeconfig)
        drakkar("apply", "-f", "-", stdin=WORK, KUBECONFIG=kubeconfig)
        wait_until("the Job is complete", lambda: items("jobs")[0].get("status", {}).get("succeeded") == 20, 60)
        wait_until("the Deployment is ready", lambda: items("deployments")[0].get("status", {}).get("readyReplicas") == 10, 60)
        running = [pod for pod in items("pods") if pod["status"]["phase"] == "Running"]
        assert len(running) == 10, running
        for pod in running:
            rows = pod["status"]["containerStatuses"][0]["allocatedResourcesStatus"]
            assert [r["health"] for row in rows for r in row["resources"]] == ["Healthy"], rows
        drakkar("delete", "deployment", "serve", KUBECONFIG=kubeconfig)
        drakkar("delete", "job", "work", KUBECONFIG=kubeconfig)
        wait_until("pods and claims are gone", lambda: not items("pods") and not items("resourceclaims"), 60)
        status = drakkar("cluster", "status", f"--dir={directory}")
        assert f"nodes ready: {NODES} of {NODES}" in status, status
        pid = int(re.search(r"^nodes: running, process (\d+)", status, re.M)[1])
        print(f"the process of {NODES} hollow nodes uses {memory_mb(pid):.0f} MB")
    finally:
        drakkar("cluster", "delete", f"--dir={directory}")
    assert not directory.exists()


if __name__ == "__main__":
    base = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-hollow-"))
    try:
        main(base)
    finally:
        remove_work(base)
