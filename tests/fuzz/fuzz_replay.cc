// Runs fuzz targets over their seeds and over deterministic mutations of them.
//
//   fuzz_replay [DIRECTORY] TARGET   the seeds in tests/corpus/TARGET (or DIRECTORY), then
//   mutations
//   fuzz_replay FILE TARGET          a single input
//
// DRAKKAR_FUZZ_MUTATIONS=N sets the number of mutations. If an input crashes the process, it is
// saved to the file that is printed. Missing seeds are an error, because a target without them
// tests almost nothing.
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "base/env/file_system.h"
#include "base/env/random.h"
#include "tests/fuzz/mutation.h"
#include "tests/fuzz/targets.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace drakkar::fuzz {
namespace {

constexpr int kMutations = 4'000;  // or DRAKKAR_FUZZ_MUTATIONS, then without a time limit
// Some targets solve whole problems, and sanitizers are slow; the remaining mutations are then left
// to the soak test. This is CPU time, so that a busy machine changes nothing.
constexpr std::clock_t kLongest = 10 * CLOCKS_PER_SEC;
constexpr int kLongestInputSeconds = 25;

// The current input, for the signal handlers.
std::string* current = nullptr;
char finding_path[512];

void SaveFinding() {
  if (current == nullptr) return;
  const int file = open(finding_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return;
  if (write(file, current->data(), current->size()) >= 0) {
    static_cast<void>(!write(2, finding_path, std::strlen(finding_path)));
    static_cast<void>(!write(2, " has the failing input\n", 23));
  }
  close(file);
  current = nullptr;
}

void OnSignal(int signal) {
  SaveFinding();
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void RunOne(const Target& target, std::string& input) {
  current = &input;
  const itimerval limit{.it_interval = {},
                        .it_value = {.tv_sec = kLongestInputSeconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  // A copy of exactly its size, so that a sanitizer detects any read beyond it.
  std::vector<std::uint8_t> bytes(input.begin(), input.end());
  bytes.shrink_to_fit();
  target.run(bytes.data(), bytes.size());
  current = nullptr;
}

int Fail(const std::string& message) {
  std::fprintf(stderr, "fuzz_replay: %s\n", message.c_str());
  return 1;
}

int Main(const std::string& name, std::string path) {
  const Target* target = nullptr;
  for (const Target& each : Targets()) {
    if (each.name == name) target = &each;
  }
  if (target == nullptr) return Fail("unknown target " + name);
  const char* directory = std::getenv("TMPDIR");
  std::snprintf(finding_path, sizeof(finding_path), "%s/finding.%s.%d",
                directory != nullptr ? directory : "/tmp", name.c_str(), getpid());
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGPROF})
    ::signal(signal, OnSignal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(SaveFinding);

  FileSystem& files = RealFileSystem();
  if (path.empty()) path = "tests/corpus/" + name;
  const auto info = files.Stat(path);
  if (!info.ok()) return Fail("no corpus: " + info.error().message);
  if (info->type != FileType::kDirectory) {
    auto input = files.ReadFile(path);
    if (!input.ok()) return Fail(input.error().message);
    RunOne(*target, *input);
    return 0;
  }
  const auto names = files.ListDirectory(path);
  if (!names.ok()) return Fail(names.error().message);
  std::vector<std::string> seeds;
  for (const std::string& each : *names) {
    auto seed = files.ReadFile(path + "/" + each);
    if (!seed.ok()) return Fail(seed.error().message);
    seeds.push_back(std::move(*seed));
  }
  if (seeds.empty()) return Fail("no corpus: " + path + " is empty");
  for (std::string seed : seeds) RunOne(*target, seed);
  const char* asked = std::getenv("DRAKKAR_FUZZ_MUTATIONS");
  const int mutations = asked != nullptr ? std::atoi(asked) : kMutations;
  SeededRandom random(1);
  int done = 0;
  for (; done < mutations; ++done) {
    if (asked == nullptr && std::clock() > kLongest) break;
    std::string input = Mutate(seeds, random);
    RunOne(*target, input);
  }
  std::printf("%s: %zu seeds, %d of %d mutations\n", name.c_str(), seeds.size(), done, mutations);
  return 0;
}

}  // namespace
}  // namespace drakkar::fuzz

int main(int count, char** words) {
  if (count != 2 && count != 3) {
    std::fprintf(stderr, "usage: fuzz_replay [DIRECTORY|FILE] TARGET\n");
    return 2;
  }
  return drakkar::fuzz::Main(words[count - 1], count == 3 ? words[1] : "");
}
