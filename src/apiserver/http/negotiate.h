#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/rest/failure.h"

namespace drakkar::apiserver {

enum class MediaType { kJson, kYaml };
enum class Shape { kObject, kTable, kPartialMetadata, kDiscovery };

// How the client wants its answer.
struct Negotiated {
  MediaType media = MediaType::kJson;
  Shape shape = Shape::kObject;
  bool pretty = false;
};

// The first entry of the Accept header that we can serve; all else is 406.
std::optional<Failure> NegotiateAccept(std::string_view accept, Negotiated& negotiated);

// "application/json; charset=utf-8" is "application/json".
std::string_view MediaTypeOf(std::string_view header);

}  // namespace drakkar::apiserver
