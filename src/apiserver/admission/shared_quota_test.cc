// Quotas on one store with several API servers, whose caches lag behind each other.
#include <gmock/gmock.h>

#include <deque>

#include "apiserver/admission/measured_step.h"
#include "apiserver/admission/resource_quota.h"
#include "apiserver/testing/core_fixture.h"
#include "apiserver/watch/store_layout.h"
#include "base/text/text.h"
#include "storage/testing/linked_store.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SharedQuotaTest : public ::testing::Test {
 protected:
  using Answer = std::shared_ptr<std::optional<Response>>;
  struct Server {
    std::unique_ptr<storage::LinkedStore> link;
    std::unique_ptr<Core> core;
  };

  SharedQuotaTest() {
    store_ = storage::OpenMemoryStore(loop_, disk_);
    for (int i = 0; i < 3; ++i) Open(milliseconds(1 + 2 * i), milliseconds(2 + 5 * i));
    Do(0, Make(Verb::kCreate, "Namespace", R"({"metadata":{"name":"default"}})"));
  }

  void Open(Duration delay, Duration event_delay) {
    Server& server = servers_.emplace_back();
    server.link = std::make_unique<storage::LinkedStore>(loop_, *store_, delay, event_delay);
    std::vector<std::unique_ptr<AdmissionStep>> steps;
    steps.push_back(Measured(std::make_unique<ResourceQuotaAdmission>(), "validate", metrics_));
    server.core = std::make_unique<Core>(Core::Options{.loop = loop_,
                                                       .random = loop_.random(),
                                                       .store = *server.link,
                                                       .gates = gates_,
                                                       .admission = std::move(steps)});
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
  static Request Make(Verb verb, std::string_view kind, std::string text) {
    Request request;
    request.user = AdminUser();
    request.verb = verb;
    request.kind = api::FindKind("", "v1", kind);
    if (request.kind->namespaced) request.namespace_ = "default";
    request.text = std::move(text);
    return request;
  }
  static Request Named(Verb verb, std::string_view kind, std::string name, std::string text = {}) {
    Request request = Make(verb, kind, std::move(text));
    request.name = std::move(name);
    return request;
  }
  static Request ConfigMap(std::string_view name) {
    return Make(Verb::kCreate, "ConfigMap", StrCat(R"({"metadata":{"name":")", name, R"("}})"));
  }
  void Quota(int config_maps) {
    const Response made =
        Do(0, Make(Verb::kCreate, "ResourceQuota",
                   StrCat(R"({"metadata":{"name":"q"},"spec":{"hard":{"count/configmaps":")",
                          config_maps, R"("}}})")));
    ASSERT_FALSE(made.failure) << made.failure->message;
    for (int server = 0; server < 3; ++server) Do(server, Named(Verb::kGet, "ResourceQuota", "q"));
  }
  Answer Begin(int server, Request request) {
    auto answer = std::make_shared<std::optional<Response>>();
    servers_[server].core->Handle(std::move(request),
                                  [answer](Response response) { *answer = std::move(response); });
    return answer;
  }
  Response Do(int server, Request request) {
    const Answer answer = Begin(server, std::move(request));
    WaitUntil([&] { return answer->has_value(); });
    return answer->has_value() ? std::move(**answer) : Response{};
  }
  std::size_t Stored(std::string_view prefix) {
    std::size_t count = 0;
    store_->Range({.prefix = std::string(prefix)},
                  [&](Result<storage::RangeResult> range) { count = range->entries.size(); });
    return count;
  }
  std::size_t StoredMaps() { return Stored(KeyPrefix({}, *api::FindKind("", "v1", "ConfigMap"))); }
  // How many of the answers are accepted; the others must say that the quota is used up.
  int CountAccepted(const std::vector<Answer>& answers) {
    int accepted = 0;
    for (const Answer& answer : answers) {
      WaitUntil([&] { return answer->has_value(); });
      if (!(*answer)->failure) {
        ++accepted;
        continue;
      }
      EXPECT_EQ((*answer)->failure->code, 403);
      EXPECT_THAT((*answer)->failure->message, ::testing::HasSubstr("exceeded quota: q"));
    }
    return accepted;
  }

  SeededLoop loop_;
  storage::MemoryDisk disk_;
  FeatureGates gates_;
  Metrics metrics_;
  std::unique_ptr<storage::Store> store_;
  std::deque<Server> servers_;
};

TEST_F(SharedQuotaTest, RequestsAtTheSameTimeAtOneServerDoNotExceedIt) {
  Quota(10);
  std::vector<Answer> answers;
  for (int i = 0; i < 30; ++i) answers.push_back(Begin(1, ConfigMap(StrCat("c", i))));
  EXPECT_EQ(CountAccepted(answers), 10);
  EXPECT_EQ(StoredMaps(), 10u);
}

TEST_F(SharedQuotaTest, RequestsAtTheSameTimeAtSeveralServersDoNotExceedIt) {
  Quota(10);
  std::vector<Answer> answers;
  for (int i = 0; i < 60; ++i) answers.push_back(Begin(i % 3, ConfigMap(StrCat("c", i))));
  EXPECT_EQ(CountAccepted(answers), 10);
  EXPECT_EQ(StoredMaps(), 10u);
}

TEST_F(SharedQuotaTest, WhatOneServerHasAdmittedTheNextOneCounts) {
  Quota(4);
  for (int i = 0; i < 4; ++i) {
    ASSERT_FALSE(Do(i % 3, ConfigMap(StrCat("c", i))).failure);
  }
  for (int server = 0; server < 3; ++server) {
    EXPECT_EQ(Do(server, ConfigMap("more")).http_status, 403);
  }
  Do(2, Named(Verb::kDelete, "ConfigMap", "c0"));
  EXPECT_EQ(Do(0, Named(Verb::kGet, "ConfigMap", "c0")).http_status, 404);
  EXPECT_EQ(Do(0, ConfigMap("more")).http_status, 201);
  EXPECT_EQ(Do(1, ConfigMap("still-more")).http_status, 403);
}

TEST_F(SharedQuotaTest, AQuotaThatIsNotUsedUpRefusesNobody) {
  Quota(100);
  std::vector<Answer> answers;
  for (int i = 0; i < 60; ++i) answers.push_back(Begin(i % 3, ConfigMap(StrCat("c", i))));
  EXPECT_EQ(CountAccepted(answers), 60);
  EXPECT_EQ(Stored("/registry/drakkar.io/allocated/"), 1u);
  ASSERT_FALSE(Do(1, Named(Verb::kDelete, "ResourceQuota", "q")).failure);
  EXPECT_EQ(Stored("/registry/drakkar.io/allocated/"), 0u) << "its record is removed with it";
}

}  // namespace
}  // namespace drakkar::apiserver
