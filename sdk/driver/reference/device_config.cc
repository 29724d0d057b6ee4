#include "sdk/driver/reference/device_config.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "api/codec/yaml_locate.h"
#include "api/codec/yaml_reader.h"
#include "api/json/writer.h"
#include "api/meta/names.h"
#include "api/meta/quantity.h"
#include "api/meta/semver.h"
#include "base/text/text.h"
#include "cdi/names.h"

namespace drakkar::driver {
namespace {

using api::Value;
using api::ValueKind;
using Path = std::vector<std::string>;

constexpr std::int64_t kDefaultCount = 4;
constexpr std::size_t kMaxAttributeTextBytes = 64;  // the API's limit

Path Below(Path path, std::string_view name) {
  path.emplace_back(name);
  return path;
}

// "devices[1].name".
std::string PathText(const Path& path) {
  std::string text;
  for (const std::string& part : path) {
    if (ParseInt64(part)) {
      text += StrCat("[", part, "]");
    } else {
      text += StrCat(text.empty() ? "" : ".", part);
    }
  }
  return text;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<DeviceConfig> Parse() {
    DeviceConfig config;
    ASSIGN_OR_RETURN(const std::vector<api::TreePtr> documents, api::ParseYaml(text_));
    if (documents.size() > 1) {
      return InvalidArgument("only one document is allowed; the second starts at line " +
                             std::to_string(SecondDocumentLine()) + ", column 1");
    }
    const Value root = documents.empty() ? Value() : documents.front()->root();
    if (root.has_value() && !root.is_object()) return At({}, "must be a map");
    RETURN_IF_ERROR(
        CheckFields(root, {},
                    {"driver", "count", "namePrefix", "attributes", "capacity", "taints",
                     "bindsToNode", "bindingConditions", "bindingFailureConditions",
                     "skipNodeOperations", "deferMetadata", "devices"}));
    RETURN_IF_ERROR(ReadDriver(root, config));
    SimulatedDevice pattern;
    RETURN_IF_ERROR(ReadDevice(root, {}, pattern));
    RETURN_IF_ERROR(ReadCount(root, pattern, config));
    RETURN_IF_ERROR(ReadSkippedOperations(root, config));
    const Value defer = root["deferMetadata"];
    if (defer.has_value() && defer.kind() != ValueKind::kBool) {
      return At({"deferMetadata"}, "must be true or false");
    }
    config.defer_metadata = defer.boolean();
    return ReadDevices(root, pattern, std::move(config));
  }

 private:
  Error At(const Path& path, std::string problem) const {
    // The position of the field, or of its closest existing parent.
    Path known = path;
    std::optional<api::YamlPosition> position = api::LocateYaml(text_, known);
    while (!position && !known.empty()) {
      known.pop_back();
      position = api::LocateYaml(text_, known);
    }
    std::string message = path.empty() ? "the file" : PathText(path);
    message += (path.empty() ? " " : ": ") + std::move(problem);
    if (position) message += StrCat(" at line ", position->line, ", column ", position->column);
    return InvalidArgument(std::move(message));
  }

  int SecondDocumentLine() const {
    int line = 0;
    bool content = false;
    for (const std::string_view each : Split(text_, '\n')) {
      ++line;
      if (each.starts_with("---") && content) return line;
      content =
          content || (!Trim(each).empty() && !each.starts_with("#") && !each.starts_with("---"));
    }
    return line;
  }

  Result<void> CheckFields(Value map, const Path& path,
                           std::initializer_list<std::string_view> known) const {
    for (const api::MemberView& member : map.members()) {
      if (std::find(known.begin(), known.end(), member.name) == known.end()) {
        return At(Below(path, member.name),
                  StrCat("is not a known field; known are ", Join(known, ", ")));
      }
    }
    return Ok();
  }

  Result<void> ReadText(Value map, const Path& path, api::FieldName field,
                        std::string& text) const {
    const Value value = map[field];
    if (!value.has_value()) return Ok();
    if (!value.is_string()) return At(Below(path, field), "must be a string");
    text = value.str();
    return Ok();
  }

  Result<void> ReadStrings(Value map, const Path& path, api::FieldName field,
                           std::vector<std::string>& texts) const {
    const Value value = map[field];
    if (!value.has_value()) return Ok();
    if (!value.is_array()) return At(Below(path, field), "must be a list of strings");
    texts.clear();
    for (const Value each : value.elements()) {
      if (!each.is_string()) return At(Below(path, field), "must be a list of strings");
      texts.emplace_back(each.str());
    }
    return Ok();
  }

  // The boolean of KEP-5945, or Kubernetes' list.
  Result<void> ReadSkippedOperations(Value root, DeviceConfig& config) const {
    const Value field = root["skipNodeOperations"];
    if (field.has_value() && field.kind() != ValueKind::kBool && !field.is_array()) {
      return At({"skipNodeOperations"}, "must be true, false or a list of operations");
    }
    if (field.kind() == ValueKind::kBool) {
      if (field.boolean()) config.skip_node_operations = {"*"};
      return Ok();
    }
    RETURN_IF_ERROR(ReadStrings(root, {}, "skipNodeOperations", config.skip_node_operations));
    for (const std::string& operation : config.skip_node_operations) {
      if (operation != "*" && operation != "NodePrepareResources" &&
          operation != "NodeUnprepareResources") {
        return At({"skipNodeOperations"},
                  StrCat(Quote(operation),
                         " must be one of NodePrepareResources, NodeUnprepareResources, *"));
      }
    }
    return Ok();
  }

  Result<void> ReadDriver(Value root, DeviceConfig& config) const {
    RETURN_IF_ERROR(ReadText(root, {}, "driver", config.driver_name));
    if (const auto problems = api::CheckDnsSubdomain(config.driver_name);
        !problems.empty() || config.driver_name.size() > 63) {
      return At({"driver"}, problems.empty() ? "must not exceed 63 bytes" : problems.front());
    }
    // It becomes the vendor of the CDI devices.
    if (auto valid = cdi::ValidateVendor(config.driver_name); !valid.ok()) {
      return At({"driver"}, valid.error().message);
    }
    return Ok();
  }

  Result<void> ReadCount(Value root, const SimulatedDevice& pattern, DeviceConfig& config) const {
    std::string prefix = "sim-";
    RETURN_IF_ERROR(ReadText(root, {}, "namePrefix", prefix));
    const Value value = root["count"];
    if (value.has_value() && value.kind() != ValueKind::kInt) {
      return At({"count"}, "must be an integer");
    }
    const std::int64_t count = value.integer(kDefaultCount);
    if (count < 0 || count > kMaxSimulatedDevices) {
      return At({"count"}, StrCat("must be between 0 and ", kMaxSimulatedDevices));
    }
    for (std::int64_t i = 0; i < count; ++i) {
      SimulatedDevice device = pattern;
      device.device.name = StrCat(prefix, i);
      if (i == 0) {
        const auto problems = api::CheckDnsLabel(device.device.name);
        if (!problems.empty()) return At({"namePrefix"}, problems.front());
      }
      config.devices.push_back(std::move(device));
    }
    return Ok();
  }

  // Reads the fields that apply to all devices or to a single one, and adds them to `device`.
  Result<void> ReadDevice(Value map, const Path& path, SimulatedDevice& device) const {
    const Value attributes = map["attributes"];
    if (attributes.has_value() && !attributes.is_object()) {
      return At(Below(path, "attributes"), "must be a map");
    }
    for (const api::MemberView& member : attributes.members()) {
      const Path at = Below(Below(path, "attributes"), std::string(member.name));
      RETURN_IF_ERROR(CheckQualifiedName(member.name, at));
      ASSIGN_OR_RETURN(AttributeValue value, ReadAttribute(member.value, at));
      device.device.attributes[std::string(member.name)] = std::move(value);
    }
    const Value capacity = map["capacity"];
    if (capacity.has_value() && !capacity.is_object()) {
      return At(Below(path, "capacity"), "must be a map");
    }
    for (const api::MemberView& member : capacity.members()) {
      const Path at = Below(Below(path, "capacity"), std::string(member.name));
      RETURN_IF_ERROR(CheckQualifiedName(member.name, at));
      const std::string text =
          member.value.is_string() ? std::string(member.value.str()) : api::WriteJson(member.value);
      if (!api::Quantity::Parse(text).ok()) return At(at, "must be a quantity such as 16Gi");
      device.device.capacity[std::string(member.name)] = text;
    }
    RETURN_IF_ERROR(ReadTaints(map, path, device.device.taints));
    const Value binds = map["bindsToNode"];
    if (binds.has_value() && binds.kind() != ValueKind::kBool) {
      return At(Below(path, "bindsToNode"), "must be true or false");
    }
    if (binds.has_value()) device.device.binds_to_node = binds.boolean();
    RETURN_IF_ERROR(
        ReadConditions(map, path, "bindingConditions", device.device.binding_conditions));
    return ReadConditions(map, path, "bindingFailureConditions",
                          device.device.binding_failure_conditions);
  }

  Result<void> ReadConditions(Value map, const Path& path, api::FieldName field,
                              std::vector<std::string>& conditions) const {
    RETURN_IF_ERROR(ReadStrings(map, path, field, conditions));
    for (const std::string& condition : conditions) {
      if (!api::CheckLabelKey(condition).empty()) {
        return At(Below(path, field),
                  StrCat(Quote(condition), " must be a name such as example.com/attached"));
      }
    }
    return Ok();
  }

  Result<void> CheckQualifiedName(std::string_view name, const Path& path) const {
    const std::size_t slash = name.rfind('/');
    const std::string_view identifier =
        slash == std::string_view::npos ? name : name.substr(slash + 1);
    const bool starts_well = !identifier.empty() && identifier.size() <= 32 &&
                             !(identifier.front() >= '0' && identifier.front() <= '9');
    const bool is_identifier = std::all_of(identifier.begin(), identifier.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!starts_well || !is_identifier) {
      return At(path,
                "a name must start with a letter or _, followed by letters, digits and _, at most "
                "32 characters");
    }
    if (slash != std::string_view::npos &&
        (slash > 63 || !api::CheckDnsSubdomain(name.substr(0, slash)).empty())) {
      return At(path, "the part before the / must be a DNS name of at most 63 bytes");
    }
    return Ok();
  }

  Result<AttributeValue> ReadAttribute(Value value, const Path& path) const {
    switch (value.kind()) {
      case ValueKind::kInt:
        return AttributeValue(value.integer());
      case ValueKind::kBool:
        return AttributeValue(value.boolean());
      case ValueKind::kString:
        return Scalar(value, ValueKind::kString, path, "a string");
      case ValueKind::kObject:
        if (value.size() == 1) return ReadTypedAttribute(*value.members().begin(), path);
        break;
      default:
        break;
    }
    return At(path,
              "must be a string, an integer, true or false, or one of {int: }, {bool: }, "
              "{string: }, {version: }, {ints: }, {bools: }, {strings: }, {versions: }");
  }

  Result<AttributeValue> ReadTypedAttribute(const api::MemberView& member, const Path& path) const {
    const Path at = Below(path, member.name);
    const Value value = member.value;
    if (member.name == "int") return Scalar(value, ValueKind::kInt, at, "an integer");
    if (member.name == "bool") return Scalar(value, ValueKind::kBool, at, "true or false");
    if (member.name == "string") return Scalar(value, ValueKind::kString, at, "a string");
    if (member.name == "version") {
      ASSIGN_OR_RETURN(Version version, ReadVersion(value, at));
      return AttributeValue(std::move(version));
    }
    if (member.name == "ints") return List<std::int64_t>(value, ValueKind::kInt, at);
    if (member.name == "bools") return List<bool>(value, ValueKind::kBool, at);
    if (member.name == "strings") return List<std::string>(value, ValueKind::kString, at);
    if (member.name == "versions") {
      std::vector<Version> versions;
      for (const Value each : value.elements()) {
        ASSIGN_OR_RETURN(Version version, ReadVersion(each, at));
        versions.push_back(std::move(version));
      }
      if (versions.empty()) return At(at, "must be a list with at least one element");
      return AttributeValue(std::move(versions));
    }
    return At(at, "is not an attribute type");
  }

  Result<AttributeValue> Scalar(Value value, ValueKind kind, const Path& path,
                                const char* what) const {
    if (value.kind() != kind) return At(path, StrCat("must be ", what));
    if (kind == ValueKind::kInt) return AttributeValue(value.integer());
    if (kind == ValueKind::kBool) return AttributeValue(value.boolean());
    if (value.str().size() > kMaxAttributeTextBytes) {
      return At(path, StrCat("must not exceed ", kMaxAttributeTextBytes, " bytes"));
    }
    return AttributeValue(std::string(value.str()));
  }

  template <typename T>
  Result<AttributeValue> List(Value value, ValueKind kind, const Path& path) const {
    std::vector<T> elements;
    for (const Value each : value.elements()) {
      if (each.kind() != kind) return At(path, "all elements must have the attribute's type");
      if constexpr (std::is_same_v<T, bool>) {
        elements.push_back(each.boolean());
      } else if constexpr (std::is_same_v<T, std::int64_t>) {
        elements.push_back(each.integer());
      } else {
        elements.emplace_back(each.str());
      }
    }
    if (elements.empty()) return At(path, "must be a list with at least one element");
    return AttributeValue(std::move(elements));
  }

  Result<Version> ReadVersion(Value value, const Path& path) const {
    if (!value.is_string() || !api::Semver::Parse(value.str()).ok()) {
      return At(path, "must be a semantic version such as 1.2.3");
    }
    return Version{std::string(value.str())};
  }

  Result<void> ReadTaints(Value map, const Path& path, std::vector<Taint>& taints) const {
    const Value list = map["taints"];
    if (!list.has_value()) return Ok();
    const Path at = Below(path, "taints");
    if (!list.is_array()) return At(at, "must be a list");
    taints.clear();
    for (const Value each : list.elements()) {
      const Path here = Below(at, std::to_string(taints.size()));
      if (!each.is_object()) return At(here, "must be a map");
      RETURN_IF_ERROR(CheckFields(each, here, {"key", "value", "effect"}));
      Taint taint;
      RETURN_IF_ERROR(ReadText(each, here, "key", taint.key));
      RETURN_IF_ERROR(ReadText(each, here, "value", taint.value));
      RETURN_IF_ERROR(ReadText(each, here, "effect", taint.effect));
      if (!api::CheckLabelKey(taint.key).empty()) {
        return At(Below(here, "key"), "must be a name such as example.com/slow");
      }
      if (!api::CheckLabelValue(taint.value).empty()) {
        return At(Below(here, "value"), "must be a label value");
      }
      if (taint.effect != "NoSchedule" && taint.effect != "NoExecute" && taint.effect != "None") {
        return At(Below(here, "effect"), "must be NoSchedule, NoExecute or None");
      }
      taints.push_back(std::move(taint));
    }
    return Ok();
  }

  Result<DeviceConfig> ReadDevices(Value root, const SimulatedDevice& pattern,
                                   DeviceConfig config) const {
    const Value list = root["devices"];
    if (!list.has_value()) return config;
    if (!list.is_array()) return At({"devices"}, "must be a list");
    std::size_t index = 0;
    std::vector<std::string> seen;
    for (const Value each : list.elements()) {
      const Path path = {"devices", std::to_string(index++)};
      if (!each.is_object()) return At(path, "must be a map");
      RETURN_IF_ERROR(
          CheckFields(each, path,
                      {"name", "attributes", "capacity", "taints", "bindsToNode",
                       "bindingConditions", "bindingFailureConditions", "health", "message"}));
      std::string name;
      RETURN_IF_ERROR(ReadText(each, path, "name", name));
      if (const auto problems = api::CheckDnsLabel(name); !problems.empty()) {
        return At(Below(path, "name"), problems.front());
      }
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
        return At(Below(path, "name"), StrCat("device ", Quote(name), " is listed twice"));
      }
      seen.push_back(name);
      auto device = std::find_if(config.devices.begin(), config.devices.end(),
                                 [&](const auto& known) { return known.device.name == name; });
      if (device == config.devices.end()) {
        if (config.devices.size() >= static_cast<std::size_t>(kMaxSimulatedDevices)) {
          return At(path, StrCat("more than ", kMaxSimulatedDevices, " devices"));
        }
        config.devices.push_back(pattern);
        device = config.devices.end() - 1;
        device->device.name = name;
      }
      RETURN_IF_ERROR(ReadDevice(each, path, *device));
      RETURN_IF_ERROR(ReadText(each, path, "health", device->health));
      RETURN_IF_ERROR(ReadText(each, path, "message", device->health_message));
      if (device->health != "Healthy" && device->health != "Unhealthy" &&
          device->health != "Unknown") {
        return At(Below(path, "health"), "must be Healthy, Unhealthy or Unknown");
      }
    }
    return config;
  }

  const std::string_view text_;
};

}  // namespace

Result<DeviceConfig> ParseDeviceConfig(std::string_view yaml) {
  return Parser(yaml).Parse();
}

}  // namespace drakkar::driver
