#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::node {

// The part of the D-Bus wire format that logind's interface needs: calls with strings and one
// number, and answers and signals with one value. Little-endian only, as used by every bus on the
// same machine.
struct DbusMessage {
  enum class Type { kCall = 1, kReturn = 2, kError = 3, kSignal = 4 };
  Type type = Type::kCall;
  std::uint32_t serial = 0;
  std::uint32_t reply_to = 0;  // of answers
  std::string path;
  std::string interface;
  std::string member;
  std::string error_name;
  std::string destination;
  std::string signature;  // of the body
  std::uint32_t descriptors = 0;
  std::string body;

  bool operator==(const DbusMessage&) const = default;
};

struct DbusCall {
  std::string destination;
  std::string path;
  std::string interface;
  std::string member;
  std::vector<std::string> strings;
  std::optional<std::int32_t> number = std::nullopt;  // the last argument
};
// `serial` must not be 0.
std::string EncodeDbusCall(std::uint32_t serial, const DbusCall& call);
std::string EncodeDbus(const DbusMessage& message);

// Splits a stream of bytes into messages. After an error it must not be used any more.
class DbusReader {
 public:
  // Answers of logind are smaller; a peer that sends more is disconnected.
  static constexpr std::size_t kMaxMessage = 1 << 20;

  void Feed(std::string_view bytes) { buffer_ += bytes; }
  // Nothing: more bytes are needed.
  Result<std::optional<DbusMessage>> Next();

 private:
  std::string buffer_;
};

// The only value of a body.
Result<bool> DbusBool(const DbusMessage& message);
Result<std::uint64_t> DbusVariantNumber(const DbusMessage& message);  // a variant with a uint64
std::string DbusText(const DbusMessage& message);  // of an error; empty if it has none

}  // namespace drakkar::node
