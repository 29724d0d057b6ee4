#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// One compiled PolicyRule. The eight common verbs are bits, so most rules are skipped without
// comparing strings.
class PolicyRule {
 public:
  explicit PolicyRule(api::Value rule);

  // For a request about a resource.
  bool Allows(const Authorizer::Attributes& attributes, std::uint32_t verb_bit) const;
  // For a non-resource path such as /healthz.
  bool AllowsPath(std::string_view verb, std::uint32_t verb_bit, std::string_view path) const;

  // 0 for verbs that have no bit ("bind", "use", "associated-node:update" ...).
  static std::uint32_t BitOf(std::string_view verb);

 private:
  bool AllowsVerb(std::string_view verb, std::uint32_t bit) const;

  std::uint32_t verb_bits_ = 0;
  bool any_verb_ = false;
  bool any_group_ = false;
  bool any_resource_ = false;
  std::vector<std::string> other_verbs_;
  std::vector<std::string> groups_;
  std::vector<std::string> resources_;  // "pods"
  struct Subresource {
    std::string resource;  // empty: of every resource
    std::string subresource;
  };
  std::vector<Subresource> subresources_;  // "pods/log", "*/status"
  std::vector<std::string> names_;         // empty: all
  std::vector<std::string> paths_;         // "/healthz", "/api/*", "*"
};

}  // namespace drakkar::apiserver
