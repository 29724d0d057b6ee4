#!/usr/bin/env python3
"""The dashboard reads a stock kube-apiserver, as its administrator and as a user with few permissions."""
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "kube"))
from peers import KubeServer, find_etcd, find_program, write_kubeconfig  # noqa: E402
from cluster import wait_until  # noqa: E402

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1"}}
SLICE = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "gpu-1"}, "spec": {
    "driver": "gpu.example.com", "nodeName": "gpu-1", "pool": {"name": "gpu-1", "generation": 1, "resourceSliceCount": 1},
    "devices": [{"name": f"gpu-{i}"} for i in range(3)]}}
CLAIM = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "train", "namespace": "default"},
         "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}}
ALLOCATION = {"status": {"allocation": {"devices": {"results": [
    {"request": "gpu", "driver": "gpu.example.com", "pool": "gpu-1", "device": "gpu-1"}]}}}}


class Page:
    """What a browser would read."""

    def __init__(self, drakkar, kubeconfig):
        self.process = subprocess.Popen([drakkar, "dashboard", f"--kubeconfig={kubeconfig}"], stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        url = self.process.stdout.readline().strip()
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\w+)", url)
        assert match, f"no URL but {url!r}"
        self.port, self.token = int(match[1]), match[2]
        self.stream = self.get("/api/stream")
        self.state = {}

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        return connection.getresponse()

    def next(self):
        """Takes the next message of the stream."""
        while True:
            line = self.stream.readline().decode()
            if line.startswith("data: "):
                self.state.update(json.loads(line[6:]))
                return self.state

    def wait_for_counts(self, counts):
        wait_until(f"the page counts {counts}", lambda: self.next()["counts"] == counts)

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        assert self.process.returncode == 0, self.process.returncode


def check_administrator(kube, drakkar):
    page = Page(drakkar, kube.kubeconfig)
    page.wait_for_counts({})
    kube.api("POST", "/api/v1/nodes", NODE)
    kube.api("PATCH", "/api/v1/nodes/gpu-1/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
             "application/merge-patch+json")
    kube.api("POST", "/apis/resource.k8s.io/v1/resourceslices", SLICE)
    page.wait_for_counts({"F": 3})
    kube.api("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", CLAIM)
    kube.api("PATCH", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/train/status", ALLOCATION,
             "application/merge-patch+json")
    page.wait_for_counts({"F": 2, "H": 1})
    claim = json.load(page.get("/api/claim?namespace=default&name=train"))
    assert [entry["what"] for entry in claim["timeline"]][:2] == ["created", "allocated"], claim
    why = json.load(page.get("/api/why?kind=claim&namespace=default&name=train"))
    assert why["devices"] == ["gpu.example.com/gpu-1/gpu-1"], why
    page.close()
    print("ok: the page follows a kube-apiserver")


def check_viewer(kube, drakkar):
    """A user who may list slices, and claims of one namespace, sees those and a note about what is left out."""
    kube.api("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {
        "metadata": {"name": "sees-slices"}, "rules": [
            {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["list", "watch"]}]})
    kube.api("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "sees-slices"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                                                         "name": "sees-slices"},
        "subjects": [{"kind": "Group", "name": "viewers", "apiGroup": "rbac.authorization.k8s.io"}]})
    kube.api("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", {
        "metadata": {"name": "sees-claims"}, "rules": [
            {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["list", "watch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]})
    kube.api("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {
        "metadata": {"name": "sees-claims"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "sees-claims"},
        "subjects": [{"kind": "Group", "name": "viewers", "apiGroup": "rbac.authorization.k8s.io"}]})
    kubeconfig = kube.work / "viewer.kubeconfig"
    write_kubeconfig(kubeconfig, f"https://127.0.0.1:{kube.port}", kube.pki / "ca.crt",
                     f'client-certificate: "{kube.pki}/viewer.crt", client-key: "{kube.pki}/viewer.key"')
    subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "viewer.key",
                    "-out", "viewer.csr", "-subj", "/O=viewers/CN=ann"], cwd=kube.pki, check=True, capture_output=True)
    subprocess.run(["openssl", "x509", "-req", "-in", "viewer.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                    "-out", "viewer.crt", "-days", "2"], cwd=kube.pki, check=True, capture_output=True)
    page = Page(drakkar, kubeconfig)
    page.wait_for_counts({"F": 2, "H": 1})
    notes = " ".join(page.state["notes"])
    assert "you may not list nodes" in notes and "in namespace default only" in notes, notes
    assert page.state["namespace"] == "default", page.state
    page.close()
    # A user who may read nothing gets one sentence instead of an empty page.
    write_kubeconfig(kubeconfig, f"https://127.0.0.1:{kube.port}", kube.pki / "ca.crt", 'token: "wrong"')
    refused = subprocess.run([drakkar, "dashboard", f"--kubeconfig={kubeconfig}"], capture_output=True, text=True, timeout=30, check=False)
    assert refused.returncode == 1 and len(refused.stderr.strip().splitlines()) == 1, refused
    print(f"ok: a viewer sees what they may see; a stranger gets: {refused.stderr.strip()}")


def main():
    drakkar = os.path.realpath(sys.argv[1])
    with KubeServer(drakkar, find_program("kube-apiserver", sys.argv[2]), find_etcd()) as kube:
        kube.start_kube()
        check_administrator(kube, drakkar)
        check_viewer(kube, drakkar)


if __name__ == "__main__":
    main()
