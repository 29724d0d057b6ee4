// Gates, versions and runtime features in flag syntax, one per line, followed by a
// KubeletConfiguration.
#include "features/report.h"

#include <cstddef>
#include <cstdint>

#include "api/json/reader.h"
#include "base/result/check.h"
#include "features/declared.h"
#include "features/framework/version.h"

namespace {

std::string TakeLine(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string line(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  features::NodeInput input;
  input.feature_gates = TakeLine(text);
  input.version = TakeLine(text);
  input.runtime_features = TakeLine(text);
  if (const auto gates = FeatureGates::Create({.overrides = input.feature_gates}); !gates.ok()) {
    CHECK(!gates.error().message.empty());
  }
  if (const auto release = ParseReleaseVersion(input.version)) {
    CHECK(ParseReleaseVersion(release->ToString()) == release);
    CHECK(features::ParseVersion(input.version).ok());
  }
  const auto tree = api::ParseJson(text);
  if (tree.ok()) input.kubelet_configuration = (*tree)->root();
  const auto read = features::ReadNodeConfiguration(input);
  const auto again = features::ReadNodeConfiguration(input);
  CHECK(read.ok() == again.ok());
  if (!read.ok())
    CHECK(!read.error().message.empty() && read.error().message == again.error().message);
  return 0;
}
