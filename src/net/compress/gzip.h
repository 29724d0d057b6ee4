#pragma once

#include <string>

#include "net/http/message.h"

namespace drakkar::net {

// The body as one gzip stream, at the fastest level: answers are compressed once and sent once.
std::string Gzip(const Body& body);
// For tests and clients: at most `max_size` bytes come out, nullopt if it is no gzip or is larger.
std::optional<std::string> Gunzip(std::string_view bytes, std::size_t max_size);

}  // namespace drakkar::net
