#include "allocator/search/symmetry.h"

#include <algorithm>

#include "allocator/view/interner.h"

namespace drakkar::allocator {
namespace {

// By counter of a pool: whether it can ever run out.
std::vector<std::uint8_t> FindScarceCounters(const PoolView& pool, bool any_admin) {
  std::vector<std::uint8_t> scarce(pool.available.size(), 1);
  if (any_admin) return scarce;
  std::vector<api::Quantity> left = pool.available;
  for (std::size_t i = 0; i < pool.devices.size(); ++i) {
    if (pool.in_use[i] || pool.shared_use[i] != nullptr) continue;
    for (const CounterNeed::Amount& amount : pool.counter_needs[i].amounts) {
      left[amount.counter].Subtract(*amount.value);
    }
  }
  for (std::size_t i = 0; i < left.size(); ++i) scarce[i] = left[i].Sign() < 0;
  return scarce;
}

void WriteCounters(KeyBuilder& key, const SpaceDevice& device,
                   const std::vector<std::uint8_t>& scarce, const Features& features) {
  const CounterNeed& need = device.pool->counter_needs[device.index];
  bool in_pool = false;
  const auto enter_pool = [&] {
    if (!in_pool) key.Small(device.pool_ordinal);
    in_pool = true;
  };
  for (const CounterNeed::Amount& amount : need.amounts) {
    if (!scarce[amount.counter]) continue;
    enter_pool();
    key.Small(amount.counter);
    key.Text(amount.value->ToString());
  }
  if (!features.compatibility_groups) return;
  for (const CounterNeed::Membership& member : need.sets) {
    enter_pool();
    key.Small(member.counter_set);
    key.List(*member.groups);
  }
}

void WriteAnswers(KeyBuilder& key, Plan& plan, const SpaceDevice& device) {
  const std::string& driver = device.pool->id.driver;
  const ViewDevice& view = device.view();
  for (ClaimPlan& claim : plan.claims()) {
    for (RequestPlan& request : claim.requests) {
      for (Alternative& alternative : request.alternatives) {
        key.Small(static_cast<std::uint32_t>(plan.SelectionOf(alternative, driver, view)));
        for (std::size_t n = 0; n < alternative.constraints.size(); ++n) {
          key.Small(static_cast<std::uint32_t>(plan.ValueOf(claim, alternative, n, driver, view)));
        }
      }
    }
  }
}

}  // namespace

std::vector<std::uint32_t> FindSymmetry(Plan& plan, const ShapeTable& shapes,
                                        const SearchSpace& space, const Features& features,
                                        bool any_admin) {
  std::vector<std::vector<std::uint8_t>> scarce(space.node->pools.size());
  for (std::size_t i = 0; i < scarce.size(); ++i) {
    scarce[i] = FindScarceCounters(*space.node->pools[i], any_admin);
  }
  Interner classes;
  KeyBuilder key;
  std::vector<std::uint32_t> numbers;
  numbers.reserve(space.devices.size());
  for (std::uint32_t i = 0; i < space.devices.size(); ++i) {
    const SpaceDevice& device = space.devices[i];
    key.Clear();
    key.Small(shapes.mechanics(device.view().shape));
    key.Flag(device.view().targets_node);
    key.Flag(device.pool->in_use[device.index] != 0);
    // Shares held by others are not compared, so such a device has no equal.
    key.Small(device.pool->shared_use[device.index] != nullptr ? i : ~std::uint32_t{0});
    WriteAnswers(key, plan, device);
    WriteCounters(key, device, scarce[device.pool_ordinal], features);
    numbers.push_back(classes.Intern(key.bytes()));
  }
  return numbers;
}

}  // namespace drakkar::allocator
