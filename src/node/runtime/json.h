#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result/result.h"

namespace drakkar::node {

// The little JSON the runtime needs: state files, OCI bundles, image manifests, conmon's answers.
// Read by the reader of the API into values that live on their own, written as it comes.

// Bounds of what is read: an image is foreign input.
constexpr int kMaxJsonDepth = 64;
constexpr std::size_t kMaxJsonBytes = 8u << 20;

class JsonValue {
 public:
  enum class Kind { kNull, kBool, kInteger, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;  // kInteger only
  double number = 0;         // kNumber only: fractions, exponents, what exceeds 64 bits
  std::string text;
  std::vector<JsonValue> items;
  struct Member;  // not a pair: clang wants the parts of one to be complete
  std::vector<Member> members;

  // Lenient access for optional members: absent, null and another type all read as "not there".
  const JsonValue* Find(std::string_view key) const;
  std::string String(std::string_view key) const;
  std::optional<std::int64_t> Integer(std::string_view key) const;
  bool Bool(std::string_view key) const;
  std::vector<std::string> Strings(std::string_view key) const;
  std::vector<std::pair<std::string, std::string>> StringMap(std::string_view key) const;
};

struct JsonValue::Member {
  std::string name;
  JsonValue value;
};

// Strict RFC 8259, duplicate keys refused. Errors name line and column.
Result<JsonValue> ParseJson(std::string_view text);

// Writes one document; commas and quoting are its business, nesting is the caller's.
class JsonWriter {
 public:
  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view key);
  JsonWriter& String(std::string_view value);  // bytes that are not UTF-8 become U+FFFD
  JsonWriter& Integer(std::int64_t value);
  JsonWriter& Unsigned(std::uint64_t value);
  JsonWriter& Bool(bool value);

  JsonWriter& Member(std::string_view key, std::string_view value) {
    return Key(key).String(value);
  }
  template <typename Strings>
  JsonWriter& Array(std::string_view key, const Strings& values) {
    Key(key).BeginArray();
    for (const auto& value : values) String(value);
    return EndArray();
  }
  template <typename Map>
  JsonWriter& StringMap(std::string_view key, const Map& map) {
    Key(key).BeginObject();
    for (const auto& [name, value] : map) Member(name, value);
    return EndObject();
  }

  const std::string& text() const { return text_; }
  std::string Take() { return std::move(text_); }

 private:
  void Separate();

  std::string text_;
  bool needs_comma_ = false;
};

// What was read, written again.
void CopyJson(const JsonValue& value, JsonWriter& out);

}  // namespace drakkar::node
