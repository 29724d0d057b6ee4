#pragma once

#include <string>

#include "net/http/message.h"

namespace drakkar::net {

// Compresses the body as one gzip stream at the fastest level.
std::string Gzip(const Body& body);
// For tests and clients. Returns nullopt if the input is not gzip or expands beyond `max_size`
// bytes.
std::optional<std::string> Gunzip(std::string_view bytes, std::size_t max_size);

}  // namespace drakkar::net
