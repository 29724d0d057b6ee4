#!/usr/bin/env python3
"""Compares schema/ with the published OpenAPI documents and protobuf tables, if they are available.

The folder is DRAKKAR_DATA, or ../shared/data; without it the tests are skipped.
"""

import glob
import json
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import model  # noqa: E402

DATA = os.environ.get("DRAKKAR_DATA") or os.path.join(ROOT, "..", "shared", "data")
VECTORS = os.environ.get("DRAKKAR_VECTORS") or os.path.join(ROOT, "..", "shared", "vectors")

SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "raw",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intOrString",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "raw",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps": "json",
}
# The body of a PATCH has no fields of its own. The JSON schema of a custom resource is free-form.
NOT_OURS = {"io.k8s.apimachinery.pkg.apis.meta.v1.Patch"} | {
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1." + name
    for name in ("ExternalDocumentation", "JSON", "JSONSchemaPropsOrArray",
                 "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray", "ValidationRule")}
# Plain lists in JSON, but messages that contain a list in protobuf.
WRAPPED_LISTS = {"Verbs", "ExtraValue"}


def plain(t):
    """A type as text, with full names of structs."""
    if t.kind in ("list", "map"):
        return f"{t.kind}<{plain(t.element)}>"
    return t.struct.full_name if t.kind == "struct" else t.kind


def openapi_type(p):
    reference = p.get("$ref") or (p["allOf"][0]["$ref"] if "allOf" in p else None)
    if reference:
        name = reference.rsplit("/", 1)[1]
        return SPECIAL.get(name, name)
    kind = (p["type"], p.get("format"))
    simple = {("string", None): "string", ("string", "byte"): "bytes", ("boolean", None): "bool",
              ("integer", "int32"): "int32", ("integer", "int64"): "int64",
              ("number", "double"): "double"}
    if kind in simple:
        return simple[kind]
    if p["type"] == "array":
        return f"list<{openapi_type(p['items'])}>"
    return f"map<{openapi_type(p['additionalProperties'])}>"


def openapi_merge(p):
    if "x-kubernetes-list-type" in p:
        return {"map": "maplist"}.get(p["x-kubernetes-list-type"], p["x-kubernetes-list-type"])
    return p.get("x-kubernetes-map-type", "")


def protobuf_type(text, repeated, package):
    """Like `plain`; `package` is the path in OpenAPI."""
    match = re.fullmatch(r"map<string,(.*)>", text)
    if match:
        return f"map<{protobuf_type(match.group(1), False, package)}>"
    if text.rsplit(".", 1)[-1] in WRAPPED_LISTS:
        element = "list<string>"
    elif text in ("string", "bool", "int32", "int64", "double", "bytes"):
        element = text
    else:
        name = (text.replace(".k8s.io.", "io.k8s.", 1) if text.startswith(".")
                else package + "." + text)
        element = SPECIAL.get(name, name)
    return f"list<{element}>" if repeated else element


@unittest.skipUnless(os.path.isdir(DATA), f"no data in {DATA}")
class AgainstTheData(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = model.load(os.path.join(ROOT, "schema"))
        cls.structs = {s.full_name: s for s in cls.schema.structs()}
        cls.packages = {p.path for p in cls.schema.packages.values()}
        cls.openapi = {}
        cls.paths = {}
        for path in sorted(glob.glob(os.path.join(DATA, "openapi", "*.json"))):
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
            cls.openapi.update(document["schemas"])
            cls.paths.update(document["paths"])

    def published(self):
        for name, definition in self.openapi.items():
            if (name.rsplit(".", 1)[0] in self.packages and name not in SPECIAL
                    and name not in NOT_OURS):
                yield name, definition

    def test_every_published_struct_has_exactly_its_fields(self):
        count = 0
        for name, definition in self.published():
            self.assertIn(name, self.structs)
            struct = self.structs[name]
            self.assertEqual(sorted(f.name for f in struct.fields),
                             sorted(definition.get("properties", {})), name)
            self.assertEqual(struct.atomic, definition.get("x-kubernetes-map-type") == "atomic",
                             name)
            count += 1
        self.assertGreater(count, 450)

    def test_every_published_field_has_its_type_and_rules(self):
        count = 0
        for name, definition in self.published():
            required = definition.get("required", [])
            for field in self.structs[name].fields:
                with self.subTest(f"{name}.{field.name}"):
                    self.compare_field(field, definition["properties"][field.name], required)
                    count += 1
        self.assertGreater(count, 2000)

    def compare_field(self, field, p, required):
        self.assertEqual(field.required, field.name in required)
        if field.type.kind == "skipNodeOperations":
            # We also accept a boolean, and replace the field as a whole.
            self.assertEqual(openapi_type(p), "list<string>")
            return
        self.assertEqual(plain(field.type), openapi_type(p))
        self.assertEqual(field.stated_merge, openapi_merge(p))
        self.assertEqual(list(field.type.list_keys), p.get("x-kubernetes-list-map-keys", []))
        self.assertEqual(field.type.patch_merge_key, p.get("x-kubernetes-patch-merge-key", ""))
        strategies = p.get("x-kubernetes-patch-strategy", "").split(",")
        self.assertEqual(field.type.patch_merge, "merge" in strategies)
        self.assertEqual(field.type.patch_retain_keys, "retainKeys" in strategies)
        self.assertEqual(field.type.patch_replace, "replace" in strategies)
        # Struct fields are published with a default, pointers to structs without.
        if "allOf" in p and field.type.kind == "struct":
            self.assertEqual(field.pointer, "default" not in p)
        # Plain values that Go always writes also have a default (and so do a few optional ones).
        if field.required and p.get("default") in ("", 0, False):
            self.assertTrue(field.always and not field.pointer)

    def messages(self):
        """message -> (package path, [(number, name, type text, repeated)])"""
        result = {}
        for package in self.schema.packages.values():
            path = os.path.join(DATA, "protobuf", package.short + ".tsv")
            if not os.path.exists(path):
                continue
            with open(path, encoding="utf-8") as file:
                for line in file:
                    words = line.rstrip("\n").split("\t")
                    if words[0] == "message":
                        result[package.path + "." + words[1]] = rows = []
                    elif words[0] == "field":
                        rows.append((int(words[1]), words[2], words[3], words[4] == "repeated"))
        return result

    def test_every_number_of_the_protobuf_tables_is_ours(self):
        messages = self.messages()
        count = 0
        for name, rows in messages.items():
            struct = self.structs.get(name)
            if struct is None:
                continue
            package = struct.package.path
            expected = []
            for number, field, text, repeated in rows:
                if any(f.name == field for f in struct.fields):
                    expected.append((0, number, field, protobuf_type(text, repeated, package)))
                    continue
                # Inlined in JSON.
                inner = protobuf_type(text, repeated, package)
                self.assertIn(inner, messages, f"{name}.{field}")
                expected += [(number, n, f, protobuf_type(t, r, inner.rsplit(".", 1)[0]))
                             for n, f, t, r in messages[inner]]
            ours = [(f.outer, f.number, f.name, self.on_the_wire(f)) for f in struct.fields
                    if f.number]
            with self.subTest(name):
                self.assertEqual(ours, expected)
            count += len(ours)
        self.assertGreater(count, 1800)

    @staticmethod
    def on_the_wire(field):
        return "list<string>" if field.type.kind == "skipNodeOperations" else plain(field.type)

    def test_fields_without_a_number_are_the_type_or_parts_of_a_table(self):
        for struct in self.structs.values():
            for field in struct.fields:
                if not field.number and field.name not in ("kind", "apiVersion"):
                    self.assertTrue(struct.name.startswith("Table"),
                                    f"{struct.full_name}.{field.name}")

    def test_kinds_have_the_scope_verbs_and_subresources_of_their_paths(self):
        actions = {"post": "create", "put": "update"}
        for kind in self.schema.kinds:
            with self.subTest(f"{kind.group}/{kind.version} {kind.kind}"):
                base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
                if base + "/" not in self.paths:
                    continue  # its document is not among the published ones
                whole = base + ("/namespaces/{namespace}/" if kind.namespaced else "/") + kind.plural
                self.assertIn(whole, self.paths)
                verbs = {actions.get(v["action"], v["action"]) for p in (whole, whole + "/{name}")
                         for v in self.paths.get(p, {"verbs": {}})["verbs"].values()}
                if base + "/watch/" + kind.plural in self.paths:
                    verbs.add("watch")
                self.assertEqual(sorted(verbs), sorted(kind.verbs))
                prefix = whole + "/{name}/"
                self.assertEqual(
                    sorted(p[len(prefix):] for p in self.paths
                           if p.startswith(prefix) and "/" not in p[len(prefix):]),
                    sorted(kind.subresources))

    def test_every_published_resource_of_our_groups_is_a_kind(self):
        ours = {(k.group, k.version, k.plural) for k in self.schema.kinds}
        served = {(p.group, p.version) for p in self.schema.packages.values()}
        for path in self.paths:
            match = re.fullmatch(r"/(?:api|apis/([^/]+))/([^/]+)/(?:namespaces/\{namespace\}/)?"
                                 r"([a-z]+)", path)
            if match and (match.group(1) or "", match.group(2)) in served:
                self.assertIn((match.group(1) or "", match.group(2), match.group(3)), ours)


@unittest.skipUnless(os.path.isdir(VECTORS), f"no vectors in {VECTORS}")
class AgainstTheVectors(unittest.TestCase):
    def test_kinds_accept_the_field_labels_that_kubernetes_accepts(self):
        schema = model.load(os.path.join(ROOT, "schema"))
        kinds = {((k.group + "/" if k.group else "") + k.version, k.kind): k for k in schema.kinds}
        with open(os.path.join(VECTORS, "selector", "field_labels.json"),
                  encoding="utf-8") as file:
            cases = json.load(file)
        self.assertGreater(len(cases), 200)
        for case in cases:
            if case["fieldLabel"] in ("metadata.name", "metadata.namespace"):
                continue
            kind = kinds[(case["apiVersion"], case["kind"])]
            self.assertEqual(case["fieldLabel"] in kind.selectors, "error" not in case, case)


if __name__ == "__main__":
    unittest.main()
