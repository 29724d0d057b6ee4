#include "apiserver/webhook/conversion_review.h"

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft_view.h"
#include "apiserver/custom/definition.h"
#include "apiserver/custom/json_values.h"
#include "base/text/text.h"
#include "base/text/truncate.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

constexpr std::size_t kMaxShownBytes = 4096;  // of the webhook's message

std::string ApiVersionOf(std::string_view version) {
  return StrCat("apiextensions.k8s.io/", version);
}

Result<void> CheckSame(Value original, Value converted, const api::KindSchema& to) {
  if (!to.is_api_version(converted["apiVersion"].str())) {
    return InvalidArgument(StrCat("invalid groupVersion (expected ", to.api_version(),
                                  ", received ", converted["apiVersion"].str(), ")"));
  }
  if (converted["kind"].str() != to.kind) {
    return InvalidArgument(
        StrCat("invalid kind (expected ", to.kind, ", received ", converted["kind"].str(), ")"));
  }
  if (!converted["metadata"].is_object()) {
    return InvalidArgument("missing metadata in converted object");
  }
  struct Fixed {
    api::FieldName field;
    std::string_view shown;
  };
  for (const auto& [field, shown] :
       {Fixed{"name", "name"}, Fixed{"namespace", "namespace"}, Fixed{"uid", "UID"}}) {
    const std::string_view before = original["metadata"][field].str();
    const std::string_view after = converted["metadata"][field].str();
    if (before != after) {
      return InvalidArgument(StrCat("must have the same ", shown, ": ", before, " != ", after));
    }
  }
  for (const api::FieldName field : api::FieldNames{"labels", "annotations"}) {
    const Value map = converted["metadata"][field];
    if (!map.has_value()) continue;
    if (!map.is_object()) return InvalidArgument(StrCat("metadata.", field, " is not a map"));
    for (const auto& [key, name, value] : map.members()) {
      if (!value.is_string()) {
        return InvalidArgument(StrCat("metadata.", field, "[", name, "] is not a string"));
      }
    }
  }
  return Ok();
}

api::TreePtr Completed(Value original, Value converted, const api::KindSchema& to) {
  Draft object(converted);
  Draft metadata(original["metadata"]);
  for (const api::FieldName field : api::FieldNames{"labels", "annotations"}) {
    const Value map = converted["metadata"][field];
    metadata.Remove(field);
    if (map.is_object() && !map.empty()) metadata[field] = Draft(map);
  }
  object["metadata"] = std::move(metadata);
  api::TreePtr tree = object.Freeze();
  const CustomVersion* version = FindCustomVersion(to);
  if (version == nullptr) return tree;
  tree = PruneUnknown(tree, version->schema(), nullptr);
  if (!version->schema().has_defaults) return tree;
  Draft defaulted(tree);
  ApplyJsonDefaults(defaulted, version->schema());
  return defaulted.Freeze();
}

}  // namespace

std::string WriteConversionReview(std::string_view version, std::string_view uid,
                                  const api::KindSchema& to,
                                  const std::vector<api::TreePtr>& objects) {
  Draft list = Draft::Array();
  for (const api::TreePtr& object : objects) list.Append(Draft(object->root()));
  Draft review{
      {"kind", "ConversionReview"},
      {"apiVersion", ApiVersionOf(version)},
      {"request", {{"uid", uid}, {"desiredAPIVersion", to.api_version()}, {"objects", list}}}};
  return api::WriteJson(api::DraftView(review).root());
}

Result<std::vector<api::TreePtr>> ReadConversionAnswer(Value review, std::string_view version,
                                                       std::string_view uid,
                                                       const api::KindSchema& to,
                                                       const std::vector<api::TreePtr>& originals) {
  const Value response = review["response"];
  if (version == "v1") {
    if (review["apiVersion"].str() != ApiVersionOf(version) ||
        review["kind"].str() != "ConversionReview") {
      return InvalidArgument(StrCat("failed: expected webhook response of ", ApiVersionOf(version),
                                    ", Kind=ConversionReview, got ", review["apiVersion"].str(),
                                    ", Kind=", review["kind"].str()));
    }
    if (response.is_object() && response["uid"].str() != uid) {
      return InvalidArgument(StrCat("failed: expected response.uid=", Quote(uid), ", got ",
                                    Quote(response["uid"].str())));
    }
  }
  if (!response.is_object()) return InvalidArgument("failed: no response provided");
  if (const Value result = response["result"]; result["status"].str() != "Success") {
    if (const std::string_view message = result["message"].str(); !message.empty()) {
      return InvalidArgument(StrCat("failed: ", TruncateMessage(message, kMaxShownBytes)));
    }
    return InvalidArgument(
        StrCat("failed: response.result.status was '", result["status"].str(), "', not 'Success'"));
  }
  const Value converted = response["convertedObjects"];
  if (converted.size() != originals.size() || !converted.is_array()) {
    return InvalidArgument(
        StrCat("returned ", converted.size(), " objects, expected ", originals.size()));
  }
  std::vector<api::TreePtr> objects;
  for (std::size_t i = 0; i < originals.size(); ++i) {
    const Value original = originals[i]->root();
    const Result<void> same = CheckSame(original, converted.at(i), to);
    if (!same.ok()) {
      return InvalidArgument(
          StrCat("returned invalid converted object at index ", i, ": ", same.error().message));
    }
    objects.push_back(Completed(original, converted.at(i), to));
  }
  return objects;
}

}  // namespace drakkar::apiserver
