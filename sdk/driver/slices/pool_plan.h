#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "sdk/driver/slices/desired_pool.h"

namespace drakkar::driver {

// Whose slices they are.
struct SliceIdentity {
  std::string driver;
  std::string node_name;   // spec.nodeName; empty for a driver without a node
  std::string owner_name;  // part of generated names; may be empty
};

struct SliceUpdate {
  std::size_t index = 0;
  api::ObjectPtr before;
  api::TreePtr body;
};

struct SliceCreation {
  std::size_t index = 0;
  api::TreePtr body;  // without an owner
};

// The writes that make a pool what it should be, in the order in which they have to be done.
struct PoolPlan {
  std::int64_t generation = 0;
  std::vector<api::ObjectPtr> deletions;
  std::vector<SliceUpdate> updates;
  std::vector<SliceCreation> creations;

  bool empty() const { return deletions.empty() && updates.empty() && creations.empty(); }
};

// Decides; pure. `existing` are all slices of the pool that this driver answers for, `desired` is
// null for a pool that should not be there.
//
// A slice is recognised by the index its name begins with; others are deleted, as are those of
// older generations, unless they only lack the last step of an interrupted change. The generation
// stays when nothing is created and at most one slice changes; then no consumer can see a mixture.
PoolPlan PlanPool(const SliceIdentity& identity, const std::string& pool_name,
                  const DesiredPool* desired, const std::vector<api::ObjectPtr>& existing);

// "0000a-<driver>-<owner>-"; `count` is the number of slices of the pool.
std::string SliceNamePrefix(const SliceIdentity& identity, std::size_t index, std::size_t count);

// `desired` with the times of equal taints taken from `stored`, where the driver said nothing
// about them or agrees to the second.
api::TreePtr WithStoredTaintTimes(const api::TreePtr& desired, api::Value stored);

// Whether `stored` says what `desired` does. skipNodeOperations is compared by meaning.
bool SameSliceContent(api::Value desired, api::Value stored);

// Fields of a slice's spec that describe its content, as opposed to its place.
const std::vector<api::FieldName>& SliceContentFields();

}  // namespace drakkar::driver
