#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/env/file_system.h"

namespace drakkar::cli {

// A command's view of its process: standard streams, environment and files.
class Console {
 public:
  virtual ~Console() = default;

  virtual void Out(std::string_view text) = 0;
  virtual void Err(std::string_view text) = 0;
  // Reads standard input to its end.
  virtual Result<std::string> ReadInput() = 0;
  virtual std::optional<std::string> Environment(const std::string& name) const = 0;
  virtual FileSystem& files() = 0;
  // Whether standard error is a terminal; progress is shown only then.
  virtual bool err_is_terminal() const = 0;
  // Descriptor for reading standard input incrementally; -1 if only ReadInput works.
  virtual int input_descriptor() const { return -1; }
  virtual bool in_is_terminal() const { return false; }
  // Whether somebody looks at standard output, and how large the terminal is; 80 by 24 if unknown.
  virtual bool out_is_terminal() const { return false; }
  struct Size {
    std::size_t columns = 80;
    std::size_t lines = 24;
  };
  virtual Size size() const { return {}; }

  // Prints "error: <message>" and a newline.
  void Error(std::string_view message);
};

// The streams of this process. A failed write to standard output (closed pipe, full disk) sets
// had_write_error.
class ProcessConsole final : public Console {
 public:
  void Out(std::string_view text) override;
  void Err(std::string_view text) override;
  Result<std::string> ReadInput() override;
  std::optional<std::string> Environment(const std::string& name) const override;
  FileSystem& files() override { return RealFileSystem(); }
  bool err_is_terminal() const override;
  int input_descriptor() const override { return 0; }
  bool in_is_terminal() const override;
  bool out_is_terminal() const override;
  Size size() const override;
  bool had_write_error() const { return had_write_error_; }

 private:
  bool had_write_error_ = false;
};

}  // namespace drakkar::cli
