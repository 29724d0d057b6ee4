#include "apiserver/request/identity_headers.h"

#include <algorithm>

#include "base/text/text.h"
#include "net/http/url.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kUser = "X-Remote-User";
constexpr std::string_view kUid = "X-Remote-Uid";
constexpr std::string_view kGroup = "X-Remote-Group";
constexpr std::string_view kExtra = "X-Remote-Extra-";
// Limits for the headers of one request; the rest is ignored.
constexpr std::size_t kMaxExtras = 1'000;

bool HasPrefix(std::string_view name, std::string_view prefix) {
  return name.size() > prefix.size() &&
         net::EqualsIgnoreCase(name.substr(0, prefix.size()), prefix);
}

// "example.com/reason" as a header's name: every character that a token cannot have becomes %XX.
std::string EscapeKey(std::string_view key) {
  std::string escaped;
  for (const char c : key) {
    const std::string one(1, c);
    escaped += c != '%' && net::IsToken(one) ? one : net::PercentEncode(one);
  }
  return escaped;
}

}  // namespace

void AddIdentity(const UserInfo& user, net::Headers& headers) {
  headers.Add(std::string(kUser), net::CleanHeaderValue(user.name));
  if (!user.uid.empty()) headers.Add(std::string(kUid), net::CleanHeaderValue(user.uid));
  for (const std::string& group : user.groups) {
    headers.Add(std::string(kGroup), net::CleanHeaderValue(group));
  }
  for (const auto& [key, values] : user.extra) {
    for (const std::string& value : values) {
      headers.Add(StrCat(kExtra, EscapeKey(key)), net::CleanHeaderValue(value));
    }
  }
}

bool IsIdentityHeader(std::string_view name) {
  std::string lower = ToLower(name);
  std::ranges::replace(lower, '_', '-');
  return lower.starts_with("x-remote-") || lower.starts_with("impersonate-");
}

bool FitsIntoHeaders(const UserInfo& user) {
  const auto fits = [](std::string_view text) {
    return net::IsHeaderValue(text) && Trim(text).size() == text.size();
  };
  if (!fits(user.name) || !fits(user.uid) || !std::ranges::all_of(user.groups, fits)) return false;
  return std::ranges::all_of(
      user.extra, [&](const auto& each) { return std::ranges::all_of(each.second, fits); });
}

UserInfo ReadIdentity(const net::Headers& headers, const IdentityHeaders& names) {
  const auto first = [&](const std::vector<std::string>& list) {
    for (const std::string& name : list) {
      if (const std::string_view value = headers.Get(name); !value.empty()) {
        return std::string(value);
      }
    }
    return std::string();
  };
  UserInfo user;
  user.name = first(names.user);
  user.uid = first(names.uid);
  for (const std::string& wanted : names.group) {
    for (const auto& [name, value] : headers) {
      if (net::EqualsIgnoreCase(name, wanted) && !value.empty()) user.groups.push_back(value);
    }
  }
  std::size_t extras = 0;
  for (const std::string& prefix : names.extra_prefix) {
    for (const auto& [name, value] : headers) {
      if (!HasPrefix(name, prefix) || ++extras > kMaxExtras) continue;
      const std::string key = ToLower(name.substr(prefix.size()));
      const Result<std::string> decoded = net::PercentDecode(key);
      user.extra[decoded.ok() ? *decoded : key].push_back(value);
    }
  }
  return user;
}

void RemoveIdentity(net::Headers& headers, const IdentityHeaders& names) {
  for (const auto* list : {&names.user, &names.uid, &names.group}) {
    for (const std::string& name : *list) headers.Remove(name);
  }
  std::vector<std::string> extras;
  for (const std::string& prefix : names.extra_prefix) {
    for (const auto& [name, value] : headers) {
      if (HasPrefix(name, prefix)) extras.push_back(name);
    }
  }
  for (const std::string& name : extras) headers.Remove(name);
}

}  // namespace drakkar::apiserver
