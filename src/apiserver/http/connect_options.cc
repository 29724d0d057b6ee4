#include "apiserver/http/connect_options.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;

const api::KindSchema& ProxyOptions(std::string_view resource) {
  return *api::FindKind("", "v1",
                        resource == "nodes"      ? "NodeProxyOptions"
                        : resource == "services" ? "ServiceProxyOptions"
                                                 : "PodProxyOptions");
}

bool IsSet(const net::Query& query, std::string_view name) {
  const std::string* text = query.Find(name);
  return text != nullptr && *text != "false" && *text != "0";
}

void AddStreams(const net::Query& query, Draft& options) {
  if (IsSet(query, "stdin")) options["stdin"] = true;
  if (IsSet(query, "stdout")) options["stdout"] = true;
  if (IsSet(query, "stderr")) options["stderr"] = true;
  if (IsSet(query, "tty")) options["tty"] = true;
  if (const std::string_view name = query.Get("container"); !name.empty()) {
    options["container"] = name;
  }
}

}  // namespace

std::optional<ConnectOptions> ConnectOptionsOf(const RequestInfo& info, const net::Query& query) {
  ConnectOptions connect;
  Draft options = Draft::Object();
  if (info.subresource == "exec") {
    connect.kind = api::FindKind("", "v1", "PodExecOptions");
    AddStreams(query, options);
    Draft& command = options["command"] = Draft::Array();
    for (const auto& [name, value] : query) {
      if (name == "command") command.Append(value);
    }
  } else if (info.subresource == "attach") {
    connect.kind = api::FindKind("", "v1", "PodAttachOptions");
    AddStreams(query, options);
  } else if (info.subresource == "portforward") {
    connect.kind = api::FindKind("", "v1", "PodPortForwardOptions");
    for (const auto& [name, value] : query) {
      if (name != "ports") continue;
      for (std::string_view port : Split(value, ',')) {
        if (const auto number = ParseInt64(port)) options["ports"].Append(*number);
      }
    }
  } else if (info.subresource == "proxy") {
    connect.kind = &ProxyOptions(info.resource);
    if (!info.rest.empty()) options["path"] = info.rest;
  } else {
    return std::nullopt;
  }
  options["kind"] = connect.kind->kind;
  options["apiVersion"] = "v1";
  connect.object = options.Freeze();
  return connect;
}

}  // namespace drakkar::apiserver
