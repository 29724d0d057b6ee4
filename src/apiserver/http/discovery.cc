#include "apiserver/http/discovery.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <vector>

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/aggregation/aggregated_apis.h"
#include "apiserver/aggregation/local_services.h"
#include "base/hash/crc32.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;

constexpr std::string_view kReadWrite[] = {"get", "patch", "update"};
constexpr std::string_view kCreateOnly[] = {"create"};
constexpr std::string_view kGetOnly[] = {"get"};
constexpr std::string_view kUpdateOnly[] = {"update"};
constexpr std::string_view kStream[] = {"create", "get"};
constexpr std::string_view kProxy[] = {"create", "delete", "get", "patch", "update"};

bool Contains(std::span<const std::string_view> list, std::string_view wanted) {
  return std::ranges::find(list, wanted) != list.end();
}

Draft ToArray(std::span<const std::string_view> texts) {
  Draft array = Draft::Array();
  for (std::string_view text : texts) array.Append(text);
  return array;
}

Draft ToSortedArray(std::span<const std::string_view> texts) {
  std::vector<std::string_view> sorted(texts.begin(), texts.end());
  std::ranges::sort(sorted);
  return ToArray(sorted);
}

std::vector<std::string_view> ServedSubresources(const api::KindSchema& kind,
                                                 const DiscoveryOptions& options) {
  std::vector<std::string_view> served;
  for (std::string_view each : kind.subresources) {
    if (IsServedSubresource(each, options)) served.push_back(each);
  }
  std::ranges::sort(served);
  return served;
}

struct Version {
  std::string_view name;
  ServicePriority priority;
  std::vector<const api::KindSchema*> kinds;  // by plural
  AggregatedApiPtr aggregated;                // served by another server
};

struct Group {
  std::string_view name;
  std::vector<Version> versions;  // preferred first
};

// The order of groups: by their highest priority, then by the name of the APIService that has it.
std::pair<int, std::string> PlaceOf(const Group& group) {
  std::pair<int, std::string> place = {0, ""};
  for (const Version& version : group.versions) {
    std::pair<int, std::string> own = {-version.priority.group,
                                       ApiServiceName(group.name, version.name)};
    if (place.second.empty() || own < place) place = std::move(own);
  }
  return place;
}

// Groups and versions by their priorities, as the APIServices of Kubernetes order them.
std::vector<Group> ServedGroups(const DiscoveryOptions& options,
                                std::span<const api::KindSchema* const> custom,
                                const AggregatedApis* apis) {
  std::map<std::string_view, std::map<std::string_view, Version>> found;
  const auto add = [&](const api::KindSchema& kind) {
    Version& version = found[kind.group][kind.version];
    if (version.kinds.empty()) {
      version.name = kind.version;
      version.priority = PriorityOf(kind.group, kind.version);
    }
    version.kinds.push_back(&kind);
  };
  for (const api::KindSchema& kind : api::AllKinds()) {
    if (IsServed(kind, options)) add(kind);
  }
  for (const api::KindSchema* kind : custom) add(*kind);
  if (apis != nullptr) {
    for (const auto& [key, api] : apis->by_version()) {
      found[api->group][api->version] = {.name = api->version,
                                         .priority = {api->group_priority, api->version_priority},
                                         .kinds = {},
                                         .aggregated = api};
    }
  }
  std::vector<std::pair<std::pair<int, std::string>, Group>> placed;
  for (auto& [name, versions] : found) {
    Group group{name, {}};
    for (auto& [version_name, version] : versions) {
      std::ranges::sort(version.kinds, {}, &api::KindSchema::plural);
      group.versions.push_back(std::move(version));
    }
    std::ranges::sort(group.versions, [](const Version& a, const Version& b) {
      if (a.priority.version != b.priority.version) return a.priority.version > b.priority.version;
      return VersionBefore(a.name, b.name);
    });
    auto place = PlaceOf(group);
    placed.emplace_back(std::move(place), std::move(group));
  }
  std::ranges::sort(placed, {}, [](const auto& each) -> const auto& { return each.first; });
  std::vector<Group> groups;
  for (auto& [place, group] : placed) groups.push_back(std::move(group));
  return groups;
}

std::string GroupVersion(std::string_view group, std::string_view version) {
  return group.empty() ? std::string(version) : StrCat(group, "/", version);
}

Draft ResourceList(const Group& group, const Version& version, const DiscoveryOptions& options) {
  Draft resources = Draft::Array();
  for (const api::KindSchema* kind : version.kinds) {
    Draft entry({{"name", kind->plural},
                 {"singularName", kind->singular},
                 {"namespaced", kind->namespaced},
                 {"kind", kind->kind},
                 {"verbs", ToSortedArray(kind->verbs)}});
    if (!kind->short_names.empty()) entry["shortNames"] = ToArray(kind->short_names);
    if (!kind->categories.empty()) entry["categories"] = ToArray(kind->categories);
    resources.Append(std::move(entry));
    for (std::string_view name : ServedSubresources(*kind, options)) {
      const SubresourceShape shape = ShapeOf(*kind, name);
      Draft sub({{"name", StrCat(kind->plural, "/", name)},
                 {"singularName", ""},
                 {"namespaced", kind->namespaced}});
      // Only if it differs from the list's own.
      if (shape.group != group.name || shape.version != version.name) {
        sub["group"] = shape.group;
        sub["version"] = shape.version;
      }
      sub["kind"] = shape.kind;
      sub["verbs"] = ToArray(shape.verbs);
      resources.Append(std::move(sub));
    }
  }
  return Draft({{"kind", "APIResourceList"},
                {"apiVersion", "v1"},
                {"groupVersion", GroupVersion(group.name, version.name)},
                {"resources", std::move(resources)}});
}

Draft GroupEntry(const Group& group) {
  Draft versions = Draft::Array();
  for (const Version& version : group.versions) {
    versions.Append(Draft(
        {{"groupVersion", GroupVersion(group.name, version.name)}, {"version", version.name}}));
  }
  Draft preferred = versions.at(0);
  return Draft({{"name", group.name},
                {"versions", std::move(versions)},
                {"preferredVersion", std::move(preferred)}});
}

Draft ResponseKind(std::string_view group, std::string_view version, std::string_view kind) {
  return Draft({{"group", group}, {"version", version}, {"kind", kind}});
}

Draft AggregatedGroup(const Group& group, const DiscoveryOptions& options) {
  Draft versions = Draft::Array();
  for (const Version& version : group.versions) {
    Draft resources = Draft::Array();
    if (const AggregatedApi* api = version.aggregated.get()) {
      // The resources it last reported, if it ever did.
      if (api->resources != nullptr) resources = Draft(api->resources);
      versions.Append(Draft({{"version", version.name},
                             {"resources", std::move(resources)},
                             {"freshness", api->is_stale ? "Stale" : "Current"}}));
      continue;
    }
    for (const api::KindSchema* kind : version.kinds) {
      Draft entry({{"resource", kind->plural},
                   {"responseKind", ResponseKind(kind->group, kind->version, kind->kind)},
                   {"scope", kind->namespaced ? "Namespaced" : "Cluster"},
                   {"singularResource", kind->singular},
                   {"verbs", ToSortedArray(kind->verbs)}});
      if (!kind->short_names.empty()) entry["shortNames"] = ToArray(kind->short_names);
      if (!kind->categories.empty()) entry["categories"] = ToArray(kind->categories);
      for (std::string_view name : ServedSubresources(*kind, options)) {
        const SubresourceShape shape = ShapeOf(*kind, name);
        entry["subresources"].Append(
            Draft({{"subresource", name},
                   {"responseKind", ResponseKind(shape.group, shape.version, shape.kind)},
                   {"verbs", ToArray(shape.verbs)}}));
      }
      resources.Append(std::move(entry));
    }
    versions.Append(Draft({{"version", version.name},
                           {"resources", std::move(resources)},
                           {"freshness", "Current"}}));
  }
  Draft metadata = Draft::Object();
  if (!group.name.empty()) metadata["name"] = group.name;
  metadata["creationTimestamp"] = nullptr;
  return Draft({{"metadata", std::move(metadata)}, {"versions", std::move(versions)}});
}

Draft AggregatedList(Draft items) {
  return Draft({{"kind", "APIGroupDiscoveryList"},
                {"apiVersion", "apidiscovery.k8s.io/v2"},
                {"metadata", Draft::Object()},
                {"items", std::move(items)}});
}

constexpr std::string_view Platform() {
#if defined(__aarch64__)
  return "linux/arm64";
#else
  return "linux/amd64";
#endif
}

// The content of /version: the Kubernetes release whose API this is. It has no commit and no build
// date, so that equal sources give equal answers.
Draft VersionDocument() {
  return Draft({{"major", "1"},
                {"minor", "37"},
                {"emulationMajor", "1"},
                {"emulationMinor", "37"},
                {"minCompatibilityMajor", "1"},
                {"minCompatibilityMinor", "36"},
                {"gitVersion", "v1.37.0+drakkar"},
                {"gitCommit", ""},
                {"gitTreeState", "clean"},
                {"buildDate", "1970-01-01T00:00:00Z"},
                {"goVersion", ""},
                {"compiler", "c++20"},
                {"platform", Platform()}});
}

std::shared_ptr<const std::string> ToText(const Draft& draft) {
  return std::make_shared<const std::string>(
      api::WriteJson(draft.Freeze()->root(), {.final_newline = true}));
}

}  // namespace

bool IsServed(const api::KindSchema& kind, const DiscoveryOptions& options) {
  return Contains(kind.verbs, "get") || Contains(options.questions, kind.plural);
}

std::vector<std::pair<std::string_view, std::string_view>> BuiltInVersions() {
  std::set<std::pair<std::string_view, std::string_view>> found;
  for (const api::KindSchema& kind : api::AllKinds()) {
    if (IsServed(kind)) found.emplace(kind.group, kind.version);
  }
  return {found.begin(), found.end()};
}

bool IsServedSubresource(std::string_view subresource, const DiscoveryOptions& options) {
  return Contains(options.subresources, subresource);
}

SubresourceShape ShapeOf(const api::KindSchema& kind, std::string_view subresource) {
  if (subresource == "binding") return {"", "v1", "Binding", kCreateOnly};
  if (subresource == "eviction") return {"policy", "v1", "Eviction", kCreateOnly};
  if (subresource == "token") return {"authentication.k8s.io", "v1", "TokenRequest", kCreateOnly};
  if (subresource == "scale") return {"autoscaling", "v1", "Scale", kReadWrite};
  if (subresource == "exec") return {"", "v1", "PodExecOptions", kStream};
  if (subresource == "attach") return {"", "v1", "PodAttachOptions", kStream};
  if (subresource == "portforward") return {"", "v1", "PodPortForwardOptions", kStream};
  if (subresource == "proxy") {
    if (kind.kind == "Node") return {"", "v1", "NodeProxyOptions", kProxy};
    if (kind.kind == "Service") return {"", "v1", "ServiceProxyOptions", kProxy};
    return {"", "v1", "PodProxyOptions", kProxy};
  }
  std::span<const std::string_view> verbs = kReadWrite;  // status, resize, ephemeralcontainers
  if (subresource == "log") verbs = kGetOnly;
  if (subresource == "finalize") verbs = kUpdateOnly;
  return {kind.group, kind.version, kind.kind, verbs};
}

bool VersionBefore(std::string_view a, std::string_view b) {
  struct Parts {
    int stage = 0;  // 3: stable, 2: beta, 1: alpha, 0: none of these
    std::int64_t major = 0;
    std::int64_t minor = 0;
    auto operator<=>(const Parts&) const = default;
  };
  const auto parse = [](std::string_view text) {
    Parts parts;
    if (text.empty() || text[0] != 'v') return parts;
    text.remove_prefix(1);
    const std::size_t letters = text.find_first_not_of("0123456789");
    const std::optional<std::int64_t> major = ParseInt64(text.substr(0, letters));
    if (!major) return parts;
    if (letters == std::string_view::npos) return Parts{3, *major, 0};
    text.remove_prefix(letters);
    for (int stage : {2, 1}) {
      const std::string_view word = stage == 2 ? "beta" : "alpha";
      if (!text.starts_with(word)) continue;
      const std::optional<std::int64_t> minor = ParseInt64(text.substr(word.size()));
      if (minor) return Parts{stage, *major, *minor};
    }
    return parts;
  };
  const Parts left = parse(a);
  const Parts right = parse(b);
  if (left != right) return left > right;
  return a < b;
}

struct Discovery::GroupTexts {
  // The kinds and other servers that the texts are about, which are never changed.
  std::vector<std::shared_ptr<const void>> made_of;
  // By version, without those that another server answers for.
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> resources;
  std::shared_ptr<const std::string> document;  // of the group; null for the core group
  std::string entry;                            // of the list of groups
  std::string aggregated;

  GroupTexts(const Group& group, std::vector<std::shared_ptr<const void>> of,
             const DiscoveryOptions& options)
      : made_of(std::move(of)),
        aggregated(api::WriteJson(AggregatedGroup(group, options).Freeze()->root())) {
    for (const Version& version : group.versions) {
      if (version.aggregated != nullptr) continue;
      resources.emplace(version.name, ToText(ResourceList(group, version, options)));
    }
    if (group.name.empty()) return;
    const Draft in_list = GroupEntry(group);
    const api::TreePtr tree = in_list.Freeze();
    entry = api::WriteJson(tree->root());
    Draft whole({{"kind", "APIGroup"}, {"apiVersion", "v1"}});
    for (const api::MemberView& member : tree->root().members()) {
      whole.Entry(*member.key) = Draft(member.value);
    }
    document = ToText(whole);
  }

  static std::vector<std::shared_ptr<const void>> ContentsOf(const Group& group) {
    std::vector<std::shared_ptr<const void>> contents;
    for (const Version& version : group.versions) {
      // Kinds live as long as the process.
      for (const api::KindSchema* kind : version.kinds) {
        contents.emplace_back(std::shared_ptr<const void>(), kind);
      }
      if (version.aggregated != nullptr) contents.push_back(version.aggregated);
    }
    return contents;
  }
};

Discovery::Discovery(const DiscoveryOptions& options,
                     std::span<const api::KindSchema* const> custom, const AggregatedApis* apis,
                     const Discovery* previous) {
  Draft all_groups = Draft::Array();
  Draft aggregated_core = Draft::Array();
  Draft aggregated_named = Draft::Array();
  std::vector<std::string_view> paths = {"/healthz",    "/livez",  "/metrics", "/openapi/v2",
                                         "/openapi/v3", "/readyz", "/version"};
  std::vector<std::string> aggregated_paths;
  for (const Group& group : ServedGroups(options, custom, apis)) {
    std::vector<std::shared_ptr<const void>> contents = GroupTexts::ContentsOf(group);
    std::shared_ptr<const GroupTexts> texts;
    if (previous != nullptr) {
      const auto found = previous->groups_.find(group.name);
      if (found != previous->groups_.end() && found->second->made_of == contents) {
        texts = found->second;
      }
    }
    if (texts == nullptr) {
      texts = std::make_shared<const GroupTexts>(group, std::move(contents), options);
    }
    groups_.emplace(group.name, texts);
    const std::string root = group.name.empty() ? "/api" : StrCat("/apis/", group.name);
    for (const auto& [version, text] : texts->resources) {
      documents_[StrCat(root, "/", version)] = text;
    }
    for (const Version& version : group.versions) {
      // The server behind an API answers itself.
      if (version.aggregated != nullptr) {
        aggregated_paths.push_back(StrCat(root, "/", version.name));
      }
    }
    if (group.name.empty()) {
      Draft versions = Draft::Array();
      for (const Version& version : group.versions) versions.Append(version.name);
      documents_["/api"] = ToText(Draft({{"kind", "APIVersions"},
                                         {"versions", std::move(versions)},
                                         {"serverAddressByClientCIDRs", Draft::Array()}}));
      aggregated_core.Append(Draft::Raw(texts->aggregated));
      continue;
    }
    documents_[root] = texts->document;
    all_groups.Append(Draft::Raw(texts->entry));
    aggregated_named.Append(Draft::Raw(texts->aggregated));
  }
  documents_["/apis"] = ToText(
      Draft({{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(all_groups)}}));
  documents_["/version"] = ToText(VersionDocument());
  aggregated_["/api"] = ToText(AggregatedList(std::move(aggregated_core)));
  aggregated_["/apis"] = ToText(AggregatedList(std::move(aggregated_named)));
  for (const auto& [path, document] : documents_) paths.push_back(path);
  paths.insert(paths.end(), aggregated_paths.begin(), aggregated_paths.end());
  documents_["/"] = ToText(Draft({{"paths", ToSortedArray(paths)}}));
}

std::shared_ptr<const std::string> Discovery::Find(std::string_view path, bool aggregated) const {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path.empty()) path = "/";
  if (aggregated) {
    const auto found = aggregated_.find(path);
    if (found != aggregated_.end()) return found->second;
  }
  const auto found = documents_.find(path);
  return found == documents_.end() ? nullptr : found->second;
}

std::shared_ptr<const std::string> FindDiscovery(std::string_view path, bool aggregated) {
  static const Discovery discovery;
  return discovery.Find(path, aggregated);
}

std::string EntityTag(std::string_view document) {
  char text[2 * 16 + 3];
  std::snprintf(text, sizeof(text), "\"%016llX%08X\"",
                static_cast<unsigned long long>(Fnv1a(document)), Crc32(document));
  return text;
}

}  // namespace drakkar::apiserver
