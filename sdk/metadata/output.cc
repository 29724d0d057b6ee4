#include "sdk/metadata/output.h"

#include <utility>

#include "api/json/jsonpath.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/metadata/document.h"
#include "api/metadata/paths.h"
#include "api/metadata/text.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::metadata {
namespace {

constexpr std::string_view kJsonPath = "jsonpath=";

// Single-quoted, so that a shell takes every byte literally.
std::string ShellQuote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else if (c != '\0') {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string ToJson(const DeviceMetadata& metadata) {
  return EncodeMetadata(metadata, std::vector{std::string(kV1alpha1)});
}

// One document, or an object with the list of documents.
api::TreePtr ToTree(const std::vector<DeviceMetadata>& all, bool single) {
  api::Draft items = api::Draft::Array();
  for (const DeviceMetadata& metadata : all) {
    api::TreePtr tree = *api::ParseJson(ToJson(metadata));
    if (single) return tree;
    items.Append(api::Draft(std::move(tree)));
  }
  return api::Draft{{"kind", api::Draft("DeviceMetadataList")},
                    {"apiVersion", api::Draft(kV1alpha1)},
                    {"items", std::move(items)}}
      .Freeze();
}

}  // namespace

std::string ToEnvironment(const DeviceMetadata& metadata) {
  const bool named = metadata.pod_claim_name.has_value() && !metadata.pod_claim_name->empty();
  const std::string claim =
      "DRA_" + EnvironmentName(named ? *metadata.pod_claim_name : metadata.claim_name);
  std::string out;
  const auto add = [&](std::string_view name, std::string_view value) {
    out += StrCat(name, "=", ShellQuote(value), "\n");
  };
  add(claim + "_GENERATION", std::to_string(metadata.generation));
  for (const Request& request : metadata.requests) {
    const std::string prefix = StrCat(claim, "_", EnvironmentName(BaseRequest(request.name)), "_");
    add(prefix + "COUNT", std::to_string(request.devices.size()));
    std::size_t index = 0;
    for (const Device& device : request.devices) {
      const std::string one = StrCat(prefix, index++, "_");
      add(one + "DEVICE", device.name);
      add(one + "DRIVER", device.driver);
      add(one + "POOL", device.pool);
      for (const auto& [name, value] : device.attributes) {
        add(StrCat(one, "ATTR_", EnvironmentName(name)), AttributeText(value));
      }
      if (!device.network_data.has_value()) continue;
      add(one + "INTERFACE", device.network_data->interface_name);
      add(one + "IPS", Join(device.network_data->ips, " "));
      add(one + "HARDWARE_ADDRESS", device.network_data->hardware_address);
    }
  }
  return out;
}

int PartialExit(const Query& query, const std::vector<std::string>& pending, std::string& note) {
  for (const std::string& path : pending) note += StrCat(path, ": no metadata yet\n");
  return !pending.empty() && query.wait > Reader::kNoWait ? 3 : 0;
}

Result<std::string> RunQuery(const Query& query, Reader& reader,
                             std::vector<std::string>& pending) {
  const bool jsonpath = query.output.starts_with(kJsonPath);
  if (!jsonpath && query.output != "json" && query.output != "env") {
    return InvalidArgument(
        StrCat("--output must be json, env or jsonpath=TEMPLATE, not ", Quote(query.output)));
  }
  api::JsonPath path;
  if (jsonpath) {
    ASSIGN_OR_RETURN(path, api::JsonPath::Parse(query.output.substr(kJsonPath.size())));
  }
  std::vector<DeviceMetadata> all;
  const bool single = !query.file.empty() || !query.claim.empty();
  if (!query.file.empty()) {
    ASSIGN_OR_RETURN(DeviceMetadata one, reader.ReadFile(query.file, query.wait));
    all.push_back(std::move(one));
  } else if (!query.claim.empty()) {
    ASSIGN_OR_RETURN(DeviceMetadata one,
                     reader.ReadRequest(query.claim, query.request, query.wait, &pending));
    all.push_back(std::move(one));
  } else {
    ASSIGN_OR_RETURN(all, reader.ReadAll(query.wait, &pending));
  }
  if (query.output == "env") {
    std::string out;
    for (const DeviceMetadata& metadata : all) out += ToEnvironment(metadata);
    return out;
  }
  const api::TreePtr tree = ToTree(all, single);
  if (jsonpath) return path.Print(tree->root()) + "\n";
  return api::WriteJson(tree->root(), {.indent = 2, .final_newline = true});
}

}  // namespace drakkar::metadata
