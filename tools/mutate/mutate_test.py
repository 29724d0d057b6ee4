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


if __name__ == "__main__":
    unittest.main()
