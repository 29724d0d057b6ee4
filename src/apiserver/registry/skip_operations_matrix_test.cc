// skipNodeOperations with its gate off, for every way to write an object, in slices and claim
// status, in every version: the row "5945 gate off, API server" of docs/compatibility.md.
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

enum class Way { kPut, kJsonPatch, kMergePatch, kStrategicPatch, kApply };
constexpr Way kWays[] = {Way::kPut, Way::kJsonPatch, Way::kMergePatch, Way::kStrategicPatch,
                         Way::kApply};
constexpr std::string_view kVersions[] = {"v1", "v1beta2", "v1beta1"};
constexpr std::string_view kGateName = "DRAOptionalNodePreparation";

// JSON of the field; "" is absent.
constexpr std::string_view kForms[] = {"",
                                       "false",
                                       "[]",
                                       "true",
                                       R"(["*"])",
                                       R"(["NodeUnprepareResources"])",
                                       R"(["NodePrepareResources"])",
                                       R"(["Sleep"])"};

bool SkipsNothing(std::string_view form) {
  return form == "" || form == "false" || form == "[]";
}
bool SkipsAll(std::string_view form) {
  return form == "true" || form == R"(["*"])";
}
bool IsValid(std::string_view form) {
  return form != R"(["Sleep"])" && form != R"(["NodePrepareResources"])";
}
bool SameMeaning(std::string_view a, std::string_view b) {
  return a == b || (SkipsNothing(a) && SkipsNothing(b)) || (SkipsAll(a) && SkipsAll(b));
}

class SkipOperationsMatrix : public CoreFixture {
 protected:
  void SetGate(bool on) { gates_ = FeatureGates().With(Gate::kDRAOptionalNodePreparation, on); }

  static std::string SliceJson(std::string_view version, std::string_view form) {
    const std::string skip = form.empty() ? "" : StrCat(R"(,"skipNodeOperations":)", form);
    return StrCat(R"({"apiVersion":"resource.k8s.io/)", version,
                  R"(","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{)",
                  R"("driver":"d.example.com","nodeName":"n","pool":{"name":"p","generation":1,)",
                  R"("resourceSliceCount":1})", skip, "}}");
  }

  // Puts an object into the store as an older or less strict server would have, and restarts.
  void StartWithStored(std::string_view form) {
    core_.reset();
    store_.reset();
    disk_ = storage::MemoryDisk();
    store_ = storage::OpenMemoryStore(loop_, disk_);
    storage::Transaction transaction;
    transaction.operations.push_back({"/registry/resource.k8s.io/resourceslices/s",
                                      std::make_shared<const std::string>(SliceJson("v1", form))});
    store_->Commit(
        std::move(transaction),
        [](Result<storage::TransactionResult> done) { ASSERT_TRUE(done.ok() && done->succeeded); },
        [](Result<storage::Revision>) {});
    loop_.Advance(std::chrono::milliseconds(1));  // lets the disk finish
    store_.reset();
    StartCore(nullptr);
  }

  // Writes the stored slice so that its field is `form` and a label has changed.
  Response Write(Way way, std::string_view version, std::string_view before,
                 std::string_view form) {
    Request request = RequestFor(Verb::kUpdate, SliceJson(version, form), AdminUser());
    if (way == Way::kPut) {
      api::Draft draft(request.object);
      draft["metadata"]["labels"].Entry("l") = "new";
      request.object = draft.Freeze();
      return Handle(std::move(request));
    }
    if (way == Way::kApply) {
      api::Draft draft(request.object);
      draft["metadata"]["labels"].Entry("l") = "new";
      request.text = api::WriteJson(draft.Freeze()->root());
      request.patch = PatchKind::kApply;
      request.field_manager = "tester";
      request.force = true;
    }
    request.object = nullptr;
    request.verb = Verb::kPatch;
    if (way == Way::kApply) return Handle(std::move(request));
    if (way == Way::kJsonPatch) {
      request.patch = PatchKind::kJson;
      request.text = R"([{"op":"add","path":"/metadata/labels","value":{"l":"new"}})";
      if (!form.empty()) {
        request.text +=
            StrCat(R"(,{"op":"add","path":"/spec/skipNodeOperations","value":)", form, "}");
      } else if (!before.empty()) {
        request.text += R"(,{"op":"remove","path":"/spec/skipNodeOperations"})";
      }
      request.text += "]";
      return Handle(std::move(request));
    }
    request.patch = way == Way::kMergePatch ? PatchKind::kMerge : PatchKind::kStrategicMerge;
    request.text = StrCat(R"({"metadata":{"labels":{"l":"new"}},"spec":{"skipNodeOperations":)",
                          form.empty() ? "null" : form, "}}");
    return Handle(std::move(request));
  }

  std::string StoredForm() {
    const api::ObjectPtr slice = core_->Find("resource.k8s.io", "resourceslices", "s");
    const api::Value field = (*slice)["spec"]["skipNodeOperations"];
    return field.exists() ? api::WriteJson(field) : "";
  }
};

TEST_F(SkipOperationsMatrix, CreateRejectsSkippedOperationsWhileTheGateIsOff) {
  StartCore(nullptr);
  for (bool gate : {true, false}) {
    SetGate(gate);
    for (std::string_view version : kVersions) {
      for (std::string_view form : kForms) {
        SCOPED_TRACE(StrCat(gate ? "on " : "off ", version, " ", form));
        Response response = TryCreate(SliceJson(version, form));
        const bool accepted = IsValid(form) && (gate || SkipsNothing(form));
        ASSERT_EQ(!response.failure.has_value(), accepted)
            << (response.failure ? response.failure->message : "");
        if (!gate && !SkipsNothing(form)) {
          EXPECT_NE(response.failure->message.find(kGateName), std::string::npos)
              << response.failure->message;
          EXPECT_NE(response.failure->message.find("spec.skipNodeOperations"), std::string::npos);
        }
        if (accepted) {
          EXPECT_EQ(StoredForm(), form) << "kept as written";
          EXPECT_FALSE(Delete("resource.k8s.io/v1", "ResourceSlice", "", "s").failure);
        }
      }
    }
  }
}

TEST_F(SkipOperationsMatrix, EveryKindOfUpdateKeepsStoredValuesAndRejectsNewOnes) {
  for (std::string_view before : kForms) {
    for (Way way : kWays) {
      for (std::string_view version : kVersions) {
        for (std::string_view form : kForms) {
          // v1 is tested with every form, the other versions only with the most important ones.
          if (version != "v1" && (before != "true" || form == R"(["Sleep"])")) continue;
          SCOPED_TRACE(StrCat(before, " -> ", form, " way ", static_cast<int>(way), " ", version));
          SetGate(false);
          StartWithStored(before);
          Response response = Write(way, version, before, form);
          // Applying without the field leaves it to its owners.
          const std::string_view after = way == Way::kApply && form.empty() ? before : form;
          const bool accepted = SameMeaning(before, after) || SkipsNothing(after);
          ASSERT_EQ(!response.failure.has_value(), accepted)
              << (response.failure ? response.failure->message : "");
          if (accepted) {
            EXPECT_EQ(StoredForm(), after);
          } else {
            EXPECT_EQ(response.failure->code, 422);
            EXPECT_NE(response.failure->message.find(kGateName), std::string::npos)
                << response.failure->message;
          }
        }
      }
    }
  }
}

TEST_F(SkipOperationsMatrix, WithTheGateOnOnlyNewValuesMustBeValid) {
  for (std::string_view before : kForms) {
    for (std::string_view form : kForms) {
      SCOPED_TRACE(StrCat(before, " -> ", form));
      SetGate(true);
      StartWithStored(before);
      Response response = Write(Way::kMergePatch, "v1", before, form);
      EXPECT_EQ(!response.failure.has_value(), IsValid(form) || SameMeaning(before, form))
          << (response.failure ? response.failure->message : "");
    }
  }
}

class ClaimStatusMatrix : public SkipOperationsMatrix {
 protected:
  static std::string StatusJson(std::string_view form, std::string_view reserved = "") {
    const std::string skip = form.empty() ? "" : StrCat(R"(,"skipNodeOperations":)", form);
    return StrCat(R"({"allocation":{"devices":{"results":[{"request":"r","driver":)",
                  R"("d.example.com","pool":"p","device":"a")", skip, "}]}}", reserved, "}");
  }
  void CreateClaim() {
    Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c"},
      "spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x"}}]}}})");
  }
  Response WriteStatus(Way way, std::string_view version, const std::string& status) {
    Request request;
    request.user = AdminUser();
    request.kind = api::FindKind("resource.k8s.io", version, "ResourceClaim");
    request.namespace_ = "default";
    request.name = "c";
    request.subresource = "status";
    if (way == Way::kPut) {
      request.verb = Verb::kGet;
      request.subresource = "";
      Response now = Handle(request);
      request.subresource = "status";
      request.verb = Verb::kUpdate;
      api::Draft draft(now.object->tree());
      draft["status"] = api::Draft(*api::ParseJson(status));
      request.object = draft.Freeze();
      return Handle(std::move(request));
    }
    request.verb = Verb::kPatch;
    if (way == Way::kApply) {
      request.patch = PatchKind::kApply;
      request.field_manager = "tester";
      request.force = true;
      request.text =
          StrCat(R"({"apiVersion":"resource.k8s.io/)", version,
                 R"(","kind":"ResourceClaim","metadata":{"name":"c","namespace":"default"},)",
                 R"("status":)", status, "}");
      return Handle(std::move(request));
    }
    request.patch = way == Way::kJsonPatch    ? PatchKind::kJson
                    : way == Way::kMergePatch ? PatchKind::kMerge
                                              : PatchKind::kStrategicMerge;
    request.text = way == Way::kJsonPatch
                       ? StrCat(R"([{"op":"add","path":"/status","value":)", status, "}]")
                       : StrCat(R"({"status":)", status, "}");
    return Handle(std::move(request));
  }
};

TEST_F(ClaimStatusMatrix, AllocatingWithTheFieldIsRejectedWhileTheGateIsOff) {
  StartCore(nullptr);
  for (bool gate : {true, false}) {
    SetGate(gate);
    for (Way way : kWays) {
      for (std::string_view version : kVersions) {
        for (std::string_view form : kForms) {
          SCOPED_TRACE(
              StrCat(gate ? "on " : "off ", form, " way ", static_cast<int>(way), " ", version));
          CreateClaim();
          Response response = WriteStatus(way, version, StatusJson(form));
          const bool accepted = IsValid(form) && (gate || SkipsNothing(form));
          ASSERT_EQ(!response.failure.has_value(), accepted)
              << (response.failure ? response.failure->message : "");
          if (!gate && !SkipsNothing(form)) {
            EXPECT_NE(response.failure->message.find(kGateName), std::string::npos);
          }
          EXPECT_FALSE(Delete("resource.k8s.io/v1", "ResourceClaim", "default", "c").failure);
        }
      }
    }
  }
}

TEST_F(ClaimStatusMatrix, TheFieldOfAnAllocationSurvivesOtherUpdatesAndEndsWithTheAllocation) {
  constexpr std::string_view kReserved =
      R"(,"reservedFor":[{"resource":"pods","name":"p","uid":"u"}])";
  StartCore(nullptr);
  for (Way way : kWays) {
    for (std::string_view form : {R"(true)", R"(["*"])", R"(["NodeUnprepareResources"])"}) {
      SCOPED_TRACE(StrCat(form, " way ", static_cast<int>(way)));
      CreateClaim();
      SetGate(true);
      ASSERT_FALSE(WriteStatus(Way::kMergePatch, "v1", StatusJson(form)).failure);
      SetGate(false);
      EXPECT_FALSE(WriteStatus(way, "v1", StatusJson(form, kReserved)).failure);
      // The other form with the same meaning does not change the allocation.
      if (SkipsAll(form)) {
        EXPECT_FALSE(
            WriteStatus(way, "v1", StatusJson(form == "true" ? R"(["*"])" : "true", kReserved))
                .failure);
      }
      EXPECT_TRUE(WriteStatus(way, "v1", StatusJson("", kReserved)).failure)
          << "an allocation is never modified"
          << (way == Way::kMergePatch ? " (lists are replaced)" : "");
      EXPECT_FALSE(WriteStatus(Way::kJsonPatch, "v1", "{}").failure);
      EXPECT_FALSE(Delete("resource.k8s.io/v1", "ResourceClaim", "default", "c").failure);
    }
  }
}

}  // namespace
}  // namespace drakkar::apiserver
