#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/http/discovery.h"

namespace drakkar::apiserver {

// The schemas and operations of what is served, as kubectl wants them for explain, apply, diff and
// validation: /openapi/v3 (the index), /openapi/v3/api/v1, /openapi/v3/apis/<group>/<version> and,
// for old clients, /openapi/v2 with schemas only. Each document is made when it is first asked for;
// the index asks for all, because it names their hashes. Not thread-safe.
class OpenApi {
 public:
  explicit OpenApi(const DiscoveryOptions& options = {}) : options_(options) {}

  // Null: not a path of OpenAPI. The path is without its query.
  std::shared_ptr<const std::string> Find(std::string_view path);

 private:
  std::shared_ptr<const std::string> Make(std::string_view path);
  std::shared_ptr<const std::string> MakeIndex();

  DiscoveryOptions options_;
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> documents_;
};

// With the default options; for one thread (the API server's loop).
std::shared_ptr<const std::string> FindOpenApi(std::string_view path);

}  // namespace drakkar::apiserver
