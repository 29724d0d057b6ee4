#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/exec/event_loop.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {

// Runs a contract test both over real sockets and in memory. Touch the test's state only inside Do
// and WaitUntil, which run on the transport's loop.
class TransportHarness {
 public:
  virtual ~TransportHarness() = default;
  virtual EventLoop& loop() = 0;
  virtual Transport& transport() = 0;
  virtual void Do(Task task) = 0;
  // Lets the loop run until `condition` holds; false after a generous limit.
  [[nodiscard]] virtual bool WaitUntil(std::function<bool()> condition) = 0;
  virtual std::string SocketPath(std::string_view name) const = 0;
};

std::unique_ptr<TransportHarness> MakeGrpcHarness();    // sockets in a temporary directory
std::unique_ptr<TransportHarness> MakeMemoryHarness();  // a seeded loop and its fake clock

}  // namespace drakkar::rpc
