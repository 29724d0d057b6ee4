#!/usr/bin/env python3
"""Certificates that are about to expire are renewed while the server runs; expired ones are named in one line that says what
to do. So are file descriptors when they run out, and the server works again once there are some."""
import datetime
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile

from cluster import ROOT, SKIP, free_port, wait_until

DRAKKAR = os.path.realpath(sys.argv[1])
DAY = 86400


class Server:
    def __init__(self, work):
        self.work = work
        self.data = work / "data"
        self.port = free_port()
        self.log = work / "server.log"
        self.clock = work / "clock"
        self.environment = dict(os.environ, KUBECONFIG=str(self.data / "admin.kubeconfig"))
        self.process = None

    def shift_clock(self, seconds):
        """The wall clock of this server and the commands run with its environment, and of nothing else."""
        library = self.work / "clock_shim.so"
        if not library.exists():
            compiler = shutil.which("cc") or shutil.which("gcc")
            if not compiler:
                print("skipped: needs a C compiler")
                raise SystemExit(SKIP)
            subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(ROOT / "tests/soak/clock_shim.c"),
                            "-ldl"], check=True)
            self.clock.write_bytes(struct.pack("q", 0))
            self.environment.update(LD_PRELOAD=str(library), CLOCK_SHIM=str(self.clock))
        with open(self.clock, "r+b") as file:
            file.write(struct.pack("q", seconds))

    def start(self, descriptors=None, memory=None):
        def limit():
            for what, value in ((resource.RLIMIT_NOFILE, descriptors), (resource.RLIMIT_AS, memory)):
                if value:
                    resource.setrlimit(what, (value, value))
        self.process = subprocess.Popen([DRAKKAR, "apiserver", f"--data-dir={self.data}", f"--port={self.port}"],
                                        stdout=subprocess.DEVNULL, stderr=open(self.log, "w"), env=self.environment,
                                        preexec_fn=limit)
        wait_until("the server serves", lambda: self.run("get", "namespaces").returncode == 0)

    def run(self, *arguments, **more):
        return subprocess.run([DRAKKAR, *arguments], env=self.environment, capture_output=True, text=True, check=False, **more)

    def served_until(self):
        context = ssl.create_default_context(cadata=(self.data / "pki" / "ca.crt").read_text())
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", self.port)) as plain, context.wrap_socket(plain) as connection:
            pem = ssl.DER_cert_to_PEM_cert(connection.getpeercert(True))
        text = subprocess.run(["openssl", "x509", "-noout", "-enddate"], input=pem, capture_output=True, text=True,
                              check=True).stdout
        return datetime.datetime.strptime(text.strip().split("=")[1], "%b %d %H:%M:%S %Y %Z")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=20)


def test_certificates(server):
    server.shift_clock(0)
    server.start()
    first = server.served_until()
    server.shift_clock(300 * DAY)
    assert server.served_until() == first, "renewed too early"
    server.shift_clock(340 * DAY)
    second = server.served_until()
    assert second > first + datetime.timedelta(days=300), f"not renewed 25 days before its end: {first}, {second}"
    log = server.log.read_text()
    assert log.count("renewed a certificate before it expires") == 1, log
    on_disk = subprocess.run(["openssl", "x509", "-noout", "-enddate", "-in", str(server.data / "pki" / "apiserver.crt")],
                             capture_output=True, text=True, check=True).stdout
    assert second.strftime("%Y") in on_disk, "the next start would use the old one"
    server.shift_clock(400 * DAY)
    expired = server.run("get", "namespaces")
    assert expired.returncode != 0 and re.search(r"the client certificate in \S+ expired on 20\d\d-", expired.stderr) \
        and "get a new kubeconfig" in expired.stderr, expired.stderr
    server.stop()
    server.shift_clock(4000 * DAY)
    ended = subprocess.run([DRAKKAR, "apiserver", f"--data-dir={server.data}", f"--port={server.port}"],
                           env=server.environment, capture_output=True, text=True, check=False, timeout=30)
    assert ended.returncode != 0 and "the cluster's CA" in ended.stderr and "expired on" in ended.stderr, ended.stderr


def test_descriptors(server):
    server.start(descriptors=96)
    line = "out of file descriptors; raise the limit with LimitNOFILE= in the systemd unit or ulimit -n"
    assert line not in server.log.read_text()
    connections = []
    for _ in range(150):
        connections.append(socket.create_connection(("127.0.0.1", server.port), timeout=10))
    wait_until("it is logged", lambda: line in server.log.read_text(), 10)
    assert server.process.poll() is None
    for connection in connections:
        connection.close()
    wait_until("it serves again", lambda: server.run("get", "namespaces").returncode == 0)
    assert server.log.read_text().count(line) == 1, "one line a minute is enough"
    assert 'limit="96"' in server.log.read_text()


def test_memory(server):
    """Acknowledged objects survive, and the reason is the last thing that is said."""
    server.start(memory=350 << 20)
    made = 0
    for number in range(100):
        names = [f"big-{number}-{i}" for i in range(10)]
        manifest = "\n---\n".join(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                                              "data": {"k": "x" * 900_000}}) for name in names)
        made += server.run("create", "-f", "-", input=manifest).stdout.count("created")
        if server.process.poll() is not None:
            break
    assert server.process.poll() == -signal.SIGABRT, server.process.poll()
    text = server.log.read_text()
    assert text.count("error: out of memory: give the process more") == 1 and "MemoryMax" in text, text[-2000:]
    server.start()
    found = server.run("get", "configmaps", "-o", "name").stdout.count("/big-")
    assert found >= made > 10, (found, made)


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-shortage-"))
    server = Server(work)
    try:
        {"certificates": test_certificates, "descriptors": test_descriptors, "memory": test_memory}[sys.argv[2]](server)
    finally:
        server.stop()
        shutil.rmtree(work, ignore_errors=True)
    print(f"ok: {sys.argv[2]}")


if __name__ == "__main__":
    main()
