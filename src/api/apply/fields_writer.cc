#include "api/apply/fields_writer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "api/json/writer.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

constexpr std::uint8_t kQuoted = 1;  // " and \, which need a backslash
constexpr std::uint8_t kHtml = 2;
constexpr std::uint8_t kOther = 4;  // control and non-ASCII characters

constexpr std::array<std::uint8_t, 256> kCharacters = [] {
  std::array<std::uint8_t, 256> out{};
  for (std::size_t c = 0; c < 256; ++c) out[c] = c < 0x20 || c >= 0x80 ? kOther : 0;
  out['"'] = out['\\'] = kQuoted;
  out['<'] = out['>'] = out['&'] = kHtml;
  return out;
}();

std::uint8_t CharactersOf(std::string_view text) {
  std::uint8_t all = 0;
  for (char c : text) all |= kCharacters[static_cast<unsigned char>(c)];
  return all;
}

}  // namespace

void FieldsWriter::Grow(std::size_t bytes) {
  const std::size_t used = size();
  const std::size_t capacity = std::max(static_cast<std::size_t>(end_ - begin_) * 2, used + bytes);
  std::unique_ptr<char[]> larger(new char[capacity]);
  std::memcpy(larger.get(), begin_, used);
  heap_ = std::move(larger);
  begin_ = heap_.get();
  at_ = begin_ + used;
  end_ = begin_ + capacity;
}

bool FieldsWriter::IsPlain(char kind, std::string_view text) {
  const std::uint8_t all = CharactersOf(text);
  return (all & (kQuoted | kOther)) == 0 || (kind == 'f' && (all & (kQuoted | kHtml)) == 0);
}

void FieldsWriter::NameEscaped(char kind, std::string_view text) {
  Reserve(text.size() * 2 + 8);
  char* const start = at_;
  *at_++ = '"';
  *at_++ = kind;
  *at_++ = ':';
  for (char c : text) {
    const std::uint8_t what = kCharacters[static_cast<unsigned char>(c)];
    if (what == kOther) {
      at_ = start;
      std::string name;
      AppendJsonString(name, StrCat(std::string_view(&kind, 1), ":", text), false);
      Reserve(name.size() + 1);
      std::memcpy(at_, name.data(), name.size());
      at_ += name.size();
      *at_++ = ':';
      return;
    }
    if (what == kQuoted) *at_++ = '\\';
    *at_++ = c;
  }
  *at_++ = '"';
  *at_++ = ':';
}

}  // namespace drakkar::api
