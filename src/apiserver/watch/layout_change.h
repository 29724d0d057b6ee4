#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/scheme/scheme.h"
#include "apiserver/watch/store_layout.h"
#include "base/env/clock.h"
#include "base/result/result.h"
#include "storage/store.h"

namespace drakkar::apiserver {

// Translates entries between a layout and Drakkar's own one, in which backups are kept: keys, the
// encoding of values, and the resource version that values have in our own layout only. Keys of
// kinds that are not known here, and their values, are left as they are, below the other root.
class LayoutChange {
 public:
  explicit LayoutChange(StoreLayout layout);

  // nullopt for records that servers on a shared store derive from the objects.
  Result<std::optional<storage::Entry>> ToOwn(const storage::Entry& entry) const;
  // The write that creates this entry of our own layout. Events get `event_ttl`.
  Result<storage::Operation> FromOwn(const storage::Entry& entry, Duration event_ttl) const;

 private:
  using ByPrefix = std::map<std::string, const api::KindSchema*>;
  static ByPrefix PrefixesOf(const StoreLayout& layout);
  // The kind whose keys begin like this one; end() if there is none.
  static ByPrefix::const_iterator FindKind(const ByPrefix& prefixes, const std::string& key);

  const StoreLayout layout_;
  const StoreLayout own_;
  const ByPrefix prefixes_;
  const ByPrefix own_prefixes_;
};

}  // namespace drakkar::apiserver
