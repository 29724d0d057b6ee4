#!/usr/bin/env python3
"""Makes the C++ of the API out of schema/: names and tables.

  apigen.py SCHEMA_FOLDER OUTPUT_FOLDER

Files whose content did not change are not touched, so that a build stays small.
"""

import os
import sys

import keys
import model
import tables


def outputs(schema):
    return {**keys.emit(schema), **tables.emit(schema)}


def write(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                if file.read() == text:
                    continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        write(arguments[1], outputs(model.load(arguments[0])))
    except (model.SchemaError, ValueError) as error:
        print(f"apigen: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
