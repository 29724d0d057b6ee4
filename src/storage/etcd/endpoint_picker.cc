#include "storage/etcd/endpoint_picker.h"

namespace drakkar::storage {

void EndpointPicker::OnConnected(std::size_t endpoint) {
  states_[endpoint] = {.connected = true, .avoid_until = std::nullopt};
}

void EndpointPicker::OnDisconnected(std::size_t endpoint) {
  states_[endpoint].connected = false;
}

void EndpointPicker::OnSuccess(std::size_t endpoint) {
  states_[endpoint].avoid_until = std::nullopt;
}

void EndpointPicker::OnFailure(std::size_t endpoint, MonotonicTime now) {
  states_[endpoint].avoid_until = now + kAvoidFor;
}

bool EndpointPicker::IsAnyConnected() const {
  for (const State& state : states_) {
    if (state.connected) return true;
  }
  return false;
}

std::optional<std::size_t> EndpointPicker::Pick(const std::vector<bool>& tried, MonotonicTime now) {
  std::optional<std::size_t> avoided;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const std::size_t candidate = (next_ + i) % states_.size();
    const State& state = states_[candidate];
    if (!state.connected || (candidate < tried.size() && tried[candidate])) continue;
    if (state.avoid_until && now < *state.avoid_until) {
      if (!avoided) avoided = candidate;
      continue;
    }
    next_ = candidate + 1;
    return candidate;
  }
  if (avoided) next_ = *avoided + 1;
  return avoided;
}

}  // namespace drakkar::storage
