#!/usr/bin/env python3
"""Plants small bugs and runs the tests that reach them.

  mutate.py PATH... [--count N] [--seed S] [--again] [--near] [--tests REGEX] [--all-tests] [--vectors] [--list]

PATH is a folder or a .cc file. All mutants of its files are compiled into one build, in a copy of the
tree below build/mutate, and N of them are drawn. Each test case runs once to record which mutants it
reaches, and each mutant runs the cases that reach it. Mutants that no test kills are printed as a diff.
equivalent.txt lists those without a visible effect. --again runs the survivors of the last run of the
same paths, to check the tests that were written against them.

Exit status: 0 if at least 90 % were killed, 1 if not, 2 if the run itself failed.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import pickle
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import sites as sites_module  # noqa: E402

GOAL = 0.9
NOT_CODE = re.compile(r"(_test|_bench|_fuzz|_contract|_main)\.cc$|/testing/|/testdata/")
FLAGS = ("-I", "-isystem", "-D", "-std")
COMPILE_ROUNDS = 12
PRECISE_ROUNDS = 6  # afterwards an error drops every mutant of its line
MUTATED = ".mutated"
SLOW_CASE_SECONDS = 1.0
MAX_FILTER_BYTES = 100_000  # the kernel allows 128 KiB per variable


def fail(message):
    print(f"mutate: {message}", file=sys.stderr)
    sys.exit(2)


STARTED = time.monotonic()


def say(message):
    print(f"mutate: {time.monotonic() - STARTED:.0f} s: {message}", file=sys.stderr, flush=True)


def sources(paths):
    """The .cc files with product code below `paths`, relative to the root."""
    found = []
    for path in paths:
        full = (ROOT / path).resolve()
        if not full.exists() or ROOT not in [full, *full.parents]:
            fail(f"{path}: no such file or folder in the project")
        files = [full] if full.is_file() else sorted(full.rglob("*.cc"))
        found += [str(f.relative_to(ROOT)) for f in files]
    found = sorted({f for f in found if not NOT_CODE.search(f)})
    if not found:
        fail(f"no .cc files to mutate in {' '.join(paths)}")
    return found


def digest(*parts):
    return hashlib.sha256(b"\0".join(part.encode() for part in parts)).hexdigest()


class Planted:
    """What is planted into the copy of the tree. A file keeps its mutants and their numbers until it changes, so that
    another seed or another folder compiles nothing again."""

    def __init__(self, tree):
        self.tree = tree
        self.path = tree / "build" / "planted.json"
        tool = digest(*((HERE / name).read_text() for name in ("sites.py", "mutant.h")))
        state = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.state = state if state.get("tool") == tool else {"tool": tool, "next": 0, "files": {}}
        self.files = self.state["files"]

    def holds(self, name):
        """Whether the copy of `name` is the present file with mutants in it."""
        return (name in self.files and (self.tree / (name + MUTATED)).exists() and
                self.files[name]["original"] == digest((ROOT / name).read_text()))

    def number(self, name, text, found):
        """Numbers all sites of one file; returns those that are not known to fail to compile."""
        entry = self.files.get(name)
        if entry is None or entry["original"] != digest(text) or entry["count"] != len(found):
            entry = self.files[name] = {"original": digest(text), "count": len(found), "first": self.state["next"],
                                        "broken": []}
            self.state["next"] += len(found)
        found.sort(key=lambda site: (site.start, site.operator, site.mutated))
        for index, site in enumerate(found):
            site.number = entry["first"] + index
        broken = set(entry["broken"])
        return [site for index, site in enumerate(found) if index not in broken]

    def drop(self, site):
        entry = self.files[site.path]
        entry["broken"] = sorted({*entry["broken"], site.number - entry["first"]})

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.state))

    def count(self):
        return self.state["next"]


def copy_tree(target, planted):
    """Copies tracked and new files, so that the tree itself is never touched. Unchanged files keep their time, so that
    the build stays small. Returns a text that changes when a file changes that is not compiled."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    kept = {name for name in planted.files if name in wanted and planted.holds(name)}
    data = []
    for name in sorted(wanted):
        source, copy = ROOT / name, target / name
        if not name.endswith((".cc", ".h", ".md", "CMakeLists.txt")) and not name.startswith("tools/"):
            data.append(f"{name} {hashlib.sha256(source.read_bytes()).hexdigest()}")
        if name in kept:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copyfile(source, copy)
            shutil.copymode(source, copy)
    wanted |= {name + MUTATED for name in kept}
    for folder, folders, names in os.walk(target):
        if folder == str(target):
            folders[:] = [name for name in folders if name != "build"]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, target) not in wanted:
                os.unlink(path)
    return digest(*data)


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", **options)


def build_environment(tree):
    return {**os.environ, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1", "CCACHE_DEPEND": "1",
            "CCACHE_INODECACHE": "1", "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime"}


def configure(tree):
    build = tree / "build" / "dev"
    if not (build / "build.ninja").exists():
        result = run(["cmake", "--preset", "dev"], cwd=tree, env=build_environment(tree))
        if result.returncode != 0:
            fail(f"cmake: {result.stderr[-2000:]}")
    return build


def compile_flags(build):
    """file -> flags for libclang"""
    flags = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        kept, take = [], False
        for word in words:
            if take or word.startswith(FLAGS):
                kept.append(word)
                take = word in ("-I", "-isystem")
        flags[os.path.relpath(entry["file"], build.parents[1])] = kept + ["-xc++", "-Wno-everything"]
    return flags


def equivalents():
    """{(path, mutated line)} of the mutants known to have no effect, with their reasons."""
    known = {}
    path = HERE / "equivalent.txt"
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) != 3 or not all(parts):
            fail(f"equivalent.txt:{number}: expected PATH | MUTATED LINE | REASON")
        known[parts[0], parts[1]] = parts[2]
    return known


def one_line(text):
    return " ".join(text.split())


def signature(site, texts):
    """How equivalent.txt names a mutant: its mutated line, or "- LINE" if that is all it removes."""
    before, after = (one_line(text) for text in site.shown(texts[site.path]))
    return f"- {before}" if after == ";" else after


def find_cached(path, text, tree, flags):
    """The sites of one file. Parsing takes seconds, so they are kept until the file or the tool changes."""
    tool = (HERE / "sites.py").read_bytes()
    key = hashlib.sha256(b"\0".join([tool, path.encode(), text.encode(), *(f.encode() for f in flags)]))
    cached = tree / "build" / "sites" / key.hexdigest()
    if cached.exists():
        return pickle.loads(cached.read_bytes())
    found = sites_module.find_sites(path, text, str(ROOT / path), flags)
    cached.parent.mkdir(parents=True, exist_ok=True)
    cached.write_bytes(pickle.dumps(found))
    return found


def find_all(files, tree, flags, workers):
    """(sites, texts): all sites of `files` by path, and the files' texts."""
    found, texts, jobs = {}, {}, {}
    with concurrent.futures.ProcessPoolExecutor(workers) as pool:
        for path in files:
            if path not in flags:
                continue
            texts[path] = (ROOT / path).read_text()
            jobs[path] = pool.submit(find_cached, path, texts[path], tree, flags[path])
        for path, job in jobs.items():
            found[path] = job.result()
    return found, texts


def identity(site, texts):
    """What a mutant is, whatever its line number."""
    before, after = site.shown(texts[site.path])
    return [site.path, site.operator, one_line(before), one_line(after)]


def draw(found, texts, count, seed, only=None):
    """Draws mutants that are not listed as equivalent, and if `only` is given, that are in it."""
    known, kept, listed = equivalents(), [], 0
    for site in found:
        if (site.path, signature(site, texts)) in known:
            listed += 1
        elif only is None or identity(site, texts) in only:
            kept.append(site)
    kept.sort(key=lambda site: (site.path, site.start, site.operator, site.mutated))
    chosen = random.Random(seed).sample(kept, min(count, len(kept)))
    chosen.sort(key=lambda site: (site.path, site.start))
    return chosen, len(kept), listed


@dataclasses.dataclass
class Test:
    name: str
    binary: str
    arguments: list
    folder: str                                   # working directory
    cases: dict = dataclasses.field(default_factory=dict)    # case -> mutants it reaches
    seconds: dict = dataclasses.field(default_factory=dict)


def tests_of(build, chosen, all_tests):
    """The test programs that may reach the mutants: those of the same modules, or all."""
    modules = {"/".join(site.path.split("/")[:2]) for site in chosen}
    tests = []
    for listing in sorted(build.rglob("CTestTestfile.cmake")):
        folder = str(listing.parent.relative_to(build))
        if not all_tests and "/".join(folder.split("/")[:2]) not in modules:
            continue
        text = listing.read_text()
        for name, line in re.findall(r'^add_test\(\[?=?\[?"?(\w+)"?\]?=?\]? ("[^\n]+")\)', text, re.M):
            binary, *arguments = re.findall(r'"([^"]*)"', line)
            if not binary.startswith(str(build)):  # a script; it may run programs that are not built here
                continue
            labels = re.search(rf'^set_tests_properties\([^\n]*\b{name}\b[^\n]*LABELS "([^"]*)"', text, re.M)
            if not labels or not {"e2e", "interop"} & set(labels.group(1).split(";")):
                tests.append(Test(name, os.path.relpath(binary, build), arguments, str(build.parents[1])))
    return tests


def write_mutated(tree, texts, planted, by_path):
    """Plants the mutants into the copy. Mutated code raises warnings that would fail the build, so it is
    included as a system header; all other files are compiled with the usual flags and come from
    the compiler's cache."""
    for path, text in texts.items():
        hidden = path + MUTATED
        files = {hidden: f'#pragma GCC system_header\n#line 1 "{path}"\n' + sites_module.plant(text, by_path[path]),
                 path: f'#include "{HERE / "mutant.h"}"\n#include "{os.path.basename(hidden)}"\n'}
        for name, content in files.items():
            target = tree / name
            if not target.exists() or target.read_text() != content:
                target.write_text(content)
    planted.save()


def compile_errors(output):
    """{(path, line, column)} that a compiler complains about, directly or as the place that asked for a template."""
    places = re.findall(r"^(?:\S*?/)?((?:src|sdk|cmd)/\S+?):(\d+):(\d+): +(?:error|fatal error|required from)", output, re.M)
    return {(path, int(line), int(column)) for path, line, column in places}


def guilty(errors, texts, by_path, precise):
    """The mutants to drop because of compile errors: the smallest around each error, or all of its lines and those
    beside it. The text that is compiled has the original's lines."""
    found = []
    for path, line, column in sorted(errors):
        if path not in texts:
            continue
        near = [site for site in by_path[path] if abs(line - site.line) <= 1]
        around = sites_module.around(texts[path], by_path[path], line, column) if precise else None
        found += [around] if around else near if near else by_path[path]
    return found


def compile_mutants(tree, build, texts, planted, found, tests, jobs):
    """Builds, drops mutants that do not compile, and returns the others by path."""
    by_path = {path: planted.number(path, texts[path], sites) for path, sites in found.items()}
    targets = sorted({test.binary for test in tests})
    for attempt in range(COMPILE_ROUNDS):
        write_mutated(tree, texts, planted, by_path)
        result = run(["ninja", "-C", str(build), "-j", str(jobs), "-k", "0", *targets],
                     env=build_environment(tree))
        if result.returncode == 0:
            return by_path
        dropped = guilty(compile_errors(result.stdout), texts, by_path, attempt < PRECISE_ROUNDS)
        if not dropped:
            fail("the build fails, but not because of a mutant:\n" + result.stdout[-3000:])
        for site in dropped:
            planted.drop(site)
            by_path[site.path] = [other for other in by_path[site.path] if other.number != site.number]
    fail(f"mutants still do not compile after {COMPILE_ROUNDS} rounds")


def test_environment(vectors, **extra):
    environment = {**os.environ, **extra}
    environment.pop("GTEST_OUTPUT", None)
    if not vectors:
        # A plain clone has no vectors.
        environment["DRAKKAR_VECTORS"] = "/nonexistent"
    return environment


def list_cases(build, test):
    if test.arguments:  # not a gtest program: it is one case
        return [test.name]
    result = run([str(build / test.binary), "--gtest_list_tests"], cwd=test.folder)
    cases, suite = [], ""
    for line in result.stdout.splitlines():
        name = line.split("#")[0].rstrip()
        if not name or name.startswith("Running main"):
            continue
        if name.startswith("  "):
            if "DISABLED_" not in name:
                cases.append(suite + name.strip())
        else:
            suite = name
    return cases


def command(build, test, *options):
    return [str(build / test.binary), *(test.arguments or options)]


def measure_case(build, test, case, count, vectors, scratch):
    """Runs one case without a mutant and records which mutants it reaches."""
    file = scratch / f"coverage.{os.getpid()}.{abs(hash((test.name, case)))}"
    file.write_bytes(bytes(max(count, 1)))
    started = time.monotonic()
    try:
        result = run(command(build, test, f"--gtest_filter={case}"), cwd=test.folder,
                     env=test_environment(vectors, DRAKKAR_MUTANT_COVERAGE=str(file)), timeout=300)
        passed = result.returncode == 0
    except subprocess.TimeoutExpired:
        passed = False
    seconds = time.monotonic() - started
    reached = {match.start() for match in re.finditer(b"\1", file.read_bytes())} if passed else None
    file.unlink()
    return reached, seconds


class Measured:
    """What the cases of one program reach, kept until the program or a file that tests read changes."""

    def __init__(self, build, test, data):
        self.path = build.parent / "measured" / test.name
        status = (build / test.binary).stat()
        self.stamp = f"{status.st_mtime_ns} {status.st_size} {data}"
        self.cases = {}
        if self.path.exists():
            stamp, cases = pickle.loads(self.path.read_bytes())
            self.cases = cases if stamp == self.stamp else {}

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(pickle.dumps((self.stamp, self.cases)))


def measure(build, tests, wanted, count, vectors, data, jobs, scratch):
    """Fills in what the cases reach for which wanted(case) is true, and returns those that fail."""
    broken = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = []
        for test in tests:
            known = Measured(build, test, data)
            for case in filter(wanted, list_cases(build, test)):
                job = None if case in known.cases else pool.submit(
                    measure_case, build, test, case, count, vectors, scratch)
                running.append((test, known, case, job))
        for test, known, case, job in running:
            reached, seconds = known.cases[case] if job is None else job.result()
            if reached is None:
                broken.append(f"{test.name} {case}")
                continue
            known.cases[case] = (reached, seconds)
            if reached:
                test.cases[case] = reached
                test.seconds[case] = seconds
        for known in {id(known): known for _, known, _, _ in running}.values():
            known.save()
    return broken


def limit_cpu(seconds):
    """Ends endless loops by processor time, which does not pass while other programs run."""
    return lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def passes(build, test, environment, usual):
    """Whether the chosen cases pass. A test that only waits is tried twice, since a busy machine delays it too."""
    for _ in range(2):
        try:
            return run(command(build, test, "--gtest_fail_fast"), cwd=test.folder, env=environment,
                       timeout=20 + 3 * usual, preexec_fn=limit_cpu(5 + int(2 * usual))).returncode == 0
        except subprocess.TimeoutExpired:
            continue
    return False


def suites_below(folder):
    """The test suites that are defined in the files of a folder."""
    found = set()
    for path in (ROOT / folder).glob("*_test.cc"):
        found |= set(re.findall(r"^TEST(?:_F|_P)?\((\w+),", path.read_text(), re.M))
    return found


def suite_of(case):
    """The suite of a case, which may be "Values/Suite.Name/0"."""
    return case.split(".")[0].split("/")[-1]


def try_mutant(build, tests, wanted, site, vectors):
    """"killed", "survived" or "unreached" by the cases for which wanted(case) is true. Fast cases come first, then fast
    programs."""
    reached = False
    turns = []
    for test in tests:
        cases = [case for case, numbers in test.cases.items() if site.number in numbers and wanted(case)]
        fast = [case for case in cases if test.seconds[case] < SLOW_CASE_SECONDS]
        slow = [case for case in cases if test.seconds[case] >= SLOW_CASE_SECONDS]
        turns += [(sum(test.seconds[case] for case in part), test, part) for part in (fast, slow) if part]
    for usual, test, cases in sorted(turns, key=lambda turn: turn[0]):
        reached = True
        environment = test_environment(vectors, DRAKKAR_MUTANT=str(site.number))
        chosen = ":".join(cases)
        if len(chosen) < MAX_FILTER_BYTES:
            environment["GTEST_FILTER"] = chosen
        if not passes(build, test, environment, usual):
            return "killed"
    return "survived" if reached else "unreached"


def try_mutants(build, tests, sites, options, data, jobs, scratch, count):
    """{number: answer}. The tests next to the code come first, because they usually kill a mutant; only what they let
    pass is worth measuring and running the others."""
    near_suites = set().union(*(suites_below(os.path.dirname(site.path)) for site in sites))

    def is_near(case):
        return suite_of(case) in near_suites

    answers = {site.number: "unreached" for site in sites}
    rounds = (("next to the code", is_near), ("elsewhere", lambda case: not is_near(case)))
    for where, wanted in rounds[:1] if options.near else rounds:
        left = [site for site in sites if answers[site.number] != "killed"]
        if not left:
            break
        say(f"running every test case {where} once")
        for name in measure(build, tests, wanted, count, options.vectors, data, jobs, scratch)[:10]:
            say(f"fails even without a mutant; ignored: {name}")
        say(f"running {len(left)} mutants")
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            running = {site.number: pool.submit(try_mutant, build, tests, wanted, site, options.vectors)
                       for site in left}
            for done, site in enumerate(left, 1):
                answer = running[site.number].result()
                if answer != "unreached":
                    answers[site.number] = answer
                if done % 50 == 0:
                    say(f"{done} of {len(left)}")
    return answers


def show(site, texts, why):
    before, after = site.shown(texts[site.path])
    lines = [f"\n{site.path}:{site.line}: {site.operator}, {why}"]
    lines += [f"-{line}" for line in before.splitlines()] + [f"+{line}" for line in after.splitlines()]
    print("\n".join(lines), flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev mutate", description="Plants small bugs; prints those no test finds.")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="folder or .cc file")
    parser.add_argument("--count", type=int, default=60, help="mutants to draw (60)")
    parser.add_argument("--seed", type=int, help="selects the mutants; a random seed is printed")
    parser.add_argument("--again", action="store_true",
                        help="run the survivors of the last run of these paths")
    parser.add_argument("--all-tests", action="store_true",
                        help="also run other modules' tests and tests/, not only those of the module")
    parser.add_argument("--near", action="store_true",
                        help="only run the tests in the folder of the code: faster, and kills at most as many")
    parser.add_argument("--tests", metavar="REGEX", help="only build and run test programs whose name matches")
    parser.add_argument("--vectors", action="store_true", help="let tests read the conformance vectors")
    parser.add_argument("--list", action="store_true", help="only print the mutants")
    options = parser.parse_args()
    if options.count < 1:
        fail("--count must be greater than zero")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    jobs = int(os.environ.get("DRAKKAR_JOBS") or os.cpu_count())

    files = sources(options.paths)
    tree = ROOT / "build" / "mutate"
    tree.mkdir(parents=True, exist_ok=True)
    say("copying the tree")
    planted = Planted(tree)
    data = copy_tree(tree, planted)
    build = configure(tree)
    run(["ninja", "-C", str(build), "-j", str(jobs), "api_generated"], env=build_environment(tree))
    found, texts = find_all(files, tree, compile_flags(build), jobs)
    survivors = tree / "build" / ("survivors." + "+".join(sorted(options.paths)).replace("/", "-"))
    if options.again and not survivors.exists():
        fail("--again: these paths have not been run yet")
    only = json.loads(survivors.read_text()) if options.again else None
    everything = [site for sites in found.values() for site in sites]
    count = len(everything) if options.again else options.count
    if options.list:
        chosen, total, listed = draw(everything, texts, count, seed, only)
        say(f"{len(chosen)} of {total} mutants in {len(files)} files, seed {seed}, {listed} listed as equivalent")
        for site in chosen:
            show(site, texts, "not run")
        return 0
    tests = tests_of(build, everything, options.all_tests)
    if options.tests:
        tests = [test for test in tests if re.search(options.tests, test.name)]
    if not tests:
        fail("no test program covers these files")
    say(f"building {len(tests)} test programs with {len(everything)} mutants")
    compiled = compile_mutants(tree, build, texts, planted, found, tests, jobs)
    able = [site for sites in compiled.values() for site in sites]
    if len(able) < len(everything):
        say(f"{len(everything) - len(able)} mutants do not compile and were dropped")
    left, total, listed = draw(able, texts, count, seed, only)
    say(f"{len(left)} of {total} mutants in {len(files)} files, seed {seed}, {listed} listed as equivalent")
    if not left:
        fail("nothing to mutate")
    scratch = tree / "build" / "coverage"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    answers = try_mutants(build, tests, left, options, data, jobs, scratch, planted.count())
    for site in left:
        if answers[site.number] != "killed":
            show(site, texts, "no test reaches it" if answers[site.number] == "unreached" else "survived")
    left_over = [identity(site, texts) for site in left if answers[site.number] != "killed"]
    survivors.write_text(json.dumps(left_over))
    if len(options.paths) > 1:
        print()
    for path in options.paths if len(options.paths) > 1 else []:
        below = [site for site in left if (site.path + "/").startswith(path.rstrip("/") + "/")]
        dead = sum(answers[site.number] == "killed" for site in below)
        print(f"{path}: {dead} of {len(below)} ({dead / max(len(below), 1):.0%})")
    killed = sum(answer == "killed" for answer in answers.values())
    unreached = sum(answer == "unreached" for answer in answers.values())
    share = killed / len(left) if left else 0
    print(f"\n{killed} of {len(left)} mutants killed ({share:.0%}), {len(left) - killed - unreached} survived, "
          f"{unreached} not reached; seed {seed}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
