#include "allocator/constraint/value_table.h"

#include <algorithm>
#include <iterator>

namespace drakkar::allocator {
namespace {

// Alternatives of AttributeValue: scalars come first, then lists of the same types.
constexpr std::size_t kFirstList = 5;

struct ElementWriter {
  Interner& elements;
  ValueTable::Set& set;

  void Add(char type, const auto& write) const {
    KeyBuilder key;
    key.Small(static_cast<std::uint32_t>(type));
    write(key);
    set.push_back(elements.Intern(key.bytes()));
  }
  void operator()(std::monostate) const {}
  void operator()(std::int64_t value) const {
    Add('i', [&](KeyBuilder& key) { key.Number(static_cast<std::uint64_t>(value)); });
  }
  void operator()(bool value) const {
    Add('b', [&](KeyBuilder& key) { key.Flag(value); });
  }
  void operator()(const std::string& value) const {
    Add('s', [&](KeyBuilder& key) { key.Text(value); });
  }
  void operator()(const device::VersionText& value) const {
    Add('v', [&](KeyBuilder& key) { key.Text(value.text); });
  }
  void operator()(const std::vector<bool>& values) const {
    for (const bool value : values) (*this)(value);
  }
  template <typename T>
  void operator()(const std::vector<T>& values) const {
    for (const T& value : values) (*this)(value);
  }
};

}  // namespace

std::int32_t ValueTable::Intern(const device::AttributeValue& value, bool lists) {
  if (value.index() >= kFirstList && !lists) return kNone;
  Set set;
  std::visit(ElementWriter{elements_, set}, value);
  if (set.empty()) return kNone;
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  KeyBuilder key;
  for (const std::uint32_t element : set) key.Small(element);
  const std::uint32_t id = set_ids_.Intern(key.bytes());
  if (id == sets_.size()) sets_.push_back(std::move(set));
  return static_cast<std::int32_t>(id);
}

bool AreDisjoint(const ValueTable::Set& a, const ValueTable::Set& b) {
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() && y != b.end()) {
    if (*x == *y) return false;
    if (*x < *y) {
      ++x;
    } else {
      ++y;
    }
  }
  return true;
}

ValueTable::Set Intersect(const ValueTable::Set& a, const ValueTable::Set& b) {
  ValueTable::Set both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace drakkar::allocator
