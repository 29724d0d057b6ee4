// Checks invariants while random things happen to a cluster with a running scheduler.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

// Loses some writes and some responses.
class FlakyClient final : public client::Client {
 public:
  FlakyClient(EventLoop& loop, Random& random, client::Client& beneath)
      : loop_(loop), random_(random), beneath_(beneath) {}
  bool flaky = true;

  void Get(client::ResourceRef ref, client::ReplyCallback done) override {
    if (Lost(done)) return;
    beneath_.Get(std::move(ref), std::move(done));
  }
  void List(client::ResourceRef ref, client::ListOptions options,
            std::function<void(client::ListReply)> done) override {
    beneath_.List(std::move(ref), std::move(options), std::move(done));
  }
  void Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    if (Lost(done)) return;
    beneath_.Create(std::move(ref), std::move(body), std::move(options), MaybeUnheard(done));
  }
  void Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    if (Lost(done)) return;
    beneath_.Update(std::move(ref), std::move(body), std::move(options), MaybeUnheard(done));
  }
  void Patch(client::ResourceRef, client::PatchType, std::string, client::WriteOptions,
             client::ReplyCallback) override {
    ADD_FAILURE();
  }
  void Delete(client::ResourceRef, client::DeleteOptions, client::ReplyCallback) override {
    ADD_FAILURE();
  }
  void DeleteCollection(client::ResourceRef, client::ListOptions, client::DeleteOptions,
                        client::ReplyCallback) override {
    ADD_FAILURE();
  }
  std::unique_ptr<client::WatchHandle> Watch(client::ResourceRef ref, client::WatchOptions options,
                                             client::WatchCallbacks callbacks) override {
    return beneath_.Watch(std::move(ref), std::move(options), std::move(callbacks));
  }

 private:
  static client::Reply NoAnswer() {
    client::Reply reply;
    reply.error = Unavailable("connection closed");
    return reply;
  }
  bool Lost(const client::ReplyCallback& done) {
    if (!flaky || random_.Below(10) != 0) return false;
    loop_.Post([done] { done(NoAnswer()); });
    return true;
  }
  client::ReplyCallback MaybeUnheard(client::ReplyCallback done) {
    if (!flaky || random_.Below(10) != 0) return done;
    return [done = std::move(done)](client::Reply) { done(NoAnswer()); };
  }
  EventLoop& loop_;
  Random& random_;
  client::Client& beneath_;
};

class RandomCluster {
 public:
  explicit RandomCluster(std::uint64_t seed)
      // Not shuffled: a watch delivers in order.
      : cluster_(FeatureGates(), seed),
        random_(seed),
        client_(cluster_.loop(), random_, cluster_.client()) {
    cluster_.scheduler_client = &client_;
    client_.flaky = seed % 3 != 0;
    cluster_.binding_timeout = std::chrono::seconds(60);
    for (int i = 0; i < 3; ++i) cluster_.CreateNode(StrCat("n", i));
    cluster_.CreateSlice("n0", 2);
    cluster_.CreateSlice("n1", 2, kConditions);
    cluster_.CreateSlice("n2", 1);
    cluster_.CreateClass();
    scheduler_ = std::make_unique<Scheduler>(cluster_.SchedulerOptions());
    scheduler_->Start();
  }

  void Step() {
    switch (random_.Below(8)) {
      case 0:
      case 1:
        AddPod();
        break;
      case 2:
        DeletePod();
        break;
      case 3:
        FlipCondition();
        break;
      case 4:  // a crash in the middle
        if (random_.Below(4) != 0) break;
        scheduler_.reset();
        scheduler_ = std::make_unique<Scheduler>(cluster_.SchedulerOptions());
        scheduler_->Start();
        break;
      case 5:
        cluster_.loop().Advance(std::chrono::milliseconds(random_.Below(20'000)));
        break;
      case 6:
        TouchClaim();
        break;
      case 7:
        break;
    }
    for (std::uint64_t i = random_.Below(40); i > 0 && cluster_.loop().RunOne(); --i) {
    }
    CollectGarbage();
    Check();
  }

  void Settle() {
    client_.flaky = false;
    for (int i = 0; i < 40; ++i) {
      cluster_.loop().Advance(std::chrono::seconds(10));
      for (const auto& [pod, claim] : claims_) AttachIfWaiting(claim);
      CollectGarbage();
      Check();
    }
    // No free device may be left that an unbound pod could use.
    std::set<std::string> held;
    std::size_t unbound = 0;
    for (const auto& [pod, claim] : claims_) {
      if (cluster_.NodeOf(pod).empty()) ++unbound;
      for (const std::string& device : cluster_.DevicesOf(claim)) held.insert(device);
    }
    if (unbound > 0) {
      EXPECT_EQ(held.size(), 5u) << unbound << " pods wait although devices are free";
    }
    const Scheduler::Counts counts = scheduler_->counts();
    EXPECT_EQ(counts.unschedulable + counts.backoff + counts.waiting_for_conditions, unbound);
  }

 private:
  client::ResourceRef Claims(std::string name, std::string subresource = "") {
    return {api::FindKind("resource.k8s.io", "v1", "ResourceClaim"), "default", std::move(name),
            std::move(subresource)};
  }
  void Send(api::Draft draft, std::string name, std::string subresource = "") {
    // Conflicts are fine: another writer was faster.
    cluster_.client().Update(Claims(std::move(name), std::move(subresource)), draft.Freeze(), {},
                             [](client::Reply) {});
  }
  std::string AnyPod() {
    if (claims_.empty()) return "";
    auto at = claims_.begin();
    std::advance(at, static_cast<long>(random_.Below(claims_.size())));
    return at->first;
  }

  void AddPod() {
    if (claims_.size() >= 9) return;
    const std::string pod = StrCat("p", next_);
    // Sometimes use a claim that another pod already uses.
    std::string claim = StrCat("c", next_);
    if (const std::string other = AnyPod(); !other.empty() && random_.Below(4) == 0) {
      claim = claims_[other];
    } else {
      cluster_.CreateClaim(claim);
    }
    ++next_;
    cluster_.CreatePodWithClaims(pod, {claim});
    claims_[pod] = claim;
  }
  void DeletePod() {
    const std::string pod = AnyPod();
    if (pod.empty()) return;
    cluster_.Delete("Pod", pod);
    claims_.erase(pod);
  }
  void TouchClaim() {
    const std::string pod = AnyPod();
    if (pod.empty()) return;
    api::Draft draft(cluster_.Find("ResourceClaim", claims_[pod])->tree());
    draft["metadata"]["labels"].Entry("touched") = std::to_string(random_.Below(1000));
    Send(std::move(draft), claims_[pod]);
  }
  void FlipCondition() {
    const std::string pod = AnyPod();
    if (pod.empty()) return;
    SetCondition(claims_[pod], random_.Below(3) == 0 ? "failed" : "attached");
  }
  void AttachIfWaiting(const std::string& claim) {
    const api::ObjectPtr object = cluster_.Find("ResourceClaim", claim);
    if (object->root()["status"]["devices"].empty()) SetCondition(claim, "attached");
  }
  void SetCondition(const std::string& claim, std::string type) {
    const api::ObjectPtr object = cluster_.Find("ResourceClaim", claim);
    const api::Value result = object->root()["status"]["allocation"]["devices"]["results"].at(0);
    if (!result.exists() || result["bindingConditions"].empty()) return;
    if (!object->root()["status"]["devices"].empty()) return;
    api::Draft draft(object->tree());
    api::Draft device{{"driver", result["driver"].str()},
                      {"pool", result["pool"].str()},
                      {"device", result["device"].str()}};
    device["conditions"].Append({{"type", StrCat("d.example.com/", type)},
                                 {"status", "True"},
                                 {"reason", "R"},
                                 {"message", ""},
                                 {"lastTransitionTime", "2027-01-01T00:00:00Z"}});
    draft["status"]["devices"].Append(std::move(device));
    Send(std::move(draft), claim, "status");
  }

  // Does what the claim controller does: removes reservations of deleted pods, then the allocation.
  void CollectGarbage() {
    for (int i = 0; i < next_; ++i) {
      const std::string name = StrCat("c", i);
      const api::ObjectPtr claim = cluster_.Find("ResourceClaim", name);
      if (claim == nullptr) continue;
      const api::Value reserved = claim->root()["status"]["reservedFor"];
      api::Draft left = api::Draft::Array();
      for (api::Value consumer : reserved.elements()) {
        const api::ObjectPtr pod = cluster_.Find("Pod", std::string(consumer["name"].str()));
        if (pod != nullptr) left.Append(api::Draft(consumer));
      }
      if (left.size() == reserved.size()) continue;
      api::Draft draft(claim->tree());
      const bool last = left.size() == 0;
      draft["status"]["reservedFor"] = std::move(left);
      if (last) {
        draft["status"].Remove("allocation");
        draft["status"].Remove("reservedFor");
        draft["status"].Remove("devices");
      }
      Send(std::move(draft), name, "status");
    }
  }

  void Check() {
    std::map<std::string, std::string> holders;
    for (int i = 0; i < next_; ++i) {
      const std::string claim = StrCat("c", i);
      if (cluster_.Find("ResourceClaim", claim) == nullptr) continue;
      for (const std::string& device : cluster_.DevicesOf(claim)) {
        const auto [at, is_new] = holders.emplace(device, claim);
        ASSERT_TRUE(is_new) << device << " is held by " << at->second << " and " << claim;
      }
    }
    for (const auto& [pod, claim] : claims_) {
      if (cluster_.NodeOf(pod).empty()) continue;
      const std::vector<std::string> pods = cluster_.ReservedFor(claim);
      ASSERT_TRUE(std::find(pods.begin(), pods.end(), pod) != pods.end())
          << pod << " runs without a reservation for " << claim;
    }
  }

  TestCluster cluster_;
  SeededRandom random_;
  FlakyClient client_;
  std::unique_ptr<Scheduler> scheduler_;
  std::map<std::string, std::string> claims_;  // by pod
  int next_ = 0;
};

TEST(RandomCluster, NoDeviceIsAllocatedTwiceAndAllPodsSettle) {
  // DRAKKAR_SEEDS=1000 for a long run.
  const char* seeds = std::getenv("DRAKKAR_SEEDS");
  const std::uint64_t last = seeds == nullptr ? 12 : std::strtoull(seeds, nullptr, 10);
  for (std::uint64_t seed = 1; seed <= last; ++seed) {
    SCOPED_TRACE(seed);
    RandomCluster cluster(seed);
    for (int i = 0; i < 120; ++i) {
      cluster.Step();
      if (::testing::Test::HasFatalFailure()) return;
    }
    cluster.Settle();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace drakkar::scheduler
