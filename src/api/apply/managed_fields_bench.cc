#include "api/apply/managed_fields.h"

#include <benchmark/benchmark.h>

#include "api/codec/object_reader.h"
#include "api/scheme/scheme.h"
#include "api/testing/bench_pod.h"
#include "api/tree/draft_view.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

constexpr std::string_view kClaimVersion = "resource.k8s.io/v1";

FieldManager By(std::string_view manager, std::string_view version, std::string_view kind,
                std::string_view subresource = "") {
  FieldManager by;
  by.manager = manager;
  by.subresource = subresource;
  by.api_version = version;
  by.schema = FindKindByApiVersion(version, kind)->schema;
  by.now = "2025-06-07T08:09:12Z";
  by.reset_fields = subresource.empty() ? R"({"f:status":{}})" : R"({"f:spec":{},"f:metadata":{}})";
  return by;
}

// The server's sequence: a draft over the existing object is viewed, its entries are replaced, and
// it is frozen.
TreePtr WithEntries(const TreePtr& before, Draft object, const FieldManager& by) {
  const TreePtr after = object.Freeze();
  Draft entries = TrackUpdate(before == nullptr ? Value() : before->root(), after->root(), by);
  if (entries.exists()) object["metadata"]["managedFields"] = std::move(entries);
  return object.Freeze();
}

Draft NewPod() {
  Draft draft(ReadObject(kBenchPod, *FindKindByApiVersion("v1", "Pod")->schema)->tree);
  draft["metadata"].Remove("managedFields");
  return draft;
}

// A claim made from a pod's template. The keys of its owner and user are unique to it.
Draft NewClaim(int number) {
  const std::string text = StrCat(
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"generateName":)",
      R"("pod-gpu-","namespace":"default","annotations":{"resource.kubernetes.io/pod-claim-name":)",
      R"("gpu"},"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"pod","uid":)",
      R"("6f4b0c9e-8a53-4f5c-a9ad-)", 100000000000 + number, R"(","controller":true,)",
      R"("blockOwnerDeletion":true}]},"spec":{"devices":{"requests":[{"name":"gpu","exactly":)",
      R"({"deviceClassName":"gpu.example.com","allocationMode":"ExactCount","count":1}}]}}})");
  return Draft(
      ReadObject(text, *FindKindByApiVersion(kClaimVersion, "ResourceClaim")->schema)->tree);
}

void Allocate(Draft& claim, int number) {
  Draft& status = claim["status"];
  Draft result{{"request", "gpu"},
               {"driver", "gpu.example.com"},
               {"pool", "worker-0042"},
               {"device", "gpu-3"}};
  status["allocation"]["devices"]["results"].Append(std::move(result));
  status["reservedFor"].Append(
      Draft{{"resource", "pods"},
            {"name", "pod"},
            {"uid", StrCat("6f4b0c9e-8a53-4f5c-a9ad-", 100000000000 + number)}});
}

// More objects of one template than any cache of texts can hold.
constexpr int kObjects = 1000;

struct Change {
  TreePtr before;
  Draft draft;
  std::unique_ptr<DraftView> after;
};

void TrackAll(benchmark::State& state, const std::vector<Change>& changes, const FieldManager& by) {
  std::size_t at = 0;
  for (auto _ : state) {
    const Change& each = changes[at++ % changes.size()];
    benchmark::DoNotOptimize(TrackUpdate(each.before == nullptr ? Value() : each.before->root(),
                                         each.after->root(), by));
  }
}

template <typename Make>
std::vector<Change> Changes(Make make) {
  std::vector<Change> changes(kObjects);
  for (int i = 0; i < kObjects; ++i) {
    Change& each = changes[static_cast<std::size_t>(i)];
    make(i, each);
    each.after = std::make_unique<DraftView>(each.draft);
  }
  return changes;
}

void BM_TrackCreate(benchmark::State& state) {
  const auto changes = Changes([](int, Change& each) { each.draft = NewPod(); });
  TrackAll(state, changes, By("kube-controller-manager", "v1", "Pod"));
}
BENCHMARK(BM_TrackCreate);

void BM_TrackCreateClaim(benchmark::State& state) {
  const auto changes = Changes([](int i, Change& each) { each.draft = NewClaim(i); });
  TrackAll(state, changes, By("kube-controller-manager", kClaimVersion, "ResourceClaim"));
}
BENCHMARK(BM_TrackCreateClaim);

void BM_TrackCreateEvent(benchmark::State& state) {
  const FieldManager by = By("kube-scheduler", "events.k8s.io/v1", "Event");
  const auto changes = Changes([&](int i, Change& each) {
    each.draft = Draft(
        ReadObject(
            StrCat(R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"pod.)", i,
                   R"(","namespace":"default"},"eventTime":"2025-06-07T08:09:10.000012Z",)",
                   R"("reportingController":"default-scheduler","reportingInstance":)",
                   R"("default-scheduler-0","action":"Binding","reason":"Scheduled",)",
                   R"("regarding":{"kind":"Pod","namespace":"default","name":"pod","uid":)",
                   R"("6f4b0c9e-8a53-4f5c-a9ad-2b3f6a5c1d11","apiVersion":"v1",)",
                   R"("resourceVersion":"123"},"note":"Successfully assigned default/pod to n",)",
                   R"("type":"Normal"})"),
            *by.schema)
            ->tree);
  });
  TrackAll(state, changes, by);
}
BENCHMARK(BM_TrackCreateEvent);

// kube-scheduler writes the allocation of a claim.
void BM_TrackClaimStatus(benchmark::State& state) {
  const FieldManager creator = By("kube-controller-manager", kClaimVersion, "ResourceClaim");
  const auto changes = Changes([&](int i, Change& each) {
    each.before = WithEntries(nullptr, NewClaim(i), creator);
    each.draft = Draft(each.before);
    Allocate(each.draft, i);
  });
  TrackAll(state, changes, By("kube-scheduler", kClaimVersion, "ResourceClaim", "status"));
}
BENCHMARK(BM_TrackClaimStatus);

// The claim controller records a pod's claim.
void BM_TrackPodClaimStatus(benchmark::State& state) {
  const FieldManager creator = By("kubectl-create", "v1", "Pod");
  const auto changes = Changes([&](int i, Change& each) {
    each.before = WithEntries(nullptr, NewPod(), creator);
    each.draft = Draft(each.before);
    each.draft["status"]["resourceClaimStatuses"].Append(
        Draft{{"name", "gpu"}, {"resourceClaimName", StrCat("pod-gpu-", i)}});
  });
  TrackAll(state, changes, By("kube-controller-manager", "v1", "Pod", "status"));
}
BENCHMARK(BM_TrackPodClaimStatus);

// The kubelet reports the pod as running, after the scheduler has written its condition.
void BM_TrackStatusUpdate(benchmark::State& state) {
  const FieldManager creator = By("kubectl-create", "v1", "Pod");
  const FieldManager kubelet = By("kubelet", "v1", "Pod", "status");
  const auto changes = Changes([&](int i, Change& each) {
    const TreePtr created = WithEntries(nullptr, NewPod(), creator);
    Draft draft(created);
    draft["status"]["phase"] = "Pending";
    draft["status"]["podIP"] = StrCat("10.0.0.", i);
    each.before = WithEntries(created, std::move(draft), kubelet);
    each.draft = Draft(each.before);
    each.draft["status"]["phase"] = "Running";
    each.draft["status"]["podIP"] = StrCat("10.0.1.", i);
  });
  TrackAll(state, changes, kubelet);
}
BENCHMARK(BM_TrackStatusUpdate);

}  // namespace
}  // namespace drakkar::api
