#include "apiserver/http/request_body.h"

#include "api/codec/object_reader.h"
#include "api/codec/protobuf_reader.h"
#include "api/codec/yaml_reader.h"
#include "api/scheme/scheme.h"
#include "apiserver/http/negotiate.h"
#include "apiserver/http/request_info.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

bool IsYaml(std::string_view content_type) {
  return content_type == "application/yaml" || content_type == "application/x-yaml";
}

std::optional<Failure> ReadEncoding(std::string_view content_type, Request::Encoding& encoding) {
  if (IsYaml(content_type)) {
    encoding = Request::Encoding::kYaml;
  } else if (content_type == kProtobufType) {
    encoding = Request::Encoding::kProtobuf;
  } else if (!content_type.empty() && content_type != kJsonType) {
    return api::StatusUnsupportedMediaType(
        StrCat("the body of the request was in an unknown format - accepted media types "
               "include: application/json, application/yaml, "
               "application/vnd.kubernetes.protobuf (it was ",
               Quote(content_type), ")"));
  }
  return std::nullopt;
}

std::optional<Failure> ReadPatchType(std::string_view content_type, PatchKind& kind) {
  if (content_type == "application/json-patch+json") {
    kind = PatchKind::kJson;
  } else if (content_type == "application/merge-patch+json") {
    kind = PatchKind::kMerge;
  } else if (content_type == "application/strategic-merge-patch+json") {
    kind = PatchKind::kStrategicMerge;
  } else if (content_type == "application/apply-patch+yaml") {
    kind = PatchKind::kApply;
  } else {
    return api::StatusUnsupportedMediaType(
        StrCat("the body of the request was in an unknown format - accepted media types include: "
               "application/json-patch+json, application/merge-patch+json, "
               "application/strategic-merge-patch+json, application/apply-patch+yaml (it was ",
               Quote(content_type), ")"));
  }
  return std::nullopt;
}

// The body of a delete: DeleteOptions, some of which may also be in the query.
std::optional<Failure> ReadDeleteOptions(Request::Encoding encoding, std::string_view body,
                                         Request& request) {
  if (Trim(body).empty()) return std::nullopt;
  static const api::StructSchema& schema =
      *api::FindStruct("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
  // Unknown fields are dropped, as in Kubernetes.
  constexpr api::ObjectReadOptions kOptions{.strictness = api::Strictness::kIgnore};
  std::string kind;
  Result<api::ObjectReadResult> read = [&]() -> Result<api::ObjectReadResult> {
    switch (encoding) {
      case Request::Encoding::kJson:
        break;
      case Request::Encoding::kYaml: {
        ASSIGN_OR_RETURN(const std::vector<api::TreePtr> documents, api::ParseYaml(body));
        if (documents.size() != 1) return InvalidArgument("must be a single YAML document");
        return api::ConvertObject(documents[0], schema, kOptions);
      }
      case Request::Encoding::kProtobuf: {
        ASSIGN_OR_RETURN(const api::ProtobufEnvelope envelope, api::OpenProtobufEnvelope(body));
        kind = envelope.kind;
        ASSIGN_OR_RETURN(const api::TreePtr tree, api::ReadProtobuf(envelope.message, schema));
        return api::ConvertObject(tree, schema, kOptions);
      }
    }
    return api::ReadObject(body, schema, kOptions);
  }();
  if (!read.ok()) {
    return api::StatusBadRequest(StrCat("error decoding DeleteOptions: ", read.error().message));
  }
  const api::Value options = read->tree->root();
  if (kind.empty()) kind = options["kind"].str();
  if (!kind.empty() && kind != "DeleteOptions") {
    return api::StatusBadRequest(
        StrCat("the body of a delete must be of kind DeleteOptions, not ", kind));
  }
  if (std::optional<std::int64_t> grace = options["gracePeriodSeconds"].optional_integer()) {
    request.grace_period_seconds = *grace;
  }
  if (!options["propagationPolicy"].str().empty()) {
    request.propagation_policy = options["propagationPolicy"].str();
    if (options["orphanDependents"].has_value()) {
      api::FieldError error;
      error.field = "propagationPolicy";
      error.value = std::string_view(request.propagation_policy);
      error.detail = "orphanDependents and deletionPropagation cannot be both set";
      return InvalidOptions(Verb::kDelete, std::move(error));
    }
  }
  if (options["orphanDependents"].boolean()) request.propagation_policy = "Orphan";
  request.precondition_uid = options["preconditions"]["uid"].str();
  request.precondition_resource_version = options["preconditions"]["resourceVersion"].str();
  request.ignore_read_error |=
      options["ignoreStoreReadErrorWithClusterBreakingPotential"].boolean();
  for (api::Value dry_run : options["dryRun"].elements()) {
    if (dry_run.str() != "All") {
      return InvalidOptions(
          Verb::kDelete,
          api::FieldError::NotSupported(api::FieldPath("dryRun"), options["dryRun"], {"All"}));
    }
    request.dry_run = true;
  }
  return std::nullopt;
}

std::optional<Failure> CheckPropagation(const Request& request) {
  const std::string_view policy = request.propagation_policy;
  if (policy.empty() || policy == "Orphan" || policy == "Background" || policy == "Foreground") {
    return std::nullopt;
  }
  api::FieldError error;
  error.type = api::FieldErrorType::kNotSupported;
  error.field = "propagationPolicy";
  error.value = policy;
  // In the order of Kubernetes.
  error.detail = R"(supported values: "Foreground", "Background", "Orphan", "nil")";
  return InvalidOptions(Verb::kDelete, std::move(error));
}

}  // namespace

std::optional<Failure> ReadBody(std::string_view content_type_header, std::string body,
                                Request& request) {
  const std::string_view content_type = MediaTypeOf(content_type_header);
  switch (request.verb) {
    case Verb::kPatch:
      if (std::optional<Failure> failure = ReadPatchType(content_type, request.patch)) {
        return failure;
      }
      request.text = std::move(body);
      return std::nullopt;
    case Verb::kCreate:
    case Verb::kUpdate:
      if (std::optional<Failure> failure = ReadEncoding(content_type, request.encoding)) {
        return failure;
      }
      request.text = std::move(body);
      return std::nullopt;
    case Verb::kDelete:
    case Verb::kDeleteCollection:
      if (!body.empty()) {
        Request::Encoding encoding = Request::Encoding::kJson;
        if (std::optional<Failure> failure = ReadEncoding(content_type, encoding)) return failure;
        if (std::optional<Failure> failure = ReadDeleteOptions(encoding, body, request)) {
          return failure;
        }
      }
      return CheckPropagation(request);
    case Verb::kGet:
    case Verb::kList:
    case Verb::kWatch:
    case Verb::kNone:
      break;
  }
  return std::nullopt;
}

}  // namespace drakkar::apiserver
