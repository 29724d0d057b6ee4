#!/usr/bin/env python3
"""The end-to-end scenarios of KEP-5945 with separate processes, restarted in the order of its text.

usage: optional_preparation_test.py DRAKKAR [SCENARIO ...]
"""
import json
import subprocess
import sys
import time

from parts import BEFORE, GATE_OFF, GATE_ON, Parts, skip_without_containers, wait_until

SLICE = """apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %(driver)s-slice%(labels)s}
spec:
  driver: %(driver)s
  allNodes: true
  pool: {name: %(driver)s, generation: 1, resourceSliceCount: 1}
%(skip)s  devices: [{name: dev-0}, {name: dev-1}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: %(driver)s}
spec: {selectors: [{cel: {expression: 'device.driver == "%(driver)s"'}}]}
"""
POD = """apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %(pod)s}
spec: {devices: {requests: [{name: dev, exactly: {deviceClassName: "%(driver)s"}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: %(pod)s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "localhost/busybox:latest", command: [sleep, "600"], resources: {claims: [{name: dev}]}}
  resourceClaims: [{name: dev, resourceClaimName: %(pod)s}]
"""
GHOST = "ghost.example.com"
AT_ONCE = 8  # seconds: a grace period of one, and a busy machine


def slice_of(driver, skip, labels=""):
    return SLICE % {"driver": driver, "labels": labels, "skip": {True: "  skipNodeOperations: true\n",
                                                                 False: "  skipNodeOperations: false\n", None: ""}[skip]}


def pod_of(pod, driver):
    return POD % {"pod": pod, "driver": driver}


def skips(parts, claim):
    return [r.get("skipNodeOperations")
            for r in parts.get("resourceclaim", claim)["status"]["allocation"]["devices"]["results"]]


def start_all(parts, *flags):
    parts.start_control_plane(*flags)
    parts.start_node(*flags)


def wait_registered(parts, driver):
    wait_until(f"{driver} has published", lambda: driver in (parts.run("get", "resourceslices", "-o", "json", check=False)))


def scenario_1_1(parts):
    """No node component, operations skipped: the pod runs with its device, without a warning, and is deleted at once."""
    start_all(parts, GATE_ON)
    parts.apply(slice_of(GHOST, True))
    parts.apply(pod_of("p", GHOST))
    parts.wait_phase("p", "Running")
    assert skips(parts, "p") == [True], skips(parts, "p")
    assert parts.get("resourceclaim", "p")["status"]["reservedFor"][0]["name"] == "p"
    assert not parts.events("FailedPrepareDynamicResources")
    assert parts.metric("kubelet_dra_node_prepare_skips_total") == 1
    parts.delete_pod("p", AT_ONCE)
    assert parts.metric("kubelet_dra_node_unprepare_skips_total") == 1


def scenario_1_2(parts):
    """No node component although one is required: the pod is stuck, and its events say why. It can still be deleted."""
    start_all(parts, GATE_ON)
    parts.apply(slice_of(GHOST, False))
    parts.apply(slice_of("other.example.com", None))
    for pod, driver in (("p", GHOST), ("q", "other.example.com")):
        parts.apply(pod_of(pod, driver))
        wait_until("the event", lambda p=pod: parts.events("FailedPrepareDynamicResources", p))
        message = parts.events("FailedPrepareDynamicResources", pod)[0]
        assert f"DRA driver {driver} is not registered" in message, message
        status = parts.get("pod", pod)["status"]
        assert status["phase"] == "Pending", status
        assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating", status
        parts.delete_pod(pod, AT_ONCE)


def health_row(parts, pod):
    rows = parts.get("pod", pod)["status"]["containerStatuses"][0].get("allocatedResourcesStatus")
    resource = rows[0]["resources"][0] if rows else {}
    return resource.get("health"), resource.get("message", "")


def scenario_2_1(parts):
    """A standard driver is called for both operations and reports health. Once declared gone, it blocks nothing."""
    start_all(parts, GATE_ON)
    driver = parts.start_driver("driver", "sim.drakkar.io", "--control", stdin=subprocess.PIPE)
    wait_registered(parts, "sim.drakkar.io")
    parts.apply(slice_of(GHOST, None))  # only for its class
    parts.apply(slice_of("sim.drakkar.io", None).split("---")[1])
    parts.apply(pod_of("p", "sim.drakkar.io"))
    parts.wait_phase("p", "Running")
    assert skips(parts, "p") in ([None], [False], [[]]), skips(parts, "p")
    calls = 'kubelet_dra_grpc_operations_duration_seconds_count{driver_name="sim.drakkar.io",grpc_status_code="OK",' \
            'method_name="/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/Node%sResources"}'
    assert parts.metric(calls % "Prepare") == 1, parts.node_get("metrics")
    devices = parts.run("get", "devices")
    held = [line.split() for line in devices.splitlines() if "default/p" in line]
    assert len(held) == 1 and held[0][0] == "n1" and held[0][4] == "Healthy", devices
    assert devices.split()[:8] == ["NODE", "DRIVER", "DEVICE", "STATE", "HEALTH", "SINCE", "CLAIM", "POD"], devices
    wait_until("health in describe", lambda: "Healthy" in parts.run("describe", "pod", "p"))
    container = parts.get("pod", "p")["status"]["containerStatuses"][0]["containerID"]
    for state, message in (("Unhealthy", "too hot"), ("Healthy", "")):
        driver.stdin.write(f"health {held[0][2]} {state} {message}".strip().encode() + b"\n")
        driver.stdin.flush()
        wait_until(f"{state} in the status", lambda s=state, m=message: health_row(parts, "p") == (s, m))
    assert "too hot" in parts.events("DeviceUnhealthy", "p")[0], parts.run("get", "events")
    status = parts.get("pod", "p")["status"]
    assert status["phase"] == "Running" and status["containerStatuses"][0]["containerID"] == container, status
    parts.delete_pod("p", AT_ONCE)
    assert parts.metric(calls % "Unprepare") == 1
    parts.apply(pod_of("q", "sim.drakkar.io"))
    parts.wait_phase("q", "Running")
    parts.stop("driver")
    parts.run("delete", "pod", "q", "--wait=false")
    wait_until("the event", lambda: parts.events("FailedUnprepareDynamicResources", "q"))
    parts.run("node", "forget-driver", "n1", "sim.drakkar.io")
    assert "warning: " in parts.errors, parts.errors
    parts.run("wait", "--for=delete", "pod/q", f"--timeout={AT_ONCE}s")
    assert parts.events("DriverForgotten", "n1"), parts.run("get", "events")


def scenario_3_1(parts):
    """Rolling upgrade: a pod that requires the feature waits for a node that has it."""
    start_all(parts, BEFORE)
    parts.start_driver()
    wait_registered(parts, "sim.drakkar.io")
    parts.stop_control_plane()
    parts.start_control_plane(GATE_ON)
    parts.apply(slice_of(GHOST, True))
    parts.apply(pod_of("p", GHOST))
    message = wait_until("the event", lambda: parts.events("FailedScheduling", "p"))[0]
    assert "did not match node declared features: DraOptionalNodePreparation" in message, message
    assert not parts.get("pod", "p")["spec"].get("nodeName")
    parts.stop("node")
    parts.start_node(GATE_ON)
    parts.wait_phase("p", "Running", 30)
    assert skips(parts, "p") == [True]
    assert "DraOptionalNodePreparation" in parts.get("node", "n1")["status"]["declaredFeatures"]
    parts.delete_pod("p", AT_ONCE)
    assert not parts.events("FailedUnprepareDynamicResources")


def scenario_3_2(parts):
    """Rollback: the control plane first, then the node's gate."""
    start_all(parts, GATE_ON)
    parts.start_driver()
    parts.apply(slice_of(GHOST, True))
    parts.apply(pod_of("p", GHOST))
    parts.wait_phase("p", "Running")
    container = parts.get("pod", "p")["status"]["containerStatuses"][0]["containerID"]
    parts.stop_control_plane()
    parts.start_control_plane(BEFORE)
    parts.apply(slice_of(GHOST, True, labels=", labels: {touched: 'yes'}"))
    assert parts.get("resourceslice", f"{GHOST}-slice")["spec"]["skipNodeOperations"] is True
    parts.run("apply", "-f", "-", stdin=slice_of("new.example.com", True).split("---")[0], check=False)
    assert "skipNodeOperations" in parts.errors, "a new one is refused: " + parts.errors
    status = parts.get("pod", "p")["status"]
    assert status["phase"] == "Running" and status["containerStatuses"][0]["containerID"] == container, status
    parts.stop("node")
    state = json.loads((parts.root / "dra_manager_state").read_text())["Data"]
    assert '"skipNodeOperations":["*"]' in state, state
    parts.start_node(GATE_OFF)
    # The running pod fails re-admission, its containers stop, and its deletion needs no driver.
    parts.wait_phase("p", "Failed")
    status = parts.get("pod", "p")["status"]
    assert status["reason"] == "PodFeatureUnsupported", status
    wait_until("its container has ended", lambda: not parts.conmons())
    parts.delete_pod("p", AT_ONCE)
    assert not parts.events("FailedUnprepareDynamicResources")
    assert parts.metric("kubelet_dra_node_unprepare_skips_total") == 1


def slices_of(parts, driver):
    items = json.loads(parts.api("GET", "/apis/resource.k8s.io/v1/resourceslices"))["items"]
    return [each["metadata"]["name"] for each in items if each["spec"]["driver"] == driver]


def scenario_3_3(parts):
    """Upgrade, downgrade, upgrade. The node of the previous release does not know the field."""
    start_all(parts, BEFORE)
    parts.start_driver()
    wait_registered(parts, "sim.drakkar.io")
    parts.stop_control_plane()
    parts.stop("node")
    start_all(parts, GATE_ON)
    parts.apply(slice_of(GHOST, True))
    parts.apply(pod_of("p", GHOST))
    parts.wait_phase("p", "Running", 30)
    parts.stop_control_plane()
    parts.stop("node")
    start_all(parts, BEFORE)
    parts.apply(slice_of(GHOST, True, labels=", labels: {touched: 'yes'}"))
    assert parts.get("resourceslice", f"{GHOST}-slice")["spec"]["skipNodeOperations"] is True
    wait_until("the node is back", lambda: parts.node_get("healthz") == "ok")
    assert parts.phase("p") == "Running"
    parts.run("delete", "pod", "p", "--wait=false")
    message = wait_until("unprepare calls the driver", lambda: parts.events("FailedUnprepareDynamicResources", "p"))[0]
    assert f"DRA driver {GHOST} is not registered" in message, message
    assert parts.get("pod", "p"), "deletion waits"
    parts.start_driver("no-op", GHOST)
    parts.run("wait", "--for=delete", "pod/p", "--timeout=15s")
    parts.stop("no-op")
    parts.stop_control_plane()
    parts.stop("node")
    start_all(parts, GATE_ON)
    # The node deletes the no-op driver's slices when it starts; a pod with such a device would wait for that driver.
    wait_until("only our slice is left", lambda: slices_of(parts, GHOST) == [f"{GHOST}-slice"])
    parts.apply(pod_of("q", GHOST))
    parts.wait_phase("q", "Running", 30)
    assert skips(parts, "q") == [True]
    assert parts.get("resourceslice", f"{GHOST}-slice")["metadata"]["labels"] == {"touched": "yes"}
    parts.delete_pod("q", AT_ONCE)


SCENARIOS = {"1.1": scenario_1_1, "1.2": scenario_1_2, "2.1": scenario_2_1, "3.1": scenario_3_1,
             "3.2": scenario_3_2, "3.3": scenario_3_3}


def main():
    skip_without_containers()
    for name in sys.argv[2:] or SCENARIOS:
        begun = time.monotonic()
        with Parts(sys.argv[1]) as parts:
            SCENARIOS[name](parts)
        print(f"ok: {name} ({time.monotonic() - begun:.1f} s): {SCENARIOS[name].__doc__.splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()
