// Claims with several devices, several claims that want the same one, and claims that change hands.
#include "scheduler/cache/claim_cache.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::scheduler {
namespace {

struct Parts {
  std::string name = "c";
  std::vector<std::string> devices = {};  // "a", "a:share", or "a!" with admin access
  std::string uid = "";                   // the name if empty
  std::string request = R"({"name":"r","exactly":{"deviceClassName":"x"}})";
  std::string more = "";  // members of each result
};

class ClaimCacheTest : public ::testing::Test {
 protected:
  api::ObjectPtr Make(const Parts& parts) {
    std::vector<std::string> results;
    for (const std::string& device : parts.devices) {
      const std::size_t colon = device.find(':');
      const bool admin = device.ends_with('!');
      const std::string name = device.substr(0, admin ? device.size() - 1 : colon);
      results.push_back(StrCat(R"({"request":"r","driver":"d","pool":"p","device":")", name, "\"",
                               admin ? R"(,"adminAccess":true)" : "",
                               colon == std::string::npos
                                   ? ""
                                   : StrCat(R"(,"shareID":")", device.substr(colon + 1), "\""),
                               parts.more, "}"));
    }
    auto tree = api::ParseJson(
        StrCat(R"({"metadata":{"namespace":"d","name":")", parts.name, R"(","uid":")",
               parts.uid.empty() ? parts.name : parts.uid, R"(","resourceVersion":")", ++version_,
               R"("},"spec":{"devices":{"requests":[)", parts.request, R"(]}},"status":{)",
               parts.devices.empty()
                   ? ""
                   : StrCat(R"("allocation":{"devices":{"results":[)", Join(results, ","), "]}}"),
               "}}"));
    EXPECT_TRUE(tree.ok());
    return std::make_shared<const api::Object>(*tree);
  }
  void Observe(const Parts& parts) { cache_.Observe(Make(parts)); }
  bool IsHeld(std::string device) const {
    return allocated_.FindDevice({"d", "p", device}) != nullptr;
  }
  std::string Contender(std::string name) const {
    return cache_.FindContender(*cache_.Find("d/" + name));
  }
  static AllocationPtr Allocation(std::vector<device::DeviceResult> results) {
    auto allocation = std::make_shared<device::AllocationResult>();
    allocation->results = std::move(results);
    return allocation;
  }
  static device::DeviceResult Result(std::string device, std::string share = "",
                                     bool admin = false) {
    device::DeviceResult result;
    result.id = {"d", "p", std::move(device)};
    result.share_id = std::move(share);
    result.admin_access = admin;
    return result;
  }

  int version_ = 0;
  device::AllocatedState allocated_;
  ClaimCache cache_{allocated_};
};

TEST_F(ClaimCacheTest, AllocationsHoldTheSameIfEveryDeviceShareAndAccessIsTheSame) {
  const AllocationPtr two = Allocation({Result("a"), Result("b", "s")});
  EXPECT_TRUE(HoldSameDevices(*two, *Allocation({Result("a"), Result("b", "s")})));
  EXPECT_FALSE(HoldSameDevices(*two, *Allocation({Result("a"), Result("c", "s")})));
  EXPECT_FALSE(HoldSameDevices(*two, *Allocation({Result("a"), Result("b", "t")})));
  EXPECT_FALSE(HoldSameDevices(*two, *Allocation({Result("a"), Result("b", "s", true)})));
  EXPECT_FALSE(HoldSameDevices(*two, *Allocation({Result("c"), Result("b", "s")})));
  EXPECT_FALSE(HoldSameDevices(*two, *Allocation({Result("a")})));
}

TEST_F(ClaimCacheTest, EveryDeviceOfAnAllocationIsHeldAndFreedWithTheClaim) {
  Observe({.devices = {"a", "b"}});
  EXPECT_TRUE(IsHeld("a") && IsHeld("b"));
  Observe({.devices = {"b", "e"}});
  EXPECT_FALSE(IsHeld("a"));
  EXPECT_TRUE(IsHeld("b") && IsHeld("e"));
  cache_.Remove(Make({}));
  EXPECT_FALSE(IsHeld("b") || IsHeld("e"));
  EXPECT_EQ(cache_.size(), 0u);
  cache_.Remove(Make({}));
}

TEST_F(ClaimCacheTest, TheFirstClaimToHoldADeviceIsTheContenderOfLaterOnes) {
  Observe({.name = "unallocated"});
  Observe({.name = "first", .devices = {"a", "b"}});
  Observe({.name = "later", .devices = {"x", "b"}});
  Observe({.name = "unrelated", .devices = {"y"}});
  EXPECT_EQ(Contender("later"), "d/first");
  EXPECT_EQ(Contender("first"), "");
  EXPECT_EQ(Contender("unrelated"), "");
  Observe({.name = "third", .devices = {"b"}});
  EXPECT_EQ(Contender("third"), "d/first") << "the first by name of two";
  EXPECT_EQ(Contender("later"), "d/first");
  Observe({.name = "free"});
  EXPECT_EQ(Contender("free"), "");
  cache_.Remove(Make({.name = "first"}));
  EXPECT_EQ(Contender("third"), "d/later");
}

TEST_F(ClaimCacheTest, SharesAndAdminAccessDoNotContend) {
  Observe({.name = "share", .devices = {"a:s"}});
  Observe({.name = "admin", .devices = {"b!"}});
  Observe({.name = "one", .devices = {"b", "z"}});
  Observe({.name = "two", .devices = {"a:t", "b!", "z"}});
  EXPECT_EQ(Contender("two"), "d/one") << "because of z";
  EXPECT_EQ(Contender("share"), "");
  EXPECT_EQ(Contender("admin"), "");
  Observe({.name = "two", .devices = {"a:t", "b!"}});
  EXPECT_EQ(Contender("two"), "");
}

TEST_F(ClaimCacheTest, AnUnreadableAllocationHoldsItsDevicesButNotThoseOfAdmins) {
  Observe({.devices = {"a", "b!"}, .more = R"(,"consumedCapacity":{"x":"a lot"})"});
  EXPECT_NE(cache_.Find("d/c")->problem, "");
  EXPECT_TRUE(IsHeld("a"));
  EXPECT_FALSE(IsHeld("b"));
}

TEST_F(ClaimCacheTest, AnUnreadableSpecIsAProblemUntilTheClaimIsReplaced) {
  Observe({.request = R"({"name":"r","exactly":{"capacity":{"requests":{"x":"a lot"}}}})"});
  EXPECT_NE(cache_.Find("d/c")->problem, "");
  EXPECT_EQ(cache_.Find("d/c")->spec, nullptr);
  Observe({.devices = {"a"},
           .request = R"({"name":"r","exactly":{"capacity":{"requests":{"x":"a lot"}}}})"});
  EXPECT_NE(cache_.Find("d/c")->problem, "") << "still";
  Observe({.uid = "another"});
  EXPECT_EQ(cache_.Find("d/c")->problem, "");
  EXPECT_NE(cache_.Find("d/c")->spec, nullptr);
}

TEST_F(ClaimCacheTest, TheFirstWaitCountsUntilTheClaimIsReallocated) {
  const MonotonicTime early{std::chrono::seconds(1)}, late{std::chrono::seconds(2)};
  cache_.NoteWait("d/unknown", early);
  Observe({.devices = {"a"}});
  cache_.NoteWait("d/c", early);
  cache_.NoteWait("d/c", late);
  EXPECT_EQ(cache_.Find("d/c")->wait_began, early);
  Observe({.devices = {"a"}});
  EXPECT_EQ(cache_.Find("d/c")->wait_began, early) << "the same allocation";
  const std::int64_t version = cache_.Find("d/c")->allocation_version;
  Observe({.devices = {"b"}});
  EXPECT_EQ(cache_.Find("d/c")->wait_began, std::nullopt);
  EXPECT_GT(cache_.Find("d/c")->allocation_version, version);
}

TEST_F(ClaimCacheTest, AReleaseInFlightBelongsToOneClaim) {
  Observe({.devices = {"a"}});
  cache_.SetBeingReleased("d/c", "another", true);
  EXPECT_FALSE(cache_.Find("d/c")->is_being_released);
  cache_.SetBeingReleased("d/unknown", "c", true);
  cache_.SetBeingReleased("d/c", "c", true);
  EXPECT_TRUE(cache_.Find("d/c")->is_being_released);
  Observe({.devices = {"a"}, .uid = "another"});
  EXPECT_FALSE(cache_.Find("d/c")->is_being_released) << "a new claim of the same name";
}

TEST_F(ClaimCacheTest, APendingAllocationIsOfOnePodAndEndsWithTheClaim) {
  Observe({});
  ASSERT_TRUE(cache_.SetPending("d/c", Allocation({Result("a"), Result("b")}), "p1"));
  EXPECT_TRUE(IsHeld("a") && IsHeld("b"));
  EXPECT_TRUE(cache_.SetPending("d/c", Allocation({Result("e")}), "p1")) << "the same pod again";
  EXPECT_FALSE(IsHeld("a"));
  EXPECT_TRUE(IsHeld("e"));
  Observe({.uid = "another"});
  EXPECT_FALSE(IsHeld("e"));
  EXPECT_EQ(cache_.Find("d/c")->pending, nullptr);
  ASSERT_TRUE(cache_.SetPending("d/c", Allocation({Result("f")}), "p2"));
  EXPECT_FALSE(cache_.ClearPending("d/c", "p1"));
  EXPECT_FALSE(cache_.ClearPending("d/unknown", "p2"));
  EXPECT_TRUE(cache_.ClearPending("d/c", "p2"));
  EXPECT_FALSE(cache_.ClearPending("d/c", "p2")) << "already cleared";
  Observe({.devices = {"g"}, .uid = "another"});
  EXPECT_FALSE(cache_.SetPending("d/c", Allocation({Result("h")}), "p2")) << "it is allocated";
}

TEST_F(ClaimCacheTest, EveryChangeIsReportedWithBeforeAndAfter) {
  std::vector<std::string> changes;
  cache_.SetChangeHandler([&](const std::string& key, const auto& before, const auto& after) {
    changes.push_back(
        StrCat(key, before == nullptr ? " added" : "", after == nullptr ? " gone" : ""));
  });
  const api::ObjectPtr first = Make({});
  cache_.Observe(first);
  cache_.Observe(first);
  ASSERT_TRUE(cache_.Assume(Make({.devices = {"a"}})).ok());
  EXPECT_TRUE(cache_.Assume(cache_.Find("d/c")->latest).ok()) << "the same version again";
  EXPECT_FALSE(cache_.Assume(first).ok()) << "an older version";
  EXPECT_FALSE(cache_.Assume(Make({.uid = "another"})).ok());
  cache_.Remove(first);
  EXPECT_EQ(changes, (std::vector<std::string>{"d/c added", "d/c", "d/c gone"}));
}

}  // namespace
}  // namespace drakkar::scheduler
