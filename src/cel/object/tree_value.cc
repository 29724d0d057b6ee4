#include "cel/object/tree_value.h"

#include <string_view>
#include <unordered_map>

#include "api/json/reader.h"
#include "base/exec/work_budget.h"

namespace drakkar::cel {
namespace {

// Objects with more members are looked up through an index, so that a loop over a large map that
// looks up each of its keys takes linear time.
constexpr std::size_t kMaxScannedMembers = 24;

class TreeMap final : public MapValue {
 public:
  TreeMap(Arena& arena, api::Value object) : arena_(arena), object_(object) {}

  bool Find(const Value& key, std::uint32_t, Value* out) const override {
    const std::uint32_t place = PlaceOf(key);
    if (place == kNowhere) return false;
    *out = ValueAt(place);
    return true;
  }
  bool Contains(const Value& key, std::uint32_t) const override { return PlaceOf(key) != kNowhere; }
  Value KeyAt(std::uint32_t index) const override {
    return MakeString(MemberAt(index).key->view());
  }
  Value ValueAt(std::uint32_t index) const override {
    Prepare();
    Value& slot = values_[index];
    if (slot.kind == Kind::kError && slot.error == nullptr) {
      slot = TreeValue(arena_, api::Value(&MemberAt(index).value));
    }
    return slot;
  }

 private:
  static constexpr std::uint32_t kNowhere = 0xffff'ffff;
  using Index = std::unordered_map<std::string_view, std::uint32_t>;

  const api::Member& MemberAt(std::uint32_t index) const { return object_.node()->members[index]; }

  std::uint32_t PlaceOf(const Value& key) const {
    if (key.kind != Kind::kString) return kNowhere;
    const auto size = static_cast<std::uint32_t>(object_.size());
    const std::string_view name = key.text();
    if (size > kMaxScannedMembers) {
      if (index_ == nullptr) {
        WorkBudget::Charge(std::size_t{100} * size);
        index_ = arena_.New<Index>();
        for (std::uint32_t i = 0; i < size; ++i) index_->emplace(MemberAt(i).key->view(), i);
      }
      const auto found = index_->find(name);
      return found == index_->end() ? kNowhere : found->second;
    }
    for (std::uint32_t i = 0; i < size; ++i) {
      if (MemberAt(i).key->view() == name) return i;
    }
    return kNowhere;
  }

  // An error without a text marks a value that is not converted yet.
  void Prepare() const {
    if (values_ != nullptr) return;
    const std::size_t size = object_.size();
    values_ = arena_.AllocateArray<Value>(size);
    for (std::size_t i = 0; i < size; ++i) {
      values_[i] = Value();
      values_[i].kind = Kind::kError;
      values_[i].error = nullptr;
    }
  }

  Arena& arena_;
  const api::Value object_;
  mutable Value* values_ = nullptr;
  mutable Index* index_ = nullptr;
};

}  // namespace

Value TreeValue(Arena& arena, api::Value value) {
  switch (value.kind()) {
    case api::ValueKind::kAbsent:
    case api::ValueKind::kNull:
      return MakeNull();
    case api::ValueKind::kBool:
      return MakeBool(value.boolean());
    case api::ValueKind::kInt:
      return MakeInt(value.integer());
    case api::ValueKind::kDouble:
      return MakeDouble(value.number());
    case api::ValueKind::kString:
      return MakeString(value.str());
    case api::ValueKind::kRaw: {
      Result<api::TreePtr> parsed = api::ParseJson(value.str());
      if (!parsed.ok()) return NewError(arena, parsed.error().message);
      return TreeValue(arena, (*arena.New<api::TreePtr>(*std::move(parsed)))->root());
    }
    case api::ValueKind::kArray: {
      const std::size_t size = value.size();
      WorkBudget::Charge(10 * size);
      Value* items = arena.AllocateArray<Value>(size);
      std::size_t i = 0;
      for (api::Value element : value.elements()) items[i++] = TreeValue(arena, element);
      return NewListView(arena, items, size);
    }
    case api::ValueKind::kObject:
      return MakeMap(arena.New<TreeMap>(arena, value), static_cast<std::uint32_t>(value.size()));
  }
  return MakeNull();
}

}  // namespace drakkar::cel
