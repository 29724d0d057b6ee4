// What CNI plugins print, and network configuration. The first byte chooses the decoder.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result/check.h"
#include "base/text/text.h"
#include "node/runtime/network/cni_config.h"
#include "node/runtime/network/cni_result.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 4) {
    case 0: {
      const auto result = node::ParseCniResult(text, "eth0");
      if (!result.ok()) break;
      CHECK(result->addresses.size() <= node::kMaxCniAddresses);
      for (const std::string& address : result->addresses) {
        CHECK(node::IsIpAddress(address) && address.find('\0') == std::string::npos);
      }
      // The next plugin, and a check after a restart, read the same from it.
      const auto again = node::ParseCniResult(result->json, "eth0");
      CHECK(again.ok() && again->addresses == result->addresses && again->json == result->json);
      CHECK(node::ChoosePodAddresses(result->addresses, "10.0.0.1").size() <= 2);
      break;
    }
    case 1: {
      const std::size_t half = text.size() / 2;
      const std::string sentence =
          node::DescribeCniFailure(text.substr(0, half), text.substr(half), data[0]);
      CHECK(!sentence.empty() && sentence.size() <= 2 * node::kMaxCniMessageBytes + 64);
      CHECK(IsValidUtf8(sentence) && sentence.find('\n') == std::string::npos);
      break;
    }
    default: {
      const auto list = node::ParseCniList(text, data[0] % 4 == 2);
      if (!list.ok()) break;
      CHECK(!list->plugins.empty() && list->plugins.size() <= node::kMaxCniPlugins);
      for (const node::CniPlugin& plugin : list->plugins) {
        // The name of a program, never a path.
        CHECK(!plugin.type.empty() && plugin.type.find('/') == std::string::npos);
        CHECK(plugin.type != "." && plugin.type != "..");
        static_cast<void>(node::MakePluginInput({*list, plugin, {}, "{}", std::nullopt}).ok());
      }
    }
  }
  return 0;
}
