#!/usr/bin/env python3
"""Checks every #include against layers.txt, and the sources against the list of banned calls."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FREE = ("tests", "bench", "cmd", "examples", "tools")
SOURCES = ("*.h", "*.cc", "*.c")

# What only base may touch: everything else takes a Clock, Random, FileSystem or EventLoop.
BANNED = {
    r"\bstd::thread\b|\bstd::jthread\b|\bpthread_create\b": ("src/base/exec", "src/storage/sqlite"),
    r"\bsleep_for\b|\busleep\(|\bnanosleep\(": (),
    r"\bsystem_clock::now\b|\bsteady_clock::now\b|\bgettimeofday\(|\bclock_gettime\(": ("src/base/env",),
    r"\brand\(\)|\bsrand\(|\bstd::random_device\b|\bstd::mt19937": (),
    r"\bstd::(i|o)?fstream\b|\bfopen\(": ("src/base/env",),
    # Priorities are the administrator's to give.
    r"\bsched_set\w+\(|\bpthread_setsched\w+\(|\bsetpriority\(|\bnice\(": (),
}


def read_layers(text):
    modules, third_party, target = {}, {}, None
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        if line == "third-party:":
            target = third_party
            continue
        name, _, rest = line.partition(": ") if ": " in line else (line.rstrip(":"), "", "")
        (modules if target is None else third_party)[name] = rest.split()
    return modules, third_party


def module_of(path, modules):
    best = None
    for module in modules:
        if path == module or path.startswith(module + "/"):
            if best is None or len(module) > len(best):
                best = module
    return best


def included_module(include, modules):
    for candidate in (include, "src/" + include):
        found = module_of(candidate, modules)
        if found:
            return found
    return None


def check_file(path, text, modules, third_party):
    errors = []
    free = path.split("/")[0] in FREE
    own = module_of(path, modules)
    if own is None and not free:
        return [f"{path}: its folder is not in tools/layers/layers.txt"]
    is_test = re.search(r"_(test|bench|fuzz)\.cc$", path) or "/testing/" in path
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+(["<][^">]+[">])', line)
        if not match:
            continue
        include = match.group(1)
        for header, owners in third_party.items():
            if include.startswith(header) or include == header:
                if not any(path.startswith(owner) for owner in owners) and not (free and header != "<CLI/"):
                    errors.append(f"{path}:{number}: {include} may only be included in {' '.join(owners)}")
        if include.startswith("<") or free:
            continue
        used = included_module(include.strip('"'), modules)
        if used and used != own and used not in modules[own] and not is_test:
            errors.append(f"{path}:{number}: {own} may not use {used}")
    if not free and not is_test:
        for pattern, owners in BANNED.items():
            if any(path.startswith(owner) for owner in owners):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if re.search(pattern, line.split("//")[0]):
                    errors.append(f"{path}:{number}: {line.strip()!r} is not for this folder")
    return errors


def self_test(modules, third_party):
    """The check itself must be able to fail."""
    bad = {
        "src/base/x.cc": '#include "api/tree/value.h"\n',
        "src/cel/x.cc": '#include "client/client.h"\n',
        "src/node/x.cc": "#include <nghttp2/nghttp2.h>\n",
        "src/scheduler/x.cc": "auto t = std::chrono::system_clock::now();\n",
        "sdk/driver/x.cc": "sched_setscheduler(0, SCHED_FIFO, &most);\n",
        "src/unheard/x.cc": "\n",
    }
    for path, text in bad.items():
        if not check_file(path, text, modules, third_party):
            return [f"self-test: nothing found wrong with {path}: {text!r}"]
    good = {"src/node/x.cc": '#include "client/client.h"\n#include <vector>\n'}
    for path, text in good.items():
        found = check_file(path, text, modules, third_party)
        if found:
            return [f"self-test: {found}"]
    return []


def check_architecture():
    """The folder table of ARCHITECTURE.md names every module, and only folders that exist."""
    table = re.findall(r"^\| `([^`]+)` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    errors = [f"ARCHITECTURE.md: {folder} does not exist" for folder in table
              if not (ROOT / folder).is_dir()]
    tops = [str(p.relative_to(ROOT)) for top in ("src", "sdk") for p in sorted((ROOT / top).iterdir())
            if p.is_dir()]
    tops += [p.name for p in sorted(ROOT.iterdir())
             if p.is_dir() and not p.name.startswith(".") and p.name not in ("build", "src", "sdk", "wt")]
    errors += [f"ARCHITECTURE.md: {folder} is not in the folder table" for folder in tops
               if folder not in table]
    return errors


def main():
    modules, third_party = read_layers((ROOT / "tools/layers/layers.txt").read_text())
    errors = self_test(modules, third_party) + check_architecture()
    count = 0
    for top in ("src", "sdk", "cmd", "tests", "bench", "examples"):
        for pattern in SOURCES:
            for file in sorted((ROOT / top).rglob(pattern)):
                count += 1
                path = str(file.relative_to(ROOT))
                errors += check_file(path, file.read_text(), modules, third_party)
    for error in errors:
        print(error)
    print(f"{count} files checked, {len(errors)} errors")
    return 1 if errors or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
