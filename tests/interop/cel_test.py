#!/usr/bin/env python3
"""Selectors answer and cost the same as in Kubernetes' own CEL: the peer evaluates them, our test compares."""
import os
import pathlib
import subprocess
import sys
import tempfile

import go_peer

HERE = pathlib.Path(__file__).resolve().parent


def main():
    our_test, binary_directory = sys.argv[1:3]
    peer = go_peer.build("gocel", binary_directory)
    with tempfile.NamedTemporaryFile(suffix=".json") as cases:
        subprocess.run([peer, HERE / "gocel/device.json", HERE / "gocel/expressions.txt"], stdout=cases, check=True)
        result = subprocess.run([our_test, "--gtest_filter=*ALivePeer"], check=False,
                                env=dict(os.environ, DRAKKAR_VECTORS=os.path.dirname(cases.name),
                                         DRAKKAR_CEL_CASES=os.path.basename(cases.name)))
    raise SystemExit(result.returncode)


if __name__ == "__main__":
    main()
