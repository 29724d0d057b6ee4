#!/usr/bin/env python3
"""The server's output read by Kubernetes' own Go types: protobuf and JSON, every version, a boolean slice."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: boolean}
spec:
  driver: other.example.com
  nodeName: node-1
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  skipNodeOperations: true
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def main():
    drakkar = os.path.abspath(sys.argv[1])
    if shutil.which("go") is None:
        skip("there is no Go")
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        binary = work / "protobuf"
        build = subprocess.run(["go", "build", "-mod=readonly", "-o", binary, "."], cwd=HERE / "protobuf",
                               capture_output=True, text=True, check=False)
        if build.returncode != 0:
            if "dial tcp" in build.stderr or "no such host" in build.stderr or "missing go.sum" in build.stderr:
                skip(f"the Go modules cannot be had: {build.stderr[-300:]}")
            sys.exit(build.stderr)
        with open(work / "log", "w", encoding="utf-8") as log:
            server = subprocess.Popen(
                [drakkar, "apiserver", f"--data-dir={work / 'data'}", "--port=0",
                 "--feature-gates=DRAOptionalNodePreparation=true", "--skip-node-operations-form=list"],
                stdout=log, stderr=subprocess.STDOUT)
        try:
            kubeconfig = work / "data" / "admin.kubeconfig"
            deadline = time.monotonic() + 20
            while True:
                made = subprocess.run([drakkar, "create", "-f", "-"], input=SLICE, capture_output=True, text=True,
                                      env={**os.environ, "KUBECONFIG": str(kubeconfig)}, check=False)
                if made.returncode == 0:
                    break
                if time.monotonic() > deadline or server.poll() is not None:
                    sys.exit(f"{made.stderr}\n{(work / 'log').read_text()}")
                time.sleep(0.1)
            run = subprocess.run([binary, kubeconfig], check=False, timeout=120)
            if run.returncode != 0:
                print((work / "log").read_text()[-3000:])
                sys.exit(1)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(20)


if __name__ == "__main__":
    main()
