"""A real etcd and API servers on it, for tests: everything on 127.0.0.1, in one directory."""
import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import urllib.request

from cluster import ROOT, SKIP, free_port, wait_until  # noqa: F401


def find_etcd():
    etcd = os.environ.get("DRAKKAR_ETCD") or shutil.which("etcd")
    if not etcd:
        print("skipped: needs etcd (Debian package etcd-server)")
        raise SystemExit(SKIP)
    return etcd


class Server:
    """One `drakkar apiserver` with a data directory of its own."""

    def __init__(self, bench, name, *flags, command="apiserver"):
        self.bench, self.name, self.flags, self.command = bench, name, flags, command
        self.data = bench.work / name
        self.port = free_port()
        self.context = None
        self.process = None

    def start(self):
        self.process = self.bench.spawn(self.name, self.bench.drakkar, self.command, f"--data-dir={self.data}",
                                        f"--port={self.port}", *self.bench.etcd_flags(), *self.flags)
        return self

    def wait(self):
        wait_until(f"API server {self.name} is ready", self.is_ready, 60)
        return self

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(timeout=20)

    def is_ready(self):
        assert self.process.poll() is None, self.bench.text(self.name)
        # Written last, when it serves.
        if not (self.data / "scheduler.kubeconfig").exists():
            return False
        try:
            return self.request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def connect(self, timeout=20):
        if self.context is None:
            text = (self.data / "admin.kubeconfig").read_text()
            pem = self.data / "admin.pem"
            pem.write_bytes(b"".join(base64.b64decode(re.search(rf"{field}: (\S+)", text).group(1))
                                     for field in ("client-certificate-data", "client-key-data")))
            self.context = ssl.create_default_context(cafile=self.data / "pki/ca.crt")
            self.context.load_cert_chain(pem)
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=timeout)

    def request(self, method, path, body=None, content_type="application/json"):
        """The status and the text of the answer."""
        connection = self.connect()
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": content_type})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def api(self, method, path, body=None, content_type="application/json"):
        status, text = self.request(method, path, body, content_type)
        assert status < 300, f"{self.name}: {method} {path}: {status} {text}"
        return json.loads(text)


class Bench:
    """etcd, and whatever a test starts beside it."""

    def __init__(self, drakkar, tls=False):
        self.drakkar = os.path.realpath(drakkar)
        self.etcd = find_etcd()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-etcd-"))
        self.tls = tls
        self.processes = []
        self.port = free_port()
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.peer_url = f"http://127.0.0.1:{free_port()}"
        if tls:
            self.make_certificates()

    def make_certificates(self):
        folder = self.work / "tls"
        folder.mkdir()

        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=etcd-ca")
        (folder / "ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        for name in ("server", "client"):
            openssl("req", *new_key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out",
                    f"{name}.crt", "-days", "2", "-extfile", "ext")

    def etcd_flags(self):
        flags = [f"--etcd-servers={self.url}"]
        if self.tls:
            folder = self.work / "tls"
            flags += [f"--etcd-cafile={folder}/ca.crt", f"--etcd-certfile={folder}/client.crt",
                      f"--etcd-keyfile={folder}/client.key"]
        return flags

    def start_etcd(self):
        folder = self.work / "tls"
        tls = [f"--cert-file={folder}/server.crt", f"--key-file={folder}/server.key", "--client-cert-auth",
               f"--trusted-ca-file={folder}/ca.crt"] if self.tls else []
        self.etcd_process = self.spawn(
            "etcd", self.etcd, f"--data-dir={self.work}/etcd", f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}", f"--listen-peer-urls={self.peer_url}",
            f"--initial-advertise-peer-urls={self.peer_url}", f"--initial-cluster=default={self.peer_url}",
            "--unsafe-no-fsync", *tls)
        wait_until("etcd answers", self.etcd_answers, 30)

    def etcd_answers(self):
        try:
            return self.ask_etcd("kv/range", {"key": base64.b64encode(b"x").decode()})
        except OSError:
            return None

    def ask_etcd(self, method, body):
        """A call of etcd's JSON gateway."""
        context = None
        if self.tls:
            folder = self.work / "tls"
            context = ssl.create_default_context(cafile=folder / "ca.crt")
            context.load_cert_chain(folder / "client.crt", folder / "client.key")
        request = urllib.request.Request(f"{self.url}/v3/{method}", data=json.dumps(body).encode())
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:
            return json.load(answer)

    def keys(self, prefix="/registry/"):
        """Values, and the lease of each key, by key."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        answer = self.ask_etcd("kv/range", {"key": base64.b64encode(prefix.encode()).decode(),
                                            "range_end": base64.b64encode(end.encode()).decode()})
        return {base64.b64decode(kv["key"]).decode(): (base64.b64decode(kv.get("value", "")), int(kv.get("lease", 0)))
                for kv in answer.get("kvs", [])}

    def spawn(self, name, *command, **options):
        with open(self.work / f"{name}.log", "a") as log:
            process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, **options)
        self.processes.append(process)
        return process

    def text(self, name):
        return (self.work / f"{name}.log").read_text()

    def server(self, name, *flags, command="apiserver"):
        return Server(self, name, *flags, command=command)

    def run(self, server, *arguments, stdin=None, check=True):
        """A drakkar command as the administrator of a server."""
        environment = dict(os.environ, KUBECONFIG=str(server.data / "admin.kubeconfig"))
        result = subprocess.run([self.drakkar, *arguments], env=environment, input=stdin, capture_output=True, text=True,
                                check=False, cwd=ROOT)
        if check and result.returncode != 0:
            raise AssertionError(f"drakkar {' '.join(arguments)}: {result.stderr}")
        return result.stdout if result.returncode == 0 else ""

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        if kind not in (None, SystemExit):
            for log in sorted(self.work.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}")
        shutil.rmtree(self.work, ignore_errors=True)
