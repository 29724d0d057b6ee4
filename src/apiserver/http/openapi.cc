#include "apiserver/http/openapi.h"

#include <algorithm>
#include <vector>

#include "api/json/writer.h"
#include "apiserver/http/openapi_foreign.h"
#include "apiserver/http/openapi_schema.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::KindSchema;

constexpr std::string_view kIndexPath = "/openapi/v3";
constexpr std::string_view kV2Path = "/openapi/v2";
// The definitions whose schemas are in /openapi/v2; further ones are only in /openapi/v3, because
// the document is made on the core's loop.
constexpr std::size_t kMaxCustomBytes = std::size_t{4} << 20;
// Likewise for the documents of other servers.
constexpr std::size_t kMaxForeignBytes = std::size_t{4} << 20;

bool HasVerb(const KindSchema& kind, std::string_view verb) {
  return std::ranges::find(kind.verbs, verb) != kind.verbs.end();
}

Draft Info() {
  return Draft({{"title", "Kubernetes"}, {"version", "v1.37.0"}});
}

Draft Parameter(std::string_view name, std::string_view type, std::string_view words,
                std::string_view in = "query") {
  Draft parameter({{"name", name},
                   {"in", in},
                   {"description", words},
                   {"schema", Draft({{"type", type}, {"uniqueItems", true}})}});
  if (in == "path") parameter["required"] = true;
  return parameter;
}

void AddWriteParameters(Draft& list) {
  list.Append(
      Parameter("dryRun", "string", "All: process the request without storing the result."));
  list.Append(
      Parameter("fieldManager", "string", "Name of the field manager, at most 128 characters."));
  list.Append(
      Parameter("fieldValidation", "string",
                "How to treat unknown and duplicate fields: Ignore drops them, Warn drops them "
                "with a warning, Strict rejects the request."));
}

void AddListParameters(Draft& list) {
  list.Append(Parameter("allowWatchBookmarks", "boolean", "Allow bookmarks in a watch."));
  list.Append(Parameter("continue", "string", "Token from the previous page."));
  list.Append(Parameter("fieldSelector", "string", "Return only objects whose fields match."));
  list.Append(Parameter("labelSelector", "string", "Return only objects whose labels match."));
  list.Append(Parameter("limit", "integer", "Maximum number of objects per page."));
  list.Append(
      Parameter("resourceVersion", "string", "Version to read, or to start watching from."));
  list.Append(Parameter("resourceVersionMatch", "string", "NotOlderThan or Exact."));
  list.Append(Parameter("sendInitialEvents", "boolean", "Start a watch with the current objects."));
  list.Append(Parameter("timeoutSeconds", "integer", "Maximum duration of a watch."));
  list.Append(Parameter("watch", "boolean", "Stream changes instead of returning a list."));
}

void AddDeleteParameters(Draft& list) {
  list.Append(Parameter("dryRun", "string", "All: process the request without deleting anything."));
  list.Append(Parameter("gracePeriodSeconds", "integer", "Grace period for the deletion."));
  list.Append(Parameter("propagationPolicy", "string", "Orphan, Background or Foreground."));
}

Draft JsonContent(Draft reference, std::string_view type = "application/json") {
  return Draft::Map({{type, Draft({{"schema", std::move(reference)}})}});
}

// The document of one group and version.
class DocumentMaker {
 public:
  explicit DocumentMaker(const DiscoveryOptions& options)
      : options_(options), schemas_(OpenApiVersion::kV3) {}

  void Add(const KindSchema& kind) {
    custom_ = kind.family == nullptr ? nullptr : &kind;
    if (const CustomVersion* custom = FindCustomVersion(kind)) schemas_.AddCustom(*custom);
    const std::string root = kind.group.empty() ? StrCat("/api/", kind.version)
                                                : StrCat("/apis/", kind.group, "/", kind.version);
    const std::string home =
        StrCat(root, kind.namespaced ? "/namespaces/{namespace}/" : "/", kind.plural);
    AddCollection(kind, home);
    if (kind.namespaced && HasVerb(kind, "list")) {
      Draft& everywhere = paths_[StrCat(root, "/", kind.plural)];
      everywhere["get"] = List(kind);
    }
    AddItem(kind, home + "/{name}");
    for (std::string_view each : kind.subresources) {
      if (IsServedSubresource(each, options_)) {
        AddSubresource(kind, each, StrCat(home, "/{name}/", each));
      }
    }
  }

  Draft Take() {
    Draft paths = Draft::Object();
    for (auto& [path, item] : paths_) paths.Entry(path) = std::move(item);
    return Draft({{"openapi", "3.0.0"},
                  {"info", Info()},
                  {"paths", std::move(paths)},
                  {"components", Draft({{"schemas", schemas_.Take()}})}});
  }

 private:
  struct Identity {
    std::string_view group;
    std::string_view version;
    std::string_view kind;
  };
  static Identity IdentityOf(const KindSchema& kind) {
    return {kind.group, kind.version, kind.kind};
  }

  Draft Operation(std::string_view action, const Identity& identity, Draft answer) {
    Draft operation(
        {{"tags", Draft::Array({std::string_view("api")})}, {"parameters", Draft::Array()}});
    Draft ok({{"description", "OK"}});
    if (answer.exists()) ok["content"] = JsonContent(std::move(answer));
    operation["responses"] = Draft::Map({{"200", std::move(ok)}});
    operation["x-kubernetes-action"] = action;
    operation["x-kubernetes-group-version-kind"] =
        Draft({{"group", identity.group}, {"version", identity.version}, {"kind", identity.kind}});
    return operation;
  }

  Draft BodyOf(const Identity& identity) {
    const KindSchema* kind = api::FindKind(identity.group, identity.version, identity.kind);
    if (kind == nullptr && custom_ != nullptr && identity.kind == custom_->kind) kind = custom_;
    return kind == nullptr || kind->schema == nullptr ? Draft() : schemas_.Reference(*kind->schema);
  }

  Draft List(const KindSchema& kind) {
    const api::StructSchema* list = api::FindStruct(StrCat(kind.schema->name, "List"));
    Draft operation =
        Operation("list", IdentityOf(kind), list == nullptr ? Draft() : schemas_.Reference(*list));
    AddListParameters(operation["parameters"]);
    return operation;
  }

  Draft Write(std::string_view action, const Identity& identity, Draft answer) {
    Draft operation = Operation(action, identity, std::move(answer));
    AddWriteParameters(operation["parameters"]);
    operation["requestBody"] =
        Draft({{"content", JsonContent(BodyOf(identity), "*/*")}, {"required", true}});
    return operation;
  }

  Draft Patch(const Identity& identity, Draft answer) {
    Draft operation = Operation("patch", identity, std::move(answer));
    AddWriteParameters(operation["parameters"]);
    operation["parameters"].Append(
        Parameter("force", "boolean", "Take over fields owned by other managers."));
    Draft content = Draft::Object();
    for (std::string_view type :
         {"application/apply-patch+yaml", "application/json-patch+json",
          "application/merge-patch+json", "application/strategic-merge-patch+json"}) {
      content.Entry(type) = Draft({{"schema", schemas_.PatchReference()}});
    }
    operation["requestBody"] = Draft({{"content", std::move(content)}, {"required", true}});
    return operation;
  }

  Draft Delete(std::string_view action, const KindSchema& kind) {
    Draft operation = Operation(action, IdentityOf(kind), BodyOf({"", "v1", "Status"}));
    AddDeleteParameters(operation["parameters"]);
    operation["requestBody"] =
        Draft({{"content", JsonContent(BodyOf({"", "v1", "DeleteOptions"}), "*/*")}});
    return operation;
  }

  void AddCollection(const KindSchema& kind, const std::string& path) {
    Draft item = Draft::Object();
    if (HasVerb(kind, "list")) item["get"] = List(kind);
    if (HasVerb(kind, "create")) {
      item["post"] = Write("post", IdentityOf(kind), schemas_.Reference(*kind.schema));
    }
    if (HasVerb(kind, "deletecollection")) {
      item["delete"] = Delete("deletecollection", kind);
      AddListParameters(item["delete"]["parameters"]);
    }
    AddPathParameters(item, path);
    paths_[path] = std::move(item);
  }

  void AddItem(const KindSchema& kind, const std::string& path) {
    const Draft self = schemas_.Reference(*kind.schema);
    Draft item = Draft::Object();
    if (HasVerb(kind, "get")) item["get"] = Operation("get", IdentityOf(kind), self);
    if (HasVerb(kind, "update")) item["put"] = Write("put", IdentityOf(kind), self);
    if (HasVerb(kind, "patch")) item["patch"] = Patch(IdentityOf(kind), self);
    if (HasVerb(kind, "delete")) item["delete"] = Delete("delete", kind);
    if (item.size() == 0) return;
    AddPathParameters(item, path);
    paths_[path] = std::move(item);
  }

  void AddSubresource(const KindSchema& kind, std::string_view name, const std::string& path) {
    const SubresourceShape shape = ShapeOf(kind, name);
    const Identity identity{shape.group, shape.version, shape.kind};
    const bool stream = shape.kind.ends_with("Options");
    Draft item = Draft::Object();
    for (std::string_view verb : shape.verbs) {
      const Draft answer = name == "log" || stream ? Draft() : BodyOf(identity);
      if (verb == "get") {
        item["get"] = Operation(stream ? "connect" : "get", identity, answer);
      } else if (verb == "create") {
        item["post"] =
            stream ? Operation("connect", identity, answer) : Write("post", identity, answer);
      } else if (verb == "update" && !stream) {
        item["put"] = Write("put", identity, answer);
      } else if (verb == "patch" && !stream) {
        item["patch"] = Patch(identity, answer);
      }
    }
    AddPathParameters(item, path);
    paths_[path] = std::move(item);
  }

  static void AddPathParameters(Draft& item, const std::string& path) {
    if (path.find("{name}") != std::string::npos) {
      item["parameters"].Append(Parameter("name", "string", "The object's name.", "path"));
    }
    if (path.find("{namespace}") != std::string::npos) {
      item["parameters"].Append(
          Parameter("namespace", "string", "The object's namespace.", "path"));
    }
  }

  const DiscoveryOptions& options_;
  SchemaCollector schemas_;
  const KindSchema* custom_ = nullptr;  // the custom resource that is being added
  std::map<std::string, Draft> paths_;
};

std::string DocumentPath(const KindSchema& kind) {
  return kind.group.empty() ? StrCat("api/", kind.version)
                            : StrCat("apis/", kind.group, "/", kind.version);
}

std::shared_ptr<const std::string> ToText(const Draft& draft) {
  return std::make_shared<const std::string>(
      api::WriteJson(draft.Freeze()->root(), {.final_newline = true}));
}

}  // namespace

std::shared_ptr<const std::string> OpenApi::Find(std::string_view path) {
  if (path.ends_with('/')) path.remove_suffix(1);
  const auto found = documents_.find(path);
  if (found != documents_.end()) return found->second;
  std::shared_ptr<const std::string> made = Make(path);
  // Only existing documents are kept, so the cache is bounded by what is served.
  if (made != nullptr) documents_.emplace(path, made);
  return made;
}

std::shared_ptr<const std::string> OpenApi::Make(std::string_view path) {
  if (path == kIndexPath) return MakeIndex();
  if (path == kV2Path) {
    SchemaCollector schemas(OpenApiVersion::kV2);
    for (const KindSchema& kind : api::AllKinds()) {
      if (IsServed(kind, options_)) schemas.Reference(*kind.schema);
    }
    std::size_t bytes = 0;
    for (const KindSchema* kind : custom_->served()) {
      const CustomVersion& version = *FindCustomVersion(*kind);
      bytes += static_cast<const CustomDefinition*>(kind->family)->object()->tree()->size_bytes();
      if (bytes > kMaxCustomBytes) break;
      schemas.AddCustom(version);
    }
    Draft definitions = schemas.Take();
    std::size_t foreign_bytes = 0;
    for (const auto& [key, api] : apis_->by_version()) {
      if (api->open_api == nullptr) continue;
      foreign_bytes += api->open_api->size();
      if (foreign_bytes > kMaxForeignBytes) break;
      AddForeignDefinitions(definitions, *api->open_api);
    }
    return ToText(Draft({{"swagger", "2.0"},
                         {"info", Info()},
                         {"paths", Draft::Object()},
                         {"definitions", std::move(definitions)}}));
  }
  if (!path.starts_with(kIndexPath) || path.size() <= kIndexPath.size() ||
      path[kIndexPath.size()] != '/') {
    return nullptr;
  }
  const std::string_view wanted = path.substr(kIndexPath.size() + 1);
  if (const AggregatedApiPtr api = apis_->FindByPath(StrCat("/", wanted)); api != nullptr) {
    return wanted == StrCat("apis/", api->group, "/", api->version) ? api->open_api : nullptr;
  }
  DocumentMaker maker(options_);
  bool any = false;
  for (const KindSchema& kind : api::AllKinds()) {
    if (!IsServed(kind, options_) || DocumentPath(kind) != wanted) continue;
    maker.Add(kind);
    any = true;
  }
  for (const KindSchema* kind : custom_->served()) {
    if (DocumentPath(*kind) != wanted) continue;
    maker.Add(*kind);
    any = true;
  }
  return any ? ToText(maker.Take()) : nullptr;
}

std::shared_ptr<const std::string> OpenApi::MakeIndex() {
  std::set<std::string> names;
  for (const KindSchema& kind : api::AllKinds()) {
    if (IsServed(kind, options_)) names.insert(DocumentPath(kind));
  }
  Draft paths = Draft::Object();
  // The documents of custom resources are not made for the index: versions of their definitions
  // serve as hashes.
  std::map<std::string, std::string> custom;
  for (const KindSchema* kind : custom_->served()) {
    const api::Object& object = *static_cast<const CustomDefinition*>(kind->family)->object();
    custom[DocumentPath(*kind)] +=
        StrCat(object.uid(), ".", object.root()["metadata"]["generation"].integer(), ",");
  }
  for (const auto& [name, stamp] : custom) {
    std::string hash = EntityTag(stamp);
    hash = hash.substr(1, hash.size() - 2);
    paths.Entry(name) =
        Draft({{"serverRelativeURL", StrCat(kIndexPath, "/", name, "?hash=", hash)}});
  }
  for (const auto& [key, api] : apis_->by_version()) {
    if (api->open_api != nullptr) names.insert(StrCat("apis/", api->group, "/", api->version));
  }
  for (const std::string& name : names) {
    const std::string path = StrCat(kIndexPath, "/", name);
    const std::shared_ptr<const std::string> document = Find(path);
    Tag& tag = tags_[path];
    if (tag.document != document) tag = {document, EntityTag(*document)};
    const std::string hash = tag.text.substr(1, tag.text.size() - 2);
    paths.Entry(name) = Draft({{"serverRelativeURL", StrCat(path, "?hash=", hash)}});
  }
  return ToText(Draft({{"paths", std::move(paths)}}));
}

void OpenApi::SetCustom(CustomKindsPtr custom) {
  if (custom == nullptr || custom == custom_) return;
  for (const CustomKindsPtr& each : {custom_, custom}) {
    for (const KindSchema* kind : each->served()) {
      documents_.erase(StrCat(kIndexPath, "/", DocumentPath(*kind)));
    }
  }
  documents_.erase(std::string(kIndexPath));
  documents_.erase(std::string(kV2Path));
  custom_ = std::move(custom);
}

void OpenApi::SetAggregated(AggregatedApisPtr apis) {
  if (apis == nullptr || apis == apis_) return;
  for (const AggregatedApisPtr& each : {apis_, apis}) {
    for (const auto& [key, api] : each->by_version()) {
      documents_.erase(StrCat(kIndexPath, "/apis/", api->group, "/", api->version));
    }
  }
  documents_.erase(std::string(kV2Path));
  documents_.erase(std::string(kIndexPath));
  apis_ = std::move(apis);
}

std::shared_ptr<const std::string> FindOpenApi(std::string_view path, CustomKindsPtr custom,
                                               AggregatedApisPtr apis) {
  static OpenApi documents;
  documents.SetCustom(std::move(custom));
  documents.SetAggregated(std::move(apis));
  return documents.Find(path);
}

}  // namespace drakkar::apiserver
