#!/usr/bin/env python3
"""Kubernetes' Go reader reads our metadata files, and our readers read those written by Go."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent / "gometadata"
SKIP = 77


def output(*command, **more):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, timeout=280, **more)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.stderr}")
    return result.stdout


def main():
    reader, writer = sys.argv[1:3]
    if not shutil.which("go"):
        print("skipped: needs Go")
        raise SystemExit(SKIP)
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-interop-"))
    try:
        go = work / "gometadata"
        built = subprocess.run(["go", "build", "-o", go, "."], cwd=SOURCE, capture_output=True, text=True, check=False,
                               env=dict(os.environ, GOFLAGS="-mod=readonly -buildvcs=false"), timeout=280)
        if built.returncode != 0:
            print(f"skipped: the Go modules are not there: {built.stderr[-300:]}")
            raise SystemExit(SKIP)

        output(writer, work)
        files = sorted(work.rglob("metadata.json"))
        assert len(files) == 4, files
        for path in files:
            theirs = output(go, "read", path)
            ours = output(reader, "--file", path)
            assert ours == theirs, f"{path}:\n{ours}\n{theirs}"
            document = json.loads(theirs)
            assert document["metadata"]["generation"] == (2 if path.parent.name == "gpu" else 1), document
            assert document["podClaimName"] == "dev"

        path = work / "from-go.json"
        theirs = output(go, "write", path)
        assert path.read_text().count('"kind": "DeviceMetadata"') == 2, "a stream of two versions"
        ours = output(reader, "--file", path)
        assert ours == theirs, f"{ours}\n{theirs}"
        device = json.loads(ours)["requests"][0]["devices"][0]
        assert device["networkData"]["ips"] == ["10.0.0.5/24"] and device["attributes"]["truth"] == {"bool": False}
        python = output("python3", SOURCE.parents[2] / "examples/read-metadata.py", "--root", work)
        assert python == "", "nothing at the well-known paths"
        print(f"ok: {len(files)} of our files read by Go, one of Go's by us, byte for byte the same when printed")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
