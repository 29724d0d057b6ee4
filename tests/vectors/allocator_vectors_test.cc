#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <set>

#include "allocator/allocator.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/env/file_system.h"
#include "base/text/text.h"
#include "device/cel_expressions.h"
#include "device/from_api.h"
#include "device/to_api.h"
#include "tests/vectors/allocator_deviations.h"

namespace drakkar::vectors {
namespace {

using allocator::Allocation;
using allocator::Allocator;
using allocator::Outcome;
using allocator::Unsatisfiable;
using api::Value;

allocator::Features ReadFeatures(Value names) {
  allocator::Features features;
  const std::map<std::string_view, bool*> known = {
      {"DRAAdminAccess", &features.admin_access},
      {"DRAConsumableCapacity", &features.consumable_capacity},
      {"DRADerivedAttributes", &features.derived_attributes},
      {"DRADeviceBindingConditions+DRAResourceClaimDeviceStatus",
       &features.device_binding_and_status},
      {"DRADeviceCompatibilityGroups", &features.compatibility_groups},
      {"DRADeviceTaints", &features.device_taints},
      {"DRAFractionalCapacityRange", &features.fractional_capacity_range},
      {"DRAListTypeAttributes", &features.list_type_attributes},
      {"DRAOptionalNodeOperations", &features.optional_node_operations},
      {"DRAPartitionableDevices", &features.partitionable_devices},
      {"DRAPrioritizedList", &features.prioritized_list},
  };
  for (const Value name : names.elements()) {
    const auto found = known.find(name.str());
    if (found == known.end()) {
      ADD_FAILURE() << "unknown feature " << name.str();
    } else {
      *found->second = true;
    }
  }
  return features;
}

// Share IDs are random; everything else must agree.
void DropShareIds(api::Draft& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    api::Draft* devices = results.at(i).Find("devices");
    api::Draft* list = devices == nullptr ? nullptr : devices->Find("results");
    for (std::size_t k = 0; list != nullptr && k < list->size(); ++k) {
      if (list->at(k).Find("shareID") != nullptr) list->at(k)["shareID"] = "*";
    }
  }
}

std::string Canonical(api::Draft results) {
  DropShareIds(results);
  const api::TreePtr tree = results.Freeze();
  // A round trip turns opaque parameters from bytes into values.
  const auto read = api::ParseJson(api::WriteJson(tree->root()));
  return api::WriteJson((*read)->root(), {.sort_members = true});
}

std::string Expected(Value vector) {
  if (vector["error"].has_value()) return StrCat("error: ", vector["error"].str());
  if (!vector["results"].has_value() || vector["results"].size() == 0) {
    return vector["claims"].size() == 0 ? "[]" : "does not fit";
  }
  return Canonical(api::Draft(vector["results"]));
}

device::DeviceId ReadId(Value value) {
  return {std::string(value["driver"].str()), std::string(value["pool"].str()),
          std::string(value["device"].str())};
}

std::string Actual(Value vector) {
  device::Inventory inventory;
  device::AllocatedState allocated;
  device::CelExpressions compiler;
  SeededRandom random(1);
  std::set<std::string> names;
  for (const Value slice : vector["slices"].elements()) {
    auto read = device::SliceFromApi(slice);
    if (!read.ok()) return StrCat("slice: ", read.error().message);
    EXPECT_TRUE(read->unknown_fields.empty()) << Join(read->unknown_fields, ", ");
    // Some cases give several slices the same name, which no API server would. Keep their order.
    while (!names.insert(read->name).second) read->name += '\x01';
    inventory.SetSlice(std::make_shared<device::Slice>(*std::move(read)));
  }
  for (const Value id : vector["allocatedDevices"].elements()) allocated.AddExclusive(ReadId(id));
  for (const Value id : vector["allocatedSharedDevices"].elements()) {
    allocated.AddShare(ReadId(id), id["shareID"].str());
  }
  for (const Value id : vector["allocatedCapacity"].elements()) {
    std::vector<device::ConsumedCapacity> consumed;
    for (const api::MemberView member : id["consumed"].members()) {
      consumed.push_back({std::string(member.name), *api::Quantity::Parse(member.value.str())});
    }
    allocated.AddConsumed(ReadId(id), consumed);
  }
  std::map<std::string, std::shared_ptr<const device::DeviceClass>, std::less<>> classes;
  for (const Value device_class : vector["classes"].elements()) {
    auto read = device::DeviceClassFromApi(device_class);
    if (!read.ok()) return StrCat("class: ", read.error().message);
    classes[read->name] = std::make_shared<device::DeviceClass>(*read);
  }
  std::vector<std::shared_ptr<const device::Claim>> claims;
  for (const Value claim : vector["claims"].elements()) {
    auto read = device::ClaimFromApi(claim);
    if (!read.ok()) return StrCat("claim: ", read.error().message);
    claims.push_back(std::make_shared<device::Claim>(*std::move(read)));
  }

  Allocator allocator({.inventory = inventory,
                       .allocated = allocated,
                       .compiler = compiler,
                       .random = random,
                       .features = ReadFeatures(vector["features"])});
  device::Node node = device::NodeFromApi(vector["node"]);
  const std::string node_name = node.name;
  allocator.SetNode(std::move(node));
  const allocator::Problem problem = allocator.Prepare(
      claims, [&](std::string_view name) -> Result<std::shared_ptr<const device::DeviceClass>> {
        const auto found = classes.find(name);
        if (found == classes.end()) {
          return NotFound(StrCat("deviceclass.resource.k8s.io ", Quote(name), " not found"));
        }
        return found->second;
      });
  const Result<Outcome> outcome = allocator.Allocate(problem, node_name, {});
  if (!outcome.ok()) return StrCat("error: ", outcome.error().message);
  if (const auto* no = std::get_if<Unsatisfiable>(&*outcome)) {
    if (no->reason == allocator::Reason::kInvalidPools) return StrCat("error: ", no->message);
    return "does not fit";
  }
  if (!std::holds_alternative<Allocation>(*outcome)) return "out of budget";
  api::Draft results = api::Draft::Array();
  for (const auto& result : std::get<Allocation>(*outcome).results) {
    results.Append(device::AllocationToApi(result));
  }
  return Canonical(std::move(results));
}

TEST(AllocatorVectors, AgreeWithKubernetes) {
  const char* root = std::getenv("DRAKKAR_VECTORS");
  const std::string directory =
      std::string(root != nullptr ? root : "../shared/vectors") + "/allocator";
  if (!std::filesystem::is_directory(directory)) {
    GTEST_SKIP() << "no conformance vectors: set DRAKKAR_VECTORS";
  }
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".json") paths.insert(entry.path());
  }
  int passed = 0;
  int failed = 0;
  int deviating = 0;
  for (const std::string& path : paths) {
    const auto text = RealFileSystem().ReadFile(path);
    ASSERT_TRUE(text.ok()) << path;
    const auto tree = api::ParseJson(*text);
    ASSERT_TRUE(tree.ok()) << path << ": " << tree.error().message;
    const Value vector = (*tree)->root();
    const std::string name(vector["name"].str());
    SCOPED_TRACE(name);
    const std::string expected = Expected(vector);
    const std::string actual = Actual(vector);
    const bool listed = AllocatorDeviations().contains(name);
    if (listed && actual == expected) {
      ++failed;
      ADD_FAILURE() << name << " is listed as a deviation and agrees";
    } else if (listed) {
      ++deviating;
    } else if (actual == expected) {
      ++passed;
    } else {
      ++failed;
      ADD_FAILURE() << name << "\n  Kubernetes: " << expected << "\n  ours:       " << actual;
    }
  }
  std::printf("allocator: %d passed, %d failed, %d listed deviations\n", passed, failed, deviating);
}

}  // namespace
}  // namespace drakkar::vectors
