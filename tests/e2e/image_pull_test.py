#!/usr/bin/env python3
"""Images from a real registry (Debian's docker-registry on loopback): pods pull them, with and without credentials, by
every pull policy; statuses and events are a kubelet's; the command line pulls, lists and prunes."""
import base64
import crypt
import gzip
import hashlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request

from cluster import Cluster, free_port, skip_without_containers, wait_until

CONFIG = """
version: 0.1
log: {{level: error}}
storage:
  filesystem: {{rootdirectory: {root}}}
http:
  addr: 127.0.0.1:{port}
{auth}
"""

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: {restart}
  terminationGracePeriodSeconds: 0
  {members}
  containers:
  - name: c
    image: {image}
    {more}
"""


class Registry:
    """docker-registry with a directory of its own; `password` of the user "me" if it asks for one."""

    def __init__(self, password=None):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-registry-"))
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.authorization = None
        auth = ""
        if password:
            line = f"me:{crypt.crypt(password, crypt.mksalt(crypt.METHOD_BLOWFISH))}\n"
            (self.work / "htpasswd").write_text(line)
            auth = f"auth:\n  htpasswd: {{realm: test, path: {self.work}/htpasswd}}"
            self.authorization = "Basic " + base64.b64encode(f"me:{password}".encode()).decode()
        (self.work / "config.yml").write_text(CONFIG.format(root=self.work / "data", port=self.port, auth=auth))
        self.log = open(self.work / "log", "w")
        self.process = subprocess.Popen(["docker-registry", "serve", str(self.work / "config.yml")],
                                        stdout=self.log, stderr=self.log)
        wait_until("the registry answers", self.answers)

    def answers(self):
        assert self.process.poll() is None, (self.work / "log").read_text()
        try:
            return self.call("GET", "/v2/")
        except OSError:
            return None

    def call(self, method, path, body=None, **headers):
        url = path if path.startswith("http") else f"http://{self.host}{path}"
        request = urllib.request.Request(url, data=body, method=method)
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        if self.authorization:
            request.add_header("Authorization", self.authorization)
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()
            return answer

    def push_blob(self, repository, content):
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        location = self.call("POST", f"/v2/{repository}/blobs/uploads/", b"").headers["Location"]
        self.call("PUT", f"{location}{'&' if '?' in location else '?'}digest={digest}", content,
                  Content_Type="application/octet-stream")
        return {"digest": digest, "size": len(content)}

    def push(self, repository, tag, layers, command):
        # The configuration identifies an image: real ones name the uncompressed layers.
        contents = [hashlib.sha256(layer).hexdigest() for layer, _ in layers]
        config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Cmd": command},
                             "rootfs": {"type": "layers", "diff_ids": contents}}).encode()
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "config": dict(self.push_blob(repository, config),
                                   mediaType="application/vnd.oci.image.config.v1+json"),
                    "layers": [dict(self.push_blob(repository, layer), mediaType=media) for layer, media in layers]}
        self.call("PUT", f"/v2/{repository}/manifests/{tag}", json.dumps(manifest).encode(),
                  Content_Type="application/vnd.oci.image.manifest.v1+json")

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
        shutil.rmtree(self.work, ignore_errors=True)


def layer(files):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return plain.getvalue()


GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd"


def reason(cluster, name):
    status = (cluster.get("pod", name) or {}).get("status", {})
    for container in status.get("containerStatuses", []):
        return container["state"].get("waiting", {}).get("reason")
    return None


def phase(cluster, name):
    return (cluster.get("pod", name) or {}).get("status", {}).get("phase")


def events(cluster, name):
    return [(e["reason"], e["message"]) for e in cluster.list("events") if e["involvedObject"]["name"] == name]


def apply(cluster, name, image, members="", more="", restart="Never"):
    cluster.run("apply", "-f", "-",
                stdin=POD.format(name=name, image=image, members=members, more=more, restart=restart))


def main():
    skip_without_containers()
    if not shutil.which("docker-registry"):
        print("skipped: needs the package docker-registry")
        raise SystemExit(77)
    public, private = Registry(), Registry("secret")
    try:
        with Cluster(sys.argv[1]) as cluster:
            busybox = gzip.compress(gzip.decompress((cluster.work / "busybox.tar.gz").read_bytes()), 1)
            words = layer({"words": b"first\n"})
            if shutil.which("zstd"):
                packed = (subprocess.run(["zstd", "-c"], input=words, capture_output=True, check=True).stdout, ZSTD)
            else:
                packed = (gzip.compress(words), GZIP)
            for registry in (public, private):
                registry.push("team/app", "1", [(busybox, GZIP), packed], ["cat", "/words"])
            cluster.start()
            image = f"{public.host}/team/app:1"
            apply(cluster, "plain", image)
            wait_until("the pod has run", lambda: phase(cluster, "plain") == "Succeeded", 60)
            assert cluster.run("logs", "plain") == "first\n"
            said = events(cluster, "plain")
            assert ("Pulling", f'Pulling image "{image}"') in said, said
            assert any(r == "Pulled" and m.startswith(f'Successfully pulled image "{image}" in ') for r, m in said), said

            # The files of an image as a volume: pulled with the same rules, and read-only.
            public.push("team/data", "1", [(gzip.compress(layer({"file": b"top\n", "below/file": b"deep\n"})), GZIP)], ["x"])
            volumes = f"volumes: [{{name: v, image: {{reference: '{public.host}/team/data:1'}}}}]"
            mounts = ("command: [sh, -c, 'cat /v/file /deep/file; touch /v/new || echo read-only']\n"
                      "    volumeMounts: [{name: v, mountPath: /v}, {name: v, mountPath: /deep, subPath: below}]")
            apply(cluster, "volume", image, members=volumes, more=mounts)
            wait_until("the pod with an image volume has run", lambda: phase(cluster, "volume") == "Succeeded", 60)
            assert cluster.run("logs", "volume").splitlines()[:2] == ["top", "deep"], cluster.run("logs", "volume")
            assert "read-only" in cluster.run("logs", "volume")

            # A new image under the same tag: only the policy Always notices.
            public.push("team/app", "1", [(busybox, GZIP), (gzip.compress(layer({"words": b"second\n"})), GZIP)],
                        ["cat", "/words"])
            apply(cluster, "cached", image)
            apply(cluster, "fresh", image, more="imagePullPolicy: Always")
            for name, text in (("cached", "first\n"), ("fresh", "second\n")):
                wait_until(f"{name} has run", lambda n=name: phase(cluster, n) == "Succeeded", 60)
                # Which pod comes first is open, so the cached one may see either.
                assert name == "cached" or cluster.run("logs", name) == text, cluster.run("logs", name)

            apply(cluster, "never", f"{public.host}/team/none:1", more="imagePullPolicy: Never")
            apply(cluster, "missing", f"{public.host}/team/none:1")
            apply(cluster, "refused", f"{private.host}/team/app:1")
            wait_until("never", lambda: reason(cluster, "never") == "ErrImageNeverPull")
            for name in ("missing", "refused"):
                wait_until(f"{name} fails",
                           lambda n=name: reason(cluster, n) in ("ErrImagePull", "ImagePullBackOff"))
            wait_until("the node backs off", lambda: reason(cluster, "missing") == "ImagePullBackOff")
            said = events(cluster, "missing")
            assert ("Failed", "Error: ErrImagePull") in said and ("Failed", "Error: ImagePullBackOff") in said, said
            assert any(r == "BackOff" for r, _ in said), said
            assert any("authorization failed" in m for r, m in events(cluster, "refused") if r == "Failed")

            auths = {"auths": {private.host: {"username": "me", "password": "secret"}}}
            encoded = base64.b64encode(json.dumps(auths).encode()).decode()
            cluster.run("apply", "-f", "-", stdin=f"""
apiVersion: v1
kind: Secret
metadata: {{name: login}}
type: kubernetes.io/dockerconfigjson
data: {{.dockerconfigjson: {encoded}}}
""")
            apply(cluster, "allowed", f"{private.host}/team/app:1", members="imagePullSecrets: [{name: login}]")
            wait_until("the credentials help", lambda: phase(cluster, "allowed") == "Succeeded", 60)
            assert cluster.run("logs", "allowed") == "first\n"
            assert "secret" not in json.dumps(cluster.list("events")), "the password is in an event"
            assert "secret" not in (cluster.work / "up.log").read_text(), "the password is in the log"

            # The command line, while the node runs.
            public.push("team/other", "1", [(busybox, GZIP)], ["true"])
            data = f"--data-dir={cluster.data}"
            assert "pulled" in cluster.run("image", "pull", data, f"{public.host}/team/other:1")
            assert f"{public.host}/team/other:1" in cluster.run("image", "list", data)
            pods = [p["metadata"]["name"] for p in cluster.list("pods")]
            cluster.run("delete", "pod", *pods)
            wait_until("the pods are gone", lambda: not cluster.list("pods"), 60)

            def prune():  # The node may remove the containers shortly after the pods.
                cluster.run("image", "prune", data)
                return cluster.run("image", "list", data)
            wait_until("unused images are removed", lambda: public.host not in prune(), 10)
            assert "localhost/busybox" in prune()
    finally:
        public.stop()
        private.stop()
    print("ok")


if __name__ == "__main__":
    main()
