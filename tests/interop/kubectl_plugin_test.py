#!/usr/bin/env python3
"""`kubectl drakkar ...` against a stock kube-apiserver that knows nothing about Drakkar: the plugin answers from what it
reads, and writes nothing.

usage: kubectl_plugin_test.py DRAKKAR BUILD_DIRECTORY
"""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "kube"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peers import KubeServer, find_etcd, find_program  # noqa: E402
import go_peer  # noqa: E402

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"


def claim(name, count):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [
                {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": count}}]}}}


def pod(name, claim_name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": {
        "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "none"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim_name}]}}


def fill(kube):
    kube.api("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1"}})
    kube.api("PATCH", "/api/v1/nodes/gpu-1", {"spec": {"taints": None}}, "application/merge-patch+json")
    kube.api("PATCH", "/api/v1/nodes/gpu-1/status", {"status": {
        "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}, "capacity": {"cpu": "8", "memory": "8Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True"}]}}, "application/merge-patch+json")
    # No controller runs that would create it.
    kube.api("POST", "/api/v1/namespaces/default/serviceaccounts", {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    kube.api("POST", f"{GROUP}/deviceclasses", {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.example.com"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}})
    kube.api("POST", f"{GROUP}/resourceslices", {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "gpu-1"}, "spec": {
            "driver": "gpu.example.com", "nodeName": "gpu-1",
            "pool": {"name": "gpu-1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{i}"} for i in range(3)]}})
    for name, count in (("held", 2), ("wanted", 2)):
        kube.api("POST", CLAIMS, claim(name, count))
        kube.api("POST", "/api/v1/namespaces/default/pods", pod(name, name))
    holder = kube.api("GET", "/api/v1/namespaces/default/pods/held")
    kube.api("POST", "/api/v1/namespaces/default/pods/held/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "held"}, "target": {"kind": "Node", "name": "gpu-1"}})
    kube.api("PATCH", f"{CLAIMS}/held/status", {"status": {
        "allocation": {"devices": {"results": [
            {"request": "gpu", "driver": "gpu.example.com", "pool": "gpu-1", "device": f"gpu-{i}"} for i in range(2)]}},
        "reservedFor": [{"resource": "pods", "name": "held", "uid": holder["metadata"]["uid"]}]}},
        "application/merge-patch+json")
    # What a node reports once the claim is prepared.
    kube.api("PATCH", "/api/v1/namespaces/default/pods/held/status", {"status": {"phase": "Running"}},
             "application/merge-patch+json")


def main():
    drakkar = os.path.realpath(sys.argv[1])
    kubectl = go_peer.build("kubectl", sys.argv[2])
    with KubeServer(drakkar, find_program("kube-apiserver", sys.argv[2]), find_etcd()) as kube:
        kube.start_kube()
        fill(kube)
        plugins = kube.work / "bin"
        plugins.mkdir()
        (plugins / "kubectl-drakkar").symlink_to(drakkar)
        before = json.dumps([kube.api("GET", path)["items"] for path in ("/api/v1/pods", CLAIMS, f"{GROUP}/resourceslices")])

        def ask(*words, code=0):
            done = subprocess.run([kubectl, "drakkar", *words], capture_output=True, text=True, timeout=60, check=False,
                                  env={"KUBECONFIG": str(kube.kubeconfig), "HOME": str(kube.work),
                                       "PATH": f"{plugins}:{os.environ['PATH']}"})
            assert done.returncode == code, f"kubectl drakkar {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
            if "json" not in words:
                assert all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout
            return done.stdout + done.stderr

        said = " ".join(ask("why", "pod", "wanted", code=1).split())
        assert "pod default/wanted: 0 of 1 node: 1 short by 1 device; closest is gpu-1, short by 1, held by default/held" in said, said
        assert "end pod default/held" in said and "ask for 1 device" in said, said
        assert json.loads(ask("why", "pod", "wanted", "-o", "json", code=1))["fits"] is False
        said = " ".join(ask("why", "pod", "held").split())
        assert "is on node gpu-1 with devices gpu-0, gpu-1" in said, said
        assert "gpu.example.com 3 1 2" in " ".join(ask("free").split()), ask("free")
        assert "default/held" in ask("who", "gpu-0")
        assert "default/held" in ask("top", "devices", "--count", "1")
        assert "gpu-2" in ask("get", "devices", "--field-selector", "state=Free")
        # The certificates of this test are valid for two days.
        assert "CA of the kubeconfig: expires in" in ask("doctor", "--ask-nodes=false", code=1)
        ask("why", "pod", "nobody", code=2)
        assert "unknown command" in ask("delete", "pod", "wanted", code=2), "the plugin only reads"
        after = json.dumps([kube.api("GET", path)["items"] for path in ("/api/v1/pods", CLAIMS, f"{GROUP}/resourceslices")])
        assert before == after, "the plugin has written something"
        print("ok: kubectl drakkar answers on a stock kube-apiserver")


if __name__ == "__main__":
    main()
