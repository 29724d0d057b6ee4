#include "node/node_access.h"

#include "base/text/text.h"

namespace drakkar::node {
namespace {

bool IsUnder(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

bool IsOneOf(std::string_view path, std::initializer_list<std::string_view> roots) {
  for (std::string_view root : roots) {
    if (IsUnder(path, root)) return true;
  }
  return false;
}

std::string VerbOf(const net::ServerRequest& request) {
  if (IsOneOf(request.path, {"/exec", "/attach", "/run", "/portForward"})) return "create";
  switch (request.method) {
    case net::Method::kPost:
      return "create";
    case net::Method::kPut:
      return "update";
    case net::Method::kPatch:
      return "patch";
    case net::Method::kDelete:
      return "delete";
    case net::Method::kGet:
      return "get";
    default:
      return ToLower(net::MethodName(request.method));
  }
}

}  // namespace

std::vector<client::AccessReviewer::Access> RequiredAccess(const net::ServerRequest& request,
                                                           const std::string& node_name) {
  std::vector<std::string> subresources;
  const std::string_view path = request.path;
  if (IsOneOf(path, {"/pods", "/runningpods"})) subresources.emplace_back("pods");
  if (IsUnder(path, "/healthz")) subresources.emplace_back("healthz");
  if (IsUnder(path, "/configz")) subresources.emplace_back("configz");
  if (IsUnder(path, "/stats")) {
    subresources.emplace_back("stats");
  } else if (IsUnder(path, "/metrics")) {
    subresources.emplace_back("metrics");
  } else if (IsUnder(path, "/logs")) {
    subresources.emplace_back("log");
  } else if (IsUnder(path, "/checkpoint")) {
    subresources.emplace_back("checkpoint");
  } else if (IsUnder(path, "/statusz")) {
    subresources.emplace_back("statusz");
  } else if (IsUnder(path, "/flagz")) {
    subresources.emplace_back("flagz");
  } else {
    subresources.emplace_back("proxy");
  }
  std::vector<client::AccessReviewer::Access> any_of;
  for (std::string& subresource : subresources) {
    any_of.push_back({.verb = VerbOf(request),
                      .path = {},
                      .node = node_name,
                      .subresource = std::move(subresource)});
  }
  return any_of;
}

}  // namespace drakkar::node
