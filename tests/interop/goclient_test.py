"""client-go's informers, leader election, server-side apply and slice controller against `drakkar apiserver`."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cluster import Cluster, skip_without_containers  # noqa: E402
import go_peer  # noqa: E402

skip_without_containers()
program = go_peer.build("goclient", os.environ.get("DRAKKAR_BINARY_DIR", "build/dev"))
with Cluster(sys.argv[1]) as cluster:
    cluster.start()
    result = subprocess.run([program, cluster.environment["KUBECONFIG"]], timeout=200, check=False)
    if result.returncode != 0:
        raise SystemExit("client-go found fault with the server")
