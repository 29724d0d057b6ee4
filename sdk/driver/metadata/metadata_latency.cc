// What device metadata adds to a prepare: metadata_latency DIRECTORY. Prints JSON lines
// {"devices": N, "operation": "prepare", "p50_us": X, "p99_us": Y, "files": N}.
#include <algorithm>
#include <cstdio>

#include "api/json/reader.h"
#include "base/env/clock.h"
#include "base/text/text.h"
#include "sdk/driver/metadata/metadata_store.h"

namespace drakkar::driver {
namespace {

constexpr int kRounds = 1'000;

struct Input {
  api::Object claim;
  std::vector<PreparedDevice> devices;
};

// A claim with one request of that many devices, eight attributes each.
Input MakeInput(int count, int round) {
  std::string results;
  std::vector<PreparedDevice> devices;
  for (int i = 0; i < count; ++i) {
    results += StrCat(i == 0 ? "" : ",",
                      R"({"request":"gpu","driver":"d.example.com","pool":"node","device":"gpu-)", i,
                      "\"}");
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
  return {api::Object(*api::ParseJson(
              StrCat(R"({"metadata":{"namespace":"ns","name":"c)", round, R"(","uid":"u)", round,
                     R"("},"status":{"allocation":{"devices":{"results":[)", results, "]}}}}"))),
          std::move(devices)};
}

class Samples {
 public:
  explicit Samples(std::string operation) : operation_(std::move(operation)) {}

  template <typename Work>
  void Measure(Work work) {
    const MonotonicTime begun = RealClock().Monotonic();
    const Result<void> done = work();
    taken_.push_back(RealClock().Monotonic() - begun);
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
    std::printf("{\"operation\": \"%s\", \"devices\": %d, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
                operation_.c_str(), devices, at(50), at(99));
    return !failed_;
  }

 private:
  std::string operation_;
  std::vector<Duration> taken_;
  bool failed_ = false;
};

int Run(const std::string& directory) {
  auto store = MetadataStore::Create({.files = RealFileSystem(),
                                      .driver_name = "d.example.com",
                                      .directory = directory + "/plugin",
                                      .cdi_directory = directory + "/cdi"});
  bool good = store.ok();
  for (const int count : {1, 8, 32, 128}) {
    Samples prepare("prepare");
    Samples repeat("repeated_prepare");
    Samples update("update");
    Samples remove("unprepare");
    for (int round = 0; good && round < kRounds; ++round) {
      Input input = MakeInput(count, round);
      std::vector<PreparedDevice> again = input.devices;
      const std::vector<PreparedDevice> changed = input.devices;
      prepare.Measure([&] { return (*store)->Prepare(input.claim, input.devices); });
      repeat.Measure([&] { return (*store)->Prepare(input.claim, again); });
      // Updates sync; a tenth of them is enough to know.
      if (round % 10 == 0) {
        update.Measure([&] {
          return (*store)->Update({"ns", StrCat("c", round), "", "gpu"}, changed);
        });
      }
      remove.Measure([&] {
        return (*store)->Remove({"ns", StrCat("u", round), StrCat("c", round)});
      });
    }
    if (!good) break;
    good = prepare.Print(count) && repeat.Print(count) && update.Print(count) && remove.Print(count);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace drakkar::driver

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  return drakkar::driver::Run(argv[1]);
}
