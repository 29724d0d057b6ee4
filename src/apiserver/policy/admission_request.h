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
                       const api::KindSchema& shown);
  api::Value root() const { return tree_->root(); }
  const api::TreePtr& tree() const { return tree_; }

 private:
  api::TreePtr tree_;
};

}  // namespace drakkar::apiserver
