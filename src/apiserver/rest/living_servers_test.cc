#include "apiserver/rest/living_servers.h"

#include <gmock/gmock.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/watch/stored_object.h"
#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "storage/memory/memory_store.h"
#include "storage/testing/linked_store.h"

namespace drakkar::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

using Servers = std::vector<ServerAddress>;

// A store whose keys do not expire: tests delete them.
class LivingServersTest : public ::testing::Test {
 protected:
  struct Server {
    Server(LivingServersTest& test, storage::Store& store, ServerAddress self)
        : link(test.loop_, store, milliseconds(1), milliseconds(2)),
          living({.loop = test.loop_,
                  .store = link,
                  .layout = test.layout_,
                  .self = std::move(self),
                  .on_servers = [this](const Servers& servers) { seen = servers; }}) {
      living.Start();
    }
    Servers seen;
    storage::LinkedStore link;
    LivingServers living;
  };

  LivingServersTest() { store_ = storage::OpenMemoryStore(loop_, disk_); }

  void Write(const std::string& key, storage::Bytes value) {
    storage::Transaction transaction;
    transaction.operations.push_back({.key = key, .value = std::move(value)});
    store_->Commit(
        std::move(transaction), [](const auto& written) { ASSERT_TRUE(written.ok()); }, nullptr);
    loop_.Advance(milliseconds(100));
  }

  SeededLoop loop_;
  const StoreLayout layout_{.is_kubernetes = true};
  storage::MemoryDisk disk_;
  std::unique_ptr<storage::Store> store_;
};

TEST_F(LivingServersTest, EveryServerSeesAll) {
  Server a(*this, *store_, {"10.0.0.1", 6443});
  loop_.Advance(seconds(1));
  EXPECT_THAT(a.seen, ElementsAre(ServerAddress{"10.0.0.1", 6443}));
  Server b(*this, *store_, {"10.0.0.2", 6443});
  loop_.Advance(seconds(1));
  const Servers both{{"10.0.0.1", 6443}, {"10.0.0.2", 6443}};
  EXPECT_EQ(a.seen, both) << "without waiting for its next renewal";
  EXPECT_EQ(b.seen, both);
}

TEST_F(LivingServersTest, AServerThatStopsIsGoneAtOnce) {
  Server a(*this, *store_, {"10.0.0.1", 6443});
  Server b(*this, *store_, {"10.0.0.2", 6443});
  loop_.Advance(seconds(1));
  bool stopped = false;
  b.living.Stop([&] { stopped = true; });
  loop_.Advance(milliseconds(100));
  EXPECT_TRUE(stopped);
  EXPECT_THAT(a.seen, ElementsAre(ServerAddress{"10.0.0.1", 6443}));
}

TEST_F(LivingServersTest, ARecordThatExpiresIsNoticed) {
  Server a(*this, *store_, {"10.0.0.1", 6443});
  auto b = std::make_unique<Server>(*this, *store_, ServerAddress{"10.0.0.2", 6443});
  loop_.Advance(seconds(1));
  b.reset();
  Write("/registry/masterleases/10.0.0.2:6443", nullptr);
  EXPECT_THAT(a.seen, ElementsAre(ServerAddress{"10.0.0.1", 6443}));
}

TEST_F(LivingServersTest, AnOutageEndsNothing) {
  Server a(*this, *store_, {"10.0.0.1", 6443});
  Server b(*this, *store_, {"10.0.0.2", 6443});
  loop_.Advance(seconds(1));
  b.link.Cut();
  loop_.Advance(seconds(30));
  EXPECT_EQ(b.seen.size(), 2u);
  Write("/registry/masterleases/10.0.0.2:6443", nullptr);
  EXPECT_EQ(a.seen.size(), 1u);
  b.link.Restore();
  loop_.Advance(LivingServers::kRetryInterval + seconds(1));
  EXPECT_EQ(a.seen.size(), 2u);
}

TEST_F(LivingServersTest, StoppingDoesNotWaitForAStoreThatIsAway) {
  Server a(*this, *store_, {"10.0.0.1", 6443});
  loop_.Advance(seconds(1));
  a.link.Cut();
  bool stopped = false;
  a.living.Stop([&] { stopped = true; });
  loop_.Advance(LivingServers::kStopTimeout);
  EXPECT_TRUE(stopped);
}

// It writes no port, and its key is the address alone.
TEST_F(LivingServersTest, SeesTheRecordsOfAKubeApiserverAndWritesWhatItReads) {
  Server a(*this, *store_, {"10.0.0.1", 7443});
  Write("/registry/masterleases/10.0.0.9",
        EncodeStored(layout_, api::Object(api::ParseJson(R"({"kind":"Endpoints","apiVersion":"v1",
          "metadata":{"generation":7},"subsets":[{"addresses":[{"ip":"10.0.0.9"}]}]})")
                                              .value())));
  EXPECT_THAT(a.seen,
              ElementsAre(ServerAddress{"10.0.0.1", 7443}, ServerAddress{"10.0.0.9", 7443}));
  Write("/registry/masterleases/10.0.0.8", std::make_shared<const std::string>("nonsense"));
  EXPECT_EQ(a.seen.size(), 2u);
  std::string stored;
  store_->Range({.prefix = "/registry/masterleases/10.0.0.1"}, [&](const auto& range) {
    ASSERT_EQ(range->entries.size(), 1u);
    stored = *range->entries[0].value;
  });
  EXPECT_TRUE(stored.starts_with(std::string("k8s\0", 4)));
  const auto record = ReadStored(stored, 1, Writer::kAnyServer);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ((**record)["subsets"].at(0)["addresses"].at(0)["ip"].str(), "10.0.0.1");
}

TEST(EndpointsOf, HaveOneSubsetAndOneSlicePerPort) {
  const Servers servers{{"10.0.0.1", 6443}, {"10.0.0.2", 6443}, {"10.0.0.2", 7443}};
  const std::vector<api::TreePtr> made = EndpointsOf(servers);
  ASSERT_EQ(made.size(), 3u);
  EXPECT_EQ(made[0]->root()["metadata"]["name"].str(), "kubernetes");
  EXPECT_EQ(api::WriteJson(made[0]->root()["endpoints"]),
            R"([{"addresses":["10.0.0.1"],"conditions":{"ready":true}},)"
            R"({"addresses":["10.0.0.2"],"conditions":{"ready":true}}])");
  EXPECT_EQ(made[1]->root()["metadata"]["name"].str(), "kubernetes-7443");
  EXPECT_EQ(made[2]->root()["kind"].str(), "Endpoints");
  EXPECT_EQ(ServersOf(made[2]->root()), servers);
}

TEST(EndpointsOf, ASliceHasAddressesOfOneFamily) {
  const auto made = EndpointsOf({{"10.0.0.1", 6443}, {"fd00::1", 6443}});
  EXPECT_EQ(made[0]->root()["addressType"].str(), "IPv4");
  EXPECT_EQ(made[0]->root()["endpoints"].size(), 1u);
  EXPECT_EQ(EndpointsOf({{"fd00::1", 6443}})[0]->root()["addressType"].str(), "IPv6");
}

TEST(SuccessorOf, TheServiceLeavesAServerThatIsGone) {
  const auto service = [](std::string_view ip, int port) {
    return api::Draft{
        {"spec", {{"clusterIP", ip}, {"ports", api::Draft::Array({api::Draft({{"port", port}})})}}}}
        .Freeze();
  };
  const ServerAddress a{"10.0.0.1", 6443}, b{"10.0.0.2", 6443}, v6{"fd00::1", 6443};
  EXPECT_EQ(SuccessorOf(service("10.0.0.1", 6443)->root(), {a, b}, {b}), b);
  EXPECT_EQ(SuccessorOf(service("10.0.0.1", 6443)->root(), {a, b, v6}, {v6}), std::nullopt);
  EXPECT_EQ(SuccessorOf(service("10.0.0.1", 6443)->root(), {a, b}, {a}), std::nullopt);
  EXPECT_EQ(SuccessorOf(service("10.0.0.1", 6443)->root(), {}, {b}), std::nullopt)
      << "it has not been seen alive";
  EXPECT_EQ(SuccessorOf(service("10.96.0.1", 443)->root(), {a, b}, {b}), std::nullopt)
      << "the address that a kube-apiserver has chosen";
}

}  // namespace
}  // namespace drakkar::apiserver
