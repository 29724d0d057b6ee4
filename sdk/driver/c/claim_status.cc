#include <new>

#include "api/json/reader.h"
#include "sdk/driver/c/handles.h"

using namespace drakkar;
using namespace drakkar::driver::c;

namespace {

driver::AllocatedDeviceStatus* Last(drakkar_claim_status* status) {
  return status == nullptr || status->devices.empty() ? nullptr : &status->devices.back();
}

}  // namespace

extern "C" {

drakkar_claim_status* drakkar_claim_status_new(void) {
  return new (std::nothrow) drakkar_claim_status;
}

void drakkar_claim_status_free(drakkar_claim_status* status) {
  delete status;
}

int drakkar_claim_status_add_device(drakkar_claim_status* status, const char* pool,
                                    const char* device, const char* share_id) {
  return Guarded(nullptr, [&] {
    if (status == nullptr || pool == nullptr || device == nullptr) return -1;
    driver::AllocatedDeviceStatus& added = status->devices.emplace_back();
    added.pool_name = pool;
    added.device_name = device;
    if (share_id != nullptr) added.share_id = share_id;
    return 0;
  });
}

int drakkar_claim_status_add_condition(drakkar_claim_status* status, const char* type,
                                       const char* value, const char* reason, const char* message) {
  return Guarded(nullptr, [&] {
    driver::AllocatedDeviceStatus* device = Last(status);
    if (device == nullptr || type == nullptr || value == nullptr || reason == nullptr) return -1;
    device->conditions.push_back({type, value, reason, Text(message)});
    return 0;
  });
}

int drakkar_claim_status_set_data(drakkar_claim_status* status, const char* json,
                                  drakkar_error* error) {
  return Guarded(error, [&] {
    driver::AllocatedDeviceStatus* device = Last(status);
    if (device == nullptr || json == nullptr)
      return Fail(error, "add a device first, and json must not be null");
    auto data = api::ParseJson(json);
    if (!data.ok()) return Fail(error, data.error().message);
    if (!(*data)->root().is_object()) return Fail(error, "json must be an object");
    device->data = *std::move(data);
    return 0;
  });
}

int drakkar_claim_status_set_network(drakkar_claim_status* status, const char* interface_name,
                                     const char* const* ips, size_t ip_count,
                                     const char* hardware_address) {
  return Guarded(nullptr, [&] {
    driver::AllocatedDeviceStatus* device = Last(status);
    metadata::NetworkDeviceData network;
    if (device == nullptr || !ReadNetwork(interface_name, ips, ip_count, hardware_address, network))
      return -1;
    device->network = std::move(network);
    return 0;
  });
}

}  // extern "C"
