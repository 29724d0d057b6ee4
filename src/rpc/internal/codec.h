#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"
#include "base/text/text.h"

namespace drakkar::rpc::internal {

// `text` with bytes that are not UTF-8 replaced by U+FFFD. Protobuf peers in Go refuse a whole
// message for one such byte, so strings from drivers pass through here.
std::string ValidUtf8(std::string_view text);

template <typename Message>
Result<Message> Parse(const std::string& bytes, std::string_view name) {
  Message message;
  if (!message.ParseFromString(bytes)) {
    return InvalidArgument(StrCat("malformed protobuf message ", name));
  }
  return message;
}

// Copies a repeated string field.
template <typename Repeated>
std::vector<std::string> Strings(const Repeated& repeated) {
  return std::vector<std::string>(repeated.begin(), repeated.end());
}

template <typename Repeated>
void AddStrings(const std::vector<std::string>& strings, Repeated* repeated) {
  repeated->Reserve(static_cast<int>(strings.size()));
  for (const std::string& text : strings) *repeated->Add() = ValidUtf8(text);
}

}  // namespace drakkar::rpc::internal
