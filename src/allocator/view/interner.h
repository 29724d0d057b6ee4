#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace drakkar::allocator {

// Heterogeneous lookup in tables of strings.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

// Gives equal byte strings the same small number: 0, 1, 2 ... in order of first appearance. No
// decision depends on the order of the numbers.
class Interner {
 public:
  std::uint32_t Intern(std::string_view key) {
    const auto found = ids_.find(key);
    if (found != ids_.end()) return found->second;
    const auto id = static_cast<std::uint32_t>(ids_.size());
    ids_.emplace(std::string(key), id);
    return id;
  }
  std::size_t size() const { return ids_.size(); }
  void Clear() { ids_.clear(); }

 private:
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> ids_;
};

// Builds such keys so that different sequences never give the same bytes.
class KeyBuilder {
 public:
  void Clear() { bytes_.clear(); }
  void Number(std::uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Small(std::uint32_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Flag(bool value) { bytes_ += value ? '\1' : '\0'; }
  void Text(std::string_view text) {
    Small(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  template <typename Texts>
  void List(const Texts& texts) {
    Small(static_cast<std::uint32_t>(texts.size()));
    for (const auto& text : texts) Text(text);
  }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace drakkar::allocator
