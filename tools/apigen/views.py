"""views/<package>.h: a class with typed accessors for every struct."""

from keys import key_names
from model import SchemaError
from names import accessor, key_identifiers, snake_case

TEXT = ("string", "quantity", "time", "microtime", "duration", "bytes")
INTEGER = ("int32", "int64")
# Of more than one shape: the caller looks at the value.
OPEN = ("raw", "json", "intOrString", "skipNodeOperations")


def view_name(struct):
    """PodSpec -> PodSpecView. A struct List would hide the template ListView: AnyListView."""
    return ("Any" if struct.name in ("List", "Map") else "") + struct.name + "View"


def view_type(t, package):
    if t.kind in TEXT:
        return "std::string_view"
    if t.kind in INTEGER:
        return "std::int64_t"
    if t.kind in ("bool", "double"):
        return t.kind
    if t.kind in OPEN:
        return "Value"
    if t.kind == "struct":
        name = view_name(t.struct)
        return name if t.struct.package is package else f"{t.struct.package.namespace}::{name}"
    element = view_type(t.element, package)
    if element == "std::string_view":
        return "StringListView" if t.kind == "list" else "StringMapView"
    return f"{'ListView' if t.kind == 'list' else 'MapView'}<{element}>"


def read(t, package, key):
    value = f"view_[key::{key}]"
    kind = view_type(t, package)
    return {"std::string_view": value + ".str()", "std::int64_t": value + ".integer()",
            "bool": value + ".boolean()", "double": value + ".number()",
            "Value": value}.get(kind) or f"{kind}({value})"


def used_structs(struct):
    for field in struct.fields:
        t = field.type
        while t.element:
            t = t.element
        if t.struct:
            yield t.struct


def in_order(package):
    """A view comes after the views it returns."""
    done, ordered = {}, []

    def visit(struct, path):
        if struct.package is not package or done.get(struct.name) == "done":
            return
        if done.get(struct.name) == "open":
            raise SchemaError(f"{package.short}: views cannot be recursive: "
                              + " -> ".join(path + [struct.name]))
        done[struct.name] = "open"
        for used in used_structs(struct):
            visit(used, path + [struct.name])
        done[struct.name] = "done"
        ordered.append(struct)

    for struct in package.structs.values():
        visit(struct, [])
    return ordered


def emit_class(struct, identifiers):
    lines = [f"class {view_name(struct)} : public View {{", " public:", "  using View::View;"]
    taken = set()
    for field in struct.fields:
        key = identifiers[field.name]
        name, has = accessor(field.name), "has_" + snake_case(field.name)
        if name in taken or has in taken:
            raise SchemaError(f"{struct.full_name}: two accessors for {field.name}")
        taken |= {name, has}
        result = view_type(field.type, struct.package)
        lines.append(f"  {result} {name}() const {{ return "
                     f"{read(field.type, struct.package, key)}; }}")
        lines.append(f"  bool {has}() const {{ return view_[key::{key}].has_value(); }}")
    lines.append("};")
    return "\n".join(lines)


def emit(schema):
    identifiers = key_identifiers(key_names(schema))
    files = {}
    for package in schema.packages.values():
        others = sorted({used.package.namespace for s in package.structs.values()
                         for used in used_structs(s) if used.package is not package})
        includes = [f'#include "api/views/{name}.h"' for name in others]
        includes.append('#include "api/views/view_base.h"')
        classes = "\n\n".join(emit_class(s, identifiers) for s in in_order(package))
        files[f"views/{package.namespace}.h"] = "\n".join([
            "// Made by tools/apigen from schema/.", "#pragma once", "",
            '#include "api/keys.h"', *includes, "",
            f"namespace drakkar::api::{package.namespace} {{", "", classes, "",
            f"}}  // namespace drakkar::api::{package.namespace}", ""])
    return files
