#!/usr/bin/env python3
"""Reads the metadata of a container's devices (KEP-5304). Needs only Python 3.

usage: read-metadata.py [CLAIM [REQUEST]] [--wait SECONDS] [--root DIR]

Copy `read_file` and `devices` into your own program: they read every known version of the file, ignore unknown
fields, and distinguish "not yet" from "corrupt".
"""
import argparse
import glob
import json
import os
import sys
import time

KEP = "/var/run/dra-device-attributes"
KUBERNETES = "/var/run/kubernetes.io/dra-device-attributes"
VERSIONS = ("metadata.resource.k8s.io/v1alpha1", "metadata.resource.k8s.io/v1beta1")


class NotYet(Exception):
    """The driver has not written the metadata yet."""


def read_file(path, attempts=8):
    """The first document with a known version. A file is a stream of equivalent documents."""
    unknown = []
    for attempt in range(attempts):
        try:
            text = open(path, encoding="utf-8").read()
        except FileNotFoundError:
            raise NotYet(path) from None
        unknown, rest = [], text.strip()
        try:
            while rest:
                document, end = json.JSONDecoder().raw_decode(rest)
                if document.get("apiVersion") in VERSIONS and document.get("kind") == "DeviceMetadata":
                    return document
                unknown.append(str(document.get("apiVersion")))
                rest = rest[end:].lstrip()
            if unknown:
                break
        except (ValueError, AttributeError) as error:
            if attempt + 1 == attempts:
                raise ValueError(f"{path}: {error}") from None
        time.sleep(0.001)  # empty or torn: an older driver may be writing it in place
    if unknown:
        raise ValueError(f"{path}: no known version, only {', '.join(unknown)}")
    raise NotYet(path)


def files(claim="*", request="*", root=""):
    """Paths of metadata files. Drivers mount them at the KEP's path, at Kubernetes' path, or at both."""
    claim, request = (glob.escape(n) if n != "*" else n for n in (claim, request))
    for base in (KEP, f"{KUBERNETES}/resourceclaimtemplates", f"{KUBERNETES}/resourceclaims"):
        for path in sorted(glob.glob(f"{root}{base}/{claim}/{request}/*-metadata.json")):
            # If several drivers share a request, running containers see updates in this directory.
            current = os.path.join(path.removesuffix(".json") + ".d", os.path.basename(path))
            yield current if os.path.exists(current) else path


def value(attribute):
    """The value of an attribute, whatever its type."""
    for kind in ("int", "bool", "string", "version", "ints", "bools", "strings", "versions"):
        if kind in attribute:
            return attribute[kind]
    return None


def devices(claim="*", request="*", root=""):
    paths = list(files(claim, request, root))
    if not paths and claim != "*":
        raise NotYet(f"claim {claim}")
    seen, wanted = set(), None
    for path in paths:
        document = read_file(path)
        # One claim's name may equal another claim's name in the pod; the former takes precedence.
        uid = document["metadata"].get("uid", "")
        wanted = uid if wanted is None or claim == "*" else wanted
        # The same file may be mounted at two paths.
        key = (uid, os.path.basename(path), tuple(entry["name"] for entry in document.get("requests", [])))
        if uid != wanted or key in seen:
            continue
        seen.add(key)
        for entry in document.get("requests", []):
            for device in entry.get("devices", []):
                network = device.get("networkData") or {}
                yield {
                    "claim": document["metadata"].get("name", ""),
                    "generation": document["metadata"].get("generation", 0),
                    "request": entry["name"],
                    "driver": device["driver"], "pool": device["pool"], "name": device["name"],
                    "attributes": {k: value(v) for k, v in device.get("attributes", {}).items()},
                    "interface": network.get("interfaceName"),
                    "ips": network.get("ips", network.get("addresses", [])),
                    "hardwareAddress": network.get("hardwareAddress", network.get("hwAddress")),
                }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("claim", nargs="?", default="*")
    parser.add_argument("request", nargs="?", default="*")
    parser.add_argument("--wait", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--root", default="")
    arguments = parser.parse_args()
    deadline = time.monotonic() + arguments.wait
    while True:
        try:
            found = list(devices(arguments.claim, arguments.request, arguments.root))
            break
        except NotYet as error:
            if time.monotonic() >= deadline:
                sys.exit(f"no metadata yet: {error}")
            time.sleep(0.05)
        except ValueError as error:
            sys.exit(str(error))
    for device in found:
        print(f"{device['claim']}/{device['request']}: {device['driver']}/{device['pool']}/{device['name']}"
              f" (generation {device['generation']})")
        for name, content in sorted(device["attributes"].items()):
            print(f"  {name} = {content}")
        if device["interface"]:
            print(f"  interface {device['interface']} {device['hardwareAddress']} {' '.join(device['ips'])}")


if __name__ == "__main__":
    main()
