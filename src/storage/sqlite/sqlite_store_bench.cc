// How fast the embedded store appends, on the disk that holds the build directory
// (DRAKKAR_BENCH_DIRECTORY selects another one).

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <future>

#include "base/env/file_system.h"
#include "base/exec/uv_loop.h"
#include "storage/sqlite/sqlite_store.h"

namespace drakkar::storage {
namespace {

class BenchStore {
 public:
  BenchStore() : thread_("bench") {
    const char* parent = std::getenv("DRAKKAR_BENCH_DIRECTORY");
    directory_ =
        JoinPath(parent == nullptr ? "." : parent, "store-bench-" + std::to_string(::getpid()));
    CHECK(RealFileSystem().RemoveTree(directory_).ok());
    Open();
  }
  ~BenchStore() {
    Close();
    CHECK(RealFileSystem().RemoveTree(directory_).ok());
  }
  void Open() {
    thread_.RunSync([this] {
      auto opened = OpenSqliteStore(thread_.loop(), {.directory = directory_});
      CHECK(opened.ok());
      store = std::move(*opened);
    });
  }
  void Close() {
    thread_.RunSync([this] { store.reset(); });
  }
  template <typename F>
  void Run(F task) {
    thread_.RunSync(std::move(task));
  }

  std::unique_ptr<Store> store;

 private:
  std::string directory_;
  LoopThread thread_;
};

Operation Put(std::uint64_t number) {
  return {"/registry/resource.k8s.io/resourceclaims/default/claim-" + std::to_string(number),
          std::make_shared<const std::string>(900, 'x')};
}

// Keeps `in_flight` transactions in flight until `count` are durable.
struct Load {
  BenchStore& bench;
  std::uint64_t keys;
  std::uint64_t count;
  std::uint64_t started = 0;
  std::uint64_t finished = 0;
  std::promise<void> done;

  void Run(int in_flight) {
    bench.Run([&] {
      for (int i = 0; i < in_flight; ++i) Next();
    });
    done.get_future().wait();
  }
  void Next() {
    if (started == count) return;
    bench.store->Commit({{}, {Put(started++ % keys)}}, nullptr, [this](Result<Revision> result) {
      CHECK(result.ok());
      if (++finished == count) return done.set_value();
      Next();
    });
  }
};

void BM_Append(benchmark::State& state) {
  BenchStore bench;
  const auto in_flight = static_cast<int>(state.range(0));
  const auto keys = static_cast<std::uint64_t>(state.range(1));
  constexpr std::uint64_t kCount = 20'000;
  for (auto _ : state) {
    Load load{bench, keys, kCount};
    load.Run(in_flight);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(kCount) * state.iterations());
  StoreStatistics statistics;
  bench.Run([&] { statistics = bench.store->statistics(); });
  state.counters["rows_per_commit"] =
      static_cast<double>(statistics.transactions) / static_cast<double>(statistics.commits);
  state.counters["syncs"] = static_cast<double>(statistics.syncs);
  state.SetLabel(statistics.file_system);
}
BENCHMARK(BM_Append)
    ->Args({1, 1'000'000})
    ->Args({32, 1'000'000})
    ->Args({32, 1'000})
    ->Args({256, 1'000'000})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

void BM_Open(benchmark::State& state) {
  BenchStore bench;
  const auto count = static_cast<std::uint64_t>(state.range(0));
  if (count > 0) {
    Load load{bench, count, count};
    const struct mallinfo2 before = mallinfo2();
    load.Run(1'024);
    state.counters["bytes_per_entry"] =
        static_cast<double>(mallinfo2().uordblks - before.uordblks) / static_cast<double>(count);
  }
  for (auto _ : state) {
    state.PauseTiming();
    bench.Close();
    state.ResumeTiming();
    bench.Open();
  }
}
BENCHMARK(BM_Open)->Arg(0)->Arg(100'000)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace drakkar::storage
