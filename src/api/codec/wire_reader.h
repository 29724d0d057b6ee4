#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/result/result.h"
#include "base/text/text.h"

namespace drakkar::api {

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// One field of a message on the wire.
struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t scalar = 0;  // varints and fixed values
  std::string_view bytes;    // kBytes
};

static_assert(std::endian::native == std::endian::little);

// Walks the fields of a message.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }

  Result<WireField> Next() {
    WireField field;
    ASSIGN_OR_RETURN(const std::uint64_t tag, Varint());
    field.number = static_cast<std::uint32_t>(tag >> 3);
    if (field.number == 0) return Broken("field number 0");
    switch (tag & 7) {
      case 0: {
        field.type = WireType::kVarint;
        ASSIGN_OR_RETURN(field.scalar, Varint());
        return field;
      }
      case 1:
        field.type = WireType::kFixed64;
        return Fixed(field, 8);
      case 2: {
        field.type = WireType::kBytes;
        ASSIGN_OR_RETURN(const std::uint64_t size, Varint());
        if (size > rest_.size()) return Broken("a length beyond the end");
        field.bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return field;
      }
      case 5:
        field.type = WireType::kFixed32;
        return Fixed(field, 4);
      default:
        return Broken(StrCat("wire type ", tag & 7));
    }
  }

  Result<std::uint64_t> Varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return Broken("it ends within a number");
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return Broken("a number of more than ten bytes");
  }

 private:
  static Error Broken(std::string_view what) {
    return InvalidArgument(StrCat("the protobuf message is malformed: ", what));
  }
  Result<WireField> Fixed(WireField field, std::size_t size) {
    if (rest_.size() < size) return Broken("it ends within a number");
    std::memcpy(&field.scalar, rest_.data(), size);  // little endian, as we are
    rest_.remove_prefix(size);
    return field;
  }
  std::string_view rest_;
};

}  // namespace drakkar::api
