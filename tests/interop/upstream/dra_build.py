#!/usr/bin/env python3
"""Builds Kubernetes' DRA integration tests so that they start the scheduler of the binary in DRAKKAR instead of
kube-scheduler; their API server is the stock one, in the same process, and needs etcd in PATH.

usage: dra_build.py OUT_FILE; then DRAKKAR=... OUT_FILE -test.v [-test.run REGEX]"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from images import Maker

HERE = pathlib.Path(__file__).resolve().parent
MAIN = """package dra

import (
	"os"
	"testing"

	"k8s.io/kubernetes/test/integration/framework"
)

func TestMain(m *testing.M) { framework.EtcdMain(m.Run) }

// DRA_CONFIGS chooses the configurations, as a regular expression.
func TestDRA(t *testing.T) { Run(t, os.Getenv("DRA_CONFIGS")) }
"""
START = "	cfg := newSchedulerComponentConfig(schedulerCtx, config)\n"
OURS = "	_ = newSchedulerComponentConfig(schedulerCtx, config)\n	scheduler.cancel = startForeignScheduler(schedulerCtx, config)\n"


def main():
    source = Maker.source_of_kubernetes() / "test/integration/dra"
    lines = (source / "dra.go").read_text().splitlines(keepends=True)
    patched = []
    for line in lines:
        if line == START:
            patched.append(OURS)
        elif "util.StartScheduler(" not in line and line.strip() != '"k8s.io/kubernetes/test/integration/util"':
            patched.append(line)
    if len(patched) != len(lines) - 2 or OURS not in patched:
        raise SystemExit("dra.go of this release starts its scheduler in another way")
    with tempfile.TemporaryDirectory() as work:
        # A copy of the package in a module of its own: files in the module cache cannot be replaced.
        package = pathlib.Path(work) / "dra"
        package.mkdir()
        for file in source.glob("*.go"):
            if file.name == "main_test.go":
                continue
            shutil.copyfile(file, package / file.name)
        (package / "dra.go").write_text("".join(patched))
        shutil.copyfile(HERE / "dra_scheduler.go.txt", package / "foreign_scheduler.go")
        (package / "main_test.go").write_text(MAIN)
        for file in ("go.mod", "go.sum"):
            shutil.copyfile(HERE / file, pathlib.Path(work) / file)
        subprocess.run(["go", "test", "-c", "-vet=off", "-p", "1", "-mod=mod", "-ldflags=-s -w", "-o",
                        os.path.abspath(sys.argv[1]), "./dra"], check=True, cwd=work,
                       env=dict(os.environ, CGO_ENABLED="0", GOFLAGS=""))


if __name__ == "__main__":
    main()
