#pragma once

#include <map>
#include <memory>
#include <string>

#include "apiserver/watch/store_layout.h"
#include "base/result/result.h"
#include "cmd/drakkar/store_source.h"
#include "storage/open_store.h"

namespace drakkar::cmd {

// Receives the contents of a cluster, in Drakkar's own layout. Calls block.
class StoreTarget {
 public:
  virtual ~StoreTarget() = default;
  virtual Result<void> Add(const storage::Entry& entry) = 0;
  // `revision` is the one that the entries were read at. Returns where the previous contents were
  // moved; empty if there were none.
  virtual Result<std::string> Finish(storage::Revision revision) = 0;
};

// The embedded store in this directory, replaced once the new one is complete. With `replace` one
// may exist; it is kept under another name.
Result<std::unique_ptr<StoreTarget>> OpenFileTarget(const std::string& directory, bool replace);
// The keys below the layout's root in etcd. There must be none.
Result<std::unique_ptr<StoreTarget>> OpenEtcdTarget(const storage::StoreLocation& location,
                                                    const apiserver::StoreLayout& layout);

// Passes on the objects of a store in this layout as CopyStore does, in Drakkar's own layout. Those
// that cannot be translated are among the unreadable ones.
Result<storage::Revision> CopyObjects(
    StoreSource& source, const apiserver::StoreLayout& layout, const CopyOptions& options,
    const std::function<Result<void>(const storage::Entry&)>& each,
    const std::function<void(const CopyProgress&)>& progress, CopyProgress& total);

// A digest of every object by its key in our own layout, whatever its resource version. The two
// layouts may keep the same object in different forms (the order of fields, empty maps), so each
// object is compared in the form that it has after the layout `form`.
using ObjectDigests = std::map<std::string, std::string>;
Result<ObjectDigests> DigestsOf(StoreSource& source, const apiserver::StoreLayout& layout,
                                const apiserver::StoreLayout& form);
// The first difference in words; empty if there is none.
std::string FindDifference(const ObjectDigests& wanted, const ObjectDigests& found);

}  // namespace drakkar::cmd
