#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "api/tree/value.h"

namespace drakkar::api {

// A published API object: an immutable tree and its JSON, made once when first asked for. Watch
// cache, informers and the scheduler's snapshot share it.
class Object {
 public:
  explicit Object(TreePtr tree);

  Value root() const { return tree_->root(); }
  Value operator[](const Key& key) const { return root()[key]; }
  Value operator[](std::string_view name) const { return root()[name]; }
  Value operator[](const char* name) const { return root()[name]; }
  const TreePtr& tree() const { return tree_; }

  std::string_view api_version() const;
  std::string_view kind() const;
  std::string_view name() const;
  std::string_view namespace_() const;
  std::string_view uid() const;
  // metadata.resourceVersion as a number, 0 if absent or not one of ours.
  std::int64_t resource_version() const;
  bool is_being_deleted() const;  // metadata.deletionTimestamp is set
  // "namespace/name", or "name" for cluster-scoped objects.
  std::string qualified_name() const;

  // Compact JSON. Thread-safe; encoded once, then shared.
  std::shared_ptr<const std::string> json() const;

 private:
  TreePtr tree_;
  mutable std::once_flag encoded_;
  mutable std::shared_ptr<const std::string> json_;
};
using ObjectPtr = std::shared_ptr<const Object>;

}  // namespace drakkar::api
