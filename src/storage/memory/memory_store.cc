#include "storage/memory/memory_store.h"

#include <utility>

#include "base/exec/lifetime.h"

namespace drakkar::storage {

void MemoryDisk::FailSync(std::uint64_t nth, Error error) {
  failure_ = {nth, std::move(error)};
}

void MemoryDisk::ReleaseSyncs() {
  held_ = false;
  if (on_released_) on_released_();
}

void MemoryDisk::SetFull(bool full) {
  held_ = full;
  if (on_full_) on_full_();
  if (!full && on_released_) on_released_();
}

void MemoryDisk::Damage(const std::string& key) {
  for (auto row = rows_.rbegin(); row != rows_.rend(); ++row) {
    if (row->second.key != key) continue;
    row->second.value = nullptr;
    row->second.damaged = true;
    return;
  }
}

class MemoryLog final : public RowLog {
 public:
  MemoryLog(EventLoop& loop, MemoryDisk& disk) : loop_(loop), disk_(disk) {
    disk_.on_released_ = [this] { StartSync(); };
    disk_.on_full_ = [this] {
      std::optional<Error> full;
      if (disk_.held_) full = Error{ErrorCode::kResourceExhausted, "the disk is full"};
      listener_.on_space(std::move(full), disk_.held_ && !queue_.empty());
    };
  }
  ~MemoryLog() override {
    disk_.on_released_ = nullptr;
    disk_.on_full_ = nullptr;
  }

  void Start(Listener listener) override { listener_ = std::move(listener); }

  void Append(RowBatch batch) override {
    if (failed_) return;
    for (const Row& row : batch.rows) queued_bytes_ += Size(row);
    queue_.push_back(std::move(batch));
    StartSync();
  }

  void Read(std::vector<RowId> rows,
            std::function<void(Result<std::vector<Bytes>>)> done) override {
    Result<std::vector<Bytes>> result = Find(rows);
    Post([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }

  void Close(std::function<void()> done) override {
    on_closed_ = std::move(done);
    if (syncing_.empty() && queue_.empty()) Post([this] { std::exchange(on_closed_, nullptr)(); });
  }

  std::size_t queued_bytes() const override { return queued_bytes_; }
  RowLogStatistics statistics() const override { return statistics_; }

 private:
  static std::size_t Size(const Row& row) {
    return row.key.size() + (row.value == nullptr ? 0 : row.value->size());
  }

  void Post(Task task) { loop_.Post(lifetime_.Guard(std::move(task))); }

  Result<std::vector<Bytes>> Find(const std::vector<RowId>& rows) const {
    std::vector<Bytes> values;
    for (RowId row : rows) {
      auto found = disk_.rows_.find(row);
      if (found == disk_.rows_.end()) {
        return Error{ErrorCode::kDataLoss, "row " + std::to_string(row) + " is missing"};
      }
      values.push_back(found->second.value);
    }
    return values;
  }

  void StartSync() {
    if (disk_.held_ || failed_ || !syncing_.empty() || queue_.empty()) return;
    syncing_.swap(queue_);
    timer_ = loop_.RunAfter(disk_.sync_delay_, [this] { FinishSync(); });
  }

  void FinishSync() {
    timer_.reset();
    std::vector<RowBatch> batches;
    batches.swap(syncing_);
    if (disk_.failure_.has_value() && --disk_.failure_->first == 0) {
      failed_ = true;
      queue_.clear();
      Error error = std::move(disk_.failure_->second);
      disk_.failure_.reset();
      const Lifetime::Observer self = lifetime_.Observe();
      listener_.on_failed(std::move(error));
      if (self.alive()) FinishClose();
      return;
    }
    Revision up_to = 0;
    for (RowBatch& batch : batches) {
      for (Row& row : batch.rows) {
        queued_bytes_ -= Size(row);
        statistics_.bytes_written += Size(row);
        up_to = RowRevision(row.id);
        disk_.rows_.insert_or_assign(row.id, std::move(row));
      }
      for (RowId row : batch.removed) disk_.rows_.erase(row);
      if (batch.compacted != 0) disk_.compacted_ = batch.compacted;
    }
    ++statistics_.commits;
    ++statistics_.syncs;
    StartSync();
    const Lifetime::Observer self = lifetime_.Observe();
    if (up_to != 0) listener_.on_durable(up_to);
    if (self.alive()) FinishClose();
  }

  void FinishClose() {
    if (on_closed_ && syncing_.empty() && queue_.empty()) std::exchange(on_closed_, nullptr)();
  }

  EventLoop& loop_;
  MemoryDisk& disk_;
  Listener listener_;
  std::vector<RowBatch> queue_;
  std::vector<RowBatch> syncing_;
  TimerHandle timer_;
  std::function<void()> on_closed_;
  std::size_t queued_bytes_ = 0;
  bool failed_ = false;
  RowLogStatistics statistics_;
  Lifetime lifetime_;
};

std::unique_ptr<Store> OpenMemoryStore(EventLoop& loop, MemoryDisk& disk, LocalStoreLimits limits) {
  LoadedRows loaded;
  loaded.compacted = disk.compacted_;
  for (const auto& [id, row] : disk.rows_) {
    loaded.newest = RowRevision(id);
    loaded.index.Apply(row);
  }
  return std::make_unique<LocalStore>(loop, limits, std::move(loaded),
                                      std::make_unique<MemoryLog>(loop, disk));
}

}  // namespace drakkar::storage
