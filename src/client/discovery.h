#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "api/tree/value.h"
#include "base/result/result.h"
#include "client/client.h"

namespace drakkar::client {

// The Accept header for /api and /apis.
inline constexpr std::string_view kDiscoveryType =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// Reads aggregated discovery and keeps descriptions of kinds that our schema does not have (custom
// resources, kinds of other releases): enough to list, watch, write and delete them.
class KindCatalog {
 public:
  KindCatalog();
  ~KindCatalog();

  // Adds the resources of an APIGroupDiscoveryList to `into`. The server lists versions in order of
  // preference. Fails if there are more than kMaxKinds.
  // With kAll a resource is added in each of its versions.
  enum class Versions { kPreferred, kAll };
  Result<void> Read(api::Value list, ServedKinds& into, Versions versions = Versions::kPreferred);

  static constexpr std::size_t kMaxKinds = 10'000;

 private:
  struct Foreign;
  const api::KindSchema* Intern(std::string_view group, std::string_view version,
                                api::Value resource);

  std::map<std::string, std::unique_ptr<Foreign>> foreign_;
};

}  // namespace drakkar::client
