#include "answers/render/json.h"

#include "api/json/writer.h"

namespace drakkar::answers {

void JsonOut::NewLine() {
  if (!indented_) return;
  out_ += '\n';
  out_.append(has_elements_.size() * 2, ' ');
}

void JsonOut::BeforeValue() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_elements_.empty()) return;
  if (has_elements_.back()) out_ += ',';
  has_elements_.back() = true;
  NewLine();
}

JsonOut& JsonOut::Key(std::string_view name) {
  BeforeValue();
  api::AppendJsonString(out_, name, /*escape_html=*/false);
  out_ += indented_ ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonOut& JsonOut::Begin(char bracket) {
  BeforeValue();
  out_ += bracket;
  has_elements_.push_back(false);
  return *this;
}

JsonOut& JsonOut::End(char bracket) {
  const bool had_elements = has_elements_.back();
  has_elements_.pop_back();
  if (had_elements) NewLine();
  out_ += bracket;
  return *this;
}

JsonOut& JsonOut::Text(std::string_view text) {
  BeforeValue();
  api::AppendJsonString(out_, text, /*escape_html=*/false);
  return *this;
}

JsonOut& JsonOut::Number(std::int64_t value) {
  BeforeValue();
  out_ += std::to_string(value);
  return *this;
}

JsonOut& JsonOut::Bool(bool value) {
  BeforeValue();
  out_ += value ? "true" : "false";
  return *this;
}

JsonOut& JsonOut::Texts(std::string_view name, const std::vector<std::string>& texts) {
  Key(name).BeginArray();
  for (const std::string& text : texts) Text(text);
  return EndArray();
}

std::string JsonOut::Take() {
  if (indented_) out_ += '\n';
  return std::move(out_);
}

}  // namespace drakkar::answers
