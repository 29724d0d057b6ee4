#!/usr/bin/env python3
"""A driver updates device metadata continuously; readers always see a complete document.

The readers use the mounts of the CDI spec, like a running container: Python's json module,
our C++, C and shell readers, the Python example, and Kubernetes' Go decoder if Go is available. Bind mounts need root;
without it symbolic links replace them.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import go_peer

KEP = "var/run/dra-device-attributes/c"
KUBERNETES = "var/run/kubernetes.io/dra-device-attributes/resourceclaims/c"
FILE = "gpu.example.com-metadata.json"
DEVICES = 8
READS = 3000        # of each reader that reads within one process
PROCESSES = 40      # of each one that is started for every reading
IN_NAMESPACE = "DRAKKAR_TEST_IN_MOUNT_NAMESPACE"


def can_mount():
    probe = subprocess.run(["unshare", "--mount", "--propagation", "private", "true"], capture_output=True, check=False)
    return probe.returncode == 0


def output(*command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, timeout=500)
    assert result.returncode == 0, f"{command}: {result.stderr or result.stdout}"
    return result.stdout


def decode(text):
    """Every document of the stream; a ValueError if one of them is incomplete."""
    documents, rest = [], text.strip()
    while rest:
        document, end = json.JSONDecoder().raw_decode(rest)
        assert len(document["requests"][0]["devices"]) == DEVICES, "devices are missing"
        documents.append(document)
        rest = rest[end:].lstrip()
    assert len(documents) == 2, f"{len(documents)} versions in {text[:200]!r}"
    assert documents[0]["metadata"] == documents[1]["metadata"], "parts of two documents"
    return documents[0]["metadata"]["generation"]


def mount(work, root):
    """Mounts what the CDI specs ask for, like a runtime."""
    for spec in sorted((work / "cdi").glob("*.json")):
        for each in json.loads(spec.read_text())["devices"][0]["containerEdits"]["mounts"]:
            assert each["options"] == ["ro", "bind"], each
            source, target = pathlib.Path(each["hostPath"]), root / each["containerPath"].lstrip("/")
            if not os.environ.get(IN_NAMESPACE):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(source)
            elif source.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                output("mount", "-o", "bind,ro", source, target)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.touch()
                output("mount", "-o", "bind,ro", source, target)


def check(work, shell, program, binary_directory):
    root = work / "root"
    writer = subprocess.Popen([program, "update", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout.readline() == "ready\n", "the writer did not start"
        mount(work, root)
        live = [root / KEP / "gpu" / FILE, root / KUBERNETES / "gpu" / FILE,
                root / KEP / "pair/gpu.example.com-metadata.d" / FILE]
        for path in live:
            seen = {decode(path.read_text()) for _ in range(READS)}
            assert len(seen) > 1, f"{path}: no update was seen"
            for reader in ("read-c++", "read-c"):
                assert int(output(program, reader, path, READS)) > 1, f"{path}: {reader} saw no update"
        # An individually mounted file stays the complete document that it was.
        alone = root / KEP / "pair" / FILE
        seen = {decode(alone.read_text()) for _ in range(READS)}
        if os.environ.get(IN_NAMESPACE):
            assert len(seen) == 1, f"{alone}: a mounted file cannot follow, it has generations {seen}"

        example = pathlib.Path(__file__).resolve().parents[2] / "examples/read-metadata.py"
        for request in ("gpu", "pair"):
            generations = set()
            for _ in range(PROCESSES):
                document = json.loads(output(shell, "--root", root, "c", request))
                assert len(document["requests"][0]["devices"]) == DEVICES, document
                generations.add(document["metadata"]["generation"])
            assert len(generations) > 1, f"drakkar-metadata saw no update of {request}"
            for _ in range(PROCESSES):
                assert output(sys.executable, example, "c", request, "--root", root).count(request) >= DEVICES

        go = None
        try:
            go = go_peer.build("gometadata", binary_directory)
        except SystemExit:
            print("without Kubernetes' decoder")
        if go:
            for path in live:
                assert int(output(go, "read-often", path, READS)) > 1, f"{path}: Go saw no update"
        assert writer.poll() is None, "the writer ended"
    finally:
        writer.stdin.close()
        code = writer.wait(timeout=60)
    assert code == 0, f"the writer failed with {code}"
    how = "bind mounts" if os.environ.get(IN_NAMESPACE) else "symbolic links"
    print(f"ok: {READS} readings by each reader through {how}, every one a whole document")


def main():
    if os.environ.get(IN_NAMESPACE):
        return check(pathlib.Path(os.environ[IN_NAMESPACE]), *sys.argv[1:4])
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-metadata-updates-"))
    try:
        if not can_mount():
            return check(work, *sys.argv[1:4])
        # The mounts disappear with the namespace, before the directory is removed.
        return subprocess.run(["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv],
                              env=dict(os.environ, **{IN_NAMESPACE: str(work)}), check=False).returncode
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
