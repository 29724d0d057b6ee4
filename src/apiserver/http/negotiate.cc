#include "apiserver/http/negotiate.h"

#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

std::string_view Parameter(const std::vector<std::string_view>& parts, std::string_view name) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::string_view part = Trim(parts[i]);
    if (part.size() > name.size() && part.substr(0, name.size()) == name &&
        part[name.size()] == '=') {
      return part.substr(name.size() + 1);
    }
  }
  return {};
}

bool ReadEntry(std::string_view entry, Negotiated& negotiated) {
  const std::vector<std::string_view> parts = Split(entry, ';');
  const std::string_view type = Trim(parts[0]);
  Negotiated candidate;
  if (type == "application/json" || type == "*/*" || type == "application/*" || type.empty()) {
    candidate.media = MediaType::kJson;
  } else if (type == "application/yaml" || type == "application/x-yaml") {
    candidate.media = MediaType::kYaml;
  } else {
    return false;
  }
  if (Parameter(parts, "q") == "0") return false;
  const std::string_view as = Parameter(parts, "as");
  const std::string_view group = Parameter(parts, "g");
  const std::string_view version = Parameter(parts, "v");
  if (as == "Table" && group == "meta.k8s.io" && (version == "v1" || version == "v1beta1")) {
    candidate.shape = Shape::kTable;
  } else if ((as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") &&
             group == "meta.k8s.io" && version == "v1") {
    candidate.shape = Shape::kPartialMetadata;
  } else if (as == "APIGroupDiscoveryList" && group == "apidiscovery.k8s.io" && version == "v2") {
    candidate.shape = Shape::kDiscovery;
  } else if (!as.empty()) {
    return false;
  }
  negotiated = candidate;
  return true;
}

}  // namespace

std::string_view MediaTypeOf(std::string_view header) {
  return Trim(header.substr(0, header.find(';')));
}

std::optional<Failure> NegotiateAccept(std::string_view accept, Negotiated& negotiated) {
  negotiated = Negotiated{};
  if (Trim(accept).empty()) return std::nullopt;
  for (std::string_view entry : Split(accept, ',')) {
    if (ReadEntry(entry, negotiated)) return std::nullopt;
  }
  return api::StatusNotAcceptable(
      "only the following media types are accepted: application/json, application/yaml");
}

}  // namespace drakkar::apiserver
