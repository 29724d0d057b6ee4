#include "apiserver/http/encode.h"

#include "api/codec/protobuf_writer.h"
#include "api/codec/yaml_writer.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kMetaVersion = "meta.k8s.io/v1";
constexpr std::string_view kPartial = "PartialObjectMetadata";
constexpr std::uint32_t kListMetadata = 1;  // of every list
constexpr std::uint32_t kListItems = 2;
constexpr std::uint32_t kEventType = 1;  // of a WatchEvent
constexpr std::uint32_t kEventObject = 2;
constexpr std::uint32_t kRawBytes = 1;  // of the RawExtension that holds the object
constexpr char kPartialTag = 0;         // its address identifies the form

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

const api::StructSchema* SchemaOf(const api::Object& object) {
  const api::KindSchema* kind = api::FindKindByApiVersion(object.api_version(), object.kind());
  return kind == nullptr ? nullptr : kind->schema;
}

// The object's message without an envelope; encoded once.
net::Segment Message(const api::Object& object, const api::StructSchema& schema) {
  return std::static_pointer_cast<const std::string>(
      object.Form(&schema, [&]() -> std::shared_ptr<const void> {
        return net::MakeSegment(api::WriteProtobuf(object.root(), schema));
      }));
}

// False if the object's kind has no schema.
bool AppendEnveloped(const api::Object& object, net::Body& body) {
  const api::StructSchema* schema = SchemaOf(object);
  if (schema == nullptr) return false;
  net::Segment message = Message(object, *schema);
  body.push_back(net::MakeSegment(
      api::ProtobufEnvelopeHead(object.api_version(), object.kind(), message->size())));
  body.push_back(std::move(message));
  return true;
}

std::size_t SizeOf(const net::Body& body) {
  std::size_t size = 0;
  for (const net::Segment& segment : body) size += segment->size();
  return size;
}

api::TreePtr ListMetadata(const Response& response) {
  api::Draft metadata = api::Draft::Object();
  metadata["resourceVersion"] = std::to_string(response.revision);
  if (!response.continue_token.empty()) metadata["continue"] = response.continue_token;
  if (response.remaining_items && *response.remaining_items > 0) {
    metadata["remainingItemCount"] = *response.remaining_items;
  }
  return metadata.Freeze();
}

struct ListType {
  std::string api_version;
  std::string kind;
};

ListType TypeOf(const api::KindSchema& kind, bool partial) {
  if (partial) return {std::string(kMetaVersion), "PartialObjectMetadataList"};
  return {kind.api_version(), StrCat(kind.kind, "List")};
}

EncodedBody EncodeProtobufList(const api::KindSchema& kind, const Response& response,
                               bool partial) {
  static const api::StructSchema& metadata_schema =
      *api::FindStruct("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta");
  const api::StructSchema& schema =
      partial ? *api::FindKindByApiVersion(kMetaVersion, kPartial)->schema : *kind.schema;
  std::string metadata;
  api::AppendBytes(metadata, kListMetadata,
                   api::WriteProtobuf(ListMetadata(response)->root(), metadata_schema));
  EncodedBody encoded;
  encoded.content_type = kProtobufType;
  encoded.body.reserve(response.items.size() * 2 + 2);
  encoded.body.push_back(nullptr);  // the head of the envelope, once its size is known
  encoded.body.push_back(net::MakeSegment(std::move(metadata)));
  std::size_t size = encoded.body.back()->size();
  for (const api::ObjectPtr& item : response.items) {
    net::Segment message =
        partial ? Message(*ToPartialMetadata(item), schema) : Message(*item, schema);
    std::string head;
    api::AppendBytesHead(head, kListItems, message->size());
    size += head.size() + message->size();
    encoded.body.push_back(net::MakeSegment(std::move(head)));
    encoded.body.push_back(std::move(message));
  }
  const ListType type = TypeOf(kind, partial);
  encoded.body.front() =
      net::MakeSegment(api::ProtobufEnvelopeHead(type.api_version, type.kind, size));
  return encoded;
}

net::Segment JsonEventHead(std::string_view type) {
  const auto make = [](std::string_view name) {
    return net::MakeSegment(StrCat("{\"type\":\"", name, "\",\"object\":"));
  };
  static const std::pair<std::string_view, net::Segment> heads[] = {
      {"ADDED", make("ADDED")},
      {"MODIFIED", make("MODIFIED")},
      {"DELETED", make("DELETED")},
      {"BOOKMARK", make("BOOKMARK")},
  };
  for (const auto& [name, head] : heads) {
    if (name == type) return head;
  }
  return make(type);
}

void AppendFrame(std::string_view type, const api::Object& object, net::Body& body) {
  net::Body enveloped;
  if (!AppendEnveloped(object, enveloped)) return;
  const std::size_t size = SizeOf(enveloped);
  std::string raw;
  api::AppendBytesHead(raw, kRawBytes, size);
  std::string event;
  api::AppendBytes(event, kEventType, type);
  api::AppendBytesHead(event, kEventObject, raw.size() + size);
  event += raw;
  const std::size_t total = event.size() + size;
  std::string frame;
  for (int shift : {24, 16, 8, 0}) frame += static_cast<char>(total >> shift & 0xff);
  body.push_back(net::MakeSegment(frame + event));
  for (net::Segment& segment : enveloped) body.push_back(std::move(segment));
}

}  // namespace

api::ObjectPtr ToPartialMetadata(const api::ObjectPtr& object) {
  return std::static_pointer_cast<const api::Object>(
      object->Form(&kPartialTag, [&]() -> std::shared_ptr<const void> {
        api::Draft partial = api::Draft::Object();
        partial["kind"] = kPartial;
        partial["apiVersion"] = kMetaVersion;
        partial["metadata"] = api::Draft((*object)["metadata"]);
        return std::make_shared<const api::Object>(partial.Freeze());
      }));
}

EncodedBody EncodeObject(const Negotiated& negotiated, const api::ObjectPtr& object) {
  const bool partial = negotiated.shape == Shape::kPartialMetadata && object->kind() != "Status";
  const api::ObjectPtr shown = partial ? ToPartialMetadata(object) : object;
  if (negotiated.media == MediaType::kProtobuf) {
    EncodedBody encoded;
    encoded.content_type = kProtobufType;
    if (AppendEnveloped(*shown, encoded.body)) return encoded;
    return EncodeTree(Negotiated{}, shown->root());
  }
  if (negotiated.media == MediaType::kJson && !negotiated.pretty) {
    return {std::string(kJsonType), {shown->json()}};
  }
  return EncodeTree(negotiated, shown->root());
}

EncodedBody EncodeList(const Negotiated& negotiated, const api::KindSchema& kind,
                       const Response& response) {
  static const net::Segment comma = net::MakeSegment(",");
  static const net::Segment end = net::MakeSegment("]}\n");
  const bool partial = negotiated.shape == Shape::kPartialMetadata;
  if (negotiated.media == MediaType::kProtobuf) {
    return EncodeProtobufList(kind, response, partial);
  }
  const ListType type = TypeOf(kind, partial);
  EncodedBody encoded;
  encoded.content_type = kJsonType;
  encoded.body.reserve(response.items.size() * 2 + 2);
  encoded.body.push_back(net::MakeSegment(
      StrCat("{\"kind\":\"", type.kind, "\",\"apiVersion\":\"", type.api_version,
             "\",\"metadata\":", api::WriteJson(ListMetadata(response)->root()), ",\"items\":[")));
  bool first = true;
  for (const api::ObjectPtr& item : response.items) {
    if (!first) encoded.body.push_back(comma);
    first = false;
    encoded.body.push_back(partial ? ToPartialMetadata(item)->json() : item->json());
  }
  encoded.body.push_back(end);
  if (negotiated.media == MediaType::kJson && !negotiated.pretty) return encoded;
  // The rare forms are derived from the common one.
  std::string json;
  for (const net::Segment& segment : encoded.body) json += *segment;
  Result<api::TreePtr> tree = api::ParseJson(json);
  if (!tree.ok()) return encoded;
  return EncodeTree(negotiated, (*tree)->root());
}

EncodedBody EncodeFailure(const Negotiated& negotiated, const Failure& failure,
                          const std::string& continue_token) {
  Negotiated plain = negotiated;
  plain.shape = Shape::kObject;
  api::TreePtr tree = failure.ToTree();
  if (!continue_token.empty()) {
    api::Draft draft(tree);
    draft["metadata"]["continue"] = continue_token;
    tree = draft.Freeze();
  }
  return EncodeObject(plain, std::make_shared<const api::Object>(std::move(tree)));
}

EncodedBody EncodeDocument(const Negotiated& negotiated, const net::Segment& json) {
  // Discovery has protobuf messages of its own, which we do not implement; all clients also accept
  // JSON.
  if (negotiated.media == MediaType::kProtobuf ||
      (negotiated.media == MediaType::kJson && !negotiated.pretty)) {
    return {std::string(kJsonType), {json}};
  }
  Result<api::TreePtr> tree = api::ParseJson(*json);
  if (!tree.ok()) return {std::string(kJsonType), {json}};
  return EncodeTree(negotiated, (*tree)->root());
}

void AppendEvent(const Negotiated& negotiated, std::string_view type, const api::ObjectPtr& object,
                 net::Body& body) {
  static const net::Segment end = net::MakeSegment("}\n");
  const bool partial = negotiated.shape == Shape::kPartialMetadata && object->kind() != "Status";
  const api::ObjectPtr shown = partial ? ToPartialMetadata(object) : object;
  if (negotiated.media == MediaType::kProtobuf) return AppendFrame(type, *shown, body);
  body.push_back(JsonEventHead(type));
  body.push_back(shown->json());
  body.push_back(end);
}

std::string_view WatchContentType(const Negotiated& negotiated) {
  return negotiated.media == MediaType::kProtobuf
             ? "application/vnd.kubernetes.protobuf;stream=watch"
             : kJsonType;
}

}  // namespace drakkar::apiserver
