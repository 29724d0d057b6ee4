// What one node sees of a pool: which slices and devices, in which state, and what is left of it.
#include "allocator/view/pool_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/testing/workload.h"

namespace drakkar::allocator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Texts = std::vector<std::string>;

Features Partitionable(bool groups = true) {
  Features features;
  features.partitionable_devices = true;
  features.compatibility_groups = groups;
  return features;
}

// A slice of the pool d/p for the node "n".
std::shared_ptr<device::Slice> Slice(std::string name, const Texts& devices, std::int64_t count = 1,
                                     std::int64_t generation = 1) {
  auto slice = std::make_shared<device::Slice>();
  slice->name = std::move(name);
  slice->driver = "d";
  slice->pool = "p";
  slice->generation = generation;
  slice->slice_count = count;
  slice->target.node_name = "n";
  for (const std::string& device : devices) slice->devices.emplace_back().name = device;
  return slice;
}

std::shared_ptr<device::Slice> ElsewhereSlice(std::string name, const Texts& devices,
                                              std::int64_t count = 1, std::int64_t generation = 1) {
  auto slice = Slice(std::move(name), devices, count, generation);
  slice->target.node_name = "other";
  return slice;
}

device::CounterConsumption Takes(std::string set, std::string counter, std::string_view amount,
                                 Texts groups = {}) {
  return {std::move(set), {{std::move(counter), Amount(amount)}}, std::move(groups)};
}

class PoolViewTest : public ::testing::Test {
 protected:
  void Set(std::shared_ptr<device::Slice> slice) { inventory_.SetSlice(std::move(slice)); }
  const device::Pool& pool() { return *inventory_.FindPool({"d", "p"}); }
  std::shared_ptr<PoolView> View(const Features& features = {}) {
    const PoolTargets targets = FindTargets(pool(), node_, features);
    if (!targets.any && !targets.broken) return nullptr;
    return BuildPoolView(pool(), targets, features);
  }
  // The devices, those that do not target the node in parentheses; or the reason why there are
  // none; or "unseen".
  std::string Seen(const Features& features = {}) {
    const std::shared_ptr<PoolView> view = View(features);
    if (view == nullptr) return "unseen";
    if (view->status != PoolView::Status::kUsable) {
      EXPECT_TRUE(view->devices.empty() && view->counter_needs.empty() && view->elsewhere.empty());
      return StrCat(view->status == PoolView::Status::kIncomplete ? "incomplete: "
                    : view->status == PoolView::Status::kInvalid  ? "invalid: "
                                                                  : "broken: ",
                    view->reason);
    }
    EXPECT_EQ(view->taints.size(), view->devices.size());
    EXPECT_EQ(view->counter_needs.size(), view->devices.size());
    Texts names;
    for (const ViewDevice& device : view->devices) {
      names.push_back(device.targets_node ? device.device->name
                                          : StrCat("(", device.device->name, ")"));
    }
    return Join(names, " ");
  }

  device::Inventory inventory_;
  device::Node node_{"n", {{"zone", "a"}}, {}};
};

TEST_F(PoolViewTest, DevicesAreInTheOrderOfTheSlicesNames) {
  Set(Slice("b", {"b1", "b0"}, 2));
  Set(Slice("a", {"a0"}, 2));
  EXPECT_EQ(Seen(), "a0 b1 b0");
  const std::shared_ptr<PoolView> view = View();
  EXPECT_TRUE(view->local);
  EXPECT_EQ(view->id, (device::PoolId{"d", "p"}));
  EXPECT_EQ(view->slices.size(), 2u);
}

TEST_F(PoolViewTest, APoolIsLocalOnlyIfEverySliceIsForTheSameNode) {
  Set(Slice("a", {"a0"}, 2));
  auto all = Slice("b", {"b0"}, 2);
  all->target = {"", true, {}};
  Set(all);
  EXPECT_FALSE(View()->local);
  Set(ElsewhereSlice("b", {"b0"}, 2));
  EXPECT_FALSE(View()->local);
  Set(Slice("b", {"b0"}, 2));
  EXPECT_TRUE(View()->local);
}

TEST_F(PoolViewTest, OnlyTheNewestGenerationCountsWhateverItsName) {
  Set(Slice("b", {"new"}, 1, 5));
  for (const char* name : {"a", "c"}) Set(Slice(name, {StrCat("old-", name)}, 2, 4));
  EXPECT_EQ(Seen(), "new");
  Set(Slice("d", {"newest"}, 1, 6));
  EXPECT_EQ(Seen(), "newest");
}

TEST_F(PoolViewTest, APoolIsIncompleteUntilAllSlicesOfItsGenerationExist) {
  Set(Slice("a", {"a0"}, 3, 2));
  Set(Slice("old", {"x"}, 3, 1));
  EXPECT_EQ(Seen(), "incomplete: has 1 of 3 slices of generation 2");
  Set(ElsewhereSlice("b", {"b0"}, 3, 2));
  EXPECT_EQ(Seen(), "incomplete: has 2 of 3 slices of generation 2");
  Set(ElsewhereSlice("c", {"c0"}, 3, 2));
  EXPECT_EQ(Seen(), "a0") << "slices of other nodes are not missing";
}

TEST_F(PoolViewTest, APoolThatIsBeingReplacedElsewhereIsNotSeen) {
  Set(Slice("a", {"a0"}, 2, 1));
  Set(ElsewhereSlice("b", {"b0"}, 2, 2));
  EXPECT_EQ(Seen(), "unseen");
  Set(Slice("a", {"a0"}, 1, 1));
  EXPECT_EQ(Seen(), "a0") << "it is complete as it is";
  Set(ElsewhereSlice("a", {"a0"}));
  EXPECT_EQ(Seen(), "unseen") << "nothing is for this node";
}

TEST_F(PoolViewTest, NamesOfDevicesMustDifferWithinTheNode) {
  Set(Slice("a", {"x", "y"}, 2));
  Set(Slice("b", {"z", "y"}, 2));
  EXPECT_EQ(Seen(), "invalid: duplicate device name y");
  Set(ElsewhereSlice("b", {"z", "y"}, 2));
  EXPECT_EQ(Seen(), "x y");
}

TEST_F(PoolViewTest, DevicesMaySelectTheirNodesThemselves) {
  auto slice = Slice("a", {"n", "other", "all"});
  slice->target = {};
  slice->per_device_node_selection = true;
  slice->devices[0].target.node_name = "n";
  slice->devices[1].target.node_name = "other";
  slice->devices[2].target.all_nodes = true;
  Set(slice);
  EXPECT_EQ(Seen(Partitionable()), "n (other) all");
  EXPECT_EQ(Seen(), "unseen") << "without the feature such slices are ignored";
  slice = std::make_shared<device::Slice>(*slice);
  slice->devices.erase(slice->devices.begin());
  slice->devices.pop_back();
  Set(slice);
  EXPECT_EQ(Seen(Partitionable()), "unseen") << "none of its devices is for this node";
  auto second = Slice("b", {"b0"});
  second->slice_count = 2;
  slice = std::make_shared<device::Slice>(*slice);
  slice->slice_count = 2;
  Set(slice);
  Set(second);
  EXPECT_EQ(Seen(Partitionable()), "b0") << "nor does it keep others from being seen";
}

TEST_F(PoolViewTest, ASelectorThatCannotBeEvaluatedBreaksThePool) {
  const device::NodeSelector bad{{{{{"zone", "Like", {"a"}}}, {}}}};
  auto slice = Slice("a", {"x", "y"});
  slice->target = {"", false, bad};
  Set(slice);
  EXPECT_TRUE(Seen().starts_with("broken: failed to perform node selection for slice a: "))
      << Seen();
  slice = std::make_shared<device::Slice>(*slice);
  slice->target = {};
  slice->per_device_node_selection = true;
  slice->devices[0].target.all_nodes = true;
  slice->devices[1].target.selector = bad;
  Set(slice);
  EXPECT_TRUE(
      Seen(Partitionable())
          .starts_with("broken: failed to perform node selection for device y in slice a: "))
      << Seen(Partitionable());
}

TEST_F(PoolViewTest, WhatItsDevicesHaveIsKnownOfThePool) {
  auto plain = Slice("a", {"x", "y"}, 2);
  auto special = Slice("b", {"z", "w"}, 2);
  Set(plain);
  Set(special);
  EXPECT_FALSE(View()->has_binding_conditions || View()->skips_node_operations);
  special = std::make_shared<device::Slice>(*special);
  special->devices[0].binding_conditions = {"Ready"};
  special->devices[0].taints = {{"k", "", "NoSchedule", ""}};
  Set(special);
  EXPECT_TRUE(View()->has_binding_conditions);
  EXPECT_FALSE(View()->skips_node_operations);
  EXPECT_THAT(View()->taints[1], IsEmpty());
  EXPECT_EQ(View()->taints[2].size(), 1u);
  plain = std::make_shared<device::Slice>(*plain);
  plain->skip_node_operations.form = true;
  Set(plain);
  EXPECT_TRUE(View()->skips_node_operations) << "one slice is enough";
}

// The sets "s" with the counters a and b, and "t" with a; in two slices.
class PoolCounters : public PoolViewTest {
 protected:
  PoolCounters() {
    auto s = Slice("s", {}, 3);
    s->shared_counters = {{"s", {{"a", Amount("10")}, {"b", Amount("20")}}}};
    auto t = Slice("t", {}, 3);
    t->shared_counters = {{"u", {}}, {"t", {{"a", Amount("30")}}}};
    Set(s);
    Set(t);
    devices_ = Slice("x", {"d0", "d1", "d2"}, 3);
    devices_->devices[1].consumes_counters = {
        {"s", {{"b", Amount("1")}, {"a", Amount("2")}}, {"g"}}, Takes("t", "a", "3", {"h", "i"})};
    Set(devices_);
  }
  // "counter=amount ..." of a need, then "set:groups ...".
  static std::string Show(const PoolView& view, const CounterNeed& need) {
    Texts parts;
    for (const CounterNeed::Amount& amount : need.amounts) {
      parts.push_back(StrCat(view.counter_names[amount.counter], "=", amount.value->ToString()));
    }
    for (const CounterNeed::Membership& member : need.sets) {
      parts.push_back(StrCat(member.counter_set, ":", Join(*member.groups, "+")));
    }
    return Join(parts, " ");
  }
  void Change(const std::function<void(device::Slice&)>& change) {
    devices_ = std::make_shared<device::Slice>(*devices_);
    change(*devices_);
    Set(devices_);
  }
  Texts Available(const PoolView& view) {
    Texts amounts;
    for (const api::Quantity& amount : view.available) amounts.push_back(amount.ToString());
    return amounts;
  }
  std::shared_ptr<PoolView> Used() {
    std::shared_ptr<PoolView> view = View(Partitionable());
    RefreshUse(*view, allocated_.FindPool({"d", "p"}), states_);
    return view;
  }

  std::shared_ptr<device::Slice> devices_;
  device::AllocatedState allocated_;
  Interner states_;
};

TEST_F(PoolCounters, OfEverySliceAndSetAreNumbered) {
  const std::shared_ptr<PoolView> view = View(Partitionable());
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(Seen(Partitionable()), "d0 d1 d2") << "counter slices have no devices";
  EXPECT_THAT(view->counter_names, ElementsAre("s/a", "s/b", "t/a"));
  EXPECT_EQ(view->counter_set_count, 3u);
  ASSERT_EQ(view->declared.size(), 3u);
  EXPECT_EQ(view->declared[1], Amount("20"));
  EXPECT_EQ(Show(*view, view->counter_needs[0]), "");
  EXPECT_EQ(Show(*view, view->counter_needs[1]), "s/b=1 s/a=2 t/a=3 0:g 2:h+i");
}

TEST_F(PoolCounters, EverySetAndCounterThatADeviceTakesFromMustExist) {
  Change([](device::Slice& slice) {
    slice.devices[2].consumes_counters = {Takes("s", "a", "1"), Takes("v", "a", "1")};
  });
  EXPECT_EQ(Seen(Partitionable()), "invalid: counter set v not found");
  Change([](device::Slice& slice) {
    slice.devices[2].consumes_counters = {Takes("s", "a", "1"), Takes("t", "b", "1")};
  });
  EXPECT_EQ(Seen(Partitionable()), "invalid: counter b not found in counter set t");
  auto second = Slice("t", {}, 3);
  second->shared_counters = {{"t", {{"a", Amount("1")}}}, {"s", {}}};
  Set(second);
  EXPECT_EQ(Seen(Partitionable()), "invalid: duplicate counter set name s");
}

TEST_F(PoolCounters, DevicesOfOtherNodesTakeFromThemToo) {
  for (const char* name : {"s", "t", "x"}) {
    auto slice = std::make_shared<device::Slice>(*pool().slices.at(name));
    slice->slice_count = 4;
    Set(slice);
  }
  auto elsewhere = ElsewhereSlice("y", {"e0", "e1", "e2"}, 4);
  elsewhere->devices[1].consumes_counters = {Takes("s", "a", "4")};
  elsewhere->devices[2].consumes_counters = {Takes("t", "a", "5")};
  Set(elsewhere);
  const std::shared_ptr<PoolView> view = View(Partitionable());
  ASSERT_EQ(view->elsewhere.size(), 2u) << "one takes nothing";
  EXPECT_EQ(view->elsewhere[0].device, "e1");
  EXPECT_EQ(Show(*view, view->elsewhere[1].need), "t/a=5 2:");
  allocated_.AddExclusive({"d", "p", "e1"});
  allocated_.Bar({"d", "p", "e2"});
  EXPECT_THAT(Available(*Used()), ElementsAre("6", "20", "30")) << "a barred device takes nothing";
  elsewhere = std::make_shared<device::Slice>(*elsewhere);
  elsewhere->devices[2].consumes_counters = {Takes("nowhere", "a", "5")};
  Set(elsewhere);
  EXPECT_EQ(Seen(Partitionable()), "invalid: counter set nowhere not found");
}

TEST_F(PoolCounters, UseIsThatOfTheDevicesNow) {
  std::shared_ptr<PoolView> view = Used();
  EXPECT_THAT(view->in_use, ElementsAre(0, 0, 0));
  EXPECT_THAT(Available(*view), ElementsAre("10", "20", "30"));
  EXPECT_EQ(view->groups.size(), 3u);
  const std::uint32_t unused = view->state_id;
  allocated_.AddExclusive({"d", "p", "d1"});
  allocated_.Bar({"d", "p", "d2"});
  allocated_.AddShare({"d", "p", "d0"}, "share");
  RefreshUse(*view, allocated_.FindPool({"d", "p"}), states_);
  EXPECT_THAT(view->in_use, ElementsAre(0, 1, 1));
  EXPECT_NE(view->shared_use[0], nullptr);
  EXPECT_EQ(view->shared_use[1], nullptr);
  EXPECT_THAT(Available(*view), ElementsAre("8", "19", "27"));
  EXPECT_TRUE(view->groups[0].has_members && view->groups[0].grouped);
  EXPECT_FALSE(view->groups[1].has_members);
  EXPECT_THAT(view->groups[2].common, ElementsAre("h", "i"));
  EXPECT_FALSE(view->overcommitted);
  EXPECT_NE(view->state_id, unused);
  RefreshUse(*view, nullptr, states_);
  EXPECT_THAT(view->in_use, ElementsAre(0, 0, 0));
  EXPECT_EQ(view->shared_use[0], nullptr);
  EXPECT_THAT(Available(*view), ElementsAre("10", "20", "30"));
  EXPECT_FALSE(view->groups[0].has_members);
  EXPECT_EQ(view->state_id, unused) << "in the same use as at first";
}

TEST_F(PoolCounters, AnyCounterMayBeOvercommitted) {
  Change([](device::Slice& slice) {
    slice.devices[0].consumes_counters = {Takes("s", "b", "20")};
    slice.devices[2].consumes_counters = {Takes("s", "b", "1")};
  });
  allocated_.AddExclusive({"d", "p", "d0"});
  EXPECT_FALSE(Used()->overcommitted) << "used up exactly";
  allocated_.AddExclusive({"d", "p", "d2"});
  const std::shared_ptr<PoolView> view = Used();
  EXPECT_TRUE(view->overcommitted);
  RefreshUse(*view, nullptr, states_);
  EXPECT_FALSE(view->overcommitted);
}

TEST_F(PoolCounters, NothingCanJoinMembersThatAreIncompatibleAlready) {
  Change([](device::Slice& slice) {
    slice.devices[0].consumes_counters = {Takes("s", "a", "1", {"x"})};
    slice.devices[1].consumes_counters = {Takes("s", "a", "1", {"y"})};
  });
  allocated_.AddExclusive({"d", "p", "d0"});
  allocated_.AddExclusive({"d", "p", "d1"});
  GroupState state = Used()->groups[0];
  for (const Texts& groups : {Texts{"x"}, Texts{"y"}, Texts{}}) {
    EXPECT_FALSE(JoinGroups(state, groups)) << Join(groups, "+");
  }
}

TEST(JoinGroups, KeepsWhatAllMembersHaveInCommon) {
  GroupState state;
  EXPECT_TRUE(JoinGroups(state, {"c", "a", "b"}));
  EXPECT_THAT(state.common, ElementsAre("a", "b", "c"));
  EXPECT_FALSE(JoinGroups(state, {})) << "a member without groups";
  EXPECT_FALSE(JoinGroups(state, {"x"}));
  EXPECT_THAT(state.common, ElementsAre("a", "b", "c")) << "unchanged";
  EXPECT_TRUE(JoinGroups(state, {"x", "c", "b"}));
  EXPECT_THAT(state.common, ElementsAre("b", "c"));
  EXPECT_FALSE(JoinGroups(state, {"a"})) << "not every member has it";
  GroupState plain;
  EXPECT_TRUE(JoinGroups(plain, {}));
  EXPECT_TRUE(JoinGroups(plain, {}));
  EXPECT_FALSE(JoinGroups(plain, {"a"}));
}

}  // namespace
}  // namespace drakkar::allocator
