#include <gtest/gtest.h>

#include "api/apply/managed_fields.h"
#include "api/codec/object_reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/testing/vectors.h"
#include "apiserver/conversion/resource_defaults.h"
#include "apiserver/conversion/resource_versions.h"
#include "apiserver/registry/reset_fields.h"
#include "apiserver/registry/schema_defaults.h"
#include "apiserver/registry/strategy.h"
#include "base/env/random.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"
#include "tests/support/vector_report.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::TreePtr;
using api::Value;

constexpr std::string_view kNow = "2025-06-07T08:09:10Z";

// Canonical text: fields that Go always writes, times named as in the vectors, fieldsV1 as a tree.
std::string Text(Value object, const api::StructSchema& schema) {
  Draft draft(object);
  Draft entries = Draft::Array();
  for (Value entry : object["metadata"]["managedFields"].elements()) {
    Draft each(entry);
    if (entry["time"].str() == kNow) each["time"] = "<now>";
    if (entry["fieldsV1"].kind() == api::ValueKind::kRaw) {
      each["fieldsV1"] = Draft(*api::ParseJson(entry["fieldsV1"].str()));
    }
    entries.Append(std::move(each));
  }
  if (Draft* metadata = draft.Find("metadata")) metadata->Remove("managedFields");
  auto read = api::ConvertObject(draft.Freeze()->root(), schema, {.zero_values = true});
  EXPECT_TRUE(read.ok()) << read.error().message;
  if (!read.ok()) return {};
  Draft out(read->tree);
  if (entries.size() > 0) out["metadata"]["managedFields"] = std::move(entries);
  return api::WriteJson(out.Freeze()->root(), {.escape_html = false, .sort_members = true});
}

TEST(ApplyVectors, FieldManagerAgreesWithKubernetes) {
  const TreePtr vectors = api::LoadVectors("apply/fieldmanager.json");
  if (vectors == nullptr) GTEST_SKIP() << "no vectors";
  testing::VectorReport report("apply");
  SeededRandom random(1);
  const FeatureGates gates;
  const UserInfo user;
  const StrategyContext context{.clock = RealClock(),
                                .random = random,
                                .gates = gates,
                                .user = user,
                                .lookup = {},
                                .authorize = {}};
  for (const Value test : vectors->root().elements()) {
    std::size_t index = 0;
    for (const Value step : test["steps"].elements()) {
      const testing::VectorReport::Case scope(report);
      const std::string name = StrCat(test["name"].str(), "/", index++);
      const Value object = step["object"];
      const api::KindSchema* kind =
          api::FindKindByApiVersion(object["apiVersion"].str(), object["kind"].str());
      ASSERT_NE(kind, nullptr) << name;
      const api::KindSchema* hub = kind->storage;
      const TreePtr stored = step["live"].is_object() ? api::CopyTree(step["live"]) : nullptr;
      TreePtr live = stored == nullptr ? nullptr : FromHubVersion(stored, kind->version);
      api::FieldManager by;
      by.manager = step["manager"].str();
      by.subresource = step["subresource"].str();
      by.api_version = object["apiVersion"].str();
      by.schema = kind->schema;
      by.now = kNow;
      by.reset_fields = ResetFieldsFor(*hub, StrategyFor(*hub), by.subresource);
      by.convert = [&](Value value, std::string_view api_version) {
        const api::KindSchema* other = api::FindKindByApiVersion(api_version, kind->kind);
        return std::pair(FromHubVersion(ToHubVersion(api::CopyTree(value)), other->version),
                         other->schema);
      };
      std::string got, want;
      if (step["operation"].str() == "apply") {
        auto result = api::ApplyConfiguration(live == nullptr ? Value() : live->root(), object,
                                              step["force"].boolean(), by);
        if (auto* failure = std::get_if<api::Status>(&result)) {
          got = failure->message;
          if (step["error"]["code"].exists()) {
            got += StrCat(" ", failure->code, " ", failure->reason);
            for (const auto& cause : failure->causes) {
              got += StrCat("|", cause.reason, "|", cause.message, "|", cause.field);
            }
          }
        } else {
          const TreePtr applied = std::get<api::Applied>(result).object;
          auto canonical =
              api::ConvertObject(applied->root(), *kind->schema,
                                 {.strictness = api::Strictness::kIgnore, .zero_values = true});
          ASSERT_TRUE(canonical.ok()) << name;
          TreePtr result_tree = ToHubVersion(canonical->tree);
          // Kubernetes sets defaults on what changed.
          if (std::get<api::Applied>(result).changed) {
            Draft defaulted(result_tree);
            ApplySchemaDefaults(defaulted, *hub->schema);
            StrategyFor(*hub).Default(defaulted, context);
            result_tree = defaulted.Freeze();
          }
          got = Text(result_tree->root(), *hub->schema);
        }
      } else {
        Draft updated{object};
        Draft entries = api::TrackUpdate(live == nullptr ? Value() : live->root(), object, by);
        if (entries.exists()) updated["metadata"]["managedFields"] = std::move(entries);
        got = Text(updated.Freeze()->root(), *hub->schema);
      }
      if (step["error"].exists()) {
        want = std::string(step["error"]["message"].str());
        if (step["error"]["code"].exists()) {
          want += StrCat(" ", step["error"]["code"].integer(), " ", step["error"]["reason"].str());
          for (Value cause : step["error"]["causes"].elements()) {
            want += StrCat("|", cause["reason"].str(), "|", cause["message"].str(), "|",
                           cause["field"].str());
          }
        }
      } else {
        want = Text(step["result"], *hub->schema);
      }
      EXPECT_EQ(got, want) << name;
    }
  }
}

}  // namespace
}  // namespace drakkar::apiserver
