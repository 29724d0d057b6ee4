#include "apiserver/http/encode.h"

#include "api/codec/yaml_writer.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kYamlType = "application/yaml";

EncodedBody EncodeTree(const Negotiated& negotiated, api::Value value) {
  EncodedBody encoded;
  if (negotiated.media == MediaType::kYaml) {
    encoded.content_type = kYamlType;
    encoded.body.push_back(net::MakeSegment(api::WriteYaml(value)));
    return encoded;
  }
  encoded.content_type = kJsonType;
  api::WriteOptions options;
  if (negotiated.pretty) options = {.indent = 2, .final_newline = true};
  encoded.body.push_back(net::MakeSegment(api::WriteJson(value, options)));
  return encoded;
}

std::string ListHead(const api::KindSchema& kind, const Response& response, bool partial) {
  api::Draft metadata = api::Draft::Object();
  metadata["resourceVersion"] = std::to_string(response.revision);
  if (!response.continue_token.empty()) metadata["continue"] = response.continue_token;
  if (response.remaining_items && *response.remaining_items > 0) {
    metadata["remainingItemCount"] = *response.remaining_items;
  }
  std::string head = "{\"kind\":\"";
  if (partial) {
    head += "PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1";
  } else {
    head += StrCat(kind.kind, "List\",\"apiVersion\":\"",
                   kind.group.empty() ? "" : StrCat(kind.group, "/"), kind.version);
  }
  head += StrCat("\",\"metadata\":", api::WriteJson(metadata.Freeze()->root()), ",\"items\":[");
  return head;
}

}  // namespace

api::TreePtr ToPartialMetadata(const api::Object& object) {
  api::Draft partial = api::Draft::Object();
  partial["kind"] = "PartialObjectMetadata";
  partial["apiVersion"] = "meta.k8s.io/v1";
  partial["metadata"] = api::Draft(object["metadata"]);
  partial.KeepAlive(object.tree());
  return partial.Freeze();
}

EncodedBody EncodeObject(const Negotiated& negotiated, const api::Object& object) {
  if (negotiated.shape == Shape::kPartialMetadata) {
    return EncodeTree(negotiated, ToPartialMetadata(object)->root());
  }
  if (negotiated.media == MediaType::kJson && !negotiated.pretty) {
    return {std::string(kJsonType), {object.json()}};
  }
  return EncodeTree(negotiated, object.root());
}

EncodedBody EncodeList(const Negotiated& negotiated, const api::KindSchema& kind,
                       const Response& response) {
  static const net::Segment comma = net::MakeSegment(",");
  static const net::Segment end = net::MakeSegment("]}\n");
  const bool partial = negotiated.shape == Shape::kPartialMetadata;
  EncodedBody encoded;
  encoded.content_type = kJsonType;
  encoded.body.reserve(response.items.size() * 2 + 2);
  encoded.body.push_back(net::MakeSegment(ListHead(kind, response, partial)));
  bool first = true;
  for (const api::ObjectPtr& item : response.items) {
    if (!first) encoded.body.push_back(comma);
    first = false;
    encoded.body.push_back(
        partial ? net::MakeSegment(api::WriteJson(ToPartialMetadata(*item)->root()))
                : item->json());
  }
  encoded.body.push_back(end);
  if (negotiated.media == MediaType::kJson && !negotiated.pretty) return encoded;
  // The rare forms are made from the usual one.
  std::string json;
  for (const net::Segment& segment : encoded.body) json += *segment;
  Result<api::TreePtr> tree = api::ParseJson(json);
  if (!tree.ok()) return encoded;
  return EncodeTree(negotiated, (*tree)->root());
}

EncodedBody EncodeFailure(const Negotiated& negotiated, const Failure& failure) {
  return EncodeTree(negotiated, failure.ToTree()->root());
}

}  // namespace drakkar::apiserver
