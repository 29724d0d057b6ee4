#!/usr/bin/env python3
"""Plants every mutant into a small program, compiles it once and runs each."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

try:
    import mutate
    import sites
    if not os.path.exists(sites.LIBRARY):
        raise ImportError
except ImportError:
    print("skipped: python3-clang-16 is not installed (./dev setup)")
    sys.exit(77)

SAMPLE = r"""
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>
bool IsSmall(int x) {
  return x < 3;
}
bool InRange(int x, int low, int high) {
  if (x >= low && x <= high) return true;
  return false;
}
bool AllSmall(const std::vector<int>& values) {
  return std::ranges::all_of(values, [](int x) { return x < 3; });
}
int Sum(const std::vector<int>& values) {
  int sum = 0;
  for (const int value : values) {
    sum += value;
  }
  return sum;
}
int Minus(int a, int b) { return a - b; }
constexpr int Limit(int x) {
  return x > 2 ? 2 : x;
}
static_assert(Limit(3) == 2);
struct Logger {
  void Info(const char*) const {}
};
constexpr Logger kLog;
void Say(std::string& out, const char* text) {
  kLog.Info("logs are not mutated");
  if (out.size() > 7) kLog.Info(out.empty() ? "nor is what they depend on" : "");
  if (out.empty()) out = text; else out += text;
}
struct Holder {
  ~Holder() {
    text.clear();
  }
  std::string text = "order of destruction";
};
template <typename T>
bool HasSize(const T&) {
  return requires(T value) { value.size(); };
}
int main() {
  const Holder holder;
  std::string out;
  Say(out, "a");
  Say(out, "b");
  const int first = 7;
  const int second = 2;
  std::printf("%d%d%d%d%d", IsSmall(2), IsSmall(3), InRange(1, 1, 3), InRange(3, 1, 3), InRange(4, 1, 3));
  std::printf("%d%d%d%d", InRange(0, 1, 3), AllSmall({1, 3}), AllSmall({1}), Sum({1, 2, 3}));
  std::printf("%d%d%d%s", Minus(first, second), Limit(first), Limit(second), out.c_str());
  std::printf("%d%d", HasSize(out), HasSize(first));
}
"""


class Mutants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = os.path.join(cls.folder.name, "sample.cc")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SAMPLE)
        cls.sites = sites.find_sites("sample.cc", SAMPLE, path, ["-std=c++20", "-xc++"])
        for number, site in enumerate(cls.sites):
            site.number = number
        planted = sites.plant(SAMPLE, cls.sites)
        assert planted.count("\n") == SAMPLE.count("\n")
        with open(path, "w", encoding="utf-8") as file:
            file.write(planted)
        cls.program = os.path.join(cls.folder.name, "sample")
        subprocess.run(["g++", "-std=c++20", "-w", "-include", str(HERE / "mutant.h"), "-o",
                        cls.program, path], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def answer(self, **environment):
        return subprocess.run([self.program], env={**os.environ, **environment},
                              capture_output=True, text=True, check=False).stdout

    def test_without_a_mutant_the_program_is_the_original(self):
        self.assertEqual(self.answer(), "101100016522ab10")

    def test_every_kind_of_bug_is_planted(self):
        kinds = {site.operator for site in self.sites}
        self.assertEqual(kinds, {"negate", "drop", "compare", "remove", "return", "first", "swap",
                                 "quantifier"})

    def test_each_mutant_changes_what_the_program_says(self):
        usual = self.answer()
        # Mutants that show only for values that main() does not use.
        silent = {("return x > 2 ? 2 : x;", "compare")}
        for site in self.sites:
            before = site.shown(SAMPLE)[0].strip()
            changed = self.answer(DRAKKAR_MUTANT=str(site.number)) != usual
            self.assertEqual(changed, (before, site.operator) not in silent,
                             f"{site.line}: {site.operator}: {site.shown(SAMPLE)}")

    def test_a_mutant_is_named_by_what_it_says_or_by_what_it_removes(self):
        names = {mutate.signature(site, {"sample.cc": SAMPLE}) for site in self.sites}
        self.assertIn("return x <= 3;", names)
        self.assertIn("- sum += value;", names)
        self.assertNotIn(";", names)

    def test_reached_mutants_are_noted(self):
        path = os.path.join(self.folder.name, "coverage")
        with open(path, "wb") as file:
            file.write(bytes(len(self.sites)))
        self.answer(DRAKKAR_MUTANT_COVERAGE=path)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), b"\1" * len(self.sites))

    def test_a_place_in_the_planted_text_belongs_to_the_smallest_mutant_around_it(self):
        planted = sites.plant(SAMPLE, self.sites).splitlines()
        original = SAMPLE.splitlines()
        for number, (line, before) in enumerate(zip(planted, original), 1):
            if before != "  if (x >= low && x <= high) return true;":
                continue
            site = sites.around(SAMPLE, self.sites, number, line.index("x , low") + 1)
            self.assertEqual((site.operator, site.mutated), ("compare", "x > low"))
            site = sites.around(SAMPLE, self.sites, number, line.index("x , high") + 1)
            self.assertEqual((site.operator, site.mutated), ("compare", "x < high"))
        self.assertIsNone(sites.around(SAMPLE, self.sites, 2, 1))

    def test_a_compile_error_drops_one_mutant_and_later_all_of_its_line(self):
        at = SAMPLE.splitlines().index("  if (x >= low && x <= high) return true;") + 1
        planted = sites.plant(SAMPLE, self.sites).splitlines()[at - 1]
        output = f"src/a/sample.cc:{at}:{planted.index('x , low') + 1}: error: no\nninja: stopped\n"
        errors = mutate.compile_errors(output)
        texts, found = {"src/a/sample.cc": SAMPLE}, {"src/a/sample.cc": self.sites}
        self.assertEqual([site.mutated for site in mutate.guilty(errors, texts, found, True)], ["x > low"])
        lines = {site.line for site in mutate.guilty(errors, texts, found, False)}
        self.assertEqual(lines, {at - 1, at, at + 1} & {site.line for site in self.sites})


class PlantedFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = mutate.ROOT
        self.addCleanup(setattr, mutate, "ROOT", self.root)
        mutate.ROOT = pathlib.Path(folder.name) / "root"
        self.tree = mutate.ROOT / "build" / "mutate"
        self.tree.mkdir(parents=True)
        (mutate.ROOT / ".gitignore").write_text("build/\n")
        subprocess.run(["git", "init", "-q", mutate.ROOT], check=True)
        for name in ("a.cc", "b.cc"):
            (mutate.ROOT / name).write_text(SAMPLE)

    def plant(self):
        """Copies and plants a.cc, as a run does, and returns the times of the files in the copy."""
        planted = mutate.Planted(self.tree)
        mutate.copy_tree(self.tree, planted)
        text = (mutate.ROOT / "a.cc").read_text()
        found = sites.find_sites("a.cc", text, str(mutate.ROOT / "a.cc"), ["-std=c++20", "-xc++"])
        numbered = {"a.cc": planted.number("a.cc", text, found)}
        mutate.write_mutated(self.tree, {"a.cc": text}, planted, numbered)
        self.numbers = [site.number for site in numbered["a.cc"]]
        return {path.name: path.stat().st_mtime_ns for path in self.tree.iterdir() if path.is_file()}

    def test_a_second_run_writes_nothing(self):
        times = self.plant()
        self.assertIn("a.cc.mutated", times)
        self.assertEqual(times, self.plant())

    def test_a_changed_file_gets_numbers_of_its_own(self):
        self.plant()
        before = set(self.numbers)
        (mutate.ROOT / "a.cc").write_text(SAMPLE + "\n// changed\n")
        self.plant()
        self.assertFalse(before & set(self.numbers))
        self.assertIn("// changed", (self.tree / "a.cc.mutated").read_text())

    def test_a_mutant_that_does_not_compile_is_remembered(self):
        self.plant()
        planted = mutate.Planted(self.tree)
        text = (mutate.ROOT / "a.cc").read_text()
        found = sites.find_sites("a.cc", text, str(mutate.ROOT / "a.cc"), ["-std=c++20", "-xc++"])
        planted.drop(planted.number("a.cc", text, found)[0])
        planted.save()
        first = self.numbers[0]
        self.plant()
        self.assertNotIn(first, self.numbers)

    def test_files_that_are_gone_disappear_from_the_copy(self):
        self.plant()
        (mutate.ROOT / "b.cc").unlink()
        self.assertNotIn("b.cc", self.plant())


if __name__ == "__main__":
    unittest.main()
