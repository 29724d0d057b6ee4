#!/usr/bin/env python3
"""`drakkar sanity` starts an API server and a driver: it passes for our drivers in C++ and C, including kills in
between, and fails for a program that is not a driver. It also passes for the driver of a cluster in use."""
import json
import pathlib
import subprocess
import sys

from cluster import SKIP, Cluster, skip_without_containers, wait_until

SLICE_OF_N2 = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "of-n2"},
               "spec": {"driver": "sim.drakkar.io", "nodeName": "n2",
                        "pool": {"name": "n2", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "far-0"}]}}
HOLDER = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: sim}}]}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: sim}
spec: {selectors: [{cel: {expression: 'device.driver == "sim.drakkar.io"'}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: holder, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "localhost/busybox:latest", command: [sleep, "1000"], resources: {claims: [{name: d}]}}
  resourceClaims: [{name: d, resourceClaimName: held}]
"""


def in_a_cluster(drakkar):
    """Against the driver of a running cluster, with another node's slice and a device in use."""
    with Cluster(drakkar) as cluster:
        cluster.start()
        cluster.run("apply", "-f", "-", stdin=HOLDER)
        wait_until("the pod runs", lambda: (cluster.get("pod", "holder") or {}).get("status", {}).get("phase") == "Running")
        cluster.run("apply", "-f", "-", stdin=json.dumps(SLICE_OF_N2))
        held = cluster.get("resourceclaim", "held")["status"]["allocation"]["devices"]["results"][0]["device"]
        plugins = cluster.data / "kubelet"
        flags = ["-o", "json", f"--kubeconfig={cluster.data / 'admin.kubeconfig'}", f"--cdi-dir={cluster.data / 'cdi'}"]
        registration = f"--driver-socket={plugins / 'plugins_registry/sim.drakkar.io-reg.sock'}"

        ambiguous = sanity(drakkar, *flags, registration)
        assert ambiguous.returncode == 1 and "slices for several nodes (n1, n2)" in ambiguous.stdout, ambiguous
        for socket in (registration, f"--driver-socket={plugins / 'plugins/sim.drakkar.io/dra.sock'}"):
            result = sanity(drakkar, *flags, "--node-name=n1", "--driver-name=sim.drakkar.io", socket)
            assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
            checks = {check["id"]: check for check in json.loads(result.stdout)["checks"]}
            assert checks["prepare.one"]["result"] == "pass", checks["prepare.one"]
            assert f"left alone: n1/{held}" in checks["slices.in-use"]["why"], checks["slices.in-use"]
        nameless = sanity(drakkar, *flags, "--node-name=n1", socket)
        assert "use --driver-name" in nameless.stdout, nameless.stdout

        assert cluster.get("pod", "holder")["status"]["phase"] == "Running"
        left = [claim["metadata"]["name"] for claim in cluster.list("resourceclaims")]
        assert left == ["held"], left
        assert [pod["metadata"]["name"] for pod in cluster.list("pods")] == ["holder"]


def sanity(drakkar, *arguments):
    return subprocess.run([drakkar, "sanity", "--timeout=10s", *arguments], capture_output=True, text=True,
                          check=False, timeout=120)


def main():
    drakkar, examples = sys.argv[1], pathlib.Path(sys.argv[2])
    flags = ["--kubeconfig={kubeconfig}", "--node-name={node}", "--registry-dir={registry}", "--cdi-dir={cdi}",
             "--pod-uid={pod-uid}"]
    drivers = {
        "sim.drakkar.io": [drakkar, "driver", *flags],
        "minimal.example.com": [examples / "driver-minimal", *flags],
        "c.example.com": [examples / "driver-c", *flags],
        "cnet.example.com": [examples / "driver-network-c", *flags, "--nri-socket=/nowhere/nri.sock",
                             "--enable-device-metadata"],
    }
    for name, command in drivers.items():
        result = sanity(drakkar, "-o", "json", "--", *map(str, command))
        assert result.returncode == 0, f"{name}: {result.stdout}\n{result.stderr}"
        report = json.loads(result.stdout)
        assert report["driver"] == name and report["failed"] == 0, report
        assert report["passed"] >= 20, report
        ids = {check["id"]: check["result"] for check in report["checks"]}
        assert ids["restart.prepared"] == "pass", ids
        assert ids["rolling.handover"] == ids["rolling.unprepare"] == "pass", ids
    table = sanity(drakkar, "--", *map(str, drivers["sim.drakkar.io"]))
    assert "prepare.concurrent" in table.stdout and "0 failed" in table.stdout, table.stdout
    without = sanity(drakkar, "--", *map(str, drivers["sim.drakkar.io"][:-1]))
    assert "the driver's command has no {pod-uid}" in without.stdout, without.stdout

    nothing = sanity(drakkar, "--timeout=1s", "--", "/bin/sleep", "30")
    assert nothing.returncode == 1 and "created no registration socket" in nothing.stderr, nothing.stderr
    ended = sanity(drakkar, "--", "/bin/true")
    assert ended.returncode == 1 and "exited before it registered" in ended.stderr, ended.stderr
    usage = sanity(drakkar, "--driver-socket=/nowhere.sock")
    assert usage.returncode == 1 and "--kubeconfig is required" in usage.stderr, usage.stderr
    try:
        skip_without_containers()
    except SystemExit as end:
        if end.code != SKIP:
            raise
    else:
        in_a_cluster(drakkar)
    print("ok: sanity on", ", ".join(drivers))


if __name__ == "__main__":
    main()
