#include "api/json/json_writer.h"

namespace drakkar::api {

void JsonWriter::NewLine() {
  if (options_.indent == 0) return;
  text_ += '\n';
  text_.append(static_cast<std::size_t>(depth_ * options_.indent), ' ');
}

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!is_empty_) text_ += ',';
  is_empty_ = false;
  if (depth_ > 0) NewLine();
}

JsonWriter& JsonWriter::Begin(char bracket) {
  Separate();
  text_ += bracket;
  ++depth_;
  is_empty_ = true;
  return *this;
}

JsonWriter& JsonWriter::End(char bracket) {
  --depth_;
  if (!is_empty_) NewLine();
  text_ += bracket;
  is_empty_ = false;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  String(key);
  text_ += options_.indent == 0 ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view value) {
  Separate();
  AppendJsonString(text_, value, options_.escape_html);
  return *this;
}

JsonWriter& JsonWriter::Integer(std::int64_t value) {
  return Raw(std::to_string(value));
}

JsonWriter& JsonWriter::Unsigned(std::uint64_t value) {
  return Raw(std::to_string(value));
}

JsonWriter& JsonWriter::Bool(bool value) {
  return Raw(value ? "true" : "false");
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  text_ += json;
  return *this;
}

std::string JsonWriter::Take() {
  if (options_.final_newline) text_ += '\n';
  return std::move(text_);
}

}  // namespace drakkar::api
