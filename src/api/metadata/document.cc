#include "api/metadata/document.h"

#include <utility>

#include "api/codec/object_reader.h"
#include "api/json/cursor.h"
#include "api/json/json_writer.h"
#include "api/json/reader.h"
#include "api/metadata/internal/schema.h"
#include "api/tree/draft.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::metadata {
namespace {

using api::Draft;
using api::FieldName;
using api::Value;

constexpr std::string_view kKind = "DeviceMetadata";
constexpr int kMaxDepth = 100;

// --- writing ---

// A prepare waits for this, so the document is written without a tree.
using api::JsonWriter;

void Put(JsonWriter& out, std::int64_t number) {
  out.Integer(number);
}
void Put(JsonWriter& out, bool truth) {
  out.Bool(truth);
}
void Put(JsonWriter& out, const std::string& text) {
  out.String(text);
}
void Put(JsonWriter& out, const Version& version) {
  out.String(version.text);
}

struct AttributeWriter {
  void operator()(std::int64_t number) const { One("int", number); }
  void operator()(bool truth) const { One("bool", truth); }
  void operator()(const std::string& text) const { One("string", text); }
  void operator()(const Version& version) const { One("version", version); }
  void operator()(const std::vector<std::int64_t>& numbers) const { List("ints", numbers); }
  void operator()(const std::vector<bool>& truths) const { List("bools", truths); }
  void operator()(const std::vector<std::string>& texts) const { List("strings", texts); }
  void operator()(const std::vector<Version>& versions) const { List("versions", versions); }

  template <typename T>
  void One(std::string_view key, const T& value) const {
    out.BeginObject();
    out.Key(key);
    Put(out, value);
    out.EndObject();
  }
  template <typename T>
  void List(std::string_view key, const std::vector<T>& items) const {
    out.BeginObject();
    out.Key(key).BeginArray();
    for (const auto& item : items) Put(out, static_cast<const T&>(item));
    out.EndArray();
    out.EndObject();
  }

  JsonWriter& out;
};

void WriteNetworkData(const NetworkDeviceData& data, Dialect dialect, JsonWriter& out) {
  const auto write_ips = [&](std::string_view key) {
    if (!data.ips.empty()) out.Array(key, data.ips);
  };
  const auto write_hardware_address = [&](std::string_view key) {
    if (!data.hardware_address.empty()) out.Member(key, data.hardware_address);
  };
  out.BeginObject();
  if (!data.interface_name.empty()) out.Member("interfaceName", data.interface_name);
  write_ips("ips");
  write_hardware_address("hardwareAddress");
  if (dialect == Dialect::kKep) {
    write_ips("addresses");
    write_hardware_address("hwAddress");
  }
  out.EndObject();
}

void WriteDevice(const Device& device, Dialect dialect, JsonWriter& out) {
  out.BeginObject();
  out.Member("driver", device.driver);
  out.Member("pool", device.pool);
  out.Member("name", device.name);
  if (!device.attributes.empty()) {
    out.Key("attributes").BeginObject();
    for (const auto& [name, value] : device.attributes) {
      out.Key(name);
      std::visit(AttributeWriter{out}, value);
    }
    out.EndObject();
  }
  if (device.network_data.has_value()) {
    out.Key("networkData");
    WriteNetworkData(*device.network_data, dialect, out);
  }
  out.EndObject();
}

std::string WriteDocument(const DeviceMetadata& metadata, std::string_view version,
                          Dialect dialect) {
  JsonWriter out({.indent = 2, .final_newline = true});
  out.BeginObject();
  out.Member("kind", kKind);
  out.Member("apiVersion", version);
  out.Key("metadata").BeginObject();
  if (!metadata.claim_name.empty()) out.Member("name", metadata.claim_name);
  if (!metadata.claim_namespace.empty()) out.Member("namespace", metadata.claim_namespace);
  if (!metadata.claim_uid.empty()) out.Member("uid", metadata.claim_uid);
  if (metadata.generation != 0) out.Key("generation").Integer(metadata.generation);
  out.EndObject();
  if (metadata.pod_claim_name.has_value()) out.Member("podClaimName", *metadata.pod_claim_name);
  if (!metadata.requests.empty()) {
    out.Key("requests").BeginArray();
    for (const Request& request : metadata.requests) {
      out.BeginObject();
      out.Member("name", request.name);
      if (!request.devices.empty()) {
        out.Key("devices").BeginArray();
        for (const Device& device : request.devices) WriteDevice(device, dialect, out);
        out.EndArray();
      }
      out.EndObject();
    }
    out.EndArray();
  }
  out.EndObject();
  return out.Take();
}

// --- reading ---

Error BadDocument(std::string_view reason) {
  return InvalidArgument(StrCat("decode metadata object: ", reason));
}

// What a document claims to be. Only these two fields are read.
struct TypeMeta {
  std::string api_version;
  std::string kind;
};

// Go's error for a document that is not an object.
constexpr std::string_view kTypeMetaGoType =
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; "
    "Kind string \"json:\\\"kind,omitempty\\\"\" }";

std::string_view KindOfJson(Value value) {
  switch (value.kind()) {
    case api::ValueKind::kBool:
      return "bool";
    case api::ValueKind::kInt:
    case api::ValueKind::kDouble:
      return "number";
    case api::ValueKind::kString:
      return "string";
    case api::ValueKind::kArray:
      return "array";
    default:
      return "object";
  }
}

Result<TypeMeta> ReadTypeMeta(std::string_view text) {
  ASSIGN_OR_RETURN(const api::TreePtr tree,
                   api::ParseJson(text, {.max_depth = kMaxDepth, .refuse_duplicates = false}));
  const Value root = tree->root();
  TypeMeta meta;
  if (!root.has_value()) return meta;
  if (!root.is_object()) {
    return BadDocument(
        StrCat("couldn't get version/kind; json parse error: json: cannot unmarshal ",
               KindOfJson(root), " into Go value of type ", kTypeMetaGoType));
  }
  for (const auto& [name, field] : {std::pair(FieldName("apiVersion"), &meta.api_version),
                                    std::pair(FieldName("kind"), &meta.kind)}) {
    const Value value = root[name];
    if (!value.has_value()) continue;
    if (!value.is_string()) {
      return BadDocument(
          StrCat("couldn't get version/kind; json parse error: json: cannot unmarshal ",
                 KindOfJson(value), " into Go struct field .", name, " of type string"));
    }
    *field = value.str();
  }
  return meta;
}

// "v1" of "group/v1"; an error if there are several slashes.
Result<std::string> VersionPart(const std::string& api_version) {
  if (api_version.empty() || api_version == "/") return std::string();
  const std::size_t slash = api_version.find('/');
  if (slash == std::string::npos) return api_version;
  if (api_version.find('/', slash + 1) != std::string::npos) {
    return BadDocument("unexpected GroupVersion string: " + api_version);
  }
  return api_version.substr(slash + 1);
}

std::vector<std::string> Texts(Value list) {
  std::vector<std::string> texts;
  for (const Value item : list.elements()) texts.emplace_back(item.str());
  return texts;
}

// The value of an attribute; nothing if its type is unknown.
Result<std::optional<AttributeValue>> ReadAttribute(std::string_view name, Value attribute) {
  std::optional<AttributeValue> result;
  for (const auto& [key, type, value] : attribute.members()) {
    if (result.has_value()) {
      return InvalidArgument(StrCat("attribute ", Quote(name), " has more than one value"));
    }
    if (type == "int") {
      result = value.integer();
    } else if (type == "bool") {
      result = value.boolean();
    } else if (type == "string") {
      result = std::string(value.str());
    } else if (type == "version") {
      result = Version{std::string(value.str())};
    } else if (type == "ints") {
      std::vector<std::int64_t> numbers;
      for (const Value item : value.elements()) numbers.push_back(item.integer());
      result = std::move(numbers);
    } else if (type == "bools") {
      std::vector<bool> truths;
      for (const Value item : value.elements()) truths.push_back(item.boolean());
      result = std::move(truths);
    } else if (type == "strings") {
      result = Texts(value);
    } else if (type == "versions") {
      std::vector<Version> versions;
      for (const Value item : value.elements()) versions.push_back({std::string(item.str())});
      result = std::move(versions);
    }
  }
  return result;
}

// The API's keys take precedence over those of the KEP's examples.
NetworkDeviceData ReadNetworkData(Value value) {
  NetworkDeviceData data;
  data.interface_name = value["interfaceName"].str();
  data.ips = Texts(value["ips"].has_value() ? value["ips"] : value["addresses"]);
  data.hardware_address = value["hardwareAddress"].str(value["hwAddress"].str());
  return data;
}

Result<Device> ReadDevice(Value value) {
  Device device;
  device.driver = value["driver"].str();
  device.pool = value["pool"].str();
  device.name = value["name"].str();
  for (const auto& [key, name, attribute] : value["attributes"].members()) {
    ASSIGN_OR_RETURN(auto read, ReadAttribute(name, attribute));
    if (read.has_value()) device.attributes.emplace(name, *std::move(read));
  }
  if (value["networkData"].is_object()) device.network_data = ReadNetworkData(value["networkData"]);
  return device;
}

}  // namespace

bool IsKnownVersion(std::string_view api_version) {
  return api_version == kV1alpha1 || api_version == kV1beta1;
}

std::string EncodeMetadata(const DeviceMetadata& metadata, std::span<const std::string> versions,
                           Dialect dialect) {
  std::string out;
  for (const std::string& version : versions) {
    CHECK(IsKnownVersion(version));
    out += WriteDocument(metadata, version, dialect);
  }
  return out;
}

Result<Document> DecodeDocument(std::string_view stream, const DecodeOptions& options) {
  if (stream.size() > kMaxFileBytes) {
    return InvalidArgument(StrCat("the metadata has ", stream.size(),
                                  " bytes, more than the limit of ", kMaxFileBytes));
  }
  api::Arena arena;
  api::JsonCursor cursor(stream, arena, kMaxDepth);
  std::vector<std::string> unknown_versions;
  // Like Go's stream decoder, treats a closing bracket as the end.
  for (char next = cursor.Peek();
       cursor.at() != stream.data() + stream.size() && next != '}' && next != ']';
       next = cursor.Peek()) {
    std::string_view text;
    if (!cursor.ReadRaw(text)) {
      const bool cut_off = cursor.error() == "unexpected end of JSON input";
      return InvalidArgument(StrCat("read metadata object from stream: ",
                                    cut_off ? "unexpected EOF" : cursor.error()));
    }
    ASSIGN_OR_RETURN(const TypeMeta meta, ReadTypeMeta(text));
    ASSIGN_OR_RETURN(const std::string version, VersionPart(meta.api_version));
    const std::string where =
        version.empty() ? "decode metadata object: " : StrCat("decode ", meta.api_version, ": ");
    if (meta.kind.empty()) {
      return InvalidArgument(StrCat(where, "Object 'Kind' is missing in '", text, "'"));
    }
    if (version.empty()) {
      return InvalidArgument(StrCat(where, "Object 'apiVersion' is missing in '", text, "'"));
    }
    const api::StructSchema* schema = internal::FindSchema(meta.api_version, options.dialect);
    if (schema == nullptr) {
      unknown_versions.push_back(meta.api_version);
      continue;
    }
    if (meta.kind != kKind) {
      return InvalidArgument(
          StrCat(where, "no kind ", Quote(meta.kind), " is registered for version ",
                 Quote(meta.api_version),
                 " in scheme \"k8s.io/dynamic-resource-allocation/api/metadata/install/"
                 "install.go:41\""));
    }
    auto read = api::ReadObject(
        text, *schema,
        {.strictness = api::Strictness::kIgnore, .max_depth = kMaxDepth, .zero_values = true});
    if (!read.ok()) return InvalidArgument(where + read.error().message);
    return Document{meta.api_version, std::move(read->tree)};
  }
  if (unknown_versions.empty()) return NotFound("no metadata objects found in stream");
  return InvalidArgument(
      StrCat("no compatible metadata version found in stream (unknown versions: ",
             Join(unknown_versions, ", "), ")"));
}

api::TreePtr ConvertDocument(const Document& document, std::string_view api_version) {
  Draft draft(document.tree);
  draft.Remove("kind");
  draft.Remove("apiVersion");
  if (!api_version.empty()) {
    Draft::Members& members = draft.MutableMembers();
    members.insert(members.begin(), {{api::KeyRef("kind"), Draft(kKind)},
                                     {api::KeyRef("apiVersion"), Draft(api_version)}});
  }
  return draft.Freeze();
}

Result<DeviceMetadata> ToDeviceMetadata(const Document& document) {
  const Value root = document.tree->root();
  DeviceMetadata metadata;
  metadata.claim_name = root["metadata"]["name"].str();
  metadata.claim_namespace = root["metadata"]["namespace"].str();
  metadata.claim_uid = root["metadata"]["uid"].str();
  metadata.generation = root["metadata"]["generation"].integer();
  if (const Value name = root["podClaimName"]; name.is_string()) {
    metadata.pod_claim_name = std::string(name.str());
  }
  for (const Value request : root["requests"].elements()) {
    Request& entry = metadata.requests.emplace_back();
    entry.name = request["name"].str();
    for (const Value device : request["devices"].elements()) {
      ASSIGN_OR_RETURN(Device read, ReadDevice(device));
      entry.devices.push_back(std::move(read));
    }
  }
  return metadata;
}

Result<DeviceMetadata> DecodeMetadata(std::string_view stream, const DecodeOptions& options) {
  ASSIGN_OR_RETURN(const Document document, DecodeDocument(stream, options));
  return ToDeviceMetadata(document);
}

DeviceMetadata MergeMetadata(const std::vector<DeviceMetadata>& files, Dialect dialect) {
  DeviceMetadata merged;
  if (dialect == Dialect::kKep && !files.empty()) {
    merged = files.front();
    merged.pod_claim_name.reset();
    merged.requests.clear();
  }
  for (const DeviceMetadata& file : files) {
    if (!merged.pod_claim_name.has_value()) merged.pod_claim_name = file.pod_claim_name;
    for (const Request& request : file.requests) {
      Request* same = nullptr;
      for (Request& known : merged.requests) {
        if (known.name == request.name) same = &known;
      }
      if (same == nullptr) {
        merged.requests.push_back(request);
      } else {
        same->devices.insert(same->devices.end(), request.devices.begin(), request.devices.end());
      }
    }
  }
  return merged;
}

}  // namespace drakkar::metadata
