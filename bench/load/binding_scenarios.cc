// binding.*: many pods wait for a device's binding condition; it becomes true for one pod at a
// time.
#include "base/text/text.h"
#include "bench/load/objects.h"
#include "bench/load/scenario.h"
#include "bench/load/watcher.h"

namespace drakkar::load {
namespace {

constexpr std::string_view kFabric = "fabric.example.com";
constexpr std::string_view kCondition = "example.com/attached";
constexpr std::string_view kTemplate = "fabric-template";
constexpr std::string_view kOther = "test-claim-template";
constexpr std::size_t kOtherPods = 500;

struct WaitingPod {
  std::string claim, pod, pool, device;
};

struct Setup {
  std::size_t nodes = 500;
  std::size_t pods = 1'000;
  bool conditions = true;
};

Result<void> Prepare(Api& api, const Setup& setup) {
  RETURN_IF_ERROR(Create(api, kClasses, ClassJson("test-class", kDriver)));
  RETURN_IF_ERROR(Create(api, kClasses, ClassJson("fabric-class", kFabric)));
  RETURN_IF_ERROR(
      Create(api, kTemplates, TemplateJson(kTemplate, ClaimSpec(OneDevice("fabric-class")))));
  RETURN_IF_ERROR(
      Create(api, kTemplates, TemplateJson(kOther, ClaimSpec(OneDevice("test-class")))));
  RETURN_IF_ERROR(CreateNodes(api, setup.nodes));
  const std::size_t per_node = setup.pods / setup.nodes + 1;
  std::string devices;
  for (std::size_t i = 0; i < per_node; ++i) {
    devices += StrCat(i > 0 ? "," : "", R"({"name":"device-)", i, R"(")",
                      setup.conditions
                          ? StrCat(R"(,"bindsToNode":true,"bindingConditions":[")", kCondition,
                                   R"("],"bindingFailureConditions":["example.com/failed"])")
                          : std::string(),
                      "}");
  }
  RETURN_IF_ERROR(api.Run(2 * setup.nodes, 4, [&](std::size_t i) {
    return Call{.method = net::Method::kPost,
                .path = std::string(kSlices),
                .body = i % 2 == 0 ? SliceJson(StrCat("fabric-", i / 2), i / 2, kFabric, 1, devices)
                                   : SliceJson(StrCat("resourceslice-", i / 2), i / 2, kDriver, 1,
                                               BasicDevices())};
  }));
  return Ok();
}

// Creates the pods and blocks until every claim is allocated.
class Waiters {
 public:
  Waiters(Api& api, std::size_t count) : api_(api), count_(count) {}

  Result<void> Make() {
    ASSIGN_OR_RETURN(const std::string version, VersionOf(api_, kClaims));
    watch_ =
        std::make_unique<Watcher>(api_, 0, StrCat(kClaims, "?watch=1&resourceVersion=", version),
                                  [this](std::string_view event) { OnClaim(event); });
    RETURN_IF_ERROR(api_.Run(count_, 8, [](std::size_t) {
      return Call{.method = net::Method::kPost,
                  .path = std::string(kPods),
                  .body = PodWithTemplate(kTemplate)};
    }));
    RETURN_IF_ERROR(
        api_.RunUntil("claims of waiting pods", [this] { return waiting_.size() == count_; }));
    watch_.reset();
    RETURN_IF_ERROR(api_.RunFor(std::chrono::milliseconds(500)));
    return Ok();
  }
  std::vector<WaitingPod> pods() const {
    std::vector<WaitingPod> out;
    for (const auto& [claim, pod] : waiting_) out.push_back(pod);
    return out;
  }

 private:
  void OnClaim(std::string_view event) {
    const std::size_t allocation = event.find("\"allocation\":{");
    const std::size_t reserved = event.find("\"reservedFor\":[");
    if (allocation == std::string_view::npos || reserved == std::string_view::npos) return;
    // Ignore the claims of other pods, which may be terminating.
    if (TextIn(event.substr(allocation), "driver") != kFabric) return;
    const std::string claim(NameIn(event));
    waiting_[claim] = {.claim = claim,
                       .pod = std::string(TextIn(event.substr(reserved), "name")),
                       .pool = std::string(TextIn(event.substr(allocation), "pool")),
                       .device = std::string(TextIn(event.substr(allocation), "device"))};
    if (waiting_.size() == count_) api_.Wake();
  }

  Api& api_;
  const std::size_t count_;
  std::map<std::string, WaitingPod> waiting_;
  std::unique_ptr<Watcher> watch_;
};

// Sets one condition after the other and records when each pod is seen as bound.
class Flips {
 public:
  Flips(Api& api, std::vector<WaitingPod> pods) : api_(api), pods_(std::move(pods)) {}

  Result<Samples> Run(double per_second) {
    ASSIGN_OR_RETURN(const std::string version, VersionOf(api_, kPods));
    Watcher watch(api_, 0, BoundPodsWatch(version), [this](std::string_view event) {
      if (TypeOf(event) == EventType::kAdded) OnBound(std::string(NameIn(event)));
    });
    RETURN_IF_ERROR(api_.RunUntil("watch", [&] { return watch.is_open(); }));
    start_ = api_.now();
    pace_ = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1 / per_second));
    Next();
    RETURN_IF_ERROR(
        api_.RunUntil("flipped pods", [this] { return samples_.size() == pods_.size(); }));
    return samples_;
  }

 private:
  void Next() {
    while (next_ < pods_.size() && DueAt() <= api_.now()) Flip(pods_[next_++]);
    if (next_ == pods_.size()) return;
    timer_ = api_.loop().RunAfter(std::max(Duration::zero(), Duration(DueAt() - api_.now())),
                                  [this] { Next(); });
  }
  MonotonicTime DueAt() const { return start_ + pace_ * static_cast<std::int64_t>(next_); }
  void Flip(const WaitingPod& pod) {
    sent_[pod.pod] = api_.now();
    api_.SendOn(1,
                {.method = net::Method::kPatch,
                 .path = StrCat(kClaims, "/", pod.claim, "/status"),
                 .body = ConditionPatch(kFabric, pod.pool, pod.device, kCondition),
                 .content_type = "application/merge-patch+json"},
                [this](Result<net::Response> response) {
                  if (!response.ok()) api_.Fail(response.error());
                });
  }
  void OnBound(const std::string& pod) {
    const auto sent = sent_.find(pod);
    if (sent == sent_.end()) return;
    samples_.Add(api_.now() - sent->second);
    sent_.erase(sent);
    if (samples_.size() == pods_.size()) api_.Wake();
  }

  Api& api_;
  const std::vector<WaitingPod> pods_;
  MonotonicTime start_{};
  Duration pace_{};
  std::size_t next_ = 0;
  std::map<std::string, MonotonicTime> sent_;
  Samples samples_;
  TimerHandle timer_;
};

Result<double> OtherPods(Api& api, std::size_t count) {
  ASSIGN_OR_RETURN(const BurstResult burst,
                   Burst(api, count, [](std::size_t) { return PodWithTemplate(kOther); }));
  RETURN_IF_ERROR(DeletePods(api, burst.pods));
  return static_cast<double>(count) / Seconds(burst.elapsed);
}

Result<std::vector<Figure>> MeasureWake(Context& context, const std::string& id, Setup setup) {
  Api& api = context.api;
  setup.nodes = context.Count("nodes", setup.nodes);
  setup.pods = context.Count("pods", setup.pods);
  const std::size_t others = context.Count("other-pods", kOtherPods);
  RETURN_IF_ERROR(Prepare(api, setup));
  ASSIGN_OR_RETURN(const double other_before, OtherPods(api, others));
  Waiters waiters(api, setup.pods);
  RETURN_IF_ERROR(waiters.Make());
  ASSIGN_OR_RETURN(const double other_waiting, OtherPods(api, others));
  std::vector<WaitingPod> pods = waiters.pods();
  pods.resize(std::min(pods.size(), context.Count("flips", 2'000)));
  const std::size_t flips = pods.size();
  const Usage before = context.probe.Take();
  ASSIGN_OR_RETURN(const Samples samples, Flips(api, std::move(pods)).Run(100));
  Figure figure{.id = id, .value = Milliseconds(samples.Percentile(99)), .unit = "ms"};
  figure.detail.Latency("flip_sent_to_bound_seen", samples);
  figure.detail.Number("p100_ms", Milliseconds(samples.Percentile(100)));
  Probe::Describe(before, context.probe.Take(), static_cast<double>(flips), "flip", figure.detail);
  figure.detail.Number("waiting_pods", static_cast<double>(setup.pods));
  figure.detail.Number("nodes", static_cast<double>(setup.nodes));
  figure.detail.Number("other_pods_per_s_before", other_before);
  figure.detail.Number("other_pods_per_s_while_waiting", other_waiting);
  return std::vector<Figure>{std::move(figure)};
}

// The server's memory per waiting pod; with --conditions=0 the same pods do not wait, to get the
// difference.
Result<std::vector<Figure>> MeasureMemory(Context& context) {
  Api& api = context.api;
  Setup setup{.nodes = context.Count("nodes", 500),
              .pods = context.Count("pods", 10'000),
              .conditions = context.Count("conditions", 1) != 0};
  RETURN_IF_ERROR(Prepare(api, setup));
  const double before = context.probe.ServerPssBytes();
  Waiters waiters(api, setup.pods);
  RETURN_IF_ERROR(waiters.Make());
  RETURN_IF_ERROR(api.RunFor(std::chrono::seconds(setup.pods > 1'000 ? 2 : 0)));
  const double grown = context.probe.ServerPssBytes() - before;
  Figure figure{
      .id = "binding.memory", .value = grown / static_cast<double>(setup.pods) / 1e3, .unit = "KB"};
  figure.detail.Number("pods", static_cast<double>(setup.pods));
  return std::vector<Figure>{std::move(figure)};
}

}  // namespace

std::vector<Scenario> BindingScenarios() {
  auto wake = [](const std::string& id, std::size_t nodes, std::size_t pods) {
    return Scenario{
        id, StrCat("last condition true to pod bound, ", pods, " pods waiting, ", nodes, " nodes"),
        [=](Context& context) { return MeasureWake(context, id, {.nodes = nodes, .pods = pods}); }};
  };
  return {wake("binding.p99_1000", 500, 1'000),
          wake("binding.p99_10000", 500, 10'000),
          wake("binding.p99_10000_5000nodes", 5'000, 10'000),
          {"binding.memory", "memory of the server per waiting pod", MeasureMemory}};
}

}  // namespace drakkar::load
