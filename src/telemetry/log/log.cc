#include "telemetry/log/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <mutex>

#include "base/text/text.h"

namespace drakkar {
namespace {

struct Settings {
  std::atomic<LogFormat> format = LogFormat::kText;
  std::atomic<LogLevel> lowest = LogLevel::kInfo;
  std::atomic<const Clock*> clock = nullptr;
  std::mutex mutex;
  std::function<void(std::string_view)> sink;  // guarded by mutex
};

Settings& settings() {
  // never destroyed, because threads may still log at exit
  static Settings* instance = new Settings;
  return *instance;
}

std::string_view JsonLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "info";
}

void AppendJsonString(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

void ConfigureLogging(LogFormat format, LogLevel lowest, const Clock& clock) {
  settings().format = format;
  settings().lowest = lowest;
  settings().clock = &clock;
}

void SetLogSink(std::function<void(std::string_view line)> sink) {
  std::lock_guard lock(settings().mutex);
  settings().sink = std::move(sink);
}

std::string FormatRecord(LogFormat format, const LogRecord& record, WallTime now, int pid) {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  std::string line;
  if (format == LogFormat::kJson) {
    line = StrCat("{\"ts\":", micros / 1000, ".", (micros / 100) % 10, ",\"level\":\"",
                  JsonLevel(record.level), "\",\"logger\":\"", record.logger, "\",\"msg\":");
    AppendJsonString(line, record.message);
    for (const LogField& field : record.fields) {
      line += ',';
      AppendJsonString(line, field.name);
      line += ':';
      if (field.quoted) {
        AppendJsonString(line, field.value);
      } else {
        line += field.value;
      }
    }
    line += '}';
    return line;
  }
  const std::time_t seconds = static_cast<std::time_t>(micros / 1'000'000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char stamp[64];
  std::snprintf(stamp, sizeof(stamp), "%c%02d%02d %02d:%02d:%02d.%06d %7d ",
                "DIWE"[static_cast<int>(record.level)], utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                utc.tm_min, utc.tm_sec, static_cast<int>(micros % 1'000'000), pid);
  line = stamp;
  line += record.logger;
  line += "] ";
  line += Quote(record.message);
  for (const LogField& field : record.fields) {
    line += ' ';
    line += field.name;
    line += '=';
    line += field.quoted ? Quote(field.value) : field.value;
  }
  return line;
}

void Logger::Debug(std::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kDebug, message, fields);
}
void Logger::Info(std::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kInfo, message, fields);
}
void Logger::Warning(std::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kWarning, message, fields);
}
void Logger::Error(std::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kError, message, fields);
}

void Logger::Write(LogLevel level, std::string_view message,
                   std::initializer_list<LogField> fields) const {
  Settings& current = settings();
  if (level < current.lowest.load()) return;
  const Clock* clock = current.clock.load();
  if (clock == nullptr) clock = &RealClock();
  std::string line = FormatRecord(current.format, LogRecord{level, name_, message, fields},
                                  clock->Now(), getpid());
  std::lock_guard lock(current.mutex);
  if (current.sink) {
    current.sink(line);
    return;
  }
  line += '\n';
  // One write per line, so that lines of several processes on one terminal do not mix.
  std::size_t done = 0;
  while (done < line.size()) {
    ssize_t n = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace drakkar
