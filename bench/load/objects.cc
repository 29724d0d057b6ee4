#include "bench/load/objects.h"

#include "base/text/text.h"

namespace drakkar::load {

std::string NodeName(std::size_t node) {
  return StrCat("scheduler-perf-dra-", node);
}

std::string NamespaceJson(std::string_view name) {
  return StrCat(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")", name, R"("}})");
}

std::string NodeJson(std::size_t node) {
  constexpr std::string_view kAmounts = R"({"cpu":"4","memory":"32Gi","pods":"110"})";
  return StrCat(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")", NodeName(node),
                R"(","labels":{"node-with-dra":"true"}},"status":{"capacity":)", kAmounts,
                R"(,"allocatable":)", kAmounts,
                R"(,"conditions":[{"type":"Ready","status":"True"}]}})");
}

std::string ClassJson(std::string_view name, std::string_view driver) {
  return StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":")",
                name, R"("},"spec":{"selectors":[{"cel":{"expression":"device.driver == \")",
                driver, R"(\""}}]}})");
}

std::string SliceJson(std::string_view name, std::size_t node, std::string_view driver,
                      std::size_t slices_in_pool, std::string_view devices, std::string_view more) {
  return StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")",
                name, R"("},"spec":{"driver":")", driver, R"(","nodeName":")", NodeName(node),
                R"(","pool":{"name":")", NodeName(node),
                R"(","generation":1,"resourceSliceCount":)", slices_in_pool, "}",
                devices.empty() ? std::string() : StrCat(R"(,"devices":[)", devices, "]"), more,
                "}}");
}

std::string BasicDevices(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    const bool odd = i % 2 == 1;
    out +=
        StrCat(i > 0 ? "," : "", R"({"name":"basic-device-)", i, R"(","attributes":{)",
               R"("driver":{"string":"xe"},"driverVersion":{"version":"1.2.3"},)",
               R"("resource.k8s.io/pciRoot":{"string":")", odd ? "1" : "0", R"("},)",
               R"("pciRoot":{"string":")", odd ? "01" : "00", R"("},)",
               R"("resource.kubernetes.io/pciRoot":{"string":"pci0000:)", odd ? "01" : "00",
               R"("},)", R"("family":{"string":"Arc Pro B-Series"},"health":{"string":"Healthy"},)",
               R"("model":{"string":"B60"},"pciAddress":{"string":"0000:0)", i, R"(:00.0"},)",
               R"("resource.kubernetes.io/pciBusID":{"string":"0000:0)", i, R"(:00.0"},)",
               R"("pciId":{"string":"0xe211"},"sriov":{"bool":true},"type":{"string":"gpu"}},)",
               R"("capacity":{"memory":{"value":"24480Mi"},"millicores":{"value":"1k"}}})");
  }
  return out;
}

std::string ClaimSpec(std::string_view requests, std::string_view more) {
  return StrCat(R"({"devices":{"requests":[)", requests, "]", more, "}}");
}

std::string OneDevice(std::string_view device_class) {
  return StrCat(R"({"name":"req-0","exactly":{"deviceClassName":")", device_class, R"("}})");
}

std::string TemplateJson(std::string_view name, std::string_view spec) {
  return StrCat(
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":")",
      name, R"("},"spec":{"spec":)", spec, "}}");
}

std::string ClaimJson(std::string_view name, std::string_view spec) {
  return StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{)",
                name.empty() ? std::string(R"("generateName":"claim-")")
                             : StrCat(R"("name":")", name, R"(")"),
                R"(},"spec":)", spec, "}");
}

namespace {

std::string Pod(std::string_view source, std::string_view name) {
  return StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"test-dra"},"spec":{)",
      R"("containers":[{"name":"test-container","image":"registry.k8s.io/pause:3.10",)",
      R"("resources":{"claims":[{"name":"resource"}]}}],"resourceClaims":[{"name":"resource",")",
      source, R"(":")", name, R"("}]}})");
}

}  // namespace

std::string PodWithTemplate(std::string_view template_name) {
  return Pod("resourceClaimTemplateName", template_name);
}

std::string PodWithClaim(std::string_view claim) {
  return Pod("resourceClaimName", claim);
}

std::string AllocationPatch(std::size_t node, std::size_t device) {
  return StrCat(
      R"({"status":{"allocation":{"devices":{"results":[{"request":"req-0","driver":")", kDriver,
      R"(","pool":")", NodeName(node), R"(","device":"basic-device-)", device,
      R"("}]},"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name",)",
      R"("operator":"In","values":[")", NodeName(node), R"("]}]}]}}}})");
}

std::string ConditionPatch(std::string_view driver, std::string_view pool, std::string_view device,
                           std::string_view condition) {
  return StrCat(R"({"status":{"devices":[{"driver":")", driver, R"(","pool":")", pool,
                R"(","device":")", device, R"(","conditions":[{"type":")", condition,
                R"(","status":"True","reason":"Attached","message":"",)",
                R"("lastTransitionTime":"2026-01-01T00:00:00Z"}]}]}})");
}

}  // namespace drakkar::load
