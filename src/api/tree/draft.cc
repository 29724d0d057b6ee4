#include "api/tree/draft.h"

#include "api/tree/freeze.h"
#include "base/exec/work_budget.h"
#include "base/result/check.h"

namespace drakkar::api {
namespace {

// A key that owns its text.
struct OwnedKey {
  explicit OwnedKey(std::string_view name)
      : text(name), key{0, static_cast<std::uint32_t>(text.size()), text.data()} {}
  OwnedKey(const OwnedKey&) = delete;
  OwnedKey& operator=(const OwnedKey&) = delete;
  const std::string text;
  const Key key;
};

// Initial capacity of a new object: most have a few members, and growing moves them.
constexpr std::size_t kFirstMembers = 6;

// Moving or copying one member or element costs this many steps of the work budget.
constexpr std::size_t kStepsPerMove = 8;
// Objects and arrays up to this size are not charged.
constexpr std::size_t kMaxFreeMembers = 32;

// Whether to look through `count` members, or to give up because the budget is exceeded.
bool MayScan(std::size_t count) {
  if (count <= kMaxFreeMembers) return true;
  if (WorkBudget::IsExceeded()) return false;
  WorkBudget::Charge(count);
  return true;
}

void ChargeMoves(std::size_t count) {
  if (count > kMaxFreeMembers) WorkBudget::Charge(kStepsPerMove * count);
}

Draft& Add(Draft::Members& members, KeyRef key) {
  if (members.capacity() == 0) members.reserve(kFirstMembers);
  return members.emplace_back(std::move(key), Draft()).second;
}

bool IsNamed(const KeyRef& key, std::string_view name) {
  return key->view() == name;
}

bool IsNamed(const KeyRef& key, const Key& name) {
  return key.get() == &name;
}

}  // namespace

KeyRef::KeyRef(std::string_view name) {
  if (const Key* known = FindKey(name)) {
    key_ = std::shared_ptr<const Key>(std::shared_ptr<const void>(), known);
    return;
  }
  auto owned = std::make_shared<const OwnedKey>(name);
  const Key* key = &owned->key;
  key_ = std::shared_ptr<const Key>(std::move(owned), key);
}

Draft::Draft() = default;
Draft::Draft(std::nullptr_t) : state_(nullptr) {}
Draft::Draft(double value) : state_(value) {}
Draft::Draft(const char* text) : state_(OwnedText{std::string(text), false}) {}
Draft::Draft(std::string_view text) : state_(OwnedText{std::string(text), false}) {}
Draft::Draft(std::string text) : state_(OwnedText{std::move(text), false}) {}

Draft::Draft(std::initializer_list<Field> fields) : state_(std::make_unique<Members>()) {
  for (const Field& field : fields) (*this)[field.name] = field.value;
}

Draft::Draft(Value value) : state_(value.node()) {}

Draft::Draft(TreePtr tree) : state_(tree->root().node()), kept_(std::move(tree)) {}

Draft Draft::Object() {
  Draft draft;
  draft.state_ = std::make_unique<Members>();
  return draft;
}

Draft Draft::Map(std::initializer_list<std::pair<std::string_view, Draft>> entries) {
  Draft draft = Object();
  for (const auto& [name, value] : entries) draft.Entry(name) = value;
  return draft;
}

Draft Draft::Array() {
  return Array({});
}

Draft Draft::Array(std::vector<Draft> elements) {
  Draft draft;
  draft.state_ = std::make_unique<Elements>(std::move(elements));
  return draft;
}

Draft Draft::Raw(std::string json) {
  Draft draft;
  draft.state_ = OwnedText{std::move(json), true};
  return draft;
}

Draft::Draft(const Draft& other) : kept_(other.kept_) {
  if (const auto* members = std::get_if<std::unique_ptr<Members>>(&other.state_)) {
    ChargeMoves((*members)->size());
    state_ = std::make_unique<Members>(**members);
  } else if (const auto* elements = std::get_if<std::unique_ptr<Elements>>(&other.state_)) {
    ChargeMoves((*elements)->size());
    state_ = std::make_unique<Elements>(**elements);
  } else if (const auto* text = std::get_if<OwnedText>(&other.state_)) {
    state_ = *text;
  } else if (const auto* node = std::get_if<const Node*>(&other.state_)) {
    state_ = *node;
  } else if (const auto* integer = std::get_if<std::int64_t>(&other.state_)) {
    state_ = *integer;
  } else if (const auto* number = std::get_if<double>(&other.state_)) {
    state_ = *number;
  } else if (const auto* boolean = std::get_if<bool>(&other.state_)) {
    state_ = *boolean;
  } else if (std::holds_alternative<std::nullptr_t>(other.state_)) {
    state_ = nullptr;
  }
}

Draft::Draft(Draft&& other) noexcept
    : state_(std::move(other.state_)), kept_(std::move(other.kept_)) {
  other.state_ = std::monostate();
}

Draft& Draft::operator=(const Draft& other) {
  // Copy first: `other` may be a part of this draft.
  if (this != &other) *this = Draft(other);
  return *this;
}

Draft& Draft::operator=(Draft&& other) noexcept {
  if (this == &other) return *this;
  auto state = std::move(other.state_);
  auto kept = std::move(other.kept_);
  other.state_ = std::monostate();
  state_ = std::move(state);
  kept_ = std::move(kept);
  return *this;
}

Draft::~Draft() = default;

ValueKind Draft::kind() const {
  switch (state_.index()) {
    case 0:
      return ValueKind::kAbsent;
    case 1:
      return std::get<1>(state_)->kind;
    case 2:
      return ValueKind::kNull;
    case 3:
      return ValueKind::kBool;
    case 4:
      return ValueKind::kInt;
    case 5:
      return ValueKind::kDouble;
    case 6:
      return std::get<6>(state_).raw ? ValueKind::kRaw : ValueKind::kString;
    case 7:
      return ValueKind::kArray;
    default:
      return ValueKind::kObject;
  }
}

std::string_view Draft::str(std::string_view fallback) const {
  if (const auto* text = std::get_if<OwnedText>(&state_)) return text->text;
  return borrowed().str(fallback);
}

std::int64_t Draft::integer(std::int64_t fallback) const {
  if (const auto* integer = std::get_if<std::int64_t>(&state_)) return *integer;
  return borrowed().integer(fallback);
}

double Draft::number(double fallback) const {
  if (const auto* number = std::get_if<double>(&state_)) return *number;
  if (const auto* integer = std::get_if<std::int64_t>(&state_)) {
    return static_cast<double>(*integer);
  }
  return borrowed().number(fallback);
}

bool Draft::boolean(bool fallback) const {
  if (const auto* boolean = std::get_if<bool>(&state_)) return *boolean;
  return borrowed().boolean(fallback);
}

std::size_t Draft::size() const {
  if (const auto* members = std::get_if<std::unique_ptr<Members>>(&state_)) {
    return (*members)->size();
  }
  if (const auto* elements = std::get_if<std::unique_ptr<Elements>>(&state_)) {
    return (*elements)->size();
  }
  return borrowed().size();
}

Value Draft::borrowed() const {
  const auto* node = std::get_if<const Node*>(&state_);
  return node == nullptr ? Value() : Value(*node);
}

void Draft::MakeObject() {
  if (std::holds_alternative<std::unique_ptr<Members>>(state_)) return;
  auto members = std::make_unique<Members>();
  const Value from = borrowed();
  ChargeMoves(from.size());
  members->reserve(from.is_object() ? from.size() + 1 : 4);
  for (const MemberView member : from.members()) {
    Draft value(member.value);
    value.kept_ = kept_;
    members->emplace_back(member.key->id != 0 ? KeyRef(*member.key) : KeyRef(*member.key, kept_),
                          std::move(value));
  }
  state_ = std::move(members);
}

void Draft::MakeArray() {
  if (std::holds_alternative<std::unique_ptr<Elements>>(state_)) return;
  auto elements = std::make_unique<Elements>();
  const Value from = borrowed();
  ChargeMoves(from.size());
  elements->reserve(from.is_array() ? from.size() + 1 : 4);
  for (const Value element : from.elements()) {
    Draft value(element);
    value.kept_ = kept_;
    elements->push_back(std::move(value));
  }
  state_ = std::move(elements);
}

Draft& Draft::Entry(std::string_view name) {
  Members& members = MutableMembers();
  if (MayScan(members.size())) {
    for (auto& [key, value] : members) {
      if (key->view() == name) return value;
    }
  }
  return Add(members, KeyRef(name));
}

Draft& Draft::Entry(const Key& key) {
  if (key.id == 0) return Entry(key.view());
  Members& members = MutableMembers();
  // Always right, as in Value.
  if (members.size() > kMaxFreeMembers) WorkBudget::Charge(members.size());
  for (auto& [member_key, value] : members) {
    if (member_key.get() == &key) return value;
  }
  return Add(members, KeyRef(key));
}

template <typename Name>
bool Draft::HasMember(const Name& name) const {
  if (const auto* members = std::get_if<std::unique_ptr<Members>>(&state_)) {
    const bool may_scan = MayScan((*members)->size());
    if (std::is_same_v<Name, std::string_view> && !may_scan) return false;
    for (const auto& [key, value] : **members) {
      if (IsNamed(key, name)) return value.exists();
    }
    return false;
  }
  return borrowed().Entry(name).exists();
}

template <typename Name>
bool Draft::RemoveMember(const Name& name) {
  if (!HasMember(name)) return false;
  ChargeMoves(size());
  std::erase_if(MutableMembers(), [&](const auto& member) { return IsNamed(member.first, name); });
  return true;
}

Draft* Draft::Find(FieldName name) {
  return Has(name) ? &(*this)[name] : nullptr;
}

bool Draft::Has(FieldName name) const {
  return HasMember(name.key());
}

bool Draft::Remove(FieldName name) {
  return RemoveMember(name.key());
}

Draft* Draft::FindEntry(std::string_view name) {
  return HasEntry(name) ? &Entry(name) : nullptr;
}

bool Draft::HasEntry(std::string_view name) const {
  return HasMember(name);
}

bool Draft::RemoveEntry(std::string_view name) {
  return RemoveMember(name);
}

Draft& Draft::at(std::size_t index) {
  CHECK(is_array() && index < size());
  return MutableElements()[index];
}

Draft& Draft::Append(Draft element) {
  return MutableElements().emplace_back(std::move(element));
}

void Draft::Insert(std::size_t index, Draft element) {
  Elements& elements = MutableElements();
  CHECK(index <= elements.size());
  ChargeMoves(elements.size() - index);
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(index), std::move(element));
}

void Draft::RemoveAt(std::size_t index) {
  Elements& elements = MutableElements();
  CHECK(index < elements.size());
  ChargeMoves(elements.size() - index);
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(index));
}

Draft::Members& Draft::MutableMembers() {
  MakeObject();
  return *std::get<std::unique_ptr<Members>>(state_);
}

Draft::Elements& Draft::MutableElements() {
  MakeArray();
  return *std::get<std::unique_ptr<Elements>>(state_);
}

void Draft::KeepAlive(std::shared_ptr<const void> owner) {
  using Both = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
  if (kept_ == nullptr) {
    kept_ = std::move(owner);
  } else {
    kept_ = std::make_shared<const Both>(std::move(kept_), std::move(owner));
  }
}

Node Draft::ToNode(Arena& arena) const {
  switch (state_.index()) {
    case 1:
      return *std::get<1>(state_);
    case 2:
      return NullNode();
    case 3:
      return BoolNode(std::get<3>(state_));
    case 4:
      return IntNode(std::get<4>(state_));
    case 5:
      return DoubleNode(std::get<5>(state_));
    case 6: {
      const OwnedText& text = std::get<6>(state_);
      return TextNode(text.text, text.raw ? ValueKind::kRaw : ValueKind::kString);
    }
    case 7: {
      const Elements& elements = *std::get<7>(state_);
      Node* nodes = arena.AllocateArray<Node>(elements.size());
      for (std::size_t i = 0; i < elements.size(); ++i) nodes[i] = elements[i].ToNode(arena);
      return ArrayNode(nodes, elements.size());
    }
    case 8: {
      const Members& members = *std::get<8>(state_);
      Member* nodes = arena.AllocateArray<Member>(members.size());
      for (std::size_t i = 0; i < members.size(); ++i) {
        nodes[i].key = members[i].first.get();
        nodes[i].value = members[i].second.ToNode(arena);
      }
      return ObjectNode(nodes, members.size());
    }
    default:
      return Node{};
  }
}

TreePtr Draft::Freeze() const {
  Arena arena;
  return FreezeNode(ToNode(arena));
}

}  // namespace drakkar::api
