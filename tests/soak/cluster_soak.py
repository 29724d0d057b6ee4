#!/usr/bin/env python3
"""A cluster of several machines under load and faults.

Three machines with etcd and an API server, two of them with scheduler and controllers, and nodes with real containers,
each in a network namespace of its own, connected by a virtual switch. Kills, lost machines, pauses, partitions in one direction or both, slow and lossy
links, full disks and clock steps, drawn from the seed. Every client's history is recorded, and judged against the history
that etcd itself has. Planted bugs must be found, or the run proves nothing.

Exits with 1 if any check fails, with 77 if the machine cannot run it."""
import argparse
import collections
import json
import os
import pathlib
import pickle
import random
import shutil
import sys
import tempfile
import time

import machines
import verdicts
from audit import Auditor, put
from deployment import Deployment
from faults import Faults
from lies import LostWrites, MissedEvents, StaleReads
from sampler import Sampler, running_containers
from workload import (CLAIMS, MERGE, NAMESPACE, PODS, RIVAL, Pods, Registers, Rivals, Takers, Trespasser, Watcher)

SKIP = 77
AUDITED = ("configmaps/soak/", "resourceclaims/", "resourceslices/", verdicts.SERVICES, verdicts.SECRETS)
SETTLE_SECONDS = 300  # a bound for what must happen at all, also on a busy machine


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def judge(self, what, problems, detail=""):
        problems = list(problems)
        self.passed += not problems
        self.failed += bool(problems)
        print(f"{'failed' if problems else 'passed'}: {what}" + (f" ({detail})" if detail else ""), flush=True)
        for problem in problems[:verdicts.SHOWN_MAX]:
            print(f"    {problem}")
        if len(problems) > verdicts.SHOWN_MAX:
            print(f"    and {len(problems) - verdicts.SHOWN_MAX} more")


def find_etcd():
    return os.environ.get("DRAKKAR_ETCD") or shutil.which("etcd")


def set_up(deployment):
    status, document = deployment.api("POST", "/api/v1/namespaces", {
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"resource.kubernetes.io/admin-access": "true"}}})
    assert status in (201, 409), document
    Pods.set_up(deployment)
    Rivals.set_up(deployment)
    Takers.set_up(deployment)


def is_node_ready(deployment, node):
    status, document = deployment.api("GET", f"/api/v1/nodes/{node.name}")
    return status == 200 and any(c["type"] == "Ready" and c["status"] == "True"
                                 for c in document["status"].get("conditions", []))


def wait_healthy(deployment, seconds):
    for machine in deployment.control:
        deployment.wait(f"the API server of {machine.name} is ready",
                        lambda m=machine: deployment.ask(m.address, "GET", "/readyz")[0] == 200, seconds)
    for node in deployment.nodes:
        deployment.wait(f"{node.name} is ready", lambda n=node: is_node_ready(deployment, n), seconds)


def bound(deployment, name):
    status, document = deployment.api("GET", f"{PODS}/{name}")
    return status == 200 and document["spec"].get("nodeName")


def wait_standby(deployment):
    """Every program runs, and has run for as long as a standby needs to learn how long the leader's lease lasts. One that
    has lost a lease ends, and is only restarted here."""
    since = None

    def steady():
        nonlocal since
        if any(p.process.poll() is not None for p in deployment.processes()):
            since = None
            return False
        since = since or time.monotonic()
        return time.monotonic() - since > deployment.lease_seconds
    deployment.wait("all programs keep running", steady, SETTLE_SECONDS)


def lose_leader(deployment, report, functional):
    """Without any other fault, loses the machine whose scheduler leads, with its network: how long until a write is
    acknowledged elsewhere, and until a pod is bound again."""
    _, lease = deployment.api("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
    holder = lease["spec"].get("holderIdentity", "")
    # All run under one host name; the logs say who is who.
    lost = next((m for m in deployment.control[:2] if holder and holder in m.processes["scheduler"].text()),
                deployment.control[0])
    others = [m.address for m in deployment.control if m is not lost]
    undo = Faults.cut_off_and_kill(lost)
    begun = time.monotonic()
    attempt = 0

    def write():
        nonlocal attempt
        attempt += 1
        return deployment.ask(others[attempt % 2], "POST", PODS, Pods.pod("after-loss"), timeout=2)[0] in (201, 409)
    deployment.wait("a write is acknowledged without the machine", write, SETTLE_SECONDS)
    written = time.monotonic() - begun
    deployment.wait("a pod is bound without the machine", lambda: bound(deployment, "after-loss"), SETTLE_SECONDS)
    scheduled = time.monotonic() - begun
    undo()
    limit = deployment.lease_seconds + 1
    slow = [] if functional or scheduled <= limit else [f"it took {scheduled:.1f} s; the limit is {limit} s"]
    report.judge("losing the leader's machine costs no more than its lease and a second", slow,
                 f"write after {written:.1f} s, pod bound after {scheduled:.1f} s")


def settle(deployment, report):
    """After the faults everything works again, and what was deleted goes away completely."""
    names = [f"final-{n}" for n in range(len(deployment.nodes))]
    for pod in deployment.api("GET", PODS)[1]["items"]:
        deployment.api("DELETE", f"{PODS}/{pod['metadata']['name']}")
    begun = time.monotonic()
    problems = []
    try:
        deployment.wait("all pods are gone", lambda: not deployment.api("GET", PODS)[1]["items"], SETTLE_SECONDS)
    except AssertionError:
        problems = [f"{p['metadata']['name']} on {p['spec'].get('nodeName')}: {p['status'].get('phase')}"
                    for p in deployment.api("GET", PODS)[1]["items"]]
    report.judge("no pod is stuck in Terminating", problems, f"{time.monotonic() - begun:.1f} s")
    def create(name):
        # A disk that was full is a taint for some minutes.
        pod = Pods.pod(name)
        del pod["spec"]["tolerations"]
        deployment.api("POST", PODS, pod)
    for name in names:
        create(name)

    def phases():
        found = {}
        for pod in deployment.api("GET", PODS)[1]["items"]:
            name = pod["metadata"]["name"]
            found[name] = pod["status"].get("phase")
            if pod["status"].get("reason") == "Evicted":  # bound before the scheduler saw the taint
                deployment.api("DELETE", f"{PODS}/{name}")
                create(name)
        return found
    begun = time.monotonic()
    try:
        deployment.wait("new pods run", lambda: all(phases().get(n) == "Running" for n in names), SETTLE_SECONDS)
        problems = []
    except AssertionError:
        problems = [str(phases())]
    report.judge("new pods run after the faults", problems, f"{len(names)} pods in {time.monotonic() - begun:.1f} s")
    for name in names:
        deployment.api("DELETE", f"{PODS}/{name}")

    def leftovers():
        claims = [c for c in deployment.api("GET", CLAIMS)[1]["items"] if not c["metadata"]["name"].startswith("rival-")]
        pods = {p["metadata"]["uid"] for p in deployment.api("GET", PODS)[1]["items"]}
        found = [f"reservation of {c['metadata']['name']} for a pod that is gone" for c in claims
                 for r in c.get("status", {}).get("reservedFor", []) if r["uid"] not in pods]
        found += [f"claim {c['metadata']['name']}" for c in claims] + [f"pod {uid}" for uid in pods]
        found += [f"container of {pod}" for _, pod, _ in running_containers()]
        return found + [f"prepared claim {uid}" for uid in Sampler(deployment.nodes).prepared()]
    try:
        deployment.wait("nothing is left", lambda: not leftovers(), SETTLE_SECONDS)
        problems = []
    except AssertionError:
        problems = leftovers()
    report.judge("no reservation without a pod, and no claim, container or prepared claim is left behind", problems)


def audit_from_now(deployment):
    """The last change that was audited may be older than what etcd still has: the judgement before takes minutes on a
    busy machine, and the servers compact every minute."""
    return Auditor(deployment.servers(), AUDITED, 0, after=put(deployment.servers(), "/registry/drakkar.io/soak-plant", "{}"))


def plant_double_allocation(deployment, changes):
    """Writes to etcd, past every API server, that a second claim has a device that is held. Returns what the check says."""
    auditor = audit_from_now(deployment)
    for item in deployment.api("GET", CLAIMS)[1]["items"]:
        deployment.api("PATCH", f"{CLAIMS}/{item['metadata']['name']}/status", {"status": {"allocation": None}}, MERGE)
    status, held = deployment.api("PATCH", f"{CLAIMS}/rival-0-1/status", {"status": {"allocation": {"devices": {"results": [
        {"request": "r", "driver": RIVAL, "pool": "pool", "device": "gpu-0"}]}}}}, MERGE)
    assert status == 200, held
    twin = dict(held, metadata=dict(held["metadata"], name="planted", uid="00000000-0000-4000-8000-000000000000"))
    put(deployment.servers(), f"/registry/resourceclaims/{NAMESPACE}/planted", json.dumps(twin))
    auditor.finish()
    honest = [c for c in auditor.changes if not c.key.endswith("/planted")]
    before = verdicts.check_devices(changes + honest).problems
    return [p for p in verdicts.check_devices(changes + auditor.changes).problems if p not in before]


def plant_twins(deployment):
    """Writes to etcd, past every API server, a Service with the node port of another, and more Secrets than their quota
    allows. Returns what the checks say."""
    auditor = audit_from_now(deployment)
    status, twin = deployment.api("POST", Takers.SERVICES, {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "planted"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
    assert status == 201, twin
    twin["metadata"].update(name="planted-twin", uid="00000000-0000-4000-8000-000000000001")
    put(deployment.servers(), f"/registry/services/specs/{NAMESPACE}/planted-twin", json.dumps(twin))
    for number in range(Takers.SECRETS_MAX + 1):
        put(deployment.servers(), f"/registry/secrets/{NAMESPACE}/planted-{number}", json.dumps({
            "apiVersion": "v1", "kind": "Secret", "metadata": {
                "name": f"planted-{number}", "namespace": NAMESPACE, "uid": f"00000000-0000-4000-8000-0000000001{number:02}"}}))
    auditor.finish()
    return verdicts.check_services(auditor.changes), verdicts.check_quota(auditor.changes, Takers.SECRETS_MAX)


def judge(report, deployment, clients, sampler, auditor, faults):
    by_class = collections.defaultdict(list)
    for client in clients:
        by_class[type(client)].append(client)
    changes = auditor.changes
    versions = verdicts.Versions(changes)
    honest = [r for c in by_class[Registers] for r in c.records]
    listings = [each for c in by_class[Registers] for each in c.listings]
    acknowledged = sum(1 for r in honest if r.operation.outcome == "ok" and r.operation.kind != "read")
    report.judge("no acknowledged write is lost", verdicts.check_acknowledged(honest, versions), f"{acknowledged} writes")
    report.judge("reads return states that the store had", verdicts.check_reads(honest, versions),
                 f"{sum(r.operation.kind == 'read' for r in honest)} reads")
    report.judge("lists are one state, as fresh as what was acknowledged before",
                 verdicts.check_lists(honest, listings, versions), f"{len(listings)} lists")
    report.judge("no revision goes back", verdicts.check_revisions(honest))
    report.judge("every key is linearizable", verdicts.check_linearizable(honest, versions),
                 f"{len(honest)} operations on {len({r.key for r in honest})} keys, "
                 f"{sum(r.operation.outcome == 'unknown' for r in honest)} of unknown outcome")

    def streams(kind):
        return [(c.name, start, events) for c in by_class[kind] for start, events in c.streams]
    watched = streams(Watcher)
    report.judge("watches are complete and in order", verdicts.check_watches(watched, versions),
                 f"{sum(len(e) for _, _, e in watched)} events, {sum(c.moves for c in by_class[Watcher])} connections, "
                 f"{len(watched)} streams")
    devices = verdicts.check_devices(changes)
    rivals = by_class[Rivals]
    report.judge("no device, capacity or counter is allocated twice", devices.problems,
                 f"{devices.allocations} writes of allocated claims; rivals: {sum(c.accepted for c in rivals)} accepted, "
                 f"{sum(c.conflicts for c in rivals)} conflicts")
    takers = by_class[Takers]
    detail = f"{sum(c.accepted for c in takers)} created, {sum(c.refused for c in takers)} refused"
    report.judge("no cluster IP or node port belongs to two Services", verdicts.check_services(changes), detail)
    report.judge("no quota is exceeded", verdicts.check_quota(changes, Takers.SECRETS_MAX), detail)
    problems, looked = verdicts.check_containers(sampler.samples, changes)
    report.judge("containers run with prepared claims and their own devices", problems,
                 f"{looked} looks at containers, {sum(c.started for c in by_class[Pods])} pods ran")
    trespassers = by_class[Trespasser]
    report.judge("no node writes what belongs to another", [s for c in trespassers for s in c.successes],
                 f"{sum(c.refusals for c in trespassers)} refusals")
    report.judge("no component crashes", faults.crashes)
    report.judge("no client got an answer it does not understand", [c.error for c in clients if c.error])

    def lied(kind):
        return [r for c in by_class[kind] for r in c.records]
    found = {"lost write": verdicts.check_acknowledged(lied(LostWrites), versions),
             "lost write (linearizability)": verdicts.check_linearizable(lied(LostWrites), versions),
             "stale read": verdicts.check_linearizable(lied(StaleReads), versions),
             "stale list": verdicts.check_lists(lied(StaleReads), [each for c in by_class[StaleReads] for each in c.listings],
                                                versions),
             "missed event": verdicts.check_watches(streams(MissedEvents), versions),
             "double allocation": plant_double_allocation(deployment, changes)}
    found["node port of two"], found["exceeded quota"] = plant_twins(deployment)
    report.judge("planted bugs are found", [f"{name} was not found" for name, problems in found.items() if not problems],
                 ", ".join(found))


def soak(options, work, report):
    deployment = Deployment(os.path.realpath(options.drakkar), find_etcd(), work, options.nodes, options.functional)
    clients = []
    try:
        began = time.monotonic()
        deployment.start_control_plane()
        auditor = Auditor(deployment.servers(), AUDITED, options.seed)
        set_up(deployment)
        deployment.start_nodes()
        wait_healthy(deployment, 120)
        print(f"cluster of {len(deployment.machines)} machines is ready after {time.monotonic() - began:.1f} s", flush=True)
        kinds = [Registers] * 5 + [Watcher] * 3 + [Rivals] * 3 + [Takers] * 3 + [Pods] * 2 + [Trespasser, LostWrites, StaleReads, MissedEvents]
        counts = collections.Counter()
        for kind in kinds:
            clients.append(kind(deployment, counts[kind], options.seed))
            counts[kind] += 1
            if kind is Rivals:
                clients[-1].make_claims()
        sampler = Sampler(deployment.nodes)
        for each in (*clients, sampler):
            each.start()
        faults = Faults(deployment, options.seed, lambda what: print(f"{time.monotonic() - began:7.1f} {what}", flush=True))
        end = time.monotonic() + options.minutes * 60
        while time.monotonic() < end:
            faults.tick()
            time.sleep(0.1)
            assert auditor.broken is None, auditor.broken
            assert deployment.network.alive(), "the virtual switch ended"
        faults.heal()
        healing = time.monotonic()

        def healthy():
            return all(deployment.ask(a, "GET", "/readyz", timeout=2)[0] == 200 for a in deployment.servers())
        deployment.wait("all API servers are ready after the faults", healthy, SETTLE_SECONDS)
        print(f"all API servers are ready {time.monotonic() - healing:.1f} s after the last fault", flush=True)
        time.sleep(3)  # the load goes on without faults for a moment
        for client in clients:
            client.stopped.set()
        for client in clients:
            client.join(30)
        try:
            wait_healthy(deployment, SETTLE_SECONDS)
            wait_standby(deployment)
            lose_leader(deployment, report, options.functional)
            wait_healthy(deployment, SETTLE_SECONDS)
            settle(deployment, report)
        except AssertionError as why:  # what came before is judged all the same
            report.judge("the cluster recovers", [str(why)])
        sampler.stopped.set()
        sampler.join()
        auditor.finish()
        if options.keep:
            with open(work / "history.pickle", "wb") as file:
                pickle.dump({"records": [(c.name, c.records) for c in clients if hasattr(c, "records")],
                             "changes": auditor.changes}, file)
        answers = collections.Counter()
        for client in clients:
            answers.update(client.transport.counts)
        print("faults: " + ", ".join(f"{count} x {name}" for name, count in sorted(faults.counts.items())))
        print("requests: " + ", ".join(f"{count} x {name}" for name, count in sorted(answers.items())))
        print("ended by themselves and started again: " + (", ".join(
            f"{count} x {name}" for name, count in sorted(faults.restarts.items())) or "nothing"))
        judge(report, deployment, clients, sampler, auditor, faults)
    finally:
        for client in clients:
            client.stopped.set()
        deployment.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drakkar")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--functional", action="store_true", help="judge what is right, not how long it took")
    parser.add_argument("--keep", action="store_true", help="keep logs and histories even if all is well")
    options = parser.parse_args()
    missing = machines.missing_tools() or ("" if find_etcd() else "etcd (Debian package etcd-server)") or ", ".join(
        t for t in ("runc", "conmon") if not shutil.which(t))
    if missing:
        print(f"skipped: needs {missing}")
        sys.exit(SKIP)
    machines.enter_sandbox()
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-soak-"))
    print(f"seed {options.seed}", flush=True)
    report = Report()
    try:
        soak(options, work, report)
    except AssertionError as why:
        report.judge("the run completes", [str(why)])
    if report.failed or options.keep:
        print(f"logs are kept in {work}/logs")
    else:
        shutil.rmtree(work / "logs", ignore_errors=True)
        shutil.rmtree(work, ignore_errors=True)
    print(f"{report.passed} passed, {report.failed} failed")
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
