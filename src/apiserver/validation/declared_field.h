#pragma once

#include <initializer_list>
#include <string_view>

#include "api/schema/schema.h"
#include "api/tree/value.h"
#include "apiserver/validation/findings.h"

namespace drakkar::apiserver {

// The maturity of a declared rule: beta rules can be switched off together.
enum class Level : bool { kStandard, kBeta };

// A field that declared rules check, with its old value. The rules below return whether to
// continue: false ends the checks of this field.
class DeclaredField {
 public:
  DeclaredField(Findings& out, api::Value object, api::Value before,
                const api::StructSchema& schema)
      : out_(&out),
        value_(object),
        before_(before),
        update_(before.has_value()),
        known_(update_),
        structure_(&schema) {}

  // The field of a struct; unchanged ones (on update) count as not `there`.
  DeclaredField Field(api::FieldName name) const;
  // True unless the field is unchanged: there is something to check, even if only that it is
  // missing.
  explicit operator bool() const { return there_; }

  api::Value value() const { return value_; }
  std::string_view text() const { return value_.str(); }
  const api::FieldPath& path() const { return path_; }
  bool update() const { return update_; }
  Findings& out() const { return *out_; }

  bool IsEmpty() const;
  bool Required(Level level) const;
  bool MaxItems(std::size_t limit, Level level) const;
  bool MaxBytes(std::size_t limit, Level level) const;
  void MaxLength(std::size_t characters, Level level) const;
  void Minimum(std::int64_t limit, Level level) const;
  void Maximum(std::int64_t limit, Level level) const;
  void Enum(std::initializer_list<std::string_view> values, Level level) const;
  // An update may not change it / may set and clear it, but not change it.
  bool Immutable(Level level) const;
  bool NotModified(Level level) const;
  // No two items have equal `keys`; without keys, no two are equal.
  void Unique(api::FieldNames keys, Level level) const;
  // Exactly one of the members is set.
  void Union(api::FieldNames members, Level level) const;

  // Items to check. With `keys`, an item is compared with the old item of the same keys; kByText
  // skips strings that were there before; otherwise all items are new.
  enum class Match { kNone, kByKeys, kByText };
  template <typename Visit>
  void Each(Match match, api::FieldNames keys, const Visit& visit) const {
    std::size_t index = 0;
    for (const api::Value item : value_.elements()) {
      DeclaredField field = Item(item, index++, match, keys);
      if (field) visit(field);
    }
  }
  // Values of a map, compared with the old value of the same key.
  template <typename Visit>
  void EachValue(const Visit& visit) const {
    for (const auto& [key, name, item] : value_.members()) {
      DeclaredField field = Member(name, item);
      if (field) visit(field);
    }
  }
  // New keys of a map.
  template <typename Visit>
  void EachNewKey(const Visit& visit) const {
    for (const auto& [key, name, item] : value_.members()) {
      if (update_ && before_.Entry(name).exists()) continue;
      visit(name);
    }
  }

 private:
  DeclaredField() = default;
  DeclaredField Item(api::Value item, std::size_t index, Match match, api::FieldNames keys) const;
  DeclaredField Member(std::string_view name, api::Value item) const;
  void Add(api::FieldError error, std::string_view origin, Level level) const {
    out_->AddDeclared(std::move(error), origin, level == Level::kBeta);
  }

  Findings* out_ = nullptr;
  api::Value value_;
  api::Value before_;
  bool update_ = false;  // the request updates an object
  bool known_ = false;   // there is an old value to compare with
  bool there_ = true;
  api::FieldPath path_;
  const api::StructSchema* structure_ = nullptr;  // for a struct
  const api::TypeSchema* type_ = nullptr;         // null for the whole object
};

}  // namespace drakkar::apiserver
