#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <tuple>

#include "api/apply/managed_fields.h"
#include "api/apply/typed_value.h"
#include "api/codec/object_reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/testing/random_object.h"
#include "api/tree/draft_view.h"
#include "api/tree/key_table.h"
#include "base/text/text.h"

// Compares TrackUpdate with a naive model: it takes every entry's set of paths apart and rebuilds
// it, without shortcuts or caches.
namespace drakkar::api {
namespace {

constexpr std::string_view kServerFields =
    R"({"f:apiVersion":{},"f:kind":{},"f:metadata":{".":{},"f:name":{},"f:namespace":{},)"
    R"("f:creationTimestamp":{},"f:selfLink":{},"f:uid":{},"f:clusterName":{},"f:generation":{},)"
    R"("f:managedFields":{},"f:resourceVersion":{}}})";

struct Entry {
  std::string manager, operation, api_version, time, subresource;
  const FieldNode* set = nullptr;
  Value as_read;  // if nothing about it changed

  auto Order() const { return std::tie(operation, time, manager, api_version, subresource); }
};

std::string Fields(const FieldNode* set) {
  std::string out;
  AppendFieldsV1(out, set);
  return out;
}

const FieldNode* Parsed(std::string_view text, Arena& arena) {
  Result<const FieldNode*> set = ParseFieldsV1(text, arena);
  return set.ok() ? *set : nullptr;
}

// The entries as JSON, "" for none. Up to kMaxUpdateManagers entries in one version.
std::string PlainTrackUpdate(Value before, Value after, const FieldManager& by) {
  Arena arena;
  std::vector<Entry> entries;
  for (Value each : before["metadata"]["managedFields"].elements()) {
    entries.push_back({std::string(each["manager"].str()), std::string(each["operation"].str()),
                       std::string(each["apiVersion"].str()), std::string(each["time"].str()),
                       std::string(each["subresource"].str()),
                       Parsed(each["fieldsV1"].str(), arena), each});
  }
  if (entries.empty() && before.exists()) return "";
  const FieldNode* own = SubtractBelow(CompareTyped(before, after, *by.schema, arena),
                                       Parsed(by.reset_fields, arena), arena);
  if (CompareTyped(before, after, *by.schema, arena) != nullptr) {
    for (Entry& each : entries) {
      const FieldNode* left = Subtract(each.set, own, kOwned | kRemoved, arena);
      if (!SameSet(left, each.set)) each.as_read = Value();
      each.set = left;
    }
    const FieldNode* taken =
        Subtract(Union(nullptr, own, kOwned, arena), Parsed(kServerFields, arena), kOwned, arena);
    std::erase_if(entries, [](const Entry& each) { return each.set == nullptr; });
    if (taken != nullptr) {
      auto self = std::find_if(entries.begin(), entries.end(), [&](const Entry& each) {
        return each.manager == by.manager && each.operation == "Update" &&
               each.subresource == by.subresource && each.api_version == by.api_version;
      });
      if (self == entries.end()) {
        entries.push_back({std::string(by.manager), "Update", std::string(by.api_version), "",
                           std::string(by.subresource), nullptr, Value()});
        self = entries.end() - 1;
      }
      const FieldNode* set = Union(self->set, taken, kOwned, arena);
      if (self->time != by.now || !SameSet(set, self->set)) self->as_read = Value();
      self->set = set;
      self->time = by.now;
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.Order() < b.Order(); });
  Draft out = Draft::Array();
  for (const Entry& each : entries) {
    if (each.as_read.exists()) {
      out.Append(Draft(each.as_read));
      continue;
    }
    Draft entry{
        {"manager", each.manager}, {"operation", each.operation}, {"apiVersion", each.api_version}};
    if (!each.time.empty()) entry["time"] = each.time;
    entry["fieldsType"] = "FieldsV1";
    entry["fieldsV1"] = Draft::Raw(Fields(each.set));
    if (!each.subresource.empty()) entry["subresource"] = each.subresource;
    out.Append(std::move(entry));
  }
  return entries.empty() ? "" : WriteJson(out.Freeze()->root());
}

class Changer {
 public:
  explicit Changer(Random& random) : random_(random) {}

  // Some fields change, appear or disappear; most stay borrowed.
  void Change(Draft& value, const TypeSchema& type, int depth) {
    if (type.kind == FieldKind::kStruct && value.is_object()) {
      for (const FieldSchema& field : type.structure->fields) {
        if (!OneIn(4)) continue;
        const std::string_view name = field.key->view();
        if (name == "managedFields") continue;
        if (OneIn(3)) {
          value.RemoveEntry(name);
        } else if (Draft* there = value.FindEntry(name); there != nullptr && !OneIn(3)) {
          Change(*there, field.type, depth - 1);
        } else {
          value.Entry(name) = Odd(field.type, depth - 1);
        }
      }
    } else if (type.kind == FieldKind::kMap && value.is_object() && !OneIn(4)) {
      const std::string name = Name();
      if (OneIn(3)) {
        value.RemoveEntry(name);
      } else {
        value.Entry(name) = Odd(*type.element, depth - 1);
      }
    } else if (type.kind == FieldKind::kList && value.is_array() && !OneIn(4)) {
      if (value.size() > 0 && !OneIn(3)) {
        Change(value.at(random_.Below(value.size())), *type.element, depth - 1);
      } else if (value.size() > 0 && OneIn(2)) {
        value.RemoveAt(random_.Below(value.size()));
      } else {
        value.Insert(random_.Below(value.size() + 1), Odd(*type.element, depth - 1));
      }
    } else {
      value = Odd(type, depth);
    }
  }

 private:
  bool OneIn(std::uint64_t count) { return random_.Below(count) == 0; }
  std::string Name() {
    static constexpr std::string_view kNames[] = {"key0", "key1",   "app",    "a/b", "spec", "Name",
                                                  "q\"",  "back\\", "a<b>&c", "é",   "",     "zz"};
    return std::string(kNames[random_.Below(std::size(kNames))]);
  }
  // Follows the schema; occasionally null or of another kind.
  Draft Odd(const TypeSchema& type, int depth) {
    if (OneIn(40)) return Draft(nullptr);
    if (OneIn(60)) return Draft::Object();
    if (OneIn(60)) return Draft(Name());
    if (type.kind == FieldKind::kString && OneIn(4)) return Draft(Name());
    return RandomTyped(type, random_, depth);
  }

  Random& random_;
};

struct Kind {
  std::string_view api_version;
  std::string_view kind;
};
constexpr Kind kKinds[] = {{"v1", "Pod"},
                           {"v1", "Event"},
                           {"events.k8s.io/v1", "Event"},
                           {"v1", "ConfigMap"},
                           {"v1", "Node"},
                           {"v1", "Service"},
                           {"resource.k8s.io/v1", "ResourceClaim"},
                           {"resource.k8s.io/v1", "ResourceSlice"},
                           {"apps/v1", "Deployment"}};
constexpr std::string_view kResets[] = {"{}", R"({"f:status":{}})",
                                        R"({"f:spec":{},"f:metadata":{}})",
                                        R"({"f:spec":{},"f:metadata":{"f:labels":{}}})"};
constexpr std::string_view kManagers[] = {"kubectl", "kube-scheduler", "kube-controller-manager"};

TEST(ManagedFieldsRandom, EveryHistoryIsWrittenAsThePlainWayWritesIt) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SeededRandom random(seed);
    Changer changer(random);
    const Kind& kind = kKinds[random.Below(std::size(kKinds))];
    const KindSchema* schema = FindKindByApiVersion(kind.api_version, kind.kind);
    if (schema == nullptr) continue;
    TypeSchema root;
    root.kind = FieldKind::kStruct;
    root.structure = schema->schema;
    root.merge = MergeKind::kGranular;
    Draft made = RandomTypedStruct(*schema->schema, random, 5);
    made["metadata"].Remove("managedFields");
    if (random.Below(2) == 0) changer.Change(made, root, 4);
    if (!made["metadata"].is_object()) made["metadata"] = Draft::Object();
    TreePtr before;
    TreePtr object = made.Freeze();
    for (int step = 0; step < 8; ++step) {
      FieldManager by;
      by.manager = kManagers[random.Below(std::size(kManagers))];
      by.subresource = random.Below(2) == 0 ? "status" : "";
      by.api_version = kind.api_version;
      by.schema = schema->schema;
      const std::string now = StrCat("2025-06-07T08:09:0", step / 2, "Z");
      by.now = now;
      by.reset_fields = kResets[random.Below(std::size(kResets))];
      Draft next(object);
      if (step > 0) {
        changer.Change(next, root, 4);
        if (!next["metadata"].is_object()) next["metadata"] = Draft::Object();
        // Updates carry the existing entries; the reader has made new nodes of them.
        const Value entries = before->root()["metadata"]["managedFields"];
        next["metadata"]["managedFields"] = entries.exists() ? Draft(CopyTree(entries)) : Draft();
      }
      const DraftView view(next);
      const Value from = before == nullptr ? Value() : before->root();
      // Frequent texts are cached.
      for (int i = 0; seed % 4 == 0 && i < 4; ++i) (void)TrackUpdate(from, view.root(), by);
      const Draft tracked = TrackUpdate(from, view.root(), by);
      const std::string entries = tracked.exists() ? WriteJson(tracked.Freeze()->root()) : "";
      ASSERT_EQ(entries, PlainTrackUpdate(from, view.root(), by))
          << "seed " << seed << " step " << step << "\nbefore " << WriteJson(from) << "\nafter "
          << WriteJson(view.root());
      Draft stored(view.Freeze());
      if (tracked.exists()) {
        stored["metadata"]["managedFields"] = tracked;
      } else {
        stored["metadata"].Remove("managedFields");
      }
      before = object = stored.Freeze();
    }
  }
}

TEST(ManagedFieldsRandom, SchemaNamesHaveTheOrderOfTheirIds) {
  const std::span<const Key> keys = SchemaKeys();
  for (std::size_t i = 1; i < keys.size(); ++i) {
    EXPECT_EQ(keys[i].id, i);
    EXPECT_LT(keys[i].id, 1u << 16);
    EXPECT_LT(keys[i - 1].view(), keys[i].view());
  }
}

}  // namespace
}  // namespace drakkar::api
