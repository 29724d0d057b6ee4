#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "api/tree/value.h"

// What the generated views ("api/views/core_v1.h" ...) are made of. A view is a Value with typed
// accessors: it borrows the tree, costs a pointer, and reads what is not there as zero or empty.
namespace drakkar::api {

class View {
 public:
  View() = default;
  explicit View(Value value) : view_(value) {}
  Value value() const { return view_; }
  // Present and not null.
  bool exists() const { return view_.has_value(); }

 protected:
  Value view_;
};

// A value as a text, a number, a boolean, or a view of it.
template <typename T>
T ReadAs(Value value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return value.str();
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return value.integer();
  } else if constexpr (std::is_same_v<T, double>) {
    return value.number();
  } else if constexpr (std::is_same_v<T, bool>) {
    return value.boolean();
  } else {
    return T(value);
  }
}

template <typename T>
class ListView {
 public:
  class Iterator {
   public:
    explicit Iterator(ArrayRange::Iterator at) : at_(at) {}
    T operator*() const { return ReadAs<T>(*at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    ArrayRange::Iterator at_;
  };

  ListView() = default;
  explicit ListView(Value value) : value_(value) {}
  Value value() const { return value_; }
  bool exists() const { return value_.has_value(); }
  std::size_t size() const { return value_.is_array() ? value_.size() : 0; }
  bool empty() const { return size() == 0; }
  // Beyond the end: what an absent element reads as.
  T operator[](std::size_t index) const { return ReadAs<T>(value_.at(index)); }
  Iterator begin() const { return Iterator(value_.elements().begin()); }
  Iterator end() const { return Iterator(value_.elements().end()); }

 private:
  Value value_;
};

using StringListView = ListView<std::string_view>;

// An object with free names. Iteration gives entries in the order of the tree.
template <typename T>
class MapView {
 public:
  struct Entry {
    std::string_view name;
    T value;
  };
  class Iterator {
   public:
    explicit Iterator(ObjectRange::Iterator at) : at_(at) {}
    Entry operator*() const {
      const MemberView member = *at_;
      return {member.name, ReadAs<T>(member.value)};
    }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    ObjectRange::Iterator at_;
  };

  MapView() = default;
  explicit MapView(Value value) : value_(value) {}
  Value value() const { return value_; }
  bool exists() const { return value_.has_value(); }
  std::size_t size() const { return value_.is_object() ? value_.size() : 0; }
  bool empty() const { return size() == 0; }
  std::optional<T> Find(std::string_view name) const {
    const Value found = value_[name];
    if (!found.exists()) return std::nullopt;
    return ReadAs<T>(found);
  }
  bool Contains(std::string_view name) const { return value_[name].exists(); }
  Iterator begin() const { return Iterator(value_.members().begin()); }
  Iterator end() const { return Iterator(value_.members().end()); }

 private:
  Value value_;
};

using StringMapView = MapView<std::string_view>;

}  // namespace drakkar::api
