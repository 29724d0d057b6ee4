// Measures the cost of device metadata (KEP-5304): metadata_latency DIRECTORY [ROUNDS]. Prints JSON
// lines:
//
//   {"operation": "call", "metadata": true, "devices": 8, "p50_us": X, "p99_us": Y}
//       NodePrepareResources over the driver's socket, alternating with the flag on and off. The
//       claim comes from memory and the plugin does nothing, so the difference is the metadata.
//   {"operation": "prepare", "devices": 8, "p50_us": X, "p99_us": Y, "syncs": 0}
//       the same inside the driver, with the number of disk syncs; also for repeated_prepare,
//       update and unprepare
//    {"operation": "disk_sync", "devices": 0, ...}
//       the time the disk needs for a durable 4 KiB write
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "api/json/reader.h"
#include "base/env/clock.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "rpc/dra/dra_client.h"
#include "sdk/driver/driver.h"
#include "sdk/driver/metadata/metadata_store.h"
#include "sdk/driver/testing/claim_client.h"

namespace drakkar::driver {
namespace {

constexpr char kDriver[] = "d.example.com";
constexpr int kSyncRounds = 300;

// The real file system, counting syncs.
class CountingFiles final : public FileSystem {
 public:
  int syncs = 0;

  Result<std::string> ReadFile(const std::string& path) override { return real_.ReadFile(path); }
  Result<void> WriteFile(const std::string& path, std::string_view content,
                         std::uint32_t mode) override {
    return real_.WriteFile(path, content, mode);
  }
  Result<void> AppendFile(const std::string& path, std::string_view content,
                          std::uint32_t mode) override {
    return real_.AppendFile(path, content, mode);
  }
  Result<void> SyncFile(const std::string& path) override {
    ++syncs;
    return real_.SyncFile(path);
  }
  Result<void> SyncDirectory(const std::string& path) override {
    ++syncs;
    return real_.SyncDirectory(path);
  }
  Result<void> Rename(const std::string& from, const std::string& to) override {
    return real_.Rename(from, to);
  }
  Result<void> Remove(const std::string& path) override { return real_.Remove(path); }
  Result<void> RemoveTree(const std::string& path) override { return real_.RemoveTree(path); }
  Result<void> MakeDirectories(const std::string& path, std::uint32_t mode) override {
    return real_.MakeDirectories(path, mode);
  }
  Result<std::vector<std::string>> ListDirectory(const std::string& path) override {
    return real_.ListDirectory(path);
  }
  Result<FileInfo> Stat(const std::string& path) override { return real_.Stat(path); }
  Result<FileInfo> LinkStat(const std::string& path) override { return real_.LinkStat(path); }
  Result<std::string> ReadLink(const std::string& path) override { return real_.ReadLink(path); }
  Result<void> SetMode(const std::string& path, std::uint32_t mode) override {
    return real_.SetMode(path, mode);
  }

 private:
  FileSystem& real_ = RealFileSystem();
};

// One request with `count` devices of eight attributes each.
std::vector<PreparedDevice> MakeDevices(int count) {
  std::vector<PreparedDevice> devices;
  for (int i = 0; i < count; ++i) {
    PreparedDevice& device = devices.emplace_back();
    device.request_names = {"gpu"};
    device.pool_name = "node";
    device.device_name = StrCat("gpu-", i);
    device.metadata.emplace();
    for (int j = 0; j < 7; ++j) {
      device.metadata->attributes[StrCat("attribute", j)] = StrCat("value ", i, " ", j);
    }
    device.metadata->attributes["resource.kubernetes.io/pciBusID"] = std::string("0000:00:01.0");
  }
  return devices;
}

std::string MakeClaim(int count, int round) {
  std::string results;
  for (int i = 0; i < count; ++i) {
    results += StrCat(i == 0 ? "" : ",", R"({"request":"gpu","driver":")", kDriver,
                      R"(","pool":"node","device":"gpu-)", i, "\"}");
  }
  return StrCat(R"({"metadata":{"namespace":"ns","name":"c)", round, R"(","uid":"u)", round,
                R"("},"status":{"allocation":{"devices":{"results":[)", results, "]}}}}");
}

class Samples {
 public:
  explicit Samples(std::string operation, std::string more = "")
      : operation_(std::move(operation)), more_(std::move(more)) {}

  template <typename Work>
  void Measure(Work work, const int* syncs = nullptr) {
    const int before = syncs != nullptr ? *syncs : 0;
    const MonotonicTime begun = RealClock().Monotonic();
    const Result<void> done = work();
    taken_.push_back(RealClock().Monotonic() - begun);
    if (syncs != nullptr) syncs_ = std::max(syncs_, *syncs - before);
    if (!done.ok()) {
      std::fprintf(stderr, "%s: %s\n", operation_.c_str(), done.error().message.c_str());
      failed_ = true;
    }
  }

  bool Print(int devices) {
    std::sort(taken_.begin(), taken_.end());
    const auto at = [&](std::size_t percent) {
      return static_cast<double>(taken_[taken_.size() * percent / 100].count()) / 1000;
    };
    std::printf("{\"operation\": \"%s\", \"devices\": %d, \"p50_us\": %.1f, \"p99_us\": %.1f%s",
                operation_.c_str(), devices, at(50), at(99), more_.c_str());
    if (syncs_ >= 0) std::printf(", \"syncs\": %d", syncs_);
    std::printf("}\n");
    return !failed_;
  }

 private:
  const std::string operation_;
  const std::string more_;
  std::vector<Duration> taken_;
  int syncs_ = -1;
  bool failed_ = false;
};

bool MeasureDisk(const std::string& directory) {
  Samples sync("disk_sync");
  const std::string path = JoinPath(directory, "sync");
  for (int round = 0; round < kSyncRounds; ++round) {
    static_cast<void>(RealFileSystem().AppendFile(path, std::string(4096, 'x'), 0600));
    sync.Measure([&] { return RealFileSystem().SyncFile(path); });
  }
  return sync.Print(0);
}

bool MeasureStore(const std::string& directory, int count, int rounds) {
  CountingFiles files;
  auto store = MetadataStore::Create({.files = files,
                                      .driver_name = kDriver,
                                      .directory = directory + "/plugin",
                                      .cdi_directory = directory + "/cdi"});
  if (!store.ok()) return false;
  Samples prepare("prepare"), repeat("repeated_prepare"), update("update"), remove("unprepare");
  for (int round = 0; round < rounds; ++round) {
    const api::Object claim(*api::ParseJson(MakeClaim(count, round)));
    std::vector<PreparedDevice> devices = MakeDevices(count);
    std::vector<PreparedDevice> again = devices;
    const std::vector<PreparedDevice> changed = devices;
    prepare.Measure([&] { return (*store)->Prepare(claim, devices); }, &files.syncs);
    repeat.Measure([&] { return (*store)->Prepare(claim, again); }, &files.syncs);
    // Updates sync to disk; a fifth of the rounds is enough.
    if (round % 5 == 0) {
      update.Measure(
          [&] {
            return (*store)->Update({"ns", StrCat("c", round), "", "gpu"}, changed);
          },
          &files.syncs);
    }
    remove.Measure(
        [&] {
          return (*store)->Remove({"ns", StrCat("u", round), StrCat("c", round)});
        },
        &files.syncs);
  }
  const bool good = prepare.Print(count) && repeat.Print(count);
  return good && update.Print(count) && remove.Print(count);
}

class IdlePlugin final : public SynchronousPlugin {
 public:
  std::vector<PreparedDevice> devices;

 private:
  Result<std::vector<PreparedDevice>> PrepareResourceClaim(const api::Object&) override {
    return devices;
  }
  Result<void> UnprepareResourceClaim(const rpc::ClaimReference&) override { return Ok(); }
};

// A driver that serves its socket, and the node that calls it, on one loop.
class CalledDriver {
 public:
  CalledDriver(UvLoop& loop, const std::string& directory, bool metadata)
      : loop_(loop), client_(loop), transport_(rpc::MakeGrpcTransport(loop)) {
    OnLoop([&](Task stop) {
      auto driver = Driver::Start({.loop = loop_,
                                   .random = RealRandom(),
                                   .files = RealFileSystem(),
                                   .client = client_,
                                   .transport = *transport_,
                                   .plugin = plugin,
                                   .driver_name = kDriver,
                                   .node_name = "node",
                                   .registry_directory = JoinPath(directory, "plugins_registry"),
                                   .device_metadata = metadata,
                                   .cdi_directory = JoinPath(directory, "cdi")});
      if (driver.ok()) {
        driver_ = *std::move(driver);
        node_ = rpc::DialDraPlugin(*transport_, {.endpoint = driver_->plugin_socket_path()});
      } else {
        std::fprintf(stderr, "%s\n", driver.error().message.c_str());
      }
      stop();
    });
  }
  ~CalledDriver() {
    OnLoop([&](Task stop) {
      node_.reset();
      driver_.reset();
      transport_.reset();
      stop();
    });
  }

  bool started() const { return driver_ != nullptr; }
  void Put(const std::string& claim) { client_.PutJson(claim); }

  Result<void> Prepare(int round) {
    return Answer<rpc::PrepareResults>(round, [&](auto claims, auto done) {
      node_->Prepare(claims, std::chrono::seconds(45), std::move(done));
    });
  }
  Result<void> Unprepare(int round) {
    auto answer = Answer<rpc::UnprepareResults>(round, [&](auto claims, auto done) {
      node_->Unprepare(claims, std::chrono::seconds(45), std::move(done));
    });
    client_.Erase("ns", StrCat("c", round));
    return answer;
  }

  IdlePlugin plugin;

 private:
  // Runs the loop until `work` calls its argument.
  template <typename Work>
  void OnLoop(Work work) {
    loop_.Post([&] { work([this] { loop_.Stop(); }); });
    loop_.Run();
  }

  template <typename Results, typename Call>
  Result<void> Answer(int round, Call call) {
    Result<void> outcome = Ok();
    const std::string uid = StrCat("u", round);
    OnLoop([&](Task stop) {
      call(std::vector<rpc::ClaimReference>{{"ns", uid, StrCat("c", round)}},
           [&, stop = std::move(stop)](Result<Results> results) mutable {
             if (!results.ok()) {
               outcome = results.error();
             } else if (const std::string& error = results->at(uid).error; !error.empty()) {
               outcome = Internal(error);
             }
             stop();
           });
    });
    return outcome;
  }

  UvLoop& loop_;
  ClaimClient client_;
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<rpc::DraPluginClient> node_;
};

bool MeasureCalls(CalledDriver& without, CalledDriver& with, int count, int rounds) {
  Samples plain("call", ", \"metadata\": false"), full("call", ", \"metadata\": true");
  without.plugin.devices = with.plugin.devices = MakeDevices(count);
  for (int round = -10; round < rounds; ++round) {
    const std::string claim = MakeClaim(count, 100'000 + round);
    for (CalledDriver* driver : {&without, &with}) {
      driver->Put(claim);
      const auto prepare = [&] { return driver->Prepare(100'000 + round); };
      if (round < 0) {
        static_cast<void>(prepare());  // warm up connections and caches
      } else {
        (driver == &with ? full : plain).Measure(prepare);
      }
      if (auto undone = driver->Unprepare(100'000 + round); !undone.ok() && round >= 0)
        return false;
    }
  }
  return plain.Print(count) && full.Print(count);
}

int Run(const std::string& directory, int rounds) {
  UvLoop loop;
  for (const char* part : {"/off/cdi", "/on/cdi", "/store/cdi"}) {
    if (!RealFileSystem().MakeDirectories(directory + part, 0755).ok()) return 1;
  }
  bool good = MeasureDisk(directory);
  {
    CalledDriver without(loop, directory + "/off", false);
    CalledDriver with(loop, directory + "/on", true);
    good = good && without.started() && with.started();
    for (const int count : {1, 8, 32, 128}) {
      good = good && MeasureCalls(without, with, count, rounds);
    }
  }
  for (const int count : {1, 8, 32, 128}) {
    good = good && MeasureStore(directory + "/store", count, rounds);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace drakkar::driver

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  const int rounds = argc == 3 ? std::atoi(argv[2]) : 1'000;
  return rounds > 0 ? drakkar::driver::Run(argv[1], rounds) : 2;
}
