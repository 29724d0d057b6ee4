#include "apiserver/http/change_feed.h"

#include <gtest/gtest.h>

#include <map>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"
#include "storage/memory/memory_store.h"

namespace drakkar::apiserver {
namespace {

// Keeps what it receives, as a client would: objects by name, and the newest revision.
class FakeReader final : public WatchReader {
 public:
  void Refuse(const Failure& failure) override { refused = failure.code; }
  void Begin(Beginning beginning, std::unique_ptr<Subscription> given) override {
    EXPECT_FALSE(has_begun);
    has_begun = true;
    subscription = std::move(given);
    plan = std::move(beginning.plan);
    newest = plan.options.after;
    for (const api::ObjectPtr& object : beginning.initial) {
      objects[object->qualified_name()] = object->resource_version();
    }
    for (const Change& change : beginning.backlog) Take(change.type, change);
  }
  void OnChanges(const std::vector<Change>& changes,
                 const std::shared_ptr<const DeviceUsage>&) override {
    ASSERT_NE(subscription, nullptr) << "told after it left";
    for (const Change& change : changes) {
      ++told;
      if (const auto type = WatchCache::TypeFor(plan.options, change)) Take(*type, change);
    }
  }
  void OnClosed(const Failure& why) override {
    overrun = why.code == 410;
    closed = why.code;
    subscription.reset();
  }

  int refused = 0;
  bool has_begun = false;
  bool overrun = false;
  int closed = 0;
  std::size_t told = 0;
  std::unique_ptr<Subscription> subscription;
  Core::WatchPlan plan;
  std::map<std::string, std::int64_t> objects;
  storage::Revision newest = 0;

 private:
  void Take(ChangeType type, const Change& change) {
    EXPECT_GT(change.revision, newest) << "doubled or out of order";
    newest = change.revision;
    const std::string name = change.object->qualified_name();
    if (type == ChangeType::kDeleted) {
      EXPECT_EQ(objects.erase(name), 1u) << name << " was never told";
    } else {
      EXPECT_EQ(type == ChangeType::kAdded, !objects.contains(name)) << name;
      objects[name] = change.object->resource_version();
    }
  }
};

// The core and a feed on separate loops, interleaved according to the seed.
class ChangeFeedTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  ChangeFeedTest() {
    store_ = storage::OpenMemoryStore(core_loop_, disk_);
    core_ = std::make_unique<Core>(Core::Options{
        .loop = core_loop_, .random = loop_.random(), .store = *store_, .gates = gates_});
    core_->Start([](Result<void> ready) { ASSERT_TRUE(ready.ok()); });
    Settle();
    Write(Verb::kCreate, api::FindKind("", "v1", "Namespace"), "", "default");
    Settle();
    feed_ = std::make_unique<ChangeFeed>(*core_, bridge_, [] { return nullptr; });
  }
  ~ChangeFeedTest() override {
    Settle();
    bridge_.Close();
  }

  void Settle() {
    loop_.RunUntilIdle();
    loop_.Advance(std::chrono::milliseconds(5));
    loop_.RunUntilIdle();
  }

  void Write(Verb verb, const api::KindSchema* kind, const std::string& space,
             const std::string& name, const std::string& color = "red") {
    Request request;
    request.user = UserInfo{.name = "admin"};
    request.verb = verb;
    request.kind = kind;
    request.namespace_ = space;
    if (verb != Verb::kCreate) request.name = name;
    request.text =
        StrCat(R"({"metadata":{"name":")", name, R"(","labels":{"color":")", color, R"("}}})");
    core_loop_.Post([this, request = std::move(request)]() mutable {
      core_->Handle(std::move(request), [](Response) {});
    });
  }

  std::shared_ptr<FakeReader> Open(std::string label_selector = "", bool list_first = true) {
    ChangeFeed::Opening opening;
    opening.request.user = UserInfo{.name = "admin"};
    opening.request.verb = Verb::kWatch;
    opening.request.kind = maps_;
    opening.request.label_selector = std::move(label_selector);
    opening.list_first = list_first;
    auto reader = std::make_shared<FakeReader>();
    http_loop_.Post([this, opening = std::move(opening), reader]() mutable {
      feed_->Open(std::move(opening), std::move(reader));
    });
    return reader;
  }

  void Close(FakeReader& reader) {
    http_loop_.Post([&reader] { reader.subscription.reset(); });
  }

  std::map<std::string, std::int64_t> Stored(const std::string& color = "") const {
    std::map<std::string, std::int64_t> stored;
    for (const auto& [key, object] : core_->FindCache("", "configmaps")->objects()) {
      if (color.empty() || (*object)["metadata"]["labels"].Entry("color").str() == color) {
        stored[key] = object->resource_version();
      }
    }
    return stored;
  }

  SeededLoop loop_{GetParam(), /*shuffle=*/true};
  EventLoop& core_loop_ = loop_.NewLane();
  EventLoop& http_loop_ = loop_.NewLane();
  const api::KindSchema* maps_ = api::FindKind("", "v1", "ConfigMap");
  storage::MemoryDisk disk_;
  FeatureGates gates_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<Core> core_;
  LoopBridge bridge_{http_loop_, core_loop_};
  std::unique_ptr<ChangeFeed> feed_;
};

TEST_P(ChangeFeedTest, EveryReaderEndsWithTheStateOfTheStore) {
  std::vector<std::shared_ptr<FakeReader>> all, red, left;
  Random& random = loop_.random();
  for (int step = 0; step < 300; ++step) {
    const std::string name = StrCat("m", random.Next() % 8);
    const std::string color = random.Next() % 2 == 0 ? "red" : "blue";
    switch (random.Next() % 6) {
      case 0:
      case 1:
        Write(Verb::kCreate, maps_, "default", name, color);
        break;
      case 2:
        Write(Verb::kUpdate, maps_, "default", name, color);
        break;
      case 3:
        Write(Verb::kDelete, maps_, "default", name);
        break;
      case 4:
        if (all.size() < 10) all.push_back(Open());
        if (red.size() < 10) red.push_back(Open("color=red"));
        break;
      case 5:
        if (!all.empty() && all.back()->has_begun) {
          left.push_back(all.back());
          all.pop_back();
          Close(*left.back());
        }
        break;
    }
    for (std::uint64_t runs = random.Next() % 12; runs > 0; --runs) loop_.RunOne();
    if (random.Next() % 10 == 0) loop_.Advance(std::chrono::milliseconds(1));
  }
  Settle();
  for (const auto& reader : all) EXPECT_EQ(reader->objects, Stored());
  for (const auto& reader : red) EXPECT_EQ(reader->objects, Stored("red"));
  EXPECT_EQ(core_->FindCache("", "configmaps")->watcher_count(), all.size() + red.size());
  for (const auto& reader : all) Close(*reader);
  for (const auto& reader : red) Close(*reader);
  Settle();
  EXPECT_EQ(core_->FindCache("", "configmaps")->watcher_count(), 0u);
}

TEST_P(ChangeFeedTest, ALoopThatFallsTooFarBehindEndsItsReaders) {
  auto reader = Open();
  Settle();
  ASSERT_TRUE(reader->has_begun);
  // The core continues while the HTTP loop does not run; changes are applied directly to the cache.
  WatchCache& cache = *reader->plan.cache;
  storage::Revision revision = core_->revision();
  const api::ObjectPtr object = std::make_shared<const api::Object>(
      *api::ParseJson(R"({"metadata":{"name":"x","namespace":"default"}})"));
  for (std::uint64_t i = 0; i <= ChangeFeed::kMaxAhead; ++i) {
    Change change;
    change.type = i == 0 ? ChangeType::kAdded : ChangeType::kModified;
    change.object = object;
    change.revision = ++revision;
    cache.Apply("default/x", std::move(change));
    if (i % 1'000 == 0) cache.AdvanceDurable(revision);
  }
  Settle();
  EXPECT_TRUE(reader->overrun);
  EXPECT_EQ(cache.watcher_count(), 0u);
  EXPECT_LE(reader->told, ChangeFeed::kMaxAhead);
}

TEST_P(ChangeFeedTest, AFailedStoreEndsItsReadersAndRejectsNewOnes) {
  auto reader = Open();
  Settle();
  ASSERT_TRUE(reader->has_begun);
  disk_.FailSync(1, Unavailable("no space left on device"));
  Write(Verb::kCreate, maps_, "default", "lost");
  auto late = Open();
  Settle();
  EXPECT_EQ(reader->closed, 500);
  EXPECT_TRUE(reader->objects.empty()) << "what may be lost is not told";
  EXPECT_EQ(late->has_begun ? late->closed : late->refused, 500);
  auto later = Open("", /*list_first=*/false);
  Settle();
  EXPECT_EQ(later->refused, 500);
  EXPECT_EQ(core_->FindCache("", "configmaps")->watcher_count(), 0u);
}

TEST_P(ChangeFeedTest, ARejectedWatchLeavesNothingBehind) {
  auto reader = Open("color in (");
  Settle();
  EXPECT_EQ(reader->refused, 400);
  EXPECT_FALSE(reader->has_begun);
  EXPECT_EQ(core_->FindCache("", "configmaps")->watcher_count(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ChangeFeedTest, ::testing::Range<std::uint64_t>(1, 13));

}  // namespace
}  // namespace drakkar::apiserver
