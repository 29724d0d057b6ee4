#!/usr/bin/env python3
"""The public CPU driver, unmodified and from its own manifests: it pins real containers through NRI, moves the others
off their CPUs, and keeps that through restarts of either side. Needs two CPUs."""
import os
import sys

from node_drivers import DRIVERS, SKIP, DriverCluster, enter, manifests, wait_until

POD = """apiVersion: v1
kind: Pod
metadata: {name: %(name)s}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: "localhost/busybox:latest", command: ["sleep", "1000000"]}]
"""


def cpus(cluster, pod):
    return cluster.status_line(pod, "Cpus_allowed_list")


def restarts(pod):
    return sum(c["restartCount"] for c in pod["status"]["containerStatuses"])


def main():
    enter("dracpu")
    if os.cpu_count() < 2:
        print("skipped: needs two CPUs")
        raise SystemExit(SKIP)
    everything = f"0-{os.cpu_count() - 1}"
    parts = sorted((manifests("dracpu") / "manifests/base").glob("*.yaml"))
    daemon = next(p for p in parts if "daemonset" in p.name)
    image = next(line.split("image: ")[1].strip() for line in daemon.read_text().splitlines() if "image: " in line)
    example = (manifests("dracpu") / "hack/examples/pod_with_resource_claim_grouped_mode.yaml").read_text()
    # The example asks for ten CPUs and two gigabytes; the program in its image only sleeps.
    example = example.replace('"10"', '"1"').replace('"2Gi"', '"16Mi"')
    with DriverCluster(sys.argv[1], "--nri-request-timeout=10") as cluster:
        cluster.import_image(image, {"dracpu": DRIVERS / "dracpu"})
        cluster.import_image("registry.k8s.io/pause:3.9", {"pause": "/bin/busybox", "bin/sleep": "/bin/busybox",
                                                           "bin/sed": "/bin/busybox"})
        example = example.replace("image: \"registry.k8s.io/pause:3.9\"",
                                  "image: \"registry.k8s.io/pause:3.9\"\n      command: [\"/bin/sleep\", \"1000000\"]")
        cluster.start()
        cluster.run_pod(POD % {"name": "early"})
        assert cpus(cluster, "early") == everything
        for part in parts:
            cluster.run("apply", "-f", str(part))
        driver = cluster.driver_pod("dracpu")
        wait_until("the CPUs are published", lambda: cluster.slices("dra.cpu"), 60)
        print("ok: installed", flush=True)

        cluster.run_pod(example)
        pinned = cpus(cluster, "pod-cpu-dra-claim")
        assert pinned in ("0", "1"), pinned
        rest = ",".join(str(n) for n in range(os.cpu_count()) if str(n) != pinned)
        rest = rest if os.cpu_count() == 2 else None

        def check(*pods):
            assert cpus(cluster, "pod-cpu-dra-claim") == pinned
            for pod in pods:
                assert pinned not in cpus(cluster, pod).split(","), (pod, cpus(cluster, pod), pinned)
                assert rest is None or cpus(cluster, pod) == rest, (pod, cpus(cluster, pod), rest)
        check("early")
        cluster.run_pod(POD % {"name": "late"})
        check("early", "late")
        print("ok: pinned, and the others moved", flush=True)

        # The agent is killed and started again: the driver comes back by itself and finds the pinned container.
        cluster.kill()
        cluster.start()
        check("early", "late")
        cluster.driver_pod("dracpu")
        wait_until("the driver is registered again", lambda: "NRI plugin registered" in
                   (cluster.work / "up.log").read_text().split("drakkar is ready")[-1], 60)
        cluster.run_pod(POD % {"name": "after-restart"})
        check("early", "late", "after-restart")
        print("ok: the node agent was restarted", flush=True)

        driver = cluster.driver_pod("dracpu")
        cluster.run("delete", "pod", "-n", "kube-system", driver["metadata"]["name"])
        wait_until("another driver pod runs", lambda: cluster.driver_pod("dracpu")["metadata"]["uid"] != driver["metadata"]["uid"], 60)
        cluster.run_pod(POD % {"name": "after-driver"})
        check("early", "late", "after-restart", "after-driver")
        print("ok: the driver was restarted", flush=True)

        # The CPU is free again: for new containers, and after the next synchronization for all.
        cluster.run("delete", "pod", "pod-cpu-dra-claim")
        cluster.run("delete", "resourceclaim", "claim-cpu-capacity-10")
        wait_until("the claim is gone", lambda: cluster.get("resourceclaim", "claim-cpu-capacity-10") is None)
        cluster.run_pod(POD % {"name": "free"})
        assert cpus(cluster, "free") == everything, cpus(cluster, "free")
        driver = cluster.driver_pod("dracpu")
        cluster.run("delete", "pod", "-n", "kube-system", driver["metadata"]["name"])
        wait_until("the others get it back", lambda: cpus(cluster, "early") == everything, 90)

        for part in reversed(parts):
            cluster.run("delete", "--ignore-not-found", "-f", str(part))
        wait_until("the CPUs are gone", lambda: not cluster.slices("dra.cpu"), 90)
        cluster.run_pod(POD % {"name": "without"})
        assert cpus(cluster, "without") == everything
        print("ok: removed", flush=True)


if __name__ == "__main__":
    main()
