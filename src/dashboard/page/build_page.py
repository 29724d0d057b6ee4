#!/usr/bin/env python3
"""Bundles the dashboard's page (web/dashboard) with esbuild and writes it as a C++ source.

npm installs the packages of package-lock.json into the work directory, once per lock file. With --mode AUTO a page that
says how to build the real one is embedded if npm or its registry is missing; with ON that is an error. --check runs the
TypeScript compiler instead."""
import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
FALLBACK = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Drakkar</title>
<h1>This binary was built without its web page</h1>
<p>The page is built with npm, which was missing, or its registry could not be reached:</p>
<pre>@REASON@</pre>
<p>Install nodejs and npm (<code>./dev setup</code>), then run <code>./dev build</code>.
Until then use <code>drakkar free</code>, <code>drakkar who</code> and <code>drakkar why</code>.</p>
</html>
"""


class Unavailable(Exception):
    """The page cannot be built on this machine."""


def run(command, cwd):
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command[:3]))}: {(result.stderr + result.stdout).strip()[-2000:]}")


def install(source, work):
    """The folder with the installed packages."""
    npm = shutil.which("npm")
    if not npm or not shutil.which("node"):
        raise Unavailable("node or npm is not installed")
    lock = (source / "package-lock.json").read_bytes() + (source / "package.json").read_bytes()
    digest = hashlib.sha256(lock).hexdigest()
    stamp = work / "installed"
    if not stamp.exists() or stamp.read_text() != digest:
        work.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(source / name, work / name)
        try:
            # No package runs a script of its own here.
            run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1",
                 "--fetch-timeout=30000", f"--cache={work}/cache"], work)
        except RuntimeError as error:
            raise Unavailable(str(error)) from error
        shutil.rmtree(work / "cache", ignore_errors=True)
        stamp.write_text(digest)
    return work / "node_modules"


def bundle(source, work):
    """The page's files by path."""
    packages = install(source, work)
    esbuild = packages / ".bin" / "esbuild"
    out = work / "dist"
    run([esbuild, source / "src/main.ts", source / "src/style.css", "--bundle", "--minify", "--target=es2021",
         "--charset=utf8", "--legal-comments=none", "--log-level=warning", f"--outdir={out}"], source)
    return {"/": source / "index.html", "/app.js": out / "main.js", "/app.css": out / "style.css",
            "/icon.svg": source / "icon.svg"}


def literal(text):
    """A string literal; long ones in parts, which the compiler joins."""
    assert ')page"' not in text
    parts = [text[i:i + 8000] for i in range(0, len(text), 8000)] or [""]
    return "\n".join(f'R"page({part})page"' for part in parts)


def write_source(path, files):
    rows = [f'    {{"{name}", "{kind}",\n{literal(text)}}},' for name, kind, text in files]
    text = ('#include "dashboard/page/page.h"\n\nnamespace drakkar::dashboard {\nnamespace {\n\n'
            "using namespace std::string_view_literals;\n\n"
            "constexpr PageFile kFiles[] = {\n" + "\n".join(rows).replace(')page"}', ')page"sv}') + "\n};\n\n}  // namespace\n\n"
            "const PageFile* FindPageFile(std::string_view path) {\n"
            "  for (const PageFile& file : kFiles) {\n    if (file.path == path) return &file;\n  }\n"
            "  return nullptr;\n}\n\n}  // namespace drakkar::dashboard\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--mode", choices=("AUTO", "ON", "OFF"), default="AUTO")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        try:
            packages = install(arguments.source, arguments.work)
        except Unavailable as error:
            print(f"skipped: {error}")
            return SKIPPED
        return subprocess.run([packages / ".bin" / "tsc", "--noEmit", "-p", arguments.source / "tsconfig.json"],
                              check=False).returncode
    missing = arguments.output.with_suffix(".missing")  # ./dev build tries again if this exists
    missing.unlink(missing_ok=True)
    try:
        if arguments.mode == "OFF":
            raise Unavailable("the build was configured with DRAKKAR_DASHBOARD=OFF")
        files = [(name, TYPES[path.suffix], path.read_text())
                 for name, path in bundle(arguments.source, arguments.work).items()]
    except Unavailable as error:
        if arguments.mode == "ON":
            print(f"error: the dashboard's page cannot be built: {error}", file=sys.stderr)
            return 1
        reason = str(error).replace("&", "&amp;").replace("<", "&lt;").replace(')page"', "")
        files = [("/", TYPES[".html"], FALLBACK.replace("@REASON@", reason))]
        if arguments.mode == "AUTO":
            print(f"warning: the binary gets no dashboard page: {error}", file=sys.stderr)
            missing.parent.mkdir(parents=True, exist_ok=True)
            missing.touch()
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    write_source(arguments.output, files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
