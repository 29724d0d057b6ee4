#include "sdk/driver/slices/pool_plan.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <set>

#include "api/meta/time.h"
#include "api/tree/draft.h"

namespace drakkar::driver {
namespace {

using api::Draft;
using api::Value;

// At least this many digits, so that slices can be added without renaming others.
constexpr std::size_t kMinIndexDigits = 5;

std::string Hex(std::size_t number) {
  char digits[2 * sizeof number];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, 16);
  return std::string(digits, end.ptr);
}

std::size_t IndexDigits(std::size_t count) {
  return std::max(kMinIndexDigits, Hex(count == 0 ? 0 : count - 1).size());
}

// The index that a name starts with, if it is less than `count`.
std::optional<std::size_t> IndexOf(std::string_view name, std::size_t count) {
  const std::size_t digits = IndexDigits(count);
  if (name.size() <= digits || name[digits] != '-') return std::nullopt;
  std::size_t index = 0;
  const auto end = std::from_chars(name.data(), name.data() + digits, index, 16);
  if (end.ec != std::errc() || end.ptr != name.data() + digits || index >= count) {
    return std::nullopt;
  }
  return index;
}

std::int64_t GenerationOf(const api::Object& slice) {
  return slice["spec"]["pool"]["generation"].integer();
}

// true means ["*"]; false and [] mean nothing.
std::set<std::string_view> SkippedOperations(Value field) {
  std::set<std::string_view> operations;
  if (field.boolean()) operations.insert("*");
  for (const Value each : field.elements()) operations.insert(each.str());
  return operations;
}

bool TimesAgree(std::string_view desired, std::string_view stored) {
  auto a = api::ParseTime(desired);
  auto b = api::ParseTime(stored);
  if (!a.ok() || !b.ok()) return false;
  const Duration apart = *a > *b ? *a - *b : *b - *a;
  return apart <= std::chrono::seconds(1);
}

Draft RenderSpec(const SliceIdentity& identity, const std::string& pool_name,
                 std::int64_t generation, std::size_t count, const api::TreePtr& content) {
  Draft spec = {{"driver", Draft(identity.driver)},
                {"pool",
                 {{"name", Draft(pool_name)},
                  {"generation", Draft(generation)},
                  {"resourceSliceCount", Draft(count)}}}};
  if (!identity.node_name.empty()) spec["nodeName"] = identity.node_name;
  spec.KeepAlive(content);
  for (const api::MemberView& member : content->root().members()) {
    if (member.name == "driver" || member.name == "pool") continue;
    spec.Entry(member.name) = Draft(member.value);
  }
  return spec;
}

}  // namespace

const std::vector<api::FieldName>& SliceContentFields() {
  static const std::vector<api::FieldName> fields = {"nodeSelector",   "allNodes",
                                                     "devices",        "perDeviceNodeSelection",
                                                     "sharedCounters", "partitionTypeAttribute"};
  return fields;
}

std::string SliceNamePrefix(const SliceIdentity& identity, std::size_t index, std::size_t count) {
  const std::string hex = Hex(index);
  std::string name(IndexDigits(count) - hex.size(), '0');
  name += hex + "-" + identity.driver + "-";
  if (!identity.owner_name.empty()) name += identity.owner_name + "-";
  return name;
}

api::TreePtr WithStoredTaintTimes(const api::TreePtr& desired, Value stored) {
  // (device, key, value, effect) -> time
  using TaintKey = std::array<std::string_view, 4>;
  std::map<TaintKey, std::string_view> times;
  for (const Value device : stored["devices"].elements()) {
    for (const Value taint : device["taints"].elements()) {
      const std::string_view time = taint["timeAdded"].str();
      if (time.empty()) continue;
      times[{device["name"].str(), taint["key"].str(), taint["value"].str(),
             taint["effect"].str()}] = time;
    }
  }
  if (times.empty()) return desired;
  Draft draft(desired);
  std::size_t device_index = 0;
  for (const Value device : desired->root()["devices"].elements()) {
    std::size_t taint_index = 0;
    for (const Value taint : device["taints"].elements()) {
      const auto found = times.find(
          {device["name"].str(), taint["key"].str(), taint["value"].str(), taint["effect"].str()});
      const std::string_view wanted = taint["timeAdded"].str();
      if (found != times.end() && (wanted.empty() || TimesAgree(wanted, found->second))) {
        draft["devices"].at(device_index)["taints"].at(taint_index)["timeAdded"] = found->second;
      }
      ++taint_index;
    }
    ++device_index;
  }
  return draft.Freeze();
}

bool SameSliceContent(Value desired, Value stored) {
  for (const api::FieldName field : SliceContentFields()) {
    if (!api::Equal(desired[field], stored[field])) return false;
  }
  return SkippedOperations(desired["skipNodeOperations"]) ==
         SkippedOperations(stored["skipNodeOperations"]);
}

PoolPlan PlanPool(const SliceIdentity& identity, const std::string& pool_name,
                  const DesiredPool* desired, const std::vector<api::ObjectPtr>& existing) {
  PoolPlan plan;
  if (desired == nullptr) {
    plan.deletions = existing;
    return plan;
  }
  const std::size_t count = desired->specs.size();
  std::int64_t current = 0;
  for (const api::ObjectPtr& slice : existing) current = std::max(current, GenerationOf(*slice));

  // Choose a slice for each index: the newest generation, then the first name. Delete the others.
  std::vector<api::ObjectPtr> matched(count);
  for (const api::ObjectPtr& slice : existing) {
    const std::optional<std::size_t> index = IndexOf(slice->name(), count);
    if (!index) {
      plan.deletions.push_back(slice);
      continue;
    }
    api::ObjectPtr& slot = matched[*index];
    if (slot == nullptr) {
      slot = slice;
    } else if (GenerationOf(*slice) > GenerationOf(*slot) ||
               (GenerationOf(*slice) == GenerationOf(*slot) && slice->name() < slot->name())) {
      plan.deletions.push_back(std::exchange(slot, slice));
    } else {
      plan.deletions.push_back(slice);
    }
  }

  std::vector<api::TreePtr> contents(count);
  std::vector<bool> differs(count, false);
  std::size_t changed = 0, late = 0, missing = 0;
  for (std::size_t i = 0; i < count; ++i) {
    contents[i] = desired->specs[i];
    if (matched[i] == nullptr) {
      ++missing;
      continue;
    }
    const Value stored = (*matched[i])["spec"];
    contents[i] = WithStoredTaintTimes(desired->specs[i], stored);
    if (GenerationOf(*matched[i]) < current) {
      ++late;
      continue;
    }
    differs[i] =
        stored["pool"]["resourceSliceCount"].integer() != static_cast<std::int64_t>(count) ||
        !SameSliceContent(contents[i]->root(), stored);
    if (differs[i]) ++changed;
  }

  // Slices left over from an interrupted change move to the generation of the others. Until then
  // that generation is incomplete, so nobody uses it.
  const bool keeps = missing == 0 && (late == 0 ? changed <= 1 : changed == 0);
  plan.generation = keeps ? current : current + 1;
  if (desired->generation > current) plan.generation = desired->generation;

  for (std::size_t i = 0; i < count; ++i) {
    Draft spec = RenderSpec(identity, pool_name, plan.generation, count, contents[i]);
    if (matched[i] == nullptr) {
      Draft object = {{"apiVersion", "resource.k8s.io/v1"}, {"kind", "ResourceSlice"}};
      object["metadata"]["generateName"] = SliceNamePrefix(identity, i, count);
      object["spec"] = std::move(spec);
      plan.creations.push_back({i, object.Freeze()});
    } else if (differs[i] || GenerationOf(*matched[i]) != plan.generation) {
      Draft object(matched[i]->tree());
      object["spec"] = std::move(spec);
      plan.updates.push_back({i, matched[i], object.Freeze()});
    }
  }
  return plan;
}

}  // namespace drakkar::driver
