"""The images that Kubernetes' own tests ask for, made from what this machine has: agnhost and other programs of the
tests themselves, busybox, and stand-ins where a test needs only something that runs or answers. They are archives as
`docker save` writes them. No registry is used.

usage: images.py PEERS_DIR OUT_DIR"""
import hashlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

REGISTRY = "registry.k8s.io/e2e-test-images"
# Programs of Debian's that the published images have too.
TOOLS = ["bash", "curl", "ip", "ss", "nc", "dig", "iperf"]

PAUSE_C = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"

WEB_SERVER = """#!/bin/sh
exec httpd -f -p 80 -h /usr/share/nginx/html
"""
# The job that computes pi prints many digits; any do.
PERL = """#!/bin/sh
echo 3.14159265358979323846
"""


def copy_with_libraries(program, root):
    """Copies a program and the libraries that it is linked to."""
    path = shutil.which(program)
    if not path:
        return
    real = pathlib.Path(path).resolve()
    libraries = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", real], capture_output=True, text=True, check=False).stdout)
    for each in [str(real), *libraries]:
        target = root / each.lstrip("/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(each, target)
    link = root / "usr/bin" / program
    if link.is_symlink() or link.exists():
        link.unlink()
    link.symlink_to(real)


def make_base(root):
    """A file system with busybox and its applets in /bin."""
    for directory in ["bin", "usr/bin", "usr/local/bin", "dev", "etc", "proc", "root", "sys", "tmp", "var", "run", "home",
                      "lib", "lib64", "usr/lib", "opt"]:
        (root / directory).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    busybox = shutil.which("busybox")
    shutil.copy2(busybox, root / "bin/busybox")
    for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
                                     "user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\nuser-defined-in-image:x:1000:\n"
                                    "group-defined-in-image:x:50000:user-defined-in-image\n")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\npasswd: files\ngroup: files\n")


def script(root, path, text):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()
    target.write_text(text)
    target.chmod(0o755)


class Maker:
    def __init__(self, peers, out):
        self.programs = pathlib.Path(peers) / "upstream"
        self.peers = pathlib.Path(peers)
        self.out = pathlib.Path(out)
        self.out.mkdir(parents=True, exist_ok=True)

    def save(self, name, tags, fill, config):
        """Writes one archive with these tags, unless it is there."""
        archive = self.out / f"{name}.tar"
        if archive.exists():
            return
        with tempfile.TemporaryDirectory(dir=self.out) as work:
            root = pathlib.Path(work) / "root"
            root.mkdir()
            fill(root)
            layer = pathlib.Path(work) / "layer.tar"
            subprocess.run(["tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-C", root, "-cf",
                            layer, "."], check=True)
            digest = hashlib.sha256(layer.read_bytes()).hexdigest()
            image = json.dumps({"architecture": "amd64", "os": "linux", "config": config,
                                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode()
            image_name = hashlib.sha256(image).hexdigest() + ".json"
            manifest = json.dumps([{"Config": image_name, "RepoTags": tags, "Layers": ["layer/layer.tar"]}]).encode()
            with tarfile.open(f"{archive}.part", "w") as tar:
                tar.add(layer, "layer/layer.tar")
                for entry, data in ((image_name, image), ("manifest.json", manifest)):
                    info = tarfile.TarInfo(entry)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        pathlib.Path(f"{archive}.part").rename(archive)

    def with_program(self, program, *more):
        def fill(root):
            make_base(root)
            shutil.copy2(self.programs / program, root / program)
            for each in more:
                each(root)
        return fill

    def make_all(self):
        def agnhost_files(root):
            for tool in TOOLS:
                copy_with_libraries(tool, root)
            (root / "agnhost-2").symlink_to("agnhost")
            (root / "uploads").mkdir()
            (root / "home/user-defined-in-image").mkdir(parents=True)
            source = self.source_of_kubernetes() / "test/images/agnhost/porter"
            for file in ("localhost.crt", "localhost.key"):
                shutil.copyfile(source / file, root / file)
        agnhost = {"Entrypoint": ["/agnhost"], "Cmd": ["pause"]}
        self.save("agnhost", [f"{REGISTRY}/agnhost:2.66.1", f"{REGISTRY}/agnhost:2.55"],
                  self.with_program("agnhost", agnhost_files), agnhost)
        self.save("busybox", [f"{REGISTRY}/busybox:1.37.0-2", f"{REGISTRY}/busybox:1.36.1-1"], make_base, {"Cmd": ["sh"]})
        self.save("nonroot", [f"{REGISTRY}/nonroot:1.5"], make_base, {"Cmd": ["sh"], "User": "1234"})
        self.save("ipc-utils", [f"{REGISTRY}/ipc-utils:1.4"], lambda root: (make_base(root), [
            copy_with_libraries(tool, root) for tool in ("ipcs", "ipcmk", "ipcrm")]), {"Cmd": ["sh"]})
        self.save("glibc-dns-testing", [f"{REGISTRY}/glibc-dns-testing:2.1.1"], lambda root: (make_base(root), [
            copy_with_libraries(tool, root) for tool in ("dig", "getent", "bash")]), {"Cmd": ["sh"]})
        self.save("hostpathplugin", ["registry.k8s.io/sig-storage/hostpathplugin:v1.17.1"],
                  self.with_program("hostpathplugin"), {"Entrypoint": ["/hostpathplugin"]})
        self.save("regression", [f"{REGISTRY}/regression-issue-74839:1.5"], self.with_program("regression-issue-74839"),
                  {"Entrypoint": ["/regression-issue-74839"]})
        self.save("sample-device-plugin", [f"{REGISTRY}/sample-device-plugin:1.7"],
                  self.with_program("sample-device-plugin"), {"Entrypoint": ["/sample-device-plugin"]})

        def setuid(root):
            make_base(root)
            shutil.copy2(self.programs / "nonewprivs", root / "usr/local/bin/nnp")
            (root / "usr/local/bin/nnp").chmod(0o6755)
        self.save("nonewprivs", [f"{REGISTRY}/nonewprivs:1.4"], setuid, {
            "Cmd": ["nnp"], "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]})

        def pause(root):
            subprocess.run(["gcc", "-static", "-O2", "-x", "c", "-", "-o", root / "pause"], input=PAUSE_C, text=True, check=True)
        self.save("pause", ["registry.k8s.io/pause:3.10.2"], pause, {"Entrypoint": ["/pause"], "User": "65535:65535"})

        def web(page, data=None):
            def fill(root):
                make_base(root)
                script(root, "web-server", WEB_SERVER)
                html = root / "usr/share/nginx/html"
                html.mkdir(parents=True)
                (html / "index.html").write_text(page)
                (html / "50x.html").write_text("error\n")
                if data:
                    for file in (html / "data.json", root / "data.json"):
                        file.write_text(data)
                    # The tests look for the system that the published images are based on.
                    (root / "etc/os-release").write_text('NAME="Alpine Linux"\n')
            return fill
        server = {"Entrypoint": ["/web-server"]}
        # Two different images, as the tests update one to the other.
        self.save("nginx", [f"{REGISTRY}/nginx:1.27.0-2"], web("Welcome to nginx!\n"), server)
        self.save("nginx-new", [f"{REGISTRY}/nginx:1.28.0-2"], web("Welcome to nginx! (new)\n"), server)
        for name in ("kitten", "nautilus"):
            self.save(name, [f"{REGISTRY}/{name}:1.8"], web(name, json.dumps({"image": f"{name}.jpg"})), server)
        self.save("perl", [f"{REGISTRY}/perl:5.26"], lambda root: (
            make_base(root), script(root, "usr/bin/perl", PERL)), {"Cmd": ["sh"]})
        self.save("sample-apiserver", [f"{REGISTRY}/sample-apiserver:1.29.2"], self.with_program(
            "sample-apiserver", lambda root: (root / "sample-apiserver").rename(root / "kube-sample-apiserver")),
            {"Entrypoint": ["/kube-sample-apiserver"]})
        etcd = self.peers / "etcd-3.6/etcd"
        program = etcd if etcd.exists() else shutil.which("etcd")
        if program:
            def with_etcd(root):
                make_base(root)
                shutil.copy2(program, root / "usr/local/bin/etcd")
            self.save("etcd", ["registry.k8s.io/etcd:3.7.0-0"], with_etcd, {
                "Cmd": ["etcd"], "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]})

    @staticmethod
    def source_of_kubernetes():
        found = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"], capture_output=True, text=True,
                               check=True, cwd=pathlib.Path(__file__).parent).stdout
        return pathlib.Path(found.strip())


if __name__ == "__main__":
    Maker(sys.argv[1], sys.argv[2]).make_all()
