// What `why` says about a pod is what the scheduler then does, on random clusters: a pod that fits
// is bound to one of the nodes it names, and a pod that does not fit is refused for the reasons it
// gives, node by node.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "allocator/testing/simple_expressions.h"
#include "answers/serve/state_snapshot.h"
#include "answers/why/summary.h"
#include "answers/why/why.h"
#include "api/scheme/scheme.h"
#include "base/env/random.h"
#include "base/text/text.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::answers {
namespace {

class RandomWhy {
 public:
  explicit RandomWhy(std::uint64_t seed) : random_(seed), cluster_(FeatureGates(), seed) {
    MakeCluster();
    cluster_.StartScheduler();
    for (std::uint64_t i = random_.Below(6); i > 0; --i) AddPod();
    cluster_.Settle();
    // The subject waits without a scheduler, so that it can be explained first.
    cluster_.KillScheduler();
    subject_ = AddPod();
  }

  void Check() {
    const Result<WhyAnswer> told = Explain(ReadCluster(), nullptr);
    cluster_.StartScheduler();
    cluster_.Settle();
    const std::string message = cluster_.ConditionMessage(subject_);
    const std::string node = cluster_.NodeOf(subject_);
    if (!told.ok()) {
      EXPECT_TRUE(node.empty()) << "no answer (" << told.error().message << "), but it is on "
                                << node;
      return;
    }
    SCOPED_TRACE(StrCat("why: ", told->sentence, "\nscheduler: ", node.empty() ? message : node));
    const scheduler::SchedulerState state =
        cluster_.scheduler().State(StrCat("default/", subject_));
    const std::string chosen = node.empty() ? state.pod.node : node;
    EXPECT_EQ(told->fits, !chosen.empty());
    if (told->fits) {
      EXPECT_NE(std::find(told->fitting.begin(), told->fitting.end(), chosen), told->fitting.end())
          << chosen << " is not among the nodes that fit";
      EXPECT_EQ(told->then_waits_for.empty(), !node.empty())
          << "it waits for conditions if and only if it was said so";
    } else if (!told->blocked.empty()) {
      // The API server itself sets the condition of gated pods.
      const bool is_gated = told->blocked.find("scheduling gates") != std::string::npos;
      if (!message.empty()) {
        EXPECT_NE(message.find(is_gated ? "scheduling gates" : told->blocked), std::string::npos);
      }
    } else {
      EXPECT_EQ(Expected(*told), ReasonsIn(message)) << message;
    }
    CheckAfterwards(state, chosen);
  }

 private:
  bool OneIn(std::uint64_t n) { return random_.Below(n) == 0; }

  void MakeCluster() {
    const std::uint64_t nodes = 1 + random_.Below(5);
    for (std::uint64_t i = 0; i < nodes; ++i) {
      const std::string name = StrCat("n", i);
      std::string spec = "{}";
      if (OneIn(6)) spec = R"({"unschedulable":true})";
      if (OneIn(6)) spec = R"({"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]})";
      cluster_.CreateNode(name, StrCat(R"({"zone":"z)", random_.Below(2), "\"}"), spec);
      if (OneIn(6)) continue;
      std::string extra;
      if (OneIn(5)) extra += R"(,"taints":[{"key":"sick","effect":"NoSchedule"}])";
      if (OneIn(5)) extra += scheduler::kConditions;
      extra += StrCat(R"(,"attributes":{"size":{"int":)", 1 + random_.Below(2), "}}");
      if (OneIn(6)) {
        CreateIncompletePool(name, extra);
      } else {
        cluster_.CreateSlice(name, static_cast<int>(1 + random_.Below(4)), extra);
      }
    }
    cluster_.CreateClass("gpu");
    cluster_.Create("DeviceClass",
                    R"({"metadata":{"name":"big"},"spec":{"selectors":[{"cel":{"expression":)"
                    R"("device.attributes[\"d.example.com\"].size == 2"}}]}})");
  }

  void CreateIncompletePool(const std::string& node, const std::string& extra) {
    cluster_.Create(
        "ResourceSlice",
        StrCat(R"({"metadata":{"name":"slice-)", node, R"("},"spec":{"driver":"d.example.com",)",
               R"("pool":{"name":")", node, R"(","generation":1,"resourceSliceCount":2},)",
               R"("nodeName":")", node, R"(","devices":[{"name":"dev-0")", extra, "}]}}"));
  }

  std::string Request() {
    const std::string name = OneIn(3) ? "big" : OneIn(12) ? "nobody" : "gpu";
    std::string request = StrCat(R"("deviceClassName":")", name, "\"");
    if (OneIn(8)) return request + R"(,"allocationMode":"All")";
    request += StrCat(R"(,"count":)", 1 + random_.Below(3));
    if (OneIn(5)) request += R"(,"tolerations":[{"key":"sick","operator":"Exists"}])";
    if (OneIn(5)) {
      request += R"(,"selectors":[{"cel":{"expression":)"
                 R"("device.attributes[\"d.example.com\"].size == 1"}}])";
    }
    return request;
  }

  std::string AddClaim() {
    const std::string name = StrCat("c", next_++);
    const std::string request = OneIn(6) ? StrCat(R"({"name":"r","firstAvailable":[{"name":"a",)",
                                                  Request(), R"(},{"name":"b",)", Request(), "}]}")
                                         : StrCat(R"({"name":"r","exactly":{)", Request(), "}}");
    cluster_.Create("ResourceClaim",
                    StrCat(R"({"metadata":{"name":")", name,
                           R"("},"spec":{"devices":{"requests":[)", request, "]}}}"));
    claims_.push_back(name);
    return name;
  }

  std::string AddPod() {
    const std::string name = StrCat("p", next_++);
    std::vector<std::string> claims;
    for (std::uint64_t i = random_.Below(3); i > 0; --i) {
      std::string claim = !claims_.empty() && OneIn(4) ? claims_[random_.Below(claims_.size())]
                          : OneIn(15)                  ? "missing"
                                                       : AddClaim();
      if (std::find(claims.begin(), claims.end(), claim) == claims.end()) claims.push_back(claim);
    }
    std::string spec;
    if (OneIn(4)) spec += R"(,"tolerations":[{"key":"k","operator":"Exists"}])";
    if (OneIn(4)) spec += StrCat(R"(,"nodeSelector":{"zone":"z)", random_.Below(3), "\"}");
    if (OneIn(12)) spec += R"(,"schedulingGates":[{"name":"g"}])";
    std::string entries;
    for (const std::string& claim : claims) {
      entries += StrCat(entries.empty() ? "" : ",", R"({"name":"use-)", claim,
                        R"(","resourceClaimName":")", claim, "\"}");
    }
    const std::string port = OneIn(5) ? StrCat(R"(,"ports":[{"containerPort":80,"hostPort":)",
                                               80 + random_.Below(2), "}]")
                                      : "";
    cluster_.Create(
        "Pod",
        StrCat(R"({"metadata":{"name":")", name,
               R"("},"spec":{"containers":[{"name":"c","image":"i")", port,
               R"(,"resources":{"requests":{"cpu":")", 1 + random_.Below(3), R"("}}}])",
               entries.empty() ? "" : StrCat(R"(,"resourceClaims":[)", entries, "]"), spec, "}}"));
    cluster_.Settle();
    return name;
  }

  Objects List(std::string_view group, std::string_view kind) {
    Objects objects;
    cluster_.client().List({api::FindKind(group, "v1", kind), "", "", ""}, {},
                           [&](client::ListReply reply) { objects = std::move(reply.items); });
    cluster_.Settle();
    return objects;
  }
  Snapshot ReadCluster() {
    Snapshot snapshot;
    snapshot.now = cluster_.loop().clock().Now();
    snapshot.nodes = List("", "Node");
    snapshot.pods = List("", "Pod");
    snapshot.claims = List("resource.k8s.io", "ResourceClaim");
    snapshot.slices = List("resource.k8s.io", "ResourceSlice");
    snapshot.classes = List("resource.k8s.io", "DeviceClass");
    return snapshot;
  }
  Result<WhyAnswer> Explain(const Snapshot& snapshot, const scheduler::PodState* state) {
    Result<WhyAnswer> answer = ExplainWhy(snapshot, {WhySubject::Kind::kPod, "default", subject_},
                                          {.loop = cluster_.loop(),
                                           .random = random_,
                                           .compiler = compiler_,
                                           .settings = settings_,
                                           .with_nodes = true,
                                           .node = {},
                                           .state = state});
    if (answer.ok()) Summarize(*answer, snapshot.now);
    return answer;
  }

  // How many nodes were rejected for which reason.
  using Reasons = std::map<std::string, std::int64_t>;

  // A new scheduler first tries the pods that had a nominated node, and then keeps their room as
  // that of a pod being bound. So it does not matter for whom room is kept.
  static std::string WithoutNominated(std::string_view reason) {
    return std::string(reason.substr(0, reason.find(" (room is kept")));
  }

  // What was said about each node. A filter sees only the nodes that the ones before it accepted,
  // so the first refusal of each node counts.
  static Reasons Expected(const WhyAnswer& told) {
    Reasons reasons;
    for (const scheduler::NodeExplanation& node : told.nodes) {
      if (node.refusals.empty()) continue;
      for (const std::string& reason : node.refusals.front().reasons) {
        ++reasons[WithoutNominated(reason)];
      }
    }
    return reasons;
  }

  // Where the next reason starts. A list of pods in a reason has commas too, but no numbers.
  static std::size_t EndOfReason(std::string_view text) {
    std::size_t end = text.find(", ");
    while (end != std::string_view::npos && text.find_first_of("0123456789", end) != end + 2) {
      end = text.find(", ", end + 2);
    }
    return end;
  }

  // "0/5 nodes are available: 1 Insufficient cpu, 4 node(s) were unschedulable."
  static Reasons ReasonsIn(std::string_view message) {
    Reasons reasons;
    const std::size_t colon = message.find(": ");
    if (colon == std::string_view::npos || !message.ends_with('.')) return reasons;
    message = message.substr(colon + 2, message.size() - colon - 3);
    while (!message.empty()) {
      const std::size_t end = EndOfReason(message);
      const std::string_view part = message.substr(0, end);
      const std::size_t space = part.find(' ');
      reasons[WithoutNominated(part.substr(space + 1))] +=
          ParseInt64(part.substr(0, space)).value_or(0);
      message = end == std::string_view::npos ? "" : message.substr(end + 2);
    }
    return reasons;
  }

  // The scheduler itself, asked after the attempt, says what happened.
  void CheckAfterwards(const scheduler::SchedulerState& state, const std::string& chosen) {
    const scheduler::PodState pod = state.pod;
    const Result<WhyAnswer> now = Explain(SnapshotOf(state, cluster_.loop().clock().Now()), &pod);
    ASSERT_TRUE(now.ok()) << now.error().message;
    EXPECT_EQ(now->fits, !chosen.empty()) << now->sentence;
    if (!chosen.empty()) {
      EXPECT_EQ(now->node, chosen) << now->sentence;
    }
  }

  SeededRandom random_;
  scheduler::TestCluster cluster_;
  allocator::SimpleExpressions compiler_;
  const scheduler::Settings settings_;
  std::vector<std::string> claims_;
  std::string subject_;
  int next_ = 0;
};

TEST(WhyAgreement, SaysWhatTheSchedulerThenDoes) {
  const char* seeds = std::getenv("DRAKKAR_WHY_SEEDS");
  const std::uint64_t last = seeds == nullptr ? 300 : std::strtoull(seeds, nullptr, 10);
  const char* first = std::getenv("DRAKKAR_WHY_FIRST_SEED");
  for (std::uint64_t seed = first == nullptr ? 1 : std::strtoull(first, nullptr, 10); seed <= last;
       ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    RandomWhy(seed).Check();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace drakkar::answers
