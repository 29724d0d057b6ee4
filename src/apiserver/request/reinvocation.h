#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "api/tree/value.h"
#include "apiserver/request/failure.h"

namespace drakkar::apiserver {

// Mutating admission runs a second time if the object changed after a policy or webhook saw it.
// Which of them are called again, for one request.
struct Reinvocation {
  int round = 0;                  // 0: the first calls
  bool is_changed = false;        // one of them changed the object in this round
  std::set<std::string> called;   // those that allow it and have been called
  std::set<std::string> pending;  // those to call in round 1

  void Require() {
    pending.merge(called);
    called.clear();
  }
};

// Takes what a policy or webhook made of an object, in version `in`: drops unknown fields, sets
// defaults, converts it to the storage version. Fails with the reason.
using AcceptChanged = std::function<std::optional<Failure>(
    const api::TreePtr& changed, const api::KindSchema& in, api::TreePtr& accepted)>;

}  // namespace drakkar::apiserver
