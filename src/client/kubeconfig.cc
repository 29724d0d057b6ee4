#include "client/kubeconfig.h"

#include "api/codec/yaml_reader.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/tls/certificate_source.h"

namespace drakkar::client {
namespace {

using api::Value;

Value FindNamed(Value list, std::string_view name, api::FieldName body) {
  for (Value entry : list.elements()) {
    if (entry["name"].str() == name) return entry[body];
  }
  return Value();
}

// Paths are relative to the kubeconfig file.
std::string PathFrom(const std::string& base, std::string_view path) {
  return path.front() == '/' ? std::string(path) : JoinPath(base, path);
}

// The bytes of "<field>-data" (base64) or of the file that "<field>" names.
Result<std::string> ReadData(FileSystem& files, Value object, api::FieldName field,
                             const std::string& base) {
  const Value inline_data = object.Entry(StrCat(field, "-data"));
  if (!inline_data.str().empty()) {
    Result<std::string> decoded = Base64Decode(inline_data.str());
    if (!decoded.ok()) return decoded.error().Prefixed(StrCat(field, "-data"));
    return decoded;
  }
  const std::string_view path = object[field].str();
  if (path.empty()) return std::string();
  return files.ReadFile(PathFrom(base, path));
}

Result<ClusterAccess> ReadKubeconfig(FileSystem& files, const std::string& path,
                                     const std::string& context) {
  auto wrong = [&](const std::string& what) {
    return InvalidArgument(StrCat("kubeconfig ", path, ": ", what));
  };
  Result<std::string> text = files.ReadFile(path);
  if (!text.ok()) return text.error().Prefixed("kubeconfig");
  Result<std::vector<api::TreePtr>> documents = api::ParseYaml(*text);
  if (!documents.ok()) return wrong(documents.error().message);
  if (documents->size() != 1) return wrong("must be a single YAML document");
  const Value root = documents->front()->root();
  const std::string_view name = context.empty() ? root["current-context"].str() : context;
  if (name.empty()) return wrong("current-context is not set; choose a context with --context");
  const Value chosen = FindNamed(root["contexts"], name, "context");
  if (!chosen.exists()) return wrong(StrCat("context ", Quote(name), " not found"));
  const Value cluster = FindNamed(root["clusters"], chosen["cluster"].str(), "cluster");
  if (!cluster.exists()) {
    return wrong(StrCat("cluster ", Quote(chosen["cluster"].str()), " not found"));
  }
  const Value user = FindNamed(root["users"], chosen["user"].str(), "user");

  ClusterAccess access;
  std::vector<std::string> servers = SplitServers(cluster["server"].str());
  if (servers.empty()) return wrong("the cluster has no server address");
  access.server = servers.front();
  servers.erase(servers.begin());
  access.other_servers = std::move(servers);
  access.insecure_skip_verify = cluster["insecure-skip-tls-verify"].boolean();
  access.server_name = cluster["tls-server-name"].str();
  access.namespace_ = chosen["namespace"].str("default");
  if (access.namespace_.empty()) access.namespace_ = "default";
  const std::string base = DirectoryName(path);
  ASSIGN_OR_RETURN(access.ca_pem, ReadData(files, cluster, "certificate-authority", base));
  ASSIGN_OR_RETURN(access.client_certificate_pem,
                   ReadData(files, user, "client-certificate", base));
  ASSIGN_OR_RETURN(access.client_key_pem, ReadData(files, user, "client-key", base));
  access.token = user["token"].str();
  if (const std::string_view path_of_token = user["tokenFile"].str(); !path_of_token.empty()) {
    access.token_file = PathFrom(base, path_of_token);
    // As in Kubernetes, the file takes precedence over a token beside it, but may then be missing.
    const Result<std::string> token = files.ReadFile(access.token_file);
    if (token.ok()) {
      access.token = Trim(*token);
    } else if (access.token.empty()) {
      return token.error().Prefixed("kubeconfig: tokenFile");
    }
  }
  return access;
}

}  // namespace

std::vector<std::string> ServersOf(const ClusterAccess& access) {
  std::vector<std::string> servers{access.server};
  servers.insert(servers.end(), access.other_servers.begin(), access.other_servers.end());
  return servers;
}

std::vector<std::string> SplitServers(std::string_view list) {
  std::vector<std::string> servers;
  for (const std::string_view each : Split(list, ',')) {
    std::string server(Trim(each));
    while (server.ends_with('/')) server.pop_back();
    if (!server.empty()) servers.push_back(std::move(server));
  }
  return servers;
}

Result<ClusterAccess> LoadKubeconfig(FileSystem& files, const std::string& path,
                                     const std::string& context) {
  ASSIGN_OR_RETURN(ClusterAccess access, ReadKubeconfig(files, path, context));
  access.read_servers = [&files, path, context]() -> std::vector<std::string> {
    const Result<ClusterAccess> now = ReadKubeconfig(files, path, context);
    return now.ok() ? ServersOf(*now) : std::vector<std::string>();
  };
  if (access.client_certificate_pem.empty() || access.client_key_pem.empty()) return access;
  ASSIGN_OR_RETURN(access.client_certificate,
                   net::WatchedCertificate::Make(
                       RealClock(), [&files, path, context]() -> Result<net::CertificateAndKey> {
                         ASSIGN_OR_RETURN(ClusterAccess now, ReadKubeconfig(files, path, context));
                         return net::CertificateAndKey{std::move(now.client_certificate_pem),
                                                       std::move(now.client_key_pem)};
                       }));
  return access;
}

std::optional<Error> WhyExpired(const ClusterAccess& access, WallTime now,
                                const std::string& path) {
  if (access.client_certificate_pem.empty()) return std::nullopt;
  std::optional<Error> why = net::WhyNotValid(access.client_certificate_pem, now,
                                              StrCat("the client certificate in ", path));
  if (why && why->message.find(" expired on ") != std::string::npos) {
    why->message +=
        "; get a new kubeconfig: a running API server renews those in its data directory";
  }
  return why;
}

}  // namespace drakkar::client
