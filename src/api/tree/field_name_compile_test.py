#!/usr/bin/env python3
"""A field name that is not in schema/ must not compile, wherever a literal can be a name.

  field_name_compile_test.py COMPILER INCLUDE_FOLDER...
"""

import re
import subprocess
import sys
import unittest

COMPILER = ""
INCLUDES = []

HEAD = """\
#include "api/meta/object.h"
#include "api/tree/draft.h"
using namespace drakkar::api;
void Use(Value value, const Object& object, Draft draft, const char* text) {
  (void)text;
"""
REFUSED = "this_field_name_is_not_in_schema"


def compile_lines(lines):
    """(exit status, {line of `lines` -> what the compiler says about it})"""
    source = HEAD + "".join(f"  {line}\n" for line in lines) + "}\n"
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-fdiagnostics-color=never", "-x", "c++", "-"]
    command += ["-I" + folder for folder in INCLUDES]
    run = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    said = {}
    place = None
    for text in run.stderr.splitlines():
        match = re.match(r"<stdin>:(\d+):", text)
        if match:
            place = int(match.group(1)) - HEAD.count("\n") - 1
        if place is not None and 0 <= place < len(lines):
            said[lines[place]] = said.get(lines[place], "") + text + "\n"
    return run.returncode, said, run.stderr


class FieldNames(unittest.TestCase):
    def test_names_of_the_schema_and_of_documents_compile(self):
        status, _, output = compile_lines([
            'value["spec"]["nodeName"].str();',
            'object["metadata"]["labels"].Entry(text).str();',
            'draft["status"]["phase"] = "Running";',
            'draft = {{"spec", Draft{{"priority", 1}}}, {"metadata", Draft::Map({{"free/form", 1}})}};',
            'draft.Has("spec"); draft.Find("spec"); draft.Remove("spec"); draft.RemoveEntry(text);',
            'value["insecure-skip-tls-verify"].boolean();',
            'constexpr FieldName kName = "spec"; value[kName].str();',
        ])
        self.assertEqual((status, output), (0, ""))

    def test_a_misspelt_name_is_refused_in_every_place_and_quoted(self):
        lines = [
            'value["spec"]["nodName"].str();',
            'object["Spec"].str();',
            'draft["spec"]["nodeNames"] = "x";',
            'Draft{{"apiVersoin", "v1"}};',
            'draft.Has("nodenam");',
            'draft.Find("specs");',
            'draft.Remove("");',
        ]
        status, said, output = compile_lines(lines)
        self.assertNotEqual(status, 0)
        for line, name in zip(lines, ("nodName", "Spec", "nodeNames", "apiVersoin", "nodenam", "specs",
                                      "")):
            self.assertIn(f'"{name}"', said.get(line, ""), f"{line}\n{output}")
        self.assertEqual(output.count("error: call to non-"), len(lines), output)
        self.assertIn(REFUSED, output)

    def test_a_name_that_is_known_only_at_run_time_is_refused(self):
        lines = ["value[text].str();", "draft[text] = 1;", "draft.Has(std::string_view(text));"]
        status, said, output = compile_lines(lines)
        self.assertNotEqual(status, 0)
        for line in lines:
            self.assertIn("error:", said.get(line, ""), f"{line}\n{output}")


if __name__ == "__main__":
    COMPILER, *INCLUDES = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
