"""The JavaScript client against `drakkar up`: list, watch and patch."""
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from cluster import Cluster, skip_without_containers  # noqa: E402

SKIP = 77
skip_without_containers()
if not shutil.which("node") or not shutil.which("npm"):
    print("skipped: needs node and npm")
    raise SystemExit(SKIP)
work = pathlib.Path(os.environ.get("DRAKKAR_BINARY_DIR", "build/dev")).resolve() / "interop/jsclient"
work.mkdir(parents=True, exist_ok=True)
for file in ("package.json", "main.mjs"):
    shutil.copy(HERE / "jsclient" / file, work)
if not (work / "node_modules/@kubernetes/client-node").exists():
    install = subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=work, capture_output=True, text=True, check=False)
    if install.returncode != 0:
        print(f"skipped: npm could not install the client: {install.stderr.strip()[-300:]}")
        raise SystemExit(SKIP)
with Cluster(sys.argv[1]) as cluster:
    cluster.start()
    result = subprocess.run(["node", "main.mjs", cluster.environment["KUBECONFIG"]], cwd=work, timeout=60, check=False)
    if result.returncode != 0:
        raise SystemExit("the JavaScript client found fault with the server")
