#include "apiserver/rest/event_expiry.h"

#include "api/meta/time.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr Duration kHour = std::chrono::hours(1);
constexpr Duration kMinute = std::chrono::minutes(1);

class EventExpiryTest : public CoreFixture {
 protected:
  EventExpiryTest() { StartCore(nullptr); }
  ~EventExpiryTest() override { expiry_.reset(); }

  void StartExpiry(Duration ttl = kHour) { StartExpiry(EventLimits{.ttl = ttl}); }
  void StartExpiry(EventLimits limits) {
    expiry_ = std::make_unique<EventExpiry>(*core_, limits);
    expiry_->Start();
  }
  void Report(const std::string& name, const std::string& more = "") { Create(Body(name, more)); }
  std::string Body(const std::string& name, const std::string& more = "") {
    return StrCat(
        R"({"apiVersion":"v1","kind":"Event","metadata":{"name":")", name,
        R"(","namespace":"default"},"involvedObject":{"kind":"Pod","namespace":"default",)",
        R"("name":"p"},"reason":"Made","type":"Normal")", more, "}");
  }
  std::size_t Count() const { return core_->FindCache("", "events")->size(); }
  bool Has(const std::string& name) const {
    return core_->Find("", "events", "default/" + name) != nullptr;
  }
  void Pass(Duration time) {
    loop_.Advance(time);
    loop_.RunUntilIdle();
  }

  std::unique_ptr<EventExpiry> expiry_;
};

TEST_F(EventExpiryTest, AnEventExpiresAnHourAfterItsLastWrite) {
  StartExpiry();
  Report("early");
  Report("repeated");
  Pass(30 * kMinute);
  Report("late");
  Handle(RequestFor(Verb::kUpdate, Body("repeated", R"(,"count":2)"), AdminUser()));
  Pass(29 * kMinute);
  EXPECT_EQ(Count(), 3u);
  Pass(3 * kMinute);
  EXPECT_FALSE(Has("early"));
  EXPECT_TRUE(Has("late"));
  EXPECT_TRUE(Has("repeated"));
  Pass(31 * kMinute);
  EXPECT_EQ(Count(), 0u);
}

TEST_F(EventExpiryTest, AfterARestartEventsExpireByTheirOwnTimes) {
  Report("old");
  Pass(50 * kMinute);
  Report("young");
  Report("future", R"(,"lastTimestamp":"2999-01-01T00:00:00Z")");
  Pass(kMinute);
  core_.reset();
  store_.reset();
  StartCore(nullptr);
  ASSERT_EQ(Count(), 3u);
  StartExpiry();
  Pass(8 * kMinute);
  EXPECT_EQ(Count(), 3u);
  Pass(4 * kMinute);
  EXPECT_FALSE(Has("old"));
  EXPECT_TRUE(Has("young"));
  Pass(47 * kMinute);
  EXPECT_FALSE(Has("young"));
  Pass(5 * kMinute);
  EXPECT_EQ(Count(), 0u) << "a time in the future holds nothing";
}

TEST_F(EventExpiryTest, ManyEventsExpireInStepsAndOtherKindsAreKept) {
  StartExpiry();
  Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept"}})");
  const std::size_t count = EventExpiry::kMaxLookedAt + 2 * EventExpiry::kMaxDeleted + 7;
  for (std::size_t i = 0; i < count; ++i) Report(StrCat("e", i));
  Pass(59 * kMinute);
  EXPECT_EQ(Count(), count);
  Pass(3 * kMinute);
  EXPECT_EQ(Count(), 0u);
  EXPECT_NE(core_->Find("", "configmaps", "default/kept"), nullptr);
}

TEST_F(EventExpiryTest, BeyondTheCountTheOldestAreDeleted) {
  StartExpiry(EventLimits{.count_max = 5});
  for (int i = 0; i < 5; ++i) Report(StrCat("e", i));
  loop_.RunUntilIdle();
  EXPECT_EQ(Count(), 5u);
  Handle(RequestFor(Verb::kUpdate, Body("e0", R"(,"count":2)"), AdminUser()));
  Report("e5");
  loop_.RunUntilIdle();
  EXPECT_EQ(Count(), 5u);
  EXPECT_FALSE(Has("e1")) << "was not written for longest";
  EXPECT_TRUE(Has("e0"));
  EXPECT_TRUE(Has("e5"));
}

TEST_F(EventExpiryTest, BeyondTheBytesTheOldestAreDeleted) {
  StartExpiry(EventLimits{.bytes_max = 100'000});
  for (int i = 0; i < 300; ++i) {
    Report(StrCat("e", i), StrCat(R"(,"message":")", std::string(1'000, 'm'), R"(")"));
  }
  loop_.RunUntilIdle();
  const WatchCache& events = *core_->FindCache("", "events");
  EXPECT_LE(events.encoded_bytes(), 100'000u);
  EXPECT_GT(events.encoded_bytes(), 97'000u) << "no more than needed";
  EXPECT_FALSE(Has("e0"));
  EXPECT_TRUE(Has("e299"));
}

TEST_F(EventExpiryTest, AFinalizerDoesNotKeepAnEvent) {
  StartExpiry(EventLimits{.count_max = 2});
  for (int i = 0; i < 50; ++i) {
    std::string event = Body(StrCat("e", i));
    event.replace(event.find(R"("name":)"), 0, R"("finalizers":["example.com/held"],)");
    Create(event);
  }
  loop_.RunUntilIdle();
  EXPECT_EQ(Count(), 2u);
  EXPECT_TRUE(Has("e49"));
}

TEST_F(EventExpiryTest, AfterARestartTheOldestAreStillKnown) {
  for (int i = 9; i >= 0; --i) Report(StrCat("e", i));
  Pass(kMinute);  // until they are durable
  core_.reset();
  store_.reset();
  StartCore(nullptr);
  StartExpiry(EventLimits{.count_max = 4});
  loop_.RunUntilIdle();
  EXPECT_EQ(Count(), 4u);
  EXPECT_TRUE(Has("e0"));
  EXPECT_FALSE(Has("e4"));
}

TEST_F(EventExpiryTest, AnEventThatRepeatsIsRememberedOnce) {
  StartExpiry();
  Report("e");
  for (int i = 2; i < 5'000; ++i) {
    Handle(RequestFor(Verb::kUpdate, Body("e", StrCat(R"(,"count":)", i)), AdminUser()));
  }
  EXPECT_LE(expiry_->remembered(), EventExpiry::kMaxLookedAt + 2);
}

// Whoever may write events must not be able to fill the memory of the server with what watchers
// could still ask for.
TEST_F(EventExpiryTest, RecentChangesOfEventsAreBoundedByBytes) {
  StartExpiry(EventLimits{.count_max = 10});
  for (int i = 0; i < 400; ++i) {
    Report(StrCat("e", i), StrCat(R"(,"reportingComponent":")", std::string(40'000, 'm'), R"(")"));
    Pass(std::chrono::milliseconds(100));
  }
  const WatchCache& events = *core_->FindCache("", "events");
  EXPECT_LE(events.change_bytes(), WatchCache::kMaxChangeBytesOfBytes);
  EXPECT_GT(events.change_count(), 10u);
}

TEST_F(EventExpiryTest, EventsAreListedByPageSelectorAndRevision) {
  for (int i = 0; i < 7; ++i) {
    Report(StrCat("e", i), i % 2 == 0 ? R"(,"reportingComponent":"even")" : "");
  }
  Request list;
  list.user = AdminUser();
  list.verb = Verb::kList;
  list.kind = api::FindKind("", "v1", "Event");
  list.namespace_ = "default";
  list.limit = 3;
  const Response first = Handle(list);
  ASSERT_EQ(first.items.size(), 3u);
  EXPECT_EQ(first.items[0]->name(), "e0");
  EXPECT_EQ(first.remaining_items, 4);
  Report("e9");
  list.continue_token = first.continue_token;
  list.limit = 0;
  const Response rest = Handle(list);
  ASSERT_EQ(rest.items.size(), 4u) << "the state of the first page";
  EXPECT_EQ(rest.items[3]->name(), "e6");
  EXPECT_EQ(rest.continue_token, "");
  list.continue_token.clear();
  list.field_selector = "reportingComponent=even";
  list.limit = 2;
  const Response even = Handle(list);
  ASSERT_EQ(even.items.size(), 2u);
  EXPECT_EQ(even.items[1]->name(), "e2");
  EXPECT_NE(even.continue_token, "");
  list.namespace_ = "other";
  EXPECT_TRUE(Handle(list).items.empty());
}

// A list of many events must not keep other requests waiting.
TEST_F(EventExpiryTest, ALongListIsDecodedInTurnsWithOtherRequests) {
  std::size_t bytes = 0;
  for (int i = 0; bytes < 4 * Core::kMaxDecodedBytesPerTurn; ++i, bytes += 20'000) {
    Report(StrCat("e", i), StrCat(R"(,"reportingComponent":")", std::string(20'000, 'm'), R"(")"));
  }
  Request list;
  list.user = AdminUser();
  list.verb = Verb::kList;
  list.kind = api::FindKind("", "v1", "Event");
  bool listed = false;
  core_->Handle(list, [&](const Response& response) { listed = !response.failure; });
  int other_turns = 0;
  loop_.Post([&] { other_turns += listed ? 0 : 1; });
  loop_.RunUntilIdle();
  EXPECT_TRUE(listed);
  EXPECT_EQ(other_turns, 1) << "another request was served before the list was done";
}

TEST_F(EventExpiryTest, ACollectionIsDeletedInTurns) {
  const std::size_t count = 3 * Core::kMaxDeletedPerTurn + 5;
  for (std::size_t i = 0; i < count; ++i) Report(StrCat("e", i));
  Request all;
  all.user = AdminUser();
  all.verb = Verb::kDeleteCollection;
  all.kind = api::FindKind("", "v1", "Event");
  all.namespace_ = "default";
  std::optional<std::size_t> deleted;
  core_->Handle(all, [&](const Response& response) { deleted = response.items.size(); });
  EXPECT_FALSE(deleted.has_value());
  EXPECT_EQ(Count(), count - Core::kMaxDeletedPerTurn);
  loop_.RunUntilIdle();
  EXPECT_EQ(deleted, count);
  EXPECT_EQ(Count(), 0u);
}

}  // namespace
}  // namespace drakkar::apiserver
