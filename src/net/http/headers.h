#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drakkar::net {

// Header fields in the order received or to be sent. Names are case-insensitive. There are usually
// only a few, so lookup is a linear scan.
class Headers {
 public:
  using Field = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  void Add(std::string name, std::string value);
  // Replaces every field of that name.
  void Set(std::string name, std::string value);
  void Remove(std::string_view name);

  // The first field of that name, or null.
  const std::string* Find(std::string_view name) const;
  // The first field of that name, or "".
  std::string_view Get(std::string_view name) const;
  // Whether a comma-separated list field contains `token` (case-insensitive).
  bool HasToken(std::string_view name, std::string_view token) const;
  std::size_t Count(std::string_view name) const;

  bool empty() const { return fields_.empty(); }
  std::size_t size() const { return fields_.size(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  bool operator==(const Headers&) const = default;

 private:
  std::vector<Field> fields_;
};

bool EqualsIgnoreCase(std::string_view a, std::string_view b);
// RFC 9110 section 5.6.2: a non-empty token.
bool IsToken(std::string_view text);
// No control characters except tab, so that nothing can end the field.
bool IsHeaderValue(std::string_view text);
// `text` with characters that IsHeaderValue forbids replaced by spaces.
std::string CleanHeaderValue(std::string_view text);
// True for fields that belong to one HTTP/1.1 connection (Connection, Transfer-Encoding, ...).
bool IsConnectionHeader(std::string_view name);

}  // namespace drakkar::net
