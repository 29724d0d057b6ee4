// A driver that is written against the C interface, between a node, a container runtime and HTTP
// clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>

#include "base/text/text.h"
#include "net/client/http_client.h"
#include "rpc/dra/dra_client.h"
#include "rpc/registration/registration.h"
#include "rpc/testing/transport_harness.h"
#include "sdk/driver/c/drakkar_driver.h"
#include "sdk/driver/nri/testing/nri_runtime.h"

namespace drakkar {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Duration kTimeout = std::chrono::seconds(60);

// What the callbacks were called with. They run on the driver's thread.
struct Seen {
  std::mutex mutex;
  std::vector<std::string> events;

  void Add(std::string event) {
    const std::lock_guard lock(mutex);
    events.push_back(std::move(event));
  }
  std::vector<std::string> Take() {
    const std::lock_guard lock(mutex);
    return std::exchange(events, {});
  }
};

int Prepare(void*, const drakkar_claim* claim, drakkar_prepare_result* result,
            drakkar_error* error) {
  if (std::string(drakkar_claim_name(claim)) == "bad") {
    std::snprintf(error->message, sizeof(error->message), "no link");
    return 1;
  }
  for (size_t i = 0; i < drakkar_claim_device_count(claim); ++i) {
    const drakkar_allocated_device device = drakkar_claim_device(claim, i);
    drakkar_prepare_result_add_device(result, &device, nullptr, 0);
    drakkar_prepare_result_set_string(result, "model", "as-prepared");
  }
  return 0;
}
int Unprepare(void* user_data, const char* claim_namespace, const char* claim_name,
              const char* claim_uid, drakkar_error*) {
  static_cast<Seen*>(user_data)->Add(
      StrCat("unprepare ", claim_namespace, "/", claim_name, " ", claim_uid));
  return 0;
}
int PodEvent(void* user_data, const char* event, const drakkar_pod* pod, drakkar_error* error) {
  static_cast<Seen*>(user_data)->Add(StrCat(event, " ", drakkar_pod_name(pod)));
  if (std::string(drakkar_pod_name(pod)) != "bad") return 0;
  std::snprintf(error->message, sizeof(error->message), "cannot %s", event);
  return 1;
}
int RunPod(void* user_data, drakkar_driver* driver, const drakkar_pod* pod, drakkar_error* error) {
  EXPECT_NE(driver, nullptr);
  // Callbacks may call the driver.
  EXPECT_EQ(drakkar_driver_is_nri_registered(driver), 1);
  return PodEvent(user_data, "run", pod, error);
}
int StopPod(void* user_data, drakkar_driver*, const drakkar_pod* pod, drakkar_error* error) {
  return PodEvent(user_data, "stop", pod, error);
}
int RemovePod(void* user_data, drakkar_driver*, const drakkar_pod* pod, drakkar_error* error) {
  return PodEvent(user_data, "remove", pod, error);
}
int RunningPod(void* user_data, drakkar_driver*, const drakkar_pod* pod, drakkar_error* error) {
  return PodEvent(user_data, "found", pod, error);
}
void HandleError(void* user_data, const char* message, int recoverable) {
  static_cast<Seen*>(user_data)->Add(StrCat(recoverable != 0 ? "error: " : "fatal: ", message));
}

class WholeDriver : public ::testing::Test {
 protected:
  WholeDriver() : harness_(rpc::MakeGrpcHarness()), directory_(harness_->SocketPath("")) {
    std::ofstream(Path("kubeconfig"))
        << "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
           "clusters: [{name: x, cluster: {server: \"https://127.0.0.1:1\"}}]\n"
           "users: [{name: x, user: {token: t}}]\n"
           "contexts: [{name: x, context: {cluster: x, user: x}}]\n";
    options_.size = sizeof(options_);
    options_.driver_name = "whole.example.com";
    options_.node_name = "n1";
    options_.kubeconfig = Keep("kubeconfig");
    options_.registry_dir = Keep("registry");
    options_.plugin_dir = Keep("plugins");
    options_.cdi_dir = Keep("cdi");
    options_.nri_socket = Keep("nri.sock");
    options_.log_level = "error";
    options_.user_data = &seen_;
    options_.prepare = Prepare;
    options_.unprepare = Unprepare;
    options_.handle_error = HandleError;
  }
  ~WholeDriver() override {
    harness_->Do([&] { node_.reset(); });
    runtime_thread_.RunSync([&] { runtime_.reset(); });
    drakkar_driver_stop(driver_);
  }

  std::string Path(std::string_view name) const { return StrCat(directory_, "/", name); }
  const char* Keep(std::string_view name) { return texts_.emplace_back(Path(name)).c_str(); }

  void Start() {
    drakkar_error error = {};
    driver_ = drakkar_driver_start(&options_, &error);
    ASSERT_NE(driver_, nullptr) << error.message;
  }
  void Connect() {
    harness_->Do([&] {
      node_ = rpc::DialDraPlugin(harness_->transport(), {.endpoint = Path("plugins/dra.sock"),
                                                         .version = rpc::DraVersion::kV1});
    });
    ASSERT_TRUE(harness_->WaitUntil([&] { return node_->IsConnected(); }));
  }
  static rpc::ClaimReference Claim(const std::string& name) {
    return {"default", "uid-" + name, name};
  }
  // The node sends the claims along, so that no API server is needed.
  rpc::PrepareResults PrepareClaims(const std::vector<std::string>& names) {
    std::optional<Result<rpc::PrepareResults>> answer;
    harness_->Do([&] {
      std::vector<rpc::AnnouncedClaim> announced;
      std::vector<rpc::ClaimReference> claims;
      for (const std::string& name : names) {
        claims.push_back(Claim(name));
        announced.push_back(
            {Claim(name),
             StrCat(
                 R"({"metadata":{"name":")", name, R"(","namespace":"default","uid":"uid-)", name,
                 R"("},"status":{"reservedFor":[{"resource":"pods","name":"web","uid":)",
                 R"("uid-web"}],"allocation":{"devices":{"results":[{"request":"r",)",
                 R"("driver":"whole.example.com","pool":"p","device":"dev-)", name,
                 R"("},{"request":"r","driver":"whole.example.com","pool":"p","device":"more-)",
                 name,
                 R"("},{"request":"r","driver":"other.example.com","pool":"p","device":"x"}]}}}})")});
      }
      node_->AnnouncePrepare(announced, kTimeout);
      node_->Prepare(claims, kTimeout, [&answer](auto results) { answer = std::move(results); });
    });
    EXPECT_TRUE(harness_->WaitUntil([&] { return answer.has_value(); }));
    rpc::PrepareResults results;
    harness_->Do([&] {
      EXPECT_TRUE(answer->ok()) << answer->error().message;
      if (answer->ok()) results = **answer;
    });
    return results;
  }
  // All files below the test's folder, in one text.
  std::string Files() const {
    std::ostringstream all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      if (entry.is_regular_file()) all << std::ifstream(entry.path()).rdbuf();
    }
    return all.str();
  }
  std::string Get(std::uint16_t port, const std::string& path) {
    UvLoop loop;
    std::string text;
    auto client = std::make_unique<net::HttpClient>(loop, net::HttpClientOptions{});
    client->Do({.url = StrCat("http://127.0.0.1:", port, path)},
               [&](Result<net::Response> response) {
                 text = response.ok() ? StrCat(response->status, " ", response->body)
                                      : response.error().message;
                 loop.Stop();
               });
    loop.Run();
    client.reset();
    loop.Post([&] { loop.Stop(); });
    loop.Run();
    return text;
  }
  Result<void> Deliver(rpc::NriEvent event, const std::string& name) {
    std::mutex mutex;
    std::optional<Result<void>> answer;
    runtime_thread_.RunSync([&] {
      runtime_->session->Deliver(event, {.id = "s-" + name, .name = name}, {},
                                 [&](Result<void> done) {
                                   const std::lock_guard lock(mutex);
                                   answer = done;
                                 });
    });
    EXPECT_TRUE(harness_->WaitUntil([&] {
      const std::lock_guard lock(mutex);
      return answer.has_value();
    }));
    return answer.value_or(Internal("no answer"));
  }

  std::unique_ptr<rpc::TransportHarness> harness_;
  const std::string directory_;
  std::deque<std::string> texts_;
  Seen seen_;
  drakkar_driver_options options_ = {};
  drakkar_driver* driver_ = nullptr;
  std::unique_ptr<rpc::DraPluginClient> node_;
  LoopThread runtime_thread_{"runtime"};
  std::unique_ptr<driver::NriRuntime> runtime_;
};

TEST_F(WholeDriver, ANodeRegistersItAndItPreparesClaims) {
  Start();
  EXPECT_EQ(drakkar_driver_is_registered(driver_), 0);
  auto registration = rpc::MakeRegistrationClient(harness_->transport());
  std::optional<Result<void>> registered;
  harness_->Do([&] {
    registration->NotifyRegistrationStatus(Path("registry/whole.example.com-reg.sock"),
                                           {.plugin_registered = true, .error = ""}, kTimeout,
                                           [&](Result<void> answer) { registered = answer; });
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return registered.has_value(); }));
  harness_->Do([&] { registration.reset(); });
  EXPECT_EQ(drakkar_driver_is_registered(driver_), 1);
  EXPECT_EQ(drakkar_driver_is_nri_registered(driver_), 0) << "it has no pod callbacks";
  Connect();
  const rpc::PrepareResults results = PrepareClaims({"a", "bad"});
  ASSERT_EQ(results.at("uid-a").devices.size(), 2u) << "only its own devices";
  EXPECT_EQ(results.at("uid-a").devices[0].device_name, "dev-a");
  EXPECT_EQ(results.at("uid-a").devices[0].pool_name, "p");
  EXPECT_EQ(results.at("uid-a").error, "");
  EXPECT_EQ(results.at("uid-bad").error, "no link");
  EXPECT_THAT(Files(), Not(HasSubstr("as-prepared"))) << "metadata is off";
  std::optional<Result<rpc::UnprepareResults>> undone;
  harness_->Do([&] {
    node_->Unprepare({Claim("a")}, kTimeout, [&](auto answer) { undone = std::move(answer); });
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return undone.has_value(); }));
  EXPECT_THAT(seen_.Take(), ElementsAre("unprepare default/a uid-a"));
}

TEST_F(WholeDriver, MetadataOfAPreparedRequestCanBeListedAndUpdated) {
  options_.enable_device_metadata = 1;
  Start();
  Connect();
  ASSERT_EQ(PrepareClaims({"a"}).at("uid-a").error, "");
  EXPECT_THAT(Files(), HasSubstr("as-prepared"));
  std::vector<std::string> listed;
  drakkar_error error = {};
  ASSERT_EQ(drakkar_driver_prepared_requests(
                driver_,
                [](void* user_data, const drakkar_prepared_request* request) {
                  std::string text = StrCat(request->claim_namespace, "/", request->claim_name, " ",
                                            request->claim_uid, " ", request->request, " ",
                                            request->has_metadata != 0 ? "described" : "deferred");
                  for (size_t i = 0; i < request->device_count; ++i) {
                    text += StrCat(" ", request->devices[i].request, ":", request->devices[i].pool,
                                   "/", request->devices[i].device);
                    EXPECT_EQ(request->devices[i].share_id, nullptr);
                  }
                  for (size_t i = 0; i < request->pod_count; ++i) {
                    text += StrCat(" ", request->pod_uids[i]);
                  }
                  static_cast<std::vector<std::string>*>(user_data)->push_back(text);
                },
                &listed, &error),
            0)
      << error.message;
  EXPECT_THAT(listed, ElementsAre("default/a uid-a r described r:p/dev-a r:p/more-a uid-web"));

  const drakkar_allocated_device device = {"r", "p", "dev-a", nullptr};
  drakkar_prepare_result* devices = drakkar_prepare_result_new();
  drakkar_prepare_result_add_device(devices, &device, nullptr, 0);
  drakkar_prepare_result_set_string(devices, "model", "as-updated");
  EXPECT_NE(drakkar_driver_update_metadata(driver_, "default", "a", "other", "r", devices, &error),
            0);
  EXPECT_NE(drakkar_driver_update_metadata(driver_, "default", "a", "uid-a", "q", devices, &error),
            0);
  EXPECT_NE(drakkar_driver_update_metadata(driver_, "default", "b", "uid-a", "r", devices, &error),
            0);
  EXPECT_THAT(Files(), Not(HasSubstr("as-updated")));
  EXPECT_EQ(drakkar_driver_update_metadata(driver_, "default", "a", "uid-a", "r", devices, &error),
            0)
      << error.message;
  EXPECT_THAT(Files(), AllOf(HasSubstr("as-updated"), Not(HasSubstr("as-prepared"))));
  drakkar_prepare_result_free(devices);
}

TEST_F(WholeDriver, PodCallbacksReceiveTheRuntimesEvents) {
  options_.run_pod_sandbox = RunPod;
  options_.stop_pod_sandbox = StopPod;
  options_.remove_pod_sandbox = RemovePod;
  options_.running_pod_sandbox = RunningPod;
  runtime_thread_.RunSync([&] {
    runtime_ = std::make_unique<driver::NriRuntime>(runtime_thread_.loop(), Path("nri.sock"));
    runtime_->existing = {{.id = "s-0", .name = "bad", .namespace_name = "default"},
                          {.id = "s-1", .name = "old", .namespace_name = "default"}};
  });
  Start();
  ASSERT_TRUE(harness_->WaitUntil([&] { return drakkar_driver_is_nri_registered(driver_) != 0; }));
  // The runtime tells what runs already after it has registered the driver.
  std::vector<std::string> found;
  EXPECT_TRUE(harness_->WaitUntil([&] {
    for (std::string& event : seen_.Take()) found.push_back(std::move(event));
    return found.size() >= 3;
  }));
  EXPECT_THAT(found, ElementsAre("found bad", "error: pod default/bad: cannot found", "found old"));
  EXPECT_TRUE(Deliver(rpc::NriEvent::kRunPodSandbox, "web").ok());
  const Result<void> refused = Deliver(rpc::NriEvent::kRunPodSandbox, "bad");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("cannot run"));
  EXPECT_TRUE(Deliver(rpc::NriEvent::kStopPodSandbox, "web").ok());
  EXPECT_TRUE(Deliver(rpc::NriEvent::kRemovePodSandbox, "web").ok());
  EXPECT_THAT(seen_.Take(), ElementsAre("run web", "run bad", "stop web", "remove web"));
}

TEST_F(WholeDriver, OneKindOfPodCallbackIsEnoughToRegisterWithTheRuntime) {
  const auto none = options_;
  for (int kind = 0; kind < 4; ++kind) {
    options_ = none;
    if (kind == 0) options_.run_pod_sandbox = RunPod;
    if (kind == 1) options_.stop_pod_sandbox = StopPod;
    if (kind == 2) options_.remove_pod_sandbox = RemovePod;
    if (kind == 3) options_.running_pod_sandbox = RunningPod;
    runtime_thread_.RunSync([&] {
      runtime_.reset();
      runtime_ = std::make_unique<driver::NriRuntime>(runtime_thread_.loop(), Path("nri.sock"));
    });
    Start();
    EXPECT_TRUE(harness_->WaitUntil([&] { return drakkar_driver_is_nri_registered(driver_) != 0; }))
        << kind;
    drakkar_driver_stop(std::exchange(driver_, nullptr));
  }
}

TEST_F(WholeDriver, TheHttpEndpointTellsWhetherItIsReady) {
  // A free port: another process may take it before the driver does, so several are tried.
  std::uint16_t port = 0;
  for (int attempt = 0; attempt < 5 && driver_ == nullptr; ++attempt) {
    runtime_thread_.RunSync([&] {
      auto listener = net::Listener::Create(runtime_thread_.loop(),
                                            {.address = {.host = "127.0.0.1"}}, [](auto) {});
      ASSERT_TRUE(listener.ok());
      port = (*listener)->port();
    });
    const std::string address = StrCat("127.0.0.1:", port);
    options_.http_endpoint = address.c_str();
    driver_ = drakkar_driver_start(&options_, nullptr);
  }
  ASSERT_NE(driver_, nullptr);
  EXPECT_EQ(Get(port, "/healthz"), "200 ok");
  EXPECT_THAT(Get(port, "/readyz"), HasSubstr("503 "));
  EXPECT_THAT(Get(port, "/metrics"), HasSubstr("dra_driver_registered 0"));
  EXPECT_THAT(seen_.Take(), IsEmpty());
}

TEST_F(WholeDriver, InvalidOptionsKeepItFromStarting) {
  drakkar_error error = {};
  options_.log_level = "loud";
  EXPECT_EQ(drakkar_driver_start(&options_, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("--log-level must be"));
  options_.log_level = "error";
  options_.logging_format = "xml";
  EXPECT_EQ(drakkar_driver_start(&options_, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("--logging-format must be"));
  options_.logging_format = nullptr;
  options_.http_endpoint = "nonsense";
  EXPECT_EQ(drakkar_driver_start(&options_, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("must include a port"));
  options_.http_endpoint = nullptr;
  options_.without_node = 1;
  EXPECT_EQ(drakkar_driver_start(&options_, &error), nullptr);
  EXPECT_STREQ(error.message, "set node_name or without_node");
  options_.node_name = nullptr;
  options_.prepare = nullptr;
  options_.unprepare = nullptr;
  Start();
  EXPECT_FALSE(std::filesystem::exists(Path("plugins/dra.sock"))) << "it serves no node";
  EXPECT_FALSE(std::filesystem::exists(Path("registry/whole.example.com-reg.sock")));
}

TEST_F(WholeDriver, TheTaintOfUnhealthyDevicesHasADefault) {
  options_.health_service = 1;
  options_.taint_unhealthy = 1;
  Start();
  ASSERT_NE(driver_, nullptr);
}

TEST_F(WholeDriver, WithoutANodeItMayManageASinglePool) {
  options_.without_node = 1;
  options_.node_name = nullptr;
  options_.pool_name = "mine";
  Start();
  drakkar_error error = {};
  drakkar_resources* resources = drakkar_resources_new();
  drakkar_resources_add_device(resources, "other", "d");
  drakkar_resources_set_all_nodes(resources, "other");
  EXPECT_NE(drakkar_driver_publish(driver_, resources, &error), 0);
  drakkar_resources_free(resources);
  resources = drakkar_resources_new();
  drakkar_resources_add_device(resources, "mine", "d");
  drakkar_resources_set_all_nodes(resources, "mine");
  EXPECT_EQ(drakkar_driver_publish(driver_, resources, &error), 0) << error.message;
  drakkar_resources_free(resources);
}

TEST_F(WholeDriver, AConditionThatCannotBeWrittenIsReported) {
  Start();
  drakkar_error error = {};
  ASSERT_EQ(drakkar_driver_set_condition(driver_, "default", "a", "uid-a", "p", "d", "Ready",
                                         "True", "Up", nullptr, &error),
            0)
      << error.message;
  EXPECT_TRUE(harness_->WaitUntil([&] { return !seen_.Take().empty(); })) << "no server is there";
}

TEST_F(WholeDriver, PrepareAndUnprepareComeInPairs) {
  drakkar_error error = {};
  options_.unprepare = nullptr;
  EXPECT_EQ(drakkar_driver_start(&options_, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("set prepare and unprepare"));
  options_.unprepare = Unprepare;
  options_.prepare = nullptr;
  EXPECT_EQ(drakkar_driver_start(&options_, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("set prepare and unprepare"));
}

TEST_F(WholeDriver, AHealthReportReachesTheNodeAsItIs) {
  options_.health_service = 1;
  Start();
  Connect();
  rpc::HealthReport got;
  std::unique_ptr<rpc::HealthStream> stream;
  harness_->Do([&] {
    stream =
        node_->WatchHealth(rpc::HealthService::kV1,
                           {.on_report = [&](const rpc::HealthReport& report) { got = report; },
                            .on_end = [](Result<void>) {},
                            .on_malformed = {}});
  });
  const drakkar_device_health news[] = {{.pool = "p",
                                         .device = "bad",
                                         .health = DRAKKAR_HEALTH_UNHEALTHY,
                                         .message = "hot",
                                         .timeout_seconds = 60,
                                         .last_updated = 1'700'000'000},
                                        {.pool = "p",
                                         .device = "good",
                                         .health = DRAKKAR_HEALTH_HEALTHY,
                                         .message = nullptr,
                                         .timeout_seconds = 0,
                                         .last_updated = 0},
                                        {.pool = "p",
                                         .device = "odd",
                                         .health = DRAKKAR_HEALTH_UNKNOWN,
                                         .message = nullptr,
                                         .timeout_seconds = 0,
                                         .last_updated = 0}};
  drakkar_error error = {};
  ASSERT_EQ(drakkar_driver_report(driver_, news, 3, &error), 0) << error.message;
  ASSERT_TRUE(harness_->WaitUntil([&] { return got.size() == 3; }));
  harness_->Do([&] {
    using State = rpc::DeviceHealthState;
    std::ranges::sort(got, {}, &rpc::DeviceHealth::device_name);
    EXPECT_EQ(got[0].health, State::kUnhealthy);
    EXPECT_EQ(got[0].message, "hot");
    EXPECT_EQ(got[0].health_check_timeout_seconds, 60);
    EXPECT_EQ(got[0].last_updated_seconds, 1'700'000'000);
    EXPECT_EQ(got[1].health, State::kHealthy);
    EXPECT_NE(got[1].last_updated_seconds, 0) << "now";
    EXPECT_EQ(got[2].health, State::kUnknown);
    stream.reset();
  });
}

}  // namespace
}  // namespace drakkar
