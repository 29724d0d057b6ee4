#!/usr/bin/env python3
"""Checks every #include against layers.txt, the folders within a module for cycles, and the sources for banned calls and
hand-written lifetime flags. Unused entries in layers.txt are errors as well."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FREE = ("tests", "bench", "cmd", "examples", "tools")
SOURCES = ("*.h", "*.cc", "*.c")

# Only base may use these: everything else takes a Clock, Random, FileSystem or EventLoop.
BANNED = {
    r"\bstd::thread\b|\bstd::jthread\b|\bpthread_create\b": ("src/base/exec", "src/storage/sqlite"),
    r"\bsleep_for\b|\busleep\(|\bnanosleep\(": (),
    r"\bsystem_clock::now\b|\bsteady_clock::now\b|\bgettimeofday\(|\bclock_gettime\(": ("src/base/env",),
    r"\brand\(\)|\bsrand\(|\bstd::random_device\b|\bstd::mt19937": (),
    r"\bstd::(i|o)?fstream\b|\bfopen\(": ("src/base/env",),
    # Only an administrator may raise priorities.
    r"\bsched_set\w+\(|\bpthread_setsched\w+\(|\bsetpriority\(|\bnice\(": (),
}

# Hand-written ways to keep a callback from a destroyed object. Only base/exec/lifetime.h may do that.
LIFETIME_FLAG = re.compile(
    r"\balive_\b"
    r"|\b(shared_ptr|weak_ptr|make_shared)<(const )?bool>"
    r"|\bweak_ptr<(const )?(void|int|char|std::monostate)>"
    r"|\b(shared_ptr|weak_ptr|make_shared)<[\w:]+ ?\*>")
LIFETIME_HOME = "src/base/exec/"


def read_layers(text):
    """Modules with what they may use, third-party headers with their folders, the cycles that are still allowed, and the
    folders that still have lifetime flags."""
    modules, third_party, cycles, flags = {}, {}, {}, {}
    target = modules
    sections = {"third-party:": third_party, "cycles:": cycles, "lifetime-flags:": flags}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        if line in sections:
            target = sections[line]
            continue
        name, _, rest = line.partition(": ") if ": " in line else (line.rstrip(":"), "", "")
        target[name] = rest.split()
    return modules, third_party, [frozenset([name, *rest]) for name, rest in cycles.items()], sorted(flags)


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


def is_test_file(path):
    return bool(re.search(r"_(test|bench|fuzz|contract)\.(cc|h)$", path)) or "/testing/" in path


def includes_of(text):
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+(["<][^">]+[">])', line)
        if match:
            yield number, match.group(1)


def check_file(path, text, modules, third_party, used_edges):
    errors = []
    free = path.split("/")[0] in FREE
    own = module_of(path, modules)
    if own is None and not free:
        return [f"{path}: its folder is not in tools/layers/layers.txt"]
    is_test = is_test_file(path)
    for number, include in includes_of(text):
        for header, owners in third_party.items():
            if not include.startswith(header):
                continue
            used_edges.update((header, owner) for owner in owners if path.startswith(owner))
            if not any(path.startswith(owner) for owner in owners) and not (free and header != "<CLI/"):
                errors.append(f"{path}:{number}: {include} may only be included in {' '.join(owners) or 'tests'}")
        if include.startswith("<") or free:
            continue
        used = included_module(include.strip('"'), modules)
        if not used or used == own or is_test:
            continue
        used_edges.add((own, used))
        if used not in modules[own]:
            errors.append(f"{path}:{number}: {own} may not use {used}")
    if not free and not is_test:
        for pattern, owners in BANNED.items():
            if any(path.startswith(owner) for owner in owners):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if re.search(pattern, line.split("//")[0]):
                    errors.append(f"{path}:{number}: {line.strip()!r} is not for this folder")
    return errors


def check_unused(allowed, used_edges):
    return [f"tools/layers/layers.txt: {name} does not use {each}: remove it from the line"
            for name, each in sorted((name, each) for name, rest in allowed.items() for each in rest)
            if (name, each) not in used_edges]


def part_of(path, module):
    """The part of its module that a file belongs to: its folder (internal/ counts as its parent), or the file itself if
    it is in the module's top folder, which has interfaces as well as the code that wires them together."""
    folder = str(pathlib.PurePath(path).parent)
    folder = folder.removesuffix("/internal")
    return folder if folder != module else path


def find_cycles(files, modules):
    """Cycles between the parts of a module, each with the includes that cause it."""
    graph = collections.defaultdict(lambda: collections.defaultdict(list))
    for path, text in files.items():
        own = module_of(path, modules)
        if own is None or is_test_file(path):
            continue
        for number, include in includes_of(text):
            for candidate in (include.strip('"'), "src/" + include.strip('"')):
                if module_of(candidate, modules) == own and candidate in files:
                    here, there = part_of(path, own), part_of(candidate, own)
                    if here != there:
                        graph[here][there].append(f"{path}:{number}")
    reach = {}
    for start in graph:
        seen, todo = set(), [start]
        while todo:
            for each in graph.get(todo.pop(), {}):
                if each not in seen:
                    seen.add(each)
                    todo.append(each)
        reach[start] = seen
    cycles = {frozenset(other for other in reach[part] if part in reach.get(other, ()))
              for part in reach if part in reach[part]}
    return {cycle: sorted(place for here in cycle for there in graph[here] if there in cycle
                          for place in graph[here][there]) for cycle in cycles}


def check_cycles(files, modules, allowed):
    found = find_cycles(files, modules)
    errors = [f"{' and '.join(sorted(cycle))} use each other: {', '.join(places)}"
              for cycle, places in sorted(found.items(), key=lambda item: sorted(item[0])) if cycle not in allowed]
    return errors + [f"tools/layers/layers.txt: {' '.join(sorted(cycle))} is no cycle any more: remove the line"
                     for cycle in allowed if cycle not in found]


def check_lifetimes(files, allowed):
    """Every hand-written lifetime flag outside the folders in `allowed`, and every such folder that no longer has one."""
    errors, used = [], set()
    for path, text in files.items():
        if path.startswith(LIFETIME_HOME):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if not LIFETIME_FLAG.search(line.split("//")[0]):
                continue
            folders = [folder for folder in allowed if path.startswith(folder + "/")]
            used.update(folders)
            if not folders:
                errors.append(f"{path}:{number}: {line.strip()!r} is a hand-written lifetime flag: use Lifetime "
                              "(src/base/exec/lifetime.h)")
    return errors + [f"tools/layers/layers.txt: {folder} has no lifetime flag any more: remove the line"
                     for folder in allowed if folder not in used]


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
        if not check_file(path, text, modules, third_party, set()):
            return [f"self-test: nothing found wrong with {path}: {text!r}"]
    good = {"src/node/x.cc": '#include "client/client.h"\n#include <vector>\n'}
    for path, text in good.items():
        found = check_file(path, text, modules, third_party, set())
        if found:
            return [f"self-test: {found}"]
    circle = {"src/net/a/x.h": '#include "net/b/x.h"\n', "src/net/b/x.h": '#include "net/c/internal/x.h"\n',
              "src/net/c/internal/x.h": "", "src/net/c/x.cc": '#include "net/a/x.h"\n', "src/net/d/x.h": ""}
    if set(find_cycles(circle, modules)) != {frozenset({"src/net/a", "src/net/b", "src/net/c"})}:
        return [f"self-test: the cycle was not found: {find_cycles(circle, modules)}"]
    line = {"src/net/a/x.h": '#include "net/b/x.h"\n', "src/net/b/x.h": "", "src/net/top.cc": '#include "net/a/x.h"\n',
            "src/net/bottom.h": "", "src/net/b/x.cc": '#include "net/bottom.h"\n',
            "src/net/b/x_test.cc": '#include "net/a/x.h"\n'}
    if find_cycles(line, modules):
        return [f"self-test: no cycle was found to be one: {find_cycles(line, modules)}"]
    if not check_cycles(line, modules, [frozenset({"src/net/a", "src/net/b"})]) or not check_unused({"a": ["b"]}, set()):
        return ["self-test: an exception that nobody needs was not found"]
    flags = ["std::shared_ptr<bool> open;", "auto x = std::make_shared<bool>(true);", "std::weak_ptr<void> token;",
             "[alive = std::weak_ptr<int>(x)] {}", "*alive_ = false;", "std::shared_ptr<Store*> self;"]
    for line in flags:
        if not check_lifetimes({"src/net/x.h": line}, []):
            return [f"self-test: nothing found wrong with {line!r}"]
    fine = ["Lifetime lifetime_;", "std::shared_ptr<const void> object;", "auto left = std::make_shared<int>(3);",
            "// as alive_ was", "std::weak_ptr<Stream> stream;"]
    for line in fine:
        if check_lifetimes({"src/net/x.h": line}, []):
            return [f"self-test: {line!r} was taken for a lifetime flag"]
    if not check_lifetimes({"src/net/x.h": ""}, ["src/net"]) or check_lifetimes({"src/net/x.h": flags[0]}, ["src/net"]):
        return ["self-test: the list of folders with lifetime flags is not kept"]
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
    modules, third_party, cycles, flags = read_layers((ROOT / "tools/layers/layers.txt").read_text())
    errors = self_test(modules, third_party) + check_architecture()
    files = {str(file.relative_to(ROOT)): file.read_text()
             for top in ("src", "sdk", "cmd", "tests", "bench", "examples")
             for pattern in SOURCES for file in sorted((ROOT / top).rglob(pattern))}
    used_edges = set()
    for path, text in files.items():
        errors += check_file(path, text, modules, third_party, used_edges)
    errors += check_unused(modules, used_edges) + check_unused(third_party, used_edges)
    errors += check_cycles(files, modules, cycles) + check_lifetimes(files, flags)
    for error in errors:
        print(error)
    print(f"{len(files)} files checked, {len(errors)} errors")
    return 1 if errors or not files else 0


if __name__ == "__main__":
    sys.exit(main())
