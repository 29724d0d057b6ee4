#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "api/json/writer.h"

namespace drakkar::api {

// Writes a JSON document from beginning to end, without a tree: for code that has the data in
// structs of its own and writes it often. It takes care of commas, quoting and indentation; the
// caller takes care of nesting, and of one Key before each value of an object.
//
//   JsonWriter json({.indent = 2});
//   json.BeginObject().Member("name", name).Key("count").Integer(3).EndObject();
//
// Texts are escaped as Go's encoding/json does it; bytes that are not UTF-8 become U+FFFD.
// `sort_members` has no effect.
class JsonWriter {
 public:
  explicit JsonWriter(const WriteOptions& options = {}) : options_(options) {}

  JsonWriter& BeginObject() { return Begin('{'); }
  JsonWriter& EndObject() { return End('}'); }
  JsonWriter& BeginArray() { return Begin('['); }
  JsonWriter& EndArray() { return End(']'); }
  JsonWriter& Key(std::string_view key);

  JsonWriter& String(std::string_view value);
  JsonWriter& Integer(std::int64_t value);
  JsonWriter& Unsigned(std::uint64_t value);
  JsonWriter& Bool(bool value);
  // Valid JSON, written unchanged.
  JsonWriter& Raw(std::string_view json);

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

  std::string Take();

 private:
  JsonWriter& Begin(char bracket);
  JsonWriter& End(char bracket);
  void Separate();
  void NewLine();

  const WriteOptions options_;
  std::string text_;
  int depth_ = 0;
  bool is_empty_ = true;  // the innermost container has no value yet
  bool after_key_ = false;
};

}  // namespace drakkar::api
