#include "apiserver/validation/declared_field.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/validation/semantic_equal.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::apiserver {

using api::FieldError;
using api::Value;

namespace {

bool SameKeys(Value a, Value b, api::FieldNames keys) {
  return std::ranges::all_of(keys, [&](api::FieldName key) {
    return a[key].str() == b[key].str() && a[key].has_value() == b[key].has_value();
  });
}

std::size_t Characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

bool IsSet(Value member) {
  return member.is_array() ? !member.empty() : member.has_value();
}

}  // namespace

DeclaredField DeclaredField::Field(api::FieldName name) const {
  const api::FieldSchema* schema = structure_->Find(name.key());
  CHECK(schema != nullptr);
  DeclaredField field = *this;
  field.value_ = value_[name];
  field.before_ = before_[name];
  field.path_ = path_.Child(name);
  field.type_ = &schema->type;
  field.structure_ = schema->type.structure;
  if (update_ && known_) {
    const bool same_presence =
        !schema->pointer || field.value_.has_value() == field.before_.has_value();
    field.there_ = !same_presence || !SemanticEqual(field.value_, field.before_, schema->type);
    // Everything inside a part that was not there before is new.
    if (schema->pointer && field.structure_ != nullptr) field.known_ = field.before_.has_value();
  }
  return field;
}

DeclaredField DeclaredField::Item(Value item, std::size_t index, Match match,
                                  api::FieldNames keys) const {
  DeclaredField field = *this;
  field.value_ = item;
  field.before_ = Value();
  field.known_ = false;
  field.there_ = true;
  field.path_ = path_.Index(index);
  field.type_ = type_->element;
  field.structure_ = type_->element != nullptr ? type_->element->structure : nullptr;
  if (match == Match::kNone) return field;
  for (const Value old : before_.elements()) {
    const bool same = match == Match::kByText ? old.str() == item.str() : SameKeys(old, item, keys);
    if (!same) continue;
    field.before_ = old;
    field.known_ = true;
    field.there_ =
        !update_ || (match == Match::kByKeys && !SemanticEqual(item, old, *type_->element));
    break;
  }
  return field;
}

DeclaredField DeclaredField::Member(std::string_view name, Value item) const {
  DeclaredField field = *this;
  field.value_ = item;
  field.before_ = before_.Entry(name);
  field.known_ = field.before_.exists();
  field.path_ = path_.Key(name);
  field.type_ = type_->element;
  field.structure_ = type_->element->structure;
  field.there_ = !(update_ && field.known_ && SemanticEqual(item, field.before_, *type_->element));
  return field;
}

bool DeclaredField::IsEmpty() const {
  switch (value_.kind()) {
    case api::ValueKind::kString:
      return value_.str().empty();
    case api::ValueKind::kArray:
    case api::ValueKind::kObject:
      return value_.empty();
    default:
      return !value_.has_value();
  }
}

bool DeclaredField::Required(Level level) const {
  if (!IsEmpty()) return true;
  Add(FieldError::Required(path_, ""), {}, level);
  return false;
}

bool DeclaredField::MaxItems(std::size_t limit, Level level) const {
  if (value_.size() <= limit) return true;
  Add(FieldError::TooMany(path_, value_.size(), limit), "maxItems", level);
  return false;
}

bool DeclaredField::MaxBytes(std::size_t limit, Level level) const {
  if (text().size() <= limit) return true;
  Add(FieldError::TooLong(path_, limit), "maxBytes", level);
  return false;
}

void DeclaredField::MaxLength(std::size_t characters, Level level) const {
  if (Characters(text()) <= characters) return;
  Add(FieldError::TooLongCharacters(path_, characters), "maxLength", level);
}

void DeclaredField::Minimum(std::int64_t limit, Level level) const {
  if (value_.integer() >= limit) return;
  Add(FieldError::Invalid(path_, value_.integer(),
                          StrCat("must be greater than or equal to ", limit)),
      "minimum", level);
}

void DeclaredField::Maximum(std::int64_t limit, Level level) const {
  if (value_.integer() <= limit) return;
  Add(FieldError::Invalid(path_, value_.integer(), StrCat("must be less than or equal to ", limit)),
      "maximum", level);
}

void DeclaredField::Enum(std::initializer_list<std::string_view> values, Level level) const {
  if (std::ranges::find(values, text()) != values.end()) return;
  Add(FieldError::NotSupported(path_, text(), values), {}, level);
}

bool DeclaredField::Immutable(Level level) const {
  if (!update_) return true;
  Add(FieldError::Invalid(path_, nullptr, "field is immutable"), "immutable", level);
  return false;
}

bool DeclaredField::NotModified(Level level) const {
  if (!update_ || !before_.has_value() || !value_.has_value()) return true;
  Add(FieldError::Invalid(path_, nullptr, "field cannot be modified once set"), "update", level);
  return false;
}

void DeclaredField::Unique(api::FieldNames keys, Level level) const {
  // Some of these lists have no limit of their own, so use a set instead of comparing all pairs.
  using Part = std::pair<bool, std::string_view>;
  std::set<std::vector<Part>> seen;
  std::size_t index = 0;
  for (const Value item : value_.elements()) {
    std::vector<Part> identity;
    if (keys.size() == 0) identity.emplace_back(true, item.str());
    for (const api::FieldName key : keys) {
      identity.emplace_back(item[key].has_value(), item[key].str());
    }
    if (!seen.insert(std::move(identity)).second) {
      Add(FieldError::Duplicate(path_.Index(index), item), {}, level);
    }
    ++index;
  }
}

void DeclaredField::Union(api::FieldNames members, Level level) const {
  std::vector<std::string> all;
  std::vector<std::string_view> set;
  bool changed = false;
  for (const api::FieldName member : members) {
    all.push_back(StrCat("`", member, "`"));
    if (IsSet(value_[member])) set.push_back(member);
    changed = changed || IsSet(value_[member]) != IsSet(before_[member]);
  }
  if (update_ && known_ && !changed) return;
  if (set.size() > 1) {
    Add(FieldError::Invalid(path_, StrCat("{", Join(set, ", "), "}"),
                            StrCat("must specify exactly one of: ", Join(all, ", "))),
        "union", level);
  } else if (set.empty()) {
    Add(FieldError::Invalid(path_, "", StrCat("must specify one of: ", Join(all, ", "))), "union",
        level);
  }
}

}  // namespace drakkar::apiserver
