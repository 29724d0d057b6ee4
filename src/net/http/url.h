#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result/result.h"

namespace drakkar::net {

// An absolute http or https URL. User information and fragments are refused.
struct Url {
  std::string scheme;        // "http" or "https"
  std::string host;          // without the brackets of an IPv6 address
  std::uint16_t port = 0;    // the scheme's default when the text has none
  std::string target = "/";  // path and query, still encoded

  // "host:port" as a Host header has it: the scheme's default port is left out.
  std::string Authority() const;
};

Result<Url> ParseUrl(std::string_view text);

// "%2F" -> "/". Strict: a percent sign not followed by two hex digits is an error, and so is an
// encoded NUL.
Result<std::string> PercentDecode(std::string_view text, bool plus_is_space = false);
// Everything but RFC 3986's unreserved characters becomes %XX: fits a path segment and a query
// value.
std::string PercentEncode(std::string_view text);

// Decoded parameters in the order given; a name may occur more than once.
class Query {
 public:
  // At most kMaxParameters; "a", "a=" and "a=b" are fine, ";" as a separator is not.
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

// A request target in origin form ("/path?query") taken apart.
struct Target {
  std::string path;       // decoded
  std::string raw_path;   // as sent
  std::string raw_query;  // as sent, without the question mark
};
Result<Target> ParseTarget(std::string_view target);

}  // namespace drakkar::net
