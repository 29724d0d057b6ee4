// driver: runs the reference driver, with the flags that every SDK driver has.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/env/absolute_path.h"
#include "base/text/text.h"
#include "client/http_client.h"
#include "cmd/drakkar/command_groups.h"
#include "cmd/drakkar/daemon.h"
#include "cmd/drakkar/input_lines.h"
#include "rpc/transport/transport.h"
#include "sdk/driver/host/driver_endpoint.h"
#include "sdk/driver/host/driver_host.h"
#include "sdk/driver/reference/reference_driver.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("drakkar");

// This driver's defaults; it has no NRI hook.
driver::DriverFlags DefaultFlags() {
  return {.node_name = HostName(), .unhealthy_taint = "NoSchedule"};
}

bool IsOurs(const driver::DriverFlagInfo& flag) {
  return flag.name != "nri-socket";
}

// The SDK's flags in our format, without the logging flags that every command has.
std::vector<cli::Flag> SdkFlags() {
  const std::vector<cli::Flag> common = CommonFlags();
  std::vector<cli::Flag> flags;
  for (const driver::DriverFlagInfo& flag : DefaultFlags().Describe()) {
    if (!IsOurs(flag) || std::any_of(common.begin(), common.end(), [&](const cli::Flag& each) {
          return each.name == flag.name;
        })) {
      continue;
    }
    flags.push_back(
        {.name = flag.name,
         .type = flag.placeholder.empty() ? cli::FlagType::kBool : cli::FlagType::kString,
         .help = flag.help,
         .default_value = flag.default_value,
         .placeholder = flag.placeholder});
  }
  return flags;
}

Result<driver::DriverFlags> ReadSdkFlags(const cli::Arguments& arguments) {
  driver::DriverFlags flags = DefaultFlags();
  for (const driver::DriverFlagInfo& flag : flags.Describe()) {
    if (!IsOurs(flag)) continue;
    const bool is_switch = flag.placeholder.empty();
    RETURN_IF_ERROR(flags.Set(flag.name, is_switch ? (arguments.Bool(flag.name) ? "true" : "false")
                                                   : arguments.Text(flag.name)));
  }
  flags.ReadEnvironment([](const char* name) -> const char* { return std::getenv(name); });
  return flags;
}

std::vector<std::string> MetadataVersions(const cli::Arguments& arguments) {
  std::vector<std::string> versions;
  for (const std::string_view version : Split(arguments.Text("device-metadata-versions"), ',')) {
    versions.push_back(StrCat("metadata.resource.k8s.io/", version));
  }
  return versions;
}

Result<driver::DeviceConfig> ReadDevices(const std::string& path) {
  // Without a file there are four simple devices.
  std::string description;
  if (!path.empty()) {
    ASSIGN_OR_RETURN(description, RealFileSystem().ReadFile(path));
  }
  auto devices = driver::ParseDeviceConfig(description);
  if (!devices.ok()) return devices.error().Prefixed(path);
  return devices;
}

// One loop without parts. Reloads its devices on SIGHUP.
class DriverProcess final : public Part {
 public:
  DriverProcess(UvLoop& loop, const driver::DriverFlags& flags, const cli::Arguments& arguments,
                driver::DeviceConfig devices, std::unique_ptr<client::Client> client)
      : loop_(loop),
        devices_path_(arguments.Text("devices")),
        http_endpoint_(flags.http_endpoint),
        node_name_(flags.node_name),
        takes_input_(arguments.Bool("control")),
        client_(std::move(client)),
        transport_(rpc::MakeGrpcTransport(loop)),
        driver_({.loop = loop,
                 .random = RealRandom(),
                 .files = RealFileSystem(),
                 .client = *client_,
                 .transport = *transport_,
                 .node_name = flags.node_name,
                 .driver_name = flags.driver_name,
                 .registry_directory = AbsolutePath(flags.registry_directory),
                 .plugin_directory = AbsolutePath(flags.plugin_directory),
                 .cdi_directory = AbsolutePath(flags.cdi_directory),
                 .pod_uid = flags.pod_uid,
                 .unhealthy_taint = flags.unhealthy_taint,
                 .device_metadata = flags.enable_device_metadata,
                 .metadata_versions = MetadataVersions(arguments),
                 .metadata_dialect = arguments.Text("device-metadata-rules") == "kubernetes"
                                         ? metadata::Dialect::kKubernetes
                                         : metadata::Dialect::kKep,
                 .devices = std::move(devices),
                 .metrics = &metrics_,
                 .on_fatal = [](const Error& error) {
                   kLog.Error("driver failed", {{"error", error.message}});
                   ::kill(::getpid(), SIGTERM);
                 }}) {}

  std::string_view name() const override { return "driver"; }
  void Start(std::function<void(Result<void>)> done) override {
    hangup_ = loop_.OnSignal(SIGHUP, [this] { Reload(); });
    if (takes_input_) {
      input_ = std::make_unique<InputLines>(loop_, [this](const std::string& line) { Obey(line); });
    }
    Result<void> started = driver_.Start();
    if (started.ok() && !http_endpoint_.empty()) started = Listen();
    done(std::move(started));
  }
  void Stop(std::function<void()> done) override {
    hangup_.reset();
    input_.reset();
    endpoint_.reset();
    driver_.Stop();
    done();
  }

 private:
  Result<void> Listen() {
    endpoint_ = std::make_unique<driver::DriverEndpoint>(driver::DriverEndpoint::Options{
        .loop = loop_,
        .address = http_endpoint_,
        .metrics = metrics_,
        .check_ready = [this] { return driver_.driver()->CheckReady(); },
        .before_metrics = [this] { driver_.driver()->UpdateMetrics(); }});
    auto started = endpoint_->Start();
    if (!started.ok()) return std::move(started).error().Prefixed("--http-endpoint");
    return Ok();
  }

  // Handles "health DEVICE STATE [MESSAGE]".
  void Obey(const std::string& line) {
    const std::vector<std::string_view> words = Split(line, ' ');
    if (words.size() < 3 || words[0] != "health" || driver_.driver() == nullptr) return;
    const Result<void> reported = driver_.driver()->ReportHealth(
        {{.pool_name = node_name_,
          .device_name = std::string(words[1]),
          .health = rpc::ParseDeviceHealthState(words[2]),
          .message = Join(std::vector<std::string_view>(words.begin() + 3, words.end()), " ")}});
    if (!reported.ok())
      kLog.Error("could not report health", {{"error", reported.error().message}});
  }

  void Reload() {
    Result<driver::DeviceConfig> devices = ReadDevices(devices_path_);
    Result<void> set = devices.ok() ? driver_.SetDevices(std::move(*devices)) : devices.error();
    if (set.ok()) {
      kLog.Info("reloaded devices", {{"file", devices_path_}});
    } else {
      kLog.Error("could not reload devices", {{"error", set.error().message}});
    }
  }

  UvLoop& loop_;
  const std::string devices_path_;
  const std::string http_endpoint_;
  const std::string node_name_;
  const bool takes_input_;
  TimerHandle hangup_;
  std::unique_ptr<InputLines> input_;
  Metrics metrics_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<rpc::Transport> transport_;
  driver::ReferenceDriver driver_;
  std::unique_ptr<driver::DriverEndpoint> endpoint_;
};

Result<int> Run(const cli::Arguments& arguments, cli::Console& console) {
  RETURN_IF_ERROR(ReadCommonFlags(arguments));
  ASSIGN_OR_RETURN(const driver::DriverFlags flags, ReadSdkFlags(arguments));
  ASSIGN_OR_RETURN(const client::ClusterAccess access, driver::BeginDriverProcess(flags));
  if (const std::string& rules = arguments.Text("device-metadata-rules");
      rules != "kep" && rules != "kubernetes") {
    return InvalidArgument("--device-metadata-rules must be kep or kubernetes");
  }
  ASSIGN_OR_RETURN(driver::DeviceConfig devices, ReadDevices(arguments.Text("devices")));
  UvLoop loop;
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(
      std::make_unique<DriverProcess>(loop, flags, arguments, std::move(devices),
                                      client::MakeHttpClient(loop, access, "drakkar-driver")));
  return RunParts(loop, std::move(parts), console, [] { kLog.Info("driver started"); });
}

int RunDriverCommand(const cli::Arguments& arguments, cli::Console& console) {
  Result<int> code = Run(arguments, console);
  if (code.ok()) return *code;
  console.Error(code.error().message);
  return cli::kExitFailure;
}

}  // namespace

void AddDriverCommand(cli::App& app) {
  std::vector<cli::Flag> flags = SdkFlags();
  flags.insert(
      flags.end(),
      {{.name = "devices",
        .help = "YAML file that describes the simulated devices. Defaults to four devices.",
        .placeholder = "FILE"},
       {.name = "device-metadata-versions",
        .help = "Versions of the metadata format to write, newest first.",
        .default_value = "v1alpha1",
        .placeholder = "VERSION,..."},
       {.name = "device-metadata-rules",
        .help = "Metadata rules to follow where the two differ: kep or kubernetes.",
        .default_value = "kep",
        .placeholder = "RULES"},
       {.name = "control",
        .type = cli::FlagType::kBool,
        .help = "Read `health DEVICE STATE [MESSAGE]` commands from standard input.",
        .default_value = "false",
        .hidden = true}});
  for (cli::Flag& flag : CommonFlags()) flags.push_back(std::move(flag));
  app.Add({.name = "driver",
           .summary = "Run the reference driver",
           .help =
               "Publishes simulated accelerators, described by a small YAML file, and injects them "
               "into containers through CDI: environment variables and a directory per device. "
               "Reloads the file on SIGHUP.",
           .flags = std::move(flags),
           .max_arguments = 0,
           .section = "Run",
           .run = RunDriverCommand});
}

}  // namespace drakkar::cmd
