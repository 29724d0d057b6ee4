#include "apiserver/http/request_info.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "base/text/text.h"

namespace drakkar::apiserver {

namespace {

// Never leads above its start.
std::string WithoutDots(const std::vector<std::string_view>& segments, bool ends_with_slash) {
  std::vector<std::string_view> kept;
  for (const std::string_view segment : segments) {
    if (segment == ".") continue;
    if (segment != "..") {
      kept.push_back(segment);
    } else if (!kept.empty()) {
      kept.pop_back();
    }
  }
  std::string path;
  for (const std::string_view segment : kept) path += StrCat("/", segment);
  if (ends_with_slash) path += "/";
  return path;
}

}  // namespace

RequestInfo ParseRequestPath(std::string_view path) {
  RequestInfo info;
  std::vector<std::string_view> parts;
  parts.reserve(12);
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  std::size_t next = 0;
  if (parts.size() >= 3 && parts[0] == "api") {
    info.version = parts[1];
    next = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    info.group = parts[1];
    info.version = parts[2];
    next = 3;
  } else {
    return info;
  }
  info.is_resource = true;
  auto take = [&]() -> std::string_view { return next < parts.size() ? parts[next++] : ""; };
  std::string_view resource = take();
  if (resource == "namespaces" && next < parts.size()) {
    const bool namespace_itself =
        next + 1 >= parts.size() || parts[next + 1] == "status" || parts[next + 1] == "finalize";
    // "/namespaces/x/status" is the status of the namespace, since "status" is not a resource.
    if (!namespace_itself) {
      info.namespace_ = take();
      resource = take();
    }
  }
  info.resource = resource;
  info.name = take();
  info.subresource = take();
  info.rest = WithoutDots({parts.begin() + static_cast<std::ptrdiff_t>(next), parts.end()},
                          path.ends_with('/'));
  info.kind = api::FindResource(info.group, info.version, info.resource);
  return info;
}

bool IsTrueParameter(const std::string* value) {
  return value != nullptr && *value != "false" && *value != "0";
}

bool IsProxyPath(const RequestInfo& info) {
  return info.is_resource && info.subresource == "proxy";
}

std::optional<Verb> VerbOf(net::Method method, const RequestInfo& info, const net::Query& query) {
  switch (method) {
    case net::Method::kGet:
    case net::Method::kHead: {
      if (IsProxyPath(info)) return Verb::kGet;
      if (IsTrueParameter(query.Find("watch"))) return Verb::kWatch;
      return info.name.empty() ? Verb::kList : Verb::kGet;
    }
    case net::Method::kPost:
      return Verb::kCreate;
    case net::Method::kPut:
      return Verb::kUpdate;
    case net::Method::kPatch:
      return Verb::kPatch;
    case net::Method::kDelete:
      return info.name.empty() ? Verb::kDeleteCollection : Verb::kDelete;
    case net::Method::kOptions:
      return IsProxyPath(info) ? std::optional(Verb::kNone) : std::nullopt;
    default:
      return std::nullopt;
  }
}

namespace {

// Which options of lists and watches can be combined, as in Kubernetes.
std::optional<Failure> CheckListOptions(const Request& request, bool send_initial_events_given) {
  const std::string_view match = request.resource_version_match;
  const bool watch = request.verb == Verb::kWatch;
  api::FieldErrors errors;
  auto forbid = [&](std::string_view field, std::string_view why) {
    errors.push_back(Forbidden(field, why));
  };
  if (watch) {
    if (send_initial_events_given && match != "NotOlderThan") {
      forbid("resourceVersionMatch",
             "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if (!match.empty() && !send_initial_events_given) {
      forbid("resourceVersionMatch",
             "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
  } else {
    if (!match.empty() && request.resource_version.empty()) {
      forbid("resourceVersionMatch",
             "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if (match == "Exact" && request.resource_version == "0") {
      forbid("resourceVersionMatch",
             "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if (send_initial_events_given) {
      forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
  }
  if (!match.empty() && match != "Exact" && match != "NotOlderThan") {
    errors.push_back(NotSupported("resourceVersionMatch", match, {"Exact", "NotOlderThan", ""}));
  }
  if (!match.empty() && !request.continue_token.empty()) {
    forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
  }
  if (!errors.empty()) return api::StatusInvalid("meta.k8s.io", "ListOptions", "", errors);
  if (!request.continue_token.empty() && !request.resource_version.empty() &&
      request.resource_version != "0") {
    return api::StatusBadRequest("specifying resource version is not allowed when using continue");
  }
  return std::nullopt;
}

std::optional<Failure> CheckFieldManager(const Request& request) {
  Findings found;
  CheckManager(found, api::FieldPath("fieldManager"), request.field_manager);
  if (found.empty()) return std::nullopt;
  return InvalidOptions(request.verb, std::move(found.list().front().error));
}

}  // namespace

Failure InvalidOptions(Verb verb, api::FieldError error) {
  const std::string_view kind = verb == Verb::kCreate   ? "CreateOptions"
                                : verb == Verb::kUpdate ? "UpdateOptions"
                                : verb == Verb::kPatch  ? "PatchOptions"
                                                        : "DeleteOptions";
  return api::StatusInvalid("meta.k8s.io", kind, "", {std::move(error)});
}

std::optional<Failure> ReadOptions(const net::Query& query, Request& request) {
  request.label_selector = query.Get("labelSelector");
  request.field_selector = query.Get("fieldSelector");
  request.resource_version = query.Get("resourceVersion");
  request.resource_version_match = query.Get("resourceVersionMatch");
  request.continue_token = query.Get("continue");
  request.field_manager = query.Get("fieldManager");
  request.propagation_policy = query.Get("propagationPolicy");
  request.force = IsTrueParameter(query.Find("force"));
  request.ignore_read_error =
      IsTrueParameter(query.Find("ignoreStoreReadErrorWithClusterBreakingPotential"));
  if (const std::string* limit = query.Find("limit"); limit != nullptr && !limit->empty()) {
    const std::optional<std::int64_t> parsed = ParseInt64(*limit);
    if (!parsed || *parsed < 0) {
      return api::StatusBadRequest(StrCat("limit: ", Quote(*limit), " is not a number of items"));
    }
    request.limit = *parsed;
  }
  if (const std::string* grace = query.Find("gracePeriodSeconds"); grace != nullptr) {
    const std::optional<std::int64_t> parsed = ParseInt64(*grace);
    if (!parsed) {
      return api::StatusBadRequest(
          StrCat("gracePeriodSeconds: ", Quote(*grace), " is not a number of seconds"));
    }
    request.grace_period_seconds = *parsed;
  }
  if (const std::string* dry_run = query.Find("dryRun"); dry_run != nullptr) {
    if (*dry_run != "All") {
      return InvalidOptions(
          request.verb, api::FieldError::NotSupported(
                            api::FieldPath("dryRun"),
                            api::BadValue::Literal(StrCat("[", Quote(*dry_run), "]")), {"All"}));
    }
    request.dry_run = true;
  }
  const std::string_view validation = query.Get("fieldValidation");
  if (validation == "Strict") {
    request.field_validation = FieldValidation::kStrict;
  } else if (validation == "Ignore") {
    request.field_validation = FieldValidation::kIgnore;
  } else if (!validation.empty() && validation != "Warn") {
    return InvalidOptions(request.verb, NotSupported("fieldValidation", validation,
                                                     {"", "Ignore", "Strict", "Warn"}));
  }
  if (request.verb == Verb::kCreate || request.verb == Verb::kUpdate ||
      request.verb == Verb::kPatch) {
    return CheckFieldManager(request);
  }
  if (request.verb == Verb::kList || request.verb == Verb::kWatch ||
      request.verb == Verb::kDeleteCollection) {
    return CheckListOptions(request, query.Find("sendInitialEvents") != nullptr);
  }
  return std::nullopt;
}

}  // namespace drakkar::apiserver
