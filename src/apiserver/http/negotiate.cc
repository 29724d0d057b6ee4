#include "apiserver/http/negotiate.h"

#include <algorithm>
#include <charconv>
#include <vector>

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

// 0 to 1. Anything that is not a number counts as 1, as in Kubernetes.
double Quality(const std::vector<std::string_view>& parts) {
  const std::string_view text = Parameter(parts, "q");
  double quality = 1;
  std::from_chars(text.data(), text.data() + text.size(), quality);
  return std::clamp(quality, 0.0, 1.0);
}

struct Clause {
  std::vector<std::string_view> parts;
  std::string_view type;
  double quality = 1;
  int wildcards = 0;  // 0: exact, 1: "application/*", 2: "*/*"
};

std::vector<Clause> ParseAccept(std::string_view accept) {
  std::vector<Clause> clauses;
  for (std::string_view entry : Split(accept, ',')) {
    Clause clause;
    clause.parts = Split(entry, ';');
    clause.type = Trim(clause.parts[0]);
    clause.quality = Quality(clause.parts);
    clause.wildcards = clause.type == "*/*" ? 2 : clause.type == "application/*" ? 1 : 0;
    if (clause.quality > 0) clauses.push_back(std::move(clause));
  }
  std::ranges::stable_sort(clauses, [](const Clause& a, const Clause& b) {
    if (a.quality != b.quality) return a.quality > b.quality;
    return a.wildcards < b.wildcards;
  });
  return clauses;
}

bool Serve(const Clause& clause, bool stream, Negotiated& negotiated) {
  Negotiated candidate;
  if (clause.type == kJsonType || clause.wildcards > 0 || clause.type.empty()) {
    candidate.media = MediaType::kJson;
  } else if (clause.type == kYamlType || clause.type == "application/x-yaml") {
    if (stream) return false;
    candidate.media = MediaType::kYaml;
  } else if (clause.type == kProtobufType) {
    candidate.media = MediaType::kProtobuf;
  } else {
    return false;
  }
  for (std::string_view parameter : {"stream", "type"}) {
    const std::string_view value = Parameter(clause.parts, parameter);
    if (!value.empty() && (!stream || value != "watch")) return false;
  }
  const std::string_view as = Parameter(clause.parts, "as");
  const std::string_view group = Parameter(clause.parts, "g");
  const std::string_view version = Parameter(clause.parts, "v");
  const bool meta = group == "meta.k8s.io" && (version == "v1" || version == "v1beta1");
  if (as == "Table" && meta && candidate.media != MediaType::kProtobuf) {
    candidate.shape = Shape::kTable;
  } else if ((as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") && meta) {
    candidate.shape = Shape::kPartialMetadata;
  } else if (as == "APIGroupDiscoveryList" && group == "apidiscovery.k8s.io" && version == "v2" &&
             candidate.media == MediaType::kJson) {
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

std::optional<Failure> NegotiateAccept(std::string_view accept, bool stream,
                                       Negotiated& negotiated) {
  negotiated = Negotiated{};
  if (accept == kJsonType || Trim(accept).empty()) return std::nullopt;
  for (const Clause& clause : ParseAccept(accept)) {
    if (Serve(clause, stream, negotiated)) return std::nullopt;
  }
  return api::StatusNotAcceptable(
      stream ? "only the following media types are accepted: application/json;stream=watch, "
               "application/vnd.kubernetes.protobuf;stream=watch"
             : "only the following media types are accepted: application/json, application/yaml, "
               "application/vnd.kubernetes.protobuf");
}

bool AcceptsGzip(std::string_view accept_encoding) {
  if (accept_encoding.empty()) return false;
  for (std::string_view entry : Split(accept_encoding, ',')) {
    const std::vector<std::string_view> parts = Split(entry, ';');
    if (Trim(parts[0]) == "gzip" && Quality(parts) > 0) return true;
  }
  return false;
}

}  // namespace drakkar::apiserver
