#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result/result.h"

namespace drakkar::cel {

// An absolute URL or an absolute path, parsed as Go's net/url does.
struct Url {
  std::string text;
  std::string scheme;
  std::string host;  // with the port
  std::string escaped_path;
  std::string query;  // without the question mark

  std::string_view Hostname() const;  // without brackets and port
  std::string_view Port() const;
  std::vector<std::pair<std::string, std::string>> QueryValues() const;  // decoded, in order
};

Result<Url> ParseUrl(std::string_view text);

}  // namespace drakkar::cel
