#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/tree/value.h"

namespace drakkar::api {

// A published API object: an immutable tree, and its JSON, which is encoded on first use. The watch
// cache, informers and the scheduler's snapshot share it.
class Object {
 public:
  explicit Object(TreePtr tree);
  ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Value root() const { return tree_->root(); }
  Value operator[](FieldName name) const { return root()[name]; }
  const TreePtr& tree() const { return tree_; }

  std::string_view api_version() const;
  std::string_view kind() const;
  std::string_view name() const { return name_; }
  std::string_view namespace_() const { return namespace__; }
  std::string_view uid() const { return uid_; }
  // metadata.resourceVersion as a number, 0 if absent or not one of ours.
  std::int64_t resource_version() const { return resource_version_; }
  bool is_being_deleted() const { return is_being_deleted_; }  // metadata.deletionTimestamp is set
  // "namespace/name", or "name" for cluster-scoped objects.
  const std::string& qualified_name() const { return qualified_name_; }

  // Compact JSON. Thread-safe; encoded once, then shared.
  std::shared_ptr<const std::string> json() const;

  // Another form of the object (its protobuf bytes, the object in another version), made once per
  // tag and then shared; it lives as long as the object. Tags are addresses of static data; there
  // are a handful of them. `make` may return null, and must not return something that holds this
  // object. Thread-safe: if two threads make the same form at once, one result is kept.
  std::shared_ptr<const void> Form(const void* tag,
                                   const std::function<std::shared_ptr<const void>()>& make) const;

 private:
  struct FormNode;

  TreePtr tree_;
  // Frequently read metadata.
  std::string_view name_;
  std::string_view namespace__;
  std::string_view uid_;
  std::string qualified_name_;
  std::int64_t resource_version_ = 0;
  bool is_being_deleted_ = false;
  // Not std::call_once, which makes a system call after every run.
  enum class Encoding : std::uint8_t { kNone, kUnderWay, kDone };
  mutable std::atomic<Encoding> encoding_ = Encoding::kNone;
  mutable std::shared_ptr<const std::string> json_;  // set before kDone
  mutable std::atomic<FormNode*> forms_ = nullptr;   // append-only list
};
using ObjectPtr = std::shared_ptr<const Object>;

}  // namespace drakkar::api
