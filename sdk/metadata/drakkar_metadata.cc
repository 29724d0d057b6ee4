#include "sdk/metadata/drakkar_metadata.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "api/metadata/text.h"
#include "sdk/metadata/output.h"
#include "sdk/metadata/reader.h"

namespace {

namespace metadata = drakkar::metadata;

// Everything that a caller can point to is created when the metadata is read.
struct Attribute {
  std::string name;
  drakkar_metadata_type type;
  std::string text;
  std::vector<std::string> items;
  std::int64_t number = 0;
};

struct Device {
  std::string request;
  metadata::Device device;
  std::vector<Attribute> attributes;
};

struct Claim {
  metadata::DeviceMetadata metadata;
  std::vector<Device> devices;
};

struct ItemsOf {
  template <typename T>
  std::vector<std::string> operator()(const std::vector<T>& values) const {
    std::vector<std::string> items;
    for (const T& value : values) items.push_back(metadata::AttributeText(value));
    return items;
  }
  template <typename T>
  std::vector<std::string> operator()(const T& value) const {
    return {metadata::AttributeText(value)};
  }
};

Claim MakeClaim(metadata::DeviceMetadata read) {
  Claim claim;
  for (metadata::Request& request : read.requests) {
    for (metadata::Device& device : request.devices) {
      Device& entry = claim.devices.emplace_back();
      entry.request = request.name;
      for (const auto& [name, value] : device.attributes) {
        Attribute& attribute = entry.attributes.emplace_back();
        attribute.name = name;
        attribute.type = static_cast<drakkar_metadata_type>(value.index() + 1);
        attribute.text = metadata::AttributeText(value);
        attribute.items = std::visit(ItemsOf(), value);
        if (const auto* number = std::get_if<std::int64_t>(&value)) attribute.number = *number;
      }
      entry.device = std::move(device);
    }
  }
  claim.metadata = std::move(read);
  return claim;
}

drakkar_metadata_status Fail(const drakkar::Error& error, char** out) {
  if (out != nullptr) *out = ::strdup(error.message.c_str());
  switch (error.code) {
    case drakkar::ErrorCode::kNotFound:
      return DRAKKAR_METADATA_NOT_YET;
    case drakkar::ErrorCode::kDeadlineExceeded:
      return DRAKKAR_METADATA_TIMEOUT;
    case drakkar::ErrorCode::kInvalidArgument:
      return DRAKKAR_METADATA_INVALID;
    default:
      return DRAKKAR_METADATA_FAILED;
  }
}

}  // namespace

struct drakkar_metadata {
  std::vector<Claim> claims;
  std::vector<std::string> pending;

  const Device* Find(size_t claim, size_t device) const {
    if (claim >= claims.size() || device >= claims[claim].devices.size()) return nullptr;
    return &claims[claim].devices[device];
  }
  const Attribute* Find(size_t claim, size_t device, size_t attribute) const {
    const Device* found = Find(claim, device);
    if (found == nullptr || attribute >= found->attributes.size()) return nullptr;
    return &found->attributes[attribute];
  }
  const Attribute* Find(size_t claim, size_t device, const char* name) const {
    const Device* found = Find(claim, device);
    if (found == nullptr || name == nullptr) return nullptr;
    for (const Attribute& attribute : found->attributes) {
      if (attribute.name == name) return &attribute;
    }
    return nullptr;
  }
};

namespace {

drakkar_metadata_status Give(drakkar::Result<std::vector<metadata::DeviceMetadata>> read,
                             drakkar_metadata** out, char** error) {
  if (!read.ok()) return Fail(read.error(), error);
  auto result = std::make_unique<drakkar_metadata>();
  for (metadata::DeviceMetadata& one : *read) result->claims.push_back(MakeClaim(std::move(one)));
  *out = result.release();
  return DRAKKAR_METADATA_OK;
}

drakkar_metadata_status Give(drakkar::Result<metadata::DeviceMetadata> read, drakkar_metadata** out,
                             char** error) {
  if (!read.ok()) return Fail(read.error(), error);
  return Give(std::vector{*std::move(read)}, out, error);
}

drakkar::Duration Milliseconds(int64_t count) {
  return std::chrono::milliseconds(count > 0 ? count : 0);
}

bool Begin(drakkar_metadata** out, char** error) {
  if (error != nullptr) *error = nullptr;
  if (out == nullptr) return false;
  *out = nullptr;
  return true;
}

}  // namespace

extern "C" {

drakkar_metadata_status drakkar_metadata_read_file(const char* path, int64_t timeout_ms,
                                                   drakkar_metadata** out, char** error) {
  if (!Begin(out, error) || path == nullptr) {
    return Fail(drakkar::InvalidArgument("`path` and `metadata` must not be null"), error);
  }
  return Give(metadata::Reader().ReadFile(path, Milliseconds(timeout_ms)), out, error);
}

drakkar_metadata_status drakkar_metadata_read(const char* claim, const char* request,
                                              int64_t timeout_ms, drakkar_metadata** out,
                                              char** error) {
  if (!Begin(out, error) || claim == nullptr) {
    return Fail(drakkar::InvalidArgument("`claim` and `metadata` must not be null"), error);
  }
  return Give(metadata::Reader().ReadRequest(claim, request == nullptr ? "" : request,
                                             Milliseconds(timeout_ms)),
              out, error);
}

drakkar_metadata_status drakkar_metadata_read_all(int64_t timeout_ms, drakkar_metadata** out,
                                                  char** error) {
  if (!Begin(out, error)) {
    return Fail(drakkar::InvalidArgument("`metadata` must not be null"), error);
  }
  return Give(metadata::Reader().ReadAll(Milliseconds(timeout_ms)), out, error);
}

drakkar_metadata_status drakkar_metadata_read_available(const char* claim, const char* request,
                                                        int64_t timeout_ms, drakkar_metadata** out,
                                                        char** error) {
  if (!Begin(out, error)) {
    return Fail(drakkar::InvalidArgument("`metadata` must not be null"), error);
  }
  std::vector<std::string> pending;
  const drakkar::Duration timeout = Milliseconds(timeout_ms);
  const drakkar_metadata_status status =
      claim == nullptr ? Give(metadata::Reader().ReadAll(timeout, &pending), out, error)
                       : Give(metadata::Reader().ReadRequest(
                                  claim, request == nullptr ? "" : request, timeout, &pending),
                              out, error);
  if (status == DRAKKAR_METADATA_OK) (*out)->pending = std::move(pending);
  return status;
}

size_t drakkar_metadata_pending_count(const drakkar_metadata* metadata) {
  return metadata == nullptr ? 0 : metadata->pending.size();
}

const char* drakkar_metadata_get_pending(const drakkar_metadata* metadata, size_t index) {
  if (metadata == nullptr || index >= metadata->pending.size()) return nullptr;
  return metadata->pending[index].c_str();
}

void drakkar_metadata_free(drakkar_metadata* metadata) {
  delete metadata;
}

void drakkar_metadata_free_text(char* text) {
  std::free(text);
}

size_t drakkar_metadata_claim_count(const drakkar_metadata* metadata) {
  return metadata->claims.size();
}

drakkar_metadata_status drakkar_metadata_get_claim(const drakkar_metadata* metadata, size_t claim,
                                                   drakkar_metadata_claim* out) {
  if (claim >= metadata->claims.size()) return DRAKKAR_METADATA_INVALID;
  const Claim& found = metadata->claims[claim];
  out->name = found.metadata.claim_name.c_str();
  out->namespace_name = found.metadata.claim_namespace.c_str();
  out->uid = found.metadata.claim_uid.c_str();
  const auto& pod_claim_name = found.metadata.pod_claim_name;
  out->pod_claim_name = pod_claim_name.has_value() ? pod_claim_name->c_str() : nullptr;
  out->generation = found.metadata.generation;
  out->device_count = found.devices.size();
  return DRAKKAR_METADATA_OK;
}

drakkar_metadata_status drakkar_metadata_get_device(const drakkar_metadata* metadata, size_t claim,
                                                    size_t device, drakkar_metadata_device* out) {
  const Device* found = metadata->Find(claim, device);
  if (found == nullptr) return DRAKKAR_METADATA_INVALID;
  out->request = found->request.c_str();
  out->driver = found->device.driver.c_str();
  out->pool = found->device.pool.c_str();
  out->name = found->device.name.c_str();
  out->attribute_count = found->attributes.size();
  const auto& network = found->device.network_data;
  out->has_network_data = network.has_value() ? 1 : 0;
  out->interface_name = network.has_value() ? network->interface_name.c_str() : nullptr;
  out->hardware_address = network.has_value() ? network->hardware_address.c_str() : nullptr;
  out->ip_count = network.has_value() ? network->ips.size() : 0;
  return DRAKKAR_METADATA_OK;
}

const char* drakkar_metadata_get_ip(const drakkar_metadata* metadata, size_t claim, size_t device,
                                    size_t ip) {
  const Device* found = metadata->Find(claim, device);
  if (found == nullptr || !found->device.network_data.has_value() ||
      ip >= found->device.network_data->ips.size()) {
    return nullptr;
  }
  return found->device.network_data->ips[ip].c_str();
}

drakkar_metadata_status drakkar_metadata_get_attribute(const drakkar_metadata* metadata,
                                                       size_t claim, size_t device,
                                                       size_t attribute,
                                                       drakkar_metadata_attribute* out) {
  const Attribute* found = metadata->Find(claim, device, attribute);
  if (found == nullptr) return DRAKKAR_METADATA_INVALID;
  out->name = found->name.c_str();
  out->type = found->type;
  out->count = found->items.size();
  out->text = found->text.c_str();
  return DRAKKAR_METADATA_OK;
}

const char* drakkar_metadata_get_item(const drakkar_metadata* metadata, size_t claim, size_t device,
                                      size_t attribute, size_t item) {
  const Attribute* found = metadata->Find(claim, device, attribute);
  if (found == nullptr || item >= found->items.size()) return nullptr;
  return found->items[item].c_str();
}

const char* drakkar_metadata_attribute_text(const drakkar_metadata* metadata, size_t claim,
                                            size_t device, const char* name) {
  const Attribute* found = metadata->Find(claim, device, name);
  return found == nullptr ? nullptr : found->text.c_str();
}

drakkar_metadata_status drakkar_metadata_attribute_int(const drakkar_metadata* metadata,
                                                       size_t claim, size_t device,
                                                       const char* name, int64_t* out) {
  const Attribute* found = metadata->Find(claim, device, name);
  if (found == nullptr || found->type != DRAKKAR_METADATA_INT) return DRAKKAR_METADATA_INVALID;
  *out = found->number;
  return DRAKKAR_METADATA_OK;
}

}  // extern "C"
