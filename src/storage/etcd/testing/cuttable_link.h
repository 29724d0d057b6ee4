#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net/socket/socket.h"

namespace drakkar::storage {

// A port on loopback that forwards to another one until it is cut: then connections break and new
// ones are closed at once. Loop-bound.
class CuttableLink {
 public:
  CuttableLink(UvLoop& loop, std::uint16_t target);
  ~CuttableLink();

  std::uint16_t port() const { return listener_->port(); }
  void Cut();
  void Restore() { cut_ = false; }

 private:
  class Relay;

  UvLoop& loop_;
  const std::uint16_t target_;
  bool cut_ = false;
  std::vector<std::unique_ptr<Relay>> relays_;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace drakkar::storage
