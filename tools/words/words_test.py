#!/usr/bin/env python3
"""Fails on phrases of phrases.txt in sources and docs, on prose in Markdown wider than 100 columns, and on changelog
entries of more than one line."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KINDS = ("*.h", "*.cc", "*.c", "*.py", "*.sh", "*.md", "*.proto", "*.schema", "*.cmake", "CMakeLists.txt", "dev")
COLUMNS = 100


def read_phrases(text):
    """Phrases with what to write instead, and the folders that are exempt."""
    phrases, exempt = {}, []
    for line in text.splitlines():
        if line.startswith("except: "):
            exempt.append(line.removeprefix("except: ").strip() + "/")
        elif line and not line.startswith("#"):
            phrase, _, better = line.partition(" -> ")
            phrases[phrase] = better
    return phrases, exempt


def pattern_for(phrases):
    """Matches any phrase, also where a line break and a comment marker separate its words."""
    gap = r"(?:[ \t]+|[ \t]*\n[ \t]*(?://+|#+|\*)?[ \t]*)"
    words = (gap.join(map(re.escape, phrase.split())) for phrase in phrases)
    return re.compile(r"\b(?:" + "|".join(words) + r")\b", re.I)


def find_phrases(path, text, phrases, pattern):
    errors = []
    for match in pattern.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found = " ".join(word for word in re.split(r"[\s/#*]+", match.group()) if word)
        errors.append(f'{path}:{line}: "{found}": write {phrases[found.lower()]}')
    return errors


def find_wide_prose(path, text):
    """Lines of Markdown prose beyond COLUMNS; tables, code and headings may be wider."""
    errors, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and len(line) > COLUMNS and not line.startswith(("|", "#", "    ")):
            errors.append(f"{path}:{number}: wider than {COLUMNS} columns")
    return errors


def find_long_entries(path, text):
    """Continuation lines of list entries: users read the changelog line by line."""
    return [f"{path}:{number}: an entry takes one line; reasons and measurements belong in the commit"
            for number, line in enumerate(text.splitlines(), 1) if line.startswith("  ") and line.strip()]


def self_test():
    """The checks must be able to fail."""
    phrases = {"once more": "again"}
    pattern = pattern_for(phrases)
    bad = ("// Tries once more.\n", "  // Tries once\n  // more.\n", "Once more", " * once\n * more\n")
    good = ("// Tries again.\n", "// at once, moreover\n")
    errors = [f"self-test: nothing found in {text!r}" for text in bad if not find_phrases("x", text, phrases, pattern)]
    errors += [f"self-test: found something in {text!r}" for text in good if find_phrases("x", text, phrases, pattern)]
    wide = "word " * 30
    if not find_wide_prose("x.md", wide) or find_wide_prose("x.md", f"| {wide} |\n```\n{wide}\n```\n"):
        errors.append("self-test: wide prose")
    if len(find_long_entries("x.md", "- One.\n- Two\n  lines.\n\n- Three.\n")) != 1:
        errors.append("self-test: long entries")
    return errors


def sources():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *KINDS],
                            cwd=ROOT, check=True, capture_output=True).stdout.decode()
    return sorted(path for path in listed.split("\0") if path and (ROOT / path).exists())


def main():
    phrases, exempt = read_phrases((HERE / "phrases.txt").read_text())
    pattern = pattern_for(phrases)
    errors = self_test()
    clean = set(exempt)
    paths = sources()
    for path in paths:
        text = (ROOT / path).read_text()
        folder = next((each for each in exempt if path.startswith(each)), None)
        found = find_phrases(path, text, phrases, pattern) if path.startswith("tools/words/") is False else []
        if folder and found:
            clean.discard(folder)
        if not folder:
            errors += found
        if path.endswith(".md"):
            errors += find_wide_prose(path, text)
        if path == "CHANGELOG.md":
            errors += find_long_entries(path, text)
    for error in errors:
        print(error)
    for folder in sorted(clean):
        print(f"note: {folder} has none of the phrases; remove its line from phrases.txt")
    print(f"{len(paths)} files, {len(errors)} errors")
    return 1 if errors or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
