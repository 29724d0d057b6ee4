"""Finds the places in a C++ file where a small bug can be planted, and plants many at once.

Every mutant is compiled into the file behind a run-time switch (mutant.h). Edits only insert text
or replace single tokens, and never add a line, so they nest and compiler errors keep their lines.
"""

import dataclasses
import re
import sys

# Debian's python3-clang-16 may not be on the path of another Python, but it is plain ctypes.
if "/usr/lib/python3/dist-packages" not in sys.path:
    sys.path.append("/usr/lib/python3/dist-packages")
import clang.cindex as cindex  # noqa: E402

LIBRARY = "/usr/lib/llvm-16/lib/libclang-16.so.1"
PREFIX = "::drakkar_mutant::"
COMPARISONS = {
    "<": ("Less", "<="), "<=": ("LessEqual", "<"), ">": ("Greater", ">="),
    ">=": ("GreaterEqual", ">"), "==": ("Equal", "!="), "!=": ("NotEqual", "=="),
}
QUANTIFIERS = {"all_of": ("AllOf", "any_of"), "any_of": ("AnyOf", "all_of"),
               "none_of": ("NoneOf", "any_of")}
# Statements whose removal no test needs to notice: logs, assertions, allocator hints.
UNINTERESTING = re.compile(
    r"^\s*(LOG|VLOG|log_?\b|logger_?\b|telemetry::|CHECK|DCHECK|static_cast<void>|\(void\)|std::ignore)"
    r"|AssertInLoop|\.reserve\(|->reserve\(|\.shrink_to_fit\(|\blog_?(\.|->)|\blogger_?(\.|->)"
    r"|\bkLog\.|\bLog(Info|Warning|Error|Debug)\b|\bV\(\d\)")
# A statement that only logs: nothing in it is mutated, and neither is the condition it depends on.
LOGS = re.compile(r"^\s*(kLog|log_?|logger_?)(\.|->)\w+\(|^\s*std::fprintf\(stderr")
# In a destructor this only fixes the order in which members are destroyed.
RELEASES = re.compile(r"(\.|->)(reset|clear)\(\)$")
# Functions whose arguments may be swapped without effect.
SYMMETRIC = {"min", "max", "swap", "Equal", "MaskOf"}
# What an early return returns, by type.
EARLY_RETURNS = {"void": ("",), "bool": (" false", " true"), "int": (" 0",)}

Kind = cindex.CursorKind
# libclang returns kinds that its Python bindings do not list, such as requires-expressions.
LAST_KIND = 700
for kind_id in range(LAST_KIND):
    try:
        Kind.from_id(kind_id)
    except ValueError:
        Kind(kind_id)


@dataclasses.dataclass
class Edit:
    """Replaces [start, end) of the original text; insertions have start == end. At the same position,
    opening insertions are ordered by `depth`, closing ones in reverse."""
    start: int
    end: int
    text: str
    closes: bool = False
    depth: int = 0


@dataclasses.dataclass
class Site:
    path: str
    line: int
    operator: str          # "negate", "drop", "compare", "remove", "return", "first", "swap", "quantifier"
    start: int             # the region that the human-readable form replaces
    end: int
    mutated: str
    edits: list            # with {n} for the mutant's number
    number: int = -1

    def shown(self, source):
        """(original line or lines, the same with the bug)."""
        first = source.rfind("\n", 0, self.start) + 1
        last = source.find("\n", self.end)
        last = len(source) if last < 0 else last
        before = source[first:last]
        after = source[first:self.start] + self.mutated + source[self.end:last]
        return before, after


class File:
    def __init__(self, path, source, unit):
        self.path = path
        self.source = source
        self.bytes = source.encode()
        self.unit = unit
        self.sites = []
        self.depth = 0
        self.in_destructor = False
        if len(self.bytes) != len(source):
            # The compiler's offsets are in bytes; a map is needed only for non-ASCII text.
            self.offsets = [0] * (len(self.bytes) + 1)
            at = 0
            for index, character in enumerate(source):
                for _ in character.encode():
                    self.offsets[at] = index
                    at += 1
            self.offsets[at] = len(source)
        else:
            self.offsets = None

    def at(self, location):
        return self.offsets[location.offset] if self.offsets else location.offset

    def extent(self, cursor):
        """(start, end) in the text, or None if it comes from a macro or another file."""
        start, end = cursor.extent.start, cursor.extent.end
        if start.file is None or end.file is None or start.file.name != end.file.name:
            return None
        if not start.file.name.endswith(self.path):
            return None
        first, last = self.at(start), self.at(end)
        return (first, last) if first < last else None

    def text(self, cursor):
        extent = self.extent(cursor)
        return self.source[extent[0]:extent[1]] if extent else ""

    def add(self, operator, cursor, region, mutated, edits):
        for edit in edits:
            edit.depth = self.depth
        line = self.source.count("\n", 0, region[0]) + 1
        self.sites.append(Site(self.path, line, operator, region[0], region[1], mutated, edits))

    # Mutations, one function each.

    def negate(self, condition):
        extent = self.extent(condition)
        if extent is None or condition.kind in (Kind.DECL_STMT, Kind.VAR_DECL):
            return
        text = self.source[extent[0]:extent[1]]
        self.add("negate", condition, extent, f"!({text})",
                 [Edit(extent[0], extent[0], PREFIX + "Negate({n}, "),
                  Edit(extent[1], extent[1], ")", closes=True)])

    def drop_operand(self, operand, other_text, whole, is_and):
        extent, region = self.extent(operand), self.extent(whole)
        if extent is None or region is None:
            return
        opening = "(" + PREFIX + "On({n}) || (" if is_and else "(!" + PREFIX + "On({n}) && ("
        self.add("drop", operand, region, other_text,
                 [Edit(extent[0], extent[0], opening), Edit(extent[1], extent[1], "))", closes=True)])

    def binary(self, cursor, children):
        left, right = children
        le, re_ = self.extent(left), self.extent(right)
        whole = self.extent(cursor)
        if le is None or re_ is None or whole is None:
            return
        between = self.source[le[1]:re_[0]]
        match = re.fullmatch(r"(\s*\)*\s*)(&&|\|\||[<>]=?|[!=]=|and|or)(\s*\(*\s*)", between)
        if not match:
            return
        operator = match.group(2)
        if operator in ("&&", "||"):
            self.drop_operand(left, self.source[re_[0]:whole[1]], cursor, operator == "&&")
            self.drop_operand(right, self.source[whole[0]:le[1]], cursor, operator == "&&")
        elif operator in COMPARISONS and "(" not in between and ")" not in between:
            if re_[1] != whole[1] or le[0] != whole[0]:
                return
            name, mutated = COMPARISONS[operator]
            at = le[1] + match.start(2)
            text = self.source[le[0]:at] + mutated + self.source[at + len(operator):re_[1]]
            self.add("compare", cursor, whole, text,
                     [Edit(whole[0], whole[0], PREFIX + name + "({n}, "),
                      Edit(at, at + len(operator), ","),
                      Edit(whole[1], whole[1], ")", closes=True)])

    def remove(self, statement):
        extent = self.extent(statement)
        if extent is None:
            return
        text = self.source[extent[0]:extent[1]]
        end = extent[1]
        while end < len(self.source) and self.source[end] in " \n":
            end += 1
        if end >= len(self.source) or self.source[end] != ";" or UNINTERESTING.search(text):
            return
        if self.in_destructor and RELEASES.search(text):
            return
        end += 1
        self.add("remove", statement, (extent[0], end), ";",
                 [Edit(extent[0], extent[0], "{{ if (!" + PREFIX + "On({n})) {{ "),
                  Edit(end, end, " }} }}", closes=True)])

    def early_return(self, body, result):
        extent = self.extent(body)
        if extent is None or self.source[extent[0]] != "{" or not self.source[extent[0] + 1:extent[1] - 1].strip():
            return
        at = extent[0] + 1
        for value in EARLY_RETURNS.get(result, ()):
            self.add("return", body, (at, at), f" return{value};",
                     [Edit(at, at, " if (" + PREFIX + "On({n})) return" + value + ";")])

    def first_only(self, cursor, body):
        extent, inner = self.extent(cursor), self.extent(body)
        if extent is None or inner is None or self.source[inner[0]] != "{":
            return
        head = self.source[extent[0]:inner[0]]
        match = re.match(r"for \(", head)
        if not match or ";" in head:
            return
        at = extent[0] + match.end()
        head_end = inner[0] + 1
        self.add("first", cursor, (extent[0], head_end),
                 self.source[extent[0]:head_end] + "  // only the first",
                 [Edit(at, at, "int drakkar_round = 0; "),
                  Edit(inner[0] + 1, inner[0] + 1,
                       " if (" + PREFIX + "On({n}) && drakkar_round++ > 0) break;")])

    def swap(self, cursor):
        if cursor.spelling.startswith("operator") or cursor.spelling in SYMMETRIC:
            return
        arguments = list(cursor.get_arguments())
        for a, b in zip(arguments, arguments[1:]):
            a, b = plain_name(a), plain_name(b)
            if a is None or b is None:
                continue
            ea, eb = self.extent(a), self.extent(b)
            if ea is None or eb is None or ea[1] > eb[0]:
                continue
            if a.type.get_canonical().spelling != b.type.get_canonical().spelling:
                continue
            ta, tb = self.source[ea[0]:ea[1]], self.source[eb[0]:eb[1]]
            if ta == tb or not re.fullmatch(r"[\w.:>-]+", ta) or not re.fullmatch(r"[\w.:>-]+", tb):
                continue
            on = PREFIX + "On({n})"
            self.add("swap", cursor, (ea[0], eb[1]), tb + self.source[ea[1]:eb[0]] + ta,
                     [Edit(ea[0], ea[0], f"({on} ? {tb} : "), Edit(ea[1], ea[1], ")", closes=True),
                      Edit(eb[0], eb[0], f"({on} ? {ta} : "), Edit(eb[1], eb[1], ")", closes=True)])

    def quantifier(self, cursor):
        extent = self.extent(cursor)
        if extent is None:
            return
        match = re.match(r"(?:std::ranges::|std::|absl::c_)(all_of|any_of|none_of)\(",
                         self.source[extent[0]:extent[1]])
        if not match:
            return
        name, mutated = QUANTIFIERS[match.group(1)]
        end = extent[0] + match.end()
        text = match.group(0).replace(match.group(1), mutated)
        self.add("quantifier", cursor, (extent[0], end), text,
                 [Edit(extent[0], end, PREFIX + name + "({n}, ")])

    def flip_return(self, cursor, children):
        if len(children) != 1 or children[0].type.get_canonical().spelling != "bool":
            return
        self.negate(children[0])

    def only_logs(self, statement):
        """Whether a statement, or each of those in a block, logs and does nothing else."""
        if statement.kind == Kind.COMPOUND_STMT:
            children = list(statement.get_children())
            return bool(children) and all(self.only_logs(child) for child in children)
        return LOGS.match(self.text(statement)) is not None

    # The walk.

    def visit(self, cursor, function_result):
        kind = cursor.kind
        children = list(cursor.get_children())
        if kind in (Kind.STATIC_ASSERT, Kind.ENUM_DECL) or (
                kind == Kind.VAR_DECL and "constexpr" in self.text(cursor).split("=")[0]):
            return
        if kind in (Kind.CALL_EXPR, Kind.UNEXPOSED_EXPR) and self.only_logs(cursor):
            return
        if kind == Kind.IF_STMT and len(children) > 1 and self.only_logs(children[-1]) and (
                " else" not in self.text(cursor)):
            return
        self.depth += 1
        outer, self.in_destructor = self.in_destructor, kind == Kind.DESTRUCTOR or self.in_destructor
        if kind in (Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.FUNCTION_TEMPLATE):
            function_result = cursor.result_type.get_canonical().spelling
            if children and children[-1].kind == Kind.COMPOUND_STMT:
                self.early_return(children[-1], function_result)
        if kind == Kind.IF_STMT and children:
            head = self.source[self.extent(cursor)[0]:self.extent(children[0])[0]] if (
                self.extent(cursor) and self.extent(children[0])) else "constexpr"
            if "constexpr" not in head and ";" not in head:
                self.negate(children[0])
        elif kind == Kind.CONDITIONAL_OPERATOR and children:
            self.negate(children[0])
        elif kind == Kind.BINARY_OPERATOR and len(children) == 2:
            self.binary(cursor, children)
        elif kind == Kind.RETURN_STMT:
            self.flip_return(cursor, children)
        elif kind == Kind.CXX_FOR_RANGE_STMT and children:
            self.first_only(cursor, children[-1])
        elif kind == Kind.CALL_EXPR:
            if cursor.spelling in COMPARISON_OPERATORS and len(children) >= 2:
                operands = [c for c in children if c.spelling not in COMPARISON_OPERATORS]
                if len(operands) == 2:
                    self.binary(cursor, operands)
            self.swap(cursor)
            self.quantifier(cursor)
        if kind in (Kind.COMPOUND_STMT, Kind.IF_STMT):
            for child in children:
                if is_plain_statement(child) and not (kind == Kind.IF_STMT and child == children[0]):
                    self.remove(child)
        for child in children:
            # A lambda's returns are its own, and its type is ignored.
            inner = None if kind == Kind.LAMBDA_EXPR else function_result
            self.visit(child, inner)
        self.in_destructor = outer
        self.depth -= 1


COMPARISON_OPERATORS = {"operator" + text for text in COMPARISONS}


def plain_name(cursor):
    """The name behind implicit conversions, or None."""
    while cursor.kind == Kind.UNEXPOSED_EXPR:
        children = list(cursor.get_children())
        if len(children) != 1:
            return None
        cursor = children[0]
    return cursor if cursor.kind in (Kind.DECL_REF_EXPR, Kind.MEMBER_REF_EXPR) else None


def is_plain_statement(cursor):
    if cursor.kind == Kind.UNEXPOSED_EXPR:  # a temporary that is destroyed at the end
        children = list(cursor.get_children())
        return len(children) == 1 and is_plain_statement(children[0])
    if cursor.kind == Kind.BINARY_OPERATOR or cursor.kind == Kind.UNARY_OPERATOR:
        return True
    return cursor.kind in (Kind.CALL_EXPR, Kind.COMPOUND_ASSIGNMENT_OPERATOR)


def find_sites(path, source, absolute, flags):
    """Every site in one file. `flags` are the compiler's for it."""
    if not cindex.Config.loaded:
        cindex.Config.set_library_file(LIBRARY)
    unit = cindex.Index.create().parse(absolute, args=flags)
    fatal = [d.spelling for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Fatal]
    if fatal:
        raise RuntimeError(f"{path}: libclang: {fatal[0]}")
    file = File(path, source, unit)
    for cursor in unit.cursor.get_children():
        if cursor.location.file and cursor.location.file.name.endswith(path):
            file.visit(cursor, None)
    return [site for site in file.sites if not in_macro(source, site)]


def in_macro(source, site):
    """Code in macro arguments is expanded elsewhere or several times."""
    line_start = source.rfind("\n", 0, site.start) + 1
    before = source[line_start:site.start]
    macro = r"\b[A-Z][A-Z0-9_]{3,}\("
    return (re.match(macro, source[site.start:]) is not None or
            re.search(macro + r"[^;]*$", before) is not None or before.lstrip().startswith("#"))


def ordered_edits(sites):
    """[(edit, its text, site)] in the order of the text."""
    edits = [(edit, edit.text.format(n=site.number), site) for site in sites for edit in site.edits]

    def order(item):
        edit = item[0]
        if edit.start != edit.end:
            return (edit.start, 2, 0)
        # At the same position, closings come before openings: inner closes first, outer opens
        # first.
        return (edit.start, 0, -edit.depth) if edit.closes else (edit.start, 1, edit.depth)

    edits.sort(key=order)
    return edits


def plant(source, sites):
    """The text with all `sites` (numbered) in it."""
    pieces, at = [], 0
    for edit, text, _ in ordered_edits(sites):
        if edit.start < at:
            raise ValueError("edits overlap")
        pieces += [source[at:edit.start], text]
        at = edit.end
    return "".join(pieces) + source[at:]


def around(source, sites, line, column):
    """The site with the smallest extent around a place in the planted text, or None."""
    extents, length, at = {}, 0, 0
    for edit, text, site in ordered_edits(sites):
        length += edit.start - at
        first, _ = extents.get(site.number, (length, 0))
        length += len(text)
        extents[site.number] = (first, length)
        at = edit.end
    planted = plant(source, sites)
    place = 0
    for _ in range(line - 1):
        place = planted.find("\n", place) + 1
    place += column - 1
    inside = [(last - first, site.number) for site in sites
              for first, last in [extents[site.number]] if first <= place < last]
    if not inside:
        return None
    smallest = min(inside)[1]
    return next(site for site in sites if site.number == smallest)
