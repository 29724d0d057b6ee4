#include "apiserver/rest/decode.h"

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

std::optional<Failure> CheckKind(const api::KindSchema& kind, api::Value object) {
  const std::string_view given_kind = object["kind"].str();
  const std::string_view given_version = object["apiVersion"].str();
  const std::string expected = kind.group.empty() ? std::string(kind.version)
                                                  : StrCat(kind.group, "/", kind.version);
  if ((!given_kind.empty() && given_kind != kind.kind) ||
      (!given_version.empty() && given_version != expected)) {
    return api::StatusBadRequest(
        StrCat("the object provided is ", given_version, ", Kind=", given_kind,
               ", but the path is for ", expected, ", Kind=", kind.kind));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Failure> DecodeBody(const api::KindSchema& kind, Request& request,
                                  std::vector<std::string>&) {
  if (request.object == nullptr) {
    Result<api::TreePtr> tree = api::ParseJson(request.text);
    if (!tree.ok()) return api::StatusBadRequest(tree.error().message);
    request.object = std::move(*tree);
  }
  if (!request.object->root().is_object()) {
    return api::StatusBadRequest("the body of the request must be an object");
  }
  return CheckKind(kind, request.object->root());
}

std::optional<Failure> BuildUpdate(const api::KindSchema& kind, Request& request,
                                   const api::Object&, api::TreePtr& asked,
                                   std::vector<std::string>& warnings) {
  if (request.verb == Verb::kUpdate) {
    if (std::optional<Failure> failure = DecodeBody(kind, request, warnings)) return failure;
    asked = request.object;
    return std::nullopt;
  }
  return api::StatusUnsupportedMediaType("patches are not supported yet");
}

}  // namespace drakkar::apiserver
