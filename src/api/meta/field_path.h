#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace drakkar::api {

// Where a field lies in an object: "spec.devices[2].attributes[example.com/x]". The root is empty.
class FieldPath {
 public:
  FieldPath() = default;
  explicit FieldPath(std::string_view name) : text_(name) {}

  FieldPath Child(std::string_view name) const;
  FieldPath Index(std::size_t index) const;
  FieldPath Key(std::string_view key) const;

  const std::string& text() const { return text_; }
  bool operator==(const FieldPath&) const = default;

 private:
  explicit FieldPath(std::string text, int) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace drakkar::api
