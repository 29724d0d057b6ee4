#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json/reader.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "client/silent_client.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"
#include "scheduler/testing/test_context.h"

// Runs the steps of the plugin DynamicResources one at a time, without a server.
namespace drakkar::scheduler::device_steps {

inline api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

struct Claim {
  std::string metadata = "";
  std::string allocated = "";  // "node/device,...", for results of d.example.com
  std::string result = "";     // members of each result
  std::string status = "";     // members of the status
  std::string requests = R"({"name":"r","exactly":{"deviceClassName":"gpu",)"
                         R"("allocationMode":"ExactCount","count":1}})";
  std::string selector = "";
};

class DynamicResourcesSteps : public ::testing::Test {
 protected:
  DynamicResourcesSteps() {
    plugin_.Register({.name = "DynamicResources", .points = PointsOf<DynamicResources>()});
    for (const char* name : {"gpu", "nic"}) {
      world_.devices.SetClass(Parse(StrCat(R"({"metadata":{"name":")", name, R"("}})")));
    }
  }

  NodeIndex AddNode(std::string name, std::string labels = "", std::string features = "") {
    return world_.AddNode(Parse(StrCat(R"({"metadata":{"name":")", name, R"(","labels":{)", labels,
                                       R"(}},"status":{"declaredFeatures":[)", features, "]}}")));
  }
  void AddSlice(std::string node, int count, std::string device_extra = "") {
    std::vector<std::string> devices;
    for (int i = 0; i < count; ++i) {
      devices.push_back(StrCat(R"({"name":"dev-)", i, "\"", device_extra, "}"));
    }
    world_.devices.SetSlice(Parse(StrCat(
        R"({"metadata":{"name":"slice-)", node, R"("},"spec":{"driver":"d.example.com",)",
        R"("nodeName":")", node, R"(","pool":{"name":")", node,
        R"(","generation":1,"resourceSliceCount":1},"devices":[)", Join(devices, ","), "]}}")));
  }
  api::ObjectPtr MakeClaim(const std::string& name, const Claim& claim) {
    std::vector<std::string> results;
    for (const std::string_view each : Split(claim.allocated, ',')) {
      if (each.empty()) continue;
      const std::size_t slash = each.find('/');
      results.push_back(StrCat(R"({"request":"r","driver":"d.example.com","pool":")",
                               each.substr(0, slash), R"(","device":")", each.substr(slash + 1),
                               "\"", claim.result, "}"));
    }
    const std::string allocation = results.empty()
                                       ? ""
                                       : StrCat(R"("allocation":{"devices":{"results":[)",
                                                Join(results, ","), "]}", claim.selector, "}");
    return Parse(StrCat(R"({"metadata":{"namespace":"d","name":")", name, R"(","uid":")", name,
                        R"(","resourceVersion":")", ++version_, "\"", claim.metadata,
                        R"(},"spec":{"devices":{"requests":[)", claim.requests, R"(]}},"status":{)",
                        allocation, allocation.empty() || claim.status.empty() ? "" : ",",
                        claim.status, "}}"));
  }
  void SetClaim(const std::string& name, const Claim& claim = {}) {
    world_.claims.Observe(MakeClaim(name, claim));
  }
  static std::string Pinned(std::string key, std::string value) {
    return StrCat(R"(,"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":")", key,
                  R"(","operator":"In","values":[")", value, R"("]}]}]})");
  }
  // A pod that uses the claims.
  static PodInfoPtr Pod(std::vector<std::string> claims, std::string status = "") {
    std::vector<std::string> entries;
    for (const std::string& claim : claims) {
      entries.push_back(
          StrCat(R"({"name":"e-)", entries.size(), R"(","resourceClaimName":")", claim, "\"}"));
    }
    return MakePodInfo(Parse(
        StrCat(R"({"metadata":{"namespace":"d","name":"p","uid":"p"},"spec":{"resourceClaims":[)",
               Join(entries, ","), R"(]},"status":{)", status, "}}")));
  }
  // The result of PreFilter: "ok", "skip" or the reason.
  std::string PreFilter(const PodInfoPtr& pod) {
    cycle_ = std::make_shared<Cycle>();
    cycle_->pod = pod;
    const Status status = plugin_.PreFilter(*cycle_);
    return status.ok() ? "ok" : status.IsSkip() ? "skip" : status.Message();
  }
  // Names of the nodes that fit, "|" and the reasons for the others.
  std::string Filter(const PodInfoPtr& pod) {
    EXPECT_EQ(PreFilter(pod), "ok");
    NodeSet left = world_.nodes.known();
    const Status status = plugin_.Filter(*cycle_, left);
    if (!status.ok()) return status.Message();
    std::vector<std::string> names;
    left.ForEach([&](NodeIndex node) { names.push_back(world_.nodes.name(node)); });
    NodeSet rejected = world_.nodes.known();
    rejected.RemoveAll(left);
    Diagnosis diagnosis;
    if (!rejected.IsEmpty()) plugin_.Explain(*cycle_, rejected, diagnosis);
    std::vector<std::string> reasons;
    for (const auto& [reason, count] : diagnosis.reasons()) {
      reasons.push_back(StrCat(count, " ", reason));
    }
    return StrCat(Join(names, " "), "|", Join(reasons, "; "));
  }

  TestContext world_{FeatureGates().With(Gate::kDRAOptionalNodePreparation, true)};
  DynamicResources plugin_{world_.context, {}};
  CyclePtr cycle_;
  int version_ = 0;
};

// The pod of DynamicResourcesSteps::Pod.
inline const claims::Consumer kPod{"p", "p"};
inline constexpr char kDeleted[] = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")";

// Stores what it is given, except for what the test removes.
class LossyClient final : public client::SilentClient {
 public:
  explicit LossyClient(EventLoop& loop) : loop_(loop) {}
  void Update(client::ResourceRef, api::TreePtr body, client::WriteOptions,
              client::ReplyCallback done) override {
    api::Draft draft(body);
    if (loses) loses(draft);
    draft["metadata"]["resourceVersion"] = StrCat(++version_);
    client::Reply reply;
    reply.object = std::make_shared<const api::Object>(draft.Freeze());
    stored = reply.object;
    loop_.Post([done = std::move(done), reply] { done(reply); });
  }
  std::function<void(api::Draft&)> loses;
  api::ObjectPtr stored;

 private:
  EventLoop& loop_;
  int version_ = 1'000;
};

inline PluginContext ContextWith(TestContext& world, client::Client& client) {
  return {.loop = world.loop,
          .random = world.loop.random(),
          .client = client,
          .events = world.events,
          .nodes = world.nodes,
          .placements = world.placements,
          .namespaces = world.namespaces,
          .pod_groups = world.pod_groups,
          .claims = world.claims,
          .devices = world.devices,
          .gates = world.gates,
          .declared_features = features::DefaultFramework(),
          .metrics = world.metrics,
          .notify = [](const ClusterEvent&) {},
          .nominate = [](const PodInfo&, const std::string&) {},
          .on_wait_began = [] {},
          .is_bound = [](std::string_view) { return false; }};
}

}  // namespace drakkar::scheduler::device_steps
