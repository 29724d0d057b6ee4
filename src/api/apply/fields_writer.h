#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "api/apply/field_set.h"

namespace drakkar::api {

// Writes a FieldsV1 document in one go. Names come in the order of siblings.
//
//   writer.Open(false);                       // {
//   writer.Name('f', "spec", true);           // "f:spec":
//   writer.Empty();                           // {}
//   writer.Close();                           // }
class FieldsWriter {
 public:
  FieldsWriter() = default;
  FieldsWriter(const FieldsWriter&) = delete;
  FieldsWriter& operator=(const FieldsWriter&) = delete;

  // `itself`: the path that has these children is also in the set.
  void Open(bool itself) {
    Reserve(8);
    *at_++ = '{';
    if (itself) {
      std::memcpy(at_, "\".\":{}", 6);
      at_ += 6;
    }
  }
  void Close() {
    Reserve(1);
    *at_++ = '}';
  }
  void Empty() {
    Reserve(2);
    *at_++ = '{';
    *at_++ = '}';
  }
  // `plain`: a schema name, which needs no escaping. Writes a comma first if necessary.
  void Name(char kind, std::string_view text, bool plain) {
    Reserve(text.size() + 8);
    if (at_[-1] != '{') *at_++ = ',';
    // Names of elements are JSON and contain quotes.
    if (!plain && (kind == 'k' || !IsPlain(kind, text))) return NameEscaped(kind, text);
    *at_++ = '"';
    *at_++ = kind;
    *at_++ = ':';
    if (!text.empty()) std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
    *at_++ = '"';
    *at_++ = ':';
  }

  std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }
  // Discards everything after the first `size` bytes.
  void Shrink(std::size_t size) { at_ = begin_ + size; }
  std::string_view view() const { return {begin_, size()}; }

 private:
  static constexpr std::size_t kInlineBytes = 2048;

  void Reserve(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < bytes) Grow(bytes);
  }
  void Grow(std::size_t bytes);
  static bool IsPlain(char kind, std::string_view text);
  void NameEscaped(char kind, std::string_view text);

  char inline_[kInlineBytes];
  std::unique_ptr<char[]> heap_;
  char* begin_ = inline_;
  char* at_ = inline_;
  char* end_ = inline_ + kInlineBytes;
};

void WriteFieldsV1(FieldsWriter& out, const FieldNode* set);

}  // namespace drakkar::api
