#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Asks one authorizer after the other; the first that allows decides. If none does, the reasons of
// all are given, a line each.
class AuthorizerChain final : public Authorizer {
 public:
  // They must outlive the chain. `on_decision` is told what became of each question; may be null.
  explicit AuthorizerChain(std::vector<Authorizer*> authorizers,
                           std::function<void(bool allowed)> on_decision = {})
      : authorizers_(std::move(authorizers)), on_decision_(std::move(on_decision)) {}

  std::optional<std::string> Check(const Attributes& attributes) override {
    std::string reasons;
    for (Authorizer* each : authorizers_) {
      std::optional<std::string> reason = each->Check(attributes);
      if (!reason) {
        if (on_decision_) on_decision_(true);
        return std::nullopt;
      }
      if (reason->empty()) continue;
      if (!reasons.empty()) reasons += '\n';
      reasons += *reason;
    }
    if (on_decision_) on_decision_(false);
    return reasons;
  }

 private:
  std::vector<Authorizer*> authorizers_;
  std::function<void(bool)> on_decision_;
};

}  // namespace drakkar::apiserver
