#include "apiserver/rest/core.h"

#include <gtest/gtest.h>

#include <limits>

#include "api/json/reader.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/direct/direct_client.h"
#include "apiserver/rest/object_meta.h"
#include "apiserver/rest/selection.h"
#include "base/testing/seeded_loop.h"
#include "features/gates/feature_gates.h"
#include "storage/memory/memory_store.h"

namespace drakkar::apiserver {
namespace {

// A core with an in-memory store on a seeded loop.
class CoreTest : public ::testing::Test {
 protected:
  CoreTest() { Restart(); }

  // Crashes the server: only durable state survives.
  void Restart(Random* random = nullptr) {
    core_.reset();
    store_.reset();
    store_ = storage::OpenMemoryStore(loop_, disk_);
    core_ = std::make_unique<Core>(
        Core::Options{.loop = loop_,
                      .random = random != nullptr ? *random : loop_.random(),
                      .store = *store_,
                      .gates = gates_,
                      .on_store_failed = [this](const Error&) { ++store_failures_; }});
    core_->Start([](Result<void> ready) { ASSERT_TRUE(ready.ok()) << ready.error().message; });
    loop_.RunUntilIdle();
    if (core_->Find("", "namespaces", "default") == nullptr) {
      Request request = MakeRequest(Verb::kCreate, "Namespace", "", "");
      request.text = R"({"metadata":{"name":"default"}})";
      EXPECT_EQ(Handle(std::move(request)).http_status, 201);
    }
    Settle();
  }

  // Lets the disk finish.
  void Settle() { loop_.Advance(std::chrono::milliseconds(1)); }

  Request MakeRequest(Verb verb, std::string_view kind, std::string namespace_, std::string name) {
    Request request;
    request.verb = verb;
    for (const api::KindSchema& each : api::AllKinds()) {
      if (each.kind == kind && each.storage_version) request.kind = &each;
    }
    request.namespace_ = std::move(namespace_);
    request.name = std::move(name);
    return request;
  }

  Response Handle(Request request) {
    std::optional<Response> answer;
    core_->Handle(std::move(request), [&](Response response) { answer = std::move(response); });
    if (!answer) loop_.RunUntilIdle();
    EXPECT_TRUE(answer.has_value());
    return std::move(*answer);
  }

  Response CreatePod(std::string name, std::string extra = "") {
    Request request = MakeRequest(Verb::kCreate, "Pod", "default", "");
    request.text = R"({"metadata":{"name":")" + name +
                   R"("},"spec":{"containers":[{"name":"c","image":"busybox:1"}])" + extra + "}}";
    return Handle(std::move(request));
  }

  Response Get(std::string_view kind, std::string name) {
    return Handle(MakeRequest(Verb::kGet, kind, "default", std::move(name)));
  }

  SeededLoop loop_;
  storage::MemoryDisk disk_;
  FeatureGates gates_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<Core> core_;
  int store_failures_ = 0;
};

TEST_F(CoreTest, CreateSetsIdentityAndDefaults) {
  Response created = CreatePod("a");
  ASSERT_EQ(created.http_status, 201) << created.failure->message;
  const api::Object& pod = *created.object;
  EXPECT_EQ(pod.kind(), "Pod");
  EXPECT_EQ(pod.api_version(), "v1");
  EXPECT_EQ(pod.namespace_(), "default");
  EXPECT_EQ(pod.uid().size(), 36u);
  EXPECT_EQ(pod.resource_version(), created.revision);
  EXPECT_EQ(pod["spec"]["restartPolicy"].str(), "Always");
  EXPECT_EQ(pod["status"]["phase"].str(), "Pending");
  EXPECT_EQ(pod["status"]["qosClass"].str(), "BestEffort");
  EXPECT_EQ(pod["metadata"]["generation"].integer(), 1);
  EXPECT_EQ(Get("Pod", "a").object, created.object) << "shared, not copied";
}

TEST_F(CoreTest, FailuresAreWordedAsInKubernetes) {
  ASSERT_EQ(CreatePod("a").http_status, 201);
  EXPECT_EQ(CreatePod("a").failure->message, "pods \"a\" already exists");
  EXPECT_EQ(Get("Pod", "b").failure->message, "pods \"b\" not found");
  Response invalid = CreatePod("A_b", R"(,"restartPolicy":"Sometimes")");
  ASSERT_TRUE(invalid.failure.has_value());
  EXPECT_EQ(invalid.http_status, 422);
  EXPECT_EQ(invalid.failure->causes.size(), 2u) << "all errors at once";
  Request elsewhere = MakeRequest(Verb::kCreate, "Pod", "nowhere", "");
  elsewhere.text = R"({"metadata":{"name":"x"},"spec":{}})";
  EXPECT_EQ(Handle(std::move(elsewhere)).failure->message, "namespaces \"nowhere\" not found");
}

TEST_F(CoreTest, AnUpdateWithAnOldVersionIsAConflict) {
  Response created = CreatePod("a");
  auto update = [&](std::string_view version) {
    api::Draft draft(created.object->tree());
    draft["metadata"]["labels"]["v"] = version;
    draft["metadata"]["resourceVersion"] = version;
    Request request = MakeRequest(Verb::kUpdate, "Pod", "default", "a");
    request.object = draft.Freeze();
    return Handle(std::move(request));
  };
  const std::string version = std::to_string(created.object->resource_version());
  Response first = update(version);
  ASSERT_EQ(first.http_status, 200) << first.failure->message;
  EXPECT_GT(first.object->resource_version(), created.object->resource_version());
  Response second = update(version);
  EXPECT_EQ(second.http_status, 409);
  EXPECT_EQ(second.failure->reason, "Conflict");
}

TEST_F(CoreTest, AnUpdateThatChangesNothingWritesNothing) {
  Response created = CreatePod("a");
  Request request = MakeRequest(Verb::kUpdate, "Pod", "default", "a");
  request.object = created.object->tree();
  Response same = Handle(std::move(request));
  EXPECT_EQ(same.object->resource_version(), created.object->resource_version());
}

TEST_F(CoreTest, SpecAndStatusAreWrittenSeparately) {
  Response created = CreatePod("a");
  api::Draft draft(created.object->tree());
  draft["status"]["phase"] = "Running";
  draft["spec"]["activeDeadlineSeconds"] = 5;
  Request main = MakeRequest(Verb::kUpdate, "Pod", "default", "a");
  main.object = draft.Freeze();
  Response through_main = Handle(std::move(main));
  ASSERT_FALSE(through_main.failure) << through_main.failure->message;
  EXPECT_EQ(through_main.object->root()["status"]["phase"].str(), "Pending");
  EXPECT_EQ(through_main.object->root()["spec"]["activeDeadlineSeconds"].integer(), 5);
  EXPECT_EQ(through_main.object->root()["metadata"]["generation"].integer(), 2);

  api::Draft status(through_main.object->tree());
  status["status"]["phase"] = "Running";
  status["spec"]["activeDeadlineSeconds"] = 7;
  Request request = MakeRequest(Verb::kUpdate, "Pod", "default", "a");
  request.subresource = "status";
  request.object = status.Freeze();
  Response through_status = Handle(std::move(request));
  ASSERT_FALSE(through_status.failure) << through_status.failure->message;
  EXPECT_EQ(through_status.object->root()["status"]["phase"].str(), "Running");
  EXPECT_EQ(through_status.object->root()["spec"]["activeDeadlineSeconds"].integer(), 5);
}

TEST_F(CoreTest, ABoundPodIsDeletedWithGraceAndRemovedByItsNode) {
  CreatePod("a");
  Request bind = MakeRequest(Verb::kCreate, "Pod", "default", "a");
  bind.subresource = "binding";
  bind.text = R"({"target":{"kind":"Node","name":"n1"}})";
  Response bound = Handle(bind);
  ASSERT_EQ(bound.http_status, 201) << bound.failure->message;
  EXPECT_EQ(Get("Pod", "a").object->root()["spec"]["nodeName"].str(), "n1");
  EXPECT_EQ(Handle(bind).http_status, 409) << "a pod is bound once";

  Response marked = Handle(MakeRequest(Verb::kDelete, "Pod", "default", "a"));
  ASSERT_FALSE(marked.failure);
  EXPECT_TRUE(marked.object->is_being_deleted());
  EXPECT_EQ(marked.object->root()["metadata"]["deletionGracePeriodSeconds"].integer(), 30);
  Request final_delete = MakeRequest(Verb::kDelete, "Pod", "default", "a");
  final_delete.grace_period_seconds = 0;
  ASSERT_FALSE(Handle(std::move(final_delete)).failure);
  EXPECT_EQ(Get("Pod", "a").http_status, 404);
}

TEST_F(CoreTest, AGracePeriodOfCenturiesDoesNotOverflow) {
  CreatePod("a", R"(,"nodeName":"n1")");
  Request request = MakeRequest(Verb::kDelete, "Pod", "default", "a");
  request.grace_period_seconds = std::numeric_limits<std::int64_t>::max();
  const Response marked = Handle(std::move(request));
  ASSERT_FALSE(marked.failure);
  const Result<WallTime> end =
      api::ParseTime(marked.object->root()["metadata"]["deletionTimestamp"].str());
  ASSERT_TRUE(end.ok());
  EXPECT_GT(*end, loop_.clock().Now());
}

TEST_F(CoreTest, AClusterScopedObjectLosesItsNamespace) {
  Request request = MakeRequest(Verb::kCreate, "Node", "", "");
  request.text = R"({"metadata":{"name":"n","namespace":"default"}})";
  Response created = Handle(std::move(request));
  ASSERT_EQ(created.http_status, 201) << created.failure->message;
  EXPECT_EQ(created.object->namespace_(), "");
  Request update = MakeRequest(Verb::kUpdate, "Node", "", "n");
  update.text = R"({"metadata":{"name":"n","namespace":"default","labels":{"a":"b"}}})";
  Response updated = Handle(std::move(update));
  ASSERT_EQ(updated.http_status, 200) << updated.failure->message;
  EXPECT_EQ(updated.object->namespace_(), "");
}

TEST_F(CoreTest, FinalizersKeepAnObjectUntilTheLastIsRemoved) {
  Request request = MakeRequest(Verb::kCreate, "ConfigMap", "default", "");
  request.text = R"({"metadata":{"name":"a","finalizers":["x/y"]}})";
  ASSERT_EQ(Handle(std::move(request)).http_status, 201);
  Response marked = Handle(MakeRequest(Verb::kDelete, "ConfigMap", "default", "a"));
  ASSERT_FALSE(marked.failure);
  EXPECT_TRUE(marked.object->is_being_deleted());
  api::Draft draft(marked.object->tree());
  draft["metadata"].Remove("finalizers");
  Request update = MakeRequest(Verb::kUpdate, "ConfigMap", "default", "a");
  update.object = draft.Freeze();
  ASSERT_FALSE(Handle(std::move(update)).failure);
  EXPECT_EQ(Get("ConfigMap", "a").http_status, 404);
}

TEST_F(CoreTest, APagedListIsConsistentWhileObjectsChange) {
  for (char c = 'a'; c <= 'e'; ++c) CreatePod(std::string(1, c));
  Request list = MakeRequest(Verb::kList, "Pod", "default", "");
  list.limit = 2;
  Response first = Handle(list);
  ASSERT_EQ(first.items.size(), 2u);
  EXPECT_EQ(first.remaining_items, 3);
  Handle(MakeRequest(Verb::kDelete, "Pod", "default", "c"));
  CreatePod("bb");
  list.continue_token = first.continue_token;
  Response second = Handle(list);
  ASSERT_FALSE(second.failure) << second.failure->message;
  ASSERT_EQ(second.items.size(), 2u);
  EXPECT_EQ(second.items[0]->name(), "c") << "as it was when the list began";
  EXPECT_EQ(second.items[1]->name(), "d");
  EXPECT_EQ(second.revision, first.revision);
  list.continue_token = second.continue_token;
  Response last = Handle(list);
  EXPECT_EQ(last.items.size(), 1u);
  EXPECT_TRUE(last.continue_token.empty());
}

TEST(UpdateGeneration, CountsChangesOutsideMetadataAndStatus) {
  const api::TreePtr before = *api::ParseJson(
      R"({"metadata":{"generation":4},"spec":{"a":1},"data":{"x":"y"},"status":{"s":1}})");
  const auto generation = [&](const std::function<void(api::Draft&)>& change) {
    api::Draft object(before);
    change(object);
    UpdateGeneration(StrategyFor(*api::FindKind("", "v1", "Pod")), before->root(), object);
    return object.Freeze()->root()["metadata"]["generation"].integer();
  };
  EXPECT_EQ(generation([](api::Draft&) {}), 4);
  EXPECT_EQ(generation([](api::Draft& object) { object["status"].Entry("s") = 2; }), 4);
  EXPECT_EQ(generation([](api::Draft& object) { object["metadata"]["labels"].Entry("l") = "v"; }),
            4);
  EXPECT_EQ(generation([](api::Draft& object) { object["spec"].Entry("a") = 1; }), 4)
      << "the same again";
  EXPECT_EQ(generation([](api::Draft& object) { object["spec"].Entry("a") = 2; }), 5);
  EXPECT_EQ(generation([](api::Draft& object) { object.Entry("more") = 1; }), 5);
  EXPECT_EQ(generation([](api::Draft& object) { object.Remove("data"); }), 5);
  EXPECT_EQ(generation([](api::Draft& object) {
              object.Remove("data");
              object.Entry("more") = 1;
            }),
            5)
      << "as many as before, but others";
}

TEST_F(CoreTest, AnExpiredListSaysHowToContinue) {
  for (char c = 'a'; c <= 'e'; ++c) CreatePod(std::string(1, c));
  Request list = MakeRequest(Verb::kList, "Pod", "default", "");
  list.limit = 2;
  list.continue_token = Handle(list).continue_token;
  CreatePod("bb");
  CreatePod("cc");
  store_->Compact(core_->revision(), [](Result<void> compacted) { EXPECT_TRUE(compacted.ok()); });
  loop_.Advance(std::chrono::seconds(1));
  const Response expired = Handle(list);
  ASSERT_TRUE(expired.failure);
  EXPECT_EQ(expired.failure->code, 410);
  EXPECT_EQ(expired.failure->reason, "Expired");
  EXPECT_EQ(expired.failure->message,
            "The provided continue parameter is too old to display a consistent list result. You "
            "can start a "
            "new list without the continue parameter, or use the continue token in this response "
            "to retrieve "
            "the remainder of the results. Continuing with the provided token results in an "
            "inconsistent list "
            "- objects that were created, modified, or deleted between the time the first chunk "
            "was returned "
            "and now may show up in the list.");
  list.continue_token = expired.continue_token;
  const Response rest = Handle(list);
  ASSERT_FALSE(rest.failure) << rest.failure->message;
  ASSERT_EQ(rest.items.size(), 2u);
  EXPECT_EQ(rest.items[0]->name(), "bb") << "made since";
  EXPECT_EQ(rest.items[1]->name(), "c");
  EXPECT_EQ(rest.revision, core_->revision());
  list.continue_token = rest.continue_token;
  EXPECT_EQ(Handle(list).items[0]->name(), "cc");
  Request exact = MakeRequest(Verb::kList, "Pod", "default", "");
  exact.resource_version = "2";
  exact.resource_version_match = "Exact";
  EXPECT_EQ(Handle(exact).failure->message,
            "The resourceVersion for the provided list is too old.");
}

TEST_F(CoreTest, SelectorsFilterListsAndReportLeavingAsDeletion) {
  CreatePod("a");
  Request watch = MakeRequest(Verb::kWatch, "Pod", "", "");
  watch.field_selector = "spec.nodeName=";
  watch.resource_version = std::to_string(core_->revision());
  std::vector<Change> seen;
  Core::WatchStart started =
      core_->StartWatch(watch, storage::Mark::kApplied, [&](const std::vector<Change>& changes) {
        seen.insert(seen.end(), changes.begin(), changes.end());
      });
  ASSERT_FALSE(started.failure);
  Request bind = MakeRequest(Verb::kCreate, "Pod", "default", "a");
  bind.subresource = "binding";
  bind.text = R"({"target":{"kind":"Node","name":"n1"}})";
  Handle(std::move(bind));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].type, ChangeType::kDeleted);
  EXPECT_EQ((*seen[0].object)["spec"]["nodeName"].str(), "") << "as it last was in the selection";
  EXPECT_EQ(seen[0].object->resource_version(), core_->revision()) << "when it left";
  Request list = MakeRequest(Verb::kList, "Pod", "default", "");
  list.field_selector = "spec.nodeName=n1";
  EXPECT_EQ(Handle(list).items.size(), 1u);
  list.field_selector = "spec.colour=red";
  EXPECT_EQ(Handle(list).http_status, 400);
}

TEST_F(CoreTest, ResponsesThatLeaveTheProcessWaitForDurable) {
  disk_.HoldSyncs();
  std::vector<Change> applied, durable;
  Request watch = MakeRequest(Verb::kWatch, "Pod", "", "");
  watch.resource_version = std::to_string(core_->revision());
  auto note = [](std::vector<Change>& into) {
    return [&into](const std::vector<Change>& changes) {
      into.insert(into.end(), changes.begin(), changes.end());
    };
  };
  auto one = core_->StartWatch(watch, storage::Mark::kApplied, note(applied));
  auto two = core_->StartWatch(watch, storage::Mark::kDurable, note(durable));
  Response created = CreatePod("a");
  bool answered = false;
  core_->WhenDurable(created.revision, [&](const auto& failure) { answered = !failure; });
  Settle();
  EXPECT_EQ(applied.size(), 1u);
  EXPECT_EQ(durable.size(), 0u);
  EXPECT_FALSE(answered);
  disk_.ReleaseSyncs();
  Settle();
  EXPECT_EQ(durable.size(), 1u);
  EXPECT_TRUE(answered);
}

TEST_F(CoreTest, AFailedStoreFailsAllWaitingRequests) {
  const storage::Revision safe = core_->revision();
  disk_.FailSync(1, Unavailable("no space left on device"));
  const Response created = CreatePod("a");
  ASSERT_EQ(created.http_status, 201);
  std::vector<std::string> answers;
  const auto note = [&](std::optional<Failure> failure) {
    answers.push_back(failure ? std::to_string(failure->code) + " " + failure->message : "fine");
  };
  core_->WhenDurable(created.revision, note);
  core_->WhenDurable(core_->revision(), note);
  EXPECT_TRUE(answers.empty());
  Settle();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_TRUE(
      answers[0].starts_with("500 Internal error occurred: the store failed: no space left"))
      << answers[0];
  EXPECT_EQ(answers[1], answers[0]);
  EXPECT_EQ(store_failures_, 1);
  // Callbacks now run at once, with the failure or, for a revision that was durable before,
  // without.
  core_->WhenDurable(core_->revision(), note);
  core_->WhenDurable(safe, note);
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[2], answers[0]);
  EXPECT_EQ(answers[3], "fine");
  EXPECT_EQ(CreatePod("b").http_status, 503);
  Settle();
  EXPECT_EQ(store_failures_, 1) << "told once";
  Request watch = MakeRequest(Verb::kWatch, "Pod", "", "");
  const auto refused = core_->StartWatch(watch, storage::Mark::kDurable, [](const auto&) {});
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(refused.failure->code, 500);
  Restart();
  EXPECT_EQ(Get("Pod", "a").http_status, 404);
}

TEST_F(CoreTest, AFullDiskRefusesWritesAndServesReads) {
  const Response before = CreatePod("before");
  Settle();
  disk_.HoldSyncs();
  const Response stuck = CreatePod("stuck");
  ASSERT_EQ(stuck.http_status, 201) << "applied, but not saved yet";
  std::optional<Failure> answer;
  core_->WhenDurable(stuck.revision, [&](std::optional<Failure> failure) { answer = failure; });
  disk_.SetFull(true);
  Settle();
  ASSERT_TRUE(answer.has_value()) << "the client of a write that cannot be saved has to know";
  EXPECT_EQ(answer->code, 507);
  EXPECT_EQ(answer->reason, "InsufficientStorage");
  EXPECT_EQ(answer->message, "the disk is full; the change is saved once there is space");
  const Response refused = CreatePod("refused");
  EXPECT_EQ(refused.http_status, 507);
  EXPECT_EQ(refused.failure->message, "the disk is full");
  EXPECT_EQ(Get("Pod", "before").http_status, 200);
  std::optional<Failure> unsaved;
  core_->WhenDurable(stuck.revision, [&](std::optional<Failure> failure) { unsaved = failure; });
  ASSERT_TRUE(unsaved.has_value()) << "a read of what may still be lost must not wait forever";
  EXPECT_EQ(unsaved->code, 507);
  disk_.SetFull(false);
  Settle();
  EXPECT_TRUE(core_->IsDurable(stuck.revision));
  EXPECT_EQ(CreatePod("after").http_status, 201);
  Restart();
  EXPECT_EQ(Get("Pod", "before").http_status, 200);
  EXPECT_EQ(Get("Pod", "stuck").http_status, 200);
  EXPECT_EQ(Get("Pod", "refused").http_status, 404);
}

TEST_F(CoreTest, ADamagedObjectFailsRequestsForItAndNoOthers) {
  CreatePod("good");
  CreatePod("bad");
  Settle();
  disk_.Damage("/registry/core/pods/default/bad");
  Restart();
  EXPECT_EQ(Get("Pod", "good").http_status, 200);
  ASSERT_EQ(core_->unreadable().size(), 1u);
  for (const Verb verb : {Verb::kGet, Verb::kUpdate, Verb::kPatch, Verb::kDelete}) {
    Request request = MakeRequest(verb, "Pod", "default", "bad");
    request.text = "{}";
    const Response response = Handle(std::move(request));
    EXPECT_EQ(response.http_status, 500) << VerbName(verb);
    EXPECT_EQ(response.failure->reason, "StoreReadError");
    EXPECT_NE(response.failure->message.find("/registry/core/pods/default/bad cannot be read"),
              std::string::npos)
        << response.failure->message;
  }
  EXPECT_EQ(CreatePod("bad").http_status, 500) << "its name is not free";
  const Response list = Handle(MakeRequest(Verb::kList, "Pod", "default", ""));
  EXPECT_EQ(list.items.size(), 1u);
  ASSERT_EQ(list.warnings.size(), 1u);
  EXPECT_EQ(list.warnings[0],
            "1 stored object cannot be read and is missing from this list: default/bad");
  EXPECT_TRUE(Handle(MakeRequest(Verb::kList, "Pod", "other", "")).warnings.empty());
  Request unsafe = MakeRequest(Verb::kDelete, "Pod", "default", "bad");
  unsafe.ignore_read_error = true;
  EXPECT_EQ(Handle(unsafe).http_status, 200);
  EXPECT_TRUE(core_->unreadable().empty());
  EXPECT_EQ(CreatePod("bad").http_status, 201);
}

TEST_F(CoreTest, AFailedStoreEndsDurableWatches) {
  const api::KindSchema* pods = api::FindKind("", "v1", "Pod");
  std::vector<std::string> ends;
  std::vector<std::unique_ptr<client::Client>> clients;
  std::vector<std::unique_ptr<client::WatchHandle>> watches;
  for (const storage::Mark mark : {storage::Mark::kApplied, storage::Mark::kDurable}) {
    clients.push_back(MakeDirectClient(loop_, *core_, UserInfo{.name = "part"}, mark));
    watches.push_back(
        clients.back()->Watch({pods, "", "", ""}, {.resource_version = core_->revision()},
                              {.on_events = [](std::vector<client::WatchEvent>) {},
                               .on_closed = [&](Error error) { ends.push_back(error.message); }}));
  }
  Settle();
  disk_.FailSync(1, Unavailable("no space left on device"));
  CreatePod("a");
  std::optional<client::Reply> reply;
  clients[1]->Get({pods, "default", "a", ""},
                  [&](client::Reply given) { reply = std::move(given); });
  Settle();
  ASSERT_EQ(ends.size(), 1u) << "what is applied is all the other one wants";
  EXPECT_TRUE(ends[0].starts_with("no space left on device")) << ends[0];
  ASSERT_TRUE(reply.has_value());
  EXPECT_FALSE(reply->ok()) << "it may be lost";
}

TEST_F(CoreTest, AFutureVersionIsRejectedAtOnce) {
  CreatePod("a");
  CreatePod("b");
  Request list = MakeRequest(Verb::kList, "Pod", "default", "");
  list.resource_version = "999999";
  for (const char* match : {"", "Exact", "NotOlderThan"}) {
    list.resource_version_match = match;
    const Response answer = Handle(list);
    ASSERT_TRUE(answer.failure);
    EXPECT_EQ(answer.failure->code, 504);
    EXPECT_EQ(answer.failure->reason, "Timeout");
    ASSERT_EQ(answer.failure->causes.size(), 1u);
    EXPECT_EQ(answer.failure->causes[0].reason, "ResourceVersionTooLarge");
  }
  Request watch = MakeRequest(Verb::kWatch, "Pod", "", "");
  watch.resource_version = "999999";
  const auto started = core_->StartWatch(watch, storage::Mark::kApplied, [](const auto&) {});
  ASSERT_TRUE(started.failure.has_value());
  EXPECT_EQ(started.failure->code, 504) << "a client that backs off would never list again";
  EXPECT_EQ(started.failure->causes.at(0).reason, "ResourceVersionTooLarge");

  Request next = MakeRequest(Verb::kList, "Pod", "default", "");
  next.continue_token = EncodeContinue({999999, "default/a"});
  const Response expired = Handle(next);
  ASSERT_TRUE(expired.failure);
  EXPECT_EQ(expired.failure->code, 410);
  next.continue_token = expired.continue_token;
  const Response rest = Handle(next);
  ASSERT_EQ(rest.items.size(), 1u);
  EXPECT_EQ(rest.items[0]->name(), "b");
}

TEST_F(CoreTest, ABindingMayBePostedToItsOwnResource) {
  CreatePod("a");
  Request bind = MakeRequest(Verb::kCreate, "Pod", "default", "");
  bind.kind = api::FindKind("", "v1", "Binding");
  bind.text = R"({"metadata":{"name":"a"},"target":{"kind":"Node","name":"n1"}})";
  const Response bound = Handle(bind);
  ASSERT_EQ(bound.http_status, 201) << bound.failure->message;
  EXPECT_EQ((*Get("Pod", "a").object)["spec"]["nodeName"].str(), "n1");
  EXPECT_EQ(Handle(bind).http_status, 409) << "once";
  bind.text = R"({"metadata":{"name":"none"},"target":{"kind":"Node","name":"n1"}})";
  EXPECT_EQ(Handle(bind).http_status, 404);
}

TEST_F(CoreTest, SystemNamespacesCannotBeDeleted) {
  const Response kept = Handle(MakeRequest(Verb::kDelete, "Namespace", "", "default"));
  ASSERT_TRUE(kept.failure);
  EXPECT_EQ(kept.failure->code, 403);
  EXPECT_EQ(kept.failure->message,
            "namespaces \"default\" is forbidden: this namespace may not be deleted");
  Request other = MakeRequest(Verb::kCreate, "Namespace", "", "");
  other.text = R"({"metadata":{"name":"other"}})";
  EXPECT_EQ(Handle(std::move(other)).http_status, 201);
  EXPECT_EQ(Handle(MakeRequest(Verb::kDelete, "Namespace", "", "other")).http_status, 200);
}

TEST_F(CoreTest, AWatchFromACompactedVersionIsExpired) {
  CreatePod("a");
  Settle();
  Restart();
  ASSERT_EQ(Get("Pod", "a").http_status, 200) << "durable objects are there after a crash";
  Request watch = MakeRequest(Verb::kWatch, "Pod", "", "");
  watch.resource_version = "1";
  auto started = core_->StartWatch(watch, storage::Mark::kApplied, [](const auto&) {});
  ASSERT_TRUE(started.failure.has_value());
  EXPECT_EQ(started.failure->code, 410);
  EXPECT_EQ(started.failure->reason, "Expired");
}

TEST_F(CoreTest, ADryRunStoresNothing) {
  Request request = MakeRequest(Verb::kCreate, "Pod", "default", "");
  request.text =
      R"({"metadata":{"generateName":"a-"},"spec":{"containers":[{"name":"c","image":"i"}]}})";
  request.dry_run = true;
  Response response = Handle(std::move(request));
  ASSERT_EQ(response.http_status, 201) << response.failure->message;
  EXPECT_EQ(response.object->name().size(), 7u);
  EXPECT_EQ(Handle(MakeRequest(Verb::kList, "Pod", "default", "")).items.size(), 0u);
}

TEST_F(CoreTest, AGeneratedNameThatIsAlwaysTakenTellsTheClientToRetry) {
  class SameAlways final : public Random {
    std::uint64_t Next() override { return 7; }
  } stuck;
  Restart(&stuck);
  const auto create = [&] {
    Request request = MakeRequest(Verb::kCreate, "ConfigMap", "default", "");
    request.text = R"({"metadata":{"generateName":"a-"}})";
    return Handle(std::move(request));
  };
  const Response first = create();
  ASSERT_EQ(first.http_status, 201) << first.failure->message;
  const Response second = create();
  ASSERT_TRUE(second.failure.has_value());
  EXPECT_EQ(second.failure->code, 409);
  EXPECT_EQ(second.failure->reason, "AlreadyExists");
  EXPECT_EQ(
      second.failure->message,
      "configmaps \"" + std::string(first.object->name()) +
          "\" already exists, the server was not able to generate a unique name for the object");
  EXPECT_EQ(second.failure->retry_after_seconds, 1);
}

TEST_F(CoreTest, TheDirectClientGoesThroughTheSameChecks) {
  std::unique_ptr<client::Client> client =
      MakeDirectClient(loop_, *core_, UserInfo{.name = "part"});
  const api::KindSchema* pods = api::FindKind("", "v1", "Pod");
  std::vector<client::WatchEvent> events;
  auto watch = client->Watch({pods, "", "", ""}, {.resource_version = core_->revision()},
                             {.on_events =
                                  [&](std::vector<client::WatchEvent> batch) {
                                    for (auto& event : batch) events.push_back(std::move(event));
                                  },
                              .on_closed = [](Error error) { FAIL() << error.message; }});
  std::optional<client::Reply> reply;
  client->Create(
      {pods, "default", "", ""},
      *api::ParseJson(
          R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}})"),
      {}, [&](client::Reply r) { reply = std::move(r); });
  EXPECT_FALSE(reply.has_value()) << "never inside the call";
  loop_.RunUntilIdle();
  ASSERT_TRUE(reply && reply->ok());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].object, reply->object);
  client->Get({pods, "default", "zzz", ""}, [&](client::Reply r) { reply = std::move(r); });
  loop_.RunUntilIdle();
  ASSERT_FALSE(reply->ok());
  EXPECT_EQ(reply->error->code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace drakkar::apiserver
