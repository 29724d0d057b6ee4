#include "sdk/driver/slices/slice_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "tests/support/api_server.h"

namespace drakkar::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kDriver[] = "d.example.com";

// A client whose writes sometimes fail, before or after they reached the server.
class FaultyClient final : public client::Client {
 public:
  FaultyClient(SeededLoop& loop, std::unique_ptr<client::Client> real)
      : loop_(loop), real_(std::move(real)) {}

  int fault_percent = 0;
  Duration watch_delay{};             // how far watches lag behind
  std::optional<Error> create_error;  // for every create
  // Changes what a write stores, like a server that drops fields.
  std::function<api::TreePtr(api::TreePtr)> rewrite;

  void Get(client::ResourceRef ref, client::ReplyCallback done) override {
    if (auto fault = Fault()) return Answer(*fault, std::move(done));
    real_->Get(std::move(ref), std::move(done));
  }
  void List(client::ResourceRef ref, client::ListOptions options,
            std::function<void(client::ListReply)> done) override {
    real_->List(std::move(ref), std::move(options), std::move(done));
  }
  void Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    if (create_error) return Answer(*create_error, std::move(done));
    if (auto fault = Fault()) return Answer(*fault, std::move(done));
    if (rewrite) body = rewrite(body);
    real_->Create(std::move(ref), std::move(body), std::move(options), Lossy(std::move(done)));
  }
  void Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    if (auto fault = Fault()) return Answer(*fault, std::move(done));
    if (rewrite) body = rewrite(body);
    real_->Update(std::move(ref), std::move(body), std::move(options), Lossy(std::move(done)));
  }
  void Patch(client::ResourceRef ref, client::PatchType type, std::string body,
             client::WriteOptions options, client::ReplyCallback done) override {
    real_->Patch(std::move(ref), type, std::move(body), std::move(options), std::move(done));
  }
  void Delete(client::ResourceRef ref, client::DeleteOptions options,
              client::ReplyCallback done) override {
    if (auto fault = Fault()) return Answer(*fault, std::move(done));
    real_->Delete(std::move(ref), std::move(options), Lossy(std::move(done)));
  }
  void DeleteCollection(client::ResourceRef ref, client::ListOptions list,
                        client::DeleteOptions options, client::ReplyCallback done) override {
    real_->DeleteCollection(std::move(ref), std::move(list), std::move(options), std::move(done));
  }
  std::unique_ptr<client::WatchHandle> Watch(client::ResourceRef ref, client::WatchOptions options,
                                             client::WatchCallbacks callbacks) override {
    auto handle = std::make_unique<LaggingWatch>();
    LaggingWatch* watch = handle.get();
    client::WatchCallbacks delayed;
    delayed.on_events = [this, watch,
                         on_events = callbacks.on_events](std::vector<client::WatchEvent> events) {
      if (watch_delay == Duration()) return on_events(std::move(events));
      watch->timers.push_back(loop_.RunAfter(
          watch_delay, [on_events, events = std::move(events)] { on_events(events); }));
    };
    delayed.on_closed = std::move(callbacks.on_closed);
    handle->real = real_->Watch(std::move(ref), std::move(options), std::move(delayed));
    return handle;
  }

 private:
  struct LaggingWatch final : client::WatchHandle {
    std::vector<TimerHandle> timers;
    std::unique_ptr<client::WatchHandle> real;
  };

  std::optional<Error> Fault() {
    if (loop_.random().Below(100) >= static_cast<std::uint64_t>(fault_percent)) return std::nullopt;
    if (loop_.random().Below(2) == 0) return Error{ErrorCode::kConflict, "injected conflict"};
    return Unavailable("injected failure");
  }
  // The write succeeded, but its response is lost.
  client::ReplyCallback Lossy(client::ReplyCallback done) {
    auto fault = Fault();
    if (!fault) return done;
    return [fault = Unavailable("injected loss"), done](client::Reply) {
      done(client::Reply{.http_status = 503, .error = fault});
    };
  }
  void Answer(Error error, client::ReplyCallback done) {
    loop_.Post([error = std::move(error), done = std::move(done)] {
      done(client::Reply{.http_status = 500, .error = error});
    });
  }

  SeededLoop& loop_;
  std::unique_ptr<client::Client> real_;
};

class SliceControllerTest : public ::testing::Test {
 protected:
  explicit SliceControllerTest(std::uint64_t seed = 1, bool shuffle = false)
      : loop_(seed, shuffle),
        server_(loop_, FeatureGates().With(Gate::kDRAOptionalNodePreparation, true)),
        client_(loop_, server_.NewClient("driver")) {
    server_.Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}})");
    Restart("n");
  }

  void Restart(std::string node, std::string pool = "") {
    controller_.reset();
    controller_ = std::make_unique<SliceController>(SliceController::Options{
        .loop = loop_,
        .random = loop_.random(),
        .client = client_,
        .driver_name = kDriver,
        .node_name = std::move(node),
        .pool_name = std::move(pool),
        .on_error = [this](const Error& error) { errors_.push_back(error.message); }});
  }

  void Publish(const DriverResources& resources) {
    auto accepted = controller_->Publish(resources);
    ASSERT_TRUE(accepted.ok()) << accepted.error().message;
  }

  std::vector<api::ObjectPtr> Slices() {
    std::vector<api::ObjectPtr> slices;
    server_.client().List({.kind = testing::KindNamed("ResourceSlice")}, {},
                          [&](client::ListReply reply) { slices = std::move(reply.items); });
    loop_.RunUntilIdle();
    return slices;
  }

  // "pool/generation/count: a b c" of each slice of the driver, sorted.
  std::vector<std::string> Published() {
    std::vector<std::string> lines;
    for (const api::ObjectPtr& slice : Slices()) {
      const api::Value spec = (*slice)["spec"];
      if (spec["driver"].str() != kDriver) continue;
      std::string line =
          StrCat(spec["pool"]["name"].str(), "/", spec["pool"]["generation"].integer(), "/",
                 spec["pool"]["resourceSliceCount"].integer(), ":");
      for (const api::Value device : spec["devices"].elements()) {
        line += StrCat(" ", device["name"].str());
      }
      lines.push_back(std::move(line));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  SeededLoop loop_;
  testing::TestApiServer server_;
  FaultyClient client_;
  std::vector<std::string> errors_;
  std::unique_ptr<SliceController> controller_;
};

Pool PoolOf(std::vector<std::vector<std::string>> slices) {
  Pool pool;
  for (const auto& names : slices) {
    Slice slice;
    for (const std::string& name : names) slice.devices.push_back({.name = name});
    pool.slices.push_back(std::move(slice));
  }
  return pool;
}

TEST_F(SliceControllerTest, PublishesWithTheFewestWrites) {
  Publish({{{"p", PoolOf({{"a"}, {"b"}})}}});
  loop_.RunUntilIdle();
  EXPECT_THAT(Published(), ElementsAre("p/1/2: a", "p/1/2: b"));
  EXPECT_EQ(controller_->counts(), (SliceController::Counts{.creations = 2}));
  Publish({{{"p", PoolOf({{"a"}, {"b"}})}}});
  loop_.Advance(std::chrono::minutes(5));
  EXPECT_EQ(controller_->counts(), (SliceController::Counts{.creations = 2}));
  Publish({{{"p", PoolOf({{"a"}, {"c"}})}}});
  loop_.RunUntilIdle();
  EXPECT_THAT(Published(), ElementsAre("p/1/2: a", "p/1/2: c"));
  EXPECT_EQ(controller_->counts(), (SliceController::Counts{.creations = 2, .updates = 1}));
  EXPECT_TRUE(controller_->IsSettled());
  EXPECT_THAT(errors_, ElementsAre());
}

TEST_F(SliceControllerTest, TwoPublicationsInARowDoNotDuplicateSlices) {
  Publish({{{"p", PoolOf({{"a"}})}}});
  for (int i = 0; i < 40; ++i) loop_.RunOne();
  Publish({{{"p", PoolOf({{"a"}, {"b"}})}}});
  for (int i = 0; i < 20; ++i) loop_.RunOne();
  Publish({{{"p", PoolOf({{"a"}, {"b"}, {"c"}})}}});
  loop_.RunUntilIdle();
  EXPECT_EQ(Published().size(), 3u);
}

TEST_F(SliceControllerTest, ALaggingWatchDoesNotDuplicateWrites) {
  client_.watch_delay = std::chrono::seconds(5);
  Publish({{{"p", PoolOf({{"a"}, {"b"}})}}});
  loop_.RunUntilIdle();
  Publish({{{"p", PoolOf({{"a"}, {"c"}})}}});
  loop_.RunUntilIdle();
  Publish({{{"p", PoolOf({{"a"}, {"c"}})}}});
  loop_.RunUntilIdle();
  EXPECT_EQ(controller_->counts(), (SliceController::Counts{.creations = 2, .updates = 1}));
  Publish({});
  loop_.RunUntilIdle();
  Publish({{{"p", PoolOf({{"a"}})}}});
  loop_.RunUntilIdle();
  EXPECT_THAT(Published(), ElementsAre("p/1/1: a"));
  EXPECT_EQ(controller_->counts(),
            (SliceController::Counts{.creations = 3, .updates = 1, .deletions = 2}));
  loop_.Advance(std::chrono::minutes(2));
  EXPECT_THAT(Published(), ElementsAre("p/1/1: a"));
  EXPECT_EQ(controller_->counts(),
            (SliceController::Counts{.creations = 3, .updates = 1, .deletions = 2}));
  EXPECT_THAT(errors_, ElementsAre());
}

TEST_F(SliceControllerTest, PoolsThatAreNoLongerPublishedAreDeleted) {
  Publish({{{"p", PoolOf({{"a"}})}, {"q", PoolOf({{"b"}})}}});
  loop_.RunUntilIdle();
  Publish({{{"q", PoolOf({{"b"}})}}});
  loop_.RunUntilIdle();
  EXPECT_THAT(Published(), ElementsAre("q/1/1: b"));
  // Slices left by an earlier process are deleted too.
  Restart("n");
  Publish({{{"r", PoolOf({{"c"}})}}});
  loop_.RunUntilIdle();
  EXPECT_THAT(Published(), ElementsAre("r/1/1: c"));
}

TEST_F(SliceControllerTest, DoesNotTouchSlicesOfOthers) {
  for (const char* identity : {R"("driver":"other.example.com","nodeName":"n")",
                               R"("driver":"d.example.com","nodeName":"m")",
                               R"("driver":"d.example.com","allNodes":true)"}) {
    server_.Create(StrCat(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"generateName":"x-"},)",
        R"("spec":{)", identity,
        R"(,"pool":{"name":"p","generation":1,"resourceSliceCount":1}}})"));
  }
  Publish({{{"p", PoolOf({{"a"}})}}});
  loop_.RunUntilIdle();
  EXPECT_EQ(Slices().size(), 4u);
  Publish({});
  loop_.RunUntilIdle();
  EXPECT_EQ(Slices().size(), 3u);
}

TEST_F(SliceControllerTest, RevertsForeignChangesOnlyAfterTheDelay) {
  Publish({{{"p", PoolOf({{"a"}})}}});
  loop_.Advance(std::chrono::minutes(2));
  const std::string name(Slices().front()->name());
  server_.Delete("ResourceSlice", name);
  loop_.Advance(std::chrono::seconds(29));
  EXPECT_TRUE(Slices().empty());
  loop_.Advance(std::chrono::seconds(2));
  EXPECT_THAT(Published(), ElementsAre("p/1/1: a"));

  api::Draft changed(Slices().front()->tree());
  changed["spec"]["devices"].at(0)["name"] = "z";
  EXPECT_TRUE(
      server_.Update("ResourceSlice", std::string(Slices().front()->name()), "", changed.Freeze())
          .ok());
  EXPECT_THAT(Published(), ElementsAre("p/1/1: z"));
  loop_.Advance(std::chrono::seconds(31));
  EXPECT_THAT(Published(), ElementsAre("p/1/1: a"));
}

TEST_F(SliceControllerTest, SlicesDeletedByAStartingNodeAreRestoredAtOnce) {
  Publish({{{"p", PoolOf({{"a"}})}}});
  loop_.Advance(std::chrono::minutes(2));
  const auto wipe = [&] { server_.Delete("ResourceSlice", std::string(Slices().front()->name())); };
  wipe();
  EXPECT_TRUE(Slices().empty());
  controller_->OnRegistered();
  loop_.RunUntilIdle();
  EXPECT_THAT(Published(), ElementsAre("p/1/1: a"));
  loop_.Advance(std::chrono::seconds(35));
  controller_->OnRegistered();
  wipe();
  loop_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(Published(), ElementsAre("p/1/1: a"));
  // Later deletions are delayed again.
  loop_.Advance(std::chrono::seconds(11));
  wipe();
  loop_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(Slices().empty());
}

TEST_F(SliceControllerTest, ARecreatedNodeOwnsTheNewSlices) {
  Publish({{{"p", PoolOf({{"a"}})}}});
  loop_.RunUntilIdle();
  server_.Delete("Node", "n");
  server_.Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}})");
  server_.Delete("ResourceSlice", std::string(Slices().front()->name()));
  loop_.Advance(std::chrono::seconds(31));
  ASSERT_EQ(Slices().size(), 1u);
  EXPECT_EQ((*Slices()[0])["metadata"]["ownerReferences"].at(0)["uid"].str(),
            server_.Get("Node", "n")->uid());
}

TEST_F(SliceControllerTest, RepeatedErrorsAreReportedOnceAndTheWriteIsRetried) {
  client_.create_error = InvalidArgument("spec.devices[0].name: Invalid value: \"A\"");
  Publish({{{"p", PoolOf({{"a"}})}}});
  loop_.Advance(std::chrono::minutes(3));
  ASSERT_EQ(errors_.size(), 1u);
  EXPECT_THAT(errors_[0], HasSubstr("pool \"p\", slice #0, create: spec.devices[0].name"));
  client_.create_error = Unavailable("gone");
  loop_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(errors_.size(), 2u);
  client_.create_error.reset();
  loop_.Advance(std::chrono::minutes(1));
  EXPECT_THAT(Published(), ElementsAre("p/1/1: a"));
}

TEST_F(SliceControllerTest, DroppedFieldsAreReportedAndThenIgnored) {
  client_.rewrite = [](api::TreePtr body) {
    api::Draft draft(body);
    draft["spec"].Remove("skipNodeOperations");
    return draft.Freeze();
  };
  Pool pool = PoolOf({{"a"}});
  pool.slices[0].skip_node_operations = {"*"};
  Publish({{{"p", pool}}});
  loop_.Advance(std::chrono::minutes(5));
  EXPECT_THAT(errors_,
              ElementsAre("pool \"p\", slice #0: some fields were dropped by the apiserver, "
                          "probably because these features are disabled: "
                          "DRAOptionalNodeOperations (fields: spec.skipNodeOperations)"));
  EXPECT_EQ(controller_->counts(), (SliceController::Counts{.creations = 1}));
  // Publishing again retries them.
  client_.rewrite = nullptr;
  Publish({{{"p", pool}}});
  loop_.RunUntilIdle();
  EXPECT_EQ((*Slices()[0])["spec"]["skipNodeOperations"].size(), 1u);
}

TEST_F(SliceControllerTest, WithoutANodeItManagesOnlyItsPool) {
  Restart("", "mine");
  EXPECT_FALSE(controller_->Publish({{{"other", PoolOf({{"a"}})}}}).ok());
  server_.Create(
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"theirs"},)"
      R"("spec":{"driver":"d.example.com","allNodes":true,)"
      R"("pool":{"name":"theirs","generation":1,"resourceSliceCount":1}}})");
  Pool pool = PoolOf({{"a"}});
  pool.all_nodes = true;
  Publish({{{"mine", pool}}});
  loop_.Advance(std::chrono::minutes(2));
  EXPECT_THAT(Published(), ElementsAre("mine/1/1: a", "theirs/1/1:"));
  for (const api::ObjectPtr& slice : Slices()) {
    EXPECT_FALSE((*slice)["spec"]["nodeName"].exists());
    EXPECT_FALSE((*slice)["metadata"]["ownerReferences"].exists());
  }
}

// Random publications and foreign changes with failing writes; the model is the last publication.
TEST_F(SliceControllerTest, IsSettledOnceEverythingIsWritten) {
  EXPECT_FALSE(controller_->IsSettled()) << "nothing was published";
  Publish({{{"p", PoolOf({{"a"}})}}});
  EXPECT_FALSE(controller_->IsSettled()) << "the slices are not known yet";
  loop_.RunUntilIdle();
  EXPECT_TRUE(controller_->IsSettled());
  Publish({{{"p", PoolOf({{"b"}})}}});
  EXPECT_FALSE(controller_->IsSettled()) << "not written yet";
  loop_.RunUntilIdle();
  EXPECT_TRUE(controller_->IsSettled());
}

TEST_F(SliceControllerTest, DeletedSlicesAreGoneAlthoughTheWatchShowsThem) {
  Publish({{{"p", PoolOf({{"a"}, {"b"}})}}});
  loop_.RunUntilIdle();
  client_.watch_delay = std::chrono::seconds(5);
  Publish({});
  loop_.RunUntilIdle();
  EXPECT_THAT(Published(), ElementsAre());
  Publish({{{"p", PoolOf({{"a"}, {"b"}})}}});
  loop_.RunUntilIdle();
  EXPECT_EQ(Published().size(), 2u) << "the watch still shows the slices that were deleted";
  EXPECT_EQ(controller_->counts(), (SliceController::Counts{.creations = 4, .deletions = 2}));
  EXPECT_THAT(errors_, ElementsAre());
}

class SliceControllerRandomTest : public SliceControllerTest,
                                  public ::testing::WithParamInterface<int> {
 protected:
  SliceControllerRandomTest()
      : SliceControllerTest(static_cast<std::uint64_t>(GetParam()), GetParam() % 2 == 1) {}

  DriverResources RandomResources() {
    DriverResources resources;
    Random& random = loop_.random();
    for (const char* pool : {"p", "q", "r"}) {
      if (random.Below(4) == 0) continue;
      std::vector<std::vector<std::string>> slices(random.Below(4) + 1);
      int next = 0;
      for (auto& slice : slices) {
        for (std::uint64_t i = random.Below(3); i > 0; --i) {
          slice.push_back(StrCat("d", next++, random.Below(3) == 0 ? "x" : ""));
        }
      }
      resources.pools[pool] = PoolOf(slices);
    }
    return resources;
  }

  void ForeignChange() {
    const auto slices = Slices();
    if (slices.empty()) return;
    const api::ObjectPtr& slice = slices[loop_.random().Below(slices.size())];
    const std::string name(slice->name());
    switch (loop_.random().Below(3)) {
      case 0:
        server_.Delete("ResourceSlice", name);
        break;
      case 1: {
        api::Draft draft(slice->tree());
        draft["spec"]["devices"].Append({{"name", "intruder"}});
        server_.Update("ResourceSlice", name, "", draft.Freeze());
        break;
      }
      default: {
        api::Draft draft(slice->tree());
        draft["metadata"] = {{"generateName", "0000"}};
        draft["spec"]["pool"]["generation"] = (*slice)["spec"]["pool"]["generation"].integer() + 1;
        server_.TryCreate(api::WriteJson(draft.Freeze()->root()));
      }
    }
  }

  // What the server must hold: the devices of each slice per pool, in order, at one generation.
  void ExpectPublished(const DriverResources& resources) {
    std::map<std::string, std::map<std::string, api::ObjectPtr>> by_pool;
    for (const api::ObjectPtr& slice : Slices()) {
      by_pool[std::string((*slice)["spec"]["pool"]["name"].str())][std::string(slice->name())] =
          slice;
    }
    ASSERT_EQ(by_pool.size(), resources.pools.size());
    for (const auto& [name, pool] : resources.pools) {
      const auto& slices = by_pool[name];
      ASSERT_EQ(slices.size(), pool.slices.size()) << name;
      std::size_t index = 0;
      std::set<std::int64_t> generations;
      for (const auto& [slice_name, slice] : slices) {
        const Slice& wanted = pool.slices[index++];
        const api::Value spec = (*slice)["spec"];
        generations.insert(spec["pool"]["generation"].integer());
        EXPECT_EQ(spec["pool"]["resourceSliceCount"].integer(),
                  static_cast<std::int64_t>(pool.slices.size()));
        ASSERT_EQ(spec["devices"].size(), wanted.devices.size());
        for (std::size_t i = 0; i < wanted.devices.size(); ++i) {
          EXPECT_EQ(spec["devices"].at(i)["name"].str(), wanted.devices[i].name);
        }
      }
      EXPECT_EQ(generations.size(), 1u) << name;
    }
  }
};

TEST_P(SliceControllerRandomTest, ConvergesToTheLastPublication) {
  SCOPED_TRACE(StrCat("seed ", GetParam()));
  client_.watch_delay = std::chrono::milliseconds(GetParam() % 4 * 700);
  DriverResources wanted;
  Publish(wanted);
  for (int round = 0; round < 25; ++round) {
    client_.fault_percent = static_cast<int>(loop_.random().Below(40));
    for (std::uint64_t steps = loop_.random().Below(4) + 1; steps > 0; --steps) {
      if (loop_.random().Below(3) == 0) {
        ForeignChange();
      } else {
        wanted = RandomResources();
        Publish(wanted);
      }
      for (std::uint64_t turns = loop_.random().Below(200); turns > 0 && loop_.RunOne(); --turns) {
      }
      if (loop_.random().Below(8) == 0) {
        Restart("n");
        Publish(wanted);
      }
    }
    client_.fault_percent = 0;
    loop_.Advance(std::chrono::minutes(2));
    ExpectPublished(wanted);
    EXPECT_TRUE(controller_->IsSettled());
    // Once in sync, nothing more is written.
    const SliceController::Counts counts = controller_->counts();
    loop_.Advance(std::chrono::minutes(10));
    EXPECT_EQ(controller_->counts(), counts);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SliceControllerRandomTest, ::testing::Range(1, 21));

}  // namespace
}  // namespace drakkar::driver
