#include "sdk/driver/host/driver_host.h"

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/env/absolute_path.h"
#include "base/env/random.h"
#include "base/text/text.h"
#include "client/http_client.h"
#include "sdk/driver/host/driver_endpoint.h"
#include "telemetry/log/log.h"

namespace drakkar::driver {
namespace {

constexpr Logger kLog("driver");

LogLevel LevelOf(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "warning") return LogLevel::kWarning;
  return name == "error" ? LogLevel::kError : LogLevel::kInfo;
}

const char* ReadVariable(const char* name) {
  return std::getenv(name);
}

}  // namespace

Result<client::ClusterAccess> LoadInClusterAccess(
    FileSystem& files, const std::function<const char*(const char*)>& environment,
    const std::string& directory) {
  const char* host = environment("KUBERNETES_SERVICE_HOST");
  const char* port = environment("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr || *host == 0 || *port == 0) {
    return InvalidArgument("--kubeconfig is required outside of a pod");
  }
  client::ClusterAccess access;
  const std::string name = host;
  access.server = name.find(':') == std::string::npos ? StrCat("https://", name, ":", port)
                                                      : StrCat("https://[", name, "]:", port);
  ASSIGN_OR_RETURN(access.ca_pem, files.ReadFile(JoinPath(directory, "ca.crt")));
  // The node renews it before it expires.
  access.token_file = JoinPath(directory, "token");
  ASSIGN_OR_RETURN(const std::string token, files.ReadFile(access.token_file));
  access.token = std::string(Trim(token));
  access.namespace_ = "default";
  if (auto own = files.ReadFile(JoinPath(directory, "namespace")); own.ok()) {
    access.namespace_ = std::string(Trim(*own));
  }
  return access;
}

DriverHost::DriverHost(DriverFlags flags) : flags_(std::move(flags)) {}

DriverHost::~DriverHost() {
  driver_.reset();
}

Result<client::ClusterAccess> BeginDriverProcess(const DriverFlags& flags) {
  ConfigureLogging(flags.logging_format == "json" ? LogFormat::kJson : LogFormat::kText,
                   LevelOf(flags.log_level), RealClock());
  return flags.kubeconfig.empty() ? LoadInClusterAccess(RealFileSystem(), ReadVariable)
                                  : client::LoadKubeconfig(RealFileSystem(), flags.kubeconfig);
}

DriverOptions MakeDriverOptions(const DriverFlags& flags, const DriverSurroundings& surroundings,
                                Plugin& plugin) {
  DriverOptions options{.loop = surroundings.loop,
                        .random = RealRandom(),
                        .files = RealFileSystem(),
                        .client = surroundings.client,
                        .transport = surroundings.transport,
                        .plugin = plugin,
                        .driver_name = flags.driver_name,
                        .node_name = flags.node_name,
                        .registry_directory = AbsolutePath(flags.registry_directory),
                        .plugin_directory = AbsolutePath(flags.plugin_directory),
                        .rolling_update_uid = flags.pod_uid,
                        .metrics = &surroundings.metrics,
                        .device_metadata = flags.enable_device_metadata,
                        .cdi_directory = AbsolutePath(flags.cdi_directory)};
  if (!flags.unhealthy_taint.empty()) {
    options.unhealthy_taint = {flags.driver_name + "/unhealthy", flags.unhealthy_taint};
  }
  return options;
}

Result<std::unique_ptr<DriverHost>> DriverHost::Create(const DriverFlags& given) {
  DriverFlags flags = given;
  flags.ReadEnvironment(ReadVariable);
  ASSIGN_OR_RETURN(const client::ClusterAccess access, BeginDriverProcess(flags));
  std::unique_ptr<DriverHost> host(new DriverHost(std::move(flags)));
  host->client_ = client::MakeHttpClient(host->loop_, access, host->flags_.driver_name);
  host->transport_ = rpc::MakeGrpcTransport(host->loop_);
  return host;
}

DriverOptions DriverHost::Options(Plugin& plugin) {
  return MakeDriverOptions(flags_, {loop_, *client_, *transport_, metrics_}, plugin);
}

Result<void> DriverHost::OpenEndpoint() {
  if (flags_.http_endpoint.empty()) return Ok();
  endpoint_ = std::make_unique<DriverEndpoint>(DriverEndpoint::Options{
      .loop = loop_,
      .address = flags_.http_endpoint,
      .metrics = metrics_,
      .check_health = [this] { return health_; },
      .check_ready =
          [this] {
            return driver_ == nullptr ? Unavailable("the driver is starting")
                                      : driver_->CheckReady();
          },
      .before_metrics =
          [this] {
            if (driver_ != nullptr) driver_->UpdateMetrics();
          }});
  RETURN_IF_ERROR(endpoint_->Start());
  kLog.Info("serving health and metrics", {{"port", endpoint_->port()}});
  return Ok();
}

int DriverHost::Run(const StartFunction& start) {
  const auto end = [this] { End(); };
  TimerHandle interrupt = loop_.OnSignal(SIGINT, end);
  TimerHandle terminate = loop_.OnSignal(SIGTERM, end);
  loop_.Post([this, &start] {
    if (auto opened = OpenEndpoint(); !opened.ok()) {
      const Error error = opened.error().Prefixed("--http-endpoint");
      return End(&error);
    }
    auto driver = start(*this);
    if (!driver.ok()) return End(&driver.error());
    driver_ = *std::move(driver);
  });
  loop_.Run();
  endpoint_.reset();
  driver_.reset();
  interrupt.reset();
  terminate.reset();
  return health_.ok() ? 0 : 1;
}

void DriverHost::End(const Error* error) {
  if (error != nullptr) {
    health_ = *error;
    kLog.Error("driver failed", {{"error", error->message}});
  }
  loop_.Stop();
}

int RunDriver(const DriverFlags& flags, Plugin& plugin,
              std::function<Result<void>(Driver& driver)> on_started) {
  auto host = DriverHost::Create(flags);
  if (!host.ok()) {
    std::fprintf(stderr, "%s\n", host.error().message.c_str());
    return 1;
  }
  return (*host)->Run([&](DriverHost& running) -> Result<std::unique_ptr<Driver>> {
    ASSIGN_OR_RETURN(std::unique_ptr<Driver> driver, Driver::Start(running.Options(plugin)));
    if (on_started) RETURN_IF_ERROR(on_started(*driver));
    return driver;
  });
}

}  // namespace drakkar::driver
