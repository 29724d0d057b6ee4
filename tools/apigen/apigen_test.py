#!/usr/bin/env python3
"""Tests the generator.

  apigen_test.py            runs them
  apigen_test.py --update   regenerates testdata/golden
"""

import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import apigen  # noqa: E402
import keys  # noqa: E402
import model  # noqa: E402
import tables  # noqa: E402

SAMPLE = os.path.join(HERE, "testdata", "sample")
GOLDEN = os.path.join(HERE, "testdata", "golden")
SCHEMA = os.path.join(HERE, "..", "..", "schema")


def load_text(package_text, kinds_text="", documents=""):
    """A schema made of one package, demo.v1."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("demo.v1.schema", package_text), ("kinds.schema", kinds_text),
                           ("documents.names", documents)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        return model.load(folder)


HEAD = "package demo\nversion v1\n"
SHIP = HEAD + "struct Ship\n  name string p=1\nstruct ShipList\n  items list<Ship> p=2\n"


class Golden(unittest.TestCase):
    def test_the_sample_gives_the_golden_files(self):
        made = apigen.outputs(model.load(SAMPLE))
        stored = [os.path.relpath(os.path.join(folder, name), GOLDEN)
                  for folder, _, files in os.walk(GOLDEN) for name in files]
        self.assertEqual(sorted(made), sorted(stored))
        for name, text in made.items():
            with open(os.path.join(GOLDEN, name), encoding="utf-8") as file:
                self.assertEqual(text, file.read(), f"{name}; apigen_test.py --update writes it")


class Writing(unittest.TestCase):
    def test_unchanged_files_are_not_touched(self):
        with tempfile.TemporaryDirectory() as folder:
            apigen.write(folder, {"a/x.h": "1", "y.h": "2"})
            paths = [os.path.join(folder, "a", "x.h"), os.path.join(folder, "y.h")]
            for path in paths:
                os.utime(path, (1, 1))
            apigen.write(folder, {"a/x.h": "1", "y.h": "3"})
            self.assertEqual(os.stat(paths[0]).st_mtime, 1)
            self.assertNotEqual(os.stat(paths[1]).st_mtime, 1)


class Refusals(unittest.TestCase):
    def refuses(self, message, package_text, kinds_text=""):
        with self.assertRaisesRegex((model.SchemaError, ValueError), message):
            apigen.outputs(load_text(package_text, kinds_text))

    def test_every_mistake_is_named_with_its_place(self):
        self.refuses("demo.v1.schema:3: a field outside of a struct", HEAD + "  name string")
        self.refuses("demo.v1.schema:4: Ship has name twice|schema:5: Ship has name twice",
                     HEAD + "struct Ship\n  name string\n  name string")
        self.refuses("number 1 twice", HEAD + "struct Ship\n  a string p=1\n  b string p=1")
        self.refuses("struct Ship is defined twice", HEAD + "struct Ship\nstruct Ship")
        self.refuses("not understood: reqired", HEAD + "struct Ship\n  name string reqired")
        self.refuses("demo.v1.Ship.name: no such type: strin", HEAD + "struct Ship\n  name strin")
        self.refuses("no such patch strategy: merg",
                     HEAD + "struct Ship\n  a list<string> patch=merg")
        self.refuses("set does not go with string", HEAD + "struct Ship\n  a string set")
        self.refuses("elements have no field id",
                     HEAD + "struct Ship\n  a list<Oar> listmap=id\nstruct Oar\n  name string")
        self.refuses("merge keys need a list of structs",
                     HEAD + "struct Ship\n  a list<string> listmap=id")
        self.refuses("package or version is missing", "package demo")

    def test_rules_must_go_with_their_fields(self):
        self.refuses("no default for int32: x", HEAD + "struct Ship\n  a int32 default=x")
        self.refuses("no default for list<string>: x",
                     HEAD + "struct Ship\n  a list<string> default=x")
        self.refuses("when needs a default and an earlier field",
                     HEAD + "struct Ship\n  a string default=x when=b:y\n  b string")
        self.refuses("bounds do not go with string", HEAD + "struct Ship\n  a string min=0")
        self.refuses("the rule does not go with int32", HEAD + "struct Ship\n  a int32 enum=A|B")
        self.refuses("maxItems does not go with string",
                     HEAD + "struct Ship\n  a string maxItems=3")
        self.refuses("not understood: format=colour", HEAD + "struct Ship\n  a string format=colour")

    def test_kinds_are_checked(self):
        self.refuses("needs one stored version", SHIP,
                     "kind demo Ship\n  versions v1\n  names ships ship")
        self.refuses("no type demo.v2.Ship", SHIP,
                     "kind demo Ship\n  versions v2*\n  names ships ship")
        self.refuses("can be listed but there is no ShipList", HEAD + "struct Ship\n  name string",
                     "kind demo Ship\n  versions v1*\n  names ships ship")
        self.refuses("stored as", SHIP,
                     "kind demo Ship\n  versions v1*\n  names ships ship\n  stored other v1")
        self.refuses("is defined twice", SHIP,
                     "kind demo Ship\n  versions v1*\n  names ships ship\n" * 2)
        self.refuses("kinds.schema:2: not understood", SHIP, "kind demo Ship\n  colour red")


class Names(unittest.TestCase):
    def test_names_of_documents_are_in_the_table_and_each_is_listed_once(self):
        schema = load_text(SHIP, documents="# a log book\nharbour\n\ntls-server-name\n")
        self.assertEqual(keys.key_names(schema), ["harbour", "items", "name", "tls-server-name"])
        for text, message in (("name\n", "documents.names:1: name is a field of the schema already"),
                              ("a\n\na\n", "documents.names:3: a is there already, at documents.names:1"),
                              ("a b\n", "documents.names:1: not a name: a b"),
                              ('a"\n', "documents.names:1: not a name")):
            with self.assertRaisesRegex(model.SchemaError, message):
                load_text(SHIP, documents=text)

    def test_names_are_in_the_order_of_their_bytes(self):
        every = keys.key_names(model.load(SCHEMA))
        self.assertEqual(every, sorted(every, key=lambda name: name.encode()))

    def test_every_name_has_its_slot(self):
        every = keys.key_names(model.load(SCHEMA))
        slots = keys.slots_of(every)
        self.assertEqual(sorted(i for i, _ in slots if i), list(range(1, len(every) + 1)))
        self.assertEqual(len(slots) & (len(slots) - 1), 0)


class FieldIndex(unittest.TestCase):
    def test_every_id_has_a_slot_of_its_own(self):
        for ids in ([], [1], [7, 8], list(range(1, 255)), [3 * i * i + 1 for i in range(100)]):
            multiplier, shift, places = tables.field_index(ids)
            for place, key_id in enumerate(ids):
                self.assertEqual(places[(key_id * multiplier & 0xFFFFFFFF) >> shift], place)
            self.assertEqual(len([p for p in places if p != 255]), len(ids))
            self.assertEqual(len(places), 1 << (32 - shift))

    def test_more_fields_than_it_can_hold_are_refused(self):
        with self.assertRaisesRegex(model.SchemaError, "255 fields"):
            tables.field_index(list(range(1, 256)))


def update():
    made = apigen.outputs(model.load(SAMPLE))
    apigen.write(GOLDEN, made)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
