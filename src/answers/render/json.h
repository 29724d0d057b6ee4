#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/json/json_writer.h"

namespace drakkar::answers {

// api::JsonWriter with a function for each kind of field in answers.
//
//   JsonOut json;
//   json.BeginObject();
//   json.Field("node", name).Field("free", 3);
//   json.Key("devices").BeginArray(); ... json.EndArray();
//   json.EndObject();
class JsonOut {
 public:
  // Indented by two spaces with a final newline, or on one line.
  explicit JsonOut(bool indented = true)
      : writer_({.indent = indented ? 2 : 0, .escape_html = false, .final_newline = indented}) {}

  JsonOut& BeginObject() { return Do(writer_.BeginObject()); }
  JsonOut& EndObject() { return Do(writer_.EndObject()); }
  JsonOut& BeginArray() { return Do(writer_.BeginArray()); }
  JsonOut& EndArray() { return Do(writer_.EndArray()); }
  JsonOut& Key(std::string_view name) { return Do(writer_.Key(name)); }
  JsonOut& Text(std::string_view text) { return Do(writer_.String(text)); }
  JsonOut& Number(std::int64_t value) { return Do(writer_.Integer(value)); }
  JsonOut& Bool(bool value) { return Do(writer_.Bool(value)); }

  JsonOut& Field(std::string_view name, std::string_view text) { return Key(name).Text(text); }
  JsonOut& Field(std::string_view name, const char* text) { return Key(name).Text(text); }
  JsonOut& Field(std::string_view name, const std::string& text) { return Key(name).Text(text); }
  template <std::same_as<bool> T>
  JsonOut& Field(std::string_view name, T value) {
    return Key(name).Bool(value);
  }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  JsonOut& Field(std::string_view name, T value) {
    return Key(name).Number(static_cast<std::int64_t>(value));
  }
  // Omits the field if the text is empty.
  JsonOut& FieldIfAny(std::string_view name, std::string_view text) {
    return text.empty() ? *this : Field(name, text);
  }
  JsonOut& Texts(std::string_view name, const std::vector<std::string>& texts) {
    return Do(writer_.Array(name, texts));
  }

  std::string Take() { return writer_.Take(); }

 private:
  JsonOut& Do(api::JsonWriter&) { return *this; }

  api::JsonWriter writer_;
};

}  // namespace drakkar::answers
