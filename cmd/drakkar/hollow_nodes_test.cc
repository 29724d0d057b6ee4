#include "cmd/drakkar/hollow_nodes.h"

#include <gtest/gtest.h>

#include <map>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "client/scoped_client.h"
#include "client/shared_watches.h"
#include "tests/support/api_server.h"

namespace drakkar::cmd {
namespace {

using api::Draft;
using std::chrono::seconds;
using testing::KindNamed;

// Counts what reaches the server.
class CountingClient final : public client::Client {
 public:
  explicit CountingClient(client::Client& beneath) : beneath_(beneath) {}
  void Get(client::ResourceRef ref, client::ReplyCallback done) override {
    Count("get", ref);
    beneath_.Get(std::move(ref), std::move(done));
  }
  void List(client::ResourceRef ref, client::ListOptions options,
            std::function<void(client::ListReply)> done) override {
    Count("list", ref);
    beneath_.List(std::move(ref), std::move(options), std::move(done));
  }
  void Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    Count("create", ref);
    beneath_.Create(std::move(ref), std::move(body), std::move(options), std::move(done));
  }
  void Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    Count("update", ref);
    beneath_.Update(std::move(ref), std::move(body), std::move(options), std::move(done));
  }
  void Patch(client::ResourceRef ref, client::PatchType type, std::string body,
             client::WriteOptions options, client::ReplyCallback done) override {
    Count("patch", ref);
    beneath_.Patch(std::move(ref), type, std::move(body), std::move(options), std::move(done));
  }
  void Delete(client::ResourceRef ref, client::DeleteOptions options,
              client::ReplyCallback done) override {
    beneath_.Delete(std::move(ref), std::move(options), std::move(done));
  }
  void DeleteCollection(client::ResourceRef ref, client::ListOptions list,
                        client::DeleteOptions options, client::ReplyCallback done) override {
    beneath_.DeleteCollection(std::move(ref), std::move(list), std::move(options), std::move(done));
  }
  std::unique_ptr<client::WatchHandle> Watch(client::ResourceRef ref, client::WatchOptions options,
                                             client::WatchCallbacks callbacks) override {
    Count("watch", ref);
    return beneath_.Watch(std::move(ref), std::move(options), std::move(callbacks));
  }

  std::map<std::string, int> calls;

 private:
  void Count(const char* verb, const client::ResourceRef& ref) {
    ++calls[StrCat(verb, " ", ref.kind->kind)];
  }
  client::Client& beneath_;
};

struct Fleet {
  explicit Fleet(int count, int devices = 2, std::uint64_t seed = 1,
                 Duration health_changes_every = {})
      : loop(seed),
        api(loop),
        client(api.NewClient("admin")),
        counting(*client),
        nodes({.loop = loop,
               .random = loop.random(),
               .client = counting,
               .count = count,
               .devices = devices,
               .health_changes_every = health_changes_every}) {
    nodes.Start();
    loop.Advance(count * nodes.start_gap() + seconds(5));
  }

  std::vector<api::ObjectPtr> List(std::string_view kind) {
    std::vector<api::ObjectPtr> items;
    api.client().List({KindNamed(kind), "", "", ""}, {},
                      [&](client::ListReply reply) { items = std::move(reply.items); });
    loop.RunUntilIdle();
    return items;
  }
  // A claim for a device of a node, and a pod that uses it there.
  void RunPod(const std::string& name, const std::string& node, const std::string& annotations = "",
              const std::string& restart_policy = "Always") {
    auto claim = api.Create(StrCat(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":")", name,
        R"(","namespace":"default"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"any"}}]}}})"));
    ASSERT_NE(claim, nullptr);
    auto pod = api.Create(StrCat(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
        R"(","namespace":"default","annotations":{)", annotations,
        R"(}},"spec":{"restartPolicy":")", restart_policy,
        R"(","containers":[{"name":"a","image":"any.example.com/image:7","readinessProbe":{"httpGet":{"port":80}},"resources":{"claims":[{"name":"c"}]}}],"resourceClaims":[{"name":"c","resourceClaimName":")",
        name, R"("}]}})"));
    ASSERT_NE(pod, nullptr);
    Draft changed(claim->tree());
    changed["status"]["allocation"]["devices"]["results"].Append(
        {{"request", "r"}, {"driver", "sim.drakkar.io"}, {"pool", node}, {"device", "sim-0"}});
    changed["status"]["reservedFor"].Append(
        {{"resource", "pods"}, {"name", name}, {"uid", std::string(pod->uid())}});
    ASSERT_TRUE(api.Update("ResourceClaim", "default/" + name, "status", changed.Freeze()).ok());
    const Draft binding = {{"apiVersion", "v1"},
                           {"kind", "Binding"},
                           {"metadata", Draft{{"name", name}, {"namespace", "default"}}},
                           {"target", Draft{{"kind", "Node"}, {"name", node}}}};
    bool bound = false;
    api.client().Create({KindNamed("Pod"), "default", name, "binding"}, binding.Freeze(), {},
                        [&](client::Reply reply) { bound = reply.ok(); });
    loop.RunUntilIdle();
    ASSERT_TRUE(bound);
    loop.Advance(seconds(5));
  }
  api::ObjectPtr Pod(const std::string& name) { return api.Get("Pod", "default/" + name); }
  std::string Condition(const api::ObjectPtr& object, std::string_view type) {
    for (api::Value each : (*object)["status"]["conditions"].elements()) {
      if (each["type"].str() == type) return std::string(each["status"].str());
    }
    return "";
  }

  SeededLoop loop;
  testing::TestApiServer api;
  std::unique_ptr<client::Client> client;
  CountingClient counting;
  HollowNodes nodes;
};

TEST(HollowNodes, RegisterReportReadyAndPublishTheirDevices) {
  Fleet fleet(40, 8);
  const auto nodes = fleet.List("Node");
  ASSERT_EQ(nodes.size(), 40u);
  for (const api::ObjectPtr& node : nodes) EXPECT_EQ(fleet.Condition(node, "Ready"), "True");
  EXPECT_EQ(fleet.List("Lease").size(), 40u);
  const auto slices = fleet.List("ResourceSlice");
  ASSERT_EQ(slices.size(), 40u);
  EXPECT_EQ((*slices[0])["spec"]["devices"].size(), 8u);
}

TEST(HollowNodes, ShareOneWatchOfEachCollection) {
  Fleet fleet(40);
  EXPECT_EQ(fleet.counting.calls["watch Pod"], 1);
  EXPECT_EQ(fleet.counting.calls["watch Node"], 1);
  EXPECT_EQ(fleet.counting.calls["watch Service"], 1);
  EXPECT_EQ(fleet.counting.calls["watch ResourceSlice"], 1);
  EXPECT_EQ(fleet.counting.calls["list Pod"], 1);
}

TEST(HollowNodes, HeartbeatsAreSpreadOverTheirInterval) {
  Fleet fleet(200, 0);
  fleet.loop.Advance(seconds(20));
  // 200 nodes that renew every 10 s are two in a tenth of a second.
  int most = 0;
  for (int i = 0; i < 100; ++i) {
    fleet.counting.calls.clear();
    fleet.loop.Advance(std::chrono::milliseconds(100));
    most = std::max(most, fleet.counting.calls["update Lease"]);
  }
  EXPECT_LE(most, 4);
}

TEST(HollowNodes, APodWithADeviceRunsAndIsReadyWithItsHealthAndCanBeDeleted) {
  Fleet fleet(3);
  fleet.RunPod("p", "hollow-2");
  auto pod = fleet.Pod("p");
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ((*pod)["status"]["phase"].str(), "Running");
  EXPECT_EQ(fleet.Condition(pod, "Ready"), "True");
  const api::Value row =
      (*pod)["status"]["containerStatuses"].at(0)["allocatedResourcesStatus"].at(0);
  EXPECT_EQ(row["name"].str(), "claim:c");
  EXPECT_EQ(row["resources"].at(0)["health"].str(), "Healthy");
  fleet.api.Delete("Pod", "default/p");
  fleet.loop.Advance(seconds(60));
  EXPECT_EQ(fleet.Pod("p"), nullptr);
}

TEST(HollowNodes, AnAnnotationSaysWhenAJobsPodEndsAndHow) {
  Fleet fleet(2);
  fleet.RunPod("good", "hollow-1", R"("hollow.drakkar.io/runs-for":"20s")", "Never");
  fleet.RunPod("bad", "hollow-2",
               R"("hollow.drakkar.io/runs-for":"20s","hollow.drakkar.io/exit-code":"3")", "Never");
  EXPECT_EQ((*fleet.Pod("good"))["status"]["phase"].str(), "Running");
  fleet.loop.Advance(seconds(30));
  EXPECT_EQ((*fleet.Pod("good"))["status"]["phase"].str(), "Succeeded");
  const auto bad = fleet.Pod("bad");
  EXPECT_EQ((*bad)["status"]["phase"].str(), "Failed");
  EXPECT_EQ(
      (*bad)["status"]["containerStatuses"].at(0)["state"]["terminated"]["exitCode"].integer(), 3);
}

TEST(HollowNodes, HealthChangesReachPodsAndSlices) {
  Fleet fleet(1, 1, 1, seconds(7));
  fleet.RunPod("p", "hollow-1");
  bool was_unhealthy = false;
  bool was_healthy = false;
  for (int i = 0; i < 30; ++i) {
    fleet.loop.Advance(seconds(1));
    const auto pod = fleet.Pod("p");
    const api::Value container = (*pod)["status"]["containerStatuses"].at(0);
    const api::Value row = container["allocatedResourcesStatus"].at(0);
    const std::string health(row["resources"].at(0)["health"].str());
    was_unhealthy |= health == "Unhealthy";
    was_healthy |= was_unhealthy && health == "Healthy";
  }
  EXPECT_TRUE(was_unhealthy);
  EXPECT_TRUE(was_healthy);
}

TEST(HollowNodes, TheSameSeedGivesTheSameHistory) {
  auto history = [](std::uint64_t seed) {
    Fleet fleet(10, 2, seed, seconds(3));
    fleet.RunPod("p", "hollow-4");
    fleet.loop.Advance(seconds(40));
    std::string text;
    for (const char* kind : {"Node", "Pod", "ResourceSlice", "Lease"}) {
      for (const api::ObjectPtr& each : fleet.List(kind)) text += *each->json();
    }
    return text;
  };
  EXPECT_EQ(history(5), history(5));
  EXPECT_NE(history(5), history(6));
}

// A client that shares must behave like one that does not.
TEST(SharedWatches, AWatchContinuesWhereTheListEnded) {
  SeededLoop loop;
  testing::TestApiServer api(loop);
  client::SharedWatches shared(loop, loop.random(), api.client());
  shared.Share(api::FindResource("", "v1", "configmaps"), "metadata.name");
  loop.RunUntilIdle();
  auto create = [&](const std::string& name) {
    api.Create(StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")", name,
                      R"(","namespace":"default"}})"));
  };
  create("mine");
  create("other");
  const client::ResourceRef all = {api::FindResource("", "v1", "configmaps"), "", "", ""};
  client::ListReply listed;
  shared.List(all, {.field_selector = "metadata.name=mine"},
              [&](client::ListReply reply) { listed = std::move(reply); });
  loop.RunUntilIdle();
  ASSERT_EQ(listed.items.size(), 1u);

  // Changes between the list and the watch are not lost.
  Draft changed(listed.items[0]->tree());
  changed["data"].Entry("k") = "v";
  ASSERT_TRUE(api.Update("ConfigMap", "default/mine", "", changed.Freeze()).ok());
  loop.RunUntilIdle();
  std::vector<client::WatchEvent> events;
  std::optional<Error> closed;
  auto watch = [&] {
    return shared.Watch(
        all, {.field_selector = "metadata.name=mine", .resource_version = listed.resource_version},
        {.on_events =
             [&](std::vector<client::WatchEvent> got) {
               events.insert(events.end(), got.begin(), got.end());
             },
         .on_closed = [&](Error error) { closed = std::move(error); }});
  };
  auto handle = watch();
  loop.RunUntilIdle();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ((*events[0].object)["data"].Entry("k").str(), "v");
  create("third");
  api.Delete("ConfigMap", "default/other");
  loop.RunUntilIdle();
  EXPECT_EQ(events.size(), 1u);
  api.Delete("ConfigMap", "default/mine");
  loop.RunUntilIdle();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].type, client::EventType::kDeleted);

  // A watch from before the deletion would never learn of it.
  handle = watch();
  loop.RunUntilIdle();
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->code, ErrorCode::kExpired);
}

}  // namespace
}  // namespace drakkar::cmd
