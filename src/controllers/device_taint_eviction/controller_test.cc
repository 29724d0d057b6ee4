#include "controllers/device_taint_eviction/controller.h"

#include "api/json/reader.h"
#include "controllers/testing/controllers_fixture.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {
namespace {

constexpr std::string_view kTolerates60s =
    R"([{"operator":"Exists","effect":"NoExecute","tolerationSeconds":60}])";

class DeviceTaintEvictionTest : public ControllersFixture {
 protected:
  DeviceTaintEvictionTest() {
    server_.Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}})");
    Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}})");
  }

  // A pod on node n with a claim of its own that holds a device of pool p.
  api::ObjectPtr RunPod(const std::string& name, const std::string& device,
                        std::string_view tolerations = "[]",
                        const std::string& name_space = "default") {
    const std::string key = StrCat(name_space, "/", name);
    Create(StrCat(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":")", name,
        R"(","namespace":")", name_space,
        R"("},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}})"));
    Create(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                  R"(","namespace":")", name_space,
                  R"("},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i",
                      "resources":{"claims":[{"name":"x"}]}}],
                      "resourceClaims":[{"name":"x","resourceClaimName":")",
                  name, R"("}]}})"));
    const api::ObjectPtr pod = server_.Get("Pod", key);
    Change("ResourceClaim", key, "status", [&](api::Draft& claim) {
      api::Draft result = {{"request", "r"}, {"driver", "gpu"}, {"pool", "p"}, {"device", device}};
      result["tolerations"] = api::Draft(api::ParseJson(tolerations).value());
      claim["status"]["allocation"]["devices"]["results"] = api::Draft::Array();
      claim["status"]["allocation"]["devices"]["results"].Append(std::move(result));
      claim["status"]["reservedFor"] = api::Draft::Array();
      claim["status"]["reservedFor"].Append(
          {{"resource", "pods"}, {"name", name}, {"uid", pod->uid()}});
    });
    return pod;
  }

  // An empty `device` selects all of the pool.
  void TaintWithRule(std::string_view name, std::string_view device,
                     std::string_view effect = "NoExecute") {
    const std::string selected = device.empty() ? "" : StrCat(R"(,"device":")", device, "\"");
    Create(StrCat(R"({"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule",
        "metadata":{"name":")",
                  name, R"("},"spec":{"deviceSelector":{"driver":"gpu","pool":"p")", selected,
                  R"(},"taint":{"key":"k","effect":")", effect, "\"}}}"));
  }

  bool IsEvicted(const std::string& key) {
    const api::ObjectPtr pod = server_.Get("Pod", key);
    return pod == nullptr || pod->is_being_deleted();
  }

  // "True PodsPendingEviction: ..."
  std::string Progress(const std::string& rule) {
    const api::Value condition =
        FindCondition((*server_.Get("DeviceTaintRule", rule))["status"], "EvictionInProgress");
    return StrCat(condition["status"].str(), " ", condition["reason"].str(), ": ",
                  condition["message"].str());
  }
};

TEST_F(DeviceTaintEvictionTest, EvictsThePodsOfATaintedDeviceAndNoOthers) {
  RunPod("a", "d0");
  RunPod("b", "d1");
  TaintWithRule("r", "d0");
  EXPECT_TRUE(IsEvicted("default/a"));
  EXPECT_FALSE(IsEvicted("default/b"));
  const api::Value condition =
      FindCondition((*server_.Get("Pod", "default/a"))["status"], "DisruptionTarget");
  EXPECT_EQ(condition["status"].str(), "True");
  EXPECT_EQ(condition["reason"].str(), "DeletionByDeviceTaintManager");
  EXPECT_EQ(Events("DeviceTaintManagerEviction"), std::vector<std::string>{"Marking for deletion"});
}

TEST_F(DeviceTaintEvictionTest, EvictsAPodThatGetsATaintedDeviceLater) {
  TaintWithRule("r", "d0");
  RunPod("a", "d0");
  EXPECT_TRUE(IsEvicted("default/a"));
}

TEST_F(DeviceTaintEvictionTest, EvictsBecauseOfATaintInASlice) {
  RunPod("a", "d0");
  Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},
      "spec":{"driver":"gpu","pool":{"name":"p","generation":1,"resourceSliceCount":1},
      "nodeName":"n","devices":[{"name":"d0","taints":[{"key":"k","effect":"NoExecute"}]}]}})");
  EXPECT_TRUE(IsEvicted("default/a"));
}

TEST_F(DeviceTaintEvictionTest, WaitsForTolerationSecondsBeforeDeletingThePod) {
  RunPod("a", "d0", kTolerates60s);
  TaintWithRule("r", "d0");
  Settle(std::chrono::seconds(55));
  EXPECT_FALSE(IsEvicted("default/a"));
  EXPECT_EQ(Progress("r"), "True PodsPendingEviction: 1 pod needs to be evicted in 1 namespace.");
  Settle(std::chrono::seconds(10));
  EXPECT_TRUE(IsEvicted("default/a"));
}

TEST_F(DeviceTaintEvictionTest, ARemovedTaintCancelsTheEviction) {
  RunPod("a", "d0", kTolerates60s);
  TaintWithRule("r", "d0");
  ASSERT_TRUE(server_.Delete("DeviceTaintRule", "r").ok());
  Settle(std::chrono::seconds(70));
  EXPECT_FALSE(IsEvicted("default/a"));
  EXPECT_EQ(Events("DeviceTaintManagerEviction"), std::vector<std::string>{"Cancelling deletion"});
}

TEST_F(DeviceTaintEvictionTest, APodThatHasNotReservedTheClaimStays) {
  RunPod("a", "d0", kTolerates60s);
  Change("ResourceClaim", "default/a", "status",
         [](api::Draft& claim) { claim["status"]["reservedFor"].at(0)["uid"] = "another"; });
  TaintWithRule("r", "d0");
  Settle(std::chrono::seconds(70));
  EXPECT_FALSE(IsEvicted("default/a"));
}

TEST_F(DeviceTaintEvictionTest, ARuleReportsWhatItHasDone) {
  RunPod("a", "d0", kTolerates60s);
  RunPod("b", "d1", kTolerates60s);
  RunPod("c", "d2", kTolerates60s, "other");
  TaintWithRule("r", "");
  EXPECT_EQ(Progress("r").substr(0, 5), "False") << "written before the claims were looked at";
  Settle(std::chrono::seconds(11));
  EXPECT_EQ(Progress("r"),
            "True PodsPendingEviction: 3 pods need to be evicted in 2 different namespaces.");
  Settle(std::chrono::seconds(80));
  EXPECT_EQ(Progress("r"), "False Completed: 3 pods evicted since starting the controller.");
}

TEST_F(DeviceTaintEvictionTest, ARuleWithoutEffectReportsWhatItWouldDo) {
  RunPod("a", "d0");
  TaintWithRule("none", "d0", "None");
  EXPECT_EQ(
      Progress("none"),
      "False NoEffect: 0 published devices selected. 1 allocated device selected. 1 pod would "
      "be evicted in 1 namespace if the effect was NoExecute. This information will not be "
      "updated again. Recreate the DeviceTaintRule to trigger an update.");
  TaintWithRule("schedule", "d0", "NoSchedule");
  EXPECT_EQ(Progress("schedule"),
            "False OtherEffect: Eviction only happens for the NoExecute effect.");
  TaintWithRule("idle", "d9");
  EXPECT_EQ(Progress("idle"), "False NotStarted: ");
  EXPECT_FALSE(IsEvicted("default/a"));
}

TEST_F(DeviceTaintEvictionTest, AFailedDeletionIsRetried) {
  RunPod("a", "d0");
  int deletions = 0;
  faulty_.loses = [&](std::string_view verb, const client::ResourceRef&, const api::TreePtr&) {
    return verb == "delete" && ++deletions == 1;
  };
  TaintWithRule("r", "d0");
  Settle(std::chrono::seconds(2));
  EXPECT_TRUE(IsEvicted("default/a"));
}

}  // namespace
}  // namespace drakkar::controllers
