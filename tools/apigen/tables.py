"""schema_tables.cc: every struct, field and kind as constant data."""

from keys import cpp_string, key_table
from model import FORMATS, SCALARS, SchemaError, struct_below, structs_that

MERGE = {"atomic": "kAtomic", "set": "kSet", "maplist": "kMapList", "granular": "kGranular"}

SOURCE = """\
// Made by tools/apigen from schema/.
#include "api/field_names.h"
#include "api/scheme/internal/tables.h"

namespace drakkar::api::generated {

using enum FieldKind;
using enum MergeKind;
using Text = std::string_view;
using Texts = std::span<const Text>;

extern const StructSchema kStructs[%(struct_count)d];
extern const TypeSchema kTypes[%(type_count)d];
extern const KindSchema kKinds[%(kind_count)d];
extern const KindSchema kBodies[%(body_count)d];

namespace {

constexpr Text kTexts[] = {%(texts)s};

}  // namespace

// Types of elements.
constinit const TypeSchema kTypes[%(type_count)d] = {
%(types)s
};

namespace {

constinit const FieldRules kRules[] = {
%(rules)s
};

constinit const FieldSchema kFields[] = {
%(fields)s
};

// What StructSchema::Find looks into.
constexpr std::uint8_t kIndex[] = {
%(index)s
};

}  // namespace

constinit const StructSchema kStructs[%(struct_count)d] = {
%(structs)s
};

namespace {

constexpr ColumnSchema kColumns[] = {
%(columns)s
};

constexpr std::uint16_t kKindOrder[] = {
%(kind_order)s
};
constexpr std::uint16_t kPluralOrder[] = {
%(plural_order)s
};

}  // namespace

constinit const KindSchema kKinds[%(kind_count)d] = {
%(kinds)s
};

constinit const KindSchema kBodies[%(body_count)d] = {
%(bodies)s
};

std::span<const StructSchema> Structs() { return kStructs; }
std::span<const KindSchema> Kinds() { return kKinds; }
std::span<const KindSchema> Bodies() { return kBodies; }
std::span<const std::uint16_t> KindOrder() { return kKindOrder; }
std::span<const std::uint16_t> PluralOrder() { return kPluralOrder; }

}  // namespace drakkar::api::generated
"""


class Texts:
    """Lists of texts, laid out in one array; equal lists share their place."""

    def __init__(self):
        self.all = []
        self.places = {}

    def span(self, texts):
        texts = tuple(texts)
        if not texts:
            return "{}"
        if texts not in self.places:
            self.places[texts] = len(self.all)
            self.all.extend(texts)
        return f"Texts(kTexts + {self.places[texts]}, {len(texts)})"


def field_index(ids):
    """(multiplier, shift, places): ids are told apart by (id * multiplier mod 2^32) >> shift."""
    if len(ids) > 254:
        raise SchemaError(f"a struct has {len(ids)} fields, more than the index can hold")
    bits = max(1, (len(ids) - 1).bit_length())
    multiplier = 0x9E3779B1
    while True:
        for _ in range(300):
            places = [255] * (1 << bits)
            for place, key_id in enumerate(ids):
                slot = (key_id * multiplier & 0xFFFFFFFF) >> (32 - bits)
                if places[slot] != 255:
                    break
                places[slot] = place
            else:
                return multiplier, 32 - bits, places
            multiplier = (multiplier * 1664525 + 1013904223) & 0xFFFFFFFF
        bits += 1


class Tables:
    def __init__(self, schema):
        self.schema = schema
        self.structs = schema.structs()
        self.struct_index = {s.full_name: i for i, s in enumerate(self.structs)}
        self.texts = Texts()
        self.types = []
        self.rules = []
        self.defaulted = structs_that(schema.packages,
                                      lambda f: f.rules and f.rules.default is not None)
        self.checked = structs_that(schema.packages, lambda f: has_checks(f.rules))

    def type_initializer(self, t):
        kind = {"struct": "kStruct", "list": "kList", "map": "kMap"}.get(t.kind) or SCALARS[t.kind]
        struct = f"&kStructs[{self.struct_index[t.struct.full_name]}]" if t.struct else "nullptr"
        element = f"&kTypes[{self.element(t.element)}]" if t.element else "nullptr"
        parts = [kind, struct, element, MERGE[t.merge]]
        if (t.list_keys or t.patch_merge or t.patch_retain_keys or t.patch_replace
                or t.patch_merge_key):
            parts += [self.texts.span(t.list_keys), cpp_string(t.patch_merge_key),
                      str(t.patch_merge).lower(), str(t.patch_retain_keys).lower(),
                      str(t.patch_replace).lower()]
        elif parts[1:] == ["nullptr", "nullptr", "kAtomic"]:
            parts = parts[:1]
        return "{" + ", ".join(parts) + "}"

    def element(self, t):
        text = self.type_initializer(t)
        if text not in self.types:
            self.types.append(text)
        return self.types.index(text)

    def field(self, f, keys):
        flags = ", ".join(str(b).lower() for b in (f.required, not f.always, f.pointer))
        below = struct_below(f.type)
        defaults = below in self.defaulted or (f.rules and f.rules.default is not None)
        checks = below in self.checked or has_checks(f.rules)
        extra = ""
        if f.rules or defaults or checks:
            rules = f"&kRules[{self.rule(f, keys)}]" if f.rules else "nullptr"
            extra = (f", {cpp_string(f.description)}, {str(bool(defaults)).lower()}, "
                     f"{str(bool(checks)).lower()}, {rules}")
        elif f.description:
            extra = ", " + cpp_string(f.description)
        return (f"    {{&kKeys[{keys[f.name]}], {self.type_initializer(f.type)}, {f.number}, "
                f"{f.outer}, {flags}{extra}}},  // {f.name}")

    def rule(self, f, keys):
        r = f.rules
        parts = []
        if r.default is not None:
            form = {"bool": "kBool", "struct": "kEmptyObject"}.get(f.type.kind)
            if form is None:
                form = "kInteger" if f.type.kind != "string" and r.default.isdigit() else "kText"
            parts.append(f".default_form = FieldRules::Default::{form}")
            if form == "kText":
                text = "" if r.default == '""' else r.default
                parts.append(f".default_text = {cpp_string(text)}")
            elif form == "kInteger":
                parts.append(f".default_number = {r.default}")
            elif form == "kBool":
                parts.append(f".default_number = {int(r.default == 'true')}")
        if r.when:
            parts.append(f".when_key = &kKeys[{keys[r.when[0]]}]")
            parts.append(f".when_value = {cpp_string(r.when[1])}")
        for flag in ("needed", "immutable"):
            if getattr(r, flag):
                parts.append(f".{flag} = true")
        for bound in ("minimum", "maximum"):
            if getattr(r, bound) is not None:
                parts.append(f".{bound} = {getattr(r, bound)}")
        if r.values:
            parts.append(f".values = {self.texts.span(r.values)}")
        if r.format:
            parts.append(f".format = FieldRules::Format::{FORMATS[r.format]}")
        if r.max_items:
            parts.append(f".max_items = {r.max_items}")
        text = "{" + ", ".join(parts) + "}"
        if text not in self.rules:
            self.rules.append(text)
        return self.rules.index(text)

    def kind(self, k, first_column, storage):
        columns = (f"std::span(kColumns + {first_column}, {len(k.columns)})"
                   if k.columns else "{}")
        parts = [cpp_string(k.group), cpp_string(k.version), cpp_string(k.kind),
                 cpp_string(k.plural), cpp_string(k.singular), self.texts.span(k.short_names),
                 self.texts.span(k.categories), str(k.namespaced).lower(), str(k.stored).lower(),
                 self.texts.span(k.subresources), self.texts.span(k.verbs),
                 f"&kStructs[{self.struct_index[k.struct.full_name]}]", columns,
                 self.texts.span(k.selectors), storage]
        if k.generation or k.name_format:
            name = FORMATS[k.name_format] if k.name_format else "kDnsSubdomain"
            parts += [str(k.generation).lower(), f"FieldRules::Format::{name}"]
        return "    {" + ", ".join(parts) + "},"

    def emit(self):
        keys = key_table(self.schema)
        fields, index, structs, columns = [], [], [], []
        for s in self.structs:
            multiplier, shift, places = field_index([keys[f.name] for f in s.fields])
            structs.append(f"    {{{cpp_string(s.full_name)}, std::span(kFields + {len(fields)}, "
                           f"{len(s.fields)}), kIndex + {len(index)}, {multiplier}u, {shift}}},")
            fields += [self.field(f, keys) for f in s.fields]
            index += places
        kinds = self.schema.kinds
        place = {(k.group, k.version, k.kind): i for i, k in enumerate(kinds)}
        kind_lines = []
        for k in kinds:
            storage = f"&kKinds[{place[(*k.stored_as, k.kind)]}]"
            kind_lines.append(self.kind(k, len(columns), storage))
            columns += [f"    {{{cpp_string(c.name)}, {cpp_string(c.type)}, {cpp_string(c.format)},"
                        f" {c.priority}, {cpp_string(c.description)}}}," for c in k.columns]
        body_lines = [self.kind(k, 0, "nullptr") for k in self.schema.bodies]
        everything = kinds + self.schema.bodies
        kind_order = sorted(range(len(everything)),
                            key=lambda i: (everything[i].kind, everything[i].group,
                                           everything[i].version))
        plural_order = sorted(range(len(kinds)),
                              key=lambda i: (kinds[i].plural, kinds[i].group, kinds[i].version))
        return {"schema_tables.cc": SOURCE % {
            "struct_count": len(structs), "type_count": len(self.types),
            "kind_count": len(kind_lines), "body_count": len(body_lines),
            "texts": ", ".join(cpp_string(t) for t in self.texts.all),
            "types": "\n".join(f"    {t}," for t in self.types),
            "rules": "\n".join(f"    {r}," for r in self.rules or ["{}"]),
            "fields": "\n".join(fields), "index": numbers(index),
            "structs": "\n".join(structs), "columns": "\n".join(columns),
            "kind_order": numbers(kind_order), "plural_order": numbers(plural_order),
            "kinds": "\n".join(kind_lines), "bodies": "\n".join(body_lines),
        }}


def has_checks(rules):
    return bool(rules and (rules.needed or rules.immutable or rules.minimum is not None
                           or rules.values or rules.format or rules.max_items))


def numbers(values):
    texts = [str(v) + "," for v in values]
    return "\n".join("    " + " ".join(texts[i:i + 16]) for i in range(0, len(texts), 16))


def emit(schema):
    return Tables(schema).emit()
