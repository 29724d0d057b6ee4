"""Kubernetes' own programs on this machine: etcd, kube-apiserver, kube-scheduler, kubelet. All listen on
127.0.0.1, use their own directory and are stopped at the end of the test."""
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))
from cluster import ROOT, SKIP, free_port, wait_until  # noqa: E402
from parts import Parts  # noqa: E402

ADMIN_TOKEN = "admin-of-the-test"
SCHEDULER_TOKEN = "scheduler-of-the-test"


def find_program(name, binary_dir):
    """The path of a program built by `./dev peers` or build.sh; skips the test if it is missing."""
    folders = [os.environ.get("DRAKKAR_KUBE_BIN"), ROOT / "build/peers/interop/kube", os.path.join(binary_dir, "interop/kube")]
    for folder in filter(None, folders):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return os.path.realpath(path)
    print(f"skipped: {name} is not built; run ./dev peers kube")
    raise SystemExit(SKIP)


def find_etcd():
    etcd = shutil.which("etcd")
    if not etcd:
        print("skipped: needs etcd (Debian package etcd-server)")
        raise SystemExit(SKIP)
    return etcd


def write_kubeconfig(path, server, ca, user):
    """`user` has the fields of the user as YAML."""
    path.write_text(f"""apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}", certificate-authority: "{ca}"}}}}]
users: [{{name: u, user: {{{user}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
""")


def certificate_for(plane, user):
    """A kubeconfig for `user`, signed by the control plane's CA."""
    pki, out = plane.data / "pki", plane.work
    name = user.replace(":", "-")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=out, check=True, capture_output=True)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out",
            f"{name}.csr", "-subj", f"/CN={user}")
    (out / f"{name}.ext").write_text("extendedKeyUsage=clientAuth\nkeyUsage=digitalSignature\n")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", str(pki / "ca.crt"), "-CAkey", str(pki / "ca.key"), "-set_serial",
            "4711", "-out", f"{name}.crt", "-days", "2", "-extfile", f"{name}.ext")
    path = out / f"{name}.kubeconfig"
    write_kubeconfig(path, f"https://127.0.0.1:{plane.port}", pki / "ca.crt",
                     f'client-certificate: "{out}/{name}.crt", client-key: "{out}/{name}.key"')
    return path


class KubePeers(Parts):
    """Parts with a separate log each, so that a test can search the log of one component."""

    def start(self, name, *command, **options):
        assert name not in self.processes, name
        ours = options.pop("ours", True)
        with open(self.work / f"{name}.log", "a") as log:
            self.processes[name] = subprocess.Popen([self.drakkar, *command] if ours else command, cwd=ROOT,
                                                    stdout=log, stderr=log, **options)
        return self.processes[name]

    def text(self, name):
        return (self.work / f"{name}.log").read_text()

    def __exit__(self, kind, *rest):
        if kind is not None and kind is not SystemExit:
            for log in sorted(self.work.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}")
        super().__exit__(kind, *rest)


def compact(body):
    """JSON without spaces, as Go's clients write it. kube-apiserver compares free-form fields (a ControllerRevision's data)
    by their bytes, and a patch writes them without spaces: an object that has them cannot be patched there."""
    return json.dumps(body, separators=(",", ":"))


class KubeServer(KubePeers):
    """Drakkar's components with a kube-apiserver and etcd."""

    def __init__(self, drakkar, apiserver, etcd):
        super().__init__(drakkar)
        self.apiserver, self.etcd = apiserver, etcd
        self.pki = self.data / "pki"
        self.scheduler_kubeconfig = self.data / "scheduler.kubeconfig"

    def make_certificates(self):
        self.pki.mkdir(parents=True)

        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], cwd=self.pki, check=True, capture_output=True)
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=test-ca")
        openssl("req", *new_key, "-keyout", "apiserver.key", "-out", "apiserver.csr", "-subj", "/CN=apiserver")
        (self.pki / "ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc\n")
        openssl("x509", "-req", "-in", "apiserver.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out",
                "apiserver.crt", "-days", "2", "-extfile", "ext")
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sa.key")
        openssl("ec", "-in", "sa.key", "-pubout", "-out", "sa.pub")
        (self.pki / "tokens.csv").write_text(f'{ADMIN_TOKEN},admin,admin,"system:masters"\n'
                                             f'{SCHEDULER_TOKEN},system:kube-scheduler,scheduler\n')

    def start_kube(self, *flags):
        """Starts etcd and kube-apiserver, and waits until the latter is ready."""
        self.make_certificates()
        etcd, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.start("etcd", self.etcd, f"--data-dir={self.work}/etcd", f"--listen-client-urls={etcd}",
                   f"--advertise-client-urls={etcd}", f"--listen-peer-urls={peer}",
                   f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
                   "--unsafe-no-fsync", ours=False)
        pki = self.pki
        self.start("kube-apiserver", self.apiserver, f"--etcd-servers={etcd}", f"--secure-port={self.port}",
                   "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
                   "--service-cluster-ip-range=10.0.0.0/24", f"--tls-cert-file={pki}/apiserver.crt",
                   f"--tls-private-key-file={pki}/apiserver.key", f"--client-ca-file={pki}/ca.crt",
                   f"--token-auth-file={pki}/tokens.csv", "--authorization-mode=Node,RBAC",
                   "--service-account-issuer=https://kubernetes.default.svc",
                   f"--service-account-signing-key-file={pki}/sa.key", f"--service-account-key-file={pki}/sa.pub",
                   "--feature-gates=DRAOptionalNodeOperations=true", *flags, ours=False)
        for path, token in ((self.kubeconfig, ADMIN_TOKEN), (self.scheduler_kubeconfig, SCHEDULER_TOKEN)):
            write_kubeconfig(path, f"https://127.0.0.1:{self.port}", pki / "ca.crt", f'token: "{token}"')
        wait_until("kube-apiserver is ready", self.is_ready, 120)

    def is_ready(self):
        """Includes everything that it creates at start, such as the roles of other components."""
        context = ssl.create_default_context(cafile=self.pki / "ca.crt")
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}/readyz",
                                         headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        try:
            with urllib.request.urlopen(request, context=context, timeout=20):
                return True
        except OSError:
            return False

    def api(self, method, path, body=None, content_type="application/json"):
        """Makes a request as the administrator, which must succeed, and returns the response."""
        context = ssl.create_default_context(cafile=self.pki / "ca.crt")
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}", method=method, data=compact(body).encode() if body else None,
            headers={"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": content_type})
        try:
            with urllib.request.urlopen(request, context=context, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from error
