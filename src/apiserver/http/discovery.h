#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::apiserver {

class AggregatedApis;

// The content type of aggregated discovery.
inline constexpr std::string_view kAggregatedDiscoveryType =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// Subresources that we serve; the schema of a kind may list more.
inline constexpr std::string_view kServedSubresources[] = {
    "status",   "binding", "log",      "exec",   "attach", "ephemeralcontainers",
    "finalize", "scale",   "eviction", "resize", "token",  "portforward",
    "proxy",    "approval"};
inline constexpr std::string_view kServedQuestions[] = {"tokenreviews",
                                                        "selfsubjectreviews",
                                                        "subjectaccessreviews",
                                                        "localsubjectaccessreviews",
                                                        "selfsubjectaccessreviews",
                                                        "selfsubjectrulesreviews"};

struct DiscoveryOptions {
  std::span<const std::string_view> subresources = kServedSubresources;
  // Kinds that are never stored (reviews), by plural.
  std::span<const std::string_view> questions = kServedQuestions;
};

// Stored kinds in all their versions, and reviews.
bool IsServed(const api::KindSchema& kind, const DiscoveryOptions& options = {});
// The groups and versions that have such kinds, sorted.
std::vector<std::pair<std::string_view, std::string_view>> BuiltInVersions();
bool IsServedSubresource(std::string_view subresource, const DiscoveryOptions& options = {});

// What a subresource accepts and returns, and its verbs.
struct SubresourceShape {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
  std::span<const std::string_view> verbs;  // sorted
};
SubresourceShape ShapeOf(const api::KindSchema& kind, std::string_view subresource);

// True if version `a` is listed before `b`: v1 before v1beta2 before v1beta1 before v1alpha3.
bool VersionBefore(std::string_view a, std::string_view b);

// The discovery documents: /api, /apis, /apis/<group>, /api/v1, /apis/<group>/<version>, /version
// and the list of paths at /. Built once; immutable afterwards.
class Discovery {
 public:
  // `custom` are kinds besides those of the scheme, `apis` what other servers serve. The texts of
  // groups that `previous` has too are taken from there, so that a change takes time for its own
  // group, however many there are.
  explicit Discovery(const DiscoveryOptions& options = {},
                     std::span<const api::KindSchema* const> custom = {},
                     const AggregatedApis* apis = nullptr, const Discovery* previous = nullptr);

  // Null if it is not a discovery path. `aggregated` matters for /api and /apis only.
  std::shared_ptr<const std::string> Find(std::string_view path, bool aggregated) const;

 private:
  // What the documents have of one group.
  struct GroupTexts;

  std::map<std::string, std::shared_ptr<const GroupTexts>, std::less<>> groups_;
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> documents_;
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> aggregated_;
};

// With the default options.
std::shared_ptr<const std::string> FindDiscovery(std::string_view path, bool aggregated);

// A strong entity tag of a document, with its quotes.
std::string EntityTag(std::string_view document);

}  // namespace drakkar::apiserver
