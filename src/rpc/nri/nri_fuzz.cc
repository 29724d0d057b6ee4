#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/testing/seeded_loop.h"
#include "rpc/nri/nri_plugin_session.h"
#include "rpc/nri/nri_runtime_session.h"

// Sends arbitrary bytes on an NRI socket to a plugin, and to a runtime that waits for answers.
// Neither crashes, and a session that has ended sends nothing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  SeededLoop loop;
  const auto ignore = [](std::string) {};
  {
    rpc::NriPluginSession::Callbacks callbacks;
    callbacks.on_run_pod_sandbox = [](const rpc::NriPodSandbox&, rpc::NriDone done) { done(Ok()); };
    callbacks.on_create_container = [](const rpc::NriPodSandbox&,
                                       const rpc::NriContainer& container, rpc::NriAnswered done) {
      done(rpc::NriAnswer{
          {.annotations = container.annotations, .mounts = container.mounts}, {}, {}});
    };
    callbacks.on_container_event = [](rpc::NriEvent, const rpc::NriPodSandbox&,
                                      const rpc::NriContainer&,
                                      rpc::NriDone done) { done(Internal("no")); };
    rpc::NriPluginSession plugin(
        {.loop = loop, .name = "p", .send = ignore, .callbacks = callbacks});
    plugin.Start();
    if (auto taken = plugin.Receive(bytes); !taken.ok()) plugin.Close(taken.error());
    loop.RunUntilIdle();
  }
  {
    rpc::NriRuntimeSession* session = nullptr;
    rpc::NriRuntimeSession runtime(
        {.loop = loop,
         .send = ignore,
         .on_configured = [&] { session->Synchronize({}, {}, [](auto) {}); },
         .on_update = [](std::vector<rpc::NriContainerUpdate> updates, auto,
                         rpc::NriRuntimeSession::Updated done) { done(std::move(updates)); }});
    session = &runtime;
    for (const std::string_view part : {bytes.substr(0, size / 2), bytes.substr(size / 2)}) {
      if (auto taken = runtime.Receive(part); !taken.ok()) {
        runtime.Close(taken.error());
        break;
      }
      loop.RunUntilIdle();
      runtime.DeliverContainer(rpc::NriEvent::kCreateContainer, {}, {}, {},
                               [](Result<rpc::NriAnswer>) {});
      runtime.Validate({}, [](Result<void>) {});
    }
    loop.RunUntilIdle();
  }
  return 0;
}
