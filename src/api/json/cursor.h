#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/freeze.h"
#include "base/result/error.h"

namespace drakkar::api {

// Tokenizer shared by both JSON readers. Private to api/json.
//
// Every Read and Expect function returns false at the first error and stores it in error(), in the
// words of Go's encoding/json. Texts without escapes are borrowed from the input, others are
// decoded into the arena.
class JsonCursor {
 public:
  enum class Duplicates { kRefuse, kLastWins };

  JsonCursor(std::string_view json, Arena& arena, int max_depth)
      : begin_(json.data()),
        at_(json.data()),
        end_(json.data() + json.size()),
        arena_(arena),
        depth_left_(max_depth) {}

  // The next byte that is not white space, without consuming it; 0 at the end (or for a NUL byte,
  // with which no value starts).
  char Peek() {
    SkipSpace();
    return at_ == end_ ? '\0' : *at_;
  }
  const char* at() const { return at_; }
  void Skip(std::size_t count) { at_ += count; }

  // From now on ReadValue keeps the fieldsV1 of managedFields as raw bytes.
  void KeepFieldSets() { keep_field_sets_ = true; }

  bool ReadValue(Node& out, Duplicates duplicates);
  bool ReadString(std::string_view& out);  // at a '"'
  bool ReadNumber(Node& out);              // at a digit or '-'
  bool ReadLiteral(Node& out);             // true, false or null
  // Checks the next value and returns its bytes unchanged.
  bool ReadRaw(std::string_view& out);
  // After a top-level value: only white space may follow.
  bool ExpectEnd();

  // To iterate over an object: EnterObject, then NextKey until it returns no key. For an array:
  // EnterArray, then NextElement until `more` is false.
  bool EnterObject();
  bool NextKey(std::string_view& name, bool& more, bool first);
  bool EnterArray();
  bool NextElement(bool& more, bool first);

  bool Fail(std::string message);
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  std::size_t error_offset() const { return error_offset_; }
  Arena& arena() { return arena_; }

  // Members and elements of the open containers; a container pops its own when it ends.
  std::vector<Member> open_members;
  std::vector<Node> open_elements;

  Node CloseObject(std::size_t first_member);
  Node CloseArray(std::size_t first_element);
  // The member of that name among the open members from `first_member` on, or null.
  Member* FindOpenMember(std::size_t first_member, const Key* key);

 private:
  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool Unexpected(const char* where);  // the byte at at_, or the end of the input
  bool ReadObject(Node& out, Duplicates duplicates);
  bool ReadMember(std::string_view name, Node& out, Duplicates duplicates);
  bool ReadArray(Node& out, Duplicates duplicates);
  bool ReadStringSlow(const char* start, std::string_view& out);
  bool ReadEscape(char*& to);
  bool ReadHex4(std::uint32_t& unit);
  bool SkipValue();
  bool SkipString();

  const char* begin_;
  const char* at_;
  const char* end_;
  Arena& arena_;
  int depth_left_;
  bool keep_field_sets_ = false;
  bool in_managed_fields_ = false;
  std::string error_;
  std::size_t error_offset_ = 0;
};

}  // namespace drakkar::api
