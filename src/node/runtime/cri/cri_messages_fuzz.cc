// A runtime's answers, chosen by the first byte: none may crash the agent.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result/check.h"
#include "node/runtime/cri/cri_messages.h"
#include "node/runtime/cri/cri_streams.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::node;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 9) {
    case 0:
      (void)cri::DecodeStatus(bytes, {}).ok();
      break;
    case 1:
      (void)cri::DecodePodSandboxStatus(bytes).ok();
      break;
    case 2:
      (void)cri::DecodeListPodSandbox(bytes).ok();
      break;
    case 3: {
      const auto status = cri::DecodeContainerStatus(bytes);
      CHECK(!status.ok() || status->state == ContainerState::kRunning || status->pid == 0);
      break;
    }
    case 4:
      (void)cri::DecodeListContainers(bytes).ok();
      break;
    case 5:
      (void)cri::DecodeListImages(bytes).ok();
      break;
    case 6: {
      const auto result = cri::DecodeExecSync(bytes, 10);
      CHECK(!result.ok() || (result->output.size() <= 10 && result->error_output.size() <= 10));
      break;
    }
    case 7:
      (void)cri::DecodeEvent(bytes).ok();
      (void)cri::CgroupParentOf(bytes);
      break;
    default: {
      const auto code = ParseCommandStatus(bytes);
      CHECK(!code.ok() || (*code >= 0 && *code <= 255));
    }
  }
  return 0;
}
