#!/usr/bin/env python3
"""Drakkar's controllers, schedulers, node and driver against a real kube-apiserver, which knows nothing about Drakkar."""
import json
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "kube"))
from peers import KubeServer, find_etcd, find_program  # noqa: E402
from cluster import ROOT, free_port, scheduler_configuration, wait_until  # noqa: E402

POD = {"terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False}


def pod(name, claim, command, **spec):
    return json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {**POD, **spec, "resourceClaims": [{"name": "dev", **claim}],
                 "containers": [{"name": "c", "image": "localhost/busybox:latest", "imagePullPolicy": "IfNotPresent",
                                 "command": ["/bin/sh", "-c", command],
                                 "resources": {"claims": [{"name": "dev"}]}}]}})


def node_of(kube, name):
    return (kube.get("pod", name) or {}).get("spec", {}).get("nodeName")


def device_of(kube, claim):
    status = (kube.get("resourceclaim", claim) or {}).get("status", {})
    results = status.get("allocation", {}).get("devices", {}).get("results", [])
    return results[0]["device"] if results else None


def holder(kube, lease):
    text = kube.run("get", "lease", lease, "-n", "kube-system", "-o", "json", check=False)
    return json.loads(text)["spec"].get("holderIdentity", "") if text else ""


def run_parts(kube):
    kube.start("controllers", "controllers", f"--kubeconfig={kube.kubeconfig}", "--secure-port=0")
    (kube.work / "scheduler.yaml").write_text(scheduler_configuration("3s"))
    for name in ("scheduler-a", "scheduler-b"):
        kube.start(name, "scheduler", f"--kubeconfig={kube.scheduler_kubeconfig}",
                   f"--config={kube.work}/scheduler.yaml", f"--secure-port={free_port()}")
        wait_until("a scheduler leads", lambda: holder(kube, "kube-scheduler"))
    wait_until("the controllers lead", lambda: holder(kube, "kube-controller-manager"))


def untaint(kube, node):
    """Does what the node lifecycle controller does once a node is ready: removes the taint that kube-apiserver
    adds to every new node."""
    kube.api("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": None}}, "application/merge-patch+json")


def check_containers(kube):
    """A pod with a device from a template, from creation to complete clean-up."""
    kube.start_node()
    wait_until("the node is there", lambda: kube.get("node", "n1"))
    kube.start_driver()
    wait_until("the node is ready", lambda: any(
        c["type"] == "Ready" and c["status"] == "True"
        for c in (kube.get("node", "n1") or {}).get("status", {}).get("conditions", [])))
    untaint(kube, "n1")
    wait_until("devices are published", lambda: kube.run("get", "resourceslices", "-o", "name", check=False))
    for manifest in ("class", "claim-template"):
        kube.apply((ROOT / f"examples/hello-device/{manifest}.yaml").read_text())
    kube.apply(pod("hello", {"resourceClaimTemplateName": "one-device"}, "echo got $DRAKKAR_DEVICES; exec sleep 1000"))
    kube.wait_phase("hello", "Running", 60)
    status = kube.get("pod", "hello")["status"]
    claim = status["resourceClaimStatuses"][0]["resourceClaimName"]
    device = device_of(kube, claim)
    assert device, claim
    health = wait_until("the device's health is in the pod's status", lambda: [
        r for c in kube.get("pod", "hello")["status"]["containerStatuses"] for s in c.get("allocatedResourcesStatus", [])
        for r in s.get("resources", [])])
    assert health[0]["health"] == "Healthy", health
    kube.delete_pod("hello", 30)
    wait_until("the claim is gone", lambda: not kube.get("resourceclaim", claim))
    return device


def check_binding_conditions(kube, fabric):
    kube.apply((ROOT / "examples/fabric/class.yaml").read_text())

    def start(*flags):
        kube.stop("fabric")
        kube.start("fabric", fabric, "run", f"--kubeconfig={kube.kubeconfig}", "--attach-delay=300ms", *flags, ours=False)

    def run(name):
        kube.apply(json.dumps({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "fabric.example.com"}}]}}}))
        kube.apply(pod(name, {"resourceClaimName": name}, "exec sleep 1000", nodeSelector={"fabric": "yes"}))
        wait_until(f"{name} is bound", lambda: node_of(kube, name) == "n2")

    # A node that exists only in the API: what matters here is what happens until a pod is bound to it.
    kube.api("POST", "/api/v1/nodes", {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2", "labels": {"fabric": "yes"}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
                   "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}}})
    untaint(kube, "n2")
    start("--devices=3", "--fail=gpu-1")
    run("success")
    assert device_of(kube, "success") == "gpu-0"
    assert kube.events("BindingConditionsPending", "success")
    run("failure")
    assert device_of(kube, "failure") == "gpu-2"
    start("--devices=5", "--hang=gpu-3")
    run("hanging")
    assert device_of(kube, "hanging") == "gpu-4"


def check_leaders(kube):
    leader = holder(kube, "kube-scheduler")
    kube.stop("scheduler-a")  # which led: the other came when there was a lease already
    wait_until("the other scheduler leads", lambda: holder(kube, "kube-scheduler") not in ("", leader), 15)


def check_clean_up(kube):
    """Namespaces and owners, including kinds that are not in Drakkar's schema."""
    kube.api("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    wait_until("the authority is published", lambda: kube.run("get", "configmap", "kube-root-ca.crt", "-n", "team", check=False))
    kube.api("POST", "/apis/batch/v1/namespaces/team/cronjobs", {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "j", "namespace": "team"},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "none"}]}}}}}})
    kube.run("delete", "namespace", "team", "--timeout=30s")


# What check_binding_conditions provokes.
EXPECTED = ('reason="device binding failed: claim=failure,', 'reason="device binding timeout: claim=hanging,')


def complaints(kube):
    found = []
    for name in ("controllers", "scheduler-a", "scheduler-b", "node", "driver", "fabric"):
        path = kube.work / f"{name}.log"
        if path.exists():
            found += [f"{name}: {line}" for line in path.read_text().splitlines()
                      if re.match(r"[WEF]\d{4} ", line) and not any(each in line for each in EXPECTED)]
    return found


def main():
    drakkar, fabric, binary_dir = sys.argv[1:4]
    apiserver, etcd = find_program("kube-apiserver", binary_dir), find_etcd()
    with KubeServer(drakkar, apiserver, etcd) as kube:
        kube.start_kube()
        run_parts(kube)
        if os.geteuid() == 0 and shutil.which("runc") and shutil.which("conmon"):
            print("a pod with a device ran, with", check_containers(kube))
        check_binding_conditions(kube, os.path.realpath(fabric))
        check_leaders(kube)
        check_clean_up(kube)
        found = complaints(kube)
        assert not found, "\n".join(found)
        print("ok: scheduled, bound and cleaned up on kube-apiserver")


if __name__ == "__main__":
    main()
