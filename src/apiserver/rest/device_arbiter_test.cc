#include "apiserver/rest/device_arbiter.h"

#include <gmock/gmock.h>

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using ::testing::HasSubstr;

// Allocations through the API, with one server.
class DeviceArbiterTest : public CoreFixture {
 protected:
  DeviceArbiterTest() { StartCore(nullptr); }

  void Slice(std::string_view devices, std::string_view counters = "", int generation = 1) {
    const std::string spec =
        StrCat(R"({"driver":"d.example.com","allNodes":true,"pool":{"name":"p","generation":)",
               generation, R"(,"resourceSliceCount":)", counters.empty() ? 1 : 2, "}");
    const std::string head =
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")";
    Create(StrCat(head, "s", generation, R"("},"spec":)", spec, R"(,"devices":)", devices, "}}"));
    if (counters.empty()) return;
    Create(StrCat(head, "c", generation, R"("},"spec":)", spec, R"(,"sharedCounters":)", counters,
                  "}}"));
  }
  void Claim(const std::string& name) {
    Create(StrCat(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":")", name,
        R"(","namespace":"default"},"spec":{"devices":{"requests":[{"name":"r","exactly":)",
        R"({"deviceClassName":"c","count":4}}]}}})"));
  }
  static std::string Result(std::string_view device, std::string_view more = "") {
    return StrCat(R"({"request":"r","driver":"d.example.com","pool":"p","device":")", device, "\"",
                  more, "}");
  }
  // "" or the failure.
  std::string SetStatus(const std::string& name, const std::string& status) {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kPatch;
    request.patch = PatchKind::kMerge;
    request.kind = api::FindKind("resource.k8s.io", "v1", "ResourceClaim");
    request.namespace_ = "default";
    request.name = name;
    request.subresource = "status";
    request.text = StrCat(R"({"status":)", status, "}");
    const Response response = Handle(std::move(request));
    if (!response.failure) return "";
    return StrCat(response.failure->code, " ", response.failure->reason, " ",
                  response.failure->message);
  }
  std::string Allocate(const std::string& name, const std::string& results) {
    return SetStatus(name, StrCat(R"({"allocation":{"devices":{"results":[)", results, "]}}}"));
  }
  std::string Free(const std::string& name) { return SetStatus(name, R"({"allocation":null})"); }
};

TEST_F(DeviceArbiterTest, ADeviceIsHeldByOneClaim) {
  Slice(R"([{"name":"a"},{"name":"b"}])");
  for (const char* name : {"one", "two", "three"}) Claim(name);
  EXPECT_EQ(Allocate("one", Result("a")), "");
  const std::string refused = Allocate("two", Result("a"));
  EXPECT_THAT(refused, HasSubstr("409 Conflict"));
  EXPECT_THAT(refused, HasSubstr("d.example.com/p/a is already allocated"));
  EXPECT_EQ(Allocate("two", Result("b")), "");
  // Other changes of a claim that holds a device are not questioned.
  EXPECT_EQ(SetStatus("one", R"({"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]})"), "");
  EXPECT_EQ(SetStatus("one", R"({"reservedFor":null})"), "");
  EXPECT_EQ(Free("one"), "");
  EXPECT_EQ(Allocate("three", Result("a")), "");
}

TEST_F(DeviceArbiterTest, ADeviceThatIsInNoSliceIsStillHeldOnce) {
  Claim("one");
  Claim("two");
  EXPECT_EQ(Allocate("one", Result("ghost")), "");
  EXPECT_THAT(Allocate("two", Result("ghost")), HasSubstr("409 Conflict"));
}

TEST_F(DeviceArbiterTest, AClaimThatNamesADeviceTwiceIsJudgedAsInKubernetes) {
  Slice(R"([{"name":"a"},{"name":"b"}])");
  Claim("one");
  Claim("two");
  EXPECT_EQ(Allocate("one", StrCat(Result("a"), ",", Result("a"))), "");
  EXPECT_THAT(Allocate("two", StrCat(Result("b"), ",", Result("a"))), HasSubstr("409 Conflict"));
  // A refused attempt leaves nothing behind.
  EXPECT_EQ(Free("one"), "");
  EXPECT_EQ(Allocate("one", Result("b")), "");
}

TEST_F(DeviceArbiterTest, ADeletedClaimHoldsNothing) {
  Slice(R"([{"name":"a"}])");
  Claim("one");
  Claim("two");
  EXPECT_EQ(Allocate("one", Result("a")), "");
  Delete("resource.k8s.io/v1", "ResourceClaim", "default", "one");
  EXPECT_EQ(Allocate("two", Result("a")), "");
}

TEST_F(DeviceArbiterTest, CountersOfAPoolAreNotOverdrawn) {
  Slice(
      R"([{"name":"whole","consumesCounters":[{"counterSet":"g","counters":{"m":{"value":"8"}}}]},)"
      R"({"name":"half-1","consumesCounters":[{"counterSet":"g","counters":{"m":{"value":"4"}}}]},)"
      R"({"name":"half-2","consumesCounters":[{"counterSet":"g","counters":{"m":{"value":"4"}}}]},)"
      R"({"name":"plain"}])",
      R"([{"name":"g","counters":{"m":{"value":"8"}}}])");
  for (const char* name : {"one", "two", "three", "four"}) Claim(name);
  EXPECT_EQ(Allocate("one", Result("half-1")), "");
  EXPECT_THAT(Allocate("two", Result("whole")), HasSubstr("counter g/m of pool d.example.com/p"));
  EXPECT_EQ(Allocate("two", Result("half-2")), "");
  EXPECT_EQ(Allocate("three", Result("plain")), "");
  EXPECT_EQ(Free("one"), "");
  EXPECT_THAT(Allocate("four", Result("whole")), HasSubstr("409 Conflict"));
  EXPECT_EQ(Free("two"), "");
  EXPECT_EQ(Allocate("four", Result("whole")), "");
}

// The rest needs gates that are off by default.
class SharedDeviceArbiterTest : public DeviceArbiterTest {
 protected:
  static std::string Share(std::string_view id, std::string_view memory) {
    return Result("a", StrCat(R"(,"shareID":"00000000-0000-4000-8000-0000000000)", id,
                              R"(","consumedCapacity":{"memory":")", memory, "\"}"));
  }
};

TEST_F(SharedDeviceArbiterTest, SharesFitIntoTheCapacity) {
  Slice(R"([{"name":"a","allowMultipleAllocations":true,"capacity":{"memory":{"value":"8Gi"}}}])");
  for (const char* name : {"one", "two", "three", "four"}) Claim(name);
  ASSERT_EQ(Allocate("one", Share("01", "5Gi")), "");
  EXPECT_THAT(Allocate("two", Share("02", "4Gi")), HasSubstr("capacity memory of device"));
  EXPECT_THAT(Allocate("two", Share("01", "1Gi")), HasSubstr("is already allocated"));
  EXPECT_THAT(Allocate("three", Result("a")), HasSubstr("already shared by other claims"));
  EXPECT_EQ(Allocate("two", Share("02", "3Gi")), "");
  EXPECT_EQ(Free("one"), "");
  EXPECT_EQ(Allocate("four", Share("03", "5Gi")), "");
}

}  // namespace
}  // namespace drakkar::apiserver
