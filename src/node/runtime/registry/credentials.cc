#include "node/runtime/registry/credentials.h"

#include <algorithm>

#include "base/hash/base64.h"
#include "base/text/text.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

using api::Value;

// "https://index.docker.io/v1/" and "index.docker.io" are the same registry as docker.io.
std::string NormalizeScope(std::string_view text) {
  for (std::string_view scheme : {"https://", "http://"}) {
    if (text.starts_with(scheme)) text.remove_prefix(scheme.size());
  }
  std::string scope(text);
  for (std::string_view version : {"/v1/", "/v2/", "/v1", "/v2"}) {
    if (scope.ends_with(version)) {
      scope.resize(scope.size() - version.size());
      break;
    }
  }
  while (scope.ends_with('/')) scope.pop_back();
  const std::string host = scope.substr(0, scope.find('/'));
  if (host == "index.docker.io" || host == "registry-1.docker.io") {
    return "docker.io" + scope.substr(host.size());
  }
  return scope;
}

// '*' stands for any text within one part of a host name.
bool MatchesPart(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  const std::string_view head = pattern.substr(0, star);
  const std::string_view tail = pattern.substr(star + 1);
  return text.size() >= head.size() + tail.size() && text.starts_with(head) && text.ends_with(tail);
}

bool MatchesHost(std::string_view pattern, std::string_view host) {
  const auto wanted = Split(pattern, '.'), given = Split(host, '.');
  if (wanted.size() != given.size()) return false;
  return std::equal(wanted.begin(), wanted.end(), given.begin(), MatchesPart);
}

bool Covers(const std::string& scope, std::string_view image) {
  const std::size_t scope_slash = std::min(scope.find('/'), scope.size());
  const std::size_t image_slash = std::min(image.find('/'), image.size());
  if (!MatchesHost(std::string_view(scope).substr(0, scope_slash), image.substr(0, image_slash))) {
    return false;
  }
  const std::string_view path = std::string_view(scope).substr(scope_slash);
  return image.substr(image_slash).starts_with(path);
}

Result<RegistryCredential> ReadLogin(Value entry) {
  RegistryCredential credential{std::string(entry.Entry("username").str()),
                                std::string(entry.Entry("password").str())};
  if (!credential.username.empty() || !entry["auth"].is_string()) return credential;
  auto decoded = Base64Decode(entry["auth"].str());
  const std::size_t colon = decoded.ok() ? decoded->find(':') : std::string::npos;
  // The error must not quote the content: it ends up in events.
  if (colon == std::string::npos) {
    return InvalidArgument("auth is not the base64 form of user:password");
  }
  credential.username = decoded->substr(0, colon);
  credential.password = decoded->substr(colon + 1);
  while (credential.password.ends_with('\0') || credential.password.ends_with('\n')) {
    credential.password.pop_back();
  }
  return credential;
}

// One challenge's parameters: a=b, c="d, e".
class ParameterReader {
 public:
  explicit ParameterReader(std::string_view text) : rest_(text) {}

  bool Next(std::string& name, std::string& value) {
    while (rest_.starts_with(',') || rest_.starts_with(' ')) rest_.remove_prefix(1);
    const std::size_t equals = rest_.find('=');
    if (equals == std::string_view::npos) return false;
    name = ToLower(Trim(rest_.substr(0, equals)));
    rest_.remove_prefix(equals + 1);
    value.clear();
    if (!rest_.starts_with('"')) {
      const std::size_t end = std::min(rest_.find(','), rest_.size());
      value = Trim(rest_.substr(0, end));
      rest_.remove_prefix(end);
      return true;
    }
    rest_.remove_prefix(1);
    while (!rest_.empty() && rest_[0] != '"') {
      if (rest_[0] == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
      value += rest_[0];
      rest_.remove_prefix(1);
    }
    if (!rest_.empty()) rest_.remove_prefix(1);
    return true;
  }

 private:
  std::string_view rest_;
};

}  // namespace

Result<std::vector<RegistryLogin>> ParseDockerConfig(std::string_view json, bool is_legacy) {
  ASSIGN_OR_RETURN(const api::TreePtr tree, ParseJson(json));
  const Value auths = is_legacy ? tree->root() : tree->root()["auths"];
  std::vector<RegistryLogin> logins;
  for (const api::MemberView member : auths.members()) {
    auto credential = ReadLogin(member.value);
    if (!credential.ok()) {
      return std::move(credential).error().Prefixed(StrCat("registry ", member.name));
    }
    if (credential->username.empty() && credential->password.empty()) continue;
    logins.push_back({NormalizeScope(member.name), *std::move(credential)});
  }
  return logins;
}

std::vector<RegistryCredential> ChooseLogins(const std::vector<RegistryLogin>& logins,
                                             std::string_view image) {
  std::vector<const RegistryLogin*> fitting;
  for (const RegistryLogin& login : logins) {
    if (Covers(login.scope, image)) fitting.push_back(&login);
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const auto* a, const auto* b) { return a->scope.size() > b->scope.size(); });
  std::vector<RegistryCredential> credentials;
  for (const RegistryLogin* login : fitting) {
    if (std::ranges::find(credentials, login->credential) == credentials.end()) {
      credentials.push_back(login->credential);
    }
  }
  return credentials;
}

Result<AuthChallenge> ParseChallenge(const std::vector<std::string>& headers) {
  std::optional<AuthChallenge> basic;
  for (const std::string& header : headers) {
    const std::string_view text = Trim(header);
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string scheme = ToLower(text.substr(0, space));
    if (scheme != "bearer" && scheme != "basic") continue;
    AuthChallenge challenge{.is_bearer = scheme == "bearer"};
    ParameterReader reader(text.substr(space));
    std::string name, value;
    while (reader.Next(name, value)) {
      if (name == "realm") challenge.realm = value;
      if (name == "service") challenge.service = value;
      if (name == "scope") challenge.scope = value;
    }
    if (challenge.is_bearer && !challenge.realm.empty()) return challenge;
    if (!challenge.is_bearer) basic = challenge;
  }
  if (basic) return *basic;
  return Error{ErrorCode::kUnimplemented,
               "the registry asks for a kind of authentication that is not supported"};
}

}  // namespace drakkar::node
