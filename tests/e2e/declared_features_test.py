#!/usr/bin/env python3
"""The upgrade and rollback walkthrough of KEP-5328 with real processes and containers: a 1.35 control plane,
a 1.34 node, the upgrade, gate changes in the order of the proposal, the downgrade and another upgrade."""
import os
import pathlib
import signal
import subprocess
import sys

from cluster import ROOT, Cluster, skip_without_containers, wait_until

FEATURE = "RestartAllContainersOnContainerExits"
POD = """apiVersion: v1
kind: Pod
metadata: {name: testpod1}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: setup
    image: localhost/busybox:latest
    command: ["sh", "-c", "echo setup >> /work/setups"]
    volumeMounts: [{name: work, mountPath: /work}]
  containers:
  - name: main
    image: localhost/busybox:latest
    command: ["sleep", "600"]
  - name: watcher
    image: localhost/busybox:latest
    command: ["sh", "-c", "if [ $(wc -l < /work/setups) -lt 2 ]; then exit 42; fi; sleep 600"]
    volumeMounts: [{name: work, mountPath: /work}]
    restartPolicy: Never
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]
  volumes: [{name: work, emptyDir: {}}]
"""


class SplitCluster(Cluster):
    """API server, controllers, scheduler and node as separate processes, each with its release
    and gates."""

    def __init__(self, drakkar):
        super().__init__(drakkar)
        self.parts = {}
        self.failed = False

    def __exit__(self, kind, *rest):
        self.failed = kind is not None
        super().__exit__(kind, *rest)

    def start_part(self, name, release, gates, *flags):
        self.stop_part(name)
        log = open(self.work / "up.log", "a")
        words = [self.drakkar, name, f"--emulated-version={release}", *flags]
        if gates:
            words.append(f"--feature-gates={gates}")
        self.parts[name] = subprocess.Popen(words, cwd=ROOT, stdout=log, stderr=log)

    def stop_part(self, name):
        process = self.parts.pop(name, None)
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def control_plane(self, release, gates):
        kubeconfig = f"--kubeconfig={self.data}/admin.kubeconfig"
        for name in ("scheduler", "controllers", "apiserver"):
            self.stop_part(name)
        self.start_part("apiserver", release, gates, f"--data-dir={self.data}", f"--port={self.ports[0]}")
        wait_until("the API server answers",
                   lambda: self.run("get", "namespace", "default", "-o", "name", check=False))
        self.start_part("controllers", release, gates, kubeconfig, "--secure-port=0")
        self.start_part("scheduler", release, gates, kubeconfig, "--secure-port=0")

    def node(self, release, gates):
        pki = pathlib.Path(self.data) / "pki"
        self.start_part("node", release, gates, f"--data-dir={self.data}/node", "--node-name=n1", "--pod-network=host",
                        f"--port={self.ports[1]}", f"--kubeconfig={self.data}/admin.kubeconfig",
                        f"--client-ca-file={pki}/ca.crt", f"--tls-cert-file={pki}/apiserver.crt",
                        f"--tls-private-key-file={pki}/apiserver.key")

    def stop(self):
        if self.failed:
            print(self.run("get", "pods", "-o", "json", check=False)[-6000:])
            print(self.run("get", "events", check=False)[-3000:])
        for name in ("node", "scheduler", "controllers", "apiserver"):
            self.stop_part(name)
        # Containers outlive the node agent on purpose; stop those of this test.
        for pid, _ in self.processes("conmon"):
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
            for child in children.read_text().split() if children.exists() else []:
                os.kill(int(child), signal.SIGKILL)


def main():
    skip_without_containers()
    on = f"NodeDeclaredFeatures=true,{FEATURE}=true"
    framework_off = f"NodeDeclaredFeatures=false,{FEATURE}=true"
    feature_off = f"NodeDeclaredFeatures=true,{FEATURE}=false"
    with SplitCluster(sys.argv[1]) as cluster:
        cluster.run("image", "import", f"--data-dir={cluster.data}/node", "--name=localhost/busybox:latest",
                    str(cluster.work / "busybox.tar.gz"))

        def status(kind, name):
            return (cluster.get(kind, name) or {}).get("status", {})

        def declared():
            return status("node", "n1").get("declaredFeatures", [])

        def phase():
            return status("pod", "testpod1").get("phase")

        def containers():
            return {c["name"]: (c.get("containerID"), c["restartCount"])
                    for c in status("pod", "testpod1").get("containerStatuses", [])}

        def version():
            return status("node", "n1").get("nodeInfo", {}).get("kubeletVersion", "")

        def is_running():
            return phase() == "Running" and all(
                "running" in c["state"] for c in status("pod", "testpod1")["containerStatuses"])

        def recreate():
            cluster.run("delete", "pod", "testpod1")
            wait_until("testpod1 is gone", lambda: cluster.get("pod", "testpod1") is None)
            cluster.run("apply", "-f", "-", stdin=POD)

        def stays_pending():
            wait_until("the scheduler says why", lambda: f"did not match node declared features: {FEATURE}"
                       in cluster.run("get", "events", "-o", "json"))
            assert phase() == "Pending", status("pod", "testpod1")

        # Initial state: a 1.35 control plane with the gates on, a 1.34 node.
        cluster.control_plane("1.35", on)
        cluster.node("1.34", "")
        wait_until("the 1.34 node is there", lambda: version().startswith("v1.34"))
        assert declared() == []
        cluster.run("apply", "-f", "-", stdin=POD)
        stays_pending()

        # Upgrade: the node declares the feature, the pod runs without help, and the feature works.
        cluster.node("1.35", on)
        wait_until("the 1.35 node declares the feature", lambda: FEATURE in declared())
        assert version().startswith("v1.35"), version()
        wait_until("testpod1 runs", is_running)
        wait_until("all containers were restarted",
                   lambda: is_running() and [n for _, n in containers().values()] == [1, 1])
        first = containers()

        # The framework's gate off, on the node and then on the control plane; then on again.
        cluster.node("1.35", framework_off)
        wait_until("nothing is declared", lambda: declared() == [])
        assert is_running() and containers() == first, "adopted"
        cluster.control_plane("1.35", framework_off)
        wait_until("testpod1 still runs", is_running)
        cluster.control_plane("1.35", on)
        cluster.node("1.35", on)
        wait_until("the feature is declared again", lambda: FEATURE in declared())
        assert is_running() and containers() == first, "the same containers all along"

        # The feature's gate off: the node rejects the running pod.
        cluster.node("1.35", feature_off)
        wait_until("testpod1 fails", lambda: phase() == "Failed")
        assert status("pod", "testpod1")["reason"] == "PodFeatureUnsupported", status("pod", "testpod1")
        assert FEATURE in status("pod", "testpod1")["message"]
        wait_until("its containers are stopped", lambda: not cluster.processes("conmon"))
        cluster.node("1.35", on)
        recreate()  # Failed is final, so recreate the pod
        wait_until("testpod1 runs again", is_running)

        # Downgrade: nothing is declared and the 1.34 node cannot run the pod.
        cluster.node("1.34", "")
        wait_until("the node is 1.34 again", lambda: version().startswith("v1.34") and declared() == [])
        wait_until("testpod1 fails", lambda: phase() == "Failed")
        recreate()
        stays_pending()

        # Upgrade.
        cluster.node("1.35", on)
        wait_until("testpod1 runs at last", is_running)

        cluster.run("delete", "pod", "testpod1")
        wait_until("testpod1 is gone", lambda: cluster.get("pod", "testpod1") is None)
        assert not cluster.processes("conmon"), "no container is left"
    print("ok: upgrade, gate changes, downgrade and upgrade work as in the proposal")


if __name__ == "__main__":
    main()
