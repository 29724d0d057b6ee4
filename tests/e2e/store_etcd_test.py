#!/usr/bin/env python3
"""`drakkar store` on etcd: a backup under load is one state, it is restored into an empty prefix and into an embedded
store, and a cluster moves between the two stores and back without losing anything."""
import json
import pathlib
import signal
import subprocess
import sys
import threading

from etcd import Bench

MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
PATHS = ("/api/v1/configmaps", "/api/v1/nodes", "/api/v1/secrets", "/api/v1/events", "/api/v1/services",
         "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/example.com/v1/widgets",
         "/apis/resource.k8s.io/v1/resourceclaims")


def store(bench, *arguments, fails=False):
    done = subprocess.run([bench.drakkar, "store", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, f"store {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def fill(server):
    for n in range(300):
        server.api("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"bulk-{n}"},
                                  "data": {"text": "b" * 5000}})
    server.api("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    server.api("POST", "/api/v1/namespaces/default/secrets", {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "c2VjcmV0"}})
    server.api("POST", "/api/v1/namespaces/default/services", {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
    server.api("POST", "/api/v1/namespaces/default/events", {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "seen"}, "reason": "Test", "message": "m",
        "involvedObject": {"kind": "Node", "name": "n1", "namespace": "default"}, "type": "Normal"})
    server.api("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c", "finalizers": ["a.b/c"]},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}}})
    server.api("PATCH", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c/status", {"status": {"allocation": {
        "devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]}}}},
        "application/merge-patch+json")
    server.api("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    from cluster import wait_until
    wait_until("widgets are served", lambda: server.request("GET", "/apis/example.com/v1/widgets")[0] == 200)
    server.api("POST", "/apis/example.com/v1/namespaces/default/widgets", {
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"deep": [1, {"x": None}]}})


def contents(server):
    """Everything a client sees, without resource versions."""
    found = {}
    for path in PATHS:
        for item in server.api("GET", path)["items"]:
            version = item["metadata"].pop("resourceVersion")
            assert int(version) > 0, item
            if item["metadata"]["name"] in ("kubernetes", "cluster-info"):
                continue  # these name the port of the API server
            found[path, item["metadata"].get("namespace"), item["metadata"]["name"]] = json.dumps(item, sort_keys=True)
    return found


def compare(wanted, found):
    difference = [k for k in {*wanted, *found} if wanted.get(k) != found.get(k)]
    assert not difference, [(k, wanted.get(k), found.get(k)) for k in sorted(difference, key=str)[:2]]


class Embedded:
    """Runs a server without etcd on a data directory of the bench."""

    def __init__(self, bench, name):
        self.server = bench.server(name)
        self.bench = bench

    def __enter__(self):
        flags, self.bench.etcd_flags = self.bench.etcd_flags, lambda: []
        self.server.start().wait()
        self.bench.etcd_flags = flags
        return self.server

    def __exit__(self, *_):
        self.server.stop()


def check_backup(bench, a, backup):
    """Two halves of a pair, written one after the other, never differ by more than one in a backup."""
    stop, count = threading.Event(), 0
    for half in ("aa-half", "zz-half"):
        a.api("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": half}, "data": {"n": "0"}})

    def load():
        nonlocal count
        while not stop.is_set():
            count += 1
            for half in ("aa-half", "zz-half"):
                a.api("PATCH", f"{MAPS}/{half}", {"data": {"n": str(count)}}, "application/merge-patch+json")
    thread = threading.Thread(target=load)
    thread.start()
    try:
        said = store(bench, "backup", *bench.etcd_flags(), backup)
    finally:
        stop.set()
        thread.join()
    assert "objects at revision" in said and count > 0, (said, count)
    assert "intact: backup of" in store(bench, "check", f"--backup={backup}")
    return contents(a)


def main():
    with Bench(sys.argv[1]) as bench:
        bench.start_etcd()
        flags = bench.etcd_flags()
        a = bench.server("a").start().wait()
        fill(a)
        before = check_backup(bench, a, bench.work / "cluster.backup")
        assert "intact:" in store(bench, "check", *flags)
        told = store(bench, "backup", f"--data-dir={a.data}", f"--kubeconfig={a.data}/admin.kubeconfig", bench.work / "x",
                     fails=True)
        assert "--etcd-servers" in told, told

        # Restore: not over something, but into an empty prefix, and there a second cluster serves it.
        told = store(bench, "restore", *flags, bench.work / "cluster.backup", fails=True)
        assert "there are keys below /registry/" in told, told
        final = bench.work / "final.backup"
        store(bench, "backup", *flags, final)
        store(bench, "restore", *flags, "--etcd-prefix=/second", final)
        second = bench.server("second", "--etcd-prefix=/second").start().wait()
        compare(before, contents(second))
        keys = bench.keys("/second/")
        assert keys["/second/minions/n1"][0].startswith(b"k8s\0") and keys["/second/events/default/seen"][1] != 0
        assert (second.data / "pki/ca.crt").read_bytes() == (a.data / "pki/ca.crt").read_bytes(), "another CA"
        second.stop()
        # An embedded store takes it, too; the halves of the backup under load are one state.
        store(bench, "restore", f"--data-dir={bench.work}/file", bench.work / "cluster.backup")
        with Embedded(bench, "file") as server:
            halves = [int(server.api("GET", f"{MAPS}/{half}")["data"]["n"]) for half in ("aa-half", "zz-half")]
            assert halves[0] - halves[1] in (0, 1), f"two states in one backup: {halves}"

        # Migrate: away from etcd, and into another prefix.
        a.stop()
        told = store(bench, "migrate", "--to=embedded", *flags, f"--data-dir={bench.work}/moved")
        assert "migrated and verified" in told, told
        (bench.work / "moved/pki").mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", f"{a.data}/pki", f"{bench.work}/moved/"], check=True)
        with Embedded(bench, "moved") as server:
            compare(before, contents(server))
            server.api("PATCH", f"{MAPS}/bulk-0", {"data": {"text": "later"}}, "application/merge-patch+json")
            told = store(bench, "migrate", "--to=etcd", *flags, "--etcd-prefix=/third", f"--data-dir={server.data}", fails=True)
            assert "stop it first" in told, told
            before = contents(server)
        told = store(bench, "migrate", "--to=etcd", *flags, "--etcd-prefix=/third", f"--data-dir={bench.work}/moved")
        assert "migrated and verified" in told, told
        third = bench.server("moved", "--etcd-prefix=/third").start().wait()
        compare(before, contents(third))
        third.stop(signal.SIGTERM)
        # What cannot be read is named, and nothing is migrated without it.
        bench.ask_etcd("kv/put", {"key": "L3RoaXJkL3BvZHMvZGVmYXVsdC9icm9rZW4=", "value": "azhzOmVuYzphZXNjYmM6djE6eA=="})
        told = store(bench, "check", *flags, "--etcd-prefix=/third", fails=True)
        assert "/third/pods/default/broken" in told and "encrypted" in told, told
        told = store(bench, "migrate", "--to=embedded", *flags, "--etcd-prefix=/third", f"--data-dir={bench.work}/none", fails=True)
        assert "nothing was migrated" in told, told
        assert not (bench.work / "none/store/store.db").exists()
        assert "needs --etcd-servers" in store(bench, "check", "--etcd-prefix=/x", fails=True)
    print("ok: backup, restore and migration between the embedded store and etcd")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    main()
