#!/usr/bin/env python3
"""The example drivers under a real node: pods get their devices, and nothing is left behind."""
import json
import os
import pathlib
import signal
import subprocess
import sys

from cluster import ROOT, Cluster, skip_without_containers, wait_until


class Driver:
    """An example as a separate process."""

    def __init__(self, cluster, binary, *flags):
        self.log = open(cluster.work / f"{os.path.basename(binary)}.log", "a")
        self.process = subprocess.Popen(
            [binary, f"--kubeconfig={cluster.data / 'admin.kubeconfig'}", *flags],
            stdout=self.log, stderr=self.log, env={k: v for k, v in os.environ.items() if k != "KUBECONFIG"})

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=10)
        assert code == 0, f"the driver ended with {code}"


def phase(cluster, pod):
    return (cluster.get("pod", pod) or {}).get("status", {}).get("phase")


def slices(cluster, driver):
    return [s for s in cluster.list("resourceslices") if s["spec"]["driver"] == driver]


def minimal(cluster, binary):
    cdi = cluster.data / "cdi"
    driver = Driver(cluster, binary, "--node-name=n1", f"--cdi-dir={cdi}",
                    f"--registry-dir={cluster.data / 'kubelet/plugins_registry'}")
    wait_until("the devices are published", lambda: slices(cluster, "minimal.example.com"))
    cluster.run("apply", "-f", "examples/driver-minimal/manifests.yaml")
    wait_until("the pod ends", lambda: phase(cluster, "minimal") == "Succeeded")
    log = cluster.run("logs", "minimal")
    assert log in ("I have minimal-0\n", "I have minimal-1\n"), log
    cluster.run("delete", "pod", "minimal")
    wait_until("nothing is left of the claim", lambda: not list(cdi.glob("minimal.example.com_*")))
    driver.stop()


def without_a_node(cluster, binary):
    driver = Driver(cluster, binary, "--licenses=1")
    published = wait_until("the licenses are published", lambda: slices(cluster, "licenses.example.com"))
    spec = published[0]["spec"]
    assert spec["allNodes"] is True and spec["skipNodeOperations"] == ["*"], spec
    assert "nodeName" not in spec, spec
    cluster.run("apply", "-f", "examples/no-node-driver/manifests.yaml")
    # No driver with this name is registered on the node; the pod starts nevertheless.
    wait_until("the pod ends", lambda: phase(cluster, "licensed") == "Succeeded")
    assert cluster.run("logs", "licensed") == "running with a license\n"
    driver.stop()
    assert slices(cluster, "licenses.example.com"), "slices outlive the controller"
    cluster.run("delete", "pod", "licensed")
    wait_until("the pod is gone without a driver", lambda: cluster.get("pod", "licensed") is None)


def network(cluster, binary, driver_name, claim, pod):
    """Deferred metadata from the NRI hook: the first init container reads it."""
    driver = Driver(cluster, binary, "--node-name=n1", "--enable-device-metadata", f"--cdi-dir={cluster.data / 'cdi'}",
                    f"--nri-socket={cluster.data / 'nri/nri.sock'}",
                    f"--registry-dir={cluster.data / 'kubelet/plugins_registry'}")
    wait_until("the devices are published", lambda: slices(cluster, driver_name))
    log = cluster.work / f"{os.path.basename(binary)}.log"
    wait_until("the plugin is registered", lambda: "registered with the container runtime" in log.read_text())
    cluster.run("apply", "-f", f"examples/{os.path.basename(binary)}/manifests.yaml")

    def told():
        devices = (cluster.get("resourceclaim", claim) or {}).get("status", {}).get("devices", [])
        return devices and devices[0].get("networkData", {}).get("ips") and devices[0]

    status = wait_until("the claim's status tells the address", told)
    assert [(c["type"], c["status"], c["reason"]) for c in status["conditions"]] == [("Ready", "True", "NetworkReady")]
    wait_until("the pod ends", lambda: phase(cluster, pod) in ("Succeeded", "Failed"))
    for container in ("first", "c"):
        metadata = json.loads(cluster.run("logs", pod, "-c", container))
        device = metadata["requests"][0]["devices"][0]
        assert device["networkData"]["ips"][0].startswith("192.0.2.1"), metadata
        assert metadata["metadata"]["generation"] == 1, metadata
    cluster.run("delete", "pod", pod)
    wait_until("nothing is left of the metadata", lambda: not list((cluster.data / "cdi").glob(f"{driver_name}_*")))
    return driver, status


def pod_with_two_claims(name, driver_name):
    """A pod with two claims that prints the metadata of both until it is stopped."""
    claims = [{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
               "metadata": {"name": f"{name}-{i}", "namespace": "default"},
               "spec": {"devices": {"requests": [{"name": "nic", "exactly": {"deviceClassName": driver_name}}]}}}
              for i in range(2)]
    path = f"/var/run/dra-device-attributes/{name}-%d/nic/{driver_name}-metadata.json"
    wait = "; ".join(f"while [ ! -s {path % i} ]; do sleep 0.1; done; cat {path % i}; echo" for i in range(2))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
           "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "c", "image": "localhost/busybox:latest", "command": ["sh", "-c", wait],
                                    "resources": {"claims": [{"name": f"c{i}"} for i in range(2)]}}],
                    "resourceClaims": [{"name": f"c{i}", "resourceClaimName": f"{name}-{i}"} for i in range(2)]}}
    return "\n---\n".join(json.dumps(each) for each in [*claims, pod])


def told_of_both(cluster, name):
    wait_until("the pod ends", lambda: phase(cluster, name) in ("Succeeded", "Failed"))
    told, text = [], cluster.run("logs", name).strip()
    while text:
        document, end = json.JSONDecoder().raw_decode(text)
        told.append(document)
        text = text[end:].strip()
    assert [t["metadata"]["name"] for t in told] == [f"{name}-0", f"{name}-1"], told
    for each in told:
        assert each["metadata"]["generation"] == 1, told
        assert each["requests"][0]["devices"][0]["networkData"]["ips"][0].startswith("192.0.2.1"), told
    cluster.run("delete", "pod", name)
    wait_until("the pod is gone", lambda: cluster.get("pod", name) is None)


def network_of_several_claims(cluster, binary, driver_name, driver):
    """The driver handles both claims of a pod, and a pod whose RunPodSandbox it missed."""
    manifest = cluster.work / "two.yaml"
    manifest.write_text(pod_with_two_claims(f"two-{driver_name[:3]}", driver_name))
    cluster.run("apply", "-f", str(manifest))
    told_of_both(cluster, f"two-{driver_name[:3]}")
    driver.stop()
    flags = ("--node-name=n1", "--enable-device-metadata", f"--cdi-dir={cluster.data / 'cdi'}",
             f"--registry-dir={cluster.data / 'kubelet/plugins_registry'}")
    deaf = Driver(cluster, binary, *flags, f"--nri-socket={cluster.work / 'nowhere.sock'}")
    name = f"late-{driver_name[:3]}"
    manifest.write_text(pod_with_two_claims(name, driver_name))
    cluster.run("apply", "-f", str(manifest))
    wait_until("the pod runs", lambda: phase(cluster, name) == "Running")
    assert cluster.run("logs", name) == "", "no metadata yet"
    deaf.stop()
    driver = Driver(cluster, binary, *flags, f"--nri-socket={cluster.data / 'nri/nri.sock'}")
    told_of_both(cluster, name)
    return driver


def network_in_c(cluster, binary):
    driver, status = network(cluster, binary, "cnet.example.com", "downlink", "cnetworked")
    assert status["data"] == {"mtu": 9000}, status

    def taints():
        devices = slices(cluster, "cnet.example.com")[0]["spec"]["devices"]
        return {d["name"]: [t["key"] for t in d.get("taints", [])] for d in devices}

    assert not any(taints().values()), taints()
    driver.process.send_signal(signal.SIGUSR1)
    wait_until("the device without a link is tainted", lambda: taints()["net-3"] == ["cnet.example.com/no-link"])
    assert not taints()["net-0"], taints()
    driver.process.send_signal(signal.SIGUSR1)
    wait_until("the taint goes with its cause", lambda: not taints()["net-3"])
    network_of_several_claims(cluster, binary, "cnet.example.com", driver).stop()


def main():
    skip_without_containers()
    binaries = pathlib.Path(sys.argv[2])
    with Cluster(sys.argv[1]) as cluster:
        cluster.start()
        minimal(cluster, binaries / "driver-minimal")
        without_a_node(cluster, binaries / "no-node-driver")
        binary = binaries / "driver-network"
        driver = network(cluster, binary, "net.example.com", "uplink", "networked")[0]
        network_of_several_claims(cluster, binary, "net.example.com", driver).stop()
        network_in_c(cluster, binaries / "driver-network-c")
    print("ok: driver-minimal, no-node-driver, driver-network, driver-network-c")


if __name__ == "__main__":
    main()
