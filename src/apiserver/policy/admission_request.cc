#include "apiserver/policy/admission_request.h"

#include "api/scheme/scheme.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;

Draft KindOf(const api::KindSchema& kind) {
  return {{"group", kind.group}, {"version", kind.version}, {"kind", kind.kind}};
}

Draft ResourceOf(const api::KindSchema& kind) {
  return {{"group", kind.group}, {"version", kind.version}, {"resource", kind.plural}};
}

Draft Texts(const std::vector<std::string>& list) {
  Draft texts = Draft::Array();
  for (const std::string& each : list) texts.Append(each);
  return texts;
}

Draft UserOf(const UserInfo& user) {
  Draft described{{"username", user.name}};
  if (!user.uid.empty()) described["uid"] = user.uid;
  if (!user.groups.empty()) described["groups"] = Texts(user.groups);
  if (!user.extra.empty()) {
    Draft& extra = described["extra"] = Draft::Object();
    for (const auto& [key, values] : user.extra) extra.Entry(key) = Texts(values);
  }
  return described;
}

Draft OptionsOf(const Request& request, std::string_view operation) {
  Draft options{{"kind", operation == "CREATE"          ? "CreateOptions"
                         : operation == "DELETE"        ? "DeleteOptions"
                         : request.verb == Verb::kPatch ? "PatchOptions"
                                                        : "UpdateOptions"},
                {"apiVersion", "meta.k8s.io/v1"}};
  if (request.dry_run) options["dryRun"] = Draft::Array({"All"});
  if (operation == "DELETE") {
    if (request.grace_period_seconds) options["gracePeriodSeconds"] = *request.grace_period_seconds;
    if (!request.propagation_policy.empty()) {
      options["propagationPolicy"] = request.propagation_policy;
    }
    return options;
  }
  if (!request.field_manager.empty()) options["fieldManager"] = request.field_manager;
  if (request.verb == Verb::kPatch && request.force) options["force"] = true;
  return options;
}

}  // namespace

AdmissionRequestTree::AdmissionRequestTree(const Request& request, std::string_view operation,
                                           const api::KindSchema& shown,
                                           const api::KindSchema* body, std::string_view name) {
  Draft described{{"kind", KindOf(body == nullptr ? shown : *body)},
                  {"resource", ResourceOf(shown)},
                  {"requestKind", KindOf(body == nullptr ? *request.kind : *body)},
                  {"requestResource", ResourceOf(*request.kind)},
                  {"name", name},
                  {"operation", operation},
                  {"userInfo", UserOf(request.user)},
                  {"dryRun", request.dry_run}};
  // A connection has no options of its own; the object shows them.
  if (operation == "CONNECT") {
    described["options"] = nullptr;
  } else {
    described["options"] = OptionsOf(request, operation);
  }
  if (!request.subresource.empty()) {
    described["subResource"] = request.subresource;
    described["requestSubResource"] = request.subresource;
  }
  if (!request.namespace_.empty()) described["namespace"] = request.namespace_;
  tree_ = described.Freeze();
}

}  // namespace drakkar::apiserver
