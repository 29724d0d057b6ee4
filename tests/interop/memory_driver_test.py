#!/usr/bin/env python3
"""The public memory driver, unmodified and from its own manifests: it pins real containers to the memory of their claims
through CDI and NRI, and keeps that through restarts of either side."""
import re
import sys

from node_drivers import DRIVERS, DriverCluster, enter, manifests, wait_until

CLAIM = """apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: some-memory}
spec:
  spec:
    devices:
      requests:
      - name: mem
        exactly: {deviceClassName: dra.memory, capacity: {requests: {size: 64Mi}}}
"""
POD = """apiVersion: v1
kind: Pod
metadata: {name: %(name)s}
spec:
  terminationGracePeriodSeconds: 0
  resourceClaims: [{name: mem, resourceClaimTemplateName: some-memory}]
  containers:
  - name: c
    image: "localhost/busybox:latest"
    command: ["sleep", "1000000"]
    resources: {claims: [{name: mem}], limits: {memory: 64Mi}}
"""


def main():
    enter("dramemory")
    source = (manifests("dramemory") / "hack/ci/install.tmpl.yaml").read_text()
    image = re.search(r"image: (\S+)", source).group(1)
    with DriverCluster(sys.argv[1], "--nri-request-timeout=10") as cluster:
        # The init container configures containerd, which is not here: another program takes its place.
        cluster.import_image(image, {"bin/dramemory": DRIVERS / "dramemory", "bin/setup-runtime": "/bin/true"})
        cluster.start()
        cluster.apply(source)
        cluster.driver_pod("dramemory")

        def names():
            return sorted(d["name"] for s in cluster.slices("dra.memory") for d in s["spec"]["devices"])
        wait_until("the memory is published", names, 60)
        print("ok: installed", flush=True)

        cluster.apply(CLAIM)

        def pinned(name):
            cluster.run_pod(POD % {"name": name})
            return check(name)

        def check(name):
            environment = cluster.inside(name, "env")
            assert re.search(r"^DRAMEMORY_\S+_NUMANodes=0$", environment, re.M), environment
            assert cluster.status_line(name, "Mems_allowed_list") == "0"
            return True
        assert pinned("first")
        print("ok: pinned", flush=True)

        cluster.kill()
        cluster.start()
        cluster.driver_pod("dramemory")
        wait_until("the driver is registered again", lambda: "NRI plugin registered" in
                   (cluster.work / "up.log").read_text().split("drakkar is ready")[-1], 60)
        assert check("first") and pinned("after-restart")
        print("ok: the node agent was restarted", flush=True)

        # The driver gives its devices new names at each start, and does not know the old ones any more: a pod that is
        # scheduled before the new ones are published never gets its claim, on any node agent.
        driver, before = cluster.driver_pod("dramemory"), names()
        cluster.run("delete", "pod", "-n", "kube-system", driver["metadata"]["name"])
        wait_until("another driver pod runs",
                   lambda: cluster.driver_pod("dramemory")["metadata"]["uid"] != driver["metadata"]["uid"], 60)
        wait_until("the new names are published", lambda: names() and not set(names()) & set(before), 60)
        assert check("first") and pinned("after-driver")
        print("ok: the driver was restarted", flush=True)

        for name in ("first", "after-restart", "after-driver"):
            cluster.run("delete", "pod", name)
        wait_until("the claims are gone", lambda: not cluster.list("resourceclaims"), 60)
        cluster.run("delete", "--ignore-not-found", "-f", "-", stdin=source)
        wait_until("the memory is gone", lambda: not cluster.slices("dra.memory"), 90)
        print("ok: removed", flush=True)


if __name__ == "__main__":
    main()
