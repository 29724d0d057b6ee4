#!/usr/bin/env python3
"""docs/guides/answers.md shows what the commands print; and who gets which answer from the scheduler.
No node agent and no containers: the cluster of examples/answers has no machines.

usage: answers_test.py DRAKKAR [--update]    --update writes the current output into the guide
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys

from cluster import ROOT, free_port, wait_until
from fabric_test import World

DRAKKAR = str(pathlib.Path(sys.argv[1]).resolve())
GUIDE = ROOT / "docs" / "guides" / "answers.md"
VIEWER = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: viewer, namespace: team-a}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: viewer, namespace: team-a}]
"""


def same_ages(text):
    """Ages, times and the widths of columns differ from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d\d:\d\d:\d\d\b", "TIME", text)
    text = re.sub(r"\b(\d+[dhms])+\b", "AGE", text)
    return "\n".join(re.sub(r" +", " ", line).rstrip() for line in text.strip().splitlines())


class Answers(World):
    def up(self, *flags):
        self.api, self.scheduler = free_port(), free_port()
        self.start("up", DRAKKAR, "up", f"--data-dir={self.work}/data", "--node=false", f"--port={self.api}",
                   f"--scheduler-port={self.scheduler}", "--controllers-port=0", *flags)
        wait_until("the scheduler is ready",
                   lambda: self.fetch(f"https://127.0.0.1:{self.scheduler}/readyz")[0] == 200, 60)

    def ask(self, *words, kubeconfig=None):
        done = subprocess.run([DRAKKAR, *words], capture_output=True, text=True, check=False, cwd=ROOT,
                              env={"KUBECONFIG": str(kubeconfig or self.kubeconfig), "HOME": str(self.work)})
        assert all(len(line) <= 80 for line in done.stdout.splitlines()) or "json" in words, done.stdout
        self.stdout = done.stdout
        return done.returncode, done.stdout + done.stderr

    def viewer_kubeconfig(self):
        """Of a service account with the role view in team-a."""
        self.drakkar("apply", "-f", "-", stdin=VIEWER)
        server = f"https://127.0.0.1:{self.api}"

        def token():
            status, text = self.fetch(f"{server}/api/v1/namespaces/team-a/serviceaccounts/viewer/token", self.admin_context(),
                                      body=b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}')
            return json.loads(text)["status"]["token"] if status == 201 else None
        authority = re.search(r'certificate-authority-data: *"?([A-Za-z0-9+/=]+)', self.kubeconfig.read_text())[1]
        path = self.work / "viewer.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": "u", "user": {"token": wait_until("there is a token", token)}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team-a"}}]}))
        return path


def check_guide(world, update):
    """Each `$ drakkar ...` of the guide's console blocks, with the lines that follow."""
    checked = 0

    def block(match):
        nonlocal checked
        written = ""
        for command, shown in re.findall(r"^\$ drakkar ([^\n]*)\n((?:(?!\$ )[^\n]*\n)*)", match[1], re.M):
            words = shlex.split(command)
            world.ask(*words)
            if words[0] == "apply":
                wait_until("the pods are scheduled", lambda: all(
                    (world.get("pod", name, "-n", "team-b") or {}).get("spec", {}).get("nodeName") for name in ("tune-0", "tune-1")))
            assert update or same_ages(world.stdout) == same_ages(shown), (
                f"docs/guides/answers.md is not current; {sys.argv[0]} DRAKKAR --update writes it: drakkar {command}\n"
                f"--- prints\n{world.stdout}\n--- guide\n{shown}")
            written += f"$ drakkar {command}\n{world.stdout}\n"
            checked += 1
        return f"```console\n{written.rstrip()}\n```"
    text = re.sub(r"^```console\n(.*?)^```$", block, GUIDE.read_text(), flags=re.S | re.M)
    if update:
        GUIDE.write_text(text)
    print(f"ok: {checked} commands of the guide print what it shows")


def check_viewer(world):
    """Somebody with the role view in one namespace gets counts, and only the names they may see."""
    kubeconfig = world.viewer_kubeconfig()
    code, said = world.ask("why", "pod", "train", kubeconfig=kubeconfig)
    flat = " ".join(said.split())
    assert code == 1 and "0 of 4 nodes: 2 no devices, 1 short by 1 device, 1 short by 2 devices" in flat, said
    assert "scheduler: tried" in flat, f"the scheduler itself answers\n{said}"
    for secret in ("gpu-1", "gpu-2", "gpu-3", "cpu-1", "team-b", "tune"):
        assert secret not in said, f"{secret} is none of the viewer's business\n{said}"
    code, said = world.ask("why", "pod", "train", "--verbose", "-o", "json", kubeconfig=kubeconfig)
    assert code == 1 and json.loads(said)["groups"][0]["nodes"] == [] and "gpu-2" not in said, said
    code, said = world.ask("why", "claim", "train", kubeconfig=kubeconfig)
    assert code == 1 and "gpu-2" not in said and "0 of 4 nodes" in said, said
    code, said = world.ask("why", "pod", "tune-0", "-n", "team-b", kubeconfig=kubeconfig)
    assert code == 2 and "pods/why" in said, said
    print("ok: a viewer gets counts without names")


def check_scheduler_port(world):
    """On the scheduler's own port, only the API server and administrators may ask, and only the API server on behalf of
    others."""
    url = f"https://127.0.0.1:{world.scheduler}/why/pods/team-a/train"
    assert world.fetch(url)[0] == 403
    status, text = world.fetch(url, world.admin_context())
    assert status == 200 and json.loads(text)["closest"]["node"] == "gpu-2", (status, text)
    assert world.fetch(f"https://127.0.0.1:{world.scheduler}/why/nodes/a/b", world.admin_context())[0] == 400
    assert world.fetch(url + "?width=x", world.admin_context())[0] == 400
    assert world.fetch(f"https://127.0.0.1:{world.api}/api/v1/namespaces/team-a/pods/nobody/why", world.admin_context())[0] == 404
    # The API server does not connect to an address that no scheduler can have.
    settings = world.get("configmap", "drakkar-scheduler", "-n", "kube-system")
    for bad in ("https://169.254.169.254:80", f"https://127.0.0.1:{world.api}", "https://example.com:443", "http://127.0.0.1:1"):
        settings["data"]["statusURL"] = bad
        for field in ("resourceVersion", "managedFields", "uid", "creationTimestamp"):
            settings["metadata"].pop(field, None)
        world.drakkar("apply", "-f", "-", stdin=json.dumps(settings))
        status, text = world.fetch(f"https://127.0.0.1:{world.api}/api/v1/namespaces/team-a/pods/train/why", world.admin_context())
        assert status == 503 and "is not usable" in text, (bad, status, text)
    print("ok: who may ask the scheduler itself")


def check_without_scheduler(world):
    """A scheduler whose port cannot be reached: the command finds the answer itself, and says so."""
    assert world.end("up") == 0
    world.start("up", DRAKKAR, "up", f"--data-dir={world.work}/data", "--node=false", f"--port={world.api}",
                "--scheduler-port=0", "--controllers-port=0")
    wait_until("the server is back", lambda: world.ask("get", "nodes")[0] == 0, 60)

    def told():
        code, said = world.ask("why", "pod", "train", "-n", "team-a")
        flat = " ".join(said.split())
        return code == 1 and "the scheduler did not answer" in flat and "closest is gpu-2" in flat
    wait_until("the command answers without the scheduler", told)
    assert world.end("up") == 0
    print("ok: without the scheduler's port the command answers itself")


def main():
    with Answers() as world:
        world.up()
        check_guide(world, "--update" in sys.argv)
        check_viewer(world)
        check_scheduler_port(world)
        check_without_scheduler(world)


if __name__ == "__main__":
    main()
