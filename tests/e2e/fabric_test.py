#!/usr/bin/env python3
"""Binding conditions with real processes: API server, controllers, two schedulers that elect a
leader and read a configuration file, and the example's fabric controller. No containers."""
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

from cluster import ROOT, free_port, scheduler_configuration, wait_until

DRAKKAR = os.path.realpath(sys.argv[1])
FABRIC = os.path.realpath(sys.argv[2]) if len(sys.argv) > 2 else None


class World:
    def __init__(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-fabric-"))
        self.kubeconfig = self.work / "data/admin.kubeconfig"
        self.processes = {}
        (self.work / "scheduler.yaml").write_text(scheduler_configuration("2s"))

    def start(self, name, *command):
        log = open(self.work / f"{name}.log", "a")
        self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)
        return self.processes[name]

    def end(self, name, with_signal=signal.SIGTERM):
        process = self.processes.pop(name)
        process.send_signal(with_signal)
        return process.wait(timeout=20)

    def drakkar(self, *arguments, stdin=None, check=True):
        result = subprocess.run([DRAKKAR, *arguments], input=stdin, capture_output=True, text=True, cwd=ROOT,
                                env=dict(os.environ, KUBECONFIG=str(self.kubeconfig)), check=False)
        assert not check or result.returncode == 0, f"drakkar {' '.join(arguments)}: {result.stderr}"
        return result.stdout if result.returncode == 0 else ""

    def get(self, kind, name, *flags):
        text = self.drakkar("get", kind, name, "-o", "json", *flags, check=False)
        return json.loads(text) if text else None

    def start_scheduler(self, name):
        port = free_port()
        self.start(name, DRAKKAR, "scheduler", f"--kubeconfig={self.kubeconfig}",
                   f"--config={self.work}/scheduler.yaml", f"--secure-port={port}",
                   f"--client-ca-file={self.work}/data/pki/ca.crt")
        return port

    def start_fabric(self, *flags):
        self.start("fabric", FABRIC, "run", f"--kubeconfig={self.kubeconfig}", "--attach-delay=300ms", *flags)

    def holder(self):
        lease = self.get("leases", "kube-scheduler", "-n", "kube-system")
        return lease["spec"].get("holderIdentity", "") if lease else ""

    def run_pod(self, name):
        self.drakkar("apply", "-f", "-", stdin=json.dumps({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [
                {"name": "gpu", "exactly": {"deviceClassName": "fabric.example.com"}}]}}}))
        self.drakkar("apply", "-f", "-", stdin=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
                     "containers": [{"name": "main", "image": "none",
                                     "resources": {"claims": [{"name": "gpu"}]}}]}}))

    def device_of(self, claim):
        status = (self.get("resourceclaim", claim) or {}).get("status", {})
        results = status.get("allocation", {}).get("devices", {}).get("results", [])
        return results[0]["device"] if results else None

    def node_of(self, pod):
        return (self.get("pod", pod) or {}).get("spec", {}).get("nodeName")

    def events(self, pod):
        events = json.loads(self.drakkar("get", "events", "-o", "json"))["items"]
        return [f"{e['reason']}: {e['message']}" for e in events if e["involvedObject"]["name"] == pod]

    def admin_context(self):
        """TLS with the administrator's certificate from the kubeconfig."""
        context = ssl._create_unverified_context()
        text = self.kubeconfig.read_text()
        for name in ("certificate", "key"):
            data = re.search(rf"client-{name}-data: *\"?([A-Za-z0-9+/=]+)", text).group(1)
            (self.work / f"admin.{name}").write_bytes(base64.b64decode(data))
        context.load_cert_chain(self.work / "admin.certificate", self.work / "admin.key")
        return context

    def fetch(self, url, context=None, token=None, body=None):
        """The status and the text; None if there is no response."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, headers=headers, data=body)
        try:
            with urllib.request.urlopen(request, context=context or ssl._create_unverified_context(), timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return None, ""

    def page(self, port, path):
        status, text = self.fetch(f"https://127.0.0.1:{port}{path}", self.admin_context())
        return text if status == 200 else ""

    def token(self, account):
        server = re.search(r"server: *\"?(https://[^\"\s]+)", self.kubeconfig.read_text()).group(1)
        status, text = self.fetch(f"{server}/api/v1/namespaces/default/serviceaccounts/{account}/token",
                                  self.admin_context(),
                                  body=b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}')
        assert status == 201, (status, text)
        return json.loads(text)["status"]["token"]

    def check_who_may_look(self, port):
        """/metrics and /configz require authorization by the API server: with a certificate or a token."""
        for account in ("monitor", "stranger"):
            self.drakkar("apply", "-f", "-", stdin=json.dumps({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": "default"}}))
        self.drakkar("apply", "-f", "-", stdin=json.dumps({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "see-metrics"},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}))
        self.drakkar("apply", "-f", "-", stdin=json.dumps({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "see-metrics"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "see-metrics"},
            "subjects": [{"kind": "ServiceAccount", "name": "monitor", "namespace": "default"}]}))
        base = f"https://127.0.0.1:{port}"
        monitor, stranger = self.token("monitor"), self.token("stranger")
        status, text = self.fetch(f"{base}/metrics", token=monitor)
        assert status == 200 and "scheduler_pending_pods" in text, (status, text)
        assert self.fetch(f"{base}/configz", token=monitor) == (
            403, 'forbidden: User "system:serviceaccount:default:monitor" cannot get path "/configz"\n')
        assert self.fetch(f"{base}/metrics", token=stranger)[0] == 403
        assert self.fetch(f"{base}/metrics", token="nonsense") == (401, "Unauthorized\n")
        assert self.fetch(f"{base}/metrics") == (403, 'forbidden: User "system:anonymous" cannot get path "/metrics"\n')
        assert self.fetch(f"{base}/healthz") == (200, "ok"), "health needs no authorization"

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for name in reversed(list(self.processes)):
            try:
                self.end(name)
            except subprocess.TimeoutExpired:
                pass
        if kind is not None:
            for log in self.work.glob("*.log"):
                print(f"--- {log.name}\n{log.read_text()[-2000:]}")
        shutil.rmtree(self.work, ignore_errors=True)


def main():
    with World() as world:
        world.start("apiserver", DRAKKAR, "apiserver", f"--data-dir={world.work}/data", f"--port={free_port()}")
        wait_until("the API server answers",
                   lambda: world.kubeconfig.exists() and world.drakkar("get", "namespaces", check=False))
        world.start("controllers", DRAKKAR, "controllers", f"--kubeconfig={world.kubeconfig}", "--secure-port=0")
        first = world.start_scheduler("scheduler-a")
        wait_until("the first scheduler leads", world.holder)
        leader = world.holder()
        second = world.start_scheduler("scheduler-b")
        wait_until("the first is ready", lambda: world.page(first, "/readyz") == "ok")
        wait_until("the second is healthy", lambda: world.page(second, "/healthz") == "ok")
        assert '"bindingTimeout":"2s"' in world.page(first, "/configz"), world.page(first, "/configz")
        world.check_who_may_look(first)
        world.drakkar("apply", "-f", "-", stdin=json.dumps({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}))
        world.drakkar("apply", "-f", "examples/fabric/class.yaml")

        # Success.
        world.start_fabric("--devices=3", "--fail=gpu-1")
        wait_until("devices are published", lambda: world.drakkar("get", "resourceslices", "-o", "name"))
        world.run_pod("success")
        wait_until("the pod is bound", lambda: world.node_of("success") == "n1")
        assert world.device_of("success") == "gpu-0"
        assert any(e.startswith("BindingConditionsPending") for e in world.events("success")), world.events("success")

        # Failure: the next device is gpu-1, which fails and is tainted; the pod gets gpu-2.
        world.run_pod("failure")
        wait_until("the pod is bound with another device", lambda: world.node_of("failure") == "n1")
        assert world.device_of("failure") == "gpu-2"
        assert any("device binding failed" in e and "gpu-1" in e for e in world.events("failure")), world.events("failure")
        slices = json.loads(world.drakkar("get", "resourceslices", "-o", "json"))["items"]
        tainted = [d["name"] for s in slices for d in s["spec"]["devices"] if d.get("taints")]
        assert tainted == ["gpu-1"], tainted

        # Hanging: times out after two seconds (set in the configuration file), then takes the next device.
        world.end("fabric")
        world.start_fabric("--devices=5", "--hang=gpu-3")
        wait_until("there are five devices", lambda: "gpu-4" in world.drakkar("get", "resourceslices", "-o", "json"))
        world.run_pod("hanging")
        wait_until("the pod is bound after a timeout", lambda: world.node_of("hanging") == "n1")
        assert world.device_of("hanging") == "gpu-4"
        assert any("device binding timeout" in e and "gpu-3" in e for e in world.events("hanging")), world.events("hanging")
        metrics = world.page(first, "/metrics")
        for status, count in (("success", 3), ("failure", 1), ("timeout", 1)):
            line = f'scheduler_dra_bindingconditions_allocations_total{{status="{status}"}} {count}'
            assert line in metrics, line

        # The leader steps down cleanly; the other one takes over.
        assert world.end("scheduler-a") == 0
        wait_until("the second scheduler leads", lambda: world.holder() not in ("", leader))
        world.end("fabric")
        world.start_fabric("--devices=6")
        world.run_pod("after")
        wait_until("the second scheduler binds", lambda: world.node_of("after") == "n1")
        print("ok: success, failure, timeout, a change of leader, and access to the scheduler's pages")


if __name__ == "__main__":
    main()
