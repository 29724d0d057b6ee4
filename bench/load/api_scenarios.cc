// api.*: single calls, lists, watchers, memory.
#include "base/text/text.h"
#include "bench/load/objects.h"
#include "bench/load/scenario.h"
#include "bench/load/watcher.h"

namespace drakkar::load {
namespace {

// A typical claim, as made from a template for a pod.
std::string Claim(std::string_view name = {}) {
  return ClaimJson(name, ClaimSpec(OneDevice("test-class")));
}

Figure RateFigure(const std::string& id, std::size_t count, const RunResult& run) {
  Figure figure{
      .id = id, .value = static_cast<double>(count) / Seconds(run.elapsed), .unit = "requests/s"};
  figure.detail.Latency("latency", run.latencies);
  return figure;
}

Result<std::vector<Figure>> MeasureCreate(Context& context) {
  const std::size_t count = context.Count("count", 50'000);
  auto make = [](std::size_t) {
    return Call{.method = net::Method::kPost, .path = std::string(kClaims), .body = Claim()};
  };
  RETURN_IF_ERROR(context.api.Run(count / 20 + 1, 1, make));  // warm up connections and caches
  const Usage before = context.probe.Take();
  ASSIGN_OR_RETURN(const RunResult run, context.api.Run(count, 1, make));
  Figure figure = RateFigure("api.create", count, run);
  Probe::Describe(before, context.probe.Take(), static_cast<double>(count), "request",
                  figure.detail);
  return std::vector<Figure>{std::move(figure)};
}

Result<std::vector<Figure>> MeasureReads(Context& context, const std::string& id,
                                         std::size_t objects, std::size_t count,
                                         const std::string& path) {
  for (std::size_t i = 0; i < objects; ++i) {
    RETURN_IF_ERROR(Create(context.api, kClaims, Claim(StrCat("claim-", i))));
  }
  // Occurs once in each object's metadata.
  auto make = [&](std::size_t) {
    return Call{.path = path, .item = "\"creationTimestamp\":\"", .items = objects};
  };
  RETURN_IF_ERROR(context.api.Run(count / 20 + 1, 1, make));
  const Usage before = context.probe.Take();
  ASSIGN_OR_RETURN(const RunResult run, context.api.Run(count, 1, make));
  Figure figure = RateFigure(id, count, run);
  Probe::Describe(before, context.probe.Take(), static_cast<double>(count), "request",
                  figure.detail);
  return std::vector<Figure>{std::move(figure)};
}

// Opens `watchers` watches; each created claim reaches all of them.
class FanOut {
 public:
  FanOut(Context& context, std::size_t watchers) : context_(context), api_(context.api) {
    wanted_ = watchers;
  }

  Result<void> Open() {
    ASSIGN_OR_RETURN(const std::string version, VersionOf(api_, kClaims));
    const std::string path = StrCat(kClaims, "?watch=1&resourceVersion=", version);
    for (std::size_t i = 0; i < wanted_; ++i) {
      watchers_.push_back(std::make_unique<Watcher>(
          api_, i, path, [this](std::string_view event) { OnEvent(event); }));
    }
    return api_.RunUntil("open watches", [this] {
      return std::ranges::all_of(watchers_, [](const auto& w) { return w->is_open(); });
    });
  }

  // As many events as the server can send: claims created in quick succession.
  Result<double> Throughput(std::size_t claims) {
    events_ = 0;
    const std::size_t all = claims * wanted_;
    const MonotonicTime start = api_.now();
    goal_ = all;
    RETURN_IF_ERROR(api_.Run(claims, 1, [](std::size_t) {
      return Call{.method = net::Method::kPost, .path = std::string(kClaims), .body = Claim()};
    }));
    RETURN_IF_ERROR(api_.RunUntil("watch events", [&] { return events_ >= all; }));
    return static_cast<double>(all) / Seconds(api_.now() - start);
  }

  // From sending a create to its event, at a pace that leaves the server idle in between.
  Result<Samples> Delay(std::size_t claims, Duration pace) {
    for (std::size_t i = 0; i < claims; ++i) {
      events_ = 0;
      goal_ = wanted_;
      sent_ = api_.now();
      timing_ = true;
      RETURN_IF_ERROR(Create(api_, kClaims, Claim()));
      RETURN_IF_ERROR(api_.RunUntil("watch events", [&] { return events_ >= wanted_; }));
      RETURN_IF_ERROR(api_.RunFor(pace));
    }
    return delays_;
  }

 private:
  void OnEvent(std::string_view event) {
    if (TypeOf(event) != EventType::kAdded) return;
    ++events_;
    if (timing_) delays_.Add(api_.now() - sent_);
    if (events_ == goal_) api_.Wake();
  }

  Context& context_;
  Api& api_;
  std::size_t wanted_ = 0;
  std::vector<std::unique_ptr<Watcher>> watchers_;
  std::size_t events_ = 0;
  std::size_t goal_ = 0;
  MonotonicTime sent_{};
  bool timing_ = false;
  Samples delays_;
};

Result<std::vector<Figure>> MeasureFanOut(Context& context) {
  const std::size_t watchers = context.Count("watchers", 1'000);
  const std::size_t claims = context.Count("count", 500);
  FanOut fan(context, watchers);
  RETURN_IF_ERROR(fan.Open());
  const Usage before = context.probe.Take();
  ASSIGN_OR_RETURN(const double rate, fan.Throughput(claims));
  Figure events{.id = "api.watch1000", .value = rate, .unit = "events/s"};
  Probe::Describe(before, context.probe.Take(), static_cast<double>(claims * watchers), "event",
                  events.detail);
  events.detail.Number("watchers", static_cast<double>(watchers));
  ASSIGN_OR_RETURN(const Samples delays,
                   fan.Delay(std::min<std::size_t>(claims, 100), std::chrono::milliseconds(20)));
  Figure delay{
      .id = "api.watch1000_p99", .value = Milliseconds(delays.Percentile(99)), .unit = "ms"};
  delay.detail.Latency("create_sent_to_event", delays);
  return std::vector<Figure>{std::move(events), std::move(delay)};
}

Result<std::vector<Figure>> MeasureMemory(Context& context) {
  const std::size_t count = context.Count("count", 100'000);
  const double before = context.probe.ServerPssBytes();
  auto make = [](std::size_t) {
    return Call{.method = net::Method::kPost, .path = std::string(kClaims), .body = Claim()};
  };
  ASSIGN_OR_RETURN(const RunResult run, context.api.Run(count, 4, make));
  RETURN_IF_ERROR(context.api.RunFor(std::chrono::seconds(count > 1'000 ? 3 : 0)));
  const double grown = context.probe.ServerPssBytes() - before;
  Figure figure{.id = "api.mem100k",
                .value = grown / 1e6 / static_cast<double>(count) * 100'000,
                .unit = "MB"};
  figure.detail.Number("bytes_per_claim", grown / static_cast<double>(count));
  figure.detail.Number("creates_per_s", static_cast<double>(count) / Seconds(run.elapsed));
  return std::vector<Figure>{std::move(figure)};
}

}  // namespace

std::vector<Scenario> ApiScenarios() {
  return {
      {"api.create", "create claims, one call in flight per connection", MeasureCreate},
      {"api.get", "get one claim",
       [](Context& context) {
         return MeasureReads(context, "api.get", 1, context.Count("count", 200'000),
                             StrCat(kClaims, "/claim-0"));
       }},
      {"api.list500", "list 500 claims",
       [](Context& context) {
         return MeasureReads(context, "api.list500", context.Count("objects", 500),
                             context.Count("count", 10'000), std::string(kClaims));
       }},
      {"api.watch1000", "1,000 watchers of claims: events per second, delay", MeasureFanOut},
      {"api.mem100k", "memory of the server per 100,000 claims", MeasureMemory},
  };
}

}  // namespace drakkar::load
