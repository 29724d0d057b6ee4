// What each of the two passes of validation (findings.h) finds for every small change of the
// objects in testdata. Where both find the same, the merged answer does not show which of them did,
// so field_sweep_test.cc cannot tell whether one of them is broken. It shows only with the gate of
// the declared rules off, or for a client of another version.
//
// The expectations are in testdata/passes; DRAKKAR_UPDATE_EXPECTED=1 writes them again. A line has
// the field and the kind of each error: "hand" from the hand-written pass, "hand*" if a declared
// rule may replace it, "declared" and "beta" from the declared pass.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "api/codec/object_reader.h"
#include "api/codec/yaml_reader.h"
#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "apiserver/testing/field_sweep.h"
#include "apiserver/validation/claim_template.h"
#include "apiserver/validation/declared_rules.h"
#include "apiserver/validation/device_class.h"
#include "apiserver/validation/device_taint_rule.h"
#include "apiserver/validation/resource_claim.h"
#include "apiserver/validation/resource_slice.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

constexpr char kFolder[] = "src/apiserver/validation/testdata/";
constexpr std::size_t kShownFindings = 3;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

FeatureGates AllGates(bool on) {
  FeatureGates gates;
  for (int i = 0; i < static_cast<int>(Gate::kCount); ++i) {
    gates = gates.With(static_cast<Gate>(i), on);
  }
  return gates;
}

// The object as the passes see it; null if it cannot be decoded.
api::TreePtr Decode(const std::string& json) {
  const Result<api::TreePtr> tree = api::ParseJson(json);
  if (!tree.ok()) return nullptr;
  const Value root = (*tree)->root();
  const std::string_view version = root["apiVersion"].str();
  const std::size_t slash = version.find('/');
  const api::KindSchema* kind =
      api::FindKind(version.substr(0, slash), version.substr(slash + 1), root["kind"].str());
  if (kind == nullptr) return nullptr;
  Result<api::ObjectReadResult> read = api::ConvertObject(root, *kind->schema);
  return read.ok() ? read->tree : nullptr;
}

struct Passes {
  Findings by_hand;
  Findings declared;
};

Passes Check(Value object, Value before, std::string_view subresource, const FeatureGates& gates) {
  const std::string_view kind = object["kind"].str();
  const bool status = subresource == "status";
  if (kind == "ResourceSlice") {
    return {CheckResourceSlice(object, before, gates),
            DeclaredForResourceSlice(object, before, gates)};
  }
  if (kind == "ResourceClaim") {
    Findings by_hand = status               ? CheckResourceClaimStatus(object, before, gates)
                       : before.has_value() ? CheckResourceClaimUpdate(object, before)
                                            : CheckResourceClaim(object, gates);
    return {std::move(by_hand), DeclaredForResourceClaim(object, before)};
  }
  if (kind == "ResourceClaimTemplate") {
    Findings by_hand = CheckClaimTemplate(object, gates);
    if (before.has_value()) by_hand.Append(CheckClaimTemplateUpdate(object, before));
    return {std::move(by_hand), DeclaredForClaimTemplate(object, before)};
  }
  if (kind == "DeviceClass") {
    return {CheckDeviceClass(object, before, gates), DeclaredForDeviceClass(object, before)};
  }
  if (kind == "DeviceTaintRule") {
    return {status ? CheckDeviceTaintRuleStatus(object) : CheckDeviceTaintRule(object, before),
            DeclaredForDeviceTaintRule(object, before)};
  }
  return {status ? CheckPoolStatusRequestStatus(object, before) : Findings(),
          DeclaredForPoolStatusRequest(object, before, gates)};
}

void Describe(const Findings& found, bool by_hand, std::string& text, std::size_t& count) {
  for (const Finding& each : found.list()) {
    if (++count > kShownFindings) continue;
    const std::string_view pass = by_hand     ? (each.covered ? "hand*" : "hand")
                                  : each.beta ? "beta"
                                              : "declared";
    text += StrCat(text.empty() ? "" : "; ", pass, " ", each.error.field, " ",
                   api::FieldErrorText(each.error.type));
    if (!each.origin.empty()) text += StrCat(" ", each.origin);
  }
}

class RulePassesTest : public ::testing::TestWithParam<const char*> {
 protected:
  // How the passes judge `document` instead of `before`, which is absent on create.
  static std::string Judge(const JsonNode& document, Value before, std::string_view subresource,
                           const FeatureGates& gates) {
    const api::TreePtr object = Decode(document.Json());
    if (object == nullptr) return "";
    const Passes passes = Check(object->root(), before, subresource, gates);
    std::string text;
    std::size_t count = 0;
    Describe(passes.by_hand, true, text, count);
    Describe(passes.declared, false, text, count);
    if (count > kShownFindings) text += StrCat("; and ", count - kShownFindings, " more");
    return text;
  }
  static std::string Sweep(JsonNode& document, Value before, std::string_view subresource,
                           const FeatureGates& gates) {
    const auto judge = [&] { return Judge(document, before, subresource, gates); };
    return FieldSweep(document, judge, judge).Run({subresource.empty() ? "spec" : "status"});
  }
  // What is wrong even if nothing changes.
  static std::string SweepUnchanged(JsonNode& document, std::string_view subresource,
                                    const FeatureGates& gates) {
    const auto judge = [&] {
      const api::TreePtr before = Decode(document.Json());
      return before == nullptr ? "" : Judge(document, before->root(), subresource, gates);
    };
    return FieldSweep(document, judge, judge).Run({subresource.empty() ? "spec" : "status"});
  }
  // All of it for one subresource. `before` is the object that is updated to `document`, if any.
  static std::string DescribeAll(JsonNode document, Value before, std::string_view subresource) {
    const std::string first = Sweep(document, before, subresource, AllGates(true));
    std::string text = StrCat("-- new ", subresource.empty() ? "spec" : subresource, "\n", first);
    text += StrCat("-- without gates\n",
                   NewLines(Sweep(document, before, subresource, AllGates(false)), first));
    const api::TreePtr stored = Decode(document.Json());
    text += StrCat("-- changed\n",
                   NewLines(Sweep(document, stored->root(), subresource, AllGates(true)), first));
    text += StrCat("-- unchanged\n",
                   NewLines(SweepUnchanged(document, subresource, AllGates(true)), first));
    return text;
  }
};

TEST_P(RulePassesTest, EachPassFindsWhatItIsExpectedTo) {
  const auto documents = api::ParseYaml(ReadText(StrCat(kFolder, GetParam(), ".yaml")));
  ASSERT_TRUE(documents.ok()) << documents.error().message;
  std::string found;
  for (const api::TreePtr& each : *documents) {
    JsonNode document = JsonNode::From(each->root());
    ASSERT_NE(Decode(document.Json()), nullptr) << each->root()["metadata"]["name"].str();
    found += StrCat("== ", each->root()["kind"].str(), " ", each->root()["metadata"]["name"].str(),
                    "\n", DescribeAll(document, Value(), ""));
    if (!each->root()["status"].exists()) continue;
    JsonNode pending = document;
    std::erase_if(pending.members, [](const auto& member) { return member.first == "status"; });
    const api::TreePtr before = Decode(pending.Json());
    found += DescribeAll(document, before->root(), "status");
  }
  const std::string path = StrCat(kFolder, "passes/", GetParam(), ".expected");
  if (std::getenv("DRAKKAR_UPDATE_EXPECTED") != nullptr) {
    std::ofstream(path, std::ios::trunc) << found;
    return;
  }
  const std::string expected = ReadText(path);
  if (found == expected) return;
  ADD_FAILURE() << path << " differs; missing:\n"
                << NewLines(expected, found).substr(0, 4'000) << "\nnew:\n"
                << NewLines(found, expected).substr(0, 4'000);
}

INSTANTIATE_TEST_SUITE_P(Files, RulePassesTest, ::testing::Values("claims", "slices", "classes"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace drakkar::apiserver
