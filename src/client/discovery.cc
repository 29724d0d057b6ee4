#include "client/discovery.h"

#include <set>
#include <utility>
#include <vector>

#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::client {

void Client::Discover(std::function<void(Result<ServedKinds>)> done) {
  ServedKinds served;
  for (const api::KindSchema& kind : api::AllKinds()) {
    if (kind.storage_version) served.kinds.push_back(&kind);
  }
  done(std::move(served));
}

// A KindSchema with the strings that it refers to.
struct KindCatalog::Foreign {
  std::string group, version, kind, plural, singular;
  std::vector<std::string> verb_texts;
  std::vector<std::string_view> verbs;
  std::vector<std::string> short_name_texts;
  std::vector<std::string_view> short_names;
  api::KindSchema schema;
};

KindCatalog::KindCatalog() = default;
KindCatalog::~KindCatalog() = default;

const api::KindSchema* KindCatalog::Intern(std::string_view group, std::string_view version,
                                           api::Value resource) {
  const std::string_view plural = resource["resource"].str();
  if (const api::KindSchema* known = api::FindResource(group, version, plural)) return known;
  std::unique_ptr<Foreign>& slot = foreign_[StrCat(group, "/", version, "/", plural)];
  if (slot != nullptr) return &slot->schema;
  slot = std::make_unique<Foreign>();
  Foreign& made = *slot;
  made.group = group;
  made.version = version;
  made.plural = plural;
  made.kind = resource["responseKind"]["kind"].str();
  made.singular = resource["singularResource"].str();
  for (api::Value verb : resource["verbs"].elements()) made.verb_texts.emplace_back(verb.str());
  made.verbs.assign(made.verb_texts.begin(), made.verb_texts.end());
  for (api::Value each : resource["shortNames"].elements()) {
    made.short_name_texts.emplace_back(each.str());
  }
  made.short_names.assign(made.short_name_texts.begin(), made.short_name_texts.end());
  made.schema.short_names = made.short_names;
  made.schema.group = made.group;
  made.schema.version = made.version;
  made.schema.kind = made.kind;
  made.schema.plural = made.plural;
  made.schema.singular = made.singular;
  made.schema.namespaced = resource["scope"].str() == "Namespaced";
  made.schema.verbs = made.verbs;
  return &made.schema;
}

Result<void> KindCatalog::Read(api::Value list, ServedKinds& into, Versions versions) {
  if (list["kind"].str() != "APIGroupDiscoveryList") {
    return InvalidArgument(
        "the server does not support aggregated discovery (apidiscovery.k8s.io/v2)");
  }
  for (api::Value group : list["items"].elements()) {
    const std::string_view name = group["metadata"]["name"].str();
    std::set<std::string, std::less<>> seen;  // plurals, in a version the server prefers
    for (api::Value version : group["versions"].elements()) {
      const std::string_view number = version["version"].str();
      if (number.empty()) continue;
      if (version["freshness"].str() == "Stale") {
        if (!into.unreachable.empty()) into.unreachable += ", ";
        into.unreachable += StrCat(name, "/", number);
      }
      for (api::Value resource : version["resources"].elements()) {
        // A resource without a kind exists only for its subresources.
        if (resource["responseKind"]["kind"].str().empty()) continue;
        // A kind without a plural cannot be requested.
        const std::string_view plural = resource["resource"].str();
        if (plural.empty()) continue;
        if (!seen.emplace(plural).second && versions == Versions::kPreferred) continue;
        if (into.kinds.size() >= kMaxKinds || foreign_.size() >= kMaxKinds) {
          return Error{ErrorCode::kResourceExhausted,
                       StrCat("the server serves more than ", kMaxKinds, " kinds")};
        }
        into.kinds.push_back(Intern(name, number, resource));
      }
    }
  }
  return Ok();
}

}  // namespace drakkar::client
