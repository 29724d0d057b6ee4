// Allocations of devices through two API servers on one store, whose caches lag behind each other.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "apiserver/testing/core_fixture.h"
#include "apiserver/watch/stored_object.h"
#include "base/text/text.h"
#include "storage/testing/linked_store.h"

namespace drakkar::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TwoServersDevicesTest : public ::testing::Test {
 protected:
  struct Server {
    std::unique_ptr<storage::LinkedStore> link;
    std::unique_ptr<Core> core;
  };
  using Answer = std::shared_ptr<std::optional<Response>>;

  TwoServersDevicesTest() {
    store_ = storage::OpenMemoryStore(loop_, disk_);
    Open(servers_[0], milliseconds(1), milliseconds(2));
    Open(servers_[1], milliseconds(5), milliseconds(9));
    Do(Make(Verb::kCreate, "v1", "Namespace", "",
            R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}})"));
  }

  void Open(Server& server, Duration delay, Duration event_delay) {
    server.link = std::make_unique<storage::LinkedStore>(loop_, *store_, delay, event_delay);
    server.core = std::make_unique<Core>(Core::Options{.loop = loop_,
                                                       .random = loop_.random(),
                                                       .store = *server.link,
                                                       .layout = {.is_kubernetes = true},
                                                       .gates = gates_,
                                                       .admission = {}});
    bool ready = false;
    server.core->Start([&](Result<void> result) { ready = result.ok(); });
    WaitUntil([&] { return ready; });
  }
  void WaitUntil(const std::function<bool()>& condition) {
    while (!condition()) {
      if (loop_.RunOne()) continue;
      if (loop_.AdvanceToNextTimer(seconds(20))) continue;
      FAIL() << "nothing left to run, and what was waited for has not happened";
    }
  }
  static Request Make(Verb verb, std::string_view api_version, std::string_view kind,
                      std::string name, std::string text) {
    Request request;
    request.user = AdminUser();
    request.verb = verb;
    request.kind = api::FindKindByApiVersion(api_version, kind);
    if (request.kind->namespaced) request.namespace_ = "default";
    request.name = std::move(name);
    request.text = std::move(text);
    return request;
  }
  Answer Begin(int server, Request request) {
    auto answer = std::make_shared<std::optional<Response>>();
    servers_[server].core->Handle(std::move(request),
                                  [answer](Response response) { *answer = std::move(response); });
    return answer;
  }
  Response Do(Request request, int server = 0) {
    const Answer answer = Begin(server, std::move(request));
    WaitUntil([&] { return answer->has_value(); });
    return answer->has_value() ? std::move(**answer) : Response{};
  }

  void Slice(std::string_view name, std::string_view rest) {
    const Response made = Do(Make(
        Verb::kCreate, "resource.k8s.io/v1", "ResourceSlice", "",
        StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")",
               name, R"("},"spec":{"driver":"d.example.com","allNodes":true,"pool":)",
               R"({"name":"p","generation":1,"resourceSliceCount":2},)", rest, "}}")));
    ASSERT_FALSE(made.failure.has_value()) << made.failure->message;
  }
  void Claim(std::string_view name) {
    const Response made = Do(Make(
        Verb::kCreate, "resource.k8s.io/v1", "ResourceClaim", "",
        StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":")",
               name, R"("},"spec":{"devices":{"requests":[{"name":"r","exactly":)",
               R"({"deviceClassName":"c"}}]}}})")));
    ASSERT_FALSE(made.failure.has_value()) << made.failure->message;
  }
  static Request Allocate(std::string claim, std::string_view device) {
    Request request = Make(
        Verb::kPatch, "resource.k8s.io/v1", "ResourceClaim", std::move(claim),
        device.empty()
            ? R"({"status":{"allocation":null}})"
            : StrCat(R"({"status":{"allocation":{"devices":{"results":[{"request":"r","driver":)",
                     R"("d.example.com","pool":"p","device":")", device, R"("}]}}}})"));
    request.patch = PatchKind::kMerge;
    request.subresource = "status";
    return request;
  }

  // Every device that the stored claims hold, with the number of holders.
  std::map<std::string, int> Held() {
    std::map<std::string, int> held;
    store_->Range({.prefix = "/registry/resourceclaims/"}, [&](Result<storage::RangeResult> range) {
      for (const storage::Entry& entry : range->entries) {
        Result<api::ObjectPtr> claim = ReadStored(*entry.value, 1, Writer::kAnyServer);
        for (const api::Value result :
             (**claim)["status"]["allocation"]["devices"]["results"].elements()) {
          ++held[std::string(result["device"].str())];
        }
      }
    });
    return held;
  }
  std::set<std::string> Records() {
    std::set<std::string> keys;
    const std::string prefix = "/registry/drakkar.io/allocated/";
    store_->Range({.prefix = prefix}, [&](Result<storage::RangeResult> range) {
      for (const storage::Entry& entry : range->entries) {
        keys.insert(entry.key.substr(prefix.size()));
      }
    });
    return keys;
  }

  SeededLoop loop_;
  storage::MemoryDisk disk_;
  FeatureGates gates_;
  std::unique_ptr<storage::Store> store_;
  Server servers_[2];
};

TEST_F(TwoServersDevicesTest, OfTwoAllocationsOfOneDeviceOneIsRefused) {
  Claim("one");
  Claim("two");
  for (int round = 0; round < 10; ++round) {
    const Answer first = Begin(round % 2, Allocate("one", "a"));
    const Answer second = Begin(1 - round % 2, Allocate("two", "a"));
    WaitUntil([&] { return first->has_value() && second->has_value(); });
    int accepted = 0;
    for (const Answer& answer : {first, second}) {
      if (!(*answer)->failure) {
        ++accepted;
      } else {
        EXPECT_EQ((*answer)->failure->code, 409);
        EXPECT_EQ((*answer)->failure->reason, "Conflict");
      }
    }
    EXPECT_EQ(accepted, 1);
    EXPECT_EQ(Held().at("a"), 1);
    EXPECT_THAT(Records(), ::testing::ElementsAre("devices/d.example.com/p/a"));
    Do(Allocate("one", ""));
    Do(Allocate("two", ""), 1);
    EXPECT_THAT(Records(), ::testing::IsEmpty());
  }
}

TEST_F(TwoServersDevicesTest, ManyAllocationsFromOnePoolOfCountersAllSucceed) {
  std::string devices;
  for (int i = 0; i < 20; ++i) {
    devices += StrCat(i > 0 ? "," : "", R"({"name":"d)", i, R"(","consumesCounters":[)",
                      R"({"counterSet":"g","counters":{"m":{"value":"1"}}}]})");
    Claim(StrCat("c", i));
  }
  Slice("s", StrCat(R"("devices":[)", devices, "]"));
  Slice("g", R"("sharedCounters":[{"name":"g","counters":{"m":{"value":"20"}}}])");
  std::vector<Answer> answers;
  for (int i = 0; i < 20; ++i) {
    answers.push_back(Begin(0, Allocate(StrCat("c", i), StrCat("d", i))));
  }
  for (const Answer& answer : answers) {
    WaitUntil([&] { return answer->has_value(); });
    EXPECT_FALSE((*answer)->failure.has_value()) << (*answer)->failure->message;
  }
  EXPECT_EQ(Held().size(), 20u);
}

// Ten claims want devices of two halves and a whole of one card and single ones, through both
// servers, and give them back. At every revision the devices and the counters suffice.
TEST_F(TwoServersDevicesTest, RandomAllocationsNeverOverlap) {
  const auto partition = [](std::string_view name, int memory) {
    return StrCat(R"({"name":")", name, R"(","consumesCounters":[{"counterSet":"g","counters":)",
                  R"({"m":{"value":")", memory, R"("}}}]})");
  };
  Slice("s", StrCat(R"("devices":[{"name":"x"},{"name":"y"},)", partition("whole", 8), ",",
                    partition("left", 4), ",", partition("right", 4), "]"));
  Slice("g", R"("sharedCounters":[{"name":"g","counters":{"m":{"value":"8"}}}])");
  const char* const kDevices[] = {"x", "y", "whole", "left", "right"};
  constexpr int kClaims = 10;
  for (int i = 0; i < kClaims; ++i) Claim(StrCat("c", i));

  int accepted = 0;
  int refused = 0;
  std::map<int, Answer> open;  // by claim
  storage::Revision seen = 0;
  for (int step = 0; step < 3'000; ++step) {
    const int claim = static_cast<int>(loop_.random().Next() % kClaims);
    const int server = static_cast<int>(loop_.random().Next() % 2);
    if (!open.contains(claim)) {
      const bool frees = loop_.random().Next() % 2 == 0;
      open[claim] = Begin(
          server, Allocate(StrCat("c", claim), frees ? "" : kDevices[loop_.random().Next() % 5]));
    }
    for (int i = 0; i < 5; ++i) {
      if (!loop_.RunOne() && !loop_.AdvanceToNextTimer(seconds(1))) break;
    }
    for (auto it = open.begin(); it != open.end();) {
      if (!it->second->has_value()) {
        ++it;
        continue;
      }
      const Response& response = **it->second;
      if (!response.failure) {
        ++accepted;
      } else {
        ++refused;
        // 422: the claim has another allocation already.
        EXPECT_TRUE(response.failure->code == 409 || response.failure->code == 422)
            << response.failure->message;
      }
      it = open.erase(it);
    }
    if (std::exchange(seen, store_->applied_revision()) == store_->applied_revision()) continue;
    const std::map<std::string, int> held = Held();
    int memory = 0;
    for (const auto& [device, holders] : held) {
      ASSERT_EQ(holders, 1) << device << " at step " << step;
      memory += device == "whole" ? 8 : device == "left" || device == "right" ? 4 : 0;
    }
    ASSERT_LE(memory, 8) << "at step " << step;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
  EXPECT_LE(Records().size(), 6u);
}

}  // namespace
}  // namespace drakkar::apiserver
