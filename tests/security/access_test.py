#!/usr/bin/env python3
"""Every identity tries every request on the API server, node ports and status ports.

access_matrix.txt has the exact responses; `access_test.py BINARY --write` regenerates it for review.
Writes are dry runs, so that no response depends on earlier ones."""
import base64
import json
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
from cluster import ROOT, SKIP, free_port, wait_until  # noqa: E402
from identities import Identities, Identity  # noqa: E402

EXPECTED = HERE / "access_matrix.txt"
CORE, APPS, RBAC, DRA = "/api/v1", "/apis/apps/v1", "/apis/rbac.authorization.k8s.io/v1", "/apis/resource.k8s.io/v1"
DEFAULT, TEAM = f"{CORE}/namespaces/default", f"{CORE}/namespaces/team"
CSR = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
TOKEN = "abcdef.0123456789abcdef"


def pod(name, node, labels=None, spec=None, **metadata):
    return {"metadata": {"name": name, **({"labels": labels} if labels else {}), **metadata},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "localhost/none:1"}], **(spec or {})}}


def slice_of(name, node):
    where = {"nodeName": node} if node else {"allNodes": True}
    return {"metadata": {"name": name},
            "spec": {"driver": "d.example.com", **where, "devices": [],
                     "pool": {"name": node or "all", "generation": 1, "resourceSliceCount": 1}}}


def signing_request(cluster, name, signer, user, group, usage):
    """A CertificateSigningRequest for the subject /O=GROUP/CN=USER."""
    stem = cluster.make.certificate(name, user, [group])
    pem = base64.b64encode(pathlib.Path(f"{stem}.csr").read_bytes()).decode()
    return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {"signerName": f"kubernetes.io/{signer}", "request": pem, "usages": ["digital signature", usage]}}


def boats(plural):
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": plural.capitalize()},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}


class Cluster:
    def __init__(self, drakkar):
        self.drakkar = drakkar
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-security-"))
        self.log = open(self.work / "log", "a")
        self.processes = []
        self.port, self.scheduler, self.controllers = free_port(), free_port(), free_port()
        self.nodes = {"node-a": free_port(), "node-b": free_port()}
        self.run("apiserver", f"--data-dir={self.work}/data", f"--port={self.port}")
        wait_until("the API server answers", lambda: (self.work / "data/admin.kubeconfig").exists(), 60)
        self.ca = self.work / "data/pki/ca.crt"
        self.make = Identities(self.work / "data", self.work, self.port)
        self.admin = self.identity("admin", "admin", ["system:masters"])
        for name, port in (("scheduler", self.scheduler), ("controllers", self.controllers)):
            user = {"scheduler": "system:kube-scheduler", "controllers": "system:kube-controller-manager"}[name]
            serving = self.make.certificate(f"{name}-serving", user, server=True)
            self.run(name, f"--kubeconfig={self.make.kubeconfig(name, user)}", f"--secure-port={port}",
                     f"--client-ca-file={self.ca}", f"--tls-cert-file={serving}.crt",
                     f"--tls-private-key-file={serving}.key", "--leader-elect=false")
        for name, port in self.nodes.items():
            serving = self.make.certificate(f"{name}-serving", f"system:node:{name}", ["system:nodes"], server=True)
            config = self.make.kubeconfig(f"{name}-agent", f"system:node:{name}", ["system:nodes"])
            self.run("node", f"--data-dir={self.work}/{name}", f"--kubeconfig={config}", f"--node-name={name}",
                     f"--port={port}", f"--client-ca-file={self.ca}", f"--tls-cert-file={serving}.crt",
                     f"--tls-private-key-file={serving}.key")
        for name in self.nodes:
            wait_until(f"{name} is ready", lambda: self.is_ready(name), 60)

    def run(self, *command):
        self.processes.append(subprocess.Popen([self.drakkar, *command], cwd=ROOT, stdout=self.log, stderr=self.log))

    def identity(self, name, user, groups=()):
        return Identity(self.ca, self.make.certificate(name, user, groups))

    def is_ready(self, node):
        status, text = self.admin.ask(self.port, "GET", f"{CORE}/nodes/{node}")
        return status == 200 and any(c["type"] == "Ready" and c["status"] == "True"
                                     for c in json.loads(text).get("status", {}).get("conditions", []))

    def create(self, path, body):
        status, text = self.admin.ask(self.port, "POST", path, body)
        assert status == 201, f"{path}: {status} {text}"
        return json.loads(text)

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.work, ignore_errors=True)


def set_up(cluster):
    """Creates the objects to attack; returns the UIDs that requests need."""
    cluster.create(f"{CORE}/namespaces", {"metadata": {"name": "team"}})
    for home in (DEFAULT, TEAM):
        for name in ("bot", "driver"):
            cluster.create(f"{home}/serviceaccounts", {"metadata": {"name": name}})
        for name in ("used", "unused"):
            cluster.create(f"{home}/secrets", {"metadata": {"name": name}, "stringData": {"k": "v"}})
    agent = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "11111111-1111-1111-1111-111111111111",
             "controller": True}
    token = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    uses = {"envFrom": [{"secretRef": {"name": "used"}}]}
    spec = lambda account: {"serviceAccountName": account, "volumes": [token],
                            "containers": [{"name": "c", "image": "localhost/none:1", **uses}]}
    made = {
        "pod-a": cluster.create(f"{DEFAULT}/pods", pod("pod-a", "node-a", spec=spec("bot"))),
        "pod-b": cluster.create(f"{DEFAULT}/pods", pod("pod-b", "node-b", spec=spec("bot"))),
        "agent-a": cluster.create(f"{DEFAULT}/pods", pod("agent-a", "node-a", spec=spec("driver"), ownerReferences=[
            dict(agent, blockOwnerDeletion=False)], finalizers=["example.com/stay"])),
    }
    cluster.create(f"{DRA}/resourceslices", slice_of("slice-a", "node-a"))
    cluster.create(f"{DRA}/resourceslices", slice_of("slice-b", "node-b"))
    cluster.create(f"{DRA}/resourceslices", slice_of("slice-all", None))
    cluster.create(f"{RBAC}/clusterroles", {"metadata": {"name": "driver"}, "rules": [
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"],
         "verbs": ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]}]})
    reference = lambda role: {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    user = lambda name: [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}]
    cluster.create(f"{RBAC}/clusterrolebindings", {
        "metadata": {"name": "driver"}, "roleRef": reference("driver"),
        "subjects": [{"kind": "ServiceAccount", "name": "driver", "namespace": "default"}]})
    cluster.create(f"{RBAC}/namespaces/team/rolebindings", {
        "metadata": {"name": "editor"}, "roleRef": reference("edit"), "subjects": user("team-editor")})
    cluster.create(f"{RBAC}/namespaces/team/rolebindings", {
        "metadata": {"name": "admin"}, "roleRef": reference("admin"), "subjects": user("team-admin")})
    cluster.create(f"{RBAC}/clusterrolebindings", {
        "metadata": {"name": "editor"}, "roleRef": reference("edit"), "subjects": user("cluster-editor")})
    cluster.create(f"{CORE}/namespaces/kube-system/secrets", {
        "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token",
        "stringData": {"token-id": TOKEN[:6], "token-secret": TOKEN[7:], "usage-bootstrap-authentication": "true"}})
    cluster.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", boats("boats"))
    cluster.create(CSR, signing_request(cluster, "of-jane", "kube-apiserver-client", "jane", "dev", "client auth"))
    cluster.create(CSR, signing_request(cluster, "of-node-b", "kubelet-serving", "system:node:node-b", "system:nodes",
                                        "server auth"))
    cluster.create("/apis/apiregistration.k8s.io/v1/apiservices", {
        "metadata": {"name": "v1.away.example.com"},
        "spec": {"group": "away.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
                 "service": {"namespace": "default", "name": "away"}}})
    return {name: each["metadata"]["uid"] for name, each in made.items()}


def token_of(cluster, account, bound=None):
    spec = {"boundObjectRef": bound} if bound else {}
    return cluster.create(f"{DEFAULT}/serviceaccounts/{account}/token",
                          {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})["status"]["token"]


def identities(cluster, uids):
    agent = {"apiVersion": "v1", "kind": "Pod", "name": "agent-a", "uid": uids["agent-a"]}
    return {
        "anonymous": Identity(cluster.ca),
        "no rights": cluster.identity("nobody", "nobody"),
        "bad token": Identity(cluster.ca, token="ey.not.one"),
        "bootstrap token": Identity(cluster.ca, token=TOKEN),
        "service account": Identity(cluster.ca, token=token_of(cluster, "bot")),
        "node-a": cluster.identity("a", "system:node:node-a", ["system:nodes"]),
        "node-b": cluster.identity("b", "system:node:node-b", ["system:nodes"]),
        "driver on a": Identity(cluster.ca, token=token_of(cluster, "driver", agent)),
        "driver cert on a": cluster.identity("d", "drakkar:node-driver:node-a", ["drakkar:node-drivers"]),
        "namespace editor": cluster.identity("t", "team-editor"),
        "namespace admin": cluster.identity("s", "team-admin"),
        "cluster editor": cluster.identity("c", "cluster-editor"),
        "monitoring": cluster.identity("m", "prometheus", ["system:monitoring"]),
        "administrator": cluster.admin,
        "apiserver to nodes": cluster.identity("k", "kube-apiserver-kubelet-client"),
    }


def requests(cluster, uids, node_uid, node_uid_a):
    """(where, name, method, path, body, content type) of each request."""
    api, found = cluster.port, []

    def add(name, method, path, body=None, kind="application/json", port=api):
        if method != "GET" and port == api and "/token" not in path:
            path += ("&" if "?" in path else "?") + "dryRun=All"
        found.append((name, method, path, body, kind, port))

    for home in ("default", "team"):
        for name in ("used", "unused"):
            add(f"get secret {home}/{name}", "GET", f"{CORE}/namespaces/{home}/secrets/{name}")
        add(f"list secrets {home}", "GET", f"{CORE}/namespaces/{home}/secrets")
    add("list all secrets", "GET", f"{CORE}/secrets")
    for name in ("pod-a", "pod-b"):
        add(f"get {name}", "GET", f"{DEFAULT}/pods/{name}")
        add(f"delete {name}", "DELETE", f"{DEFAULT}/pods/{name}")
        add(f"status of {name}", "PATCH", f"{DEFAULT}/pods/{name}/status", {"status": {"message": "m"}}, MERGE)
        add(f"exec {name}", "POST", f"{DEFAULT}/pods/{name}/exec?command=id&stdout=true")
        add(f"evict {name}", "POST", f"{DEFAULT}/pods/{name}/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}})
        reference = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uids[name]}
        for what, spec in (("", {"boundObjectRef": reference}),
                           (" for a bank", {"boundObjectRef": reference, "audiences": ["bank"]}),
                           (" unbound", {})):
            add(f"token of {name}{what}", "POST", f"{DEFAULT}/serviceaccounts/bot/token",
                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
    add("create a pod", "POST", f"{TEAM}/pods", pod("x", "node-a"))
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node-b", "uid": node_uid, "controller": True}
    mirror = dict(annotations={"kubernetes.io/config.mirror": "x"}, ownerReferences=[owner])
    add("mirror pod of b", "POST", f"{DEFAULT}/pods", pod("m", "node-b", **mirror))
    add("mirror pod with a secret", "POST", f"{DEFAULT}/pods",
        pod("m", "node-b", spec={"imagePullSecrets": [{"name": "unused"}]}, **mirror))
    add("mirror pod without an owner", "POST", f"{DEFAULT}/pods",
        pod("m", "node-b", annotations=mirror["annotations"]))
    for name in ("node-a", "node-b"):
        add(f"get {name}", "GET", f"{CORE}/nodes/{name}")
        for what, change in (("label", {"metadata": {"labels": {"example.com/mine": "x"}}}),
                             ("role", {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
                             ("owner", {"metadata": {"ownerReferences": [
                                 {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}]}}),
                             ("taint", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})):
            add(f"{what} of {name}", "PATCH", f"{CORE}/nodes/{name}", change, MERGE)
        add(f"delete {name}", "DELETE", f"{CORE}/nodes/{name}")
        add(f"metrics of {name} by proxy", "GET", f"{CORE}/nodes/{name}/proxy/metrics")
    for kind in ("pods/running", "services/front"):
        for method in ("GET", "POST", "OPTIONS"):
            add(f"{method} {kind} by proxy", method, f"{TEAM}/{kind}/proxy/x")
    add("another port of node-a by proxy", "GET", f"{CORE}/nodes/node-a:{api}/proxy/metrics")
    for name in ("slice-a", "slice-b", "slice-all"):
        node = {"slice-a": "node-a", "slice-b": "node-b"}.get(name)
        add(f"create like {name}", "POST", f"{DRA}/resourceslices", slice_of("new", node))
        add(f"change {name}", "PATCH", f"{DRA}/resourceslices/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        add(f"delete {name}", "DELETE", f"{DRA}/resourceslices/{name}")
    add("delete all slices", "DELETE", f"{DRA}/resourceslices")
    binding = lambda role: {"metadata": {"name": "x"}, "subjects": [{"kind": "User", "name": "nobody",
                                                                     "apiGroup": "rbac.authorization.k8s.io"}],
                            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}}
    for role in ("view", "cluster-admin", "no-such-role"):
        add(f"bind {role}", "POST", f"{RBAC}/namespaces/team/rolebindings", binding(role))
    add("get cluster-info", "GET", f"{CORE}/namespaces/kube-public/configmaps/cluster-info")
    add("change cluster-info", "PATCH", f"{CORE}/namespaces/kube-public/configmaps/cluster-info",
        {"data": {"kubeconfig": "x"}}, MERGE)
    add("get a bootstrap token", "GET", f"{CORE}/namespaces/kube-system/secrets/bootstrap-token-abcdef")
    add("create a bootstrap token", "POST", f"{CORE}/namespaces/kube-system/secrets", {
        "metadata": {"name": "bootstrap-token-000000"}, "type": "bootstrap.kubernetes.io/token"})
    add("ask for a certificate as node-a", "POST", CSR, signing_request(
        cluster, "new", "kube-apiserver-client-kubelet", "system:node:node-a", "system:nodes", "client auth"))
    add("ask for a certificate as an administrator", "POST", CSR, signing_request(
        cluster, "evil", "kube-apiserver-client", "eve", "system:masters", "client auth"))
    for name in ("of-jane", "of-node-b"):
        condition = lambda kind: {"status": {"conditions": [{"type": kind, "status": "True", "reason": "r"}]}}
        add(f"get request {name}", "GET", f"{CSR}/{name}")
        add(f"approve request {name}", "PATCH", f"{CSR}/{name}/approval", condition("Approved"), MERGE)
        add(f"sign request {name}", "PATCH", f"{CSR}/{name}/status", condition("Failed"), MERGE)
        add(f"delete request {name}", "DELETE", f"{CSR}/{name}")
    # Other servers behind ours, and the certificates of pods.
    services = "/apis/apiregistration.k8s.io/v1/apiservices"
    add("get an APIService", "GET", f"{services}/v1.apps")
    add("hand secrets of others to a server", "POST", services, {
        "metadata": {"name": "v1.evil.example.com"},
        "spec": {"group": "evil.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
                 "insecureSkipTLSVerify": True, "service": {"namespace": "team", "name": "evil"}}})
    add("say that an APIService is available", "PATCH", f"{services}/v1.apps/status",
        {"status": {"conditions": []}}, MERGE)
    add("use a server that is away", "GET", "/apis/away.example.com/v1/things")
    add("list the resources of a server that is away", "GET", "/apis/away.example.com/v1")
    # What changes the behaviour of the API server itself.
    hooks = "/apis/admissionregistration.k8s.io/v1"
    client = {"name": "evil.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
              "clientConfig": {"url": "https://192.0.2.1/"}}
    for kind in ("mutating", "validating"):
        add(f"list {kind} webhooks", "GET", f"{hooks}/{kind}webhookconfigurations")
        add(f"create a {kind} webhook", "POST", f"{hooks}/{kind}webhookconfigurations",
            {"metadata": {"name": "evil"}, "webhooks": [client]})
        add(f"create a {kind} policy", "POST", f"{hooks}/{kind}admissionpolicies", {"metadata": {"name": "evil"}, "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"],
                                                    "resources": ["*"]}]},
            **({"validations": [{"expression": "true"}]} if kind == "validating" else {
                "reinvocationPolicy": "Never", "mutations": [{"patchType": "JSONPatch", "jsonPatch": {
                    "expression": "[JSONPatch{op: 'remove', path: '/spec'}]"}}]})}})
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    add("get a definition", "GET", f"{definitions}/boats.example.com")
    add("define a kind", "POST", definitions, boats("ships"))
    add("change a definition", "PATCH", f"{definitions}/boats.example.com", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    add("list boats", "GET", "/apis/example.com/v1/namespaces/team/boats")
    add("create a boat", "POST", "/apis/example.com/v1/namespaces/team/boats",
        {"apiVersion": "example.com/v1", "kind": "Boats", "metadata": {"name": "b"}})
    # Where the traffic of a Service goes, and what webhooks and APIServices behind it are (CVE-2021-25740).
    add("create endpoints", "POST", f"{TEAM}/endpoints", {"metadata": {"name": "e"}, "subsets": [
        {"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 443}]}]})
    add("create an endpoint slice", "POST", "/apis/discovery.k8s.io/v1/namespaces/team/endpointslices",
        {"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}]})
    certificates = "/apis/certificates.k8s.io/v1"
    add("create a trust bundle", "POST", f"{certificates}/clustertrustbundles",
        {"metadata": {"name": "evil"}, "spec": {"trustBundle": pathlib.Path(cluster.ca).read_text()}})
    key = base64.b64encode(ssl.PEM_cert_to_DER_cert(
        pathlib.Path(f"{cluster.make.certificate('pcr', 'pod')}.csr").read_text().replace("CERTIFICATE REQUEST", "CERTIFICATE")))
    for name, node, node_uid_ in (("pod-a", "node-a", node_uid_a), ("pod-b", "node-b", node_uid)):
        add(f"ask for a certificate of {name}", "POST", f"{certificates}/namespaces/default/podcertificaterequests", {
            "metadata": {"name": f"of-{name}"}, "spec": {
                "signerName": "example.com/signer", "podName": name, "podUID": uids[name], "serviceAccountName": "bot",
                "serviceAccountUID": "any", "nodeName": node, "nodeUID": node_uid_, "maxExpirationSeconds": 86400,
                "stubPKCS10Request": key.decode()}})
    add("list trust bundles", "GET", f"{certificates}/clustertrustbundles")
    add("list certificate requests of pods", "GET", f"{certificates}/podcertificaterequests")
    add("list certificate requests of pods of node-a", "GET",
        f"{certificates}/podcertificaterequests?fieldSelector=spec.nodeName%3Dnode-a")
    for name in ("pod-a", "agent-a"):
        add(f"why {name}", "GET", f"{DEFAULT}/pods/{name}/why")
    for path in ("/metrics", "/configz", "/healthz", "/version", "/openid/v1/jwks", "/drakkar/status"):
        add(f"API server {path}", "GET", path)
    for name in ("node-a", "node-b"):
        port = cluster.nodes[name]
        for path in ("/healthz", "/metrics", "/pods", "/devices", "/drivers", "/metrics/../pods", "/containerLogs/default/pod-a/c",
                     "/exec/default/pod-a/c?command=id&output=1"):
            add(f"{name} {path}", "GET", path, port=port)
        add(f"{name} POST /exec", "POST", "/exec/default/pod-a/c?command=id&output=1", port=port)
        add(f"{name} DELETE /pods", "DELETE", "/pods", port=port)
    for name, port in (("scheduler", cluster.scheduler), ("controllers", cluster.controllers)):
        for path in ("/healthz", "/metrics", "/configz", "/why/pods/default/pod-a", "/none"):
            add(f"{name} {path}", "GET", path, port=port)
    return found


def main():
    if not shutil.which("openssl"):
        print("skipped: needs openssl")
        raise SystemExit(SKIP)
    cluster = Cluster(sys.argv[1])
    try:
        uids = set_up(cluster)
        uid_of = lambda node: json.loads(cluster.admin.ask(cluster.port, "GET", f"{CORE}/nodes/{node}")[1])["metadata"]["uid"]
        node_uid, node_uid_a = uid_of("node-b"), uid_of("node-a")
        hide = {str(cluster.port): "PORT", **{uid: "UID" for uid in (*uids.values(), node_uid, node_uid_a)}}
        lines = []
        who = identities(cluster, uids)
        for name, method, path, body, kind, port in requests(cluster, uids, node_uid, node_uid_a):
            lines.append(name)
            for identity, each in who.items():
                answer = each.line(port, method, path, body, kind=kind)
                for text, replacement in hide.items():
                    answer = answer.replace(text, replacement)
                lines.append(f"    {identity}: {answer}")
        text = "\n".join(lines) + "\n"
        if "--write" in sys.argv:
            EXPECTED.write_text(text)
            return
        expected = EXPECTED.read_text().splitlines()
        row, wrong = "", []
        for number in range(max(len(lines), len(expected))):
            want, got = (side[number] if number < len(side) else "" for side in (expected, lines))
            row = row if got.startswith(" ") else got
            if want != got:
                wrong.append(f"{row}\n  expected {want.strip()}\n  answered {got.strip()}")
        assert not wrong, "\n".join(wrong[:20]) + f"\n{len(wrong)} answers differ"
        print(f"ok: {len(lines)} lines of answers are as expected")
    except BaseException:
        print((cluster.work / "log").read_text()[-4000:])
        raise
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
