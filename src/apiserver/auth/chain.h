#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Asks the authorizers in order; the first one that allows the request decides. If none does, the
// denial lists the reasons of all of them, one per line.
class AuthorizerChain final : public Authorizer {
 public:
  // They must outlive the chain. `on_decision` is called with every decision; may be null.
  explicit AuthorizerChain(std::vector<Authorizer*> authorizers,
                           std::function<void(bool allowed)> on_decision = {})
      : authorizers_(std::move(authorizers)), on_decision_(std::move(on_decision)) {}

  Decision Check(const Attributes& attributes) override {
    std::string reasons;
    for (Authorizer* each : authorizers_) {
      const Decision decision = each->Check(attributes);
      if (decision.allowed) {
        if (on_decision_) on_decision_(true);
        return decision;
      }
      if (decision.reason.empty()) continue;
      if (!reasons.empty()) reasons += '\n';
      reasons += decision.reason;
    }
    if (on_decision_) on_decision_(false);
    return Decision::Deny(std::move(reasons));
  }

 private:
  std::vector<Authorizer*> authorizers_;
  std::function<void(bool)> on_decision_;
};

}  // namespace drakkar::apiserver
