#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/env/descriptor.h"
#include "base/env/file_system.h"
#include "base/exec/lifetime.h"
#include "base/exec/uv_loop.h"
#include "base/os/descriptor_watch.h"
#include "node/shutdown/dbus_message.h"

namespace drakkar::node {

// The socket in a list of D-Bus addresses such as "unix:path=/run/bus,guid=1"; without one, that of
// every Linux distribution.
std::string SystemBusSocket(std::string_view addresses);

// Delays the shutdown of this machine through systemd-logind: takes its delay lock, reports when a
// shutdown begins or is cancelled, and releases the lock when told to. If logind's maximum delay is
// too short, raises it with a file in `configuration`, as kubelets do. Without logind, or while it
// cannot be reached, retries every kRetry and logs once. Loop-bound.
class Logind {
 public:
  struct Options {
    UvLoop& loop;
    FileSystem& files;
    std::string socket = "/run/dbus/system_bus_socket";
    std::string configuration = "/etc/systemd/logind.conf.d/99-drakkar.conf";
    Duration wanted{};  // how long a shutdown must be delayed
    std::function<void(bool begins)> on_shutdown;
  };
  static constexpr Duration kRetry = std::chrono::seconds(30);
  static constexpr Duration kFirstLook = std::chrono::milliseconds(100);
  static constexpr int kLooks = 5;  // for a raised limit, each after twice the time

  explicit Logind(Options options) : options_(std::move(options)) {}

  void Start();
  // Lets the shutdown proceed.
  void Release() { lock_ = Descriptor(); }
  bool holds_lock() const { return lock_.ok(); }

 private:
  using Answer = std::function<void(const DbusMessage&)>;

  Result<void> Connect();
  void OnReadable();
  // Reads available data; false: the bus has closed the connection.
  Result<bool> Receive();
  void OnBytes();
  void OnMessage(const DbusMessage& message);
  Result<void> Send(std::string_view bytes);
  void Call(const DbusCall& call, Answer answer);
  void Fail(const Error& error);

  void Greet();
  void ReadLimit(int looks_left);
  void RaiseLimit();
  void Lock();

  const Options options_;
  Descriptor socket_;
  std::unique_ptr<DescriptorWatch> watch_;
  bool is_authenticated_ = false;
  bool raised_ = false;
  std::string greeting_;  // lines before the messages begin
  DbusReader reader_;
  std::uint32_t last_serial_ = 0;
  std::map<std::uint32_t, Answer> answers_;  // by serial; logind answers every call
  std::vector<Descriptor> received_;         // not taken by a message yet; few, see Receive
  Descriptor lock_;
  std::string logged_;
  TimerHandle timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
