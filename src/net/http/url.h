#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result/result.h"

namespace drakkar::net {

// An absolute http or https URL. User information and fragments are rejected.
struct Url {
  std::string scheme;        // "http" or "https"
  std::string host;          // without the brackets of an IPv6 address
  std::uint16_t port = 0;    // the scheme's default if the URL has none
  std::string target = "/";  // path and query, still encoded

  // "host:port" for a Host header, without the scheme's default port.
  std::string Authority() const;
};

Result<Url> ParseUrl(std::string_view text);

// "%2F" becomes "/". Strict: rejects a percent sign that is not followed by two hex digits, and an
// encoded NUL.
Result<std::string> PercentDecode(std::string_view text, bool plus_is_space = false);
// Encodes everything but RFC 3986's unreserved characters as %XX; suitable for a path segment or a
// query value.
std::string PercentEncode(std::string_view text);

// Decoded parameters in order; names may repeat.
class Query {
 public:
  // Accepts at most kMaxParameters; "a", "a=" and "a=b" are valid, ";" as a separator is not.
  static Result<Query> Parse(std::string_view raw);

  const std::string* Find(std::string_view name) const;  // the first, or null
  std::string_view Get(std::string_view name) const;     // the first, or ""
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  std::size_t size() const { return parameters_.size(); }

  static constexpr std::size_t kMaxParameters = 1000;

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
};

// A request target in origin form ("/path?query"), split.
struct Target {
  std::string path;       // decoded
  std::string raw_path;   // as sent
  std::string raw_query;  // as sent, without the question mark
};
Result<Target> ParseTarget(std::string_view target);

}  // namespace drakkar::net
