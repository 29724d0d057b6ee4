#!/usr/bin/env python3
"""SIGKILL of everything but the containers: they keep running and are adopted, not duplicated; those that
exited in the meantime have their exit code and log; nothing is left behind."""
import sys

from cluster import Cluster, skip_without_containers, wait_until

POD = """apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: localhost/busybox:latest
    command: ["sh", "-c", "%s"]
    resources: {claims: [{name: dev}]}
  resourceClaims: [{name: dev, resourceClaimTemplateName: one-device}]
"""


def phase(cluster, pod):
    return (cluster.get("pod", pod) or {}).get("status", {}).get("phase")


def main():
    skip_without_containers()
    with Cluster(sys.argv[1]) as cluster:
        cluster.start()
        cluster.run("apply", "-f", "examples/hello-device/class.yaml",
                    "-f", "examples/hello-device/claim-template.yaml")
        cluster.run("apply", "-f", "-", stdin=POD % ("stays", "echo begun; sleep 600"))
        cluster.run("apply", "-f", "-", stdin=POD % ("ends", "echo going; sleep 2; echo gone; exit 7"))
        for pod in ("stays", "ends"):
            wait_until(f"{pod} runs", lambda p=pod: phase(cluster, p) == "Running")
        container = cluster.get("pod", "stays")["status"]["containerStatuses"][0]["containerID"]
        claim = cluster.get("pod", "stays")["status"]["resourceClaimStatuses"][0]["resourceClaimName"]

        cluster.kill()
        wait_until("the driver ends with its parent",
                   lambda: not [p for p, words in cluster.processes("drakkar") if "driver" in words])
        assert len(cluster.processes("conmon")) >= 1, "containers outlive the agent"
        wait_until("the second container has ended", lambda: len(cluster.processes("conmon")) == 1, 20)
        cluster.start()

        wait_until("what ended meanwhile is told", lambda: phase(cluster, "ends") == "Failed")
        state = cluster.get("pod", "ends")["status"]["containerStatuses"][0]["state"]["terminated"]
        assert state["exitCode"] == 7, state
        assert cluster.run("logs", "ends") == "going\ngone\n", cluster.run("logs", "ends")
        pod = cluster.get("pod", "stays")
        assert pod["status"]["phase"] == "Running", pod["status"]
        assert pod["status"]["containerStatuses"][0]["containerID"] == container, "adopted, not duplicated"
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
        assert len(cluster.processes("conmon")) == 1, cluster.processes("conmon")
        allocated = cluster.get("resourceclaim", claim)
        assert allocated["status"]["allocation"]["devices"]["results"][0]["driver"] == "sim.drakkar.io"
        assert allocated["status"]["reservedFor"][0]["name"] == "stays"
        assert allocated["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]

        cluster.run("delete", "pod", "stays", "ends")
        wait_until("claims are gone", lambda: not cluster.run("get", "resourceclaims", "-o", "name").strip())
        assert not cluster.processes("conmon"), "no container is left"
        assert str(cluster.work) not in open("/proc/mounts").read(), "no mount is left"
    print("ok: adopted after SIGKILL, exit code and log of what ended meanwhile, nothing left behind")


if __name__ == "__main__":
    main()
