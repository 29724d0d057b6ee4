#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::api {

class Arena;

// A name held by a draft: a schema key, a key in a borrowed tree, or an owned one. Copies share it.
// Behaves like a `const Key*`.
class KeyRef {
 public:
  explicit KeyRef(std::string_view name);
  // `key` must be a schema name or outlive the reference.
  KeyRef(const Key& key) : key_(std::shared_ptr<const void>(), &key) {}  // NOLINT: implicit
  // `keeper` keeps `key` alive.
  KeyRef(const Key& key, std::shared_ptr<const void> keeper) : key_(std::move(keeper), &key) {}

  const Key& operator*() const { return *key_; }
  const Key* operator->() const { return key_.get(); }
  const Key* get() const { return key_.get(); }

 private:
  std::shared_ptr<const Key> key_;
};

// A value under construction. It starts empty or from a tree. Only the levels that are changed are
// copied; everything else stays borrowed until Freeze copies it into one new block.
//
//   Draft draft(pod);                                 // borrows; keeps pod's tree alive
//   draft["status"]["phase"] = "Running";             // creates missing objects
//   draft["metadata"]["finalizers"].Append("x/y");
//   TreePtr changed = draft.Freeze();
//
// References to members and elements are invalidated when their container grows or shrinks. Not
// thread-safe.
class Draft {
 public:
  using Members = std::vector<std::pair<KeyRef, Draft>>;
  using Elements = std::vector<Draft>;
  struct Field;

  Draft();                // absent: Freeze omits it
  Draft(std::nullptr_t);  // NOLINT: implicit, as in JSON
  template <std::same_as<bool> T>
  Draft(T value) : state_(static_cast<bool>(value)) {}  // NOLINT
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  Draft(T value) : state_(static_cast<std::int64_t>(value)) {}  // NOLINT
  Draft(double value);                                          // NOLINT
  Draft(const char* text);                                      // NOLINT
  Draft(std::string_view text);                                 // NOLINT
  Draft(std::string text);                                      // NOLINT
  Draft(std::initializer_list<Field> fields);
  // Borrows: `value` must outlive the draft, or be kept alive by KeepAlive.
  explicit Draft(Value value);
  // Borrows from the tree and keeps it alive.
  explicit Draft(TreePtr tree);
  static Draft Object();
  // An object whose names are data: labels, annotations, capacity.
  static Draft Map(std::initializer_list<std::pair<std::string_view, Draft>> entries);
  static Draft Array();
  static Draft Array(std::vector<Draft> elements);
  static Draft Raw(std::string json);

  Draft(const Draft&);
  Draft(Draft&&) noexcept;
  Draft& operator=(const Draft&);
  Draft& operator=(Draft&&) noexcept;
  ~Draft();

  ValueKind kind() const;
  bool exists() const { return kind() != ValueKind::kAbsent; }
  bool has_value() const { return kind() > ValueKind::kNull; }
  bool is_object() const { return kind() == ValueKind::kObject; }
  bool is_array() const { return kind() == ValueKind::kArray; }
  std::string_view str(std::string_view fallback = {}) const;
  std::int64_t integer(std::int64_t fallback = 0) const;
  double number(double fallback = 0) const;
  bool boolean(bool fallback = false) const;
  std::size_t size() const;  // elements or members

  // Returns the member, adding an absent one if it is missing. A draft that is not an object
  // becomes an empty one.
  Draft& operator[](FieldName name) { return Entry(name.key()); }
  // The member or null; no visible change.
  Draft* Find(FieldName name);
  bool Has(FieldName name) const;  // present and not absent
  bool Remove(FieldName name);     // true if it was present

  // The same for names that are known only at run time: keys of maps, names from the schema.
  Draft& Entry(std::string_view name);
  Draft& Entry(const Key& key);
  Draft* FindEntry(std::string_view name);
  bool HasEntry(std::string_view name) const;
  bool RemoveEntry(std::string_view name);

  // The element; `index` must be less than size().
  Draft& at(std::size_t index);
  // A draft that is not an array becomes an empty one first.
  Draft& Append(Draft element);
  void Insert(std::size_t index, Draft element);
  void RemoveAt(std::size_t index);

  // Direct access for algorithms (patches, defaults): expands a borrowed level first.
  Members& MutableMembers();
  Elements& MutableElements();

  // The borrowed value if this level is unchanged, otherwise absent: lets algorithms skip unchanged
  // parts.
  Value borrowed() const;

  void KeepAlive(std::shared_ptr<const void> owner);

  // Copies everything into one block. Absent members and elements are omitted; an absent root gives
  // an absent value.
  TreePtr Freeze() const;

 private:
  struct OwnedText {
    std::string text;
    bool raw;
  };

  // `Name` is a std::string_view or a Key of the schema.
  template <typename Name>
  bool HasMember(const Name& name) const;
  template <typename Name>
  bool RemoveMember(const Name& name);

  Node ToNode(Arena& arena) const;
  void MakeObject();  // expands a borrowed object; anything else becomes an empty one
  void MakeArray();

  std::variant<std::monostate, const Node*, std::nullptr_t, bool, std::int64_t, double, OwnedText,
               std::unique_ptr<Elements>, std::unique_ptr<Members>>
      state_;
  // Keeps alive what this draft borrows from; expanded levels inherit it.
  std::shared_ptr<const void> kept_;
};

// One of the braces in Draft{{"name", "a"}, {"priority", 1}}.
struct Draft::Field {
  FieldName name;
  Draft value;
};

}  // namespace drakkar::api
