// sched.*: the DRA workloads of Kubernetes' scheduler_perf, over the API.
#include "base/text/text.h"
#include "bench/load/objects.h"
#include "bench/load/scenario.h"
#include "bench/load/watcher.h"

namespace drakkar::load {
namespace {

constexpr std::string_view kTemplate = "test-claim-template";
constexpr std::size_t kDevicesPerNode = 10;
constexpr std::size_t kSetupDepth = 8;  // calls in flight per connection during setup
// Unbound pods in a steady state: enough for several commits, so that the disk's sync affects
// latency but not throughput.
constexpr std::size_t kInFlight = 50;

struct Workload {
  std::string id;
  std::string what;
  std::size_t nodes = 500;
  std::size_t initial_claims = 0;
  std::size_t pods = kInFlight;  // size of a burst, or pods in flight
  bool steady = false;
  std::string requests = OneDevice("test-class");
  std::string more;                // further members of the claim's "devices"
  std::size_t pods_per_claim = 0;  // 0: a template creates a claim for each pod
  std::function<std::vector<std::string>(std::size_t node)> slices = [](std::size_t node) {
    return std::vector<std::string>{
        SliceJson(StrCat("resourceslice-", node), node, kDriver, 1, BasicDevices())};
  };
  std::string taint_rule;
};

Call Post(std::string_view path, std::string body) {
  return {.method = net::Method::kPost, .path = std::string(path), .body = std::move(body)};
}

Result<void> AllocateInitialClaims(Api& api, const Workload& workload) {
  if (workload.initial_claims == 0) return Ok();
  RETURN_IF_ERROR(Create(api, kNamespaces, NamespaceJson("init")));
  const std::string spec = ClaimSpec(OneDevice("test-class"));
  RETURN_IF_ERROR(api.Run(workload.initial_claims, kSetupDepth, [&](std::size_t i) {
    return Post(kInitialClaims, ClaimJson(StrCat("init-", i), spec));
  }));
  RETURN_IF_ERROR(api.Run(workload.initial_claims, kSetupDepth, [&](std::size_t i) {
    return Call{.method = net::Method::kPatch,
                .path = StrCat(kInitialClaims, "/init-", i, "/status"),
                .body = AllocationPatch(i % workload.nodes, i / workload.nodes),
                .content_type = "application/merge-patch+json"};
  }));
  return Ok();
}

Result<void> Prepare(Api& api, const Workload& workload) {
  RETURN_IF_ERROR(Create(api, kClasses, ClassJson("test-class", kDriver)));
  RETURN_IF_ERROR(Create(api, kClasses, ClassJson("empty-class", "no-such-driver.cdi.k8s.io")));
  RETURN_IF_ERROR(CreateNodes(api, workload.nodes));
  std::vector<std::string> slices;
  for (std::size_t i = 0; i < workload.nodes; ++i) {
    for (std::string& slice : workload.slices(i)) slices.push_back(std::move(slice));
  }
  RETURN_IF_ERROR(
      api.Run(slices.size(), kSetupDepth, [&](std::size_t i) { return Post(kSlices, slices[i]); }));
  const std::string spec = ClaimSpec(workload.requests, workload.more);
  RETURN_IF_ERROR(Create(api, kTemplates, TemplateJson(kTemplate, spec)));
  if (!workload.taint_rule.empty()) {
    RETURN_IF_ERROR(Create(api, kTaintRules, workload.taint_rule));
  }
  if (workload.pods_per_claim > 0) {
    RETURN_IF_ERROR(api.Run(
        workload.pods / workload.pods_per_claim + 1, kSetupDepth,
        [&](std::size_t i) { return Post(kClaims, ClaimJson(StrCat("shared-", i), spec)); }));
  }
  RETURN_IF_ERROR(AllocateInitialClaims(api, workload));
  // Schedule one pod first, so that the scheduler has seen everything created before.
  ASSIGN_OR_RETURN(const BurstResult first, Burst(api, 1, [&](std::size_t) {
                     return workload.pods_per_claim > 0 ? PodWithClaim("shared-0")
                                                        : PodWithTemplate(kTemplate);
                   }));
  RETURN_IF_ERROR(DeletePods(api, first.pods));
  RETURN_IF_ERROR(api.RunFor(std::chrono::milliseconds(300)));
  return Ok();
}

// Keeps `workload.pods` in flight: deletes each bound pod and creates a new one.
class SteadyState {
 public:
  SteadyState(Api& api, const Workload& workload) : api_(api), workload_(workload) {}

  Result<void> Start() {
    ASSIGN_OR_RETURN(const std::string version, VersionOf(api_, kPods));
    watch_ = std::make_unique<Watcher>(api_, 0, BoundPodsWatch(version),
                                       [this](std::string_view event) { OnEvent(event); });
    RETURN_IF_ERROR(api_.RunUntil("watch", [this] { return watch_->is_open(); }));
    for (std::size_t i = 0; i < workload_.pods; ++i) CreateOne();
    return Ok();
  }
  std::size_t bound() const { return bound_; }
  const Samples& latencies() const { return latencies_; }
  // Lets the pods in flight finish.
  void Stop() { stopped_ = true; }

 private:
  void CreateOne() {
    if (stopped_) return;
    const MonotonicTime sent = api_.now();
    api_.Send(Post(kPods, PodWithTemplate(kTemplate)),
              [this, sent](Result<net::Response> response) {
                if (!response.ok()) return api_.Fail(response.error());
                const std::string name(NameIn(response->body));
                // The watch may have shown it as bound before the response was read.
                if (auto early = early_.find(name); early != early_.end()) {
                  latencies_.Add(early->second - sent);
                  early_.erase(early);
                } else {
                  sent_[name] = sent;
                }
              });
  }
  void OnEvent(std::string_view event) {
    if (TypeOf(event) != EventType::kAdded) return;
    ++bound_;
    const std::string name(NameIn(event));
    if (auto sent = sent_.find(name); sent != sent_.end()) {
      latencies_.Add(api_.now() - sent->second);
      sent_.erase(sent);
    } else {
      early_[name] = api_.now();
    }
    api_.Send(
        {.method = net::Method::kDelete, .path = StrCat(kPods, "/", name, "?gracePeriodSeconds=0")},
        [this](Result<net::Response> response) {
          if (!response.ok()) api_.Fail(response.error());
        });
    CreateOne();
  }

  Api& api_;
  const Workload& workload_;
  std::unique_ptr<Watcher> watch_;
  std::map<std::string, MonotonicTime> sent_;
  std::map<std::string, MonotonicTime> early_;
  Samples latencies_;
  std::size_t bound_ = 0;
  bool stopped_ = false;
};

Result<std::vector<Figure>> Measure(Context& context, Workload workload) {
  Api& api = context.api;
  workload.nodes = context.Count("nodes", workload.nodes);
  if (workload.initial_claims > 0) {
    workload.initial_claims = context.Count("initial-claims", workload.initial_claims);
  }
  workload.pods = context.Count("pods", workload.pods);
  RETURN_IF_ERROR(Prepare(api, workload));
  Figure figure{.id = workload.id, .unit = "pods/s"};
  const Usage before = context.probe.Take();
  double pods = 0;
  if (workload.steady) {
    const auto duration = std::chrono::milliseconds(context.Count("milliseconds", 10'000));
    SteadyState steady(api, workload);
    RETURN_IF_ERROR(steady.Start());
    const MonotonicTime start = api.now();
    RETURN_IF_ERROR(api.RunFor(duration));
    pods = static_cast<double>(steady.bound());
    figure.value = pods / Seconds(api.now() - start);
    figure.detail.Latency("create_to_bound", steady.latencies());
    steady.Stop();
    Probe::Describe(before, context.probe.Take(), std::max(pods, 1.0), "pod", figure.detail);
  } else {
    ASSIGN_OR_RETURN(const BurstResult burst, Burst(api, workload.pods, [&](std::size_t i) {
                       return workload.pods_per_claim > 0
                                  ? PodWithClaim(StrCat("shared-", i / workload.pods_per_claim))
                                  : PodWithTemplate(kTemplate);
                     }));
    pods = static_cast<double>(workload.pods);
    figure.value = pods / Seconds(burst.elapsed);
    Probe::Describe(before, context.probe.Take(), pods, "pod", figure.detail);
  }
  figure.detail.Number("pods", pods);
  figure.detail.Number("nodes", static_cast<double>(workload.nodes));
  figure.detail.Number("initial_claims", static_cast<double>(workload.initial_claims));
  return std::vector<Figure>{std::move(figure)};
}

// Creates slices one after the other until a pod that needs the last one is bound.
Result<std::vector<Figure>> MeasurePublishing(Context& context, const std::string& id,
                                              std::size_t otherwise) {
  Api& api = context.api;
  const std::size_t nodes = context.Count("nodes", otherwise);
  RETURN_IF_ERROR(Create(api, kClasses, ClassJson("test-class", kDriver)));
  RETURN_IF_ERROR(CreateNodes(api, nodes));
  const std::string last = R"({"name":"last","attributes":{"last":{"bool":true}}})";
  const std::string selector = StrCat(
      R"({"name":"req-0","exactly":{"deviceClassName":"test-class","selectors":[{"cel":{"expression":)",
      R"("device.attributes[\")", kDriver, R"x(\"].?last.orValue(false)"}}]}})x");
  RETURN_IF_ERROR(Create(api, kTemplates, TemplateJson(kTemplate, ClaimSpec(selector))));
  ASSIGN_OR_RETURN(const std::string version, VersionOf(api, kPods));
  std::size_t bound = 0;
  Watcher watch(api, 0, BoundPodsWatch(version), [&](std::string_view) {
    ++bound;
    api.Wake();
  });
  RETURN_IF_ERROR(Create(api, kPods, PodWithTemplate(kTemplate)));
  const Usage before = context.probe.Take();
  const MonotonicTime start = api.now();
  for (std::size_t i = 0; i < nodes; ++i) {
    RETURN_IF_ERROR(Create(api, kSlices,
                           SliceJson(StrCat("resourceslice-", i), i, kDriver, 1,
                                     i + 1 == nodes ? last : BasicDevices())));
  }
  const Duration published = api.now() - start;
  RETURN_IF_ERROR(api.RunUntil("the pod that needs the last slice", [&] { return bound == 1; }));
  const Duration seen = api.now() - start;
  Figure figure{.id = id, .value = static_cast<double>(nodes) / Seconds(seen), .unit = "slices/s"};
  Probe::Describe(before, context.probe.Take(), static_cast<double>(nodes), "slice", figure.detail);
  figure.detail.Number("last_slice_to_bound_ms", Milliseconds(seen - published));
  return std::vector<Figure>{std::move(figure)};
}

constexpr std::string_view kSelector =
    R"x("selectors":[{"cel":{"expression":"device.attributes[\"test-driver.cdi.k8s.io\"].driverVersion.major() >= 1 && device.capacity[\"test-driver.cdi.k8s.io\"].memory.isGreaterThan(quantity(\"1Mi\"))"}}])x";

std::string FiveRequests() {
  std::string out;
  for (int i = 0; i < 5; ++i) {
    out += StrCat(i > 0 ? "," : "", R"({"name":"req-)", i,
                  R"(","exactly":{"deviceClassName":"test-class"}})");
  }
  return out;
}

// Two slices in the node's pool: the counters, and the devices that consume them.
std::vector<std::string> CounterSlices(std::size_t node, std::string_view counters,
                                       std::string_view devices) {
  return {SliceJson(StrCat("counters-", node), node, kDriver, 2, "",
                    StrCat(R"(,"sharedCounters":[{"name":"set","counters":{)", counters, "}}]")),
          SliceJson(StrCat("resourceslice-", node), node, kDriver, 2, devices)};
}

std::vector<std::string> PartitionSlices(std::size_t node) {
  std::string devices;
  for (int i = 0; i < 8; ++i) {
    devices += StrCat(i > 0 ? "," : "", R"({"name":"partition-)", i,
                      R"(","consumesCounters":[{"counterSet":"set","counters":{)",
                      R"("memory":{"value":"10Gi"}}}]})");
  }
  return CounterSlices(node, R"("memory":{"value":"80Gi"})", devices);
}

// Seven devices fit only without the first one, which takes twice the memory.
std::vector<std::string> BacktrackSlices(std::size_t node) {
  std::string counters = R"("memory":{"value":"70Gi"})";
  std::string devices;
  for (int i = 0; i < 8; ++i) {
    counters += StrCat(R"(,"cpu-)", i, R"(":{"value":"1"})");
    devices +=
        StrCat(i > 0 ? "," : "", R"({"name":"device-)", i,
               R"(","consumesCounters":[{"counterSet":"set","counters":{"cpu-)", i,
               R"(":{"value":"1"},"memory":{"value":")", i == 0 ? "20Gi" : "10Gi", R"("}}}]})");
  }
  return CounterSlices(node, counters, devices);
}

std::vector<std::string> ShareableSlices(std::size_t node) {
  std::string devices;
  for (int i = 0; i < 4; ++i) {
    devices +=
        StrCat(i > 0 ? "," : "", R"({"name":"nic-)", i,
               R"(","allowMultipleAllocations":true,"attributes":{"dra.example.com/index":{"int":)",
               i, R"(}},"capacity":{"bandwidth":{"value":"10G","requestPolicy":{"default":"1M",)",
               R"("validRange":{"min":"1M","step":"8"}}}}})");
  }
  return {SliceJson(StrCat("resourceslice-", node), node, kDriver, 1, devices)};
}

std::vector<Workload> Workloads() {
  const std::string two =
      R"({"name":"req-0","exactly":{"deviceClassName":"test-class","count":2}})";
  return {
      {.id = "sched.burst500",
       .what = "2,500 template pods at once, half of the devices allocated",
       .initial_claims = 2'500,
       .pods = 2'500},
      {.id = "sched.empty500", .what = "steady state, all devices free", .steady = true},
      {.id = "sched.half500",
       .what = "steady state, half of the devices allocated",
       .initial_claims = 2'500,
       .steady = true},
      {.id = "sched.full500",
       .what = "steady state, 10 devices free",
       .initial_claims = 4'990,
       .pods = 10,
       .steady = true},
      {.id = "sched.selector500",
       .what = "steady state with a CEL selector",
       .steady = true,
       .requests = StrCat(R"({"name":"req-0","exactly":{"deviceClassName":"test-class",)",
                          kSelector, "}}")},
      {.id = "sched.match500",
       .what = "steady state, 5 requests with matchAttribute",
       .steady = true,
       .requests = FiveRequests(),
       .more = R"(,"constraints":[{"matchAttribute":"resource.kubernetes.io/pciRoot"}])"},
      {.id = "sched.burst5000",
       .what = "5,000 nodes, 5,000 pods at once",
       .nodes = 5'000,
       .pods = 5'000},
      {.id = "sched.shared500",
       .what = "five pods per claim, 500 claims",
       .pods = 2'500,
       .pods_per_claim = 5},
      {.id = "sched.partition500",
       .what = "two partitions of devices with shared counters",
       .pods = 1'000,
       .requests = two,
       .slices = PartitionSlices},
      {.id = "sched.backtrack500",
       .what = "seven of eight partitions, which fit only without the first",
       .pods = 450,
       .requests = R"({"name":"req-0","exactly":{"deviceClassName":"test-class","count":7}})",
       .slices = BacktrackSlices},
      {.id = "sched.capacity500",
       .what = "two shares of devices, with distinctAttribute",
       .pods = 2'500,
       .requests =
           R"({"name":"req-0","exactly":{"deviceClassName":"test-class","count":2,"capacity":{"requests":{"bandwidth":"2500M"}}}})",
       .more = R"(,"constraints":[{"distinctAttribute":"dra.example.com/index"}])",
       .slices = ShareableSlices},
      {.id = "sched.taints500",
       .what = "every device tainted, and the taint tolerated",
       .pods = 2'500,
       .requests =
           R"({"name":"req-0","exactly":{"deviceClassName":"test-class","tolerations":[{"operator":"Exists"}]}})",
       .taint_rule = StrCat(
           R"({"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule","metadata":{"name":"all"},"spec":{"deviceSelector":{"driver":")",
           kDriver, R"("},"taint":{"key":"example.com/taint","effect":"NoSchedule"}}})")},
      {.id = "sched.prioritized500",
       .what = "firstAvailable: a class without devices, then another",
       .pods = 2'500,
       .requests =
           R"({"name":"req-0","firstAvailable":[{"name":"none","deviceClassName":"empty-class"},{"name":"some","deviceClassName":"test-class"}]})"},
  };
}

}  // namespace

std::vector<Scenario> SchedScenarios() {
  std::vector<Scenario> out;
  for (const Workload& workload : Workloads()) {
    out.push_back({workload.id, workload.what,
                   [workload](Context& context) { return Measure(context, workload); }});
  }
  for (std::size_t count : {500, 5'000}) {
    const std::string id = StrCat("sched.publish", count);
    out.push_back(
        {id, "slices one after the other, until the scheduler has used the last one",
         [id, count](Context& context) { return MeasurePublishing(context, id, count); }});
  }
  return out;
}

}  // namespace drakkar::load
