#!/usr/bin/env python3
"""Tests soak_fuzz.py with shell scripts as targets."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent / "soak_fuzz.py"
QUICK = "#!/bin/sh\necho \"$0 $1\" >> \"$(dirname \"$0\")/calls\"\necho stat::number_of_executed_units: 7\n"


class SoakFuzz(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def target(self, name, script=QUICK, seeds=True):
        path = self.root / name
        path.write_text(script)
        os.chmod(path, 0o755)
        if seeds:
            (self.root / "seeds" / name).mkdir(parents=True)
            (self.root / "seeds" / name / "one").write_text("x")

    def run_tool(self, *words):
        return subprocess.run([sys.executable, str(TOOL), str(self.root), "--corpus", str(self.root / "seeds"), *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def test_a_target_without_seeds_is_an_error(self):
        self.target("a_fuzz")
        self.target("b_fuzz", seeds=False)
        done = self.run_tool()
        self.assertEqual(done.returncode, 1)
        self.assertIn("no seeds", done.stdout)
        self.assertFalse((self.root / "calls").exists(), "no target runs")

    def test_time_that_is_left_over_goes_to_the_next(self):
        for name in ("a_fuzz", "b_fuzz", "c_fuzz"):
            self.target(name)
        done = self.run_tool("--seconds", "90", "-j", "1")
        self.assertEqual(done.returncode, 0, done.stdout)
        shares = [int(line.split("=")[-1]) for line in (self.root / "calls").read_text().splitlines()]
        self.assertEqual(shares[0], 30)
        self.assertGreater(shares[1], 40)
        self.assertGreater(shares[2], 80)
        self.assertIn("3 targets, 21 runs", done.stdout)
        self.assertIn("findings: none", done.stdout)

    def test_a_finding_is_told_and_stops_nothing(self):
        self.target("a_fuzz", "#!/bin/sh\necho went wrong\nexit 77\n")
        self.target("b_fuzz")
        done = self.run_tool("--seconds", "2", "-j", "2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("went wrong", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^ok +b_fuzz")
        self.assertIn("findings: a_fuzz", done.stdout)

    def test_parts_of_names_choose_wherever_they_stand(self):
        self.target("a_fuzz")
        self.target("b_fuzz")
        done = self.run_tool("--seconds", "2", "b_")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("1 targets, 7 runs", done.stdout)


if __name__ == "__main__":
    unittest.main()
