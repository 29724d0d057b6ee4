// The devices a driver publishes.
#include <new>

#include "api/json/reader.h"
#include "sdk/driver/attributes/pci.h"
#include "sdk/driver/c/handles.h"

using namespace drakkar;
using namespace drakkar::driver::c;

driver::Device* drakkar_resources::Find(const char* pool, const char* device) {
  if (pool == nullptr || device == nullptr) return nullptr;
  const auto found = resources.pools.find(pool);
  if (found == resources.pools.end() || found->second.slices.empty()) return nullptr;
  for (driver::Device& each : found->second.slices.front().devices) {
    if (each.name == device) return &each;
  }
  return nullptr;
}

driver::Slice& drakkar_resources::SliceOf(const char* pool) {
  driver::Pool& entry = resources.pools[pool];
  if (entry.slices.empty()) entry.slices.emplace_back();
  return entry.slices.front();
}

namespace {

auto Setter(drakkar_resources* resources, const char* pool, const char* device,
            const char* attribute) {
  return [=](metadata::AttributeValue value) {
    driver::Device* found = resources == nullptr ? nullptr : resources->Find(pool, device);
    if (found == nullptr || attribute == nullptr) return -1;
    found->attributes[attribute] = std::move(value);
    return 0;
  };
}

// Reads a JSON object, or fails.
int ReadObject(const char* json, api::TreePtr& out, drakkar_error* error) {
  if (json == nullptr) return Fail(error, "json must not be null");
  auto tree = api::ParseJson(json);
  if (!tree.ok()) return Fail(error, tree.error().message);
  if (!(*tree)->root().is_object()) return Fail(error, "json must be an object");
  out = *std::move(tree);
  return 0;
}

}  // namespace

extern "C" {

drakkar_resources* drakkar_resources_new(void) {
  return new (std::nothrow) drakkar_resources;
}

void drakkar_resources_free(drakkar_resources* resources) {
  delete resources;
}

int drakkar_resources_add_device(drakkar_resources* resources, const char* pool,
                                 const char* device) {
  return Guarded(nullptr, [&] {
    if (resources == nullptr || pool == nullptr || device == nullptr) return -1;
    if (resources->Find(pool, device) != nullptr) return 0;
    resources->SliceOf(pool).devices.push_back({.name = device});
    return 0;
  });
}

int drakkar_resources_set_string(drakkar_resources* resources, const char* pool, const char* device,
                                 const char* attribute, const char* value) {
  return Guarded(nullptr,
                 [&] { return WithText(value, Setter(resources, pool, device, attribute)); });
}
int drakkar_resources_set_version(drakkar_resources* resources, const char* pool,
                                  const char* device, const char* attribute, const char* value) {
  return Guarded(nullptr,
                 [&] { return WithVersion(value, Setter(resources, pool, device, attribute)); });
}
int drakkar_resources_set_int(drakkar_resources* resources, const char* pool, const char* device,
                              const char* attribute, int64_t value) {
  return Guarded(nullptr,
                 [&] { return Setter(resources, pool, device, attribute)(std::int64_t{value}); });
}
int drakkar_resources_set_bool(drakkar_resources* resources, const char* pool, const char* device,
                               const char* attribute, int value) {
  return Guarded(nullptr, [&] { return Setter(resources, pool, device, attribute)(value != 0); });
}
int drakkar_resources_set_strings(drakkar_resources* resources, const char* pool,
                                  const char* device, const char* attribute,
                                  const char* const* values, size_t count) {
  return Guarded(nullptr, [&] {
    return WithTexts(values, count, Setter(resources, pool, device, attribute));
  });
}
int drakkar_resources_set_versions(drakkar_resources* resources, const char* pool,
                                   const char* device, const char* attribute,
                                   const char* const* values, size_t count) {
  return Guarded(nullptr, [&] {
    return WithVersions(values, count, Setter(resources, pool, device, attribute));
  });
}
int drakkar_resources_set_ints(drakkar_resources* resources, const char* pool, const char* device,
                               const char* attribute, const int64_t* values, size_t count) {
  return Guarded(
      nullptr, [&] { return WithInts(values, count, Setter(resources, pool, device, attribute)); });
}
int drakkar_resources_set_bools(drakkar_resources* resources, const char* pool, const char* device,
                                const char* attribute, const int* values, size_t count) {
  return Guarded(nullptr, [&] {
    return WithBools(values, count, Setter(resources, pool, device, attribute));
  });
}

int drakkar_resources_set_capacity(drakkar_resources* resources, const char* pool,
                                   const char* device, const char* name, const char* quantity) {
  return Guarded(nullptr, [&] {
    driver::Device* found = resources == nullptr ? nullptr : resources->Find(pool, device);
    if (found == nullptr || name == nullptr || quantity == nullptr) return -1;
    found->capacity[name] = quantity;
    return 0;
  });
}

int drakkar_resources_set_pci(drakkar_resources* resources, const char* pool, const char* device,
                              const char* bus_id, drakkar_error* error) {
  return Guarded(error, [&] {
    driver::Device* found = resources == nullptr ? nullptr : resources->Find(pool, device);
    if (found == nullptr || bus_id == nullptr) return Fail(error, "no such device");
    return Answer(driver::AddPciAttributes({.files = RealFileSystem()}, bus_id, *found), error);
  });
}

int drakkar_resources_add_taint(drakkar_resources* resources, const char* pool, const char* device,
                                const char* key, const char* value, const char* effect) {
  return Guarded(nullptr, [&] {
    driver::Device* found = resources == nullptr ? nullptr : resources->Find(pool, device);
    if (found == nullptr || key == nullptr || effect == nullptr) return -1;
    found->taints.push_back({.key = key, .value = Text(value), .effect = effect});
    return 0;
  });
}

int drakkar_resources_set_binding(drakkar_resources* resources, const char* pool,
                                  const char* device, int binds_to_node,
                                  const char* const* conditions, size_t condition_count,
                                  const char* const* failure_conditions,
                                  size_t failure_condition_count) {
  return Guarded(nullptr, [&] {
    driver::Device* found = resources == nullptr ? nullptr : resources->Find(pool, device);
    std::vector<std::string> wanted, failures;
    if (found == nullptr || !ReadTexts(conditions, condition_count, wanted) ||
        !ReadTexts(failure_conditions, failure_condition_count, failures)) {
      return -1;
    }
    found->binds_to_node = binds_to_node != 0;
    found->binding_conditions = std::move(wanted);
    found->binding_failure_conditions = std::move(failures);
    return 0;
  });
}

int drakkar_resources_set_json(drakkar_resources* resources, const char* pool, const char* device,
                               const char* json, drakkar_error* error) {
  return Guarded(error, [&] {
    driver::Device* found = resources == nullptr ? nullptr : resources->Find(pool, device);
    if (found == nullptr) return Fail(error, "no such device");
    return ReadObject(json, found->more, error);
  });
}

int drakkar_resources_set_all_nodes(drakkar_resources* resources, const char* pool) {
  return Guarded(nullptr, [&] {
    if (resources == nullptr || pool == nullptr) return -1;
    resources->resources.pools[pool].all_nodes = true;
    return 0;
  });
}

int drakkar_resources_set_node_selector(drakkar_resources* resources, const char* pool,
                                        const char* json, drakkar_error* error) {
  return Guarded(error, [&] {
    if (resources == nullptr || pool == nullptr)
      return Fail(error, "resources and pool must not be null");
    return ReadObject(json, resources->resources.pools[pool].node_selector, error);
  });
}

int drakkar_resources_skip_node_operations(drakkar_resources* resources, const char* pool,
                                           const char* const* operations, size_t count) {
  return Guarded(nullptr, [&] {
    std::vector<std::string> names;
    if (resources == nullptr || pool == nullptr || !ReadTexts(operations, count, names)) return -1;
    resources->SliceOf(pool).skip_node_operations = std::move(names);
    return 0;
  });
}

}  // extern "C"
