#pragma once

#include <optional>
#include <vector>

#include "base/env/clock.h"

namespace drakkar::storage {

// Decides which etcd member gets the next call. Pure: takes time and events, returns an index.
//
// Calls rotate among the connected members. One that failed a call is avoided for kAvoidFor, or
// until a call to it succeeds or it reconnects; it is still used when there is no better one.
class EndpointPicker {
 public:
  static constexpr Duration kAvoidFor = std::chrono::seconds(5);

  explicit EndpointPicker(std::size_t count) : states_(count) {}

  void OnConnected(std::size_t endpoint);
  void OnDisconnected(std::size_t endpoint);
  void OnSuccess(std::size_t endpoint);
  void OnFailure(std::size_t endpoint, MonotonicTime now);

  bool IsAnyConnected() const;
  // A connected member, not one of `tried` (by index); nullopt if there is none.
  std::optional<std::size_t> Pick(const std::vector<bool>& tried, MonotonicTime now);

 private:
  struct State {
    bool connected = false;
    std::optional<MonotonicTime> avoid_until;
  };

  std::vector<State> states_;
  std::size_t next_ = 0;
};

}  // namespace drakkar::storage
