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
  WatchRecord* raw = record.get();
  WatchCallbacks callbacks;
  callbacks.on_events = [raw](const std::vector<WatchEvent>& events, Revision up_to) {
    EXPECT_FALSE(raw->closed.has_value()) << "events after the end";
    EXPECT_GT(up_to, raw->reached()) << "a mark that does not rise";
    for (const WatchEvent& event : events) {
      EXPECT_GT(event.revision, raw->reached()) << "an event below the mark";
      EXPECT_LE(event.revision, up_to);
      if (!raw->events.empty()) {
        EXPECT_GE(event.revision, raw->events.back().revision);
      }
      raw->events.push_back(event);
    }
    raw->marks.push_back(up_to);
  };
  callbacks.on_durable = [this, raw](Revision up_to) {
    EXPECT_LE(up_to, harness_->store().durable_revision());
    EXPECT_FALSE(raw->closed.has_value()) << "durable after the end";
    EXPECT_GT(up_to, raw->durable) << "a durable mark that does not rise";
    EXPECT_LE(up_to, raw->reached()) << "durable before it was told";
    raw->durable = up_to;
  };
  callbacks.on_closed = [raw](Error error) {
    EXPECT_FALSE(raw->closed.has_value()) << "closed twice";
    raw->closed = std::move(error);
  };
  harness_->Do([&] {
    record->handle = harness_->store().StartWatch(std::move(options), std::move(callbacks));
  });
  return record;
}

void StoreContract::EndWatch(const std::shared_ptr<WatchRecord>& record) {
  harness_->Do([&] { record->handle.reset(); });
}

std::vector<std::string> StoreContract::EventsUpTo(const std::shared_ptr<WatchRecord>& record,
                                                   Revision revision) {
  EXPECT_TRUE(ReadRevision().ok());
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

Result<Revision> StoreContract::ReadRevision() {
  auto state = std::make_shared<std::optional<Result<Revision>>>();
  harness_->Do([&] {
    harness_->store().ReadRevision(
        [state](Result<Revision> result) { *state = std::move(result); });
  });
  harness_->WaitUntil([&] { return state->has_value(); });
  return std::move(**state);
}

void StoreContract::Count(Store& store, const std::string& key, std::shared_ptr<int> left) {
  if (*left == 0) return;
  store.Range({.prefix = key}, [this, &store, key, left](Result<RangeResult> now) {
    ASSERT_TRUE(now.ok()) << now.error().message;
    const Revision revision = now->entries.empty() ? 0 : now->entries[0].mod_revision;
    const int number = now->entries.empty() ? 0 : std::stoi(*now->entries[0].value);
    store.Commit(
        {{{key, revision}}, {Put(key, std::to_string(number + 1))}},
        [this, &store, key, left](Result<TransactionResult> result) {
          ASSERT_TRUE(result.ok()) << result.error().message;
          if (result->succeeded) --*left;
          Count(store, key, left);
        },
        nullptr);
  });
}

}  // namespace drakkar::storage
