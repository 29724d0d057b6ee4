#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"

namespace drakkar {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  std::string_view name;
  std::string value;
  bool quoted = true;

  LogField(std::string_view n, std::string_view v) : name(n), value(v) {}
  LogField(std::string_view n, const std::string& v) : name(n), value(v) {}
  LogField(std::string_view n, const char* v) : name(n), value(v) {}
  LogField(std::string_view n, bool v) : name(n), value(v ? "true" : "false"), quoted(false) {}
  template <typename T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  LogField(std::string_view n, T v) : name(n), value(std::to_string(v)), quoted(false) {}
};

enum class LogFormat { kText, kJson };

struct LogRecord {
  LogLevel level;
  std::string_view logger;
  std::string_view message;
  std::initializer_list<LogField> fields;
};

// Process-wide settings; call it once in main before threads start. Text uses klog's format:
//   I1115 21:41:32.123456    4242 scheduler] "bound" pod="default/a" node="n1"
void ConfigureLogging(LogFormat format, LogLevel lowest, const Clock& clock);
// Redirects log lines from stderr, for tests. An empty function restores stderr.
void SetLogSink(std::function<void(std::string_view line)> sink);
// Formats a record as a line, without the newline.
std::string FormatRecord(LogFormat format, const LogRecord& record, WallTime now, int pid);

// A named logger, one per module: `constexpr Logger kLog("scheduler");`. Thread-safe.
class Logger {
 public:
  constexpr explicit Logger(std::string_view name) : name_(name) {}

  void Debug(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void Info(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void Warning(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void Error(std::string_view message, std::initializer_list<LogField> fields = {}) const;

 private:
  void Write(LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields) const;
  std::string_view name_;
};

}  // namespace drakkar
