#!/usr/bin/env python3
"""Literals that the compiler cannot check: names passed to Entry() and Draft::Map() instead of operator[].

The compiler checks value["nodeName"] against schema/. value.Entry("nodeName") is looked up as text, so a
misspelt literal would read as absent. Outside tests a literal may therefore be passed to Entry() and
Draft::Map() only if it is a key of a map and listed in map_keys.txt; a field belongs in operator[].
"""

import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools", "apigen"))
sys.dont_write_bytecode = True

import model  # noqa: E402

ENTRY = re.compile(r'\b(?:Entry|FindEntry|HasEntry|RemoveEntry)\(\s*"((?:[^"\\]|\\.)*)"')
MAP = re.compile(r"\bDraft::Map\(\{")
# An opening brace and the literal after it, a closing brace, or any other literal.
TOKEN = re.compile(r'\{(?:\s*"((?:[^"\\]|\\.)*)")?|\}|"(?:[^"\\]|\\.)*"')
TEST_FILE = re.compile(r"(_test|_fuzz|_bench)\.(cc|h)$|(^|/)testing/|^tests/|^bench/")


def map_literals(text):
    """(offset, literal) of the keys in Draft::Map({{"key", value}, ...}), but not of objects nested in it."""
    for start in MAP.finditer(text):
        depth = 1
        for token in TOKEN.finditer(text, start.end()):
            if token.group() == "}":
                depth -= 1
            elif token.group().startswith("{"):
                depth += 1
                if depth == 2 and token.group(1) is not None:
                    yield token.start(), token.group(1)
            if depth == 0:
                break


def literals(text):
    """(line, literal) of every literal passed to Entry(), its relatives and Draft::Map()."""
    found = [(match.start(), match.group(1)) for match in ENTRY.finditer(text)] + list(map_literals(text))
    return [(text.count("\n", 0, at) + 1, name) for at, name in sorted(found)]


def complaints(path, text, map_keys, fields):
    result = []
    for line, name in literals(text):
        if name in fields:
            result.append(f'{path}:{line}: "{name}" is a field name: write ["{name}"], which the compiler checks')
        elif name not in map_keys:
            result.append(f'{path}:{line}: Entry("{name}") is not checked: write ["{name}"] if it is a field '
                          "(new documents go into schema/documents.names), or list the map key in "
                          "tools/names/map_keys.txt")
    return result


def read_list(path):
    with open(path, encoding="utf-8") as file:
        return {line.strip() for line in file if line.strip() and not line.startswith("#")}


def sources():
    """path -> text of every C++ file under version control."""
    listed = subprocess.run(["git", "ls-files", "*.cc", "*.h"], cwd=ROOT, capture_output=True, text=True,
                            check=True).stdout.split()
    result = {}
    for path in listed:
        full = os.path.join(ROOT, path)
        if os.path.exists(full):
            with open(full, encoding="utf-8") as file:
                result[path] = file.read()
    return result


class OurSources(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = model.load(os.path.join(ROOT, "schema"))
        cls.fields = {f.name for s in cls.schema.structs() for f in s.fields}
        cls.map_keys = read_list(os.path.join(HERE, "map_keys.txt"))
        cls.sources = sources()

    def test_no_field_is_looked_up_by_an_unchecked_literal(self):
        found = [line for path, text in self.sources.items() if not TEST_FILE.search(path)
                 for line in complaints(path, text, self.map_keys, self.fields - self.map_keys)]
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_every_listed_map_key_is_used(self):
        used = {name for path, text in self.sources.items() if not TEST_FILE.search(path)
                for _, name in literals(text)}
        self.assertEqual(sorted(self.map_keys - used), [])

    def test_every_document_name_is_used(self):
        every = "\n".join(self.sources.values())
        self.assertEqual([name for name in self.schema.document_names if f'"{name}"' not in every], [])


class TheCheck(unittest.TestCase):
    def test_it_finds_fields_and_unknown_literals_but_not_map_keys_or_variables(self):
        text = 'a.Entry("cpu");\nb->FindEntry(\n    "spec");\nc.Entry(name);\nd.HasEntry("nodName");\n'
        self.assertEqual([line.split(" is ")[0] for line in complaints("x.cc", text, {"cpu"}, {"spec"})],
                         ['x.cc:2: "spec"', 'x.cc:5: Entry("nodName")'])

    def test_it_finds_the_keys_of_maps_but_not_of_objects_in_them(self):
        text = 'Draft::Map({{"a}", Draft({{"spec", 1}})},\n  {name, 2}, {"c", "{"}, {"d", f({{"e", 1}})}});\nx{{"g", 1}};'
        self.assertEqual(literals(text), [(1, "a}"), (2, "c"), (2, "d")])

    def test_files_of_tests_are_known(self):
        for path in ("src/api/x_test.cc", "src/api/x_fuzz.cc", "src/api/testing/x.h", "tests/e2e/x.cc"):
            self.assertTrue(TEST_FILE.search(path), path)
        for path in ("src/api/x.cc", "src/contests/x.cc", "cmd/drakkar/main.cc"):
            self.assertFalse(TEST_FILE.search(path), path)


if __name__ == "__main__":
    unittest.main()
