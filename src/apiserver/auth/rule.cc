#include "apiserver/auth/rule.h"

#include <algorithm>

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kVerbs[] = {"get",    "list",  "watch",  "create",
                                       "update", "patch", "delete", "deletecollection"};

bool Contains(const std::vector<std::string>& list, std::string_view wanted) {
  return std::ranges::find(list, wanted) != list.end();
}

}  // namespace

std::uint32_t PolicyRule::BitOf(std::string_view verb) {
  for (std::uint32_t i = 0; i < std::size(kVerbs); ++i) {
    if (kVerbs[i] == verb) return 1u << i;
  }
  return 0;
}

PolicyRule::PolicyRule(api::Value rule) {
  for (api::Value each : rule["verbs"].elements()) {
    const std::string_view verb = each.str();
    if (verb == "*") {
      any_verb_ = true;
    } else if (const std::uint32_t bit = BitOf(verb); bit != 0) {
      verb_bits_ |= bit;
    } else {
      other_verbs_.emplace_back(verb);
    }
  }
  for (api::Value each : rule["apiGroups"].elements()) {
    if (each.str() == "*") any_group_ = true;
    groups_.emplace_back(each.str());
  }
  for (api::Value each : rule["resources"].elements()) {
    const std::string_view text = each.str();
    const std::size_t slash = text.find('/');
    if (text == "*") {
      any_resource_ = true;
    } else if (slash == std::string_view::npos) {
      resources_.emplace_back(text);
    } else {
      const std::string_view resource = text.substr(0, slash);
      subresources_.push_back(
          {std::string(resource == "*" ? "" : resource), std::string(text.substr(slash + 1))});
    }
  }
  for (api::Value each : rule["resourceNames"].elements()) names_.emplace_back(each.str());
  for (api::Value each : rule["nonResourceURLs"].elements()) paths_.emplace_back(each.str());
}

bool PolicyRule::AllowsVerb(std::string_view verb, std::uint32_t bit) const {
  if (any_verb_ || (verb_bits_ & bit) != 0) return true;
  return bit == 0 && Contains(other_verbs_, verb);
}

bool PolicyRule::Allows(const Authorizer::Attributes& attributes, std::uint32_t verb_bit) const {
  if (!AllowsVerb(attributes.verb, verb_bit)) return false;
  if (!any_resource_) {
    if (attributes.subresource.empty()) {
      if (!Contains(resources_, attributes.resource)) return false;
    } else {
      const bool found = std::ranges::any_of(subresources_, [&](const Subresource& each) {
        return each.subresource == attributes.subresource &&
               (each.resource.empty() || each.resource == attributes.resource);
      });
      if (!found) return false;
    }
  }
  if (!any_group_ && !Contains(groups_, attributes.group)) return false;
  return names_.empty() || Contains(names_, attributes.name);
}

bool PolicyRule::AllowsPath(std::string_view verb, std::uint32_t verb_bit,
                            std::string_view path) const {
  if (paths_.empty() || !AllowsVerb(verb, verb_bit)) return false;
  return std::ranges::any_of(paths_, [&](std::string_view each) {
    if (each == "*" || each == path) return true;
    return each.ends_with('*') && path.starts_with(each.substr(0, each.size() - 1));
  });
}

}  // namespace drakkar::apiserver
