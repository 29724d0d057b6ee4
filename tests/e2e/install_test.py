#!/usr/bin/env python3
"""The installed SDK is self-contained: an external project builds a driver in C++ with the CMake package and one in C
with pkg-config, and both pass `drakkar sanity`."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(mydriver LANGUAGES C CXX)
find_package(drakkar-driver REQUIRED)
add_executable(mydriver main.cc)
target_link_libraries(mydriver PRIVATE drakkar::driver)
"""


def run(*command, **options):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result.stdout


def main():
    drakkar, build = sys.argv[1], sys.argv[2]
    work = pathlib.Path(tempfile.mkdtemp(prefix="drakkar-install-"))
    try:
        prefix = work / "prefix"
        run("cmake", "--install", build, "--component", "sdk", "--prefix", prefix)
        source = work / "cxx"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(PROJECT)
        shutil.copy(ROOT / "examples/driver-minimal/main.cc", source)
        run("cmake", "-S", source, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug")
        run("cmake", "--build", work / "build")

        flags = run("pkg-config", "--cflags", "--libs", "drakkar-driver",
                    env=dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))).split()
        run("cc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Werror", "-o", work / "mydriver-c",
            ROOT / "examples/driver-c/main.c", *flags)

        flags = ["--kubeconfig={kubeconfig}", "--node-name={node}", "--registry-dir={registry}", "--cdi-dir={cdi}"]
        run(drakkar, "sanity", "--", work / "build/mydriver", *flags)
        run(drakkar, "sanity", "--", work / "mydriver-c", *flags)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print("ok: an out-of-tree driver in C++ and one in C, against the installed SDK")


if __name__ == "__main__":
    main()
