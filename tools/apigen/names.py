"""How JSON names become C++ names."""

import re

CPP_KEYWORDS = {
    "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class",
    "concept", "const", "continue", "default", "delete", "do", "double", "else", "enum", "explicit",
    "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
    "mutable", "namespace", "new", "not", "nullptr", "operator", "or", "private", "protected",
    "public", "register", "requires", "return", "short", "signed", "sizeof", "static", "struct",
    "switch", "template", "this", "throw", "true", "try", "typedef", "typeid", "typename", "union",
    "unsigned", "using", "virtual", "void", "volatile", "while", "xor",
}
# Members of every view.
VIEW_MEMBERS = {"value", "exists"}


def snake_case(name):
    """podIPs -> pod_ips, setHostnameAsFQDN -> set_hostname_as_fqdn"""
    name = re.sub(r"[^A-Za-z0-9]", "_", name)
    # A plural acronym is one word: IPs, URLs, CIDRs.
    name = re.sub(r"([A-Z]{2,})s(?=[A-Z]|$)", lambda m: m.group(1).capitalize() + "s", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return name.lower()


def accessor(name):
    result = snake_case(name)
    return result + "_" if result in CPP_KEYWORDS or result in VIEW_MEMBERS else result


def key_identifiers(names):
    """JSON name -> constant. Names that differ only in the case of the first letter are told apart
    by the word Capital: port is kPort, Port is kCapitalPort."""
    result = {}
    for name in names:
        text = re.sub(r"[^A-Za-z0-9]", "_", name)
        identifier = "k" + text[:1].upper() + text[1:]
        if text[:1].isupper() and text[:1].lower() + text[1:] in names:
            identifier = "kCapital" + text
        if identifier in result.values():
            raise ValueError(f"two names for {identifier}")
        result[name] = identifier
    return result


def cpp_string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
