"""The attackers' identities: certificates of the cluster's CA, tokens, and requests made with them."""
import base64
import http.client
import json
import pathlib
import re
import ssl
import subprocess


class Identities:
    """`data` is the API server's data directory; files are created in `work`."""

    def __init__(self, data, work, port):
        self.pki, self.work, self.port = pathlib.Path(data) / "pki", pathlib.Path(work), port

    def certificate(self, name, user, groups=(), server=False):
        """The stem of NAME.crt and NAME.key."""
        stem = self.work / name
        run = lambda *command: subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True)
        run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{stem}.key")
        run("pkcs8", "-topk8", "-nocrypt", "-in", f"{stem}.key", "-out", f"{stem}.p8")
        pathlib.Path(f"{stem}.p8").replace(f"{stem}.key")
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        run("req", "-new", "-key", f"{stem}.key", "-subj", subject, "-out", f"{stem}.csr")
        extensions = pathlib.Path(f"{stem}.ext")
        extensions.write_text(f"extendedKeyUsage={'serverAuth' if server else 'clientAuth'}\n"
                              + ("subjectAltName=IP:127.0.0.1\n" if server else ""))
        run("x509", "-req", "-in", f"{stem}.csr", "-CA", self.pki / "ca.crt", "-CAkey", self.pki / "ca.key",
            "-set_serial", int.from_bytes(name.encode()[:8], "big"), "-days", "1", "-extfile", extensions,
            "-out", f"{stem}.crt")
        return stem

    def kubeconfig(self, name, user, groups=()):
        stem = self.certificate(name, user, groups)
        encoded = lambda path: base64.b64encode(pathlib.Path(path).read_bytes()).decode()
        path = pathlib.Path(f"{stem}.kubeconfig")
        path.write_text(f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:{self.port}",
  certificate-authority-data: {encoded(self.pki / "ca.crt")}}}}}]
users: [{{name: u, user: {{client-certificate-data: {encoded(f"{stem}.crt")},
  client-key-data: {encoded(f"{stem}.key")}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
""")
        return path


class Identity:
    """Makes requests as one of them; returns the response in one line."""

    def __init__(self, ca, stem=None, token=None):
        self.context = ssl.create_default_context(cafile=ca)
        self.context.check_hostname = False
        if stem is not None:
            self.context.load_cert_chain(f"{stem}.crt", f"{stem}.key")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(self, port, method, path, body=None, kind="application/json", headers=()):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=self.context, timeout=30)
        try:
            connection.request(method, path, body if isinstance(body, (str, type(None))) else json.dumps(body),
                               {"Content-Type": kind, **self.headers, **dict(headers)})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def line(self, port, *request, **options):
        """"ok", or the status and the message of a rejection."""
        status, text = self.ask(port, *request, **options)
        if status < 300:
            return "ok"
        try:
            text = json.loads(text)["message"]
        except (ValueError, KeyError, TypeError):
            pass
        return f"{status} " + re.sub(r"\s+", " ", text).strip()
