#include <gtest/gtest.h>

#include "api/codec/object_reader.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/conversion/resource_versions.h"
#include "apiserver/validation/declared_rules.h"
#include "apiserver/validation/resource_claim.h"
#include "apiserver/validation/resource_slice.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

api::TreePtr Read(std::string_view kind, const std::string& json) {
  const api::KindSchema* schema = api::FindKind("resource.k8s.io", "v1", kind);
  const auto read = api::ReadObject(json, *schema->schema);
  EXPECT_TRUE(read.ok()) << read.error().message;
  return read.ok() ? read->tree : nullptr;
}

// `field` is the JSON of skipNodeOperations; empty leaves it out.
api::TreePtr Slice(std::string_view field) {
  const std::string skip = field.empty() ? "" : StrCat(",\"skipNodeOperations\":", field);
  return Read("ResourceSlice",
              StrCat("{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
                     "\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"d.example.com\","
                     "\"pool\":{\"name\":\"p\",\"generation\":1,\"resourceSliceCount\":1},"
                     "\"nodeName\":\"n\"",
                     skip, "}}"));
}

api::TreePtr Claim(std::string_view field) {
  const std::string skip = field.empty() ? "" : StrCat(",\"skipNodeOperations\":", field);
  return Read("ResourceClaim",
              StrCat("{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaim\","
                     "\"metadata\":{\"name\":\"c\",\"namespace\":\"n\"},\"spec\":{\"devices\":"
                     "{\"requests\":[{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"x\"}}]}},"
                     "\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\","
                     "\"driver\":\"d.example.com\",\"pool\":\"p\",\"device\":\"a\"",
                     skip, "}]}}}}"));
}

FeatureGates Gates(bool on) {
  return FeatureGates().With(Gate::kDRAOptionalNodePreparation, on);
}

bool Refused(const Findings& found, std::string_view field) {
  for (const Finding& finding : found.list()) {
    if (finding.error.field == field &&
        finding.error.detail.find("DRAOptionalNodePreparation") != std::string::npos) {
      return true;
    }
  }
  return false;
}

bool SliceRefused(std::string_view field, std::string_view before, bool gate = false) {
  const api::TreePtr now = Slice(field);
  const api::TreePtr old = before == "create" ? nullptr : Slice(before);
  return Refused(CheckResourceSlice(now->root(), old ? old->root() : api::Value(), Gates(gate)),
                 "spec.skipNodeOperations");
}

TEST(SkipNodeOperations, CreatingWithTheGateOffIsRejectedIfSomethingIsSkipped) {
  EXPECT_TRUE(SliceRefused("true", "create"));
  EXPECT_TRUE(SliceRefused("[\"*\"]", "create"));
  EXPECT_TRUE(SliceRefused("[\"NodeUnprepareResources\"]", "create"));
}

TEST(SkipNodeOperations, SkippingNothingIsAlwaysAccepted) {
  for (const std::string_view before : {"create", "", "true", "[\"*\"]"}) {
    EXPECT_FALSE(SliceRefused("false", before)) << before;
    EXPECT_FALSE(SliceRefused("[]", before)) << before;
  }
}

TEST(SkipNodeOperations, StoredValuesSurviveUpdatesInEitherForm) {
  EXPECT_FALSE(SliceRefused("true", "true"));
  EXPECT_FALSE(SliceRefused("[\"*\"]", "true"));
  EXPECT_FALSE(SliceRefused("true", "[\"*\"]"));
  EXPECT_FALSE(SliceRefused("", "true"));
}

TEST(SkipNodeOperations, AnyOtherChangeWithTheGateOffIsRejected) {
  EXPECT_TRUE(SliceRefused("true", ""));
  EXPECT_TRUE(SliceRefused("true", "false"));
  EXPECT_TRUE(SliceRefused("true", "[\"NodeUnprepareResources\"]"));
  EXPECT_TRUE(SliceRefused("[\"NodeUnprepareResources\"]", "true"));
}

TEST(SkipNodeOperations, WithTheGateOnEverythingIsAccepted) {
  EXPECT_FALSE(SliceRefused("true", "create", true));
  EXPECT_FALSE(SliceRefused("[\"NodeUnprepareResources\"]", "true", true));
}

TEST(SkipNodeOperations, ClaimStatusFollowsTheSameRules) {
  const std::string_view path = "status.allocation.devices.results[0].skipNodeOperations";
  auto refused = [&](std::string_view field, const api::TreePtr& before) {
    const api::TreePtr now = Claim(field);
    return Refused(CheckResourceClaimStatus(now->root(), before->root(), Gates(false)), path);
  };
  const api::TreePtr pending =
      Read("ResourceClaim",
           "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaim\",\"metadata\":"
           "{\"name\":\"c\",\"namespace\":\"n\"},\"spec\":{}}");
  EXPECT_TRUE(refused("true", pending));
  EXPECT_FALSE(refused("false", pending));
  EXPECT_FALSE(refused("true", Claim("[\"*\"]")));
  EXPECT_TRUE(refused("true", Claim("")));
}

TEST(SkipNodeOperations, TheFormsAreEqualForAnAllocationThatMustNotChange) {
  const api::TreePtr now = Claim("true");
  const api::TreePtr before = Claim("[\"*\"]");
  EXPECT_TRUE(CheckResourceClaimStatus(now->root(), before->root(), Gates(true)).empty());
}

TEST(SkipNodeOperations, PreparingCannotBeSkippedAlone) {
  const api::TreePtr slice = Slice("[\"NodePrepareResources\"]");
  const Findings found = CheckResourceSlice(slice->root(), api::Value(), Gates(true));
  ASSERT_EQ(found.list().size(), 1u);
  EXPECT_EQ(found.list()[0].error.field, "spec.skipNodeOperations");
}

TEST(SkipNodeOperations, TheListIsBounded) {
  auto list = [](int items) {
    std::string text;
    for (int i = 0; i < items; ++i) text += StrCat(i == 0 ? "[" : ",", "\"op-", i, "\"");
    return text + "]";
  };
  const api::TreePtr slice = Slice(list(9));
  const Findings found = DeclaredForResourceSlice(slice->root(), api::Value(), Gates(true));
  ASSERT_EQ(found.list().size(), 1u) << "not one for each item";
  EXPECT_EQ(found.list()[0].error.field, "spec.skipNodeOperations");
  EXPECT_EQ(found.list()[0].error.type, api::FieldErrorType::kTooMany);
  EXPECT_EQ(
      DeclaredForResourceSlice(Slice(list(8))->root(), api::Value(), Gates(true)).list().size(), 8u)
      << "each is unknown";
  EXPECT_TRUE(DeclaredForResourceSlice(slice->root(), Slice(list(9))->root(), Gates(true)).empty())
      << "what is stored may stay";
  api::Draft unallocated(Claim(""));
  unallocated.Remove("status");
  const Findings in_claim =
      DeclaredForResourceClaim(Claim(list(9))->root(), unallocated.Freeze()->root());
  ASSERT_EQ(in_claim.list().size(), 1u);
  EXPECT_EQ(in_claim.list()[0].error.field,
            "status.allocation.devices.results[0].skipNodeOperations");
}

TEST(SkipNodeOperations, ABooleanIsReturnedAsWrittenInEveryVersion) {
  for (const std::string_view form : {"true", "false", "[\"*\"]"}) {
    const api::TreePtr slice = Slice(form);
    for (const std::string_view version : {"v1", "v1beta2", "v1beta1"}) {
      const api::TreePtr back = ToHubVersion(FromHubVersion(slice, version));
      EXPECT_TRUE(api::Equal(back->root(), slice->root())) << version << " " << form;
    }
  }
}

}  // namespace
}  // namespace drakkar::apiserver
