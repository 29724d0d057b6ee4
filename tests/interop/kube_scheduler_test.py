#!/usr/bin/env python3
"""A stock kube-scheduler, as system:kube-scheduler, against `drakkar apiserver` and `drakkar controllers`: it
schedules pods with claims, without errors."""
import json
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "kube"))
from peers import KubePeers, certificate_for, find_program, wait_until  # noqa: E402
from cluster import ROOT, free_port  # noqa: E402


def pod(name, template=None, claim=None):
    source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    return json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"resourceClaims": [{"name": "dev", **source}],
                 "containers": [{"name": "c", "image": "none", "resources": {"claims": [{"name": "dev"}],
                                                                             "requests": {"cpu": "10m"}}}]}})


def main():
    drakkar, fabric, binary_dir = sys.argv[1:4]
    scheduler = find_program("kube-scheduler", binary_dir)
    with KubePeers(drakkar) as plane:
        plane.start("apiserver", "apiserver", f"--data-dir={plane.data}", f"--port={plane.port}")
        wait_until("the API server answers", lambda: plane.run("get", "namespaces", "-o", "name", check=False), 60)
        plane.start("controllers", "controllers", f"--kubeconfig={plane.kubeconfig}", "--secure-port=0")
        identity = certificate_for(plane, "system:kube-scheduler")
        plane.start("kube-scheduler", scheduler, f"--kubeconfig={identity}", f"--authentication-kubeconfig={identity}",
                    f"--authorization-kubeconfig={identity}", "--bind-address=127.0.0.1", f"--secure-port={free_port()}",
                    f"--cert-dir={plane.work}/kube-scheduler", "-v=2", ours=False)
        plane.apply(json.dumps({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"},
                       "capacity": {"cpu": "8", "memory": "8Gi", "pods": "110"},
                       "conditions": [{"type": "Ready", "status": "True"}]}}))
        plane.start("driver", "driver", f"--kubeconfig={plane.kubeconfig}", "--node-name=n1",
                    f"--registry-dir={plane.registry}", f"--plugin-dir={plane.work}/plugin", f"--cdi-dir={plane.cdi}")
        wait_until("devices are published", lambda: plane.run("get", "resourceslices", "-o", "name", check=False))
        for manifest in ("class", "claim-template"):
            plane.apply((ROOT / f"examples/hello-device/{manifest}.yaml").read_text())

        # As many pods as devices, and one more, which waits until one of them is deleted.
        slices = plane.get("resourceslices")["items"]
        count = sum(len(s["spec"].get("devices", [])) for s in slices)
        for i in range(count + 1):
            plane.apply(pod(f"p{i}", template="one-device"))

        def bound():
            return {p["metadata"]["name"] for p in plane.get("pods")["items"] if p["spec"].get("nodeName") == "n1"}
        wait_until(f"{count} pods are bound", lambda: len(bound()) == count, 60)
        waiting = f"p{({i for i in range(count + 1)} - {int(name[1:]) for name in bound()}).pop()}"
        wait_until("the last one is told why not", lambda: plane.events("FailedScheduling", waiting))
        holders = [c["status"]["reservedFor"][0]["name"] for c in plane.get("resourceclaims")["items"]
                   if c.get("status", {}).get("reservedFor")]
        assert sorted(holders) == sorted(bound()), (holders, bound())
        plane.run("delete", "pod", sorted(bound())[0], "--grace-period=0", "--force")
        wait_until("the last one is bound", lambda: waiting in bound(), 60)

        # Binding conditions: kube-scheduler polls every few seconds.
        plane.apply((ROOT / "examples/fabric/class.yaml").read_text())
        plane.start("fabric", os.path.realpath(fabric), "run", f"--kubeconfig={plane.kubeconfig}", "--attach-delay=300ms",
                    "--devices=1", ours=False)
        plane.apply(json.dumps({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": "fabric", "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "fabric.example.com"}}]}}}))
        plane.apply(pod("fabric", claim="fabric"))
        wait_until("the pod is bound once the device is attached", lambda: "fabric" in bound(), 60)

        log = plane.text("kube-scheduler")
        # An empty manifest is what the test gives it.
        complaints = [line for line in log.splitlines()
                      if re.match(r"[WEF]\d{4} ", line) and "manifest file is empty" not in line]
        assert not complaints, "\n".join(complaints)
        print(f"ok: {count + 2} pods with devices were scheduled by kube-scheduler")


if __name__ == "__main__":
    main()
