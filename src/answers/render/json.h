#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::answers {

// Writes JSON as it goes, indented by two spaces, or on one line.
//
//   JsonOut json;
//   json.BeginObject();
//   json.Field("node", name).Field("free", 3);
//   json.Key("devices").BeginArray(); ... json.EndArray();
//   json.EndObject();
class JsonOut {
 public:
  explicit JsonOut(bool indented = true) : indented_(indented) {}

  JsonOut& BeginObject() { return Begin('{'); }
  JsonOut& EndObject() { return End('}'); }
  JsonOut& BeginArray() { return Begin('['); }
  JsonOut& EndArray() { return End(']'); }
  JsonOut& Key(std::string_view name);

  JsonOut& Text(std::string_view text);
  JsonOut& Number(std::int64_t value);
  JsonOut& Bool(bool value);

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
  // Leaves an empty text out.
  JsonOut& FieldIfAny(std::string_view name, std::string_view text) {
    return text.empty() ? *this : Field(name, text);
  }
  JsonOut& Texts(std::string_view name, const std::vector<std::string>& texts);

  // The whole, with a line feed at its end if indented.
  std::string Take();

 private:
  JsonOut& Begin(char bracket);
  JsonOut& End(char bracket);
  void BeforeValue();
  void NewLine();

  const bool indented_;
  std::string out_;
  std::vector<bool> has_elements_;  // of the open objects and arrays
  bool after_key_ = false;
};

}  // namespace drakkar::answers
