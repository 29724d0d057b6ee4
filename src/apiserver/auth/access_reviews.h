#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/auth/rbac.h"
#include "apiserver/rest/answerer.h"

namespace drakkar::apiserver {

// Answers SelfSubjectAccessReview, SubjectAccessReview, LocalSubjectAccessReview,
// SelfSubjectRulesReview, SelfSubjectReview and TokenReview.
class AccessReviews final : public Answerer {
 public:
  // The user of a token, and which of `audiences` (none: the API server's) it is valid for; nullopt
  // if it is valid for none of them.
  using TokenCheck = std::function<std::optional<UserInfo>(
      std::string_view token, const std::vector<std::string>& audiences,
      std::vector<std::string>& meant_for)>;

  // Both authorizers must outlive this.
  AccessReviews(Authorizer& authorizer, RbacAuthorizer& rbac, TokenCheck check_token)
      : authorizer_(authorizer), rbac_(rbac), check_token_(std::move(check_token)) {}

  bool Answer(Request& request, Response& response) override;

 private:
  std::optional<Failure> ReviewAccess(const UserInfo& user, api::Value spec, api::Draft& status);
  void ReviewRules(const UserInfo& user, std::string_view namespace_, api::Draft& status);
  void ReviewToken(api::Value spec, api::Draft& status);

  Authorizer& authorizer_;
  RbacAuthorizer& rbac_;
  TokenCheck check_token_;
};

}  // namespace drakkar::apiserver
