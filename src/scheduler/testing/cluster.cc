#include "scheduler/testing/cluster.h"

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/direct/direct_client.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "scheduler/binding/refusal_notices.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources_args.h"

namespace drakkar::scheduler {

TestCluster::TestCluster(FeatureGates gates, std::uint64_t seed) : loop_(seed), gates_(gates) {
  StartServer(ServerGates());
  Create("Namespace", R"({"metadata":{"name":"default"}})");
}

void TestCluster::RestartServer(FeatureGates server_gates) {
  CHECK(scheduler_ == nullptr);
  Settle();  // makes all writes durable
  client_.reset();
  loop_.RunUntilIdle();
  core_.reset();
  store_.reset();
  StartServer(server_gates);
}

void TestCluster::StartServer(FeatureGates server_gates) {
  server_gates_ = server_gates;
  store_ = storage::OpenMemoryStore(loop_, disk_);
  core_ = std::make_unique<apiserver::Core>(apiserver::Core::Options{
      .loop = loop_, .random = loop_.random(), .store = *store_, .gates = server_gates_});
  core_->Start([](Result<void> ready) { CHECK(ready.ok()); });
  loop_.RunUntilIdle();
  client_ = apiserver::MakeDirectClient(loop_, *core_, {.name = "test"});
}

TestCluster::~TestCluster() {
  scheduler_.reset();
  client_.reset();
  loop_.RunUntilIdle();
}

Scheduler::Options TestCluster::SchedulerOptions() {
  std::vector<ProfileConfig> all = profiles;
  for (ProfileConfig& profile : all) {
    auto args = profile.ArgsOf<DynamicResourcesArgs>("DynamicResources");
    args.binding_timeout = binding_timeout;
    profile.SetArgs("DynamicResources", std::move(args));
  }
  return {.loop = loop_,
          .random = loop_.random(),
          .client = scheduler_client != nullptr ? *scheduler_client : *client_,
          .metrics = metrics_,
          .compiler = expressions_,
          .gates = gates_,
          .profiles = std::move(all),
          .declared_features = declared_features};
}

void TestCluster::StartScheduler() {
  scheduler_ = std::make_unique<Scheduler>(SchedulerOptions());
  scheduler_->Start();
  Settle();
  CHECK(scheduler_->IsReady());
}

void TestCluster::Settle() {
  loop_.RunUntilIdle();
  loop_.Advance(std::chrono::milliseconds(1));
}

void TestCluster::LetPauseEnd() {
  loop_.Advance(std::chrono::seconds(2));
  Settle();
}

client::ResourceRef TestCluster::Ref(std::string_view kind, std::string name,
                                     std::string subresource) {
  for (const api::KindSchema& each : api::AllKinds()) {
    if (each.kind != kind || !each.storage_version) continue;
    return {&each, each.namespaced ? "default" : "", std::move(name), std::move(subresource)};
  }
  CHECK(false);
  return {};
}

api::ObjectPtr TestCluster::Create(std::string_view kind, std::string_view json) {
  auto body = api::ParseJson(json);
  CHECK(body.ok());
  std::optional<client::Reply> reply;
  client_->Create(Ref(kind, ""), *body, {}, [&](client::Reply r) { reply = std::move(r); });
  loop_.RunUntilIdle();
  if (!reply->ok()) std::fprintf(stderr, "%s\n", reply->error->message.c_str());
  CHECK(reply->ok());
  return reply->object;
}

api::ObjectPtr TestCluster::Find(std::string_view kind, std::string name) {
  const client::ResourceRef ref = Ref(kind, name);
  return core_->Find(ref.kind->group, ref.kind->plural,
                     ref.namespace_.empty() ? name : StrCat(ref.namespace_, "/", name));
}

void TestCluster::Delete(std::string_view kind, std::string name) {
  client_->Delete(Ref(kind, std::move(name)), {.grace_period_seconds = 0},
                  [](client::Reply reply) { CHECK(reply.ok()); });
  Settle();
}

void TestCluster::Write(std::string_view kind, std::string name, std::string subresource,
                        api::TreePtr body) {
  client_->Update(Ref(kind, std::move(name), std::move(subresource)), std::move(body), {},
                  [](client::Reply reply) {
                    if (!reply.ok()) std::fprintf(stderr, "%s\n", reply.error->message.c_str());
                    CHECK(reply.ok());
                  });
  Settle();
}

void TestCluster::CreateNode(std::string name, std::string labels, std::string spec) {
  Create("Node",
         StrCat(R"({"metadata":{"name":")", name, R"(","labels":)", labels, R"(},"spec":)", spec,
                R"(,"status":{"allocatable":{"cpu":"4","memory":"32Gi","pods":"110",)",
                R"("ephemeral-storage":"100Gi"}}})"));
}

void TestCluster::CreateSlice(std::string node, int count, std::string device_extra) {
  std::string devices;
  for (int i = 0; i < count; ++i) {
    if (i > 0) devices += ",";
    devices += StrCat(R"({"name":"dev-)", i, "\"", device_extra, "}");
  }
  Create("ResourceSlice",
         StrCat(R"({"metadata":{"name":"slice-)", node, R"("},"spec":{"driver":"d.example.com",)",
                R"("pool":{"name":")", node, R"(","generation":1,"resourceSliceCount":1},)",
                R"("nodeName":")", node, R"(","devices":[)", devices, "]}}"));
}

void TestCluster::CreateClass(std::string name) {
  Create(
      "DeviceClass",
      StrCat(
          R"({"metadata":{"name":")", name,
          R"("},"spec":{"selectors":[{"cel":{"expression":"device.driver == \"d.example.com\""}}]}})"));
}

void TestCluster::CreateClaim(std::string name, int count, std::string class_name) {
  Create("ResourceClaim",
         StrCat(R"({"metadata":{"name":")", name,
                R"("},"spec":{"devices":{"requests":[{"name":"req","exactly":{"deviceClassName":")",
                class_name, R"(","count":)", count, "}}]}}}"));
}

void TestCluster::CreatePod(std::string name, std::string spec) {
  Create("Pod", StrCat(R"({"metadata":{"name":")", name,
                       R"("},"spec":{"containers":[{"name":"c","image":"i"}])", spec, "}}"));
}

void TestCluster::CreatePodWithClaims(std::string name, std::vector<std::string> claims,
                                      std::string spec) {
  std::string entries;
  for (const std::string& claim : claims) {
    if (!entries.empty()) entries += ",";
    entries += StrCat(R"({"name":"use-)", claim, R"(","resourceClaimName":")", claim, "\"}");
  }
  CreatePod(std::move(name), StrCat(R"(,"resourceClaims":[)", entries, "]", spec));
}

std::string TestCluster::NodeOf(std::string pod) {
  return std::string(Find("Pod", std::move(pod))->root()["spec"]["nodeName"].str());
}

void TestCluster::LetRefusalsBeTold() {
  loop_.Advance(RefusalNotices::kDelay);
  Settle();
}

std::string TestCluster::ConditionMessage(std::string pod) {
  LetRefusalsBeTold();
  for (api::Value condition :
       Find("Pod", std::move(pod))->root()["status"]["conditions"].elements()) {
    if (condition["type"].str() == "PodScheduled") return std::string(condition["message"].str());
  }
  return "";
}

std::vector<std::string> TestCluster::DevicesOf(std::string claim) {
  std::vector<std::string> devices;
  for (api::Value result : Find("ResourceClaim", std::move(claim))
                               ->root()["status"]["allocation"]["devices"]["results"]
                               .elements()) {
    devices.push_back(
        StrCat(result["driver"].str(), "/", result["pool"].str(), "/", result["device"].str()));
  }
  return devices;
}

std::vector<std::string> TestCluster::ReservedFor(std::string claim) {
  std::vector<std::string> pods;
  for (api::Value consumer :
       Find("ResourceClaim", std::move(claim))->root()["status"]["reservedFor"].elements()) {
    pods.emplace_back(consumer["name"].str());
  }
  return pods;
}

std::vector<std::string> TestCluster::Events(std::string object, std::string reason) {
  LetRefusalsBeTold();
  std::vector<std::string> messages;
  client_->List({api::FindKind("", "v1", "Event"), "default", "", ""}, {},
                [&](client::ListReply reply) {
                  for (const api::ObjectPtr& event : reply.items) {
                    if (event->root()["involvedObject"]["name"].str() == object &&
                        event->root()["reason"].str() == reason) {
                      messages.emplace_back(event->root()["message"].str());
                    }
                  }
                });
  loop_.RunUntilIdle();
  return messages;
}

void TestCluster::SetDeviceCondition(std::string claim, std::string type, std::string status) {
  Update("ResourceClaim", claim, "status", [&](api::Draft& draft) {
    const api::ObjectPtr object = Find("ResourceClaim", claim);
    api::Draft devices = api::Draft::Array();
    for (api::Value result :
         object->root()["status"]["allocation"]["devices"]["results"].elements()) {
      devices.Append({{"driver", result["driver"].str()},
                      {"pool", result["pool"].str()},
                      {"device", result["device"].str()},
                      {"conditions", api::Draft::Array({api::Draft{
                                         {"type", type},
                                         {"status", status},
                                         {"reason", "Test"},
                                         {"message", "said the test"},
                                         {"lastTransitionTime", "2027-01-01T00:00:00Z"}}})}});
    }
    draft["status"]["devices"] = std::move(devices);
  });
}

}  // namespace drakkar::scheduler
