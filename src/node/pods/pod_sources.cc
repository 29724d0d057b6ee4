#include "node/pods/pod_sources.h"

#include <algorithm>
#include <set>
#include <vector>

#include "api/meta/bounded_seconds.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr std::int64_t kDefaultTokenSeconds = 3600;

struct Names {
  std::set<std::string> config_maps;
  std::set<std::string> secrets;
  std::set<std::pair<std::string, std::int64_t>> tokens;

  std::size_t size() const { return config_maps.size() + secrets.size() + tokens.size(); }
};

void Add(std::set<std::string>& names, Value name) {
  if (!name.str().empty()) names.insert(std::string(name.str()));
}

Names ListEnvironmentNames(Value spec) {
  Names names;
  for (const api::FieldName list :
       api::FieldNames{"initContainers", "containers", "ephemeralContainers"}) {
    for (Value container : spec[list].elements()) {
      for (Value variable : container["env"].elements()) {
        Add(names.config_maps, variable["valueFrom"]["configMapKeyRef"]["name"]);
        Add(names.secrets, variable["valueFrom"]["secretKeyRef"]["name"]);
      }
      for (Value source : container["envFrom"].elements()) {
        Add(names.config_maps, source["configMapRef"]["name"]);
        Add(names.secrets, source["secretRef"]["name"]);
      }
    }
  }
  return names;
}

Names ListVolumeNames(Value spec) {
  Names names;
  for (Value volume : spec["volumes"].elements()) {
    Add(names.config_maps, volume["configMap"]["name"]);
    Add(names.secrets, volume["secret"]["secretName"]);
    for (Value source : volume["projected"]["sources"].elements()) {
      Add(names.config_maps, source["configMap"]["name"]);
      Add(names.secrets, source["secret"]["name"]);
      if (const Value token = source["serviceAccountToken"]; token.has_value())
        names.tokens.insert(TokenKey(token));
    }
  }
  return names;
}

Names ListImageNames(Value spec) {
  Names names;
  for (Value secret : spec["imagePullSecrets"].elements()) Add(names.secrets, secret["name"]);
  return names;
}

Names ListNames(Value pod, SourceUse use) {
  switch (use) {
    case SourceUse::kVolumes:
      return ListVolumeNames(pod["spec"]);
    case SourceUse::kEnvironment:
      return ListEnvironmentNames(pod["spec"]);
    case SourceUse::kImages:
      return ListImageNames(pod["spec"]);
  }
  return {};
}

Result<std::optional<std::string>> Pick(const Result<std::map<std::string, std::string>>& data,
                                        const std::string& what, const std::string& key,
                                        bool optional) {
  if (!data.ok()) return data.error();
  auto found = data->find(key);
  if (found != data->end()) return std::optional<std::string>(found->second);
  if (optional) return std::optional<std::string>();
  return NotFound(StrCat("couldn't find key ", key, " in ", what));
}

Result<std::string> Decode(std::string_view text, const std::string& what) {
  auto bytes = Base64Decode(text);
  if (!bytes.ok()) return InvalidArgument(StrCat(what, " is not base64"));
  return bytes;
}

}  // namespace

Result<std::map<std::string, std::string>> PodSources::ConfigMapData(const std::string& name,
                                                                     bool optional) const {
  std::map<std::string, std::string> data;
  auto found = config_maps.find(name);
  if (found == config_maps.end() || found->second == nullptr) {
    if (optional) return data;
    return NotFound(StrCat("configmap ", Quote(name), " not found"));
  }
  for (const api::MemberView entry : (*found->second)["data"].members()) {
    data[std::string(entry.name)] = std::string(entry.value.str());
  }
  for (const api::MemberView entry : (*found->second)["binaryData"].members()) {
    ASSIGN_OR_RETURN(data[std::string(entry.name)],
                     Decode(entry.value.str(), StrCat("configmap ", name, " key ", entry.name)));
  }
  return data;
}

Result<std::map<std::string, std::string>> PodSources::SecretData(const std::string& name,
                                                                  bool optional) const {
  std::map<std::string, std::string> data;
  auto found = secrets.find(name);
  if (found == secrets.end() || found->second == nullptr) {
    if (optional) return data;
    return NotFound(StrCat("secret ", Quote(name), " not found"));
  }
  for (const api::MemberView entry : (*found->second)["data"].members()) {
    ASSIGN_OR_RETURN(data[std::string(entry.name)],
                     Decode(entry.value.str(), StrCat("secret ", name, " key ", entry.name)));
  }
  return data;
}

Result<std::optional<std::string>> PodSources::ConfigMapKey(const std::string& name,
                                                            const std::string& key,
                                                            bool optional) const {
  return Pick(ConfigMapData(name, optional), StrCat("ConfigMap ", name), key, optional);
}

Result<std::optional<std::string>> PodSources::SecretKey(const std::string& name,
                                                         const std::string& key,
                                                         bool optional) const {
  return Pick(SecretData(name, optional), StrCat("Secret ", name), key, optional);
}

std::pair<std::string, std::int64_t> TokenKey(Value source) {
  return {std::string(source["audience"].str()),
          source["expirationSeconds"].integer(kDefaultTokenSeconds)};
}

bool NeedsSources(Value pod, SourceUse use) {
  return ListNames(pod, use).size() > 0;
}

bool HasChangingVolumes(Value pod) {
  for (Value volume : pod["spec"]["volumes"].elements()) {
    for (const api::FieldName kind :
         api::FieldNames{"configMap", "secret", "downwardAPI", "projected"}) {
      if (volume[kind].has_value()) return true;
    }
  }
  return false;
}

namespace {

struct Fetch {
  PodSources sources;
  std::optional<Error> failure;
  std::size_t missing = 0;
  std::function<void(Result<PodSources>)> done;

  void Answered() {
    if (--missing > 0) return;
    if (failure) return done(*failure);
    done(std::move(sources));
  }
};

void RequestToken(client::Client& client, const api::ObjectPtr& pod,
                  const std::pair<std::string, std::int64_t>& key, WallTime now,
                  const std::shared_ptr<Fetch>& fetch) {
  std::string account((*pod)["spec"]["serviceAccountName"].str());
  if (account.empty()) account = "default";
  api::Draft request = {
      {"apiVersion", "authentication.k8s.io/v1"},
      {"kind", "TokenRequest"},
      {"spec",
       {{"expirationSeconds", key.second},
        {"boundObjectRef",
         {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod->name()}, {"uid", pod->uid()}}}}}};
  request["spec"]["audiences"] = api::Draft::Array();
  if (!key.first.empty()) request["spec"]["audiences"].Append(key.first);
  client.Create(
      {api::FindResource("", "v1", "serviceaccounts"), std::string(pod->namespace_()), account,
       "token"},
      request.Freeze(), {}, [fetch, key, now, account](client::Reply reply) {
        if (reply.ok()) {
          // The server may grant a shorter lifetime than requested.
          const Duration given =
              api::BoundedSeconds((*reply.object)["spec"]["expirationSeconds"].integer(key.second));
          const Duration renew = std::min<Duration>(given / 5 * 4, std::chrono::hours(24));
          fetch->sources.tokens[key] = {std::string((*reply.object)["status"]["token"].str()),
                                        now + renew};
        } else if (!fetch->failure) {
          fetch->failure =
              reply.error->Prefixed(StrCat("failed to fetch token of service account ", account));
        }
        fetch->Answered();
      });
}

}  // namespace

void FetchPodSources(client::Client& client, const api::ObjectPtr& pod, SourceUse use,
                     const KnownSources& known, std::function<void(Result<PodSources>)> done) {
  const Names names = ListNames(pod->root(), use);
  auto fetch = std::make_shared<Fetch>();
  fetch->missing = names.size();
  fetch->done = std::move(done);
  auto get = [&](const char* plural, const std::string& name,
                 std::map<std::string, api::ObjectPtr>* into) {
    client.Get({api::FindResource("", "v1", plural), std::string(pod->namespace_()), name, ""},
               [fetch, into, name, plural](client::Reply reply) {
                 if (reply.ok()) {
                   (*into)[name] = reply.object;
                 } else if (reply.error->code == ErrorCode::kNotFound) {
                   (*into)[name] = nullptr;
                 } else if (!fetch->failure) {
                   fetch->failure = reply.error->Prefixed(StrCat("get ", plural, " ", name));
                 }
                 fetch->Answered();
               });
  };
  std::vector<std::pair<std::string, std::int64_t>> wanted;
  for (const auto& key : names.tokens) {
    const auto found = known.tokens.find(key);
    if (found == known.tokens.end() || found->second.renew_at <= known.now) {
      wanted.push_back(key);
    } else {
      fetch->sources.tokens[key] = found->second;
      --fetch->missing;
    }
  }
  if (fetch->missing == 0) return fetch->done(std::move(fetch->sources));  // nothing to fetch
  for (const auto& key : wanted) RequestToken(client, pod, key, known.now, fetch);
  for (const std::string& name : names.config_maps)
    get("configmaps", name, &fetch->sources.config_maps);
  for (const std::string& name : names.secrets) get("secrets", name, &fetch->sources.secrets);
}

}  // namespace drakkar::node
