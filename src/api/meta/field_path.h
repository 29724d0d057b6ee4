#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace drakkar::api {

// The path of a field in an object: "spec.devices[2].attributes[example.com/x]". The root is empty.
//
// Validation makes a path for every field it checks and almost never needs one, so short paths,
// nearly all of them, are stored inline.
class FieldPath {
 public:
  FieldPath() = default;
  explicit FieldPath(std::string_view name) { Append(name); }
  FieldPath(const FieldPath& other) : size_(other.size_), long_(other.long_) {
    std::memcpy(short_.data(), other.short_.data(), long_.empty() ? size_ : 0);
  }
  FieldPath& operator=(const FieldPath& other) {
    size_ = other.size_;
    long_ = other.long_;
    std::memmove(short_.data(), other.short_.data(), long_.empty() ? size_ : 0);
    return *this;
  }

  FieldPath Child(std::string_view name) const;
  FieldPath Index(std::size_t index) const;
  FieldPath Key(std::string_view key) const;

  bool empty() const { return size_ == 0; }
  std::string text() const { return std::string(view()); }
  bool operator==(const FieldPath& other) const { return view() == other.view(); }

 private:
  std::string_view view() const {
    return long_.empty() ? std::string_view(short_.data(), size_) : std::string_view(long_);
  }
  void Append(std::string_view part);

  std::size_t size_ = 0;
  std::string long_;            // the whole path, once it does not fit into the buffer
  std::array<char, 96> short_;  // uninitialized beyond size_
};

}  // namespace drakkar::api
