#!/usr/bin/env python3
"""A store in trouble: damaged objects, a full disk, a deleted data directory, a backup under load. One server each,
new directory, free port."""
import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

from cluster import SKIP, free_port, wait_until

DRAKKAR = os.path.realpath(sys.argv[1])


class Server:
    """`drakkar apiserver` on a data directory."""

    def __init__(self, data):
        self.data = pathlib.Path(data)
        self.port = free_port()
        self.log = pathlib.Path(f"{data}.log")
        self.environment = dict(os.environ, KUBECONFIG=str(self.data / "admin.kubeconfig"))
        self.process = None

    def start(self):
        self.process = subprocess.Popen([DRAKKAR, "apiserver", f"--data-dir={self.data}", f"--port={self.port}"],
                                        stdout=subprocess.DEVNULL, stderr=open(self.log, "a"))
        wait_until("the server serves", lambda: self.run("get", "namespaces").returncode == 0
                   or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()[-2000:]

    def run(self, *arguments, stdin=None):
        return subprocess.run([DRAKKAR, *arguments], env=self.environment, input=stdin, capture_output=True, text=True,
                              check=False)

    def ok(self, *arguments, stdin=None):
        result = self.run(*arguments, stdin=stdin)
        assert result.returncode == 0, f"drakkar {' '.join(arguments)}: {result.stderr}"
        return result.stdout

    def raw(self, path, *flags):
        """GET of any path, as the administrator."""
        text = pathlib.Path(self.environment["KUBECONFIG"]).read_text()
        with tempfile.TemporaryDirectory() as folder:
            for name in ("client-certificate-data", "client-key-data"):
                value = re.search(rf"{name}: (\S+)", text)[1]
                pathlib.Path(folder, name).write_bytes(base64.b64decode(value))
            result = subprocess.run(["curl", "-sk", *flags, "--cert", f"{folder}/client-certificate-data", "--key",
                                     f"{folder}/client-key-data", f"https://127.0.0.1:{self.port}{path}"],
                                    capture_output=True, text=True, check=True)
        return result.stdout

    def put(self, name, text):
        return self.run("apply", "-f", "-", stdin=json.dumps(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}))

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=20)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()


def damage(data, key):
    with contextlib.closing(sqlite3.connect(data / "store" / "store.db")) as connection, connection:
        rows = connection.execute("UPDATE revisions SET value = CAST('{\"kind\":' AS BLOB) WHERE key = ?", (key,))
        assert rows.rowcount == 1, key


def test_damage(work):
    server = Server(work / "data")
    with server:
        for name in ("good", "bad"):
            assert server.put(name, "x").returncode == 0
    damage(server.data, "/registry/core/configmaps/default/bad")
    damage(server.data, "/registry/rbac.authorization.k8s.io/clusterroles/view")
    with server:
        assert server.ok("get", "configmap", "good", "-o", "jsonpath={.data.text}") == "x"
        bad = server.run("get", "configmap", "bad")
        assert bad.returncode != 0 and "cannot be read" in bad.stderr and "drakkar store repair" in bad.stderr, bad.stderr
        listed = server.run("get", "configmaps", "-o", "name")
        assert "configmap/good" in listed.stdout and "configmap/bad" not in listed.stdout, listed.stdout
        headers = server.raw("/api/v1/namespaces/default/configmaps", "-i").lower()
        assert "warning: 299" in headers and "missing from this list: default/bad" in headers, headers[:500]
        again = server.put("bad", "y")
        assert again.returncode != 0 and "cannot be read" in again.stderr, "overwrote an object of unknown state"
        metrics = server.raw("/metrics")
        assert "drakkar_store_unreadable_objects 2" in metrics, [m for m in metrics.splitlines() if "unreadable" in m]
        assert 'drakkar_store_unreadable_object{key="/registry/core/configmaps/default/bad"} 1' in metrics
        assert "a stored object cannot be read" in server.log.read_text()
        check = server.run("store", "check", f"--data-dir={server.data}")
        assert check.returncode == 1 and "damaged: /registry/core/configmaps/default/bad" in check.stdout, check
        repair = server.run("store", "repair", f"--data-dir={server.data}")
        assert repair.returncode == 1 and "is in use by another drakkar" in repair.stderr, repair.stderr
    repaired = server.ok("store", "repair", f"--data-dir={server.data}")
    assert "lost: /registry/core/configmaps/default/bad" in repaired, repaired
    assert server.ok("store", "check", f"--data-dir={server.data}").startswith("intact: ")
    with server:
        assert server.put("bad", "new").returncode == 0
        server.ok("get", "clusterrole", "view")
        assert "drakkar_store_unreadable_objects 0" in server.raw("/metrics")


def test_full_disk(work):
    disk = work / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)],
                                           capture_output=True, check=False).returncode != 0:
        print("skipped: needs root to mount a small file system")
        raise SystemExit(SKIP)
    try:
        server = Server(disk / "data")
        server.log = work / "full.log"
        with server:
            assert server.put("before", "x").returncode == 0
            filler = disk / "filler"
            subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=1M"], capture_output=True, check=False)
            acknowledged = ["before"]
            refused = None
            for i in range(200):
                result = server.put(f"full-{i}", "y" * 2000)
                if result.returncode != 0:
                    refused = result
                    break
                acknowledged.append(f"full-{i}")
            assert refused, "a full disk was not noticed"
            assert "is full" in refused.stderr and "free some space" in refused.stderr, refused.stderr
            began = time.monotonic()
            assert server.ok("get", "configmap", "before", "-o", "jsonpath={.data.text}") == "x"
            listed = server.ok("get", "configmaps", "-o", "name")
            assert time.monotonic() - began < 5, "reads are slow on a full disk"
            for name in acknowledged:
                assert f"configmap/{name}\n" in listed, name
            assert "drakkar_store_full 1" in server.raw("/metrics")
            assert server.put("refused", "z").returncode != 0
            filler.unlink()
            wait_until("writes are accepted again", lambda: server.put("after", "z").returncode == 0, 10)
            acknowledged.append("after")
            assert "writes are refused until the disk has space" in server.log.read_text()
            server.process.kill()
            server.process.wait()
        with server:
            listed = server.ok("get", "configmaps", "-o", "name")
            for name in acknowledged:
                assert f"configmap/{name}\n" in listed, f"{name} was acknowledged and is lost"
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_deleted(work):
    server = Server(work / "data")
    with server:
        assert server.put("one", "x").returncode == 0
        environment = dict(server.environment, KUBECONFIG=str(work / "admin.kubeconfig"))
        shutil.copy(server.data / "admin.kubeconfig", work / "admin.kubeconfig")
        server.environment = environment
        shutil.rmtree(server.data)
        lost = server.put("two", "x")
        assert lost.returncode != 0, "acknowledged a write into a deleted directory"
        assert "was deleted or replaced while it was in use" in lost.stderr, lost.stderr
        assert server.log.read_text().count("was deleted or replaced") == 1, server.log.read_text()


def test_backup(work):
    """A backup is one state: the two halves of a pair, written one after the other, never differ by more than one."""
    server = Server(work / "data")
    with server:
        objects = "\n---\n".join(json.dumps({"apiVersion": "v1", "kind": "ConfigMap",
                                             "metadata": {"name": f"bulk-{i}"}, "data": {"text": "b" * 20000}})
                                 for i in range(400))
        server.ok("apply", "-f", "-", stdin=objects)
        stop = threading.Event()
        written = {"a": 0, "z": 0}

        def load():
            while not stop.is_set():
                for name in ("a", "z"):
                    if server.put(f"{name}-half", str(written[name] + 1)).returncode == 0:
                        written[name] += 1
        thread = threading.Thread(target=load)
        thread.start()
        wait_until("the load runs", lambda: written["z"] >= 2)
        backup = work / "cluster.backup"
        saved = server.ok("store", "backup", f"--data-dir={server.data}", "--rate=16Mi", str(backup))
        assert "objects at revision" in saved, saved
        during = written["z"]
        stop.set()
        thread.join()
        assert oct(backup.stat().st_mode & 0o777) == "0o600", "a backup holds Secrets"
        anonymous = subprocess.run(["curl", "-sk", f"https://127.0.0.1:{server.port}/drakkar/store/page"],
                                   capture_output=True, text=True, check=False)
        assert "403" in anonymous.stdout and "forbidden" in anonymous.stdout, anonymous.stdout[:300]
    assert server.ok("store", "check", f"--backup={backup}").startswith("intact: ")
    refused = server.run("store", "restore", f"--data-dir={server.data}", str(backup))
    assert refused.returncode == 1 and "--force" in refused.stderr, refused.stderr
    fresh = Server(work / "fresh")
    fresh.ok("store", "restore", f"--data-dir={fresh.data}", str(backup))
    with fresh:
        names = fresh.ok("get", "configmaps", "-o", "name")
        assert names.count("configmap/bulk-") == 400, names.count("configmap/bulk-")
        halves = [int(fresh.ok("get", "configmap", f"{name}-half", "-o", "jsonpath={.data.text}")) for name in "az"]
        assert halves[0] - halves[1] in (0, 1), f"two states in one backup: {halves}"
        assert halves[0] <= during + 2
        assert fresh.put("new", "x").returncode == 0
    cut = work / "cut.backup"
    cut.write_bytes(backup.read_bytes()[:-100])
    broken = fresh.run("store", "restore", f"--data-dir={work / 'other'}", str(cut))
    assert broken.returncode == 1 and "incomplete" in broken.stderr, broken.stderr
    assert not (work / "other" / "store" / "store.db").exists()


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-store-"))
    try:
        {"damage": test_damage, "full-disk": test_full_disk, "deleted": test_deleted,
         "backup": test_backup}[sys.argv[2]](work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"ok: {sys.argv[2]}")


if __name__ == "__main__":
    main()
