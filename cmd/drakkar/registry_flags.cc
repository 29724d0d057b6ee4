#include "cmd/drakkar/registry_flags.h"

#include <algorithm>
#include <cstdlib>

#include "api/codec/yaml_reader.h"
#include "base/env/absolute_path.h"
#include "base/text/text.h"
#include "net/http/url.h"

namespace drakkar::cmd {
namespace {

using api::Value;

constexpr std::size_t kMaxFileBytes = 1 << 20;

// Refuses members that are not in `known`: a misspelt one would silently have no effect.
Result<void> CheckMembers(Value object, const std::string& where,
                          std::initializer_list<std::string_view> known) {
  for (const api::MemberView member : object.members()) {
    if (std::ranges::find(known, member.name) != known.end()) continue;
    return InvalidArgument(
        StrCat(where, ": unknown field ", Quote(member.name), "; known are ", Join(known, ", ")));
  }
  return Ok();
}

Result<void> ReadHost(FileSystem& files, Value config, const std::string& where,
                      node::RegistrySettings::Host& host) {
  RETURN_IF_ERROR(CheckMembers(config, where, {"auth", "tls"}));
  const Value auth = config["auth"];
  RETURN_IF_ERROR(CheckMembers(auth, where + ".auth", {"username", "password"}));
  host.credential = {std::string(auth.Entry("username").str()),
                     std::string(auth.Entry("password").str())};
  const Value tls = config["tls"];
  RETURN_IF_ERROR(CheckMembers(tls, where + ".tls", {"ca_file", "insecure_skip_verify"}));
  host.skip_verify = tls["insecure_skip_verify"].boolean();
  if (const std::string path(tls["ca_file"].str()); !path.empty()) {
    auto pem = files.ReadFile(path);
    if (!pem.ok()) return std::move(pem).error().Prefixed(where + ".tls.ca_file");
    host.ca_pem = *std::move(pem);
  }
  return Ok();
}

// In capitals or, as some programs have it, not.
std::string Variable(const std::string& name) {
  for (const std::string& each : {name, ToLower(name)}) {
    if (const char* value = std::getenv(each.c_str()); value != nullptr && *value != '\0') {
      return value;
    }
  }
  return "";
}

}  // namespace

std::vector<cli::Flag> RegistryFlags() {
  return {{.name = "insecure-registry",
           .help = "Registry hosts that may be reached over plain HTTP, separated by commas. "
                   "Loopback addresses are always allowed.",
           .placeholder = "HOSTS"},
          {.name = "registries-config",
           .help = "YAML file with mirrors, credentials and certificates of registries.",
           .placeholder = "FILE"}};
}

Result<node::RegistrySettings> ParseRegistries(FileSystem& files, std::string_view yaml) {
  ASSIGN_OR_RETURN(const std::vector<api::TreePtr> documents, api::ParseYaml(yaml));
  node::RegistrySettings settings;
  if (documents.empty()) return settings;
  const Value root = documents.front()->root();
  if (documents.size() > 1 || !root.is_object()) {
    return InvalidArgument("expected one object with mirrors and configs");
  }
  RETURN_IF_ERROR(CheckMembers(root, "registries", {"mirrors", "configs"}));
  for (const api::MemberView mirror : root["mirrors"].members()) {
    const std::string where = StrCat("mirrors[", mirror.name, "]");
    RETURN_IF_ERROR(CheckMembers(mirror.value, where, {"endpoint"}));
    for (Value endpoint : mirror.value["endpoint"].elements()) {
      const auto url = net::ParseUrl(endpoint.str());
      if (!url.ok()) {
        return InvalidArgument(StrCat(where, ": ", Quote(endpoint.str()),
                                      " is not a URL such as https://mirror.example.com"));
      }
      settings.mirrors[std::string(mirror.name)].emplace_back(endpoint.str());
    }
  }
  for (const api::MemberView config : root["configs"].members()) {
    RETURN_IF_ERROR(ReadHost(files, config.value, StrCat("configs[", config.name, "]"),
                             settings.hosts[std::string(config.name)]));
  }
  return settings;
}

Result<node::RegistrySettings> ReadRegistrySettings(const cli::Arguments& arguments,
                                                    FileSystem& files) {
  node::RegistrySettings settings;
  if (const std::string& path = arguments.Text("registries-config"); !path.empty()) {
    ASSIGN_OR_RETURN(const std::string text, files.ReadFileRange(path, 0, kMaxFileBytes));
    auto parsed = ParseRegistries(files, text);
    if (!parsed.ok()) return std::move(parsed).error().Prefixed(path);
    settings = *std::move(parsed);
  }
  ASSIGN_OR_RETURN(settings.proxies,
                   node::ProxySettings::Parse(Variable("HTTP_PROXY"), Variable("HTTPS_PROXY"),
                                              Variable("NO_PROXY")));
  for (std::string_view host : Split(arguments.Text("insecure-registry"), ',')) {
    if (!Trim(host).empty()) settings.insecure.emplace(Trim(host));
  }
  return settings;
}

}  // namespace drakkar::cmd
