#include "apiserver/testing/random_resources.h"

#include "base/text/text.h"

namespace drakkar::apiserver {

using api::Draft;

namespace {

constexpr std::string_view kDriver = "gpu.example.com";
constexpr std::string_view kDerived = "gpu.example.com/derived";
constexpr std::string_view kTime = "2025-06-07T08:09:10Z";
constexpr std::string_view kShare = "11111111-2222-4333-8444-555555555555";

}  // namespace

Draft RandomResources::Metadata() {
  Draft metadata({{"name", StrCat("object-", Below(1000))}});
  if (Maybe()) metadata["labels"].Entry("example.com/label") = "value";
  if (Maybe()) metadata["annotations"]["note"] = "any text: \"quoted\"\n- é";
  if (Maybe()) metadata["finalizers"].Append("example.com/finalizer");
  return metadata;
}

Draft RandomResources::NodeSelector() {
  Draft expression({{"key", "zone"}, {"operator", "In"}});
  expression["values"].Append("a");
  Draft field({{"key", "metadata.name"}, {"operator", "In"}});
  field["values"].Append("node-1");
  Draft term = Draft::Object();
  const bool by_field = Maybe();
  if (by_field) term["matchFields"].Append(std::move(field));
  if (!by_field || Maybe()) term["matchExpressions"].Append(std::move(expression));
  Draft selector = Draft::Object();
  selector["nodeSelectorTerms"].Append(std::move(term));
  return selector;
}

void RandomResources::AddNode(Draft& owner) {
  switch (Below(3)) {
    case 0:
      owner["nodeName"] = "node-1";
      break;
    case 1:
      owner["nodeSelector"] = NodeSelector();
      break;
    default:
      owner["allNodes"] = true;
  }
}

void RandomResources::AddBindingConditions(Draft& owner) {
  if (Maybe()) owner["bindingConditions"].Append("example.com/attached");
  if (Maybe()) owner["bindingFailureConditions"].Append("example.com/failed");
}

Draft RandomResources::SkipOperations() {
  switch (Below(5)) {
    case 0:
      return Draft(true);
    case 1:
      return Draft(false);
    case 2:
      return Draft::Array({Draft("*")});
    case 3:
      return Draft::Array({Draft("NodeUnprepareResources")});
    default:
      return Draft::Array({Draft("NodePrepareResources"), Draft("NodeUnprepareResources")});
  }
}

Draft RandomResources::Counters() {
  return Draft::Map({{"memory", Draft({{"value", StrCat(Below(64) + 1, "Gi")}})}});
}

Draft RandomResources::Taint() {
  Draft taint({{"key", "example.com/broken"}, {"timeAdded", kTime}});
  if (Maybe()) taint["value"] = "yes";
  constexpr std::string_view kEffects[] = {"None", "NoSchedule", "NoExecute"};
  taint["effect"] = kEffects[Below(3)];
  return taint;
}

Draft RandomResources::Toleration() {
  Draft toleration({{"key", "example.com/broken"}});
  if (Maybe()) {
    toleration["operator"] = "Exists";
  } else {
    toleration["operator"] = "Equal";
    toleration["value"] = "yes";
  }
  if (Maybe()) {
    toleration["effect"] = "NoExecute";
    toleration["tolerationSeconds"] = Below(100);
  }
  return toleration;
}

Draft RandomResources::Attribute() {
  Draft attribute = Draft::Object();
  switch (Below(8)) {
    case 0:
      attribute["int"] = Below(2) == 0 ? std::int64_t{-7} : std::int64_t{1} << 52;
      break;
    case 1:
      attribute["bool"] = Maybe();
      break;
    case 2:
      attribute["string"] = Maybe() ? "A100: \"x\" é" : "12";
      break;
    case 3:
      attribute["version"] = "1.2.3-beta.1+build";
      break;
    case 4:
      attribute["ints"] = Draft::Array({Draft(0), Draft(-1)});
      break;
    case 5:
      attribute["bools"] = Draft::Array({Draft(false), Draft(true)});
      break;
    case 6:
      attribute["strings"] = Draft::Array({Draft("a"), Draft("true")});
      break;
    default:
      attribute["versions"] = Draft::Array({Draft("1.0.0"), Draft("2.0.0")});
  }
  return attribute;
}

void RandomResources::AddCapacity(Draft& device) {
  Draft& capacity = device["capacity"].Entry("gpu.example.com/memory");
  capacity["value"] = "8";
  if (!device["allowMultipleAllocations"].boolean()) return;
  Draft& policy = capacity["requestPolicy"];
  policy["default"] = "2";
  if (Maybe()) {
    policy["validValues"] = Draft::Array({Draft("2"), Draft("4")});
  } else {
    policy["validRange"] = Draft({{"min", "1"}, {"max", "8"}, {"step", "1"}});
  }
}

Draft RandomResources::Device(int index, bool selects_node) {
  Draft device({{"name", StrCat("device-", index)}});
  if (selects_node) AddNode(device);
  for (int i = Below(3); i > 0; --i)
    device["attributes"].Entry(StrCat("attribute", i)) = Attribute();
  if (Maybe()) device["allowMultipleAllocations"] = Maybe();
  if (Maybe()) AddCapacity(device);
  if (Maybe()) device["taints"].Append(Taint());
  if (Maybe()) device["bindsToNode"] = Maybe();
  AddBindingConditions(device);
  if (Maybe()) {
    Draft consumption({{"counterSet", "set"}, {"counters", Counters()}});
    if (Maybe()) consumption["compatibilityGroups"].Append("group");
    device["consumesCounters"].Append(std::move(consumption));
  }
  if (Maybe()) {
    Draft& resource = device["nodeAllocatableResources"].Entry("memory");
    if (!device.Has("capacity") || Maybe()) {
      resource["mapping"]["deviceMultiplier"] = "1";
    } else {
      resource["mapping"] =
          Draft({{"capacityKey", "gpu.example.com/memory"}, {"capacityMultiplier", "2"}});
    }
    if (Maybe()) resource["overhead"] = Draft({{"perPod", "1Mi"}, {"perContainer", "2Mi"}});
  }
  return device;
}

Draft RandomResources::Slice() {
  Draft spec({{"driver", kDriver},
              {"pool", Draft({{"name", "pool/a"},
                              {"generation", Below(5)},
                              {"resourceSliceCount", Below(3) + 1}})}});
  const bool selects_node = Below(4) == 0;
  if (selects_node) {
    spec["perDeviceNodeSelection"] = true;
  } else {
    AddNode(spec);
  }
  if (Maybe()) spec["skipNodeOperations"] = SkipOperations();
  if (Below(4) == 0) {
    spec["sharedCounters"].Append(Draft({{"name", "set"}, {"counters", Counters()}}));
    return spec;
  }
  for (int i = Below(4); i > 0; --i) spec["devices"].Append(Device(i, selects_node));
  if (Below(4) == 0) {
    // Every device that consumes counters has a type attribute.
    Draft device = Device(9, selects_node);
    device["consumesCounters"] =
        Draft::Array({Draft({{"counterSet", "set"}, {"counters", Counters()}})});
    spec["devices"] = Draft::Array({std::move(device)});
    spec["devices"].at(0)["attributes"].Entry("gpu.example.com/type")["string"] = "half";
    spec["partitionTypeAttribute"] = "gpu.example.com/type";
  }
  return spec;
}

Draft RandomResources::Selectors() {
  Draft expression({{"expression", "device.driver == \"gpu.example.com\""}});
  return Draft::Array({Draft({{"cel", std::move(expression)}})});
}

Draft RandomResources::Opaque() {
  return Draft({{"driver", kDriver},
                {"parameters", Draft::Raw(R"({"kind":"X","list":[null,true],"n":1})")}});
}

Draft RandomResources::Request() {
  Draft request({{"deviceClassName", kDriver}});
  if (Maybe()) request["selectors"] = Selectors();
  if (Maybe()) {
    request["allocationMode"] = "ExactCount";
    request["count"] = Below(4) + 1;
  } else {
    request["allocationMode"] = "All";
  }
  if (Maybe()) request["tolerations"].Append(Toleration());
  if (Maybe()) request["capacity"]["requests"].Entry("gpu.example.com/memory") = "2Gi";
  return request;
}

Draft RandomResources::ClaimSpec() {
  Draft devices = Draft::Object();
  Draft& requests = devices["requests"];
  const int count = Below(3) + 1;
  const bool derived = Below(4) == 0;
  const auto derive = [&](Draft& request) {
    request["derivedAttributes"].Append(
        Draft({{"name", kDerived}, {"expression", "device.driver"}}));
  };
  for (int i = 0; i < count; ++i) {
    Draft request({{"name", StrCat("request-", i)}});
    Draft body = Request();
    if (derived) derive(body);
    if (Maybe()) {
      if (Maybe()) body["adminAccess"] = Maybe();
      request["exactly"] = std::move(body);
    } else {
      body["name"] = "first";
      request["firstAvailable"].Append(std::move(body));
    }
    requests.Append(std::move(request));
  }
  if (derived) devices["constraints"].Append(Draft({{"matchAttribute", kDerived}}));
  if (Maybe()) {
    Draft constraint = Draft::Object();
    if (Maybe()) constraint["requests"].Append("request-0");
    constraint[Maybe() ? api::FieldName("matchAttribute") : api::FieldName("distinctAttribute")] =
        "gpu.example.com/numa";
    devices["constraints"].Append(std::move(constraint));
  }
  if (Maybe()) {
    Draft config({{"opaque", Opaque()}});
    if (Maybe()) config["requests"].Append("request-0");
    devices["config"].Append(std::move(config));
  }
  return Draft({{"devices", std::move(devices)}});
}

Draft RandomResources::Condition(std::string_view type) {
  Draft condition({{"type", type},
                   {"status", "True"},
                   {"lastTransitionTime", kTime},
                   {"reason", "Because"},
                   {"message", "a\tmessage"}});
  if (Maybe()) condition["observedGeneration"] = Below(5) + 1;
  return condition;
}

Draft RandomResources::ClaimStatus(Draft& spec) {
  Draft status = Draft::Object();
  if (Below(4) == 0) return status;
  Draft& request = spec["devices"]["requests"].at(0);
  Draft result({{"request", request.Has("exactly") ? "request-0" : "request-0/first"},
                {"driver", kDriver},
                {"pool", "pool/a"},
                {"device", "device-1"}});
  const bool shared = Maybe();
  if (shared) {
    result["shareID"] = kShare;
    result["consumedCapacity"].Entry("gpu.example.com/memory") = "2Gi";
  }
  if (Maybe()) result["adminAccess"] = Maybe();
  if (Maybe()) result["tolerations"].Append(Toleration());
  if (Maybe()) result["skipNodeOperations"] = SkipOperations();
  AddBindingConditions(result);
  Draft& allocation = status["allocation"];
  allocation["devices"]["results"].Append(std::move(result));
  if (Maybe()) {
    Draft config({{"source", Maybe() ? "FromClass" : "FromClaim"}, {"opaque", Opaque()}});
    if (Maybe()) config["requests"].Append("request-0");
    allocation["devices"]["config"].Append(std::move(config));
  }
  if (Maybe()) allocation["nodeSelector"] = NodeSelector();
  if (Maybe()) allocation["allocationTimestamp"] = kTime;
  if (Maybe()) {
    Draft consumer({{"resource", "pods"}, {"name", "pod"}, {"uid", "u-1"}});
    if (Maybe()) consumer["apiGroup"] = "example.com";
    status["reservedFor"].Append(std::move(consumer));
  }
  if (Maybe()) {
    Draft device({{"driver", kDriver}, {"pool", "pool/a"}, {"device", "device-1"}});
    if (shared) device["shareID"] = kShare;
    if (Maybe()) device["conditions"].Append(Condition("example.com/attached"));
    if (Maybe()) device["data"] = Draft::Raw(R"({"x":{"y":1}})");
    if (Maybe()) {
      device["networkData"] = Draft({{"interfaceName", "eth0"},
                                     {"hardwareAddress", "02:00:00:00:00:01"},
                                     {"ips", Draft::Array({Draft("10.0.0.1/24")})}});
    }
    status["devices"].Append(std::move(device));
  }
  return status;
}

Draft RandomResources::Make(std::string_view kind) {
  Draft object({{"apiVersion", "resource.k8s.io/v1"}, {"kind", kind}, {"metadata", Metadata()}});
  if (kind == "ResourceSlice") {
    object["spec"] = Slice();
  } else if (kind == "ResourceClaim") {
    object["metadata"]["namespace"] = "default";
    object["spec"] = ClaimSpec();
    object["status"] = ClaimStatus(object["spec"]);
  } else if (kind == "ResourceClaimTemplate") {
    object["metadata"]["namespace"] = "default";
    object["spec"]["spec"] = ClaimSpec();
    if (Maybe()) object["spec"]["metadata"]["labels"].Entry("a") = "b";
  } else if (kind == "DeviceClass") {
    object["spec"] = Draft::Object();
    if (Maybe()) object["spec"]["selectors"] = Selectors();
    if (Maybe()) object["spec"]["config"].Append(Draft({{"opaque", Opaque()}}));
    if (Maybe()) object["spec"]["extendedResourceName"] = "example.com/gpu";
  } else {
    object["spec"]["taint"] = Taint();
    if (Maybe()) {
      Draft& selector = object["spec"]["deviceSelector"];
      selector = Draft::Object();
      if (Maybe()) selector["driver"] = kDriver;
      if (Maybe()) selector["pool"] = "pool/a";
      if (Maybe()) selector["device"] = "device-1";
    }
    if (Maybe()) object["status"]["conditions"].Append(Condition("EvictionInProgress"));
  }
  return object;
}

}  // namespace drakkar::apiserver
