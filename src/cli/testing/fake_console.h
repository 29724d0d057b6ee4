#pragma once

#include <map>
#include <string>

#include "base/testing/memory_file_system.h"
#include "cli/console.h"

namespace drakkar::cli::testing {

// Records output; its files are in memory.
class FakeConsole final : public Console {
 public:
  void Out(std::string_view text) override {
    out += text;
    if (on_out) on_out();
  }
  void Err(std::string_view text) override { err += text; }
  Result<std::string> ReadInput() override { return input; }
  std::optional<std::string> Environment(const std::string& name) const override {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  }
  FileSystem& files() override { return memory; }
  bool err_is_terminal() const override { return false; }

  std::string out, err, input;
  std::function<void()> on_out;
  std::map<std::string, std::string> environment;
  MemoryFileSystem memory;
};

}  // namespace drakkar::cli::testing
