#include "node/runtime/network/cni_config.h"

#include <algorithm>

#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

using api::Draft;
using api::Value;

constexpr CniVersion kOldest{0, 3, 0};
constexpr CniVersion kNewest{1, 1, 0};
constexpr std::string_view kDefaultVersion = "0.4.0";
constexpr std::size_t kMaxNameBytes = 200;

bool IsLetterOrDigit(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Names become parts of paths and of iptables comments.
bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && IsLetterOrDigit(text[0]) &&
         std::ranges::all_of(
             text, [](char c) { return IsLetterOrDigit(c) || c == '_' || c == '.' || c == '-'; });
}

Result<CniVersion> ParseVersion(std::string_view text) {
  const auto parts = Split(text, '.');
  std::vector<int> numbers;
  for (std::string_view part : parts) {
    const auto number = ParseInt64(part);
    if (number && *number >= 0 && *number < 1000) numbers.push_back(static_cast<int>(*number));
  }
  if (parts.size() != 3 || numbers.size() != 3) {
    return InvalidArgument(StrCat("cniVersion ", Quote(text), " is not a version such as 1.0.0"));
  }
  return CniVersion{numbers[0], numbers[1], numbers[2]};
}

bool IsSupported(const CniVersion& version) {
  return version >= kOldest && version <= kNewest;
}

// The newest supported version in cniVersions, which may have more than one, or cniVersion.
Result<std::string> ChooseVersion(Value list) {
  std::string best;
  std::vector<std::string> offered = Strings(list["cniVersions"]);
  if (const std::string_view single = list["cniVersion"].str(); !single.empty()) {
    offered.emplace_back(single);
  }
  if (offered.empty()) return std::string(kDefaultVersion);
  for (const std::string& each : offered) {
    ASSIGN_OR_RETURN(const CniVersion version, ParseVersion(each));
    if (!IsSupported(version)) continue;
    if (best.empty() || version > *ParseVersion(best)) best = each;
  }
  if (best.empty()) {
    return InvalidArgument(StrCat("cniVersion ", Quote(offered.front()),
                                  " is not supported; use a version from 0.3.0 to 1.1.0"));
  }
  return best;
}

Result<CniPlugin> ReadPlugin(Value json) {
  CniPlugin plugin;
  plugin.type = json["type"].str();
  if (!IsName(plugin.type)) {
    return InvalidArgument(
        StrCat("plugin type ", Quote(plugin.type),
               " is not valid; it is the name of a program in --cni-bin-dir, without a path"));
  }
  for (const api::MemberView member : json["capabilities"].members()) {
    if (member.value.boolean()) plugin.capabilities.emplace(member.name);
  }
  plugin.only_with_capabilities = json["onlyWithCapabilities"].boolean();
  plugin.json = api::CopyTree(json);
  return plugin;
}

bool IsConfigurationFile(std::string_view name) {
  return name.ends_with(".conflist") || name.ends_with(".conf") || name.ends_with(".json");
}

}  // namespace

Result<CniList> ParseCniList(std::string_view text, bool is_list) {
  if (text.size() > kMaxCniFileBytes) {
    return InvalidArgument(StrCat("the configuration is larger than ", kMaxCniFileBytes, " bytes"));
  }
  ASSIGN_OR_RETURN(const api::TreePtr tree, ParseJson(text));
  const Value root = tree->root();
  if (!root.is_object()) return InvalidArgument("the configuration is not a JSON object");
  CniList list;
  list.name = root["name"].str();
  if (!IsName(list.name)) {
    return InvalidArgument(StrCat("network name ", Quote(list.name),
                                  " is not valid; use letters, digits, '_', '.' and '-'"));
  }
  ASSIGN_OR_RETURN(list.version, ChooseVersion(root));
  ASSIGN_OR_RETURN(list.parsed_version, ParseVersion(list.version));
  list.text = text;
  if (!is_list) {
    ASSIGN_OR_RETURN(CniPlugin plugin, ReadPlugin(root));
    // From here on every configuration is a list.
    Draft wrapped = Draft::Object();
    wrapped["cniVersion"] = list.version;
    wrapped["name"] = list.name;
    wrapped["plugins"].Append(Draft(root));
    list.text = api::WriteJson(wrapped.Freeze()->root());
    list.plugins.push_back(std::move(plugin));
    return list;
  }
  list.disable_check = root["disableCheck"].boolean();
  list.disable_gc = root["disableGC"].boolean();
  for (Value each : root["plugins"].elements()) {
    if (list.plugins.size() == kMaxCniPlugins) {
      return InvalidArgument(StrCat("the network has more than ", kMaxCniPlugins, " plugins"));
    }
    ASSIGN_OR_RETURN(CniPlugin plugin, ReadPlugin(each));
    list.plugins.push_back(std::move(plugin));
  }
  if (list.plugins.empty()) return InvalidArgument("the network has no plugins");
  return list;
}

Result<CniList> LoadCniList(FileSystem& files, const std::string& directory) {
  auto names = files.ListDirectory(directory);
  if (!names.ok()) {
    if (names.error().code == ErrorCode::kNotFound) {
      return NotFound("no network config found in " + directory);
    }
    return std::move(names).error();
  }
  for (const std::string& name : *names) {
    if (!IsConfigurationFile(name)) continue;
    const std::string path = JoinPath(directory, name);
    auto text = files.ReadFileRange(path, 0, kMaxCniFileBytes + 1);
    if (!text.ok()) {
      // The file was removed meanwhile, or it is a directory.
      const auto info = files.Stat(path);
      if (!info.ok() || info->type == FileType::kDirectory) continue;
      return std::move(text).error().Prefixed("network configuration");
    }
    auto list = ParseCniList(*text, name.ends_with(".conflist"));
    if (!list.ok()) return std::move(list).error().Prefixed("network configuration " + path);
    return list;
  }
  return NotFound("no network config found in " + directory);
}

bool IsNeeded(const CniPlugin& plugin, const CapabilityArguments& arguments) {
  if (!plugin.only_with_capabilities) return true;
  return std::ranges::any_of(plugin.capabilities, [&](const std::string& capability) {
    return arguments.contains(capability);
  });
}

Result<std::string> MakePluginInput(const CniInput& input) {
  Draft json(input.plugin.json);
  json["name"] = input.list.name;
  json["cniVersion"] = input.list.version;
  json.Remove("onlyWithCapabilities");
  json.Remove("prevResult");
  json.Remove("runtimeConfig");
  for (const auto& [capability, value] : input.arguments) {
    if (!input.plugin.capabilities.contains(capability)) continue;
    ASSIGN_OR_RETURN(api::TreePtr tree, ParseJson(value));
    json["runtimeConfig"].Entry(capability) = Draft(std::move(tree));
  }
  if (!input.previous_result.empty()) {
    ASSIGN_OR_RETURN(api::TreePtr tree, ParseJson(input.previous_result));
    json["prevResult"] = Draft(std::move(tree));
  }
  if (input.valid_attachments) {
    ASSIGN_OR_RETURN(api::TreePtr tree, ParseJson(*input.valid_attachments));
    // 1.1.0 named the key in two ways; plugins read one of them.
    json.Entry("cni.dev/valid-attachments") = Draft(tree);
    json.Entry("cni.dev/attachments") = Draft(std::move(tree));
  }
  return api::WriteJson(json.Freeze()->root());
}

}  // namespace drakkar::node
