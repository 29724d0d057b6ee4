#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/aggregation/aggregated_apis.h"
#include "apiserver/custom/definition.h"
#include "apiserver/http/discovery.h"

namespace drakkar::apiserver {

// OpenAPI schemas and operations, as kubectl needs them for explain, apply, diff and validation:
// /openapi/v3 (the index), /openapi/v3/api/v1, /openapi/v3/apis/<group>/<version> and, for old
// clients, /openapi/v2 with schemas only, also those of other servers. A document is built when it
// is first requested; the index needs all of them, because it contains their hashes. Not
// thread-safe.
class OpenApi {
 public:
  explicit OpenApi(const DiscoveryOptions& options = {}) : options_(options) {}

  // The kinds of definitions, besides those of the scheme. Their documents are regenerated when
  // they change.
  void SetCustom(CustomKindsPtr custom);
  // What other servers serve, with the documents that they have given us.
  void SetAggregated(AggregatedApisPtr apis);

  // Null if it is not an OpenAPI path. `path` has no query.
  std::shared_ptr<const std::string> Find(std::string_view path);

 private:
  std::shared_ptr<const std::string> Make(std::string_view path);
  std::shared_ptr<const std::string> MakeIndex();

  DiscoveryOptions options_;
  CustomKindsPtr custom_ = std::make_shared<const CustomKinds>();
  AggregatedApisPtr apis_ = std::make_shared<const AggregatedApis>();
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> documents_;
  // The tags of documents in the index, computed once for each.
  struct Tag {
    std::shared_ptr<const std::string> document;
    std::string text;
  };
  std::map<std::string, Tag> tags_;
};

// With the default options; for one thread (the API server's loop).
std::shared_ptr<const std::string> FindOpenApi(std::string_view path, CustomKindsPtr custom = {},
                                               AggregatedApisPtr apis = {});

}  // namespace drakkar::apiserver
