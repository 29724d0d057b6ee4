#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "sdk/driver/slices/desired_pool.h"

namespace drakkar::driver {

// The owner of a set of slices.
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

// The writes that bring a pool to its desired state, in the required order.
struct PoolPlan {
  std::int64_t generation = 0;
  std::vector<api::ObjectPtr> deletions;
  std::vector<SliceUpdate> updates;
  std::vector<SliceCreation> creations;

  bool empty() const { return deletions.empty() && updates.empty() && creations.empty(); }
};

// Computes the plan; pure. `existing` has all slices of the pool that this driver manages;
// `desired` is null if the pool should not exist.
//
// A slice is recognized by the index that its name starts with. Other slices are deleted, as are
// those of older generations, unless they only lack the last step of an interrupted change. The
// generation stays the same if nothing is created and at most one slice changes, because no
// consumer can see a mixture then.
PoolPlan PlanPool(const SliceIdentity& identity, const std::string& pool_name,
                  const DesiredPool* desired, const std::vector<api::ObjectPtr>& existing);

// "0000a-<driver>-<owner>-"; `count` is the number of slices in the pool.
std::string SliceNamePrefix(const SliceIdentity& identity, std::size_t index, std::size_t count);

// `desired` with the times of equal taints from `stored`, unless the driver gave a time that
// differs by a second or more.
api::TreePtr WithStoredTaintTimes(const api::TreePtr& desired, api::Value stored);

// Whether `stored` has the same content as `desired`. skipNodeOperations is compared by meaning.
bool SameSliceContent(api::Value desired, api::Value stored);

// The fields of a slice's spec that describe its content, as opposed to its location.
const std::vector<api::FieldName>& SliceContentFields();

}  // namespace drakkar::driver
