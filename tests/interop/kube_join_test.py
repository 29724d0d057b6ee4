#!/usr/bin/env python3
"""Joining with programs of others: our node joins a kube-apiserver with a kube-controller-manager, and a kubelet
bootstraps its client and serving certificates at our API server."""
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "kube"), str(HERE)]
import go_peer  # noqa: E402
from peers import KubePeers, KubeServer, find_etcd, find_program, write_kubeconfig  # noqa: E402
from cluster import free_port, wait_until  # noqa: E402

CSR = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def is_ready(peers, name):
    return any(c["type"] == "Ready" and c["status"] == "True"
               for c in (peers.get("node", name) or {}).get("status", {}).get("conditions", []))


def prepare_like_kubeadm(kube):
    """What `kubeadm init` creates for machines that join."""
    reference = lambda kind, name: {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subject = lambda kind, name: [{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}]
    roles = "system:certificates.k8s.io:certificatesigningrequests"
    for name, role, group in (("kubelet-bootstrap", "system:node-bootstrapper", "system:bootstrappers"),
                              ("node-autoapprove-bootstrap", f"{roles}:nodeclient", "system:bootstrappers"),
                              ("node-autoapprove-rotation", f"{roles}:selfnodeclient", "system:nodes")):
        kube.api("POST", f"{RBAC}/clusterrolebindings", {
            "metadata": {"name": name}, "roleRef": reference("ClusterRole", role), "subjects": subject("Group", group)})
    ca = subprocess.run(["base64", "-w0", kube.pki / "ca.crt"], check=True, capture_output=True, text=True).stdout
    text = f"apiVersion: v1\nkind: Config\nclusters:\n- name: ''\n  cluster:\n    server: https://127.0.0.1:{kube.port}\n" \
           f"    certificate-authority-data: {ca}\n"
    public = "/api/v1/namespaces/kube-public"
    wait_until("kube-public exists", lambda: "kube-public" in kube.run("get", "namespaces", "-o", "name"))
    kube.api("POST", f"{public}/configmaps", {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": text}})
    kube.api("POST", f"{RBAC}/namespaces/kube-public/roles", {"metadata": {"name": "cluster-info"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"], "verbs": ["get"]}]})
    kube.api("POST", f"{RBAC}/namespaces/kube-public/rolebindings", {
        "metadata": {"name": "cluster-info"}, "roleRef": reference("Role", "cluster-info"),
        "subjects": subject("User", "system:anonymous")})


def check_our_node(drakkar, binary_dir):
    apiserver, manager = (find_program(name, binary_dir) for name in ("kube-apiserver", "kube-controller-manager"))
    with KubeServer(drakkar, apiserver, find_etcd()) as kube:
        kube.start_kube("--enable-bootstrap-token-auth")
        kube.start("kube-controller-manager", manager, f"--kubeconfig={kube.kubeconfig}", "--leader-elect=false",
                   "--controllers=*,bootstrapsigner,tokencleaner", "--bind-address=127.0.0.1", f"--secure-port={free_port()}",
                   f"--cluster-signing-cert-file={kube.pki}/ca.crt", f"--cluster-signing-key-file={kube.pki}/ca.key",
                   f"--cert-dir={kube.work}/kcm", ours=False)
        prepare_like_kubeadm(kube)
        command = kube.run("token", "create", "--print-join-command").split()
        token = command[command.index("--token") + 1]
        wait_until("kube-controller-manager signs cluster-info", lambda: f"jws-kubeconfig-{token[:6]}" in kube.api(
            "GET", "/api/v1/namespaces/kube-public/configmaps/cluster-info")["data"])
        kube.start("node", *command[1:], f"--data-dir={kube.node_data}", "--node-name=n1", f"--port={kube.node_port}",
                   "--pod-network=host")
        wait_until("our node is ready", lambda: is_ready(kube, "n1"), 60)
        # Kubernetes approves no serving certificates, so the administrator does.
        pending = wait_until("it asks for a serving certificate", lambda: [
            r for r in kube.api("GET", CSR)["items"] if r["spec"]["signerName"] == "kubernetes.io/kubelet-serving"])[0]
        assert pending["spec"]["username"] == "system:node:n1", pending
        assert not (kube.node_data / "pki/node-serving.pem").exists()
        pending.setdefault("status", {})["conditions"] = [{"type": "Approved", "status": "True", "reason": "Test", "message": "by hand"}]
        kube.api("PUT", f"{CSR}/{pending['metadata']['name']}/approval", pending)
        wait_until("it has the serving certificate", (kube.node_data / "pki/node-serving.pem").exists, 30)
        # Without the token.
        kube.stop("node")
        kube.run("token", "delete", token)
        kube.start("node-again", "node", f"--data-dir={kube.node_data}", "--node-name=n1", f"--port={kube.node_port}",
                   "--pod-network=host")
        wait_until("our node is ready again", lambda: is_ready(kube, "n1"), 60)
    print("ok: our node joins a kube-apiserver")


KUBELET = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: {port}
healthzPort: 0
readOnlyPort: 0
authentication: {{x509: {{clientCAFile: {ca}}}}}
rotateCertificates: true
serverTLSBootstrap: true
failCgroupV1: false
containerRuntimeEndpoint: unix://{socket}
failSwapOn: false
cgroupsPerQOS: false
cgroupDriver: cgroupfs
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
podLogsDir: {work}/pod-logs
"""


def check_kubelet(drakkar, binary_dir):
    kubelet = find_program("kubelet", binary_dir)
    cri = go_peer.build("kube/cri", binary_dir)
    if os.geteuid() != 0:
        print("skipped: a kubelet needs root")
        raise SystemExit(77)
    with KubePeers(drakkar) as peers:
        pki = peers.data / "pki"
        peers.start("apiserver", "apiserver", f"--data-dir={peers.data}", f"--port={peers.port}")
        wait_until("the API server answers", lambda: peers.run("get", "namespaces", "-o", "name", check=False), 60)
        peers.start("controllers", "controllers", f"--kubeconfig={peers.kubeconfig}", "--secure-port=0", "--leader-elect=false",
                    f"--cluster-signing-cert-file={pki}/ca.crt", f"--cluster-signing-key-file={pki}/ca.key")
        folder, runtime = peers.work / "kubelet", peers.work / "cri.sock"
        folder.mkdir()
        peers.start("cri", cri, str(runtime), ours=False)
        wait_until("the runtime listens", runtime.exists)
        token = peers.run("token", "create").strip()
        write_kubeconfig(folder / "bootstrap.kubeconfig", f"https://127.0.0.1:{peers.port}", pki / "ca.crt", f'token: "{token}"')
        (folder / "config.yaml").write_text(KUBELET.format(port=peers.node_port, ca=pki / "ca.crt", socket=runtime, work=folder))
        peers.start("kubelet", kubelet, f"--config={folder}/config.yaml", f"--bootstrap-kubeconfig={folder}/bootstrap.kubeconfig",
                    f"--kubeconfig={folder}/kubeconfig", f"--cert-dir={folder}/pki", f"--root-dir={folder}/root",
                    "--hostname-override=n1", "--v=2", ours=False)
        wait_until("it has its client certificate", (folder / "pki/kubelet-client-current.pem").exists, 60)
        wait_until("it is registered", lambda: peers.get("node", "n1"), 60)
        wait_until("it has its serving certificate", (folder / "pki/kubelet-server-current.pem").exists, 60)
        requests = {r["spec"]["signerName"]: r for r in peers.get("csr")["items"]}
        assert requests["kubernetes.io/kube-apiserver-client-kubelet"]["spec"]["username"] == f"system:bootstrap:{token[:6]}"
        assert requests["kubernetes.io/kubelet-serving"]["spec"]["username"] == "system:node:n1"
        # Its port serves with that certificate: verified against the CA, and for the node's name.
        text = wait_until("its port serves with it", lambda: subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{peers.node_port}", "-CAfile", pki / "ca.crt", "-verify_hostname",
             "n1"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout, 30)
        assert "Verify return code: 0 (ok)" in text and re.search(r"CN ?= ?system:node:n1", text), text[-2000:]
        peers.stop("kubelet")
    print("ok: a kubelet bootstraps its certificates at our API server")


if __name__ == "__main__":
    {"node": check_our_node, "kubelet": check_kubelet}[sys.argv[3]](sys.argv[1], sys.argv[2])
