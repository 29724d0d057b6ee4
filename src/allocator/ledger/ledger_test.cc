#include <gtest/gtest.h>

#include <map>
#include <set>

#include "allocator/constraint/compatibility_groups.h"
#include "allocator/constraint/distinct_constraint.h"
#include "allocator/constraint/match_constraint.h"
#include "allocator/ledger/capacity_ledger.h"
#include "allocator/ledger/counter_ledger.h"
#include "base/env/random.h"

// Compares each ledger and constraint with a naive model that starts from scratch at every step:
// after any sequence of takes and undos both must agree.
namespace drakkar::allocator {
namespace {

api::Quantity Units(std::int64_t value) {
  return api::Quantity(value);
}

TEST(CounterLedger, AgreesWithCountingFromScratchThroughAnyBacktracking) {
  SeededRandom random(11);
  const std::vector<std::int64_t> declared = {7, 3, 5};
  CounterLedger ledger({Units(7), Units(3), Units(5)}, false);
  std::vector<api::Quantity> amounts;
  for (int i = 0; i < 8; ++i) amounts.push_back(Units(i % 4));
  std::vector<std::vector<CounterNeed::Amount>> taken;
  for (int step = 0; step < 5'000; ++step) {
    if (!taken.empty() && random.Below(3) == 0) {
      ledger.GiveBack(taken.back());
      taken.pop_back();
    } else {
      std::vector<CounterNeed::Amount> need;
      for (std::uint32_t counter = 0; counter < 3; ++counter) {
        if (random.Below(2) == 0) need.push_back({counter, &amounts[random.Below(8)]});
      }
      std::vector<std::int64_t> total(3, 0);
      for (const auto& one : taken) {
        for (const auto& amount : one) total[amount.counter] += amount.value->Value();
      }
      bool fits = true;
      for (const auto& amount : need) {
        fits = fits && total[amount.counter] + amount.value->Value() <= declared[amount.counter];
      }
      ASSERT_EQ(ledger.Take(need), fits) << step;
      if (fits) taken.push_back(std::move(need));
    }
    for (std::uint32_t counter = 0; counter < 3; ++counter) {
      std::int64_t left = declared[counter];
      for (const auto& one : taken) {
        for (const auto& amount : one)
          left -= amount.counter == counter ? amount.value->Value() : 0;
      }
      ASSERT_EQ(ledger.available(counter).Value(), left);
    }
  }
}

TEST(CounterLedger, AnOvercommittedPoolRejectsEveryConsumer) {
  CounterLedger ledger({Units(-1), Units(5)}, true);
  const api::Quantity one = Units(1);
  EXPECT_FALSE(ledger.Take({{1, &one}}));
}

TEST(CapacityLedger, AgreesWithAddingUpThroughAnyBacktracking) {
  SeededRandom random(12);
  const std::vector<device::Capacity> capacities = {{"units", Units(10), {}}};
  device::DeviceUse allocated;
  allocated.shares.insert("s");
  allocated.consumed["units"] = Units(3);
  CapacityLedger ledger(2);
  std::vector<std::pair<std::uint32_t, CapacityNeed>> taken;
  for (int step = 0; step < 5'000; ++step) {
    if (!taken.empty() && random.Below(3) == 0) {
      ledger.GiveBack(taken.back().first, taken.back().second);
      taken.pop_back();
      continue;
    }
    const auto device = static_cast<std::uint32_t>(random.Below(2));
    CapacityNeed need;
    need.amounts.push_back(Units(static_cast<std::int64_t>(random.Below(5))));
    std::int64_t total = device == 0 ? 3 : 0;
    int shares = 0;
    for (const auto& [other, other_need] : taken) {
      total += other == device ? other_need.amounts[0].Value() : 0;
      shares += other == device ? 1 : 0;
    }
    ASSERT_EQ(ledger.shares(device), shares);
    const bool fits = total + need.amounts[0].Value() <= 10;
    ASSERT_EQ(ledger.Fits(device, capacities, need, device == 0 ? &allocated : nullptr), fits);
    if (!fits) continue;
    ledger.Take(device, need);
    taken.emplace_back(device, need);
  }
}

std::vector<device::AttributeValue> SomeValues() {
  return {std::int64_t{1},
          std::string("1"),
          device::VersionText{"1.0.0"},
          true,
          std::vector<std::string>{"1", "2"},
          std::vector<std::string>{"2", "3"},
          std::vector<std::int64_t>{1, 4},
          std::monostate()};
}

std::set<std::string> Naive(const device::AttributeValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return {"i" + std::to_string(*number)};
  if (const auto* text = std::get_if<std::string>(&value)) return {"s" + *text};
  if (const auto* version = std::get_if<device::VersionText>(&value)) return {"v" + version->text};
  if (std::holds_alternative<bool>(value)) return {"b"};
  std::set<std::string> set;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (const auto& text : *texts) set.insert("s" + text);
  }
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (const auto number : *numbers) set.insert("i" + std::to_string(number));
  }
  return set;
}

template <typename Constraint, typename Allows>
void CheckAgainstModel(const Allows& allows) {
  SeededRandom random(13);
  ValueTable table;
  const auto values = SomeValues();
  std::vector<std::int32_t> numbers;
  for (const auto& value : values) numbers.push_back(table.Intern(value, true));
  Constraint constraint(table);
  std::vector<std::set<std::string>> added;
  for (int step = 0; step < 5'000; ++step) {
    if (!added.empty() && random.Below(3) == 0) {
      constraint.Undo();
      added.pop_back();
      continue;
    }
    const std::size_t pick = random.Below(values.size());
    added.push_back(Naive(values[pick]));
    const bool expected = !added.back().empty() && allows(added);
    ASSERT_EQ(constraint.Add(numbers[pick]), expected) << step;
    if (!expected) added.pop_back();
  }
}

TEST(MatchConstraint, KeepsAValueInCommonThroughAnyBacktracking) {
  CheckAgainstModel<MatchConstraint>([](const std::vector<std::set<std::string>>& added) {
    for (const std::string& value : added[0]) {
      bool everywhere = true;
      for (const auto& other : added) everywhere = everywhere && other.contains(value);
      if (everywhere) return true;
    }
    return false;
  });
}

TEST(DistinctConstraint, KeepsValuesApartThroughAnyBacktracking) {
  CheckAgainstModel<DistinctConstraint>([](const std::vector<std::set<std::string>>& added) {
    std::set<std::string> seen;
    for (const auto& one : added) {
      for (const std::string& value : one) {
        if (!seen.insert(value).second) return false;
      }
    }
    return true;
  });
}

TEST(CompatibilityGroups, AgreeWithComparingEveryMemberThroughAnyBacktracking) {
  SeededRandom random(14);
  const std::vector<std::vector<std::string>> groups = {{}, {"a"}, {"b"}, {"a", "b"}, {"b", "c"}};
  std::vector<GroupState> allocated(2);
  ASSERT_TRUE(JoinGroups(allocated[1], groups[3]));
  CompatibilityGroups ledger(allocated);
  using Member = std::pair<std::uint32_t, std::size_t>;  // counter set, groups
  std::vector<std::vector<Member>> added;
  for (int step = 0; step < 5'000; ++step) {
    if (!added.empty() && random.Below(3) == 0) {
      ledger.Undo();
      added.pop_back();
      continue;
    }
    std::vector<Member> members;
    std::vector<CounterNeed::Membership> sets;
    for (std::uint32_t set = 0; set < 2; ++set) {
      if (random.Below(2) == 0) continue;
      members.push_back({set, random.Below(groups.size())});
      sets.push_back({set, &groups[members.back().second]});
    }
    bool expected = true;
    for (const auto& [set, mine] : members) {
      std::set<std::string> common(groups[mine].begin(), groups[mine].end());
      std::vector<std::size_t> others;
      if (set == 1) others.push_back(3);
      for (const auto& one : added) {
        for (const auto& [other_set, other] : one) {
          if (other_set == set) others.push_back(other);
        }
      }
      for (const std::size_t other : others) {
        expected = expected && groups[other].empty() == groups[mine].empty();
        const std::set<std::string> theirs(groups[other].begin(), groups[other].end());
        std::erase_if(common, [&](const std::string& group) { return !theirs.contains(group); });
      }
      expected = expected && (groups[mine].empty() || !common.empty());
    }
    ASSERT_EQ(ledger.Add(sets), expected) << step;
    if (expected) added.push_back(std::move(members));
  }
}

}  // namespace
}  // namespace drakkar::allocator
