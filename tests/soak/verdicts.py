"""Evaluates a run: compares the answers that clients got with the history of the store."""
import bisect
import collections
import math
import re

from linearizable import find_violation
from workload import NAMESPACE

MAPS = f"configmaps/{NAMESPACE}/"
CLAIMS = "resourceclaims/"
SLICES = "resourceslices/"
SERVICES = "services/specs/"
SECRETS = f"secrets/{NAMESPACE}/"
SHOWN_MAX = 5


class Versions:
    """The state of every ConfigMap at every revision."""

    def __init__(self, changes):
        self.of = collections.defaultdict(list)  # key -> [(revision, value)]
        self.changes = []                        # (revision, type, key, value)
        self.values = {}                         # value -> (key, revision)
        for change in changes:
            if not change.key.startswith(MAPS):
                continue
            key = change.key[len(MAPS):]
            value = change.document["data"].get("v") if change.document and "data" in change.document else None
            kind = "DELETED" if change.document is None else "ADDED" if change.created else "MODIFIED"
            self.of[key].append((change.revision, value))
            self.changes.append((change.revision, kind, key, value))
            if value is not None:
                self.values.setdefault(value, (key, change.revision))

    def at(self, key, revision):
        versions = self.of[key]
        index = bisect.bisect_right(versions, revision, key=lambda v: v[0])
        return versions[index - 1] if index else (0, None)


def resolve(records, versions):
    """Resolves operations of unknown outcome from the store's history: a write that is in it has happened, at the
    latest when a client saw it; one that is not in it has not."""
    seen = {}
    for record in records:
        if record.operation.kind == "read" and record.operation.observed is not None:
            value = record.operation.observed
            seen[value] = min(seen.get(value, math.inf), record.operation.end)
    deletes = collections.Counter(r.key for r in records if r.operation.kind == "delete" and r.operation.outcome == "ok")
    kept = []
    for record in records:
        operation = record.operation
        if operation.outcome == "unknown" and operation.kind == "delete":
            # A deletion does not say whose it is. If all of them were acknowledged, this one did not happen.
            if sum(value is None for _, value in versions.of[record.key]) <= deletes[record.key]:
                continue
        elif operation.outcome == "unknown":
            if operation.value not in versions.values:
                continue
            operation.outcome, operation.end = "ok", seen.get(operation.value, math.inf)
        kept.append(record)
    return kept


def check_linearizable(records, versions):
    by_key = collections.defaultdict(list)
    for record in resolve(records, versions):
        by_key[record.key].append(record.operation)
    problems = []
    for key, operations in sorted(by_key.items()):
        found = find_violation(operations)
        if found:
            problems.append(f"{key}: {found}")
    return problems


def check_acknowledged(records, versions):
    """Every acknowledged write is in the store at the revision it was given."""
    problems = []
    for record in records:
        operation = record.operation
        if operation.outcome == "ok" and operation.value is not None and operation.end != math.inf:
            if versions.values.get(operation.value) != (record.key, record.revision):
                problems.append(f"{record.key}={operation.value} was acknowledged by {record.server} at revision "
                                f"{record.revision}; the store has it at {versions.values.get(operation.value)}")
    return problems


def check_reads(records, versions):
    """Every read returned a state that the store had at the revision it names."""
    problems = []
    for record in records:
        operation = record.operation
        if operation.kind == "read" and operation.observed is not None:
            if versions.at(record.key, record.revision) != (record.revision, operation.observed):
                problems.append(f"{record.server} read {record.key}={operation.observed} at revision {record.revision}; "
                                f"the store had {versions.at(record.key, record.revision)}")
    return problems


def check_lists(records, listings, versions):
    """A list is one state of the store, and not older than what was acknowledged before it began."""
    told = sorted((r.operation.end, r.revision) for r in records if r.revision and r.operation.end != math.inf)
    newest, latest = [], 0
    for _, revision in told:
        latest = max(latest, revision)
        newest.append(latest)
    problems = []
    for listing in listings:
        index = bisect.bisect_left(told, (listing.call, 0))
        if index and listing.revision < newest[index - 1]:
            problems.append(f"{listing.server} listed at revision {listing.revision} after {newest[index - 1]} was known")
        wanted = {}
        for key in versions.of:
            revision, value = versions.at(key, listing.revision)
            if value is not None:
                wanted[key] = (revision, value)
        if listing.items != wanted:
            difference = sorted(k for k in {*listing.items, *wanted} if listing.items.get(k) != wanted.get(k))
            key = difference[0]
            problems.append(f"{listing.server} listed {key} as {listing.items.get(key)} at revision {listing.revision}; "
                            f"the store had {wanted.get(key)}")
    return problems


def check_revisions(records):
    """A write that begins after another was acknowledged gets a higher revision."""
    writes = sorted((r for r in records if r.operation.kind != "read" and r.revision and r.operation.end != math.inf),
                    key=lambda r: r.operation.call)
    ended = sorted((r.operation.end, r.revision) for r in writes)
    problems, index, highest = [], 0, 0
    for record in writes:
        while index < len(ended) and ended[index][0] < record.operation.call:
            highest = max(highest, ended[index][1])
            index += 1
        if record.revision <= highest:
            problems.append(f"{record.server} answered a write with revision {record.revision} after {highest}")
    return problems


def check_watches(streams, versions):
    """Every stream has each change once, in order, and nothing else."""
    problems = []
    for name, start, events in streams:
        last = start
        for kind, key, revision, _ in events:
            if revision < last or (revision == last and kind != "BOOKMARK"):
                problems.append(f"{name}: {kind} {key} at revision {revision} after {last}")
            last = max(last, revision)
        wanted = [c for c in versions.changes if start < c[0] <= last]
        got = [(revision, kind, key, None if kind == "DELETED" else value)
               for kind, key, revision, value in events if kind != "BOOKMARK"]
        if got != wanted:
            missing = [c for c in wanted if c not in set(got)]
            extra = [c for c in got if c not in set(wanted)]
            problems.append(f"{name} from revision {start} to {last}: missed {missing[:3]}, invented {extra[:3]}, "
                            f"{len(got)} events instead of {len(wanted)}")
    return problems


class Devices:
    """Follows claims and slices through all revisions and looks for devices that are given away twice."""

    def __init__(self):
        self.held = collections.defaultdict(dict)  # (driver, pool) -> device -> {claim: result}
        self.claims = {}                           # claim -> [(pool id, device)]
        self.slices = {}
        self.problems = []
        self.allocations = 0

    def take(self, change):
        if change.key.startswith(SLICES):
            self.slices[change.key] = change.document
            return
        if not change.key.startswith(CLAIMS):
            return
        for pool, device in self.claims.pop(change.key, []):
            self.held[pool][device].pop(change.key, None)
        allocation = ((change.document or {}).get("status") or {}).get("allocation") or {}
        touched = []
        for result in allocation.get("devices", {}).get("results", []):
            if result.get("adminAccess"):
                continue
            pool = (result["driver"], result["pool"])
            self.held[pool].setdefault(result["device"], {})[change.key] = result
            touched.append((pool, result["device"]))
        if touched:
            self.claims[change.key] = touched
            self.allocations += 1
        for pool, device in touched:
            self.judge(change.revision, pool, device)

    def describe(self, pool):
        devices, counters = {}, {}
        for document in self.slices.values():
            spec = (document or {}).get("spec", {})
            if (spec.get("driver"), spec.get("pool", {}).get("name")) == pool:
                devices.update({d["name"]: d for d in spec.get("devices", [])})
                for group in spec.get("sharedCounters", []):
                    for name, counter in group["counters"].items():
                        counters[group["name"], name] = int(counter["value"])
        return devices, counters

    def judge(self, revision, pool, device):
        devices, counters = self.describe(pool)
        holders = self.held[pool][device]
        if not devices.get(device, {}).get("allowMultipleAllocations"):
            if len(holders) > 1:
                self.problems.append(f"revision {revision}: {pool[1]}/{device} is held by {sorted(holders)}")
        else:
            for name, capacity in devices[device].get("capacity", {}).items():
                used = sum(int(r.get("consumedCapacity", {}).get(name, capacity["value"])) for r in holders.values())
                if used > int(capacity["value"]):
                    self.problems.append(f"revision {revision}: {used} of {capacity['value']} {name} of {pool[1]}/{device}")
        drawn = collections.Counter()
        for name, claims in self.held[pool].items():
            for group in devices.get(name, {}).get("consumesCounters", []) if claims else []:
                for counter, amount in group["counters"].items():
                    drawn[group["counterSet"], counter] += int(amount["value"])
        for counter, amount in drawn.items():
            if amount > counters.get(counter, 0):
                self.problems.append(f"revision {revision}: {amount} of {counters.get(counter, 0)} of {counter} of {pool[1]}")


def check_devices(changes):
    devices = Devices()
    for change in changes:
        devices.take(change)
    return devices


def check_services(changes):
    """No two Services have the same cluster IP or node port at the same time."""
    holders, names_of, problems = collections.defaultdict(set), {}, []
    for change in changes:
        if not change.key.startswith(SERVICES):
            continue
        for name in names_of.pop(change.key, ()):
            holders[name].discard(change.key)
        spec = (change.document or {}).get("spec", {})
        names = {spec.get("clusterIP")} | {f"{p.get('protocol', 'TCP')}/{p['nodePort']}" for p in spec.get("ports", [])
                                           if p.get("nodePort")}
        names_of[change.key] = names - {None, "", "None"}
        for name in names_of[change.key]:
            holders[name].add(change.key)
            if len(holders[name]) > 1:
                problems.append(f"revision {change.revision}: {name} belongs to {sorted(holders[name])}")
    return problems


def check_quota(changes, most):
    """There are never more Secrets than their quota allows."""
    there, problems = set(), []
    for change in changes:
        if not change.key.startswith(SECRETS):
            continue
        (there.discard if change.document is None else there.add)(change.key)
        if len(there) > most:
            problems.append(f"revision {change.revision}: {len(there)} Secrets, the quota allows {most}")
    return problems


def check_containers(samples, changes):
    """While a container runs, its claim is prepared, in the node's checkpoint, and has the devices the container sees, and
    no other running container has them."""
    claims = collections.defaultdict(dict)  # pod -> claim UID -> {(pool, device)}
    for change in changes:
        document = change.document
        if change.key.startswith(CLAIMS) and document:
            results = (document.get("status", {}).get("allocation") or {}).get("devices", {}).get("results", [])
            for owner in document["metadata"].get("ownerReferences", []):
                if owner["kind"] == "Pod" and results:
                    claims[owner["name"]][document["metadata"]["uid"]] = {(r["pool"], r["device"]) for r in results}
    problems, looked = [], 0
    for sample in samples:
        users = collections.defaultdict(set)
        for pod, seen in sample.containers:
            looked += 1
            fitting = {uid: devices for uid, devices in claims[pod].items()
                       if ",".join(sorted(d for _, d in devices)) == ",".join(sorted(seen.split(",")))}
            if not fitting:
                problems.append(f"{pod} sees {seen!r}; its claims had {dict(claims[pod])}")
                continue
            if not any(uid in sample.prepared for uid in fitting):
                problems.append(f"{pod} ran while its claim {sorted(fitting)} was not prepared")
            if not any(uid in sample.checkpoints for uid in fitting):
                problems.append(f"{pod} ran while its claim {sorted(fitting)} was in no checkpoint")
            for devices in fitting.values():
                for device in devices:
                    users[device].add(pod)
        problems += [f"{device} was in the containers of {sorted(pods)}" for device, pods in users.items() if len(pods) > 1]
    return problems, looked


UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
