#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/env/clock.h"

namespace drakkar::client {

// The API servers of one cluster, and which of them requests go to: the first, until it fails, then
// the next in the list, and so on in a circle. Pure: events and time in.
class ServerList {
 public:
  // A server that reports that it cannot serve is left only after it was in use for this long;
  // otherwise clients would cycle quickly through servers that all say so.
  static constexpr Duration kMinStay = std::chrono::seconds(2);

  explicit ServerList(std::vector<std::string> servers) : servers_(std::move(servers)) {}

  const std::string& current() const { return servers_[current_]; }
  std::size_t size() const { return servers_.size(); }

  // A request to `server` got no answer. Returns whether new requests go to another server now;
  // false if they did before.
  bool OnNoAnswer(std::string_view server, MonotonicTime now);
  // `server` answered that it cannot serve, for example because it does not reach its store.
  bool OnUnable(std::string_view server, MonotonicTime now);
  // Sets the current list, which must not be empty. The server in use stays if it is in the list.
  void Replace(std::vector<std::string> servers);

 private:
  std::vector<std::string> servers_;  // not empty
  std::size_t current_ = 0;
  MonotonicTime since_ = MonotonicTime::min();  // when `current_` came into use
};

// The servers to know, given those known and the Endpoints "kubernetes" of the namespace default,
// which have the addresses of all API servers that live. The first known one stays, as it may be a
// name that leads to all of them; the others are those of the Endpoints, sorted, at most
// kMaxServers in total. Unchanged if the Endpoints are empty.
inline constexpr std::size_t kMaxServers = 16;
std::vector<std::string> MergeServers(const std::vector<std::string>& known, api::Value endpoints);

}  // namespace drakkar::client
