#!/usr/bin/env python3
"""Machines join with a token: wrong hashes and tokens are refused, a joined node restarts without the token, gets its
serving certificate, serves logs, and cannot act for another node. `kubectl certificate` is what approves by hand."""
import base64
import http.client
import http.server
import json
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import threading

from cluster import free_port, skip_without_containers, wait_until
from parts import Parts

GROUP = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


class Joining(Parts):
    def join_flags(self, name, command):
        """The flags of a node on 127.0.0.1, from the printed command."""
        words = command.split()
        assert words[:2] == ["drakkar", "node"], command
        return [*words[1:], f"--data-dir={self.work}/{name}", f"--node-name={name}", f"--port={self.ports[name]}",
                "--address=127.0.0.1", "--pod-network=host"]

    def attempt(self, *flags):
        """Runs a node that must not start; returns its output."""
        result = subprocess.run([self.drakkar, *flags], capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 1, (result.returncode, result.stdout, result.stderr)
        return result.stderr

    def node(self, name):
        text = self.run("get", "node", name, "-o", "json", check=False)
        return json.loads(text) if text else None

    def is_ready(self, name):
        return any(c["type"] == "Ready" and c["status"] == "True"
                   for c in (self.node(name) or {}).get("status", {}).get("conditions", []))

    def requests(self):
        return json.loads(self.run("get", "csr", "-o", "json"))["items"]


def openssl(*arguments):
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, text=True).stdout


class Eavesdropper(http.server.BaseHTTPRequestHandler):
    """Another cluster's API server: serves its own cluster-info and records what it receives."""
    seen, info = [], {}

    def answer(self):
        Eavesdropper.seen.append((self.command, self.path, dict(self.headers)))
        text = json.dumps(Eavesdropper.info).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


def check_other_cluster(parts, command):
    """A server with another CA is refused, and the token never reaches it."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=parts.work))
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            folder / "key", "-out", folder / "crt", "-days", "2", "-subj", "/CN=other", "-addext",
            "subjectAltName=IP:127.0.0.1")
    ours = (parts.data / "pki/ca.crt").read_bytes()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "crt", folder / "key")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Eavesdropper)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"https://127.0.0.1:{server.server_address[1]}"
    token = re.search(r"--token (\S+)", command).group(1)
    command = re.sub(r"--join \S+", f"--join {url}", command)
    # Its own CA; and both, which gets it past the hash, but not past TLS.
    for bundle, reason in (((folder / "crt").read_bytes(), "so it is not the cluster that the hash was printed by"),
                           ((folder / "crt").read_bytes() + ours, "certificate")):
        text = f"clusters: [{{cluster: {{server: '{url}', certificate-authority-data: {base64.b64encode(bundle).decode()}}}}}]"
        Eavesdropper.info = {"data": {"kubeconfig": text}}
        process = subprocess.Popen([parts.drakkar, *parts.join_flags("n1", command)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        try:
            # A TLS error may be temporary, so it is retried; what counts is that nothing is sent.
            said = process.communicate(timeout=4)[1]
            assert process.returncode == 1 and reason in said, said
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[1]
            assert reason in said, said
    server.shutdown()
    assert Eavesdropper.seen and all("Authorization" not in headers for _, _, headers in Eavesdropper.seen), Eavesdropper.seen
    assert token not in str(Eavesdropper.seen)
    assert not (parts.work / "n1/node.kubeconfig").exists()


def check_hostile_node(parts):
    """With n1's own certificate: no certificate for n2, by any of the signers."""
    pem, folder = parts.work / "n1/pki/node-client.pem", pathlib.Path(tempfile.mkdtemp(dir=parts.work))
    context = ssl.create_default_context(cafile=parts.data / "pki/ca.crt")
    context.load_cert_chain(pem)

    def ask(name, signer, subject, usage, extension=()):
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                folder / f"{name}.key", "-out", folder / f"{name}.csr", "-subj", subject, *extension)
        body = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
                "spec": {"signerName": f"kubernetes.io/{signer}", "usages": ["digital signature", usage],
                         "request": base64.b64encode((folder / f"{name}.csr").read_bytes()).decode()}}
        connection = http.client.HTTPSConnection("127.0.0.1", parts.port, context=context, timeout=20)
        connection.request("POST", GROUP, json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse().status

    serving = ("-addext", "subjectAltName=DNS:n2,IP:127.0.0.1")
    assert ask("as-n2", "kube-apiserver-client-kubelet", "/O=system:nodes/CN=system:node:n2", "client auth") == 201
    assert ask("serve-n2", "kubelet-serving", "/O=system:nodes/CN=system:node:n2", "server auth", serving) == 201
    assert ask("names-of-n2", "kubelet-serving", "/O=system:nodes/CN=system:node:n1", "server auth", serving) == 201
    assert ask("admin", "kube-apiserver-client", "/O=system:masters/CN=eve", "client auth") == 403
    assert ask("own", "kube-apiserver-client-kubelet", "/O=system:nodes/CN=system:node:n1", "client auth") == 201
    wait_until("its own request is signed", lambda: [r for r in parts.requests() if r["metadata"]["name"] == "own"
                                                     and r.get("status", {}).get("certificate")])
    for request in parts.requests():
        if request["metadata"]["name"] in ("as-n2", "serve-n2", "names-of-n2"):
            assert not request.get("status", {}).get("conditions"), request


def main():
    skip_without_containers()
    with Joining(sys.argv[1]) as parts:
        parts.ports = {"n1": free_port(), "n2": free_port()}
        pki = parts.data / "pki"
        parts.start("apiserver", "apiserver", f"--data-dir={parts.data}", f"--port={parts.port}")
        wait_until("the API server answers", lambda: parts.run("get", "namespaces", "-o", "name", check=False), 60)
        parts.start("controllers", "controllers", f"--kubeconfig={parts.kubeconfig}", "--secure-port=0",
                    f"--cluster-signing-cert-file={pki}/ca.crt", f"--cluster-signing-key-file={pki}/ca.key",
                    "--leader-elect=false")
        parts.start("scheduler", "scheduler", f"--kubeconfig={parts.kubeconfig}", "--secure-port=0", "--leader-elect=false")
        command = parts.run("token", "create", "--print-join-command", "--ttl=1h").strip()
        hash_of = openssl("x509", "-in", pki / "ca.crt", "-pubkey", "-noout")
        der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=hash_of.encode(), check=True,
                             capture_output=True).stdout
        digest = subprocess.run(["openssl", "dgst", "-sha256"], input=der, check=True, capture_output=True).stdout
        assert f"--ca-hash sha256:{digest.decode().split()[-1]}" in command, command

        flags = parts.join_flags("n1", command)
        wrong = parts.attempt(*[re.sub(r"^sha256:.*", "sha256:" + "0" * 64, f) for f in flags])
        assert "so it is not the cluster that the hash was printed by" in wrong, wrong
        bad = parts.attempt(*[re.sub(r"^([a-z0-9]{6})\.[a-z0-9]{16}$", r"\1.0000000000000000", f) for f in flags])
        assert "the server does not accept the token" in bad, bad
        assert "--ca-hash" in parts.attempt(*[f for f in flags if not f.startswith(("sha256:", "--ca-hash"))])
        check_other_cluster(parts, command)

        parts.start("n1", *flags)
        wait_until("n1 is ready", lambda: parts.is_ready("n1"), 60)
        serving = parts.work / "n1/pki/node-serving.pem"
        wait_until("it has a serving certificate", serving.exists, 30)
        for file in (serving, parts.work / "n1/pki/node-client.pem", parts.work / "n1/node.kubeconfig"):
            assert file.stat().st_mode & 0o777 == 0o600, file
        # The API server accepts it: it reads the node's metrics over it.
        wait_until("the API server reaches the node", lambda: parts.node_get("metrics").startswith("# HELP"), 30)

        # Without the token, which was deleted.
        parts.stop("n1")
        token = re.search(r"--token (\S+)", command).group(1)
        parts.run("token", "delete", token[:6])
        parts.start("n1", *[f for f in flags if not re.match(r"--join|https:|--token|--ca-hash|sha256:|" + token, f)])
        before = parts.node("n1")["status"]["conditions"]
        wait_until("n1 reports again", lambda: parts.is_ready("n1") and parts.node("n1")["status"]["conditions"] is not before, 60)
        assert "the server does not accept the token" in parts.attempt(*parts.join_flags("n2", command))
        check_hostile_node(parts)
    print("ok: nodes join with a token and keep their certificates")


if __name__ == "__main__":
    main()
