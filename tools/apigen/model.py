"""Reads schema/*.schema (format: schema/README.md) into plain objects and checks them."""

import dataclasses
import os
import re

SCALARS = {
    "string": "kString",
    "bool": "kBool",
    "int32": "kInt32",
    "int64": "kInt64",
    "double": "kDouble",
    "quantity": "kQuantity",
    "time": "kTime",
    "microtime": "kMicroTime",
    "duration": "kDuration",
    "intOrString": "kIntOrString",
    "bytes": "kBytes",
    "raw": "kRaw",
    "json": "kJson",
    "skipNodeOperations": "kSkipNodeOperations",
}

FORMATS = {
    "dnsLabel": "kDnsLabel",
    "dnsSubdomain": "kDnsSubdomain",
    "dns1035Label": "kDns1035Label",
    "labelKey": "kLabelKey",
    "labelValue": "kLabelValue",
    "intOrPercent": "kIntOrPercent",
    "labelSelector": "kLabelSelector",
}

STANDARD_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


class SchemaError(Exception):
    pass


@dataclasses.dataclass(eq=False)
class Type:
    kind: str                   # a scalar's name, "struct", "list" or "map"
    struct: "Struct" = None
    element: "Type" = None
    merge: str = "atomic"       # atomic, set, maplist, granular
    list_keys: tuple = ()
    patch_merge_key: str = ""
    patch_merge: bool = False
    patch_retain_keys: bool = False
    patch_replace: bool = False


@dataclasses.dataclass(eq=False)
class Field:
    name: str
    type: Type
    type_text: str
    number: int = 0
    outer: int = 0              # protobuf: numbers of the messages around it, outermost lowest
    required: bool = False
    always: bool = False
    pointer: bool = False
    stated_merge: str = ""      # what the line says: "", atomic, set, maplist, granular
    description: str = ""
    rules: "Rules" = None


@dataclasses.dataclass
class Rules:
    """What a field's value becomes when it is missing, and what it may be."""
    default: str = None         # as written
    when: tuple = ()            # (sibling, value): the default holds only then
    needed: bool = False
    immutable: bool = False
    minimum: int = None
    maximum: int = None
    values: tuple = ()
    format: str = ""
    max_items: int = 0


@dataclasses.dataclass(eq=False)
class Struct:
    package: "Package"
    name: str
    atomic: bool = False
    fields: list = dataclasses.field(default_factory=list)

    @property
    def full_name(self):
        return self.package.path + "." + self.name


@dataclasses.dataclass(eq=False)
class Package:
    short: str                  # "core.v1", also the name of the file
    path: str = ""              # "io.k8s.api.core.v1"
    group: str = ""             # "" for core
    version: str = ""
    structs: dict = dataclasses.field(default_factory=dict)

    @property
    def namespace(self):
        return self.short.replace(".", "_")


@dataclasses.dataclass
class Column:
    name: str
    type: str
    format: str = ""
    priority: int = 0
    description: str = ""


@dataclasses.dataclass(eq=False)
class Kind:
    group: str
    version: str
    kind: str
    struct: Struct
    plural: str = ""
    singular: str = ""
    short_names: list = dataclasses.field(default_factory=list)
    categories: list = dataclasses.field(default_factory=list)
    namespaced: bool = False
    stored: bool = True
    stored_as: tuple = ()       # (group, version) of the kind that is stored
    subresources: list = dataclasses.field(default_factory=list)
    verbs: list = dataclasses.field(default_factory=list)
    columns: list = dataclasses.field(default_factory=list)
    selectors: list = dataclasses.field(default_factory=list)
    generation: bool = False    # metadata.generation counts changes of what is wanted
    name_format: str = ""       # "": a DNS subdomain


@dataclasses.dataclass
class Schema:
    packages: dict
    kinds: list                 # resources, in the order of the file
    bodies: list                # kinds without a resource of their own, lists included
    document_names: list        # names of documents without a schema

    def structs(self):
        every = [s for p in self.packages.values() for s in p.structs.values()]
        return sorted(every, key=lambda s: s.full_name)


def logical_lines(path):
    """(line number, indented, text) without comments and blank lines."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.rstrip()
            if not text.strip() or text.lstrip().startswith("#"):
                continue
            yield number, text.startswith(" "), text.strip()


def read_package(path):
    short = os.path.basename(path)[: -len(".schema")]
    package = Package(short)
    current = None
    for number, indented, text in logical_lines(path):
        where = f"{os.path.basename(path)}:{number}"
        words = text.split()
        if indented:
            if current is None:
                raise SchemaError(f"{where}: a field outside of a struct")
            field = read_field(text, where)
            if any(f.name == field.name for f in current.fields):
                raise SchemaError(f"{where}: {current.name} has {field.name} twice")
            if field.number and any((f.outer, f.number) == (field.outer, field.number)
                                    for f in current.fields):
                raise SchemaError(f"{where}: {current.name} has number {field.number} twice")
            current.fields.append(field)
        elif words[0] == "package" and len(words) == 2:
            package.path = words[1]
        elif words[0] == "group" and len(words) == 2:
            package.group = "" if words[1] == "core" else words[1]
        elif words[0] == "version" and len(words) == 2:
            package.version = words[1]
        elif words[0] == "struct" and words[2:] in ([], ["atomic"]):
            if words[1] in package.structs:
                raise SchemaError(f"{where}: struct {words[1]} is defined twice")
            current = Struct(package, words[1], atomic=words[2:] == ["atomic"])
            package.structs[words[1]] = current
        else:
            raise SchemaError(f"{where}: not understood: {text}")
    if not package.path or not package.version:
        raise SchemaError(f"{os.path.basename(path)}: package or version is missing")
    return package


def read_field(text, where):
    text, _, description = text.partition(" -- ")
    words = text.split()
    if len(words) < 2:
        raise SchemaError(f"{where}: a field needs a name and a type")
    name, type_text = words[0], words[1]
    field = Field(name, None, type_text.rstrip("?"), pointer=type_text.endswith("?"),
                  description=description.strip())
    patch = ""
    keys = ()
    for word in words[2:]:
        key, _, value = word.partition("=")
        if key == "p" and re.fullmatch(r"\d+(\.\d+){0,2}", value):
            numbers = [int(n) for n in value.split(".")]
            field.number = numbers[-1]
            # The messages around it, outermost in the lowest byte.
            field.outer = sum(n << (8 * i) for i, n in enumerate(numbers[:-1]))
        elif word == "required":
            field.required = True
        elif word == "always":
            field.always = True
        elif word in ("atomic", "set", "granular"):
            field.stated_merge = word
        elif key == "listmap" and value:
            field.stated_merge = "maplist"
            keys = tuple(value.split(","))
        elif key == "patch" and value:
            patch = value
        elif not read_rule(field, word, where):
            raise SchemaError(f"{where}: {name}: not understood: {word}")
    strategies, _, merge_key = patch.partition(":")
    for strategy in filter(None, strategies.split(",")):
        if strategy not in ("merge", "retainKeys", "replace"):
            raise SchemaError(f"{where}: {name}: no such patch strategy: {strategy}")
    field.type = Type("", list_keys=keys, patch_merge_key=merge_key,
                      patch_merge="merge" in strategies.split(","),
                      patch_retain_keys="retainKeys" in strategies.split(","),
                      patch_replace="replace" in strategies.split(","))
    return field


def read_rule(field, word, where):
    """Takes a mark about values; False if it is none."""
    key, _, value = word.partition("=")
    rules = field.rules or Rules()
    number = re.fullmatch(r"-?\d+", value)
    bounds = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", value)
    if key == "default" and value:
        rules.default = value
    elif key == "when" and value.count(":") == 1:
        rules.when = tuple(value.split(":"))
    elif word == "needed":
        rules.needed = True
    elif word == "immutable":
        rules.immutable = True
    elif key == "min" and number:
        rules.minimum = int(value)
    elif key == "range" and bounds:
        rules.minimum, rules.maximum = int(bounds.group(1)), int(bounds.group(2))
    elif key == "enum" and value:
        rules.values = tuple(value.split("|"))
    elif key == "format" and value in FORMATS:
        rules.format = value
    elif key == "maxItems" and number:
        rules.max_items = int(value)
    else:
        return False
    field.rules = rules
    return True


def resolve_type(text, package, packages, where):
    match = re.fullmatch(r"(list|map)<(.*)>", text)
    if match:
        element = resolve_type(match.group(2), package, packages, where)
        return Type(match.group(1), element=element,
                    merge="granular" if match.group(1) == "map" else "atomic")
    if text in SCALARS:
        return Type(text)
    short, _, name = text.rpartition(".")
    home = packages.get(short) if short else package
    if home is None or name not in home.structs:
        raise SchemaError(f"{where}: no such type: {text}")
    struct = home.structs[name]
    return Type("struct", struct=struct, merge="atomic" if struct.atomic else "granular")


def resolve(packages):
    for package in packages.values():
        for struct in package.structs.values():
            for field in struct.fields:
                where = f"{package.short}.{struct.name}.{field.name}"
                found = resolve_type(field.type_text, package, packages, where)
                stated = field.type
                for attribute in ("list_keys", "patch_merge_key", "patch_merge",
                                  "patch_retain_keys", "patch_replace"):
                    setattr(found, attribute, getattr(stated, attribute))
                check_merge(field, found, where)
                if field.stated_merge:
                    found.merge = field.stated_merge
                field.type = found
                if field.rules:
                    check_rules(struct, field, where)


def check_rules(struct, field, where):
    """That every mark about values goes with the field's type."""
    rules, kind = field.rules, field.type.kind
    default_form = {"string": r".+", "int32": r"-?\d+", "int64": r"-?\d+", "bool": r"true|false",
                    "intOrString": r"\d+%?", "struct": r"\{\}"}.get(kind, r"(?!)")
    if rules.default is not None and not re.fullmatch(default_form, rules.default):
        raise SchemaError(f"{where}: no default for {field.type_text}: {rules.default}")
    if rules.when:
        earlier = struct.fields[: struct.fields.index(field)]
        if rules.default is None or rules.when[0] not in [f.name for f in earlier]:
            raise SchemaError(f"{where}: when needs a default and an earlier field")
    if rules.minimum is not None and kind not in ("int32", "int64"):
        raise SchemaError(f"{where}: bounds do not go with {field.type_text}")
    if rules.format == "labelSelector":
        fits = kind == "struct" and field.type.struct.name == "LabelSelector"
    elif rules.format == "intOrPercent":
        fits = kind == "intOrString"
    else:
        fits = not rules.format or kind == "string" or (
            kind == "list" and field.type.element.kind == "string")
    if not fits or (rules.values and kind != "string" and not (
            kind == "list" and field.type.element.kind == "string")):
        raise SchemaError(f"{where}: the rule does not go with {field.type_text}")
    if rules.max_items and kind not in ("list", "map"):
        raise SchemaError(f"{where}: maxItems does not go with {field.type_text}")


def structs_that(packages, has):
    """The names of structs with a field that `has` something, in them or anywhere below."""
    found = set()
    grown = True
    while grown:
        grown = False
        for package in packages.values():
            for struct in package.structs.values():
                if struct.full_name in found:
                    continue
                if any(has(f) or struct_below(f.type) in found for f in struct.fields):
                    found.add(struct.full_name)
                    grown = True
    return found


def struct_below(t):
    """The full name of the struct that a type is, or is a list or map of; else empty."""
    while t.element:
        t = t.element
    return t.struct.full_name if t.struct else ""


def check_merge(field, found, where):
    allowed = {"list": ("", "atomic", "set", "maplist"), "map": ("", "atomic", "granular"),
               "struct": ("", "atomic", "granular")}.get(found.kind, ("",))
    if field.stated_merge not in allowed:
        raise SchemaError(f"{where}: {field.stated_merge} does not go with {field.type_text}")
    keyed = list(found.list_keys) + ([found.patch_merge_key] if found.patch_merge_key else [])
    if keyed:
        if found.kind != "list" or found.element.kind != "struct":
            raise SchemaError(f"{where}: merge keys need a list of structs")
        names = {f.name for f in found.element.struct.fields}
        for key in keyed:
            if key not in names:
                raise SchemaError(f"{where}: elements have no field {key}")


def split_quoted(text):
    return [a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', text)]


def read_kinds(path, packages):
    """(kinds, bodies); one Kind for each version of a `kind` block."""
    blocks = []
    bodies = []
    for number, indented, text in logical_lines(path):
        where = f"{os.path.basename(path)}:{number}"
        words = split_quoted(text.partition(" -- ")[0])
        if not indented and words[0] == "kind" and len(words) == 3:
            blocks.append({"where": where, "family": words[1], "kind": words[2], "versions": [],
                           "names": [], "categories": [], "namespaced": False, "verbs": [],
                           "subresources": [], "selectors": [], "columns": [], "stored": (),
                           "generation": False, "name": ""})
        elif not indented and words[0] == "body" and len(words) == 4:
            group, _, version = words[1].rpartition("/")
            short, _, name = words[3].rpartition(".")
            if short not in packages or name not in packages[short].structs:
                raise SchemaError(f"{where}: no such type: {words[3]}")
            bodies.append(Kind(group, version, words[2], packages[short].structs[name],
                               stored=False))
        elif indented and blocks:
            read_kind_line(blocks[-1], words, text, where)
        else:
            raise SchemaError(f"{where}: not understood: {text}")
    kinds = [kind for block in blocks for kind in kinds_of(block, packages)]
    for kind in kinds:
        list_struct = kind.struct.package.structs.get(kind.kind + "List")
        if "list" in kind.verbs:
            if list_struct is None:
                raise SchemaError(f"{kind.kind} can be listed but there is no {kind.kind}List")
            bodies.append(Kind(kind.group, kind.version, kind.kind + "List", list_struct,
                               stored=False))
    return kinds, bodies


def read_kind_line(block, words, text, where):
    word, rest = words[0], words[1:]
    if word in ("versions", "names", "categories", "verbs", "subresources", "selectors"):
        block[word] += rest
    elif word == "namespaced" and not rest:
        block["namespaced"] = True
    elif word == "generation" and not rest:
        block["generation"] = True
    elif word == "name" and len(rest) == 1 and rest[0] in ("dnsLabel", "dns1035Label"):
        block["name"] = rest[0]
    elif word == "stored" and len(rest) == 2:
        block["stored"] = ("" if rest[0] == "core" else rest[0], rest[1])
    elif word == "column" and len(rest) >= 2:
        extra = rest[2:]
        if not set(extra) <= {"name", "wide"}:
            raise SchemaError(f"{where}: not understood: {text}")
        block["columns"].append(Column(rest[0], rest[1], "name" if "name" in extra else "",
                                       1 if "wide" in extra else 0,
                                       text.partition(" -- ")[2].strip()))
    else:
        raise SchemaError(f"{where}: not understood: {text}")


def kinds_of(block, packages):
    if len(block["names"]) < 2 or not block["versions"]:
        raise SchemaError(f"{block['where']}: {block['kind']} needs names and versions")
    stored = [v[:-1] for v in block["versions"] if v.endswith("*")]
    if len(stored) != 1:
        raise SchemaError(f"{block['where']}: {block['kind']} needs one stored version, marked *")
    for version in block["versions"]:
        version = version.rstrip("*")
        package = packages.get(block["family"] + "." + version)
        if package is None or block["kind"] not in package.structs:
            raise SchemaError(f"{block['where']}: no type {block['family']}.{version}."
                              f"{block['kind']}")
        stored_as = block["stored"] or (package.group, stored[0])
        yield Kind(package.group, version, block["kind"], package.structs[block["kind"]],
                   plural=block["names"][0], singular=block["names"][1],
                   short_names=block["names"][2:], categories=block["categories"],
                   namespaced=block["namespaced"],
                   stored=stored_as == (package.group, version), stored_as=stored_as,
                   subresources=block["subresources"],
                   verbs=block["verbs"] or STANDARD_VERBS, columns=block["columns"],
                   selectors=block["selectors"], generation=block["generation"],
                   name_format=block["name"])


def read_document_names(folder, fields):
    """The names in *.names, one a line: fields of documents that no schema describes."""
    names = {}
    for file_name in sorted(os.listdir(folder)):
        if not file_name.endswith(".names"):
            continue
        with open(os.path.join(folder, file_name), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                name = line.strip()
                place = f"{file_name}:{number}"
                if not name or name.startswith("#"):
                    continue
                if not re.fullmatch(r"[\x21-\x7e]+", name) or '"' in name or "\\" in name:
                    raise SchemaError(f"{place}: not a name: {name}")
                if name in fields:
                    raise SchemaError(f"{place}: {name} is a field of the schema already")
                if name in names:
                    raise SchemaError(f"{place}: {name} is there already, at {names[name]}")
                names[name] = place
    return list(names)


def load(folder):
    packages = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".schema") and name != "kinds.schema":
            package = read_package(os.path.join(folder, name))
            packages[package.short] = package
    resolve(packages)
    kinds, bodies = read_kinds(os.path.join(folder, "kinds.schema"), packages)
    seen = set()
    for kind in kinds + bodies:
        identity = (kind.group, kind.version, kind.kind)
        if identity in seen:
            raise SchemaError(f"kind {identity} is defined twice")
        seen.add(identity)
    for kind in kinds:
        if not any((k.group, k.version, k.kind) == (*kind.stored_as, kind.kind) for k in kinds):
            raise SchemaError(f"{kind.kind} is stored as {kind.stored_as}, which does not exist")
    fields = {f.name for p in packages.values() for s in p.structs.values() for f in s.fields}
    return Schema(packages, kinds, bodies, read_document_names(folder, fields))
