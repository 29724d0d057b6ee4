#include "api/json/json_writer.h"

#include "base/text/text.h"

namespace drakkar::api {
namespace {

// Bytes of the UTF-8 character at the start of `text`, or 0 if there is none.
std::size_t CharacterBytes(std::string_view text) {
  for (std::size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    if (IsValidUtf8(text.substr(0, size))) return size;
  }
  return 0;
}

void AppendReplacingInvalid(std::string& out, std::string_view text, bool escape_html) {
  out += '"';
  std::string quoted;
  while (!text.empty()) {
    const std::size_t size = CharacterBytes(text);
    if (size == 0) {
      out += "\\ufffd";
      text.remove_prefix(1);
      continue;
    }
    quoted.clear();
    AppendJsonString(quoted, text.substr(0, size), escape_html);
    out.append(quoted, 1, quoted.size() - 2);
    text.remove_prefix(size);
  }
  out += '"';
}

}  // namespace

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
  if (IsValidUtf8(value)) {
    AppendJsonString(text_, value, options_.escape_html);
  } else {
    AppendReplacingInvalid(text_, value, options_.escape_html);
  }
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
