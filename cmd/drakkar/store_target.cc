#include "cmd/drakkar/store_target.h"

#include <future>
#include <utility>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "apiserver/watch/layout_change.h"
#include "base/hash/sha256.h"
#include "base/text/text.h"
#include "storage/sqlite/store_file.h"

namespace drakkar::cmd {
namespace {

// etcd accepts 128 operations and 1.5 MiB per transaction unless it is configured otherwise.
constexpr std::size_t kMaxOperations = 100;
constexpr std::size_t kMaxBatchBytes = std::size_t{512} << 10;
// As --event-ttl of the API server.
constexpr Duration kEventTtl = std::chrono::hours(1);

class FileTarget final : public StoreTarget {
 public:
  explicit FileTarget(std::unique_ptr<storage::StoreFileWriter> writer)
      : writer_(std::move(writer)) {}
  Result<void> Add(const storage::Entry& entry) override { return writer_->Add(entry); }
  Result<std::string> Finish(storage::Revision revision) override {
    return writer_->Finish(revision + storage::kRevisionLeap);
  }

 private:
  std::unique_ptr<storage::StoreFileWriter> writer_;
};

class EtcdTarget final : public StoreTarget {
 public:
  explicit EtcdTarget(const apiserver::StoreLayout& layout)
      : thread_("store"), layout_(layout), change_(layout) {}
  ~EtcdTarget() override {
    if (store_ == nullptr) return;
    std::promise<void> stopped;
    thread_.RunSync([&] { store_->Stop([&stopped] { stopped.set_value(); }); });
    stopped.get_future().wait();
    thread_.RunSync([this] { store_.reset(); });
  }

  Result<void> Open(const storage::StoreLocation& location) {
    Result<void> result = Ok();
    thread_.RunSync([&] {
      Result<std::unique_ptr<storage::Store>> opened = storage::OpenStore(thread_.loop(), location);
      if (!opened.ok()) result = std::move(opened).error();
      if (opened.ok()) store_ = *std::move(opened);
    });
    RETURN_IF_ERROR(std::move(result));
    std::promise<Result<storage::RangeResult>> promise;
    thread_.RunSync([&] {
      store_->Range(
          {.prefix = apiserver::RootPrefix(layout_), .limit = 1},
          [&promise](Result<storage::RangeResult> range) { promise.set_value(std::move(range)); });
    });
    ASSIGN_OR_RETURN(const storage::RangeResult range, promise.get_future().get());
    if (range.entries.empty()) return Ok();
    return FailedPrecondition(StrCat("there are keys below ", apiserver::RootPrefix(layout_),
                                     " in etcd already; delete them, or choose another "
                                     "--etcd-prefix"));
  }

  Result<void> Add(const storage::Entry& entry) override {
    ASSIGN_OR_RETURN(storage::Operation write, change_.FromOwn(entry, kEventTtl));
    const std::size_t bytes = write.key.size() + write.value->size();
    if (batch_.operations.size() >= kMaxOperations ||
        (batch_bytes_ > 0 && batch_bytes_ + bytes > kMaxBatchBytes)) {
      RETURN_IF_ERROR(Flush());
    }
    batch_.conditions.push_back({write.key, 0});
    batch_.operations.push_back(std::move(write));
    batch_bytes_ += bytes;
    return Ok();
  }

  Result<std::string> Finish(storage::Revision /*revision*/) override {
    RETURN_IF_ERROR(Flush());
    return std::string();
  }

 private:
  Result<void> Flush() {
    if (batch_.operations.empty()) return Ok();
    std::promise<Result<storage::TransactionResult>> promise;
    thread_.RunSync([&] {
      store_->Commit(
          std::move(batch_),
          [&promise](Result<storage::TransactionResult> done) {
            promise.set_value(std::move(done));
          },
          nullptr);
    });
    batch_ = {};
    batch_bytes_ = 0;
    Result<storage::TransactionResult> done = promise.get_future().get();
    const std::string_view advice = "; a part has been written: delete it before you try again";
    if (!done.ok()) return Error{done.error().code, StrCat(done.error().message, advice)};
    if (done->succeeded) return Ok();
    return FailedPrecondition(StrCat("somebody else wrote ", done->failed.front().first, advice));
  }

  LoopThread thread_;
  const apiserver::StoreLayout layout_;
  const apiserver::LayoutChange change_;
  std::unique_ptr<storage::Store> store_;
  storage::Transaction batch_;
  std::size_t batch_bytes_ = 0;
};

// A digest of what a client sees of an object, except for its version.
Result<std::string> DigestOf(const storage::Entry& entry) {
  if (!entry.value->starts_with('{')) return Sha256Hex(*entry.value);
  ASSIGN_OR_RETURN(const api::TreePtr tree, api::ParseJson(*entry.value));
  api::Draft draft(tree);
  if (api::Draft* metadata = draft.Find("metadata")) metadata->Remove("resourceVersion");
  return Sha256Hex(api::WriteJson(draft.Freeze()->root(), {.sort_members = true}));
}

}  // namespace

Result<std::unique_ptr<StoreTarget>> OpenFileTarget(const std::string& directory, bool replace) {
  ASSIGN_OR_RETURN(std::unique_ptr<storage::StoreFileWriter> writer,
                   storage::StoreFileWriter::Open(directory, RealClock(), replace));
  return std::unique_ptr<StoreTarget>(std::make_unique<FileTarget>(std::move(writer)));
}

Result<std::unique_ptr<StoreTarget>> OpenEtcdTarget(const storage::StoreLocation& location,
                                                    const apiserver::StoreLayout& layout) {
  auto target = std::make_unique<EtcdTarget>(layout);
  RETURN_IF_ERROR(target->Open(location));
  return std::unique_ptr<StoreTarget>(std::move(target));
}

Result<storage::Revision> CopyObjects(
    StoreSource& source, const apiserver::StoreLayout& layout, const CopyOptions& options,
    const std::function<Result<void>(const storage::Entry&)>& each,
    const std::function<void(const CopyProgress&)>& progress, CopyProgress& total) {
  if (!layout.is_kubernetes) return CopyStore(source, options, each, progress, total);
  const apiserver::LayoutChange change(layout);
  std::vector<storage::UnreadableEntry> unreadable;
  Result<storage::Revision> revision = CopyStore(
      source, options,
      [&](const storage::Entry& entry) -> Result<void> {
        Result<std::optional<storage::Entry>> own = change.ToOwn(entry);
        if (!own.ok()) {
          unreadable.push_back({entry.key, entry.mod_revision, own.error().message});
          return Ok();
        }
        return own->has_value() ? each(**own) : Ok();
      },
      progress, total);
  for (storage::UnreadableEntry& entry : unreadable) total.unreadable.push_back(std::move(entry));
  return revision;
}

Result<ObjectDigests> DigestsOf(StoreSource& source, const apiserver::StoreLayout& layout,
                                const apiserver::StoreLayout& form) {
  ObjectDigests digests;
  CopyProgress total;
  const apiserver::LayoutChange change(form);
  const Result<storage::Revision> revision = CopyObjects(
      source, layout, {},
      [&](const storage::Entry& entry) -> Result<void> {
        ASSIGN_OR_RETURN(storage::Operation write, change.FromOwn(entry, kEventTtl));
        ASSIGN_OR_RETURN(const std::optional<storage::Entry> own,
                         change.ToOwn({std::move(write.key), std::move(write.value),
                                       entry.create_revision, entry.mod_revision}));
        if (own) {
          ASSIGN_OR_RETURN(digests[own->key], DigestOf(*own));
        }
        return Ok();
      },
      {}, total);
  if (!revision.ok()) return revision.error();
  if (total.unreadable.empty()) return digests;
  return Error{ErrorCode::kDataLoss, StrCat(total.unreadable.front().key,
                                            " cannot be read: ", total.unreadable.front().reason)};
}

std::string FindDifference(const ObjectDigests& wanted, const ObjectDigests& found) {
  for (const auto& [key, digest] : wanted) {
    const auto other = found.find(key);
    if (other == found.end()) return StrCat(key, " is missing");
    if (other->second != digest) return StrCat(key, " differs");
  }
  for (const auto& [key, digest] : found) {
    if (!wanted.contains(key)) return StrCat(key, " should not be there");
  }
  return "";
}

}  // namespace drakkar::cmd
