// Two API servers on one store, as with etcd. Each has its own link with latency.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "apiserver/testing/core_fixture.h"
#include "apiserver/watch/store_layout.h"
#include "apiserver/watch/stored_object.h"
#include "base/text/text.h"
#include "storage/testing/linked_store.h"

namespace drakkar::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

class SharedStoreTest : public ::testing::Test {
 protected:
  struct Server {
    std::unique_ptr<storage::LinkedStore> link;
    std::unique_ptr<Core> core;
  };

  SharedStoreTest() {
    disk_.set_sync_delay(milliseconds(1));
    store_ = storage::OpenMemoryStore(loop_, disk_);
    Open(near_, milliseconds(1), milliseconds(3));
    Open(far_, milliseconds(7), milliseconds(12));
    Do(near_, Make(Verb::kCreate, "Namespace", "", "default",
                   R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}})"));
  }

  void Open(Server& server, Duration delay, Duration event_delay) {
    server.link = std::make_unique<storage::LinkedStore>(loop_, *store_, delay, event_delay);
    server.core = std::make_unique<Core>(Core::Options{.loop = loop_,
                                                       .random = loop_.random(),
                                                       .store = *server.link,
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

  static Request Make(Verb verb, std::string_view kind, std::string namespace_, std::string name,
                      std::string text = {}) {
    Request request;
    request.user = AdminUser();
    request.verb = verb;
    request.kind = api::FindKind("", "v1", kind);
    request.namespace_ = std::move(namespace_);
    if (verb != Verb::kCreate) request.name = std::move(name);
    request.text = std::move(text);
    return request;
  }
  static std::string ConfigMap(std::string_view name, std::string_view value) {
    return StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")", name,
                  R"("},"data":{"n":")", value, R"("}})");
  }
  static Request Create(std::string_view name) {
    return Make(Verb::kCreate, "ConfigMap", "default", "", ConfigMap(name, "0"));
  }
  static Request Patch(std::string name, std::string text) {
    return Make(Verb::kPatch, "ConfigMap", "default", std::move(name), std::move(text));
  }

  std::shared_ptr<std::optional<Response>> Begin(Server& server, Request request) {
    auto answer = std::make_shared<std::optional<Response>>();
    server.core->Handle(std::move(request),
                        [answer](Response response) { *answer = std::move(response); });
    return answer;
  }
  Response Do(Server& server, Request request) {
    auto answer = Begin(server, std::move(request));
    WaitUntil([&] { return answer->has_value(); });
    return answer->has_value() ? std::move(**answer) : Response{};
  }
  static std::string WhatCameOf(const Response& response) {
    return response.failure ? StrCat(response.failure->code, " ", response.failure->reason)
                            : StrCat("ok ", response.object->name());
  }

  SeededLoop loop_;
  storage::MemoryDisk disk_;
  FeatureGates gates_;
  std::unique_ptr<storage::Store> store_;
  Server near_;
  Server far_;
};

TEST_F(SharedStoreTest, AWriteOnOneServerIsReadOnTheOtherAtOnce) {
  for (int i = 0; i < 10; ++i) {
    const std::string name = StrCat("c", i);
    const Response created = Do(near_, Create(name));
    ASSERT_FALSE(created.failure) << created.failure->message;
    EXPECT_EQ(created.object->resource_version(), created.revision);
    const Response read = Do(far_, Make(Verb::kGet, "ConfigMap", "default", name));
    ASSERT_FALSE(read.failure) << read.failure->message;
    EXPECT_EQ(*read.object->json(), *created.object->json());
    const Response list = Do(far_, Make(Verb::kList, "ConfigMap", "default", ""));
    EXPECT_EQ(list.items.size(), static_cast<std::size_t>(i) + 1);
    EXPECT_GE(list.revision, created.revision);
  }
}

TEST_F(SharedStoreTest, AWriterReadsWhatItWroteFromItsOwnServer) {
  bool answered = false;
  far_.core->Handle(Create("a"), [&](const Response& created) {
    answered = true;
    EXPECT_NE(far_.core->Find("", "configmaps", "default/a"), nullptr)
        << "the cache is there before the answer";
    EXPECT_EQ(far_.core->revision(), created.revision);
  });
  WaitUntil([&] { return answered; });
  EXPECT_TRUE(far_.core->IsDurable(far_.core->revision()));
}

TEST_F(SharedStoreTest, ALostRaceIsRetriedWithTheWinnersState) {
  Do(near_, Create("a"));
  std::vector<std::shared_ptr<std::optional<Response>>> answers;
  for (int i = 0; i < 2; ++i) {
    answers.push_back(Begin(near_, Patch("a", StrCat(R"({"data":{"near)", i, R"(":"x"}})"))));
    answers.push_back(Begin(far_, Patch("a", StrCat(R"({"data":{"far)", i, R"(":"x"}})"))));
  }
  for (const auto& answer : answers) {
    WaitUntil([&] { return answer->has_value(); });
    EXPECT_EQ(WhatCameOf(**answer), "ok a");
  }
  const Response read = Do(near_, Make(Verb::kGet, "ConfigMap", "default", "a"));
  EXPECT_EQ((*read.object)["data"].size(), 5u) << *read.object->json();
}

TEST_F(SharedStoreTest, AnUpdateOfAnOlderVersionIsAConflictWhicheverServerIsAsked) {
  const Response created = Do(near_, Create("a"));
  Do(near_, Patch("a", R"({"data":{"n":"1"}})"));
  api::Draft stale(created.object->tree());
  stale["data"].Entry("n") = "2";
  Request update = Make(Verb::kUpdate, "ConfigMap", "default", "a");
  update.object = stale.Freeze();
  EXPECT_EQ(WhatCameOf(Do(far_, update)), "409 Conflict");
  EXPECT_EQ(WhatCameOf(Do(near_, update)), "409 Conflict");
}

TEST_F(SharedStoreTest, OfTwoCreatesOfTheSameNameOneSucceeds) {
  auto first = Begin(near_, Create("a"));
  auto second = Begin(far_, Create("a"));
  WaitUntil([&] { return first->has_value() && second->has_value(); });
  EXPECT_THAT((std::vector{WhatCameOf(**first), WhatCameOf(**second)}),
              ::testing::UnorderedElementsAre("ok a", "409 AlreadyExists"));
}

TEST_F(SharedStoreTest, AnObjectDeletedOnTheOtherServerCanBeCreatedAgain) {
  Do(near_, Create("a"));
  ASSERT_FALSE(Do(far_, Make(Verb::kDelete, "ConfigMap", "default", "a")).failure);
  EXPECT_EQ(WhatCameOf(Do(near_, Patch("a", "{}"))), "404 NotFound");
  EXPECT_EQ(WhatCameOf(Do(near_, Create("a"))), "ok a");
  EXPECT_EQ(WhatCameOf(Do(far_, Create("a"))), "409 AlreadyExists");
}

TEST_F(SharedStoreTest, WatchersOfEitherServerSeeTheSameChangesInTheSameOrder) {
  std::vector<std::string> seen_near;
  std::vector<std::string> seen_far;
  const auto watch = [](Server& server, storage::Mark mark, std::vector<std::string>& seen) {
    Core::WatchStart start = server.core->StartWatch(
        Make(Verb::kWatch, "ConfigMap", "default", ""), mark,
        [&seen](const std::vector<Change>& changes) {
          for (const Change& change : changes) {
            EXPECT_EQ(change.object->resource_version(), change.revision);
            seen.push_back(StrCat(static_cast<int>(change.type), " ", change.object->name(), "@",
                                  change.revision));
          }
        });
    EXPECT_FALSE(start.failure);
    return std::move(start.watcher);
  };
  auto first = watch(near_, storage::Mark::kDurable, seen_near);
  auto second = watch(far_, storage::Mark::kApplied, seen_far);
  std::vector<std::shared_ptr<std::optional<Response>>> answers;
  for (int i = 0; i < 10; ++i) {
    answers.push_back(Begin(i % 2 == 0 ? near_ : far_, Create(StrCat("c", i))));
  }
  for (const auto& answer : answers) WaitUntil([&] { return answer->has_value(); });
  Do(far_, Make(Verb::kDelete, "ConfigMap", "default", "c0"));
  WaitUntil([&] { return seen_near.size() == 11 && seen_far.size() == 11; });
  EXPECT_EQ(seen_near, seen_far);
  EXPECT_TRUE(seen_far.back().starts_with("2 c0@")) << seen_far.back();
}

TEST_F(SharedStoreTest, AWriteWithoutAConnectionFailsAndTheNextOneSucceeds) {
  Do(near_, Create("a"));
  auto under_way = Begin(near_, Patch("a", R"({"data":{"n":"1"}})"));
  near_.link->Cut();
  WaitUntil([&] { return under_way->has_value(); });
  EXPECT_EQ(WhatCameOf(**under_way), "503 ServiceUnavailable");
  EXPECT_EQ(WhatCameOf(Do(near_, Make(Verb::kGet, "ConfigMap", "default", "a"))),
            "503 ServiceUnavailable")
      << "whether it is fresh is not known";
  Request any = Make(Verb::kList, "ConfigMap", "default", "");
  any.resource_version = "0";
  EXPECT_EQ(Do(near_, any).items.size(), 1u) << "any state will do";
  Do(far_, Create("b"));
  near_.link->Restore();
  EXPECT_EQ(Do(near_, Make(Verb::kList, "ConfigMap", "default", "")).items.size(), 2u);
  EXPECT_EQ(WhatCameOf(Do(near_, Patch("a", R"({"data":{"n":"2"}})"))), "ok a");
}

TEST_F(SharedStoreTest, AServerThatMissedCompactedChangesReloadsAndEndsItsWatches) {
  Do(near_, Create("stays"));
  Do(near_, Create("goes"));
  std::vector<ErrorCode> closed;
  std::vector<std::string> seen;
  const auto watch = [&](storage::Mark mark) {
    return near_.core
        ->StartWatch(
            Make(Verb::kWatch, "ConfigMap", "default", ""), mark,
            [&](const std::vector<Change>& changes) {
              for (const Change& change : changes) seen.emplace_back(change.object->name());
            },
            [&](const Error& why) { closed.push_back(why.code); })
        .watcher;
  };
  auto applied = watch(storage::Mark::kApplied);
  auto durable = watch(storage::Mark::kDurable);
  near_.link->Cut();
  Do(far_, Make(Verb::kDelete, "ConfigMap", "default", "goes"));
  const Response created = Do(far_, Create("comes"));
  bool compacted = false;
  far_.link->Compact(created.revision, [&](Result<void> result) { compacted = result.ok(); });
  WaitUntil([&] { return compacted; });
  near_.link->Restore();
  WaitUntil([&] { return closed.size() == 2; });
  EXPECT_THAT(closed, ElementsAre(ErrorCode::kExpired, ErrorCode::kExpired));
  EXPECT_TRUE(seen.empty());
  std::vector<std::string> names;
  const Response list = Do(near_, Make(Verb::kList, "ConfigMap", "default", ""));
  for (const api::ObjectPtr& item : list.items) names.emplace_back(item->name());
  EXPECT_THAT(names, ElementsAre("comes", "stays"));
  // It follows the store again.
  auto again = watch(storage::Mark::kDurable);
  Do(far_, Create("later"));
  WaitUntil([&] { return !seen.empty(); });
  EXPECT_THAT(seen, ElementsAre("later"));
}

TEST_F(SharedStoreTest, BindingAPodWinsAgainstAChangeOfItsLabels) {
  Do(near_, Make(Verb::kCreate, "Pod", "default", "", R"({"apiVersion":"v1","kind":"Pod",
      "metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})"));
  Request bind = Make(Verb::kCreate, "Pod", "default", "",
                      R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},)"
                      R"("target":{"kind":"Node","name":"n"}})");
  bind.name = "p";
  bind.subresource = "binding";
  auto bound = Begin(far_, std::move(bind));
  // By now the binding is based on what the far server has read, and the near server writes first.
  loop_.Advance(milliseconds(16));
  auto labelled = Begin(
      near_, Make(Verb::kPatch, "Pod", "default", "p", R"({"metadata":{"labels":{"a":"b"}}})"));
  WaitUntil([&] { return bound->has_value() && labelled->has_value(); });
  EXPECT_FALSE((*bound)->failure) << (*bound)->failure->message;
  EXPECT_FALSE((*labelled)->failure) << (*labelled)->failure->message;
  const api::ObjectPtr pod = Do(far_, Make(Verb::kGet, "Pod", "default", "p")).object;
  EXPECT_EQ((*pod)["spec"]["nodeName"].str(), "n");
  EXPECT_EQ((*pod)["metadata"]["labels"].Entry("a").str(), "b");
}

TEST_F(SharedStoreTest, AnUnreadableObjectLeavesItsLastReadableState) {
  Do(near_, Create("a"));
  store_->Commit(
      {{},
       {{"/registry/core/configmaps/default/a", std::make_shared<const std::string>("{\"broken")}}},
      nullptr, nullptr);
  Do(far_, Create("b"));
  const Response read = Do(near_, Make(Verb::kGet, "ConfigMap", "default", "a"));
  ASSERT_FALSE(read.failure);
  EXPECT_EQ((*read.object)["data"].Entry("n").str(), "0");
  EXPECT_EQ(Do(near_, Make(Verb::kList, "ConfigMap", "default", "")).items.size(), 2u);
}

// A scheduler or controller that was paused goes on after another one took its Lease.
class FenceTest : public SharedStoreTest {
 protected:
  FenceTest() {
    Do(near_, Make(Verb::kCreate, "Namespace", "", "",
                   R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system"}})"));
    Request lease = Lease(Verb::kCreate, "old");
    EXPECT_EQ(WhatCameOf(Do(near_, std::move(lease))), "ok kube-scheduler");
  }
  static Request Lease(Verb verb, std::string_view holder) {
    Request request = Make(verb, "ConfigMap", "kube-system", "kube-scheduler",
                           StrCat(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",)",
                                  R"("metadata":{"name":"kube-scheduler"},"spec":{)",
                                  R"("holderIdentity":")", holder, R"("}})"));
    request.kind = api::FindKind("coordination.k8s.io", "v1", "Lease");
    return request;
  }
  void Step(int times) {
    for (int i = 0; i < times; ++i) {
      if (!loop_.RunOne()) loop_.AdvanceToNextTimer(seconds(1));
    }
  }
  static Request By(std::string_view holder, Request request) {
    request.fence = StrCat("kube-system/kube-scheduler ", holder);
    return request;
  }
};

TEST_F(FenceTest, OnlyTheHolderOfTheLeaseWrites) {
  EXPECT_EQ(WhatCameOf(Do(near_, By("old", Create("a")))), "ok a");
  EXPECT_EQ(WhatCameOf(Do(far_, By("new", Create("b")))), "409 Conflict");
  EXPECT_EQ(WhatCameOf(Do(far_, By("", Create("b")))), "409 Conflict");
  ASSERT_EQ(WhatCameOf(Do(far_, By("new", Lease(Verb::kPatch, "new")))), "ok kube-scheduler")
      << "the Lease itself must change hands";
  EXPECT_EQ(WhatCameOf(Do(near_, By("old", Create("b")))), "409 Conflict");
  EXPECT_EQ(WhatCameOf(Do(near_, By("old", Patch("a", R"({"data":{"n":"1"}})")))), "409 Conflict");
  EXPECT_EQ(WhatCameOf(Do(near_, By("old", Make(Verb::kDelete, "ConfigMap", "default", "a")))),
            "409 Conflict");
  EXPECT_EQ(WhatCameOf(Do(near_, By("new", Patch("a", R"({"data":{"n":"1"}})")))), "ok a");
  EXPECT_EQ(WhatCameOf(Do(near_, Make(Verb::kGet, "ConfigMap", "default", "a"))), "ok a");
}

// The Lease changes hands between the check of the slow server and its transaction.
TEST_F(FenceTest, AWriteDoesNotOvertakeTheChangeOfTheLease) {
  int accepted = 0;
  for (int round = 0; round < 12; ++round) {
    const std::string mine = StrCat("h", round);
    ASSERT_EQ(WhatCameOf(Do(near_, Lease(Verb::kPatch, mine))), "ok kube-scheduler");
    auto write = Begin(far_, By(mine, Create(StrCat("w", round))));
    Step(round);
    const Response taken = Do(near_, Lease(Verb::kPatch, StrCat("next", round)));
    WaitUntil([&] { return write->has_value(); });
    if ((*write)->failure) {
      EXPECT_EQ(WhatCameOf(**write), "409 Conflict");
      continue;
    }
    ++accepted;
    EXPECT_LT((*write)->object->resource_version(), taken.object->resource_version());
  }
  EXPECT_LT(accepted, 12);
}

// A renewal in between is not a reason to refuse.
TEST_F(FenceTest, RenewalsDoNotDisturbWrites) {
  for (int round = 0; round < 12; ++round) {
    auto create = Begin(far_, By("old", Create(StrCat("w", round))));
    Step(round);
    Request renewal = Lease(Verb::kPatch, "old");
    renewal.text = StrCat(R"({"metadata":{"annotations":{"round":")", round, R"("}}})");
    EXPECT_EQ(WhatCameOf(Do(near_, std::move(renewal))), "ok kube-scheduler");
    WaitUntil([&] { return create->has_value(); });
    EXPECT_EQ(WhatCameOf(**create), StrCat("ok w", round));
  }
}

// Services with the same node port, cluster IP or both, created and deleted at random through both
// servers, several at a time through each. At no time do two of them have the same.
TEST_F(SharedStoreTest, AServicesAddressAndNodePortAreItsOwn) {
  const auto service = [](int number, int port, bool wants_port) {
    return Make(
        Verb::kCreate, "Service", "default", "",
        StrCat(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"s)", number,
               R"("},"spec":{"type":"NodePort","clusterIP":")",
               wants_port ? "" : StrCat("10.96.0.", port), R"(","ports":[{"port":80,"nodePort":)",
               wants_port ? 30'000 + port : 0, "}]}}"));
  };
  int created = 0;
  int refused = 0;
  std::size_t most = 0;
  std::map<int, std::shared_ptr<std::optional<Response>>> open;  // by the number of the Service
  for (int step = 0; step < 400; ++step) {
    for (int i = 0; i < 4; ++i) {
      const int number = static_cast<int>(loop_.random().Below(10));
      if (open.contains(number)) continue;
      Server& server = loop_.random().Below(2) == 0 ? near_ : far_;
      const int port = 1 + static_cast<int>(loop_.random().Below(3));
      open[number] =
          Begin(server, loop_.random().Below(3) == 0
                            ? Make(Verb::kDelete, "Service", "default", StrCat("s", number))
                            : service(number, port, loop_.random().Below(2) == 0));
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
      created += response.http_status == 201;
      if (response.failure && response.failure->code == 422) {
        ++refused;
        EXPECT_THAT(response.failure->message, ::testing::HasSubstr("already allocated"));
      } else if (response.failure) {
        EXPECT_TRUE(response.failure->code == 404 || response.failure->reason == "AlreadyExists")
            << response.failure->message;
      }
      it = open.erase(it);
    }
    std::set<std::string> held;
    store_->Range(
        {.prefix = KeyPrefix({}, *api::FindKind("", "v1", "Service"))},
        [&](Result<storage::RangeResult> range) {
          for (const storage::Entry& entry : range->entries) {
            Result<api::ObjectPtr> stored = ReadStored(*entry.value, 1, Writer::kAnyServer);
            const api::Value spec = (**stored)["spec"];
            EXPECT_TRUE(held.emplace(spec["clusterIP"].str()).second) << *(*stored)->json();
            EXPECT_TRUE(
                held.insert(std::to_string(spec["ports"].at(0)["nodePort"].integer())).second)
                << *(*stored)->json();
          }
        });
    most = std::max(most, held.size());
    ASSERT_FALSE(HasFailure()) << "at step " << step;
  }
  EXPECT_GT(created, 20);
  EXPECT_GT(refused, 20);
  EXPECT_GE(most, 6u);
}

// `kubectl drain` evicts all pods of a node at the same time.
TEST_F(SharedStoreTest, EvictionsAtTheSameTimeKeepTheBudget) {
  const auto make = [](Verb verb, std::string_view group, std::string_view kind, std::string name,
                       std::string text) {
    Request request = Make(verb, "Pod", "default", std::move(name), std::move(text));
    request.kind = api::FindKind(group, "v1", kind);
    return request;
  };
  const Response budget =
      Do(near_,
         make(Verb::kCreate, "policy", "PodDisruptionBudget", "",
              R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b"},)"
              R"("spec":{"selector":{"matchLabels":{"app":"a"}},"minAvailable":4}})"));
  ASSERT_FALSE(budget.failure) << budget.failure->message;
  for (int i = 0; i < 5; ++i) {
    const std::string name = StrCat("p", i);
    const Response pod =
        Do(near_, make(Verb::kCreate, "", "Pod", "",
                       StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                              R"(","labels":{"app":"a"}},"spec":{"nodeName":"n","containers":[)",
                              R"({"name":"c","image":"i:1"}]}})")));
    ASSERT_FALSE(pod.failure) << pod.failure->message;
    Request status = make(Verb::kPatch, "", "Pod", name,
                          R"({"status":{"phase":"Running","conditions":[{"type":"Ready",)"
                          R"("status":"True"}]}})");
    status.subresource = "status";
    ASSERT_FALSE(Do(near_, std::move(status)).failure);
  }
  std::vector<std::shared_ptr<std::optional<Response>>> answers;
  for (int i = 0; i < 5; ++i) {
    Request eviction =
        make(Verb::kCreate, "", "Pod", "", R"({"apiVersion":"policy/v1","kind":"Eviction"})");
    eviction.name = StrCat("p", i);
    eviction.subresource = "eviction";
    answers.push_back(Begin(i % 2 == 0 ? near_ : far_, std::move(eviction)));
  }
  int evicted = 0;
  for (const auto& answer : answers) {
    WaitUntil([&] { return answer->has_value(); });
    if (!(*answer)->failure) {
      ++evicted;
    } else {
      EXPECT_EQ((*answer)->failure->code, 429) << (*answer)->failure->message;
    }
  }
  EXPECT_EQ(evicted, 1);
  int going = 0;
  for (const api::ObjectPtr& pod : Do(near_, Make(Verb::kList, "Pod", "default", "")).items) {
    going += pod->is_being_deleted();
  }
  EXPECT_EQ(going, 1);
}

}  // namespace
}  // namespace drakkar::apiserver
