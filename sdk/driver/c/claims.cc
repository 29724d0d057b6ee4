// Claims and pods as callbacks see them, and the devices they return.
#include <new>

#include "claims/claim.h"
#include "sdk/driver/c/handles.h"

using namespace drakkar;
using namespace drakkar::driver::c;

drakkar_claim::drakkar_claim(const api::Object& claim, std::string_view driver_name)
    : namespace_name(claim.namespace_()),
      name(claim.name()),
      uid(claim.uid()),
      json(*claim.json()) {
  const auto keep = [&](std::string_view text) { return texts.emplace_back(text).c_str(); };
  for (const api::Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
    if (result["driver"].str() != driver_name) continue;
    const api::Value share = result["shareID"];
    devices.push_back({.request = keep(result["request"].str()),
                       .pool = keep(result["pool"].str()),
                       .device = keep(result["device"].str()),
                       .share_id = share.is_string() ? keep(share.str()) : nullptr});
  }
  for (const api::Value consumer : claim["status"]["reservedFor"].elements()) {
    if (claims::IsPod(consumer)) pod_uids.emplace_back(consumer["uid"].str());
  }
}

namespace {

driver::DeviceMetadata* MetadataOfLast(drakkar_prepare_result* result) {
  if (result == nullptr || result->devices.empty()) return nullptr;
  auto& described = result->devices.back().metadata;
  if (!described) described.emplace();
  return &*described;
}

// Sets an attribute of the most recently added device.
auto Setter(drakkar_prepare_result* result, const char* attribute) {
  return [result, attribute](metadata::AttributeValue value) {
    driver::DeviceMetadata* described = attribute == nullptr ? nullptr : MetadataOfLast(result);
    if (described == nullptr) return -1;
    described->attributes[attribute] = std::move(value);
    return 0;
  };
}

const char* Find(const std::map<std::string, std::string>& entries, const char* name) {
  const auto found = name == nullptr ? entries.end() : entries.find(name);
  return found == entries.end() ? nullptr : found->second.c_str();
}

}  // namespace

extern "C" {

const char* drakkar_claim_namespace(const drakkar_claim* claim) {
  return claim->namespace_name.c_str();
}
const char* drakkar_claim_name(const drakkar_claim* claim) {
  return claim->name.c_str();
}
const char* drakkar_claim_uid(const drakkar_claim* claim) {
  return claim->uid.c_str();
}
const char* drakkar_claim_json(const drakkar_claim* claim) {
  return claim->json.c_str();
}
size_t drakkar_claim_device_count(const drakkar_claim* claim) {
  return claim->devices.size();
}
drakkar_allocated_device drakkar_claim_device(const drakkar_claim* claim, size_t index) {
  return index < claim->devices.size() ? claim->devices[index] : drakkar_allocated_device{};
}
size_t drakkar_claim_pod_count(const drakkar_claim* claim) {
  return claim->pod_uids.size();
}
const char* drakkar_claim_pod_uid(const drakkar_claim* claim, size_t index) {
  return index < claim->pod_uids.size() ? claim->pod_uids[index].c_str() : nullptr;
}

const char* drakkar_pod_id(const drakkar_pod* pod) {
  return pod->pod.id.c_str();
}
const char* drakkar_pod_name(const drakkar_pod* pod) {
  return pod->pod.name.c_str();
}
const char* drakkar_pod_namespace(const drakkar_pod* pod) {
  return pod->pod.namespace_name.c_str();
}
const char* drakkar_pod_uid(const drakkar_pod* pod) {
  return pod->pod.uid.c_str();
}
size_t drakkar_pod_ip_count(const drakkar_pod* pod) {
  return pod->pod.ips.size();
}
const char* drakkar_pod_ip(const drakkar_pod* pod, size_t index) {
  return index < pod->pod.ips.size() ? pod->pod.ips[index].c_str() : nullptr;
}
const char* drakkar_pod_label(const drakkar_pod* pod, const char* name) {
  return Find(pod->pod.labels, name);
}
const char* drakkar_pod_annotation(const drakkar_pod* pod, const char* name) {
  return Find(pod->pod.annotations, name);
}
const char* drakkar_pod_linux_namespace(const drakkar_pod* pod, const char* type) {
  return Find(pod->pod.linux_namespaces, type);
}

drakkar_prepare_result* drakkar_prepare_result_new(void) {
  return new (std::nothrow) drakkar_prepare_result;
}

void drakkar_prepare_result_free(drakkar_prepare_result* result) {
  delete result;
}

int drakkar_prepare_result_add_device(drakkar_prepare_result* result,
                                      const drakkar_allocated_device* device,
                                      const char* const* cdi_ids, size_t cdi_id_count) {
  return Guarded(nullptr, [&] {
    if (result == nullptr || device == nullptr || device->pool == nullptr ||
        device->device == nullptr) {
      return -1;
    }
    driver::PreparedDevice prepared;
    if (!ReadTexts(cdi_ids, cdi_id_count, prepared.cdi_device_ids)) return -1;
    if (device->request != nullptr) prepared.request_names = {device->request};
    prepared.pool_name = device->pool;
    prepared.device_name = device->device;
    if (device->share_id != nullptr) prepared.share_id = device->share_id;
    result->devices.push_back(std::move(prepared));
    return 0;
  });
}

int drakkar_prepare_result_set_string(drakkar_prepare_result* result, const char* attribute,
                                      const char* value) {
  return Guarded(nullptr, [&] { return WithText(value, Setter(result, attribute)); });
}
int drakkar_prepare_result_set_version(drakkar_prepare_result* result, const char* attribute,
                                       const char* value) {
  return Guarded(nullptr, [&] { return WithVersion(value, Setter(result, attribute)); });
}
int drakkar_prepare_result_set_int(drakkar_prepare_result* result, const char* attribute,
                                   int64_t value) {
  return Guarded(nullptr, [&] { return Setter(result, attribute)(std::int64_t{value}); });
}
int drakkar_prepare_result_set_bool(drakkar_prepare_result* result, const char* attribute,
                                    int value) {
  return Guarded(nullptr, [&] { return Setter(result, attribute)(value != 0); });
}
int drakkar_prepare_result_set_strings(drakkar_prepare_result* result, const char* attribute,
                                       const char* const* values, size_t count) {
  return Guarded(nullptr, [&] { return WithTexts(values, count, Setter(result, attribute)); });
}
int drakkar_prepare_result_set_versions(drakkar_prepare_result* result, const char* attribute,
                                        const char* const* values, size_t count) {
  return Guarded(nullptr, [&] { return WithVersions(values, count, Setter(result, attribute)); });
}
int drakkar_prepare_result_set_ints(drakkar_prepare_result* result, const char* attribute,
                                    const int64_t* values, size_t count) {
  return Guarded(nullptr, [&] { return WithInts(values, count, Setter(result, attribute)); });
}
int drakkar_prepare_result_set_bools(drakkar_prepare_result* result, const char* attribute,
                                     const int* values, size_t count) {
  return Guarded(nullptr, [&] { return WithBools(values, count, Setter(result, attribute)); });
}

int drakkar_prepare_result_set_network(drakkar_prepare_result* result, const char* interface_name,
                                       const char* const* ips, size_t ip_count,
                                       const char* hardware_address) {
  return Guarded(nullptr, [&] {
    metadata::NetworkDeviceData network;
    if (!ReadNetwork(interface_name, ips, ip_count, hardware_address, network)) return -1;
    driver::DeviceMetadata* described = MetadataOfLast(result);
    if (described == nullptr) return -1;
    described->network_data = std::move(network);
    return 0;
  });
}

int drakkar_prepare_result_set_nothing(drakkar_prepare_result* result) {
  return Guarded(nullptr, [&] { return MetadataOfLast(result) == nullptr ? -1 : 0; });
}

}  // extern "C"
