#pragma once

#include "apiserver/auth/rbac.h"
#include "apiserver/policy/authorizer_library.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Answers the authorization questions that expressions of policies and webhooks ask about one
// request.
class RequestAuthorizer final : public PolicyAuthorizer {
 public:
  // Without `rbac`, no path is permitted to anyone.
  RequestAuthorizer(Core* core, RbacAuthorizer* rbac) : core_(core), rbac_(rbac) {}

  Decision CheckResource(const UserInfo& user, const ResourceQuestion& question,
                         std::string_view verb) override {
    return core_->Authorize({user, verb, question.group, question.resource, question.subresource,
                             question.namespace_, question.name, question.field_selector});
  }
  Decision CheckPath(const UserInfo& user, std::string_view path, std::string_view verb) override {
    return rbac_ == nullptr ? Decision::Deny() : rbac_->CheckPath(user, verb, path);
  }

 private:
  Core* const core_;
  RbacAuthorizer* const rbac_;
};

}  // namespace drakkar::apiserver
