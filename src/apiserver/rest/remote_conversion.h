#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "api/tree/value.h"
#include "apiserver/request/failure.h"

namespace drakkar::apiserver {

// Converts custom resources whose definition names a conversion webhook. Bound to the core's loop.
class RemoteConversion {
 public:
  virtual ~RemoteConversion() = default;
  struct Converted {
    std::optional<Failure> failure;
    std::vector<api::TreePtr> objects;  // in the order they were given
  };
  // `objects` are in other versions of the kind `to`. `done` runs on the core's loop, never from
  // within the call.
  virtual void Convert(const api::KindSchema& to, std::vector<api::TreePtr> objects,
                       std::function<void(Converted)> done) = 0;
};

}  // namespace drakkar::apiserver
