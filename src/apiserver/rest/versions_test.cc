// Objects are stored in one version and served in all of them.
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr char kClaimBeta1[] = R"({"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceClaim",
  "metadata":{"name":"c"},"spec":{"devices":{"requests":[
    {"name":"r","deviceClassName":"gpu.example.com"}]}}})";
constexpr char kSliceV1[] = R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",
  "metadata":{"name":"s"},"spec":{"driver":"d.example.com","nodeName":"n",
  "pool":{"name":"p","generation":1,"resourceSliceCount":1},
  "devices":[{"name":"a","attributes":{"model":{"string":"x"}},
              "taints":[{"key":"k","effect":"NoSchedule"}]}]}})";

class VersionsTest : public CoreFixture {
 protected:
  VersionsTest() { StartCore(nullptr); }

  Request RequestOf(Verb verb, std::string_view api_version, std::string_view kind,
                    std::string namespace_, std::string name) {
    Request request;
    request.user = AdminUser();
    request.verb = verb;
    request.kind = api::FindKindByApiVersion(api_version, kind);
    EXPECT_NE(request.kind, nullptr) << api_version;
    request.namespace_ = std::move(namespace_);
    request.name = std::move(name);
    return request;
  }
  Response Get(std::string_view version, std::string_view kind, std::string namespace_,
               std::string name) {
    return Handle(RequestOf(Verb::kGet, version, kind, std::move(namespace_), std::move(name)));
  }
  Response Patch(std::string_view version, std::string_view kind, std::string namespace_,
                 std::string name, PatchKind type, std::string patch,
                 std::string subresource = "") {
    Request request =
        RequestOf(Verb::kPatch, version, kind, std::move(namespace_), std::move(name));
    request.patch = type;
    request.text = std::move(patch);
    request.subresource = std::move(subresource);
    return Handle(std::move(request));
  }
};

std::string SpecOf(const Response& response) {
  if (response.failure) return response.failure->message;
  return api::WriteJson((*response.object)["spec"]);
}

TEST_F(VersionsTest, AClaimOfV1beta1IsStoredWithItsDefaultsAsV1AndReadInEveryVersion) {
  EXPECT_EQ(Create(kClaimBeta1)->api_version(), "resource.k8s.io/v1beta1");
  EXPECT_EQ(core_->Find("resource.k8s.io", "resourceclaims", "default/c")->api_version(),
            "resource.k8s.io/v1");
  const std::string exactly =
      R"({"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu.example.com",)"
      R"("allocationMode":"ExactCount","count":1}}]}})";
  EXPECT_EQ(SpecOf(Get("resource.k8s.io/v1", "ResourceClaim", "default", "c")), exactly);
  EXPECT_EQ(SpecOf(Get("resource.k8s.io/v1beta2", "ResourceClaim", "default", "c")), exactly);
  EXPECT_EQ(SpecOf(Get("resource.k8s.io/v1beta1", "ResourceClaim", "default", "c")),
            R"({"devices":{"requests":[{"name":"r","deviceClassName":"gpu.example.com",)"
            R"("allocationMode":"ExactCount","count":1}]}})");
}

TEST_F(VersionsTest, DefaultsAreThoseOfTheClientsVersion) {
  // v1beta1 defaults the mode only for requests with a class, so both errors are reported.
  Response response = TryCreate(R"({"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceClaim",
    "metadata":{"name":"c"},"spec":{"devices":{"requests":[
      {"name":"r","selectors":[{"cel":{"expression":"true"}}]}]}}})");
  ASSERT_TRUE(response.failure);
  EXPECT_NE(response.failure->message.find("deviceClassName"), std::string::npos);
  EXPECT_NE(response.failure->message.find("allocationMode"), std::string::npos)
      << response.failure->message;
}

TEST_F(VersionsTest, PatchesOfEveryTypeAreAppliedInTheVersionOfTheRequest) {
  Create(kSliceV1);
  const auto patched = [&](std::string_view version, PatchKind type, const char* patch) {
    Response response = Patch(version, "ResourceSlice", "", "s", type, patch);
    EXPECT_FALSE(response.failure) << response.failure->message;
    return response.failure ? std::string() : api::WriteJson((*response.object)["spec"]["devices"]);
  };
  EXPECT_NE(patched("resource.k8s.io/v1beta1", PatchKind::kJson,
                    R"([{"op":"replace","path":"/spec/devices/0/basic/attributes/model/string",
                         "value":"y"}])")
                .find(R"("basic":{"attributes":{"model":{"string":"y"}})"),
            std::string::npos);
  EXPECT_NE(patched("resource.k8s.io/v1beta1", PatchKind::kMerge,
                    R"({"spec":{"devices":[{"name":"b","basic":{"attributes":{"n":{"int":1}}}}]}})")
                .find(R"([{"name":"b","basic":{"attributes":{"n":{"int":1}}}}])"),
            std::string::npos);
  EXPECT_EQ(patched("resource.k8s.io/v1beta1", PatchKind::kStrategicMerge,
                    R"({"spec":{"devices":[{"name":"z","basic":{}}]}})"),
            R"([{"name":"z","basic":{}}])");
  EXPECT_EQ(
      patched("resource.k8s.io/v1", PatchKind::kMerge, R"({"spec":{"devices":[{"name":"q"}]}})"),
      R"([{"name":"q"}])");
}

TEST_F(VersionsTest, AnUpdateInOneVersionKeepsWhatAnotherVersionWrote) {
  Create(kSliceV1);
  Response read = Get("resource.k8s.io/v1beta1", "ResourceSlice", "", "s");
  ASSERT_FALSE(read.failure);
  const api::ObjectPtr stored = core_->Find("resource.k8s.io", "resourceslices", "s");
  Response written = Handle(RequestFor(Verb::kUpdate, *read.object->json(), AdminUser()));
  ASSERT_FALSE(written.failure) << written.failure->message;
  EXPECT_EQ(core_->Find("resource.k8s.io", "resourceslices", "s"), stored)
      << "nothing has changed, so nothing is written";
}

TEST_F(VersionsTest, AWatchDeliversItsVersionAndConvertsEachObjectOnce) {
  std::vector<api::ObjectPtr> first, second, hub;
  auto start = [&](std::string_view version, std::vector<api::ObjectPtr>& into) {
    Request request = RequestOf(Verb::kWatch, version, "ResourceSlice", "", "");
    return core_->StartWatch(request, storage::Mark::kApplied,
                             [&into](const std::vector<Change>& changes) {
                               for (const Change& change : changes) into.push_back(change.object);
                             });
  };
  Core::WatchStart one = start("resource.k8s.io/v1beta1", first);
  Core::WatchStart two = start("resource.k8s.io/v1beta1", second);
  Core::WatchStart three = start("resource.k8s.io/v1", hub);
  ASSERT_FALSE(one.failure || two.failure || three.failure);
  Create(kSliceV1);
  loop_.RunUntilIdle();
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  ASSERT_EQ(hub.size(), 1u);
  EXPECT_EQ(first[0], second[0]) << "one object, so its bytes are made once";
  EXPECT_EQ(first[0]->api_version(), "resource.k8s.io/v1beta1");
  EXPECT_TRUE((*first[0])["spec"]["devices"].at(0)["basic"].has_value());
  EXPECT_EQ(hub[0]->api_version(), "resource.k8s.io/v1");
}

TEST_F(VersionsTest, ListsAndStatusUpdatesUseTheVersionOfTheRequest) {
  Create(kClaimBeta1);
  Response list =
      Handle(RequestOf(Verb::kList, "resource.k8s.io/v1beta1", "ResourceClaim", "default", ""));
  ASSERT_EQ(list.items.size(), 1u);
  EXPECT_EQ(list.items[0]->api_version(), "resource.k8s.io/v1beta1");
  Response status =
      Patch("resource.k8s.io/v1beta1", "ResourceClaim", "default", "c", PatchKind::kMerge,
            R"({"status":{"allocation":{"devices":{"results":[{"request":"r",
                              "driver":"d.example.com","pool":"p","device":"a"}]}}}})",
            "status");
  ASSERT_FALSE(status.failure) << status.failure->message;
  EXPECT_EQ(status.object->api_version(), "resource.k8s.io/v1beta1");
  EXPECT_EQ((*Get("resource.k8s.io/v1", "ResourceClaim", "default", "c")
                  .object)["status"]["allocation"]["devices"]["results"]
                .size(),
            1u);
}

TEST_F(VersionsTest, EveryVersionRejectsWarnsOrIgnoresUnknownFields) {
  // "exactly" is a field of v1 and unknown to v1beta1; "basic" the other way round.
  const std::pair<const char*, const char*> cases[] = {
      {"resource.k8s.io/v1beta1",
       R"("spec":{"devices":{"requests":[{"name":"r","deviceClassName":"x","exactly":{}}]}})"},
      {"resource.k8s.io/v1",
       R"("spec":{"devices":{"requests":[{"name":"r","count":1,"exactly":{"deviceClassName":"x"}}]}})"},
      {"resource.k8s.io/v1beta2",
       R"("spec":{"devices":{"requests":[{"name":"r","count":1,"exactly":{"deviceClassName":"x"}}]}})"}};
  int number = 0;
  for (const auto& [version, spec] : cases) {
    for (FieldValidation how :
         {FieldValidation::kStrict, FieldValidation::kWarn, FieldValidation::kIgnore}) {
      Request request = RequestOf(Verb::kCreate, version, "ResourceClaim", "default", "");
      request.text = StrCat(R"({"metadata":{"name":"f)", number++, R"("},)", spec, "}");
      request.field_validation = how;
      Response response = Handle(std::move(request));
      EXPECT_EQ(response.failure.has_value(), how == FieldValidation::kStrict) << version;
      EXPECT_EQ(response.warnings.size(), how == FieldValidation::kWarn ? 1u : 0u) << version;
      if (response.failure) {
        EXPECT_NE(response.failure->message.find("unknown field"), std::string::npos);
      }
    }
  }
}

TEST_F(VersionsTest, TaintRulesOfV1NeedAVersionToUpdateAndAnswerADeleteWithAStatus) {
  const auto rule = [](std::string_view version) {
    return StrCat(R"({"apiVersion":"resource.k8s.io/)", version,
                  R"(","kind":"DeviceTaintRule","metadata":{"name":"t"},)",
                  R"("spec":{"deviceSelector":{"driver":"d.example.com"},)",
                  R"("taint":{"key":"k","effect":"NoExecute"}}})");
  };
  Create(rule("v1"));
  EXPECT_EQ(core_->Find("resource.k8s.io", "devicetaintrules", "t")->api_version(),
            "resource.k8s.io/v1beta2");
  Response refused = Handle(RequestFor(Verb::kUpdate, rule("v1"), AdminUser()));
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->code, 422);
  EXPECT_FALSE(Handle(RequestFor(Verb::kUpdate, rule("v1beta2"), AdminUser())).failure);
  EXPECT_FALSE(Handle(RequestFor(Verb::kUpdate, rule("v1alpha3"), AdminUser())).failure);
  EXPECT_EQ(Get("resource.k8s.io/v1alpha3", "DeviceTaintRule", "", "t").object->api_version(),
            "resource.k8s.io/v1alpha3");
  EXPECT_EQ(Delete("resource.k8s.io/v1", "DeviceTaintRule", "", "t").object->kind(), "Status");
  Create(rule("v1beta2"));
  EXPECT_EQ(Delete("resource.k8s.io/v1beta2", "DeviceTaintRule", "", "t").object->kind(),
            "DeviceTaintRule");
}

TEST_F(VersionsTest, BothEventKindsAreOneResource) {
  Create(R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"},
    "eventTime":"2026-01-02T03:04:05.000006Z","reportingController":"sched","action":"Bind",
    "reportingInstance":"sched-1","reason":"Scheduled","note":"done","type":"Normal",
    "regarding":{"kind":"Pod","name":"p","namespace":"default"}})");
  const Response core = Get("v1", "Event", "default", "e");
  ASSERT_FALSE(core.failure);
  EXPECT_EQ((*core.object)["message"].str(), "done");
  EXPECT_EQ((*core.object)["involvedObject"]["name"].str(), "p");
  EXPECT_EQ((*core.object)["reportingComponent"].str(), "sched");
  Request list = RequestOf(Verb::kList, "events.k8s.io/v1", "Event", "default", "");
  list.field_selector = "regarding.name=p,reportingController=sched";
  const Response named = Handle(std::move(list));
  ASSERT_EQ(named.items.size(), 1u);
  EXPECT_EQ((*named.items[0])["note"].str(), "done");
  EXPECT_EQ(named.items[0]->api_version(), "events.k8s.io/v1");
  Request old = RequestOf(Verb::kList, "v1", "Event", "default", "");
  old.field_selector = "involvedObject.name=p,source=sched";
  EXPECT_EQ(Handle(std::move(old)).items.size(), 1u);
}

}  // namespace
}  // namespace drakkar::apiserver
