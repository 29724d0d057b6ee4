"""Bodies and queries that are as expensive to handle as their size allows, for every served kind.

`bodies(schemas, limit)` yields (name, method, path, content type, body) from the server's own OpenAPI
documents, so that new kinds and fields are covered without a change here. `requests(...)` adds patches,
selectors and other requests with hand-picked worst cases. Nothing here sends anything: hostile_bodies_test.py
and the attack soak do."""
import json

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
LIMIT = 3 * 1024 * 1024 - 4096


def text(flavour, index):
    return {"distinct": f"k{index}", "same": "same", "invalid": f"-!{index}"}[flavour]


class Schema:
    """One OpenAPI v3 document."""

    def __init__(self, document):
        self.document = document
        self.schemas = document.get("components", {}).get("schemas", {})

    def resolve(self, schema):
        for _ in range(10):
            if "$ref" in schema:
                schema = self.schemas[schema["$ref"].rsplit("/", 1)[1]]
            elif len(schema.get("allOf", [])) == 1:
                schema = schema["allOf"][0]
            else:
                break
        return schema

    def value(self, schema, flavour, index, depth=2):
        schema = self.resolve(schema)
        kind = schema.get("type")
        if kind == "array":
            return [self.value(schema["items"], flavour, index, depth - 1)] if depth > 0 else []
        if kind == "object" or "properties" in schema:
            if depth <= 0:
                return {}
            found = {name: self.value(each, flavour, index, depth - 1)
                     for name, each in schema.get("properties", {}).items()
                     if self.resolve(each).get("type") in ("string", "integer", "boolean")}
            extra = schema.get("additionalProperties")
            if isinstance(extra, dict):
                found[text(flavour, index)] = self.value(extra, flavour, index, depth - 1)
            return found
        return {"integer": index, "number": index, "boolean": True}.get(kind, text(flavour, index))

    def places(self, schema, way=(), seen=None):
        """Every list and map below `schema`, once: (way, schema)."""
        seen = set() if seen is None else seen
        schema = self.resolve(schema)
        if id(schema) in seen or len(way) > 7:
            return
        seen.add(id(schema))
        for name, each in schema.get("properties", {}).items():
            each = self.resolve(each)
            inner = each.get("items") or each.get("additionalProperties")
            if isinstance(inner, dict):
                yield (*way, name), each
                step = (*way, name, 0 if each.get("type") == "array" else "a")
                yield from self.places(inner, step, seen)
            else:
                yield from self.places(each, (*way, name), seen)

    def many(self, schema, flavour, limit):
        """A list or map of about `limit` bytes."""
        size, index, found = 0, 0, [] if schema.get("type") == "array" else {}
        inner = schema.get("items") or schema["additionalProperties"]
        while size < limit:
            value = self.value(inner, flavour, index)
            if isinstance(found, list):
                found.append(value)
                size += len(json.dumps(value, separators=(",", ":"))) + 1
            else:
                key = text("distinct" if flavour == "same" else flavour, index)
                found[key] = value
                size += len(key) + 4 + len(json.dumps(value, separators=(",", ":")))
            index += 1
        return found


def put(root, way, value):
    at = root
    for step, following in zip(way, (*way[1:], None)):
        fresh = value if following is None else [] if following == 0 else {}
        if isinstance(at, list):
            at.append(fresh)
            at = at[-1]
        else:
            at = at.setdefault(step, fresh)
            if following is None and at is not value:
                pass
    return root


def collections(document):
    """(path, group, version, kind) of every collection that can be created into."""
    for path, item in document.get("paths", {}).items():
        kind = item.get("post", {}).get("x-kubernetes-group-version-kind")
        if kind and path.rsplit("/", 1)[-1].islower() and not path.endswith("}"):
            yield path, kind["group"], kind["version"], kind["kind"]


def bodies(documents, limit=LIMIT, flavours=("distinct", "same", "invalid"), places_per_kind=None):
    """The largest body for every list and map of every kind. `documents` are OpenAPI v3 documents."""
    seen = set()
    for document in documents:
        schema = Schema(document)
        kinds = {}
        for name, each in schema.schemas.items():
            for kind in each.get("x-kubernetes-group-version-kind", []):
                kinds[kind["group"], kind["version"], kind["kind"]] = name
        for path, group, version, kind in collections(document):
            name = kinds.get((group, version, kind))
            if name is None or "{name}" in path:
                continue
            path = path.replace("{namespace}", "default")
            found = 0
            for way, place in schema.places(schema.schemas[name]):
                if places_per_kind is not None and found >= places_per_kind:
                    break
                # The same struct in another kind takes the same code.
                if id(place) in seen:
                    continue
                seen.add(id(place))
                found += 1
                for flavour in flavours:
                    body = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind}
                    put(body, way, schema.many(place, flavour, limit))
                    metadata = body.setdefault("metadata", {})
                    metadata.setdefault("name", "hostile")
                    yield (f"{kind}.{'.'.join(map(str, way))} {flavour}", "POST", path + "?dryRun=All",
                           "application/json", json.dumps(body, separators=(",", ":")))


def config_map(prefix, limit, **metadata):
    data, index, size = {}, 0, 0
    while size < limit:
        data[f"{prefix}{index}"] = ""
        size += len(prefix) + 11
        index += 1
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hostile", **metadata}, "data": data}


def requests(limit=LIMIT):
    """Hand-picked worst cases: (name, method, path, content type, body). They expect a ConfigMap "large" in the
    namespace default with thousands of keys (`config_map("a", 900_000)` with that name)."""
    target = "/api/v1/namespaces/default/configmaps"
    dump = lambda value: json.dumps(value, separators=(",", ":"))
    many = lambda item, size: [item] * (size // (len(dump(item)) + 1))
    named = lambda value: dict(value, metadata=dict(value["metadata"], name="large"))
    yield ("invalid labels", "POST", target, "application/json",
           dump({"apiVersion": "v1", "kind": "ConfigMap",
                 "metadata": {"name": "hostile", "labels": {f"-{i}": "!" for i in range(limit // 12)}}}))
    yield "many keys", "POST", target + "?dryRun=All", "application/json", dump(config_map("k", limit * 2 // 3))
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "none", "uid": ""}
    yield ("owner references", "POST", target + "?dryRun=All", "application/json",
           dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hostile", "ownerReferences": [
               dict(reference, uid=f"{i:036d}") for i in range(min(limit // 100, 10_000))]}}))
    yield ("finalizers", "POST", target + "?dryRun=All", "application/json",
           dump({"apiVersion": "v1", "kind": "ConfigMap",
                 "metadata": {"name": "hostile", "finalizers": many("a/b", limit)}}))
    entry = lambda i: {"manager": f"m{i}", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                       "fieldsV1": {"f:data": {f"f:k{i}": {}}}}
    yield ("managedFields", "POST", target + "?dryRun=All", "application/json",
           dump({"apiVersion": "v1", "kind": "ConfigMap",
                 "metadata": {"name": "hostile", "managedFields": [entry(i) for i in range(limit // 150)]}}))
    yield ("a long manager name", "POST", target + "?dryRun=All", "application/json",
           dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hostile", "managedFields": [
               dict(entry(0), manager="\x01" * (limit // 7))]}}))
    for kind, name in ((MERGE, "merge"), (STRATEGIC, "strategic"), (APPLY, "apply")):
        query = "?fieldManager=m&dryRun=All" if kind == APPLY else "?dryRun=All"
        yield f"{name} patch of other keys", "PATCH", f"{target}/large{query}", kind, dump(named(config_map("b", limit // 4)))
    for op in ({"op": "test", "path": "", "value": {}}, {"op": "add", "path": "/data/x", "value": ""},
               {"op": "copy", "from": "/data", "path": "/binaryData"}, {"op": "move", "from": "/data", "path": "/data"},
               {"op": "replace", "path": "/data/a1", "value": "x"}, {"op": "remove", "path": "/data/none"}):
        yield f"10,000 times {op['op']}", "PATCH", f"{target}/large?dryRun=All", JSON_PATCH, dump([op] * 10_000)
    yield "deep nesting", "POST", target, "application/json", '{"data":' + "[" * (limit // 2)
    yield "one long string", "POST", target, "application/json", '{"a":"' + "\\u0041" * (limit // 7) + '"}'
    yield "duplicate keys", "POST", target + "?fieldValidation=Strict", "application/json", (
        '{"kind":"ConfigMap","apiVersion":"v1","data":{' + ",".join(['"a":""'] * (limit // 7)) + "}}")
    yield "unknown fields", "POST", target + "?fieldValidation=Strict", "application/json", (
        '{"kind":"ConfigMap","apiVersion":"v1",' + ",".join(f'"x{i}":1' for i in range(limit // 12)) + "}")
    yield "YAML flow", "POST", target, "application/yaml", "data: {" + ",".join(f"k{i}: v" for i in range(limit // 12)) + "}"
    yield "YAML aliases", "POST", target, "application/yaml", "a: &a [x,x,x,x,x,x,x,x]\n" + "\n".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]" for i in range(9))
    devices = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims?dryRun=All"
    expression = "(" * 500 + "true" + ")" * 500 + " && device.driver == 'x'" * 380
    yield ("CEL expressions", "POST", devices, "application/json", dump({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "hostile"},
        "spec": {"devices": {"requests": [{"name": f"r{i}", "exactly": {"deviceClassName": "c", "selectors": [
            {"cel": {"expression": expression}}] * 9}} for i in range(min(limit // 95_000, 32))]}}}))
    yield ("claim names", "POST", "/api/v1/namespaces/default/pods?dryRun=All", "application/json", dump({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hostile"}, "spec": {
            "resourceClaims": [{"name": f"c{i}", "resourceClaimName": "x"} for i in range(limit // 150)],
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [
                {"name": f"n{i}"} for i in range(limit // 60)]}}]}}))
    yield ("tolerations", "POST", "/api/v1/namespaces/default/pods?dryRun=All", "application/json", dump({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hostile"}, "spec": {
            "tolerations": [{"key": f"k{i}"} for i in range(limit // 20)], "containers": [{"name": "c", "image": "i"}]}}))
    ports = [{"name": f"p{i}", "port": i + 1} for i in range(min(limit // 40, 65_000))]
    for kind, more in (("NodePort", {}), ("LoadBalancer", {}), ("LoadBalancer", {"allocateLoadBalancerNodePorts": False})):
        yield (f"ports of a {kind}", "POST", "/api/v1/namespaces/default/services?dryRun=All", "application/json",
               dump({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hostile"},
                     "spec": dict(more, type=kind, ports=ports)}))
    long_list = ",".join(f"v{i}" for i in range(8_000))
    yield "a label selector", "GET", f"/api/v1/pods?labelSelector=a+notin+({long_list})", None, None
    terms = ",".join(f"metadata.name!=n{i}" for i in range(2_500))
    yield "a field selector", "GET", f"/api/v1/pods?fieldSelector={terms}", None, None
    yield ("a rule for everything", "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles?dryRun=All",
           "application/json", dump({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                                     "metadata": {"name": "hostile"}, "rules": many(
                                         {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}, limit)}))
