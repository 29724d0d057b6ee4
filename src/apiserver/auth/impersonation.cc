#include "apiserver/auth/impersonation.h"

#include <algorithm>

#include "apiserver/auth/authenticator.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kPrefix = "impersonate-";
constexpr std::string_view kExtra = "impersonate-extra-";
constexpr std::string_view kAccount = "system:serviceaccount:";
// Limit for headers of one request.
constexpr std::size_t kMaxHeaders = 100;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Keys of extra fields are percent-encoded.
std::string Decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Wanted {
  std::string_view group;
  std::string_view resource;
  std::string_view subresource;
  std::string_view namespace_;
  std::string_view name;
};

std::optional<Failure> Check(Core& core, const UserInfo& user, const Wanted& wanted) {
  const Decision decision = core.Authorize({.user = user,
                                            .verb = "impersonate",
                                            .group = wanted.group,
                                            .resource = wanted.resource,
                                            .subresource = wanted.subresource,
                                            .namespace_ = wanted.namespace_,
                                            .name = wanted.name,
                                            .field_selector = {}});
  if (decision.allowed) return std::nullopt;
  const std::string resource = wanted.subresource.empty()
                                   ? std::string(wanted.resource)
                                   : StrCat(wanted.resource, "/", wanted.subresource);
  std::string text = StrCat("User ", Quote(user.name), " cannot impersonate resource ",
                            Quote(resource), " in API group ", Quote(wanted.group));
  text += wanted.namespace_.empty() ? std::string(" at the cluster scope")
                                    : StrCat(" in the namespace ", Quote(wanted.namespace_));
  if (!decision.reason.empty()) text += StrCat(": ", decision.reason);
  return api::StatusForbidden({wanted.group, wanted.resource}, wanted.name, text);
}

}  // namespace

bool AsksToImpersonate(const net::Headers& headers) {
  return std::ranges::any_of(headers, [](const net::Headers::Field& field) {
    return net::EqualsIgnoreCase(std::string_view(field.first).substr(0, kPrefix.size()), kPrefix);
  });
}

std::optional<Failure> Impersonate(Core& core, const net::Headers& headers, UserInfo& user) {
  if (!AsksToImpersonate(headers)) return std::nullopt;
  UserInfo wanted;
  std::size_t count = 0;
  for (const auto& [name, value] : headers) {
    const std::string lower = ToLower(name);
    if (!lower.starts_with(kPrefix)) continue;
    if (++count > kMaxHeaders) return api::StatusBadRequest("too many Impersonate headers");
    if (lower == "impersonate-user") {
      wanted.name = value;
    } else if (lower == "impersonate-group") {
      wanted.groups.push_back(value);
    } else if (lower == "impersonate-uid") {
      wanted.uid = value;
    } else if (lower.starts_with(kExtra)) {
      wanted.extra[Decoded(std::string_view(lower).substr(kExtra.size()))].push_back(value);
    }
  }
  if (count == 0) return std::nullopt;
  if (wanted.name.empty()) {
    return api::StatusInternalError(
        "requested impersonation of groups, a UID or extra without impersonating a user");
  }
  const bool is_account = wanted.name.starts_with(kAccount);
  const bool with_groups = !wanted.groups.empty();
  std::string_view home, account;
  if (is_account) {
    const std::string_view rest = std::string_view(wanted.name).substr(kAccount.size());
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) {
      return api::StatusBadRequest(StrCat("invalid service account name ", Quote(wanted.name)));
    }
    home = rest.substr(0, colon);
    account = rest.substr(colon + 1);
  }
  if (std::optional<Failure> failure =
          is_account ? Check(core, user, {"", "serviceaccounts", "", home, account})
                     : Check(core, user, {"", "users", "", "", wanted.name})) {
    return failure;
  }
  for (const std::string& group : wanted.groups) {
    if (auto failure = Check(core, user, {"", "groups", "", "", group})) return failure;
  }
  if (!wanted.uid.empty()) {
    if (auto failure = Check(core, user, {"authentication.k8s.io", "uids", "", "", wanted.uid})) {
      return failure;
    }
  }
  for (const auto& [key, values] : wanted.extra) {
    for (const std::string& value : values) {
      if (auto failure =
              Check(core, user, {"authentication.k8s.io", "userextras", key, "", value})) {
        return failure;
      }
    }
  }
  if (is_account && !with_groups) {
    wanted.groups = {"system:serviceaccounts", StrCat("system:serviceaccounts:", home)};
  }
  const std::string_view common =
      wanted.name == kAnonymousUser ? kUnauthenticatedGroup : kAuthenticatedGroup;
  if (std::ranges::find(wanted.groups, common) == wanted.groups.end()) {
    wanted.groups.emplace_back(common);
  }
  user = std::move(wanted);
  return std::nullopt;
}

}  // namespace drakkar::apiserver
