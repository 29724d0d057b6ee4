#!/usr/bin/env python3
"""A rolling upgrade and downgrade of a cluster on etcd, one component after the other, between releases: API servers of two
releases side by side, scheduler and controllers of one release at an API server of another, and nodes up to two releases
older. (--emulated-version makes a component behave as an older release.) At every step a Job with devices runs on all nodes,
and what one API server writes the other keeps."""
import json
import pathlib
import sys

from cluster import wait_until
from etcd import Bench

NEW, OLD, OLDER = "1.37", "1.36", "1.35"
GATE = "--feature-gates=DRAOptionalNodePreparation=true"
DRIVER = "sim.drakkar.io"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
MERGE = "application/merge-patch+json"


def emulated(release):
    return [f"--emulated-version={release}", *([GATE] if release == NEW else [])]


def job(name, completions):
    return json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": {
        "completions": completions, "parallelism": completions, "template": {
            "metadata": {"annotations": {"hollow.drakkar.io/runs-for": "500ms"}},
            "spec": {"restartPolicy": "Never", "resourceClaims": [{"name": "d", "resourceClaimTemplateName": "one"}],
                     "containers": [{"name": "c", "image": "registry.example.com/any:1",
                                     "resources": {"claims": [{"name": "d"}]}}]}}}})


class Cluster:
    def __init__(self, bench):
        self.bench = bench
        self.running = {}

    def start(self, name, server, release, *flags):
        """Replaces the component if it runs already."""
        self.stop(name)
        self.running[name] = self.bench.spawn(name, self.bench.drakkar, name.split("-")[0],
                                              f"--kubeconfig={server.data}/admin.kubeconfig", *emulated(release), *flags)

    def stop(self, name):
        process = self.running.pop(name, None)
        if process is not None:
            process.terminate()
            process.wait(timeout=30)

    def start_nodes(self, server, release, prefix):
        self.start(f"node-{prefix}", server, release, "--hollow=2", f"--hollow-prefix={prefix}-", "--hollow-devices=4")

    def ready(self, server):
        return sorted(n["metadata"]["name"] for n in server.api("GET", "/api/v1/nodes")["items"] if any(
            c["type"] == "Ready" and c["status"] == "True" for c in n["status"].get("conditions", [])))

    def run_job(self, server, name, nodes):
        """One pod per device: all nodes take part."""
        self.bench.run(server, "apply", "-f", "-", stdin=job(name, 4 * nodes))
        path = f"/apis/batch/v1/namespaces/default/jobs/{name}"
        wait_until(f"{name} completes", lambda: server.api("GET", path).get("status", {}).get("succeeded") == 4 * nodes, 120)
        self.bench.run(server, "delete", "job", name)
        claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
        wait_until(f"the claims of {name} are gone", lambda: not server.api("GET", claims)["items"], 60)
        print(f"ok: {name}", flush=True)


def check_field(new, old):
    """The older server does not know `skipNodeOperations`; what it writes keeps it, and it accepts no new use of it."""
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "skips"},
            "spec": {"driver": "other.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                     "allNodes": True, "skipNodeOperations": ["*"], "devices": [{"name": "d"}]}}
    new.api("POST", SLICES, body)
    old.api("PATCH", f"{SLICES}/skips", {"metadata": {"labels": {"by": "old"}}}, MERGE)
    kept = new.api("GET", f"{SLICES}/skips")
    assert kept["spec"]["skipNodeOperations"] == ["*"] and kept["metadata"]["labels"] == {"by": "old"}, kept
    new.api("DELETE", f"{SLICES}/skips")


def main():
    with Bench(sys.argv[1]) as bench:
        bench.start_etcd()
        cluster = Cluster(bench)
        old = bench.server("old", *emulated(OLD)).start().wait()
        assert f'"emulatedVersion":"{OLD}"' in old.request("GET", "/configz")[1], old.request("GET", "/configz")
        for kind, spec in (("DeviceClass", {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}),
                           ("ResourceClaimTemplate", {"spec": {"devices": {"requests": [
                               {"name": "r", "exactly": {"deviceClassName": "devices"}}]}}})):
            name = "devices" if kind == "DeviceClass" else "one"
            bench.run(old, "apply", "-f", "-", stdin=json.dumps({
                "apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}))
        for name in ("controllers", "scheduler"):
            cluster.start(name, old, OLD, "--secure-port=0", "--leader-elect=false")
        cluster.start_nodes(old, OLD, "a")
        cluster.start_nodes(old, OLDER, "b")
        wait_until("four nodes are ready", lambda: len(cluster.ready(old)) == 4, 60)
        cluster.run_job(old, "all-old", 4)

        new = bench.server("new", *emulated(NEW)).start().wait()
        check_field(new, old)
        cluster.run_job(new, "old-components-at-both-servers", 4)
        for name in ("controllers", "scheduler"):
            cluster.start(name, new, NEW, "--secure-port=0", "--leader-elect=false")
        cluster.run_job(old, "new-components-at-the-new-server", 4)
        cluster.start_nodes(new, NEW, "a")
        wait_until("the nodes are back", lambda: len(cluster.ready(new)) == 4, 60)
        old.stop()
        cluster.start_nodes(new, OLDER, "b")
        wait_until("the older nodes have moved", lambda: len(cluster.ready(new)) == 4, 60)
        cluster.run_job(new, "upgraded-with-older-nodes", 4)

        for name in ("scheduler", "controllers"):
            cluster.start(name, new, OLD, "--secure-port=0", "--leader-elect=false")
        cluster.run_job(new, "older-components-again", 4)
        cluster.start_nodes(new, OLD, "a")
        old.start().wait()
        for name in ("scheduler", "controllers"):
            cluster.start(name, old, OLD, "--secure-port=0", "--leader-elect=false")
        new.stop()
        for prefix, release in (("a", OLD), ("b", OLDER)):
            cluster.start_nodes(old, release, prefix)
        wait_until("all nodes are ready at the old server", lambda: len(cluster.ready(old)) == 4, 60)
        cluster.run_job(old, "downgraded", 4)
    print("ok: up and down again, one component after the other")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    main()
