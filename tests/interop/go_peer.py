"""Builds a peer written in Go, or skips the test if that is not possible."""
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77


def build(folder, binary_directory, *flags):
    """The path of the program in tests/interop/`folder`; Go's own cache makes a second build quick."""
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not os.path.exists(go):
        print(f"skipped: {folder} needs Go")
        raise SystemExit(SKIP)
    out = pathlib.Path(binary_directory).resolve() / "interop" / folder
    out.parent.mkdir(parents=True, exist_ok=True)
    result = subprocess.run([go, "build", "-mod=readonly", *flags, "-o", out, "."], cwd=HERE / folder, capture_output=True, text=True,
                            env=dict(os.environ, CGO_ENABLED="0", GOFLAGS=""), check=False)
    if result.returncode == 0:
        return str(out)
    offline = ("dial tcp", "no such host", "connection refused", "i/o timeout", "module lookup disabled")
    if any(sign in result.stderr for sign in offline):
        print(f"skipped: the Go modules of {folder} could not be had: {result.stderr.strip().splitlines()[-1]}")
        raise SystemExit(SKIP)
    raise AssertionError(f"go build of {folder} failed:\n{result.stderr}")
