#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/env/clock.h"
#include "base/env/pause.h"
#include "base/result/result.h"
#include "storage/backup/record.h"
#include "storage/open_store.h"

namespace drakkar::cmd {

// Contents of a store, page by page, from a running API server or from the store itself. Calls
// block.
class StoreSource {
 public:
  virtual ~StoreSource() = default;
  // The entries after `after`. Revision 0: of the newest state; the page names its revision.
  virtual Result<storage::BackupPage> Page(storage::Revision revision,
                                           const std::string& after) = 0;
  // The next slice of a check.
  virtual Result<storage::VerifyResult> Check(const std::string& from) = 0;
};

// The store of the API server that this kubeconfig names.
Result<std::unique_ptr<StoreSource>> OpenServerStore(const std::string& kubeconfig);
// A store that no server uses, or one in etcd. Only keys under `prefix`.
Result<std::unique_ptr<StoreSource>> OpenOwnStore(const storage::StoreLocation& location,
                                                  std::string prefix);

struct CopyOptions {
  std::uint64_t bytes_per_second_max = 0;  // 0: as fast as possible
  const Clock& clock = RealClock();
  Pause& pause = RealPause();
};
struct CopyProgress {
  std::uint64_t entries = 0;
  std::uint64_t entries_expected = 0;
  std::uint64_t bytes = 0;
  std::vector<storage::UnreadableEntry> unreadable;  // left out
};
// Passes on a consistent snapshot of the store, entry by entry. Returns its revision.
Result<storage::Revision> CopyStore(StoreSource& source, const CopyOptions& options,
                                    const std::function<Result<void>(const storage::Entry&)>& each,
                                    const std::function<void(const CopyProgress&)>& progress,
                                    CopyProgress& total);

}  // namespace drakkar::cmd
