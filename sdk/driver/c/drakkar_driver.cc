#include "sdk/driver/c/drakkar_driver.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "cdi/spec_reader.h"
#include "cdi/validate.h"
#include "client/http_client.h"
#include "sdk/driver/c/callback_plugin.h"
#include "sdk/driver/c/handles.h"
#include "sdk/driver/driver.h"
#include "sdk/driver/host/driver_endpoint.h"
#include "sdk/driver/host/driver_host.h"
#include "sdk/driver/nri/nri_hook.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

using namespace drakkar;
using namespace drakkar::driver::c;

namespace {

// The sizes of the options struct in all headers so far, each the offset of the next addition.
constexpr std::array<std::size_t, 3> kOptionSizes = {
    offsetof(drakkar_driver_options, running_pod_sandbox),
    offsetof(drakkar_driver_options, start_prepare), sizeof(drakkar_driver_options)};

// Copies the options into the current struct, whichever header they were compiled with.
Result<drakkar_driver_options> ReadOptions(const drakkar_driver_options* given) {
  if (given == nullptr) return InvalidArgument("options must not be null");
  if (given->size > kOptionSizes.back()) {
    return InvalidArgument(StrCat("options.size is ", given->size,
                                  ", but this library supports at most ", kOptionSizes.back(),
                                  " bytes; the program was compiled for a newer library"));
  }
  if (std::ranges::find(kOptionSizes, given->size) == kOptionSizes.end()) {
    return InvalidArgument("options.size must be sizeof(drakkar_driver_options)");
  }
  drakkar_driver_options options = {};
  std::memcpy(&options, given, given->size);
  options.size = sizeof(options);
  return options;
}

Result<void> CheckOptions(const drakkar_driver_options* options) {
  const bool prepares = options->prepare != nullptr || options->prepare_all != nullptr ||
                        options->start_prepare != nullptr;
  const bool unprepares = options->unprepare != nullptr || options->unprepare_all != nullptr ||
                          options->start_unprepare != nullptr;
  if (options->driver_name == nullptr) return InvalidArgument("driver_name must not be null");
  if (options->without_node == 0 && !(prepares && unprepares)) {
    return InvalidArgument(
        "set prepare and unprepare, prepare_all and unprepare_all, or start_prepare and "
        "start_unprepare");
  }
  if ((options->without_node != 0) != (options->node_name == nullptr)) {
    return InvalidArgument("set node_name or without_node");
  }
  if (options->taint_unhealthy != 0 && options->health_service == 0) {
    return InvalidArgument("taint_unhealthy requires health_service");
  }
  return Ok();
}

using PodCallback = int (*)(void*, drakkar_driver*, const drakkar_pod*, drakkar_error*);

}  // namespace

// Everything but the thread itself lives on the thread's loop.
struct drakkar_driver {
  explicit drakkar_driver(const drakkar_driver_options& options)
      : plugin(options), thread("driver") {}

  Result<void> Open(const drakkar_driver_options& options) {
    driver::DriverFlags flags{.driver_name = options.driver_name};
    flags.kubeconfig = Text(options.kubeconfig);
    flags.node_name = Text(options.node_name);
    flags.plugin_directory = Text(options.plugin_dir);
    flags.pod_uid = Text(options.pod_uid);
    if (options.registry_dir != nullptr) flags.registry_directory = options.registry_dir;
    if (options.cdi_dir != nullptr) flags.cdi_directory = options.cdi_dir;
    if (options.nri_socket != nullptr) flags.nri_socket = options.nri_socket;
    if (options.log_level != nullptr) RETURN_IF_ERROR(flags.Set("log-level", options.log_level));
    if (options.logging_format != nullptr) {
      RETURN_IF_ERROR(flags.Set("logging-format", options.logging_format));
    }
    flags.enable_device_metadata = options.enable_device_metadata != 0;
    ASSIGN_OR_RETURN(const client::ClusterAccess access, driver::BeginDriverProcess(flags));
    UvLoop& loop = thread.loop();
    plugin.Start(loop);
    client = client::MakeHttpClient(loop, access, options.driver_name);
    transport = rpc::MakeGrpcTransport(loop);
    driver::DriverOptions started =
        driver::MakeDriverOptions(flags, {loop, *client, *transport, metrics}, plugin);
    started.health_service = options.health_service != 0;
    if (options.without_node != 0) {
      started.registration_service = started.dra_service = false;
      started.pool_name = Text(options.pool_name);
    }
    if (options.taint_unhealthy != 0) {
      started.unhealthy_taint.key = options.taint_key != nullptr
                                        ? std::string(options.taint_key)
                                        : StrCat(options.driver_name, "/unhealthy");
      if (options.taint_effect != nullptr) started.unhealthy_taint.effect = options.taint_effect;
    }
    ASSIGN_OR_RETURN(driver, driver::Driver::Start(std::move(started)));
    OpenHook(options, flags.nri_socket);
    if (options.http_endpoint == nullptr) return Ok();
    endpoint = std::make_unique<driver::DriverEndpoint>(
        driver::DriverEndpoint::Options{.loop = loop,
                                        .address = options.http_endpoint,
                                        .metrics = metrics,
                                        .check_ready = [this] { return driver->CheckReady(); },
                                        .before_metrics = [this] { driver->UpdateMetrics(); }});
    return endpoint->Start();
  }

  void OpenHook(const drakkar_driver_options& options, const std::string& socket) {
    rpc::NriPluginSession::Callbacks callbacks;
    const auto deliver = [this, user_data = options.user_data](PodCallback callback) {
      std::function<void(const rpc::NriPodSandbox&, rpc::NriDone)> call;
      if (callback == nullptr) return call;
      call = [this, user_data, callback](const rpc::NriPodSandbox& pod, rpc::NriDone done) {
        const drakkar_pod lent{pod};
        drakkar_error error = {};
        if (callback(user_data, this, &lent, &error) == 0) return done(Ok());
        done(FailedPrecondition(ErrorText(error)));
      };
      return call;
    };
    callbacks.on_run_pod_sandbox = deliver(options.run_pod_sandbox);
    callbacks.on_stop_pod_sandbox = deliver(options.stop_pod_sandbox);
    callbacks.on_remove_pod_sandbox = deliver(options.remove_pod_sandbox);
    if (const PodCallback running = options.running_pod_sandbox; running != nullptr) {
      callbacks.on_pods = [this, user_data = options.user_data,
                           running](const std::vector<rpc::NriPodSandbox>& pods) {
        for (const rpc::NriPodSandbox& pod : pods) {
          const drakkar_pod lent{pod};
          drakkar_error error = {};
          if (running(user_data, this, &lent, &error) == 0) continue;
          plugin.HandleError(FailedPrecondition(StrCat("pod ", pod.namespace_name, "/", pod.name,
                                                       ": ", ErrorText(error))),
                             true);
        }
      };
    }
    if (!callbacks.on_run_pod_sandbox && !callbacks.on_stop_pod_sandbox &&
        !callbacks.on_remove_pod_sandbox && !callbacks.on_pods) {
      return;
    }
    hook = std::make_unique<driver::NriHook>(
        driver::NriHook::Options{.loop = thread.loop(),
                                 .random = RealRandom(),
                                 .socket_path = socket,
                                 .name = options.driver_name,
                                 .callbacks = std::move(callbacks)});
    hook->Start();
  }

  void Close() {
    plugin.Stop();
    hook.reset();
    endpoint.reset();
    driver.reset();
    transport.reset();
    client.reset();
  }

  // Runs `task` on the loop: directly if called from a callback, otherwise posted and waited for.
  template <typename Task>
  void OnLoop(Task task) {
    if (thread.loop().IsInLoop()) return task();
    thread.RunSync([&] { task(); });
  }

  Metrics metrics;
  CallbackPlugin plugin;  // outlives the thread, whose last tasks may use it
  LoopThread thread;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<rpc::Transport> transport;
  std::unique_ptr<driver::Driver> driver;
  std::unique_ptr<driver::NriHook> hook;
  std::unique_ptr<driver::DriverEndpoint> endpoint;
};

extern "C" {

drakkar_driver* drakkar_driver_start(const drakkar_driver_options* options, drakkar_error* error) {
  drakkar_driver* started = nullptr;
  Guarded(error, [&] {
    const Result<drakkar_driver_options> known = ReadOptions(options);
    if (!known.ok()) return Fail(error, known.error().message);
    if (const Result<void> checked = CheckOptions(&*known); !checked.ok()) {
      return Fail(error, checked.error().message);
    }
    auto driver = std::make_unique<drakkar_driver>(*known);
    Result<void> opened;
    driver->thread.RunSync([&] {
      opened = driver->Open(*known);
      if (!opened.ok()) driver->Close();
    });
    if (!opened.ok()) return Fail(error, opened.error().message);
    started = driver.release();
    return 0;
  });
  return started;
}

void drakkar_driver_stop(drakkar_driver* driver) {
  if (driver == nullptr) return;
  Guarded(nullptr, [&] {
    driver->thread.RunSync([&] { driver->Close(); });
    delete driver;
    return 0;
  });
}

int drakkar_driver_is_registered(drakkar_driver* driver) {
  int registered = 0;
  Guarded(nullptr, [&] {
    driver->OnLoop([&] {
      const auto status = driver->driver->registration_status();
      registered = status && status->plugin_registered ? 1 : 0;
    });
    return 0;
  });
  return registered;
}

int drakkar_driver_is_nri_registered(drakkar_driver* driver) {
  int registered = 0;
  Guarded(nullptr, [&] {
    driver->OnLoop(
        [&] { registered = driver->hook != nullptr && driver->hook->is_registered() ? 1 : 0; });
    return 0;
  });
  return registered;
}

int drakkar_driver_publish(drakkar_driver* driver, const drakkar_resources* resources,
                           drakkar_error* error) {
  return Guarded(error, [&] {
    if (driver == nullptr || resources == nullptr)
      return Fail(error, "driver and resources must not be null");
    Result<void> published;
    driver->OnLoop([&] { published = driver->driver->PublishResources(resources->resources); });
    return Answer(published, error);
  });
}

int drakkar_driver_report(drakkar_driver* driver, const drakkar_device_health* devices,
                          size_t count, drakkar_error* error) {
  return Guarded(error, [&] {
    if (driver == nullptr || (devices == nullptr && count > 0)) {
      return Fail(error, "driver and devices must not be null");
    }
    using State = rpc::DeviceHealthState;
    rpc::HealthReport report;
    for (std::size_t i = 0; i < count; ++i) {
      const drakkar_device_health& each = devices[i];
      report.push_back({.pool_name = Text(each.pool),
                        .device_name = Text(each.device),
                        .health = each.health == DRAKKAR_HEALTH_HEALTHY     ? State::kHealthy
                                  : each.health == DRAKKAR_HEALTH_UNHEALTHY ? State::kUnhealthy
                                                                            : State::kUnknown,
                        .last_updated_seconds = each.last_updated,
                        .health_check_timeout_seconds = each.timeout_seconds,
                        .message = Text(each.message)});
    }
    Result<void> reported;
    driver->OnLoop([&] { reported = driver->driver->ReportHealth(std::move(report)); });
    return Answer(reported, error);
  });
}

int drakkar_driver_report_health(drakkar_driver* driver, const char* pool, const char* device,
                                 drakkar_health health, const char* message, drakkar_error* error) {
  const drakkar_device_health news = {.pool = pool,
                                      .device = device,
                                      .health = health,
                                      .message = message,
                                      .timeout_seconds = 0,
                                      .last_updated = 0};
  return drakkar_driver_report(driver, &news, 1, error);
}

int drakkar_driver_forget_health(drakkar_driver* driver, const char* pool, const char* device) {
  return Guarded(nullptr, [&] {
    if (driver == nullptr || pool == nullptr || device == nullptr) return -1;
    driver->OnLoop([&] { driver->driver->ForgetHealth(pool, device); });
    return 0;
  });
}

int drakkar_driver_update_metadata(drakkar_driver* driver, const char* claim_namespace,
                                   const char* claim_name, const char* claim_uid,
                                   const char* request, const drakkar_prepare_result* devices,
                                   drakkar_error* error) {
  return Guarded(error, [&] {
    if (driver == nullptr || devices == nullptr)
      return Fail(error, "driver and devices must not be null");
    Result<void> updated;
    driver->OnLoop([&] {
      updated = driver->driver->UpdateRequestMetadata(
          {Text(claim_namespace), Text(claim_name), Text(claim_uid), Text(request)},
          devices->devices);
    });
    return Answer(updated, error);
  });
}

int drakkar_driver_prepared_requests(drakkar_driver* driver, drakkar_request_callback each,
                                     void* user_data, drakkar_error* error) {
  return Guarded(error, [&] {
    if (driver == nullptr || each == nullptr)
      return Fail(error, "driver and each must not be null");
    Result<std::vector<driver::PreparedRequest>> requests = std::vector<driver::PreparedRequest>();
    driver->OnLoop([&] { requests = driver->driver->PreparedRequests(); });
    if (!requests.ok()) return Fail(error, requests.error().message);
    for (const driver::PreparedRequest& known : *requests) {
      std::vector<drakkar_allocated_device> devices;
      for (const driver::PreparedDevice& device : known.devices) {
        devices.push_back({.request = known.request.request.c_str(),
                           .pool = device.pool_name.c_str(),
                           .device = device.device_name.c_str(),
                           .share_id = device.share_id ? device.share_id->c_str() : nullptr});
      }
      std::vector<const char*> pods;
      for (const std::string& uid : known.pod_uids) pods.push_back(uid.c_str());
      const drakkar_prepared_request lent = {
          .claim_namespace = known.request.claim_namespace.c_str(),
          .claim_name = known.request.claim_name.c_str(),
          .claim_uid = known.request.claim_uid.c_str(),
          .request = known.request.request.c_str(),
          .devices = devices.data(),
          .device_count = devices.size(),
          .pod_uids = pods.data(),
          .pod_count = pods.size(),
          .has_metadata = known.has_metadata ? 1 : 0};
      each(user_data, &lent);
    }
    return 0;
  });
}

int drakkar_driver_apply_claim_status(drakkar_driver* driver, const char* claim_namespace,
                                      const char* claim_name, const char* claim_uid,
                                      const drakkar_claim_status* status,
                                      drakkar_done_callback done, void* done_data,
                                      drakkar_error* error) {
  return Guarded(error, [&] {
    if (driver == nullptr || status == nullptr)
      return Fail(error, "driver and status must not be null");
    driver->OnLoop([&] {
      driver->driver->ApplyClaimStatus(
          {Text(claim_namespace), Text(claim_uid), Text(claim_name)}, status->devices,
          [driver, done, done_data](Result<void> applied) {
            if (done != nullptr) {
              done(done_data, applied.ok() ? nullptr : applied.error().message.c_str());
            } else if (!applied.ok()) {
              driver->plugin.HandleError(applied.error(), true);
            }
          });
    });
    return 0;
  });
}

int drakkar_driver_set_condition(drakkar_driver* driver, const char* claim_namespace,
                                 const char* claim_name, const char* claim_uid, const char* pool,
                                 const char* device, const char* type, const char* status,
                                 const char* reason, const char* message, drakkar_error* error) {
  return Guarded(error, [&] {
    drakkar_claim_status whole;
    if (drakkar_claim_status_add_device(&whole, pool, device, nullptr) != 0 ||
        drakkar_claim_status_add_condition(&whole, type, status, reason, message) != 0) {
      return Fail(error, "pool, device, type, status and reason must not be null");
    }
    return drakkar_driver_apply_claim_status(driver, claim_namespace, claim_name, claim_uid, &whole,
                                             nullptr, nullptr, error);
  });
}

int drakkar_cdi_write_spec(const char* path, const char* json, drakkar_error* error) {
  return Guarded(error, [&] {
    if (path == nullptr || json == nullptr) return Fail(error, "path and json must not be null");
    auto spec = cdi::ReadSpecJson(json);
    if (!spec.ok()) return Fail(error, spec.error().message);
    if (auto valid = cdi::ValidateSpec(*spec); !valid.ok())
      return Fail(error, valid.error().message);
    return Answer(RealFileSystem().WriteFileAtomically(path, json, 0644), error);
  });
}

}  // extern "C"
