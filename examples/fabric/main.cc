// fabric-controller: runs the binding controller of this example.
#include <csignal>

#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "client/http_client.h"
#include "examples/fabric/fabric_controller.h"
#include "telemetry/log/log.h"

namespace {

using namespace drakkar;

int Run(const cli::Arguments& arguments, cli::Console& console) {
  ConfigureLogging(LogFormat::kText, LogLevel::kInfo, RealClock());
  const auto access = client::LoadKubeconfig(RealFileSystem(), arguments.Text("kubeconfig"));
  if (!access.ok()) {
    console.Error(access.error().message);
    return cli::kExitFailure;
  }
  const auto named = [&](std::string_view flag, const std::string& name) {
    const std::vector<std::string> names = arguments.List(flag);
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<fabric::FabricDevice> devices;
  for (std::int64_t i = 0; i < arguments.Int("devices"); ++i) {
    fabric::FabricDevice& device = devices.emplace_back();
    device.name = StrCat("gpu-", i);
    if (named("fail", device.name)) device.behaviour = fabric::Behaviour::kFails;
    if (named("hang", device.name)) device.behaviour = fabric::Behaviour::kHangs;
  }
  UvLoop loop;
  const std::unique_ptr<client::Client> client =
      client::MakeHttpClient(loop, *access, "fabric-controller");
  fabric::FabricController controller({.loop = loop,
                                       .random = RealRandom(),
                                       .client = *client,
                                       .devices = std::move(devices),
                                       .attach_delay = arguments.Time("attach-delay")});
  const auto stop = [&loop] { loop.Stop(); };
  TimerHandle interrupt = loop.OnSignal(SIGINT, stop);
  TimerHandle terminate = loop.OnSignal(SIGTERM, stop);
  loop.Post([&controller] { controller.Start(); });
  loop.Run();
  return cli::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  cli::App app("fabric-controller", "Attaches simulated fabric devices to nodes (KEP-5007).");
  app.Add({.name = "run",
           .summary = "Run the controller",
           .help = "Publishes devices gpu-0, gpu-1, ... for all nodes and attaches allocated ones.",
           .flags = {{.name = "kubeconfig",
                      .help = "Address of the API server and credentials.",
                      .placeholder = "FILE"},
                     {.name = "devices",
                      .type = cli::FlagType::kInt,
                      .help = "Number of devices.",
                      .default_value = "2",
                      .placeholder = "N"},
                     {.name = "attach-delay",
                      .type = cli::FlagType::kDuration,
                      .help = "How long attaching takes.",
                      .default_value = "2s",
                      .placeholder = "TIME"},
                     {.name = "fail",
                      .type = cli::FlagType::kRepeated,
                      .help = "Devices that cannot be attached.",
                      .placeholder = "NAME"},
                     {.name = "hang",
                      .type = cli::FlagType::kRepeated,
                      .help = "Devices that never finish attaching.",
                      .placeholder = "NAME"}},
           .max_arguments = 0,
           .section = "Run",
           .run = Run});
  cli::ProcessConsole console;
  return app.Run({argv + 1, argv + argc}, console);
}
