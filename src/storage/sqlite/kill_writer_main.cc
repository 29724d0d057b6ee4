// The process that sqlite_kill_test kills. It writes as fast as it can and reports the number of
// each durable transaction (8 bytes, native order) on standard output.
//
//   store_kill_writer DIRECTORY

#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "storage/sqlite/kill_workload.h"
#include "storage/sqlite/sqlite_store.h"

namespace {

using namespace drakkar;           // NOLINT
using namespace drakkar::storage;  // NOLINT

constexpr int kInFlight = 32;

struct Writer {
  Store& store;
  std::int64_t next;

  void Start() {
    const std::int64_t number = next++;
    store.Commit(
        KillTransaction(number),
        [number](Result<TransactionResult> result) {
          CHECK(result.ok() && result->revision == KillRevision(number));
        },
        [this, number](Result<Revision> result) {
          CHECK(result.ok());
          // Exit when the reader is gone, so that an aborted test leaves no process behind.
          if (::write(STDOUT_FILENO, &number, sizeof number) != sizeof number) ::_exit(3);
          Start();
        });
  }
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: store_kill_writer DIRECTORY\n");
    return 2;
  }
  UvLoop loop;
  SqliteStoreOptions options;
  options.directory = arguments[1];
  // Limits are small, so that kills also interrupt compaction, reads from the log and checkpoints.
  options.log_bytes = 1u << 20;
  options.limits.history_bytes_max = 4u << 20;
  options.limits.history_resident_bytes_max = 1u << 20;
  Result<std::unique_ptr<Store>> store = OpenSqliteStore(loop, std::move(options));
  if (!store.ok()) {
    std::fprintf(stderr, "store_kill_writer: %s\n", store.error().message.c_str());
    return 1;
  }
  Writer writer{**store, (*store)->applied_revision()};
  loop.Post([&] {
    for (int i = 0; i < kInFlight; ++i) writer.Start();
  });
  loop.Run();
}
