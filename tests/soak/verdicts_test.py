#!/usr/bin/env python3
"""The checks accept an honest history and find each kind of lie."""
import math
import unittest

import verdicts
from audit import Change
from linearizable import Operation
from sampler import Sample
from workload import Listing, Record


def config_map(value):
    return {"data": {"v": value}}


HISTORY = [
    Change(10, "configmaps/soak/a", config_map("a1"), created=True),
    Change(11, "configmaps/soak/b", config_map("b1"), created=True),
    Change(12, "configmaps/soak/a", config_map("a2")),
    Change(13, "configmaps/soak/b", None),
]
VERSIONS = verdicts.Versions(HISTORY)


def record(key, kind, call, end, revision=0, server="s", **fields):
    return Record(key, Operation(kind, call, end, **fields), server, revision)


def claim(name, device, revision, share=None, capacity=None, admin=False, uid="u", owner=None):
    result = {"driver": "d", "pool": "p", "device": device}
    if share:
        result.update(shareID=share, consumedCapacity={"bandwidth": str(capacity)})
    if admin:
        result["adminAccess"] = True
    metadata = {"uid": uid, "ownerReferences": [{"kind": "Pod", "name": owner}] if owner else []}
    return Change(revision, f"resourceclaims/soak/{name}", {
        "metadata": metadata, "status": {"allocation": {"devices": {"results": [result]}}} if device else {}})


SLICES = [Change(1, "resourceslices/x", {"spec": {
    "driver": "d", "pool": {"name": "p"},
    "sharedCounters": [{"name": "card", "counters": {"memory": {"value": "8"}}}],
    "devices": [{"name": "gpu"}, {"name": "nic", "allowMultipleAllocations": True, "capacity": {"bandwidth": {"value": "10"}}},
                {"name": "half", "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "4"}}}]},
                {"name": "whole", "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "8"}}}]}]}})]


def service(name, revision, address, port=None):
    ports = [{"port": 80, "nodePort": port}] if port else [{"port": 80}]
    return Change(revision, f"services/specs/soak/{name}", {"spec": {"clusterIP": address, "ports": ports}})


class VerdictsTest(unittest.TestCase):
    def test_services(self):
        honest = [service("a", 1, "10.0.0.1", 30000), service("b", 2, "10.0.0.2", 30001), service("c", 3, "None"),
                  service("d", 4, "None"), service("a", 5, "10.0.0.1", 30000), Change(6, "services/specs/soak/a", None),
                  service("e", 7, "10.0.0.1", 30000)]
        self.assertFalse(verdicts.check_services(honest))
        self.assertTrue(verdicts.check_services(honest + [service("f", 8, "10.0.0.3", 30001)]))
        self.assertTrue(verdicts.check_services(honest + [service("f", 8, "10.0.0.1")]))

    def test_quota(self):
        def secret(name, revision, document):
            return Change(revision, f"secrets/soak/{name}", document)
        honest = [secret("a", 1, {}), secret("b", 2, {}), secret("a", 3, {}), secret("b", 4, None), secret("c", 5, {})]
        self.assertFalse(verdicts.check_quota(honest, 2))
        self.assertTrue(verdicts.check_quota(honest + [secret("d", 6, {})], 2))

    def test_acknowledged_writes(self):
        self.assertFalse(verdicts.check_acknowledged([record("a", "create", 0, 1, 10, value="a1")], VERSIONS))
        self.assertTrue(verdicts.check_acknowledged([record("a", "create", 0, 1, 10, value="lost")], VERSIONS))
        self.assertTrue(verdicts.check_acknowledged([record("a", "create", 0, 1, 11, value="a1")], VERSIONS))

    def test_reads(self):
        self.assertFalse(verdicts.check_reads([record("a", "read", 0, 1, 12, observed="a2")], VERSIONS))
        self.assertTrue(verdicts.check_reads([record("a", "read", 0, 1, 12, observed="a1")], VERSIONS))

    def test_lists(self):
        known = [record("a", "set", 0, 1, 12, value="a2")]
        fresh = Listing(2, 3, "s", 12, {"a": (12, "a2"), "b": (11, "b1")})
        self.assertFalse(verdicts.check_lists(known, [fresh], VERSIONS))
        stale = Listing(2, 3, "s", 11, {"a": (10, "a1"), "b": (11, "b1")})
        self.assertIn("after 12 was known", verdicts.check_lists(known, [stale], VERSIONS)[0])
        self.assertFalse(verdicts.check_lists(known, [Listing(0.5, 3, "s", 11, stale.items)], VERSIONS))
        mixed = Listing(2, 3, "s", 12, {"a": (12, "a2")})
        self.assertIn("listed b as None", verdicts.check_lists(known, [mixed], VERSIONS)[0])

    def test_revisions(self):
        writes = [record("a", "set", 0, 1, 12), record("b", "set", 2, 3, 13)]
        self.assertFalse(verdicts.check_revisions(writes))
        self.assertTrue(verdicts.check_revisions([record("a", "set", 0, 1, 13), record("b", "set", 2, 3, 12)]))
        self.assertFalse(verdicts.check_revisions([record("a", "set", 0, 5, 13), record("b", "set", 2, 3, 12)]))

    def test_watches(self):
        events = [("ADDED", "a", 10, "a1"), ("ADDED", "b", 11, "b1"), ("BOOKMARK", None, 11, None),
                  ("MODIFIED", "a", 12, "a2"), ("DELETED", "b", 13, "b1")]
        self.assertFalse(verdicts.check_watches([("w", 9, events)], VERSIONS))
        self.assertFalse(verdicts.check_watches([("w", 11, events[3:])], VERSIONS))
        for wrong in (events[:1] + events[2:], events[:1] + events, [events[1], events[0], *events[2:]],
                      [("MODIFIED", "a", 10, "a1"), *events[1:]], [*events, ("ADDED", "c", 14, "c1")],
                      [("BOOKMARK", None, 11, None), *events]):
            self.assertTrue(verdicts.check_watches([("w", 9, wrong)], VERSIONS), wrong)

    def test_unknown_writes_are_decided_by_the_store(self):
        never = record("a", "set", 2, math.inf, value="never", outcome="unknown")
        happened = record("a", "set", 2, math.inf, value="a2", outcome="unknown")
        history = [record("a", "create", 0, 1, value="a1"), never, happened, record("a", "read", 5, 6, observed="a2")]
        self.assertFalse(verdicts.check_linearizable(history, VERSIONS))
        # It was seen, so that nobody may see the old state afterwards.
        self.assertTrue(verdicts.check_linearizable(history + [record("a", "read", 7, 8, observed="a1")], VERSIONS))

    def devices(self, *changes):
        return verdicts.check_devices(SLICES + list(changes)).problems

    def test_devices(self):
        self.assertFalse(self.devices(claim("a", "gpu", 2), claim("a", None, 3), claim("b", "gpu", 4)))
        self.assertTrue(self.devices(claim("a", "gpu", 2), claim("b", "gpu", 3)))
        self.assertFalse(self.devices(claim("a", "gpu", 2), claim("b", "gpu", 3, admin=True)))
        self.assertFalse(self.devices(claim("a", "gpu", 2), Change(3, "resourceclaims/soak/a", None), claim("b", "gpu", 4)))

    def test_capacity_and_counters(self):
        self.assertFalse(self.devices(claim("a", "nic", 2, "s1", 4), claim("b", "nic", 3, "s2", 6)))
        self.assertTrue(self.devices(claim("a", "nic", 2, "s1", 5), claim("b", "nic", 3, "s2", 6)))
        self.assertFalse(self.devices(claim("a", "whole", 2)))
        self.assertTrue(self.devices(claim("a", "half", 2), claim("b", "whole", 3)))

    def test_containers(self):
        changes = [claim("c", "gpu", 2, uid="c1", owner="pod"), claim("d", "gpu", 4, uid="c2", owner="other")]
        good = Sample(frozenset({("pod", "gpu")}), frozenset({"c1"}), frozenset({"c1"}))
        self.assertEqual(verdicts.check_containers([good], changes), ([], 1))
        for wrong in (Sample(good.containers, frozenset(), good.checkpoints), Sample(good.containers, good.prepared, frozenset()),
                      Sample(frozenset({("pod", "nic")}), good.prepared, good.checkpoints),
                      Sample(frozenset({("pod", "gpu"), ("other", "gpu")}), frozenset({"c1", "c2"}), frozenset({"c1", "c2"}))):
            self.assertTrue(verdicts.check_containers([wrong], changes)[0], wrong)


if __name__ == "__main__":
    unittest.main()
