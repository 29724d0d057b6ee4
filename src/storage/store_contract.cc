#include "storage/store_contract.h"

namespace drakkar::storage {

Result<TransactionResult> StoreContract::Commit(Transaction transaction) {
  struct State {
    std::optional<Result<TransactionResult>> applied;
    std::optional<Result<Revision>> durable;
  };
  auto state = std::make_shared<State>();
  harness_->Do([&] {
    harness_->store().Commit(
        std::move(transaction),
        [state](Result<TransactionResult> result) { state->applied = std::move(result); },
        [state](Result<Revision> result) {
          EXPECT_TRUE(state->applied.has_value()) << "durable before applied";
          EXPECT_FALSE(state->durable.has_value()) << "durable twice";
          state->durable = std::move(result);
        });
  });
  harness_->WaitUntil([&] {
    if (!state->applied.has_value()) return false;
    const bool succeeded = state->applied->ok() && (**state->applied).succeeded;
    return !succeeded || state->durable.has_value();
  });
  if (state->durable.has_value() && state->durable->ok()) {
    EXPECT_GE(**state->durable, (**state->applied).revision);
  }
  return std::move(*state->applied);
}

Revision StoreContract::Write(std::vector<Operation> operations) {
  Result<TransactionResult> result = Commit({{}, std::move(operations)});
  EXPECT_TRUE(result.ok());
  if (!result.ok()) return 0;
  EXPECT_TRUE(result->succeeded);
  return result->revision;
}

Result<RangeResult> StoreContract::Range(RangeOptions options) {
  auto state = std::make_shared<std::optional<Result<RangeResult>>>();
  harness_->Do([&] {
    harness_->store().Range(std::move(options),
                            [state](Result<RangeResult> result) { *state = std::move(result); });
  });
  harness_->WaitUntil([&] { return state->has_value(); });
  return std::move(**state);
}

std::vector<std::string> StoreContract::List(RangeOptions options) {
  Result<RangeResult> result = Range(std::move(options));
  if (!result.ok()) return {"error: " + result.error().message};
  std::vector<std::string> lines;
  for (const Entry& entry : result->entries) {
    lines.push_back(entry.key + "=" + (entry.value == nullptr ? "(null)" : *entry.value));
  }
  return lines;
}

std::shared_ptr<WatchRecord> StoreContract::StartWatch(WatchOptions options) {
  auto record = std::make_shared<WatchRecord>();
  harness_->Do([&] {
    WatchRecord* raw = record.get();
    record->handle = harness_->store().StartWatch(
        std::move(options), {.on_events =
                                 [raw](std::vector<WatchEvent> events, Revision up_to) {
                                   EXPECT_FALSE(raw->closed.has_value()) << "events after the end";
                                   EXPECT_GT(up_to, raw->reached()) << "a mark that does not rise";
                                   for (WatchEvent& event : events) {
                                     EXPECT_GT(event.revision, raw->reached())
                                         << "an event below the mark";
                                     EXPECT_LE(event.revision, up_to);
                                     if (!raw->events.empty()) {
                                       EXPECT_GE(event.revision, raw->events.back().revision);
                                     }
                                     raw->events.push_back(std::move(event));
                                   }
                                   raw->marks.push_back(up_to);
                                 },
                             .on_closed =
                                 [raw](Error error) {
                                   EXPECT_FALSE(raw->closed.has_value()) << "closed twice";
                                   raw->closed = std::move(error);
                                 }});
  });
  return record;
}

void StoreContract::EndWatch(const std::shared_ptr<WatchRecord>& record) {
  harness_->Do([&] { record->handle.reset(); });
}

std::vector<std::string> StoreContract::EventsUpTo(const std::shared_ptr<WatchRecord>& record,
                                                   Revision revision) {
  harness_->WaitUntil([&] { return record->reached() >= revision || record->closed.has_value(); });
  std::vector<std::string> lines;
  harness_->Do([&] {
    for (const WatchEvent& event : record->events) {
      lines.push_back(event.key + (event.is_delete() ? "-" : "=" + *event.value) + "@" +
                      std::to_string(event.revision));
    }
  });
  return lines;
}

Result<void> StoreContract::Compact(Revision revision) {
  auto state = std::make_shared<std::optional<Result<void>>>();
  harness_->Do([&] {
    harness_->store().Compact(revision, [state](Result<void> result) { *state = result; });
  });
  harness_->WaitUntil([&] { return state->has_value(); });
  return **state;
}

Revision StoreContract::Applied() {
  Revision revision = 0;
  harness_->Do([&] { revision = harness_->store().applied_revision(); });
  return revision;
}

}  // namespace drakkar::storage
