#pragma once

#include <string>
#include <vector>

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Asks one authorizer after the other; the first that allows decides. If none does, the reasons of
// all are given, a line each.
class AuthorizerChain final : public Authorizer {
 public:
  // They must outlive the chain.
  explicit AuthorizerChain(std::vector<Authorizer*> authorizers)
      : authorizers_(std::move(authorizers)) {}

  std::optional<std::string> Check(const Attributes& attributes) override {
    std::string reasons;
    for (Authorizer* each : authorizers_) {
      std::optional<std::string> reason = each->Check(attributes);
      if (!reason) return std::nullopt;
      if (reason->empty()) continue;
      if (!reasons.empty()) reasons += '\n';
      reasons += *reason;
    }
    return reasons;
  }

 private:
  std::vector<Authorizer*> authorizers_;
};

}  // namespace drakkar::apiserver
