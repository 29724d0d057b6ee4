#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "answers/cluster/snapshot.h"
#include "api/codec/yaml_reader.h"
#include "api/meta/time.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::answers::testing {

// The objects of a stream of YAML documents, by kind. Claims without a uid or resourceVersion and
// pods without a uid get one: "pod-NAME", "claim-NAME".
inline Snapshot FromYaml(std::string_view text, std::string_view now = "2026-01-01T12:00:00Z") {
  Snapshot snapshot;
  snapshot.now = api::ParseTime(now).value();
  const std::vector<api::TreePtr> documents = api::ParseYaml(text).value();
  for (const api::TreePtr& tree : documents) {
    api::Draft draft(tree);
    const std::string kind(tree->root()["kind"].str());
    const std::string name(tree->root()["metadata"]["name"].str());
    if (!tree->root()["metadata"]["uid"].exists()) {
      draft["metadata"]["uid"] = StrCat(kind == "Pod" ? "pod-" : "claim-", name);
    }
    if (!tree->root()["metadata"]["resourceVersion"].exists()) {
      draft["metadata"]["resourceVersion"] = "1";
    }
    const bool namespaced = kind == "Pod" || kind == "ResourceClaim";
    if (namespaced && !tree->root()["metadata"]["namespace"].exists()) {
      draft["metadata"]["namespace"] = "default";
    }
    const auto object = std::make_shared<const api::Object>(draft.Freeze());
    if (kind == "Node") snapshot.nodes.push_back(object);
    if (kind == "Pod") snapshot.pods.push_back(object);
    if (kind == "ResourceClaim") snapshot.claims.push_back(object);
    if (kind == "ResourceSlice") snapshot.slices.push_back(object);
    if (kind == "DeviceClass") snapshot.classes.push_back(object);
    if (kind == "DeviceTaintRule") snapshot.taint_rules.push_back(object);
    if (kind == "Namespace") snapshot.namespaces.push_back(object);
    if (kind == "Lease") snapshot.leases.push_back(object);
    if (kind == "Event") snapshot.events.push_back(object);
  }
  return snapshot;
}

// A node that is ready and has free resources.
inline std::string Node(std::string_view name, std::string_view spec = "{}") {
  return StrCat("---\nkind: Node\nmetadata: {name: ", name, "}\nspec: ", spec,
                "\nstatus: {allocatable: {cpu: 8, memory: 32Gi, pods: 110},"
                " conditions: [{type: Ready, status: 'True'}]}\n");
}

// `devices` is a YAML list.
inline std::string Slice(std::string_view node, std::string_view devices,
                         std::string_view driver = "gpu.example.com") {
  return StrCat("---\nkind: ResourceSlice\nmetadata: {name: ", node, "-", driver,
                "}\nspec:\n  driver: ", driver, "\n  nodeName: ", node, "\n  pool: {name: ", node,
                ", generation: 1, resourceSliceCount: 1}\n  devices: ", devices, "\n");
}

// An allocated claim with devices of a pool, for the request "gpu".
inline std::string HeldClaim(std::string_view name, std::string_view pool,
                             std::initializer_list<std::string_view> devices,
                             std::string_view pod = {}, std::string_view ns = "default") {
  std::string text =
      StrCat("---\nkind: ResourceClaim\nmetadata: {name: ", name, ", namespace: ", ns,
             ", creationTimestamp: '2026-01-01T09:00:00Z'}\n"
             "spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com,"
             " allocationMode: ExactCount, count: 1}}]}}\nstatus:\n  allocation:\n    devices:\n"
             "      results:\n");
  for (const std::string_view device : devices) {
    text += StrCat("      - {request: gpu, driver: gpu.example.com, pool: ", pool,
                   ", device: ", device, "}\n");
  }
  if (!pod.empty()) {
    text += StrCat("  reservedFor: [{resource: pods, name: ", pod, ", uid: pod-", pod, "}]\n");
  }
  return text;
}

inline std::string RunningPod(std::string_view name, std::string_view node,
                              std::string_view ns = "default", std::string_view metadata = {}) {
  return StrCat("---\nkind: Pod\nmetadata: {name: ", name, ", namespace: ", ns, metadata,
                "}\nspec: {nodeName: ", node,
                "}\nstatus: {phase: Running, startTime: '2026-01-01T10:00:00Z'}\n");
}

}  // namespace drakkar::answers::testing
