#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace drakkar::apiserver {

// The media type of an OpenAPI v2 document in protobuf, as we answer with it. kubectl and client-go
// ask for no other form.
inline constexpr std::string_view kOpenApiProtobufType =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

// Whether a request for `path` with this Accept header asks for the document in protobuf.
bool AsksForOpenApiProtobuf(std::string_view path, std::string_view accept);

// The protobuf form of a document, made once per document: the last one is kept. For one thread
// (the API server's loop).
std::shared_ptr<const std::string> OpenApiInProtobuf(
    const std::shared_ptr<const std::string>& json);

// An OpenAPI v2 document, given as JSON, as a message openapi.v2.Document: version, info and
// definitions. Paths are left out; ours has none. Null if it is not JSON.
std::shared_ptr<const std::string> OpenApiToProtobuf(std::string_view json);

}  // namespace drakkar::apiserver
