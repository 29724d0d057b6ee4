#include "cdi/spec_reader.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "api/codec/yaml_reader.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/text/text.h"
#include "cdi/validate.h"

namespace drakkar::cdi {
namespace {

using api::FieldName;
using api::Value;
using api::ValueKind;

constexpr int kMaxDepth = 32;
// Limit for the tree of a spec after YAML aliases are expanded: several times the largest file.
constexpr std::size_t kMaxExpandedBytes = 16u << 20;

// A part of a spec file.
struct Part {
  Value value;
  // In YAML a number or boolean without quotes stands for its text where a string is expected
  // (`name: 0`), as in Go.
  bool is_yaml = false;

  Part With(Value other) const { return {other, is_yaml}; }
  std::optional<std::string> Text() const {
    if (value.is_string()) return std::string(value.str());
    const bool is_scalar = value.kind() == ValueKind::kBool || value.kind() == ValueKind::kInt ||
                           value.kind() == ValueKind::kDouble;
    if (is_yaml && is_scalar) return api::WriteJson(value);
    return std::nullopt;
  }
};

// Reads the known fields of one object and keeps the first error. `Finish` also rejects fields that
// were not read. `place` is the object's path, empty for the document itself.
class Fields {
 public:
  Fields(const Part& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object.value.is_object()) Fail(place_, "must be an object");
  }

  void Text(FieldName key, std::string* out) {
    const Value value = Find(key);
    if (!value.exists()) return;
    std::optional<std::string> text = object_.With(value).Text();
    if (!text) return Fail(Place(key), "must be a string");
    *out = std::move(*text);
  }

  void Flag(FieldName key, bool* out) {
    const Value value = Find(key);
    if (!value.exists()) return;
    if (value.kind() != ValueKind::kBool) return Fail(Place(key), "must be true or false");
    *out = value.boolean();
  }

  void Integer(FieldName key, std::int64_t* out) {
    if (const Value value = Find(key); value.exists()) ReadInteger(value, Place(key), out);
  }

  void Integer(FieldName key, std::optional<std::int64_t>* out) {
    if (const Value value = Find(key); value.exists()) {
      ReadInteger(value, Place(key), &out->emplace());
    }
  }

  void Unsigned32(FieldName key, std::optional<std::uint32_t>* out) {
    if (const Value value = Find(key); value.exists()) {
      ReadUnsigned32(value, Place(key), &out->emplace());
    }
  }

  void Texts(FieldName key, std::vector<std::string>* out) {
    Each(key, out, [this](const Part& item, const std::string& place, std::string* text) {
      std::optional<std::string> read = item.Text();
      if (!read) return Fail(place, "must be a string");
      *text = std::move(*read);
    });
  }

  void Unsigned32s(FieldName key, std::vector<std::uint32_t>* out) {
    Each(key, out, [this](const Part& item, const std::string& place, std::uint32_t* number) {
      ReadUnsigned32(item.value, place, number);
    });
  }

  void TextMap(FieldName key, std::map<std::string, std::string>* out) {
    const Value value = Find(key);
    if (!value.exists()) return;
    if (!value.is_object()) return Fail(Place(key), "must be an object");
    for (const api::MemberView member : value.members()) {
      std::optional<std::string> text = object_.With(member.value).Text();
      if (!text) {
        return Fail(StrCat(Place(key), "[", Quote(member.name), "]"), "must be a string");
      }
      (*out)[std::string(member.name)] = std::move(*text);
    }
  }

  template <typename T>
  void Object(FieldName key, T* out, Result<void> (*read)(const Part&, std::string, T*)) {
    if (const Value value = Find(key); value.exists()) {
      Keep(read(object_.With(value), Place(key), out));
    }
  }

  template <typename T>
  void Objects(FieldName key, std::vector<T>* out,
               Result<void> (*read)(const Part&, std::string, T*)) {
    Each(key, out, [this, read](const Part& item, const std::string& place, T* element) {
      Keep(read(item, place, element));
    });
  }

  template <typename T>
  void Object(FieldName key, std::optional<T>* out,
              Result<void> (*read)(const Part&, std::string, T*)) {
    if (const Value value = Find(key); value.exists()) {
      Keep(read(object_.With(value), Place(key), &out->emplace()));
    }
  }

  Result<void> Finish() {
    for (const api::MemberView member : object_.value.members()) {
      if (!result_.ok()) break;
      if (std::find(asked_.begin(), asked_.end(), member.key) == asked_.end()) {
        Fail(place_, StrCat("unknown field ", Quote(member.name)));
      }
    }
    return std::move(result_);
  }

 private:
  // The value; absent if it is null or if an error was found before.
  Value Find(FieldName key) {
    asked_.push_back(&key.key());
    const Value value = object_.value[key];
    return value.has_value() && result_.ok() ? value : Value();
  }

  std::string Place(FieldName key) const {
    return place_.empty() ? std::string(key) : StrCat(place_, ".", key.view());
  }

  template <typename T, typename Read>
  void Each(FieldName key, std::vector<T>* out, Read read) {
    const Value value = Find(key);
    if (!value.exists()) return;
    if (!value.is_array()) return Fail(Place(key), "must be an array");
    for (std::size_t i = 0; i < value.size() && result_.ok(); ++i) {
      read(object_.With(value.at(i)), StrCat(Place(key), "[", i, "]"), &out->emplace_back());
    }
  }

  void ReadInteger(Value value, const std::string& place, std::int64_t* out) {
    const std::optional<std::int64_t> number = value.optional_integer();
    if (!number.has_value()) return Fail(place, "must be an integer");
    *out = *number;
  }

  void ReadUnsigned32(Value value, const std::string& place, std::uint32_t* out) {
    std::int64_t number = 0;
    ReadInteger(value, place, &number);
    if (number < 0 || number > std::numeric_limits<std::uint32_t>::max()) {
      return Fail(place, "must be between 0 and 4294967295");
    }
    *out = static_cast<std::uint32_t>(number);
  }

  void Fail(std::string_view place, std::string_view reason) {
    Keep(InvalidArgument(place.empty() ? std::string(reason) : StrCat(place, ": ", reason)));
  }
  void Keep(Result<void> result) {
    if (result_.ok()) result_ = std::move(result);
  }

  const Part object_;
  const std::string place_;
  std::vector<const api::Key*> asked_;
  Result<void> result_;
};

Result<void> ReadDeviceNode(const Part& part, std::string place, DeviceNode* node) {
  Fields fields(part, std::move(place));
  fields.Text("path", &node->path);
  fields.Text("hostPath", &node->host_path);
  fields.Text("type", &node->type);
  fields.Integer("major", &node->major);
  fields.Integer("minor", &node->minor);
  fields.Unsigned32("fileMode", &node->file_mode);
  fields.Text("permissions", &node->permissions);
  fields.Unsigned32("uid", &node->uid);
  fields.Unsigned32("gid", &node->gid);
  return fields.Finish();
}

Result<void> ReadNetDevice(const Part& part, std::string place, NetDevice* device) {
  Fields fields(part, std::move(place));
  fields.Text("hostInterfaceName", &device->host_interface_name);
  fields.Text("name", &device->name);
  return fields.Finish();
}

Result<void> ReadHook(const Part& part, std::string place, Hook* hook) {
  Fields fields(part, std::move(place));
  fields.Text("hookName", &hook->hook_name);
  fields.Text("path", &hook->path);
  fields.Texts("args", &hook->args);
  fields.Texts("env", &hook->env);
  fields.Integer("timeout", &hook->timeout_seconds);
  return fields.Finish();
}

Result<void> ReadMount(const Part& part, std::string place, Mount* mount) {
  Fields fields(part, std::move(place));
  fields.Text("hostPath", &mount->host_path);
  fields.Text("containerPath", &mount->container_path);
  fields.Texts("options", &mount->options);
  fields.Text("type", &mount->type);
  return fields.Finish();
}

Result<void> ReadIntelRdt(const Part& part, std::string place, IntelRdt* rdt) {
  Fields fields(part, std::move(place));
  fields.Text("closID", &rdt->clos_id);
  fields.Text("l3CacheSchema", &rdt->l3_cache_schema);
  fields.Text("memBwSchema", &rdt->mem_bw_schema);
  fields.Flag("enableCMT", &rdt->enable_cmt);
  fields.Flag("enableMBM", &rdt->enable_mbm);
  fields.Texts("schemata", &rdt->schemata);
  fields.Flag("enableMonitoring", &rdt->enable_monitoring);
  return fields.Finish();
}

Result<void> ReadEdits(const Part& part, std::string place, ContainerEdits* edits) {
  Fields fields(part, std::move(place));
  fields.Texts("env", &edits->env);
  fields.Objects("deviceNodes", &edits->device_nodes, ReadDeviceNode);
  fields.Objects("netDevices", &edits->net_devices, ReadNetDevice);
  fields.Objects("hooks", &edits->hooks, ReadHook);
  fields.Objects("mounts", &edits->mounts, ReadMount);
  fields.Object("intelRdt", &edits->intel_rdt, ReadIntelRdt);
  fields.Unsigned32s("additionalGids", &edits->additional_gids);
  return fields.Finish();
}

Result<void> ReadDevice(const Part& part, std::string place, Device* device) {
  Fields fields(part, std::move(place));
  fields.Text("name", &device->name);
  fields.TextMap("annotations", &device->annotations);
  fields.Object("containerEdits", &device->container_edits, ReadEdits);
  return fields.Finish();
}

Result<Spec> ReadSpec(const Part& part) {
  Spec spec;
  Fields fields(part, std::string());
  fields.Text("cdiVersion", &spec.cdi_version);
  fields.Text("kind", &spec.kind);
  fields.TextMap("annotations", &spec.annotations);
  fields.Objects("devices", &spec.devices, ReadDevice);
  fields.Object("containerEdits", &spec.container_edits, ReadEdits);
  RETURN_IF_ERROR(fields.Finish());
  RETURN_IF_ERROR(ValidateSpec(spec));
  return spec;
}

Result<void> CheckText(std::string_view text) {
  if (text.size() > kMaxSpecBytes) {
    return InvalidArgument(
        StrCat("the document has ", text.size(), " bytes, more than ", kMaxSpecBytes));
  }
  if (!IsValidUtf8(text)) return InvalidArgument("the document is not valid UTF-8");
  return Ok();
}

}  // namespace

Result<Spec> ReadSpecJson(std::string_view text) {
  RETURN_IF_ERROR(CheckText(text));
  ASSIGN_OR_RETURN(const api::TreePtr tree, api::ParseJson(text, {.max_depth = kMaxDepth,
                                                                  .max_size_bytes = kMaxSpecBytes,
                                                                  .position_in_errors = true}));
  return ReadSpec({tree->root()});
}

Result<Spec> ReadSpecYaml(std::string_view text) {
  RETURN_IF_ERROR(CheckText(text));
  ASSIGN_OR_RETURN(const std::vector<api::TreePtr> documents,
                   api::ParseYaml(text, {.max_depth = kMaxDepth,
                                         .max_size_bytes = kMaxSpecBytes,
                                         .max_expanded_bytes = kMaxExpandedBytes}));
  if (documents.empty()) return InvalidArgument("the document is empty");
  return ReadSpec({documents.front()->root(), /*is_yaml=*/true});
}

}  // namespace drakkar::cdi
