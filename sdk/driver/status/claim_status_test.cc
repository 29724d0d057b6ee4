#include "sdk/driver/status/claim_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "client/silent_client.h"
#include "tests/support/api_server.h"

namespace drakkar::driver {
namespace {

using ::testing::HasSubstr;

constexpr char kClaim[] = R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
  "metadata":{"name":"c","namespace":"default","uid":"u1"},
  "status":{"allocation":{"devices":{"results":[
      {"request":"r","driver":"d.example.com","pool":"p","device":"a"},
      {"request":"r","driver":"other.example.com","pool":"p","device":"b"}]}},
    "devices":[{"driver":"d.example.com","pool":"p","device":"a","conditions":[
      {"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"Up","message":""}]}]}})";

const WallTime kNow{std::chrono::seconds(1'800'000'000)};

Result<api::TreePtr> Render(const std::vector<AllocatedDeviceStatus>& devices) {
  const api::Object claim(*api::ParseJson(kClaim));
  ASSIGN_OR_RETURN(const std::string text,
                   RenderClaimStatus(claim, "d.example.com", devices, kNow));
  return api::ParseJson(text);
}

std::string ErrorOf(const std::vector<AllocatedDeviceStatus>& devices) {
  auto tree = Render(devices);
  return tree.ok() ? std::string() : tree.error().message;
}

TEST(ClaimStatus, CarriesConditionsDataAndNetwork) {
  auto tree = Render(
      {{.pool_name = "p",
        .device_name = "a",
        .conditions = {{"Ready", "True", "Up", ""}, {"Attached", "False", "Waiting", "soon"}},
        .data = *api::ParseJson(R"({"firmware":"1.2"})"),
        .network = DeviceNetworkData{"eth1", {"192.0.2.5/24"}, "02:00:00:00:00:01"}}});
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  EXPECT_EQ(api::WriteJson((*tree)->root()["metadata"]),
            R"({"name":"c","namespace":"default","uid":"u1"})");
  const api::Value device = (*tree)->root()["status"]["devices"].at(0);
  EXPECT_EQ(device["driver"].str(), "d.example.com");
  EXPECT_EQ(device["data"].Entry("firmware").str(), "1.2");
  EXPECT_EQ(
      api::WriteJson(device["networkData"]),
      R"({"interfaceName":"eth1","ips":["192.0.2.5/24"],"hardwareAddress":"02:00:00:00:00:01"})");
  EXPECT_EQ(device["conditions"].size(), 2u);
}

TEST(ClaimStatus, AnUnchangedConditionKeepsItsTime) {
  auto tree =
      Render({{.pool_name = "p",
               .device_name = "a",
               .conditions = {{"Ready", "True", "StillUp", ""}, {"New", "True", "X", ""}}}});
  ASSERT_TRUE(tree.ok());
  const api::Value conditions = (*tree)->root()["status"]["devices"].at(0)["conditions"];
  EXPECT_EQ(conditions.at(0)["lastTransitionTime"].str(), "2026-01-02T03:04:05Z");
  EXPECT_EQ(conditions.at(1)["lastTransitionTime"].str(), "2027-01-15T08:00:00Z");
}

TEST(ClaimStatus, RejectsWhatTheServerWouldReject) {
  EXPECT_THAT(
      ErrorOf({{.pool_name = "p", .device_name = "b"}}),
      HasSubstr("device p/b was not allocated to claim default/c from driver d.example.com"));
  EXPECT_THAT(
      ErrorOf({{.pool_name = "p", .device_name = "a"}, {.pool_name = "p", .device_name = "a"}}),
      HasSubstr("is listed twice"));
  const auto condition = [](DeviceCondition one) {
    return ErrorOf({{.pool_name = "p", .device_name = "a", .conditions = {one}}});
  };
  EXPECT_THAT(condition({"Ready", "yes", "X", ""}),
              HasSubstr("True, False or Unknown, not \"yes\""));
  EXPECT_THAT(condition({"Ready", "True", "", ""}), HasSubstr("reason must not be empty"));
  EXPECT_THAT(ErrorOf({{.pool_name = "p",
                        .device_name = "a",
                        .data = *api::ParseJson("{\"x\":\"" + std::string(11'000, 'y') + "\"}")}}),
              HasSubstr("10240 bytes"));
  for (const std::size_t bytes : {10'240, 10'241}) {
    const std::string json = StrCat(R"({"x":")", std::string(bytes - 8, 'y'), R"("})");
    ASSERT_EQ(json.size(), bytes);
    EXPECT_EQ(
        ErrorOf({{.pool_name = "p", .device_name = "a", .data = *api::ParseJson(json)}}).empty(),
        bytes == 10'240)
        << bytes;
  }
  EXPECT_THAT(ErrorOf({{.pool_name = "p", .device_name = "a", .data = *api::ParseJson("[1]")}}),
              HasSubstr("must be an object"));
  EXPECT_THAT(ErrorOf({{.pool_name = "p",
                        .device_name = "a",
                        .network = DeviceNetworkData{"eth1", {"192.0.2.5"}, ""}}}),
              HasSubstr("IP address \"192.0.2.5\" must be a valid address in CIDR form"));
  for (const std::size_t count : {std::size_t{8}, std::size_t{9}}) {
    std::vector<DeviceCondition> conditions;
    for (std::size_t i = 0; i < count; ++i) conditions.push_back({StrCat("c", i), "True", "X", ""});
    const std::string error =
        ErrorOf({{.pool_name = "p", .device_name = "a", .conditions = conditions}});
    EXPECT_EQ(error.find("8 conditions") != std::string::npos, count == 9u) << error;
  }
  for (const std::size_t count : {std::size_t{16}, std::size_t{17}}) {
    DeviceNetworkData network;
    for (std::size_t i = 0; i < count; ++i) network.ips.push_back(StrCat("192.0.2.", i, "/24"));
    const std::string error = ErrorOf({{.pool_name = "p", .device_name = "a", .network = network}});
    EXPECT_EQ(error.find("more than 16 addresses") != std::string::npos, count == 17u) << error;
  }
}

// Records the patch; claims come from the fixture.
class PatchClient final : public client::SilentClient {
 public:
  explicit PatchClient(EventLoop& loop) : loop_(loop) {}
  std::string body, manager, subresource;
  client::PatchType type{};
  bool force = false;
  std::optional<Error> answer;

  void Get(client::ResourceRef, client::ReplyCallback done) override {
    client::Reply reply;
    reply.object = std::make_shared<api::Object>(*api::ParseJson(kClaim));
    loop_.Post([reply, done] { done(reply); });
  }
  void Patch(client::ResourceRef ref, client::PatchType patch_type, std::string text,
             client::WriteOptions options, client::ReplyCallback done) override {
    body = std::move(text);
    type = patch_type;
    manager = options.field_manager;
    force = options.force;
    subresource = ref.subresource;
    client::Reply reply;
    reply.error = answer;
    loop_.Post([reply, done] { done(reply); });
  }

 private:
  EventLoop& loop_;
};

TEST(ClaimStatus, IsAppliedToTheStatusAsTheDriver) {
  SeededLoop loop;
  PatchClient client(loop);
  ClaimStatusWriter writer(client, loop.clock(), "d.example.com");
  std::optional<Result<void>> done;
  writer.Apply({"default", "u1", "c"}, {{.pool_name = "p", .device_name = "a"}},
               [&](Result<void> result) { done = std::move(result); });
  loop.RunUntilIdle();
  ASSERT_TRUE(done && done->ok());
  EXPECT_EQ(client.type, client::PatchType::kApply);
  EXPECT_EQ(client.subresource, "status");
  EXPECT_EQ(client.manager, "d.example.com");
  EXPECT_TRUE(client.force);
  EXPECT_THAT(client.body, HasSubstr(R"("apiVersion":"resource.k8s.io/v1")"));
}

TEST(ClaimStatus, AReplacedClaimIsLeftAlone) {
  SeededLoop loop;
  PatchClient client(loop);
  ClaimStatusWriter writer(client, loop.clock(), "d.example.com");
  std::optional<Result<void>> done;
  writer.Apply({"default", "another", "c"}, {},
               [&](Result<void> result) { done = std::move(result); });
  loop.RunUntilIdle();
  ASSERT_TRUE(done && !done->ok());
  EXPECT_THAT(done->error().message, HasSubstr("got replaced"));
  EXPECT_EQ(client.body, "");
}

TEST(ClaimStatus, TheServersErrorNamesTheClaim) {
  SeededLoop loop;
  PatchClient client(loop);
  client.answer = InvalidArgument("status.devices[0].conditions: too many");
  ClaimStatusWriter writer(client, loop.clock(), "d.example.com");
  std::optional<Result<void>> done;
  writer.Apply({"default", "u1", "c"}, {}, [&](Result<void> result) { done = std::move(result); });
  loop.RunUntilIdle();
  ASSERT_TRUE(done && !done->ok());
  EXPECT_EQ(done->error().message,
            "set the status of claim default/c: status.devices[0].conditions: too many");
}

// Against a real server, which must support server-side apply.
TEST(ClaimStatus, TheServerKeepsTheEntriesOfOtherDrivers) {
  SeededLoop loop;
  testing::TestApiServer server(loop);
  const api::ObjectPtr made =
      server.Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
    "metadata":{"name":"c","namespace":"default"},
    "spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x"}}]}}})");
  ASSERT_NE(made, nullptr);
  api::Draft draft(made->tree());
  for (const char* driver : {"d.example.com", "other.example.com"}) {
    draft["status"]["allocation"]["devices"]["results"].Append(
        {{"request", "r"}, {"driver", driver}, {"pool", "p"}, {"device", "a"}});
  }
  ASSERT_TRUE(server.Update("ResourceClaim", "default/c", "status", draft.Freeze()).ok());
  const auto apply = [&](const std::string& driver, std::vector<AllocatedDeviceStatus> devices) {
    ClaimStatusWriter writer(server.client(), loop.clock(), driver);
    std::optional<Result<void>> done;
    writer.Apply({"default", std::string(made->uid()), "c"}, std::move(devices),
                 [&](Result<void> result) { done = std::move(result); });
    loop.RunUntilIdle();
    ASSERT_TRUE(done.has_value());
    EXPECT_TRUE(done->ok()) << done->error().message;
  };
  apply("d.example.com",
        {{.pool_name = "p", .device_name = "a", .conditions = {{"Ready", "True", "Up", ""}}}});
  apply("other.example.com", {{.pool_name = "p",
                               .device_name = "a",
                               .network = DeviceNetworkData{"eth1", {"192.0.2.5/24"}, ""}}});
  const api::ObjectPtr both = server.Get("ResourceClaim", "default/c");
  ASSERT_EQ((*both)["status"]["devices"].size(), 2u);
  for (const api::Value device : (*both)["status"]["devices"].elements()) {
    const bool ours = device["driver"].str() == "d.example.com";
    EXPECT_EQ(device["conditions"].size(), ours ? 1u : 0u);
    EXPECT_EQ(device["networkData"]["interfaceName"].str(), ours ? "" : "eth1");
  }
}

}  // namespace
}  // namespace drakkar::driver
