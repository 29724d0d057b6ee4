// drakkar top devices: the output of `who` and `free`, kept current by watches until interrupted.
#include <algorithm>

#include "answers/free/free.h"
#include "answers/live/live_cluster.h"
#include "answers/render/columns.h"
#include "api/meta/time.h"
#include "base/env/random.h"
#include "base/text/text.h"
#include "cli/answer.h"
#include "cli/commands.h"

namespace drakkar::cli {
namespace {

using answers::Mask;
using answers::SnapshotKind;

constexpr std::uint32_t kKinds =
    answers::kEveryKind & ~Mask(SnapshotKind::kClasses) & ~Mask(SnapshotKind::kLeases);
constexpr std::string_view kClearScreen = "\x1b[H\x1b[2J";

// Devices that need attention first.
int RankOf(const answers::Holding& holding) {
  if (holding.device->IsUnhealthy()) return 0;
  if (holding.device->IsWaiting()) return 1;
  return holding.device->IsTainted() ? 2 : 3;
}

std::string Summary(const answers::DeviceTable& table, WallTime now) {
  answers::DeviceCounts counts;
  for (const answers::DeviceEntry& entry : table.devices()) counts.Add(entry);
  // Time of day only: the line fits into 80 columns with thousands of devices.
  return StrCat(api::FormatTime(now).substr(11, 8), " ", counts.total, " devices: ", counts.free,
                " free, ", counts.held, " held, ", counts.waiting, " waiting, ", counts.tainted,
                " tainted, ", counts.unhealthy, " unhealthy");
}

// At most `lines` lines; the number of omitted lines is appended.
std::string Limit(const std::string& text, std::size_t lines) {
  std::size_t count = 0;
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\n') continue;
    ++count;
    if (count + 1 == lines) end = at + 1;
  }
  if (count <= lines || end == 0) return text;
  return StrCat(text.substr(0, end), "... and ", count - lines + 1, " more\n");
}

class Top {
 public:
  Top(const Arguments& arguments, Console& console, Session& session, answers::WhoFilter filter)
      : arguments_(arguments), console_(console), session_(session), filter_(std::move(filter)) {}

  int Run() {
    Result<answers::Snapshot> first = ReadSnapshot(session_, kKinds);
    if (!first.ok()) {
      Report(console_, first.error());
      return kExitFailure;
    }
    session_.OnLoop([&](EventLoop& loop, client::Client& client) {
      live_ = std::make_unique<answers::LiveCluster>(loop, RealRandom(), client, *first, kKinds);
      live_->Start();
    });
    const std::int64_t count = arguments_.Int("count");
    for (std::int64_t shown = 1;; ++shown) {
      Show();
      if (count > 0 && shown >= count) break;
      session_.Pause(arguments_.Time("interval"));
    }
    session_.OnLoop([&](EventLoop&, client::Client&) { live_.reset(); });
    return kExitOk;
  }

 private:
  void Show() {
    answers::Snapshot snapshot;
    session_.OnLoop(
        [&](EventLoop& loop, client::Client&) { snapshot = live_->Take(loop.clock().Now()); });
    std::string problem;
    if (const Result<api::TreePtr> version = session_.GetPath("/version"); !version.ok()) {
      problem = StrCat("not current: ", version.error().message);
    }
    if (arguments_.Bool("ask-nodes")) AddNodeHealth(session_, console_, snapshot);
    const answers::DeviceTable table(snapshot);
    answers::WhoAnswer answer = answers::FindHolders(table, filter_);
    std::stable_sort(
        answer.holdings.begin(), answer.holdings.end(),
        [](const answers::Holding& a, const answers::Holding& b) { return RankOf(a) < RankOf(b); });
    answer.notes = snapshot.notes;
    const answers::RenderOptions options =
        RenderOptionsFor(session_, console_, arguments_, AnswerFormat::kText);
    std::string text = answers::Wrap(Summary(table, snapshot.now), options.width);
    if (!problem.empty()) text += answers::Wrap(problem, options.width);
    text += answers::RenderWho(answer, options);
    if (console_.out_is_terminal()) {
      text = StrCat(kClearScreen, Limit(text, std::max<std::size_t>(console_.size().lines, 5) - 1));
    }
    console_.Out(text);
  }

  const Arguments& arguments_;
  Console& console_;
  Session& session_;
  const answers::WhoFilter filter_;
  std::unique_ptr<answers::LiveCluster> live_;  // lives on the session's loop
};

int Run(const Arguments& arguments, Console& console) {
  Result<answers::WhoFilter> filter = WhoFilterFrom(arguments);
  if (filter.ok() && arguments.Time("interval") <= Duration::zero()) {
    filter = InvalidArgument("--interval must be greater than zero");
  }
  if (!filter.ok()) {
    console.Error(filter.error().message);
    return kExitUsage;
  }
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitFailure;
  }
  return Top(arguments, console, **session, std::move(*filter)).Run();
}

}  // namespace

Command TopDevicesCommand() {
  std::vector<Flag> flags = WhoFilterFlags();
  flags.push_back({.name = "interval",
                   .type = FlagType::kDuration,
                   .help = "Time between updates.",
                   .default_value = "2s",
                   .placeholder = "DURATION"});
  flags.push_back({.name = "count",
                   .type = FlagType::kInt,
                   .help = "Exit after this many updates; 0 runs until interrupted.",
                   .default_value = "0",
                   .placeholder = "N"});
  return {
      .name = "top devices",
      .arguments = "[DEVICE...]",
      .summary = "Show which pod holds which device, live",
      .help =
          "Shows the same as `drakkar who`, with a line of totals, and follows the cluster until "
          "interrupted. Devices that are unhealthy, waiting or tainted come first. On a terminal, "
          "each update replaces the previous one.",
      .examples =
          "  drakkar top devices\n"
          "  drakkar top devices -n team-b --interval 5s\n"
          "  drakkar top devices --count 1\n",
      .flags = std::move(flags),
      .min_arguments = 0,
      .group = FlagGroup::kCluster,
      .section = "Devices",
      .run = Run};
}

}  // namespace drakkar::cli
