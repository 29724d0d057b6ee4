#!/usr/bin/env python3
"""Two active schedulers, on different API servers of one etcd, share the devices of one driver. No device is ever
allocated twice, and every pod that fits is bound."""
import collections
import json
import pathlib
import signal
import sys
import threading

from cluster import free_port, scheduler_configuration, wait_until
from etcd import Bench

NODES, DEVICES, PODS = 3, 8, 60
GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
DRIVER = "gpu.example.com"


def counters(amount):
    return [{"counterSet": "card", "counters": {"memory": {"value": str(amount)}}}]


def set_up(server):
    """Nodes with plain devices, and a card on each whose two halves and whole exclude each other."""
    server.api("POST", "/api/v1/namespaces/default/serviceaccounts", {  # no controller does it here
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    server.api("POST", f"{GROUP}/deviceclasses", {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}})
    for n in range(NODES):
        node = f"n{n}"
        size = {"cpu": "64", "memory": "64Gi", "pods": "200"}
        server.api("POST", "/api/v1/nodes", {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": node},
            "status": {"allocatable": size, "capacity": size, "conditions": [{"type": "Ready", "status": "True"}]}})
        pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
        devices = [{"name": f"gpu-{i}"} for i in range(DEVICES)] + [
            {"name": "half-0", "consumesCounters": counters(4)}, {"name": "half-1", "consumesCounters": counters(4)},
            {"name": "whole", "consumesCounters": counters(8)}]
        for name, spec in (("devices", {"devices": devices}),
                           ("counters", {"sharedCounters": [{"name": "card", "counters": {"memory": {"value": "8"}}}]})):
            server.api("POST", f"{GROUP}/resourceslices", {
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{node}-{name}"},
                "spec": {"driver": DRIVER, "pool": pool, "nodeName": node, **spec}})


def create(server, n, scheduler):
    server.api("POST", CLAIMS, {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": f"c{n}"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}})
    server.api("POST", "/api/v1/namespaces/default/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{n}"},
        "spec": {"schedulerName": scheduler, "resourceClaims": [{"name": "r", "resourceClaimName": f"c{n}"}],
                 "containers": [{"name": "c", "image": "none", "resources": {"claims": [{"name": "r"}]}}]}})


def held(server):
    """The devices that claims hold, each with the number of its claims. Fails if one has two, or a card is overdrawn."""
    found = collections.Counter()
    for claim in server.api("GET", CLAIMS)["items"]:
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", []):
            found[(result["pool"], result["device"])] += 1
    assert all(count == 1 for count in found.values()), [d for d, count in found.items() if count > 1]
    for n in range(NODES):
        taken = sum(8 if device == "whole" else 4 for pool, device in found
                    if pool == f"n{n}" and not device.startswith("gpu-"))
        assert taken <= 8, (n, found)
    return found


def check_by_hand(a, b):
    """An allocation that another claim has is a conflict at either server, in the form that schedulers know."""
    for n in (900, 901):
        create(a, n, "nobody")
    allocation = {"status": {"allocation": {"devices": {"results": [
        {"request": "r", "driver": DRIVER, "pool": "n0", "device": "gpu-0"}]}}}}
    codes = {}

    def allocate(server, claim):
        codes[claim] = server.request("PATCH", f"{CLAIMS}/{claim}/status", allocation, "application/merge-patch+json")
    threads = [threading.Thread(target=allocate, args=pair) for pair in ((a, "c900"), (b, "c901"))]
    [t.start() for t in threads], [t.join() for t in threads]
    assert sorted(code for code, _ in codes.values()) == [200, 409], codes
    refusal = json.loads(next(text for code, text in codes.values() if code == 409))
    assert refusal["reason"] == "Conflict" and "n0/gpu-0" in refusal["message"], refusal
    assert sum(held(a).values()) == 1
    for n in (900, 901):
        a.api("PATCH", f"{CLAIMS}/c{n}/status", {"status": {"allocation": None}}, "application/merge-patch+json")
        a.api("DELETE", f"/api/v1/namespaces/default/pods/p{n}?gracePeriodSeconds=0")


def holder(server):
    code, text = server.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
    return json.loads(text)["spec"].get("holderIdentity") if code == 200 else None


def check_paused_leader(bench, a, b):
    """A leader that is stopped in the middle of its work is replaced. When it resumes, it steps down and changes
    nothing."""
    config = bench.work / "elected.yaml"
    config.write_text(scheduler_configuration("3s"))
    schedulers = {}
    for name, server in (("leader", a), ("standby", b)):
        schedulers[name] = bench.spawn(name, bench.drakkar, "scheduler", f"--kubeconfig={server.data}/admin.kubeconfig",
                                       f"--config={config}", f"--secure-port={free_port()}")
        wait_until("a scheduler leads", lambda: holder(a))
    first = holder(a)
    for n in range(500, 510):
        create(a, n, "default-scheduler")
    schedulers["leader"].send_signal(signal.SIGSTOP)
    wait_until("the other one leads", lambda: holder(b) not in (None, "", first), 15)
    for n in range(510, 520):
        create(b, n, "default-scheduler")
    count = sum(held(b).values())
    schedulers["leader"].send_signal(signal.SIGCONT)
    schedulers["leader"].wait(timeout=20)
    assert "lost lease" in bench.text("leader"), bench.text("leader")[-500:]
    assert holder(a) != first
    assert sum(held(a).values()) >= count
    schedulers["standby"].terminate()
    schedulers["standby"].wait(timeout=20)


def main():
    with Bench(sys.argv[1]) as bench:
        bench.start_etcd()
        a, b = bench.server("a").start(), bench.server("b").start()
        a.wait(), b.wait()
        set_up(a)
        check_by_hand(a, b)
        for server, scheduler in ((a, "first"), (b, "second")):
            config = bench.work / f"{scheduler}.yaml"
            config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
                              f"leaderElection: {{leaderElect: false}}\nprofiles: [{{schedulerName: {scheduler}}}]\n")
            bench.spawn(scheduler, bench.drakkar, "scheduler", f"--kubeconfig={server.data}/admin.kubeconfig",
                        f"--config={config}", "--secure-port=0")

        def make(server, numbers, scheduler):
            for n in numbers:
                create(server, n, scheduler)
        threads = [threading.Thread(target=make, args=(a, range(0, PODS, 2), "first")),
                   threading.Thread(target=make, args=(b, range(1, PODS, 2), "second"))]
        [t.start() for t in threads]
        while any(t.is_alive() for t in threads):
            held(b)
        [t.join() for t in threads]
        # Per node all plain devices, and of the card the whole or both halves.
        least = NODES * (DEVICES + 1)

        def settled():
            return sum(held(a).values()) >= least
        wait_until("all devices are held", settled, 60)
        pods = a.api("GET", "/api/v1/namespaces/default/pods")["items"]
        bound = collections.Counter(p["spec"]["schedulerName"] for p in pods if p["spec"].get("nodeName"))
        assert bound["first"] > 0 and bound["second"] > 0, bound
        # Freed devices go to pods that wait.
        for pod in [p for p in pods if p["spec"].get("nodeName")][:10]:
            name = pod["spec"]["resourceClaims"][0]["resourceClaimName"]
            a.api("DELETE", f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}?gracePeriodSeconds=0")
            b.api("PATCH", f"{CLAIMS}/{name}/status", {"status": {"allocation": None, "reservedFor": None}},
                  "application/merge-patch+json")
        wait_until("all devices are held again", settled, 60)
        wait_until("there is one record per device that is held", lambda: sum(held(a).values()) ==
                   len(bench.keys("/registry/drakkar.io/allocated/devices/")))
        check_paused_leader(bench, a, b)
    print(f"ok: two active schedulers, {bound['first']} and {bound['second']} pods")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    main()
