// Any KubeletConfiguration yields settings, the same every time, or an error that names the file.
#include "cmd/drakkar/kubelet_config.h"

#include <cstddef>
#include <cstdint>

#include "base/result/check.h"
#include "base/testing/memory_file_system.h"
#include "cli/testing/fake_console.h"
#include "telemetry/log/log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  static const cli::Arguments arguments = [] {
    SetLogSink([](std::string_view) {});
    cli::Arguments kept;
    cli::App app("drakkar", "");
    cli::Command command;
    command.name = "read";
    command.flags = cmd::KubeletConfigFlags();
    command.run = [&](const cli::Arguments& given, cli::Console&) {
      kept = given;
      return 0;
    };
    app.Add(command);
    cli::testing::FakeConsole console;
    CHECK(app.Run({"read", "--config", "/kubelet.yaml"}, console) == 0);
    return kept;
  }();
  MemoryFileSystem files;
  CHECK(files.WriteFile("/kubelet.yaml", {reinterpret_cast<const char*>(data), size}, 0644).ok());
  const auto settings = cmd::ReadKubeletSettings(arguments, files);
  const auto again = cmd::ReadKubeletSettings(arguments, files);
  CHECK(settings.ok() == again.ok());
  if (!settings.ok()) {
    CHECK(settings.error().message.find("/kubelet.yaml") != std::string::npos);
    return 0;
  }
  CHECK(settings->feature_gates == again->feature_gates);
  CHECK(settings->features.static_configuration == again->features.static_configuration);
  return 0;
}
