#include "node/pods/service_variables.h"

#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

// "redis-0.cache" -> "REDIS_0_CACHE"; a leading digit gets an underscore.
std::string VariableName(std::string_view name) {
  std::string out;
  if (!name.empty() && name[0] >= '0' && name[0] <= '9') out += '_';
  for (const char c : name) {
    if (c == '-' || c == '.') {
      out += '_';
    } else {
      out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
  return out;
}

std::string HostAndPort(std::string_view host, std::int64_t port) {
  if (host.find(':') != std::string_view::npos) return StrCat("[", host, "]:", port);
  return StrCat(host, ":", port);
}

}  // namespace

void AddServiceVariables(Value service, Variables& variables) {
  const Value spec = service["spec"];
  const std::string host(spec["clusterIP"].str());
  if (host.empty() || host == "None" || spec["ports"].empty()) return;
  const std::string prefix = VariableName(service["metadata"]["name"].str());
  variables[prefix + "_SERVICE_HOST"] = host;
  bool first = true;
  for (Value each : spec["ports"].elements()) {
    const std::int64_t port = each["port"].integer();
    const std::string_view name = each["name"].str();
    std::string protocol = VariableName(each["protocol"].str("TCP"));
    const std::string address = StrCat(ToLower(protocol), "://", HostAndPort(host, port));
    if (first) {
      variables[prefix + "_SERVICE_PORT"] = std::to_string(port);
      variables[prefix + "_PORT"] = address;
    }
    if (!name.empty()) {
      variables[StrCat(prefix, "_SERVICE_PORT_", VariableName(name))] = std::to_string(port);
    }
    const std::string link = StrCat(prefix, "_PORT_", port, "_", protocol);
    variables[link] = address;
    variables[link + "_PROTO"] = ToLower(protocol);
    variables[link + "_PORT"] = std::to_string(port);
    variables[link + "_ADDR"] = host;
    first = false;
  }
}

Variables ApiServerVariables(const std::string& host, const std::string& port) {
  Variables variables;
  const std::int64_t number = ParseInt64(port).value_or(443);
  const api::TreePtr service =
      api::Draft({{"metadata", {{"name", "kubernetes"}}},
                  {"spec",
                   {{"clusterIP", host},
                    {"ports", api::Draft::Array({api::Draft(
                                  {{"name", "https"}, {"port", number}, {"protocol", "TCP"}})})}}}})
          .Freeze();
  AddServiceVariables(service->root(), variables);
  return variables;
}

Variables PodServiceVariables(Value pod, const Variables& api_server,
                              const client::Informer* services) {
  Variables variables;
  if (services != nullptr && pod["spec"]["enableServiceLinks"].optional_boolean() != false) {
    const std::string prefix = StrCat(pod["metadata"]["namespace"].str(), "/");
    const auto& objects = services->objects();
    for (auto each = objects.lower_bound(prefix);
         each != objects.end() && each->first.starts_with(prefix); ++each) {
      if (each->first == "default/kubernetes") continue;
      AddServiceVariables(each->second->root(), variables);
    }
  }
  for (const auto& [name, value] : api_server) variables[name] = value;
  return variables;
}

}  // namespace drakkar::node
