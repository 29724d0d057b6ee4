#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result/result.h"

namespace drakkar {

struct ProcessOptions {
  std::vector<std::string> arguments;  // arguments[0] is the program; looked up in PATH without '/'
  std::vector<std::string> environment;  // "K=V"; if empty, inherited
  std::string directory;                 // if empty, ours
  std::string standard_input;            // written to the child, then closed
  bool capture_output = true;            // if false, stdout and stderr are inherited
  bool new_session = false;  // setsid: signals to our process group do not reach the child
  // {our descriptor, number in the child}: from 3 up, or any number without captured output.
  std::vector<std::pair<int, int>> inherited_descriptors;
};

struct ProcessExit {
  int exit_code = 0;   // 128 + signal if killed
  int signal = 0;      // 0 if it exited normally
  std::string output;  // standard output, the last kMaxProcessOutput bytes
  std::string error_output;
};

// How much of each output stream is kept. The rest is read and dropped, so that the child never
// blocks.
constexpr std::size_t kMaxProcessOutput = 4u << 20;

// A running child. Destroying it does not end the process, only the reporting.
class Process {
 public:
  virtual ~Process() = default;
  virtual int pid() const = 0;
  virtual Result<void> Signal(int signal) = 0;
};

// The only way to start other programs.
class Spawner {
 public:
  virtual ~Spawner() = default;
  // Starts a program. `on_exit` runs once on the loop after it has exited and its output was read.
  virtual Result<std::unique_ptr<Process>> Spawn(ProcessOptions options,
                                                 std::function<void(ProcessExit)> on_exit) = 0;
};

class UvLoop;
// Spawns through the loop's libuv handle; `on_exit` runs on that loop.
std::unique_ptr<Spawner> MakeSpawner(UvLoop& loop);

}  // namespace drakkar
