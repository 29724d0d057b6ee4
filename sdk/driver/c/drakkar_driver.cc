#include "sdk/driver/c/drakkar_driver.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <utility>

#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "cdi/spec_reader.h"
#include "cdi/validate.h"
#include "client/http_client.h"
#include "sdk/driver/attributes/pci.h"
#include "sdk/driver/driver.h"
#include "sdk/driver/host/driver_endpoint.h"
#include "sdk/driver/host/driver_host.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

using namespace drakkar;

struct drakkar_claim {
  std::string namespace_name, name, uid, json;
  std::deque<std::string> texts;  // what `devices` points to
  std::vector<drakkar_allocated_device> devices;
};

using PreparedDevices = std::vector<driver::PreparedDevice>;

struct drakkar_prepare_result {
  PreparedDevices devices;
};

struct drakkar_resources {
  driver::DriverResources resources;

  driver::Device* Find(const char* pool, const char* device) {
    if (pool == nullptr || device == nullptr) return nullptr;
    const auto found = resources.pools.find(pool);
    if (found == resources.pools.end() || found->second.slices.empty()) return nullptr;
    for (driver::Device& each : found->second.slices.front().devices) {
      if (each.name == device) return &each;
    }
    return nullptr;
  }
};

namespace {

constexpr Logger kLog("driver");

int Fail(drakkar_error* error, std::string_view message) {
  if (error != nullptr) {
    const std::size_t size = std::min<std::size_t>(message.size(), DRAKKAR_ERROR_BYTES - 1);
    std::memcpy(error->message, message.data(), size);
    error->message[size] = 0;
  }
  return -1;
}

int Answer(const Result<void>& result, drakkar_error* error) {
  return result.ok() ? 0 : Fail(error, result.error().message);
}

// Runs `body`; what it throws (only memory can run out) becomes an error.
template <typename Body>
int Guarded(drakkar_error* error, Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& exception) {
    return Fail(error, exception.what());
  } catch (...) {
    return Fail(error, "unknown failure");
  }
}

std::string Text(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

std::string ErrorText(const drakkar_error& error) {
  const std::size_t size = ::strnlen(error.message, DRAKKAR_ERROR_BYTES);
  return size == 0 ? "the driver gave no reason" : std::string(error.message, size);
}

class CallbackPlugin final : public driver::SynchronousPlugin {
 public:
  explicit CallbackPlugin(const drakkar_driver_options& options)
      : options_(options), driver_name_(options.driver_name) {}

  Result<PreparedDevices> PrepareResourceClaim(const api::Object& claim) override {
    drakkar_claim lent;
    lent.namespace_name = claim.namespace_();
    lent.name = claim.name();
    lent.uid = claim.uid();
    lent.json = *claim.json();
    const auto keep = [&](std::string_view text) { return lent.texts.emplace_back(text).c_str(); };
    for (const api::Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
      if (result["driver"].str() != driver_name_) continue;
      const api::Value share = result["shareID"];
      lent.devices.push_back({.request = keep(result["request"].str()),
                              .pool = keep(result["pool"].str()),
                              .device = keep(result["device"].str()),
                              .share_id = share.is_string() ? keep(share.str()) : nullptr});
    }
    drakkar_prepare_result result;
    drakkar_error error = {};
    if (options_.prepare(options_.user_data, &lent, &result, &error) != 0) {
      return FailedPrecondition(ErrorText(error));
    }
    return std::move(result.devices);
  }

  Result<void> UnprepareResourceClaim(const rpc::ClaimReference& claim) override {
    drakkar_error error = {};
    if (options_.unprepare(options_.user_data, claim.namespace_name.c_str(), claim.name.c_str(),
                           claim.uid.c_str(), &error) != 0) {
      return FailedPrecondition(ErrorText(error));
    }
    return Ok();
  }

  void HandleError(const Error& error, bool recoverable) override {
    if (options_.handle_error != nullptr) {
      return options_.handle_error(options_.user_data, error.message.c_str(), recoverable ? 1 : 0);
    }
    kLog.Error("background error", {{"error", error.message}, {"recoverable", recoverable}});
  }

 private:
  const drakkar_driver_options options_;
  const std::string driver_name_;
};

}  // namespace

// Everything but the thread lives on the thread's loop.
struct drakkar_driver {
  explicit drakkar_driver(const drakkar_driver_options& options) : plugin(options), thread("driver") {}

  Result<void> Open(const drakkar_driver_options& options) {
    driver::DriverFlags flags{.driver_name = options.driver_name};
    flags.kubeconfig = Text(options.kubeconfig);
    if (options.log_level != nullptr) RETURN_IF_ERROR(flags.Set("log-level", options.log_level));
    const auto level = [&] {
      return flags.log_level == "debug"     ? LogLevel::kDebug
             : flags.log_level == "warning" ? LogLevel::kWarning
             : flags.log_level == "error"   ? LogLevel::kError
                                            : LogLevel::kInfo;
    };
    ConfigureLogging(LogFormat::kText, level(), RealClock());
    const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
    Result<client::ClusterAccess> access =
        flags.kubeconfig.empty() ? driver::LoadInClusterAccess(RealFileSystem(), environment)
                                 : client::LoadKubeconfig(RealFileSystem(), flags.kubeconfig);
    if (!access.ok()) return std::move(access).error();
    UvLoop& loop = thread.loop();
    client = client::MakeHttpClient(loop, *access, options.driver_name);
    transport = rpc::MakeGrpcTransport(loop);
    driver::DriverOptions started{.loop = loop,
                                  .random = RealRandom(),
                                  .files = RealFileSystem(),
                                  .client = *client,
                                  .transport = *transport,
                                  .plugin = plugin,
                                  .driver_name = options.driver_name,
                                  .node_name = Text(options.node_name),
                                  .plugin_directory = Text(options.plugin_dir),
                                  .rolling_update_uid = Text(options.pod_uid),
                                  .health_service = options.health_service != 0,
                                  .metrics = &metrics,
                                  .device_metadata = options.enable_device_metadata != 0};
    if (options.cdi_dir != nullptr) started.cdi_directory = options.cdi_dir;
    if (options.registry_dir != nullptr) started.registry_directory = options.registry_dir;
    if (options.taint_unhealthy != 0) started.unhealthy_taint.key = StrCat(options.driver_name, "/unhealthy");
    ASSIGN_OR_RETURN(driver, driver::Driver::Start(std::move(started)));
    if (options.http_endpoint == nullptr) return Ok();
    endpoint = std::make_unique<driver::DriverEndpoint>(driver::DriverEndpoint::Options{
        .loop = loop,
        .address = options.http_endpoint,
        .metrics = metrics,
        .not_ready = [this] { return driver->NotReadyReason(); },
        .before_metrics = [this] { driver->UpdateMetrics(); }});
    return endpoint->Start();
  }

  void Close() {
    endpoint.reset();
    driver.reset();
    transport.reset();
    client.reset();
  }

  // On the loop, once it runs: at once from a callback, else there and waited for.
  template <typename Task>
  void OnLoop(Task task) {
    if (thread.loop().IsInLoop()) return task();
    thread.RunSync([&] { task(); });
  }

  Metrics metrics;
  CallbackPlugin plugin;
  LoopThread thread;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<rpc::Transport> transport;
  std::unique_ptr<driver::Driver> driver;
  std::unique_ptr<driver::DriverEndpoint> endpoint;
};

namespace {

int SetAttribute(drakkar_resources* resources, const char* pool, const char* device,
                 const char* attribute, driver::AttributeValue value) {
  driver::Device* found = resources == nullptr ? nullptr : resources->Find(pool, device);
  if (found == nullptr || attribute == nullptr) return -1;
  found->attributes[attribute] = std::move(value);
  return 0;
}

}  // namespace

extern "C" {

const char* drakkar_claim_namespace(const drakkar_claim* claim) {
  return claim->namespace_name.c_str();
}
const char* drakkar_claim_name(const drakkar_claim* claim) {
  return claim->name.c_str();
}
const char* drakkar_claim_uid(const drakkar_claim* claim) {
  return claim->uid.c_str();
}
const char* drakkar_claim_json(const drakkar_claim* claim) {
  return claim->json.c_str();
}
size_t drakkar_claim_device_count(const drakkar_claim* claim) {
  return claim->devices.size();
}
drakkar_allocated_device drakkar_claim_device(const drakkar_claim* claim, size_t index) {
  return index < claim->devices.size() ? claim->devices[index] : drakkar_allocated_device{};
}

int drakkar_prepare_result_add_device(drakkar_prepare_result* result,
                                      const drakkar_allocated_device* device,
                                      const char* const* cdi_ids, size_t cdi_id_count) {
  return Guarded(nullptr, [&] {
    if (result == nullptr || device == nullptr || device->pool == nullptr || device->device == nullptr) return -1;
    auto& prepared = result->devices.emplace_back();
    if (device->request != nullptr) prepared.request_names = {device->request};
    prepared.pool_name = device->pool;
    prepared.device_name = device->device;
    if (device->share_id != nullptr) prepared.share_id = device->share_id;
    for (size_t i = 0; i < cdi_id_count; ++i) prepared.cdi_device_ids.emplace_back(cdi_ids[i]);
    return 0;
  });
}

static int SetMetadata(drakkar_prepare_result* result, const char* attribute, metadata::AttributeValue value) {
  if (result == nullptr || result->devices.empty() || attribute == nullptr) return -1;
  auto& described = result->devices.back().metadata;
  if (!described) described.emplace();
  described->attributes[attribute] = std::move(value);
  return 0;
}

int drakkar_prepare_result_set_string(drakkar_prepare_result* result, const char* attribute,
                                      const char* value) {
  return Guarded(nullptr, [&] { return SetMetadata(result, attribute, Text(value)); });
}
int drakkar_prepare_result_set_int(drakkar_prepare_result* result, const char* attribute, int64_t value) {
  return Guarded(nullptr, [&] { return SetMetadata(result, attribute, std::int64_t{value}); });
}
int drakkar_prepare_result_set_bool(drakkar_prepare_result* result, const char* attribute, int value) {
  return Guarded(nullptr, [&] { return SetMetadata(result, attribute, value != 0); });
}

drakkar_driver* drakkar_driver_start(const drakkar_driver_options* options, drakkar_error* error) {
  drakkar_driver* started = nullptr;
  Guarded(error, [&] {
    if (options == nullptr || options->size != sizeof(drakkar_driver_options)) {
      return Fail(error, "options.size must be sizeof(drakkar_driver_options)");
    }
    if (options->driver_name == nullptr || options->prepare == nullptr || options->unprepare == nullptr) {
      return Fail(error, "driver_name, prepare and unprepare must be set");
    }
    auto driver = std::make_unique<drakkar_driver>(*options);
    Result<void> opened;
    driver->thread.RunSync([&] {
      opened = driver->Open(*options);
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

drakkar_resources* drakkar_resources_new(void) {
  return new (std::nothrow) drakkar_resources;
}

void drakkar_resources_free(drakkar_resources* resources) {
  delete resources;
}

int drakkar_resources_add_device(drakkar_resources* resources, const char* pool, const char* device) {
  return Guarded(nullptr, [&] {
    if (resources == nullptr || pool == nullptr || device == nullptr) return -1;
    if (resources->Find(pool, device) != nullptr) return 0;
    driver::Pool& entry = resources->resources.pools[pool];
    if (entry.slices.empty()) entry.slices.emplace_back();
    entry.slices.front().devices.push_back({.name = device});
    return 0;
  });
}

int drakkar_resources_set_string(drakkar_resources* resources, const char* pool, const char* device,
                                 const char* attribute, const char* value) {
  return Guarded(nullptr, [&] { return SetAttribute(resources, pool, device, attribute, Text(value)); });
}
int drakkar_resources_set_version(drakkar_resources* resources, const char* pool, const char* device,
                                  const char* attribute, const char* value) {
  return Guarded(nullptr,
                 [&] { return SetAttribute(resources, pool, device, attribute, driver::Version{Text(value)}); });
}
int drakkar_resources_set_int(drakkar_resources* resources, const char* pool, const char* device,
                              const char* attribute, int64_t value) {
  return Guarded(nullptr, [&] { return SetAttribute(resources, pool, device, attribute, std::int64_t{value}); });
}
int drakkar_resources_set_bool(drakkar_resources* resources, const char* pool, const char* device,
                               const char* attribute, int value) {
  return Guarded(nullptr, [&] { return SetAttribute(resources, pool, device, attribute, value != 0); });
}

int drakkar_resources_set_capacity(drakkar_resources* resources, const char* pool, const char* device,
                                   const char* name, const char* quantity) {
  return Guarded(nullptr, [&] {
    driver::Device* found = resources == nullptr ? nullptr : resources->Find(pool, device);
    if (found == nullptr || name == nullptr || quantity == nullptr) return -1;
    found->capacity[name] = quantity;
    return 0;
  });
}

int drakkar_resources_set_pci(drakkar_resources* resources, const char* pool, const char* device,
                              const char* bus_id, drakkar_error* error) {
  return Guarded(error, [&] {
    driver::Device* found = resources == nullptr ? nullptr : resources->Find(pool, device);
    if (found == nullptr || bus_id == nullptr) return Fail(error, "there is no such device");
    return Answer(driver::AddPciAttributes({.files = RealFileSystem()}, bus_id, *found), error);
  });
}

int drakkar_driver_publish(drakkar_driver* driver, const drakkar_resources* resources,
                           drakkar_error* error) {
  return Guarded(error, [&] {
    if (driver == nullptr || resources == nullptr) return Fail(error, "driver and resources must be set");
    Result<void> published;
    driver->OnLoop([&] { published = driver->driver->PublishResources(resources->resources); });
    return Answer(published, error);
  });
}

int drakkar_driver_report_health(drakkar_driver* driver, const char* pool, const char* device,
                                 drakkar_health health, const char* message, drakkar_error* error) {
  return Guarded(error, [&] {
    if (driver == nullptr) return Fail(error, "driver must be set");
    using State = rpc::DeviceHealthState;
    const State state = health == DRAKKAR_HEALTH_HEALTHY     ? State::kHealthy
                        : health == DRAKKAR_HEALTH_UNHEALTHY ? State::kUnhealthy
                                                             : State::kUnknown;
    Result<void> reported;
    driver->OnLoop([&] {
      reported = driver->driver->ReportHealth({{.pool_name = Text(pool),
                                                .device_name = Text(device),
                                                .health = state,
                                                .message = Text(message)}});
    });
    return Answer(reported, error);
  });
}

int drakkar_driver_set_condition(drakkar_driver* driver, const char* claim_namespace,
                                 const char* claim_name, const char* claim_uid, const char* pool,
                                 const char* device, const char* type, const char* status,
                                 const char* reason, const char* message, drakkar_error* error) {
  return Guarded(error, [&] {
    if (driver == nullptr) return Fail(error, "driver must be set");
    driver->OnLoop([&] {
      driver->driver->ApplyClaimStatus(
          {Text(claim_namespace), Text(claim_uid), Text(claim_name)},
          {{.pool_name = Text(pool),
            .device_name = Text(device),
            .conditions = {{Text(type), Text(status), Text(reason), Text(message)}}}},
          [driver](Result<void> applied) {
            if (!applied.ok()) driver->plugin.HandleError(applied.error(), true);
          });
    });
    return 0;
  });
}

int drakkar_cdi_write_spec(const char* path, const char* json, drakkar_error* error) {
  return Guarded(error, [&] {
    if (path == nullptr || json == nullptr) return Fail(error, "path and json must be set");
    auto spec = cdi::ReadSpecJson(json);
    if (!spec.ok()) return Fail(error, spec.error().message);
    if (auto valid = cdi::ValidateSpec(*spec); !valid.ok()) return Fail(error, valid.error().message);
    return Answer(RealFileSystem().WriteFileAtomically(path, json, 0644), error);
  });
}

}  // extern "C"
