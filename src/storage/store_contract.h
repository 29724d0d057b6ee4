#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "storage/store.h"

namespace drakkar::storage {

// What an engine provides to the contract test: a store on a loop, and a way to wait for it.
class StoreHarness {
 public:
  virtual ~StoreHarness() = default;
  // Call it only inside Do.
  virtual Store& store() = 0;
  // Runs `task` on the store's loop and returns when it is done.
  virtual void Do(const std::function<void()>& task) = 0;
  // Runs the loop until `condition`, checked on the loop, holds. Fails the test if it never does.
  virtual void WaitUntil(const std::function<bool()>& condition) = 0;
  // Stops the store and reopens it over the same data.
  virtual void Reopen() = 0;
  // Another store over the same data, or store() itself if the engine has none. Call it only inside
  // Do.
  virtual Store& other() { return store(); }
  // For remote engines: store() loses its connection, and gets it back.
  virtual void Disconnect() {}
  virtual void Reconnect() {}
};

struct StoreEngine {
  std::string name;
  // Null: the engine cannot run on this machine, and the tests are skipped.
  std::function<std::unique_ptr<StoreHarness>()> make;
  bool survives_reopen = true;
  bool is_remote = false;
};

inline void PrintTo(const StoreEngine& engine, std::ostream* out) {
  *out << engine.name;
}

// Everything a watcher received.
struct WatchRecord {
  std::vector<WatchEvent> events;
  std::vector<Revision> marks;  // every up_to
  Revision durable = 0;         // the last on_durable
  std::optional<Error> closed;
  std::unique_ptr<Watch> handle;  // touched on the loop only

  Revision reached() const { return marks.empty() ? 0 : marks.back(); }
};

// The suite must pass for every engine: instantiate it with StoreEngine values
// (INSTANTIATE_TEST_SUITE_P(Name, StoreContract, ...)) in a binary with store_contract_test.cc.
class StoreContract : public ::testing::TestWithParam<StoreEngine> {
 protected:
  void SetUp() override {
    if (!GetParam().make) GTEST_SKIP() << GetParam().name << " is not on this machine";
    harness_ = GetParam().make();
  }

  static Bytes Value(std::string text) {
    return std::make_shared<const std::string>(std::move(text));
  }
  static Operation Put(std::string key, std::string value) {
    return {std::move(key), Value(std::move(value))};
  }
  static Operation Delete(std::string key) { return {std::move(key), nullptr}; }

  // Commits and waits until the transaction is durable or refused.
  Result<TransactionResult> Commit(Transaction transaction);
  // Commits a transaction that must succeed; returns its revision.
  Revision Write(std::vector<Operation> operations);
  Result<RangeResult> Range(RangeOptions options);
  // "key=value" of each entry, for short comparisons.
  std::vector<std::string> List(RangeOptions options);
  std::shared_ptr<WatchRecord> StartWatch(WatchOptions options);
  void EndWatch(const std::shared_ptr<WatchRecord>& record);
  // Calls ReadRevision, waits until the watcher has reached `revision`, then returns
  // "key=value@revision" or "key-@revision" for each event.
  std::vector<std::string> EventsUpTo(const std::shared_ptr<WatchRecord>& record,
                                      Revision revision);
  Result<void> Compact(Revision revision);
  Result<Revision> ReadRevision();
  // Starts incrementing the number at `key`, `*left` times. Each increment is retried until its
  // transaction wins, and then decrements `left`.
  void Count(Store& store, const std::string& key, std::shared_ptr<int> left);

  std::unique_ptr<StoreHarness> harness_;
};

}  // namespace drakkar::storage
