#include "apiserver/auth/access_reviews.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/auth/authenticator.h"
#include "apiserver/rest/decode.h"
#include "apiserver/validation/cause.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

UserInfo UserOf(Value spec) {
  UserInfo user;
  user.name = spec["user"].str();
  user.uid = spec["uid"].str();
  for (Value group : spec["groups"].elements()) user.groups.emplace_back(group.str());
  for (const auto& [key, name, values] : spec["extra"].members()) {
    for (Value value : values.elements()) user.extra[std::string(name)].emplace_back(value.str());
  }
  return user;
}

Draft UserDraft(const UserInfo& user) {
  Draft out = Draft::Object();
  out["username"] = user.name;
  if (!user.uid.empty()) out["uid"] = user.uid;
  for (const std::string& group : user.groups) out["groups"].Append(group);
  for (const auto& [name, values] : user.extra) {
    for (const std::string& value : values) out["extra"].Entry(name).Append(value);
  }
  return out;
}

api::FieldErrors CheckSpec(std::string_view kind, Value spec) {
  api::FieldErrors errors;
  const bool resource = spec["resourceAttributes"].has_value();
  const bool path = spec["nonResourceAttributes"].has_value();
  if (resource && path) {
    errors.push_back(Invalid("spec.nonResourceAttributes", "",
                             "cannot be specified in combination with resourceAttributes"));
  }
  if (!resource && !path) {
    errors.push_back(Invalid("spec.resourceAttributes", "",
                             "exactly one of nonResourceAttributes or resourceAttributes must be "
                             "specified"));
  }
  if (kind != "SelfSubjectAccessReview" && spec["user"].str().empty() && spec["groups"].empty()) {
    errors.push_back(Invalid("spec.user", "", "at least one of user or group must be specified"));
  }
  return errors;
}

}  // namespace

std::optional<Failure> AccessReviews::ReviewAccess(const UserInfo& user, Value spec,
                                                   Draft& status) {
  Decision decision;
  if (const Value path = spec["nonResourceAttributes"]; path.has_value()) {
    decision = rbac_.CheckPath(user, path["verb"].str(), path["path"].str());
  } else {
    const Value asked = spec["resourceAttributes"];
    decision = authorizer_.Check({.user = user,
                                  .verb = asked["verb"].str(),
                                  .group = asked["group"].str(),
                                  .resource = asked["resource"].str(),
                                  .subresource = asked["subresource"].str(),
                                  .namespace_ = asked["namespace"].str(),
                                  .name = asked["name"].str(),
                                  .field_selector = asked["fieldSelector"]["rawSelector"].str()});
  }
  status["allowed"] = decision.allowed;
  if (!decision.reason.empty()) status["reason"] = decision.reason;
  return std::nullopt;
}

void AccessReviews::ReviewRules(const UserInfo& user, std::string_view namespace_, Draft& status) {
  status["resourceRules"] = Draft::Array();
  status["nonResourceRules"] = Draft::Array();
  // Permissions of nodes depend on their pods and cannot be listed as rules.
  status["incomplete"] = false;
  for (const api::TreePtr& rule : rbac_.RulesFor(user, namespace_)) {
    Draft out(rule);
    const bool paths = !rule->root()["nonResourceURLs"].empty();
    for (const api::FieldName field : api::FieldNames{"apiGroups", "resources", "resourceNames"}) {
      if (paths) out.Remove(field);
    }
    if (!paths) out.Remove("nonResourceURLs");
    status[paths ? api::FieldName("nonResourceRules") : api::FieldName("resourceRules")].Append(
        std::move(out));
  }
}

void AccessReviews::ReviewToken(Value spec, Draft& status) {
  std::vector<std::string> audiences, meant_for;
  for (Value audience : spec["audiences"].elements()) audiences.emplace_back(audience.str());
  std::optional<UserInfo> user;
  if (check_token_) user = check_token_(spec["token"].str(), audiences, meant_for);
  if (!user) {
    status["error"] = "the token is invalid, has expired, or is for another audience";
    return;
  }
  // As the server would see the user.
  if (std::ranges::find(user->groups, kAuthenticatedGroup) == user->groups.end()) {
    user->groups.emplace_back(kAuthenticatedGroup);
  }
  status["authenticated"] = true;
  status["user"] = UserDraft(*user);
  for (const std::string& audience : meant_for) status["audiences"].Append(audience);
}

bool AccessReviews::Answer(Request& request, Response& response) {
  const api::KindSchema& kind = *request.kind;
  if (kind.group != "authorization.k8s.io" && kind.group != "authentication.k8s.io") return false;
  if (request.verb != Verb::kCreate || !request.subresource.empty()) return false;
  auto fail = [&](Failure failure) {
    response = Response::Failed(std::move(failure));
    return true;
  };
  if (std::optional<Failure> failure = DecodeBody(kind, request, response.warnings)) {
    return fail(std::move(*failure));
  }
  Draft out(request.object);
  out["apiVersion"] = StrCat(kind.group, "/", kind.version);
  out["kind"] = kind.kind;
  const Value spec = request.object->root()["spec"];
  Draft status = Draft::Object();
  if (kind.kind == "SelfSubjectReview") {
    status["userInfo"] = UserDraft(request.user);
  } else if (kind.kind == "TokenReview") {
    if (spec["token"].str().empty()) {
      return fail(api::StatusBadRequest("token is required for TokenReview in authentication"));
    }
    ReviewToken(spec, status);
  } else if (kind.kind == "SelfSubjectRulesReview") {
    if (spec["namespace"].str().empty()) {
      return fail(api::StatusBadRequest("no namespace on request"));
    }
    ReviewRules(request.user, spec["namespace"].str(), status);
  } else {
    api::FieldErrors errors = CheckSpec(kind.kind, spec);
    if (kind.kind == "LocalSubjectAccessReview" &&
        spec["resourceAttributes"]["namespace"].str() != request.namespace_) {
      errors.push_back(Invalid("spec.resourceAttributes.namespace",
                               spec["resourceAttributes"]["namespace"].str(),
                               "must match metadata.namespace"));
    }
    if (!errors.empty()) return fail(InvalidFailure(kind, "", errors));
    const UserInfo user = kind.kind == "SelfSubjectAccessReview" ? request.user : UserOf(spec);
    if (std::optional<Failure> failure = ReviewAccess(user, spec, status)) {
      return fail(std::move(*failure));
    }
  }
  out["status"] = std::move(status);
  response.http_status = 201;
  response.object = std::make_shared<const api::Object>(out.Freeze());
  return true;
}

}  // namespace drakkar::apiserver
