#include "api/metadata/validation.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "api/meta/interface_address.h"
#include "api/meta/names.h"
#include "api/meta/semver.h"
#include "base/text/text.h"

namespace drakkar::metadata {
namespace {

using api::FieldError;
using api::FieldErrors;
using api::FieldName;
using api::FieldPath;
using api::Value;

constexpr std::size_t kMaxDriverCharacters = 63;
constexpr std::size_t kMaxPoolBytes = 253;
constexpr std::size_t kMaxAttributes = 32;
constexpr std::size_t kMaxAttributeValues = 48;  // per device; list items count individually
constexpr std::size_t kMaxTextBytes = 64;
constexpr std::size_t kMaxIdentifierBytes = 32;
constexpr std::size_t kMaxDomainBytes = 63;
constexpr std::size_t kMaxInterfaceNameBytes = 256;
constexpr std::size_t kMaxIps = 16;
constexpr std::size_t kMaxHardwareAddressBytes = 128;

constexpr std::array<FieldName, 8> kAttributeTypes = {"int",  "bool",  "string",  "version",
                                                      "ints", "bools", "strings", "versions"};
constexpr std::string_view kCaselessRule =
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'Example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

std::size_t Characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool Required(FieldErrors& out, const FieldPath& path, std::string_view text) {
  if (text.empty()) out.push_back(FieldError::Required(path, ""));
  return !text.empty();
}

void CheckDriver(FieldErrors& out, const FieldPath& path, std::string_view driver) {
  if (!Required(out, path, driver)) return;
  for (std::string problem : api::CheckDnsSubdomain(ToLower(driver))) {
    if (problem.starts_with("a lowercase RFC 1123 subdomain")) problem = kCaselessRule;
    out.push_back(FieldError::Invalid(path, driver, problem));
  }
  if (Characters(driver) > kMaxDriverCharacters) {
    out.push_back(FieldError::TooLongCharacters(path, kMaxDriverCharacters));
  }
}

void CheckPool(FieldErrors& out, const FieldPath& path, std::string_view pool) {
  if (!Required(out, path, pool)) return;
  if (pool.size() > kMaxPoolBytes) out.push_back(FieldError::TooLong(path, kMaxPoolBytes));
  std::size_t index = 0;
  for (const std::string_view part : Split(pool, '/')) {
    const std::string segment = StrCat("segment ", index++, ": ");
    if (part.empty()) {
      out.push_back(FieldError::Invalid(path, pool, segment + "must not be empty"));
      continue;
    }
    for (const std::string& problem : api::CheckDnsSubdomain(part)) {
      out.push_back(FieldError::Invalid(path, part, segment + problem));
    }
  }
}

void CheckLabel(FieldErrors& out, const FieldPath& path, std::string_view label) {
  for (const std::string& problem : api::CheckDnsLabel(label)) {
    out.push_back(FieldError::Invalid(path, label, problem));
  }
}

void CheckUnion(FieldErrors& out, const FieldPath& path, Value attribute) {
  std::vector<std::string_view> set;
  std::vector<std::string> all;
  for (const FieldName type : kAttributeTypes) {
    if (attribute[type].has_value()) set.push_back(type);
    all.push_back(StrCat("`", type, "`"));
  }
  if (set.size() > 1) {
    out.push_back(FieldError::Invalid(path, StrCat("{", Join(set, ", "), "}"),
                                      "must specify exactly one of: " + Join(all, ", ")));
  } else if (set.empty()) {
    out.push_back(FieldError::Invalid(path, "", "must specify one of: " + Join(all, ", ")));
  }
}

void CheckNetworkData(FieldErrors& out, const FieldPath& path, Value data) {
  if (data["interfaceName"].str().size() > kMaxInterfaceNameBytes) {
    out.push_back(FieldError::TooLong(path.Child("interfaceName"), kMaxInterfaceNameBytes));
  }
  const Value ips = data["ips"];
  if (ips.size() > kMaxIps) {
    out.push_back(FieldError::TooMany(path.Child("ips"), ips.size(), kMaxIps));
  } else {
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < ips.size(); ++i) {
      if (seen.insert(ips.at(i).str()).second) continue;
      out.push_back(FieldError::Duplicate(path.Child("ips").Index(i), ips.at(i).str()));
    }
  }
  if (data["hardwareAddress"].str().size() > kMaxHardwareAddressBytes) {
    out.push_back(FieldError::TooLong(path.Child("hardwareAddress"), kMaxHardwareAddressBytes));
  }
}

void CheckDevice(FieldErrors& out, const FieldPath& path, Value device) {
  CheckDriver(out, path.Child("driver"), device["driver"].str());
  CheckPool(out, path.Child("pool"), device["pool"].str());
  if (Required(out, path.Child("name"), device["name"].str())) {
    CheckLabel(out, path.Child("name"), device["name"].str());
  }
  const Value attributes = device["attributes"];
  if (attributes.size() > kMaxAttributes) {
    out.push_back(FieldError::TooMany(path.Child("attributes"), attributes.size(), kMaxAttributes));
  } else {
    for (const auto& [key, name, attribute] : attributes.members()) {
      CheckUnion(out, path.Child("attributes").Key(name), attribute);
    }
  }
  if (device["networkData"].is_object()) {
    CheckNetworkData(out, path.Child("networkData"), device["networkData"]);
  }
}

void CheckObjectMeta(FieldErrors& out, const FieldPath& path, Value meta) {
  if (const std::int64_t generation = meta["generation"].integer(); generation < 0) {
    out.push_back(FieldError::Invalid(path.Child("generation"), generation,
                                      "must be greater than or equal to 0"));
  }
  const Value owners = meta["ownerReferences"];
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const FieldPath owner = path.Child("ownerReferences").Index(i);
    for (const FieldName field :
         {FieldName("apiVersion"), FieldName("kind"), FieldName("name"), FieldName("uid")}) {
      Required(out, owner.Child(field), owners.at(i)[field].str());
    }
  }
  const Value managers = meta["managedFields"];
  for (std::size_t i = 0; i < managers.size(); ++i) {
    const FieldPath field = path.Child("managedFields").Index(i).Child("operation");
    const std::string_view operation = managers.at(i)["operation"].str();
    if (Required(out, field, operation) && operation != "Apply" && operation != "Update") {
      out.push_back(FieldError::NotSupported(field, operation, {"Apply", "Update"}));
    }
  }
}

// --- before writing ---

bool IsIdentifier(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

Result<void> CheckAttributeName(std::string_view name) {
  const std::size_t slash = name.find('/');
  std::string_view identifier = name;
  if (slash != std::string_view::npos) {
    const std::string_view domain = name.substr(0, slash);
    identifier = name.substr(slash + 1);
    if (domain.size() > kMaxDomainBytes || !api::CheckDnsSubdomain(domain).empty()) {
      return InvalidArgument(StrCat("the part before the slash must be a DNS subdomain of at most ",
                                    kMaxDomainBytes, " bytes"));
    }
  }
  if (!IsIdentifier(identifier) || identifier.size() > kMaxIdentifierBytes) {
    return InvalidArgument(
        StrCat("a name is letters, digits and '_', not beginning with a digit, at most ",
               kMaxIdentifierBytes, " bytes, with or without a domain and a slash before it"));
  }
  return Ok();
}

struct CheckValue {
  Result<void> operator()(std::int64_t) const { return Ok(); }
  Result<void> operator()(bool) const { return Ok(); }
  Result<void> operator()(const std::string& text) const {
    if (text.size() > kMaxTextBytes) {
      return InvalidArgument(StrCat("must not have more than ", kMaxTextBytes, " bytes"));
    }
    if (!IsValidUtf8(text)) return InvalidArgument("must be UTF-8");
    return Ok();
  }
  Result<void> operator()(const Version& version) const {
    if (auto parsed = api::Semver::Parse(version.text); !parsed.ok()) {
      return InvalidArgument(
          StrCat("must be a semantic version such as 1.2.3, not ", Quote(version.text)));
    }
    return (*this)(version.text);
  }
  template <typename T>
  Result<void> operator()(const std::vector<T>& items) const {
    if (items.empty()) return InvalidArgument("must have at least one value");
    for (const T& item : items) RETURN_IF_ERROR((*this)(item));
    return Ok();
  }
};

struct ValueCount {
  template <typename T>
  std::size_t operator()(const std::vector<T>& items) const {
    return items.size();
  }
  template <typename T>
  std::size_t operator()(const T&) const {
    return 1;
  }
};

Error BadDevice(const Device& device, std::string_view problem) {
  return InvalidArgument(
      StrCat("metadata of device ", device.pool, "/", device.name, ": ", problem));
}

}  // namespace

FieldErrors ValidateDocument(const Document& document) {
  const Value root = document.tree->root();
  FieldErrors out;
  CheckObjectMeta(out, FieldPath("metadata"), root["metadata"]);
  if (const Value name = root["podClaimName"]; name.is_string()) {
    CheckLabel(out, FieldPath("podClaimName"), name.str());
  }
  const Value requests = root["requests"];
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const FieldPath path = FieldPath("requests").Index(i);
    Required(out, path.Child("name"), requests.at(i)["name"].str());
    const Value devices = requests.at(i)["devices"];
    for (std::size_t j = 0; j < devices.size(); ++j) {
      CheckDevice(out, path.Child("devices").Index(j), devices.at(j));
    }
  }
  return out;
}

Result<void> ValidateDevice(const Device& device) {
  FieldErrors names;
  CheckPool(names, FieldPath("pool"), device.pool);
  if (Required(names, FieldPath("name"), device.name)) {
    CheckLabel(names, FieldPath("name"), device.name);
  }
  if (!names.empty()) return BadDevice(device, names[0].ToString());
  if (device.attributes.size() > kMaxAttributes) {
    return BadDevice(device,
                     StrCat("at most ", kMaxAttributes, " attributes are allowed, there are ",
                            device.attributes.size()));
  }
  std::size_t values = 0;
  for (const auto& [name, value] : device.attributes) {
    Result<void> checked = CheckAttributeName(name);
    if (checked.ok()) checked = std::visit(CheckValue(), value);
    if (!checked.ok()) {
      return BadDevice(device, StrCat("attribute ", Quote(name), ": ", checked.error().message));
    }
    values += std::visit(ValueCount(), value);
  }
  if (values > kMaxAttributeValues) {
    return BadDevice(device, StrCat("at most ", kMaxAttributeValues,
                                    " attribute values are allowed, there are ", values));
  }
  if (!device.network_data.has_value()) return Ok();
  const NetworkDeviceData& network = *device.network_data;
  if (network.interface_name.size() > kMaxInterfaceNameBytes) {
    return BadDevice(device, StrCat("the interface name must not have more than ",
                                    kMaxInterfaceNameBytes, " bytes"));
  }
  if (network.ips.size() > kMaxIps) {
    return BadDevice(device, StrCat("at most ", kMaxIps, " IP addresses are allowed, there are ",
                                    network.ips.size()));
  }
  std::set<std::string_view> seen;
  for (const std::string& ip : network.ips) {
    if (!seen.insert(ip).second)
      return BadDevice(device, "the IP address " + ip + " is listed twice");
    if (const auto checked = api::CheckInterfaceAddress(ip); !checked.ok()) {
      return BadDevice(device, StrCat("the IP address ", Quote(ip), " ", checked.error().message));
    }
  }
  if (network.hardware_address.size() > kMaxHardwareAddressBytes) {
    return BadDevice(device, StrCat("the hardware address must not have more than ",
                                    kMaxHardwareAddressBytes, " bytes"));
  }
  for (const std::string* text : {&network.interface_name, &network.hardware_address}) {
    if (!IsValidUtf8(*text)) return BadDevice(device, "network data must be UTF-8");
  }
  return Ok();
}

}  // namespace drakkar::metadata
