#pragma once

#include <string_view>

#include "api/tree/draft.h"
#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// A request as policies and webhooks see it: the AdmissionRequest without uid and objects.
class AdmissionRequestTree {
 public:
  // `shown` is the kind in the version that the policy matched.
  AdmissionRequestTree(const Request& request, std::string_view operation,
                       const api::KindSchema& shown)
      : AdmissionRequestTree(request, operation, shown, nullptr, request.name) {}
  // `body`, if not null, is the kind of an object that is not of the request's kind (Binding);
  // `name` is the object's, as the client knows it.
  AdmissionRequestTree(const Request& request, std::string_view operation,
                       const api::KindSchema& shown, const api::KindSchema* body,
                       std::string_view name);
  api::Value root() const { return tree_->root(); }
  const api::TreePtr& tree() const { return tree_; }

 private:
  api::TreePtr tree_;
};

}  // namespace drakkar::apiserver
