#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/request/request.h"
#include "net/http/message.h"
#include "net/http/url.h"

namespace drakkar::apiserver {

// What a path refers to.
struct RequestInfo {
  bool is_resource = false;  // else a path like /healthz or a discovery document
  std::string group;
  std::string version;
  const api::KindSchema* kind = nullptr;  // null: no such resource in that group and version
  std::string resource;                   // as in the path
  std::string namespace_;
  std::string name;
  std::string subresource;
  // After the subresource, for proxies: "", "/", "/a/b" or "/a/b/", without empty and dot segments.
  std::string rest;
};

RequestInfo ParseRequestPath(std::string_view path);

// Reads a boolean query parameter as Kubernetes does: true if given and neither "false" nor "0".
bool IsTrueParameter(const std::string* value);

// Whether what follows the subresource is for somebody else: query, body and headers, too.
bool IsProxyPath(const RequestInfo& info);

// The verb for a method on the path; nullopt if there is none.
std::optional<Verb> VerbOf(net::Method method, const RequestInfo& info, const net::Query& query);

// Reads query parameters into the request's options. A failure names everything that is wrong.
std::optional<Failure> ReadOptions(const net::Query& query, Request& request);

// Validates the options of a write; errors are worded as in Kubernetes.
Failure InvalidOptions(Verb verb, api::FieldError error);

}  // namespace drakkar::apiserver
