#include "node/pods/log_stream.h"

#include <algorithm>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "node/pods/log_rotation.h"

namespace drakkar::node {

LogStream::LogStream(FileSystem& files, std::string path, LogOptions options)
    : files_(files), path_(std::move(path)), options_(std::move(options)) {}

// Where the last `tail_lines` lines begin, found from the end.
Result<void> LogStream::FindStart() {
  placed_ = true;
  if (!options_.tail_lines || *options_.tail_lines < 0) return Ok();
  auto info = files_.Stat(path_);
  if (!info.ok()) {
    if (info.error().code == ErrorCode::kNotFound) return Ok();
    return info.error();
  }
  std::uint64_t end = info->size_bytes;
  offset_ = end;
  if (*options_.tail_lines == 0) return Ok();
  std::int64_t left = *options_.tail_lines;
  bool last_byte = true;
  while (end > 0) {
    const std::uint64_t begin = end > kReadBytes ? end - kReadBytes : 0;
    ASSIGN_OR_RETURN(const std::string piece,
                     files_.ReadFileRange(path_, begin, static_cast<std::size_t>(end - begin)));
    for (std::size_t i = piece.size(); i > 0; --i) {
      const bool is_end = piece[i - 1] == '\n' && !last_byte;
      last_byte = false;
      if (is_end && --left == 0) {
        offset_ = begin + i;
        return Ok();
      }
    }
    end = begin;
  }
  offset_ = 0;
  return Ok();
}

void LogStream::AddLine(std::string_view line, std::string& out) {
  const std::size_t first = line.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  const std::size_t third = second == std::string_view::npos ? second : line.find(' ', second + 1);
  if (second == std::string_view::npos) return;  // not a log line: a torn write
  const std::string_view time = line.substr(0, first);
  const std::string_view stream = line.substr(first + 1, second - first - 1);
  const std::string_view tag =
      line.substr(second + 1, third == std::string_view::npos ? third : third - second - 1);
  const std::string_view text =
      third == std::string_view::npos ? std::string_view() : line.substr(third + 1);
  if (options_.since && !since_reached_) {
    auto parsed = api::ParseTime(time);
    if (parsed.ok() && *parsed < *options_.since) return;
    since_reached_ = true;
  }
  if ((options_.stream == "Stdout" && stream != "stdout") ||
      (options_.stream == "Stderr" && stream != "stderr")) {
    return;
  }
  if (options_.timestamps && at_line_start_) out += StrCat(time, " ");
  out += text;
  const bool partial = tag.starts_with('P');
  if (!partial) out += '\n';
  at_line_start_ = !partial;
}

Result<std::string> LogStream::ReadPiece() {
  if (aside_.empty() && offset_ > 0) {
    auto info = files_.Stat(path_);
    const bool rotated =
        info.ok() ? info->size_bytes < offset_ : info.error().code == ErrorCode::kNotFound;
    if (rotated) {
      const std::vector<std::string> old = RotatedLogs(files_, path_);
      if (old.empty()) {
        offset_ = 0;
      } else {
        aside_ = old.back();
      }
    }
  }
  if (!aside_.empty()) {
    auto rest = files_.ReadFileRange(aside_, offset_, kReadBytes);
    if (rest.ok() && !rest->empty()) return rest;
    aside_.clear();
    offset_ = 0;
  }
  return files_.ReadFileRange(path_, offset_, kReadBytes);
}

Result<std::string> LogStream::Read() {
  std::string out;
  if (exhausted_) return out;
  if (!placed_) RETURN_IF_ERROR(FindStart());
  // Skips ahead over lines that are filtered out (before `since`), but only so far in one call.
  for (int round = 0; round < 64 && out.empty(); ++round) {
    auto piece = ReadPiece();
    if (!piece.ok()) {
      if (piece.error().code == ErrorCode::kNotFound) return out;
      return piece.error();
    }
    if (piece->empty()) return out;
    offset_ += piece->size();
    rest_ += *piece;
    std::size_t at = 0;
    while (true) {
      const std::size_t end = rest_.find('\n', at);
      if (end == std::string::npos) break;
      AddLine(std::string_view(rest_).substr(at, end - at), out);
      at = end + 1;
    }
    rest_.erase(0, at);
    if (rest_.size() > kMaxLine) {
      AddLine(rest_, out);
      rest_.clear();
    }
  }
  if (options_.limit_bytes) {
    const std::int64_t left = *options_.limit_bytes - given_;
    if (static_cast<std::int64_t>(out.size()) >= left) {
      out.resize(static_cast<std::size_t>(std::max<std::int64_t>(left, 0)));
      exhausted_ = true;
    }
  }
  given_ += static_cast<std::int64_t>(out.size());
  return out;
}

std::string ReadLogTail(FileSystem& files, const std::string& path, std::int64_t lines,
                        std::size_t bytes) {
  LogOptions options;
  options.tail_lines = lines;
  LogStream stream(files, path, std::move(options));
  std::string tail;
  while (true) {
    const auto piece = stream.Read();
    if (!piece.ok() || piece->empty()) return tail;
    tail += *piece;
    if (tail.size() > bytes) tail.erase(0, tail.size() - bytes);
  }
}

}  // namespace drakkar::node
