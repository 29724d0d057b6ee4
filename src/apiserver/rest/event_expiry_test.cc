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

  void StartExpiry(Duration ttl = kHour) {
    expiry_ = std::make_unique<EventExpiry>(*core_, ttl, AdminUser());
    expiry_->Start();
  }
  void Report(const std::string& name, const std::string& more = "") { Create(Body(name, more)); }
  std::string Body(const std::string& name, const std::string& more = "") {
    return StrCat(
        R"({"apiVersion":"v1","kind":"Event","metadata":{"name":")", name,
        R"(","namespace":"default"},"involvedObject":{"kind":"Pod","namespace":"default",)",
        R"("name":"p"},"reason":"Made","type":"Normal")", more, "}");
  }
  std::size_t Count() const { return core_->FindCache("", "events")->objects().size(); }
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

}  // namespace
}  // namespace drakkar::apiserver
