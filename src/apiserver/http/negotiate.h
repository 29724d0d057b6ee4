#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/request/failure.h"

namespace drakkar::apiserver {

enum class MediaType { kJson, kYaml, kProtobuf };
enum class Shape { kObject, kTable, kPartialMetadata, kDiscovery };

inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kYamlType = "application/yaml";
inline constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";

// How the client wants its answer.
struct Negotiated {
  MediaType media = MediaType::kJson;
  Shape shape = Shape::kObject;
  bool pretty = false;
};

// The entry of the Accept header that we can serve and that the client likes best (by q, then
// exact types before wildcards, then order); none is 406. `stream`: the answer is a watch, which
// YAML cannot be. Tables are not to be had in protobuf.
std::optional<Failure> NegotiateAccept(std::string_view accept, bool stream,
                                       Negotiated& negotiated);

// Whether an Accept-Encoding header takes gzip.
bool AcceptsGzip(std::string_view accept_encoding);

// "application/json; charset=utf-8" is "application/json".
std::string_view MediaTypeOf(std::string_view header);

}  // namespace drakkar::apiserver
