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

// The form of the response.
struct Negotiated {
  MediaType media = MediaType::kJson;
  Shape shape = Shape::kObject;
  bool pretty = false;
};

// The best entry of the Accept header that we can serve (by q, then exact types before wildcards,
// then order); 406 if there is none. `stream` is for watches, which cannot be YAML. Tables cannot
// be protobuf.
std::optional<Failure> NegotiateAccept(std::string_view accept, bool stream,
                                       Negotiated& negotiated);

// Whether an Accept-Encoding header accepts gzip.
bool AcceptsGzip(std::string_view accept_encoding);

// "application/json; charset=utf-8" becomes "application/json".
std::string_view MediaTypeOf(std::string_view header);

}  // namespace drakkar::apiserver
