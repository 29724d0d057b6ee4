#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/meta/object.h"
#include "net/http/message.h"

namespace drakkar::apiserver {

// A group version that an APIService delegates to a Service: the settings of the object, and what
// the server behind it has reported about itself. Immutable.
struct AggregatedApi {
  std::string name;  // "v1beta1.metrics.k8s.io"
  std::string group;
  std::string version;
  int group_priority = 0;
  int version_priority = 0;
  std::string service_namespace;
  std::string service_name;
  std::int64_t port = 443;
  std::string ca_pem;     // empty: the system's roots
  bool insecure = false;  // insecureSkipTLSVerify
  std::string error;      // why it cannot be called, such as a caBundle that is not base64
  bool is_available = false;

  // An array as in aggregated discovery; null: the server has never answered.
  api::TreePtr resources;
  bool is_stale = true;   // the last attempt to read `resources` failed
  net::Segment open_api;  // the document for /openapi/v3/apis/GROUP/VERSION; null: none

  // The CA and server name against which its certificate is verified.
  std::string ServerName() const { return service_name + "." + service_namespace + ".svc"; }
};
using AggregatedApiPtr = std::shared_ptr<const AggregatedApi>;

// Reads an APIService; null if it has no Service.
std::shared_ptr<AggregatedApi> ReadApiService(api::Value object);

// The resources of an APIResourceList ("pods", "pods/status") as the array of aggregated discovery.
// Null if the document is no such list.
api::TreePtr ResourcesOfList(api::Value list, std::string_view group, std::string_view version);

// All of them, at one moment. Immutable.
class AggregatedApis {
 public:
  using Map = std::map<std::pair<std::string, std::string>, AggregatedApiPtr>;
  AggregatedApis() = default;
  explicit AggregatedApis(Map by_version) : by_version_(std::move(by_version)) {}

  bool empty() const { return by_version_.empty(); }
  AggregatedApiPtr Find(std::string_view group, std::string_view version) const;
  // "/apis/GROUP/VERSION" and everything below it; null for other paths.
  AggregatedApiPtr FindByPath(std::string_view path) const;
  const Map& by_version() const { return by_version_; }

 private:
  Map by_version_;  // by group and version
};
using AggregatedApisPtr = std::shared_ptr<const AggregatedApis>;

// Publishes them to all threads.
class AggregationBoard {
 public:
  AggregatedApisPtr current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void Publish(AggregatedApisPtr apis) {
    const std::lock_guard lock(mutex_);
    current_ = std::move(apis);
  }

 private:
  mutable std::mutex mutex_;
  AggregatedApisPtr current_ = std::make_shared<const AggregatedApis>();
};

}  // namespace drakkar::apiserver
