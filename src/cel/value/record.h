#pragma once

#include <string_view>

#include "cel/value/value.h"

namespace drakkar::cel {

// If this struct is declared, expressions may construct values of it and of the types below it
// ("Object.spec"), with fields of any name.
inline constexpr std::string_view kObjectTypeName = "Object";

// An object that an expression constructed: Object.spec{replicas: 3}. A map that knows the name of
// its type.
class RecordValue final : public MapValue {
 public:
  // `fields` is a map; the name must outlive the value.
  RecordValue(std::string_view type_name, Value fields) : type_name_(type_name), fields_(fields) {}

  std::string_view type_name() const { return type_name_; }

  bool Find(const Value& key, std::uint32_t, Value* out) const override {
    return fields_.map->Find(key, fields_.size, out);
  }
  bool Contains(const Value& key, std::uint32_t) const override {
    return fields_.map->Contains(key, fields_.size);
  }
  Value KeyAt(std::uint32_t index) const override { return fields_.map->KeyAt(index); }
  Value ValueAt(std::uint32_t index) const override { return fields_.map->ValueAt(index); }

 private:
  const std::string_view type_name_;
  const Value fields_;
};

}  // namespace drakkar::cel
