#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/request/request.h"
#include "net/http/message.h"
#include "net/http/url.h"

namespace drakkar::apiserver {

// What a path asks for.
struct RequestInfo {
  bool is_resource = false;  // else a path like /healthz or a discovery document
  std::string group;
  std::string version;
  const api::KindSchema* kind = nullptr;  // null: no such resource in that group and version
  std::string resource;                   // as in the path
  std::string namespace_;
  std::string name;
  std::string subresource;
  std::vector<std::string> rest;  // behind the subresource (proxies)
};

RequestInfo ParseRequestPath(std::string_view path);

// A query parameter that is yes or no: given, and neither "false" nor "0", as Kubernetes reads it.
bool IsTrueParameter(const std::string* value);

// The verb of a method on what the path names; nullopt when there is none.
std::optional<Verb> VerbOf(net::Method method, const RequestInfo& info, const net::Query& query);

// Query parameters into the request's options. All that is wrong with one is said.
std::optional<Failure> ReadOptions(const net::Query& query, Request& request);

// What is wrong with an option of a write, as Kubernetes words it.
Failure InvalidOptions(Verb verb, api::FieldError error);

}  // namespace drakkar::apiserver
