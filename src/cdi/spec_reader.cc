#include "cdi/spec_reader.h"

#include <limits>
#include <utility>

#include "base/text/text.h"
#include "cdi/validate.h"

namespace drakkar::cdi {
namespace {

using Kind = Document::Kind;

// Takes the known fields out of one object and keeps the first error. `Finish` also refuses what
// was not asked for. `place` is the object's path, empty for the document itself.
class Fields {
 public:
  Fields(const Document& object, std::string place)
      : object_(object), place_(std::move(place)), seen_(object.members.size(), false) {
    if (object.kind != Kind::kObject) Fail(place_, "must be an object");
  }

  void Text(std::string_view key, std::string* out) {
    const Document* value = Find(key);
    if (value == nullptr) return;
    if (!IsText(*value)) return Fail(Place(key), "must be a string");
    *out = value->text;
  }

  void Flag(std::string_view key, bool* out) {
    const Document* value = Find(key);
    if (value == nullptr) return;
    if (value->kind != Kind::kBool) return Fail(Place(key), "must be true or false");
    *out = value->boolean;
  }

  void Integer(std::string_view key, std::int64_t* out) {
    if (const Document* value = Find(key)) ReadInteger(*value, Place(key), out);
  }

  void Integer(std::string_view key, std::optional<std::int64_t>* out) {
    if (const Document* value = Find(key)) ReadInteger(*value, Place(key), &out->emplace());
  }

  void Unsigned32(std::string_view key, std::optional<std::uint32_t>* out) {
    if (const Document* value = Find(key)) ReadUnsigned32(*value, Place(key), &out->emplace());
  }

  void Texts(std::string_view key, std::vector<std::string>* out) {
    Each(key, out, [this](const Document& item, const std::string& place, std::string* text) {
      if (!IsText(item)) return Fail(place, "must be a string");
      *text = item.text;
    });
  }

  void Unsigned32s(std::string_view key, std::vector<std::uint32_t>* out) {
    Each(key, out, [this](const Document& item, const std::string& place, std::uint32_t* number) {
      ReadUnsigned32(item, place, number);
    });
  }

  void TextMap(std::string_view key, std::map<std::string, std::string>* out) {
    const Document* value = Find(key);
    if (value == nullptr) return;
    if (value->kind != Kind::kObject) return Fail(Place(key), "must be an object");
    for (const auto& [name, text] : value->members) {
      if (!IsText(text)) {
        return Fail(StrCat(Place(key), "[", Quote(name), "]"), "must be a string");
      }
      (*out)[name] = text.text;
    }
  }

  template <typename T>
  void Object(std::string_view key, T* out,
              Result<void> (*read)(const Document&, std::string, T*)) {
    if (const Document* value = Find(key)) Keep(read(*value, Place(key), out));
  }

  template <typename T>
  void Objects(std::string_view key, std::vector<T>* out,
               Result<void> (*read)(const Document&, std::string, T*)) {
    Each(key, out, [this, read](const Document& item, const std::string& place, T* element) {
      Keep(read(item, place, element));
    });
  }

  template <typename T>
  void Object(std::string_view key, std::optional<T>* out,
              Result<void> (*read)(const Document&, std::string, T*)) {
    if (const Document* value = Find(key)) Keep(read(*value, Place(key), &out->emplace()));
  }

  Result<void> Finish() {
    for (std::size_t i = 0; i < seen_.size() && result_.ok(); ++i) {
      if (!seen_[i]) Fail(place_, StrCat("unknown field ", Quote(object_.members[i].first)));
    }
    return std::move(result_);
  }

 private:
  static bool IsText(const Document& value) {
    return value.kind == Kind::kString || value.is_plain;
  }

  // The value, or null when it is absent, null, or an error has been found already.
  const Document* Find(std::string_view key) {
    for (std::size_t i = 0; i < object_.members.size(); ++i) {
      if (object_.members[i].first != key) continue;
      seen_[i] = true;
      const Document& value = object_.members[i].second;
      return value.kind == Kind::kNull || !result_.ok() ? nullptr : &value;
    }
    return nullptr;
  }

  std::string Place(std::string_view key) const {
    return place_.empty() ? std::string(key) : StrCat(place_, ".", key);
  }

  template <typename T, typename Read>
  void Each(std::string_view key, std::vector<T>* out, Read read) {
    const Document* value = Find(key);
    if (value == nullptr) return;
    if (value->kind != Kind::kArray) return Fail(Place(key), "must be an array");
    for (std::size_t i = 0; i < value->items.size() && result_.ok(); ++i) {
      read(value->items[i], StrCat(Place(key), "[", i, "]"), &out->emplace_back());
    }
  }

  void ReadInteger(const Document& value, const std::string& place, std::int64_t* out) {
    const std::optional<std::int64_t> number =
        value.kind == Kind::kNumber ? ParseInt64(value.text) : std::nullopt;
    if (!number.has_value()) return Fail(place, "must be an integer");
    *out = *number;
  }

  void ReadUnsigned32(const Document& value, const std::string& place, std::uint32_t* out) {
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

  const Document& object_;
  const std::string place_;
  std::vector<bool> seen_;
  Result<void> result_;
};

Result<void> ReadDeviceNode(const Document& document, std::string place, DeviceNode* node) {
  Fields fields(document, std::move(place));
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

Result<void> ReadNetDevice(const Document& document, std::string place, NetDevice* device) {
  Fields fields(document, std::move(place));
  fields.Text("hostInterfaceName", &device->host_interface_name);
  fields.Text("name", &device->name);
  return fields.Finish();
}

Result<void> ReadHook(const Document& document, std::string place, Hook* hook) {
  Fields fields(document, std::move(place));
  fields.Text("hookName", &hook->hook_name);
  fields.Text("path", &hook->path);
  fields.Texts("args", &hook->args);
  fields.Texts("env", &hook->env);
  fields.Integer("timeout", &hook->timeout_seconds);
  return fields.Finish();
}

Result<void> ReadMount(const Document& document, std::string place, Mount* mount) {
  Fields fields(document, std::move(place));
  fields.Text("hostPath", &mount->host_path);
  fields.Text("containerPath", &mount->container_path);
  fields.Texts("options", &mount->options);
  fields.Text("type", &mount->type);
  return fields.Finish();
}

Result<void> ReadIntelRdt(const Document& document, std::string place, IntelRdt* rdt) {
  Fields fields(document, std::move(place));
  fields.Text("closID", &rdt->clos_id);
  fields.Text("l3CacheSchema", &rdt->l3_cache_schema);
  fields.Text("memBwSchema", &rdt->mem_bw_schema);
  fields.Flag("enableCMT", &rdt->enable_cmt);
  fields.Flag("enableMBM", &rdt->enable_mbm);
  fields.Texts("schemata", &rdt->schemata);
  fields.Flag("enableMonitoring", &rdt->enable_monitoring);
  return fields.Finish();
}

Result<void> ReadEdits(const Document& document, std::string place, ContainerEdits* edits) {
  Fields fields(document, std::move(place));
  fields.Texts("env", &edits->env);
  fields.Objects("deviceNodes", &edits->device_nodes, ReadDeviceNode);
  fields.Objects("netDevices", &edits->net_devices, ReadNetDevice);
  fields.Objects("hooks", &edits->hooks, ReadHook);
  fields.Objects("mounts", &edits->mounts, ReadMount);
  fields.Object("intelRdt", &edits->intel_rdt, ReadIntelRdt);
  fields.Unsigned32s("additionalGids", &edits->additional_gids);
  return fields.Finish();
}

Result<void> ReadDevice(const Document& document, std::string place, Device* device) {
  Fields fields(document, std::move(place));
  fields.Text("name", &device->name);
  fields.TextMap("annotations", &device->annotations);
  fields.Object("containerEdits", &device->container_edits, ReadEdits);
  return fields.Finish();
}

}  // namespace

Result<Spec> ReadSpec(const Document& document) {
  Spec spec;
  Fields fields(document, std::string());
  fields.Text("cdiVersion", &spec.cdi_version);
  fields.Text("kind", &spec.kind);
  fields.TextMap("annotations", &spec.annotations);
  fields.Objects("devices", &spec.devices, ReadDevice);
  fields.Object("containerEdits", &spec.container_edits, ReadEdits);
  RETURN_IF_ERROR(fields.Finish());
  RETURN_IF_ERROR(ValidateSpec(spec));
  return spec;
}

Result<Spec> ReadSpecJson(std::string_view text) {
  ASSIGN_OR_RETURN(const Document document, ParseJsonDocument(text));
  return ReadSpec(document);
}

Result<Spec> ReadSpecYaml(std::string_view text) {
  ASSIGN_OR_RETURN(const Document document, ParseYamlDocument(text));
  return ReadSpec(document);
}

}  // namespace drakkar::cdi
