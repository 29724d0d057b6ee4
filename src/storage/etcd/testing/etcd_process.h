#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/uv_loop.h"
#include "base/os/process.h"

namespace drakkar::storage {

// A real etcd of one member on loopback, for tests: free ports, a temporary data directory, no
// syncs. It is killed with this object, and also if the test's process dies. Create, use and
// destroy it off `thread`'s loop.
class EtcdProcess {
 public:
  // The programs a test may run with: DRAKKAR_ETCD if set, else etcd from PATH; "" if there is
  // none.
  static std::string FindProgram();
  // Why a test that needs etcd is skipped.
  static std::string MissingText();

  // `flags` come after our own. Waits until it answers.
  EtcdProcess(LoopThread& thread, std::string program, std::vector<std::string> flags = {});
  ~EtcdProcess();

  std::uint16_t port() const { return port_; }
  const std::string& directory() const { return directory_; }
  // Kills it, and starts it again on the same port and data.
  void Kill();
  void Restart();

 private:
  void Spawn();

  LoopThread& thread_;
  const std::string program_;
  const std::vector<std::string> flags_;
  std::string directory_;
  std::uint16_t port_ = 0;
  std::uint16_t peer_port_ = 0;
  std::unique_ptr<Spawner> spawner_;
  std::unique_ptr<Process> process_;
  int lifeline_ = -1;  // the process is killed when this is closed
  bool running_ = false;
  std::string output_;
};

}  // namespace drakkar::storage
