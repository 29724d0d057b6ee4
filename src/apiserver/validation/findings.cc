#include "apiserver/validation/findings.h"

#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

bool SaysTheSame(const Finding& handwritten, const Finding& declared) {
  if (handwritten.error.type != declared.error.type) return false;
  if (handwritten.error.field != declared.error.field) return false;
  if (handwritten.origin != declared.origin) return false;
  return handwritten.error.type != api::FieldErrorType::kInvalid || !handwritten.origin.empty();
}

// Past "[<digits>]" that starts at `at`; npos if there is none.
std::size_t SkipIndex(std::string_view path, std::size_t at) {
  if (at >= path.size() || path[at] != '[') return std::string_view::npos;
  std::size_t end = at + 1;
  while (end < path.size() && path[end] >= '0' && path[end] <= '9') ++end;
  if (end == at + 1 || end >= path.size() || path[end] != ']') return std::string_view::npos;
  return end + 1;
}

}  // namespace

std::string PathInV1beta1(std::string_view path) {
  constexpr std::string_view kExactly = ".exactly";
  for (const std::string_view start : {"spec.devices.requests", "spec.spec.devices.requests"}) {
    if (!path.starts_with(start)) continue;
    const std::size_t end = SkipIndex(path, start.size());
    if (end != std::string_view::npos && path.substr(end).starts_with(kExactly)) {
      return StrCat(path.substr(0, end), path.substr(end + kExactly.size()));
    }
  }
  constexpr std::string_view kDevices = "spec.devices";
  if (path.starts_with(kDevices)) {
    const std::size_t end = SkipIndex(path, kDevices.size());
    if (end != std::string_view::npos && end < path.size() && path.substr(end) != ".name") {
      return StrCat(path.substr(0, end), ".basic", path.substr(end));
    }
  }
  return std::string(path);
}

api::FieldErrors PlainErrors(const Findings& handwritten) {
  api::FieldErrors errors;
  for (const Finding& finding : handwritten.list()) errors.push_back(finding.error);
  return errors;
}

api::FieldErrors MergeFindings(const Findings& handwritten, const Findings& declared,
                               bool declared_beta, std::string_view version) {
  auto replaced = [&](const Finding& finding) {
    if (!finding.covered || !declared_beta) return false;
    for (const Finding& other : declared.list()) {
      if (other.beta && SaysTheSame(finding, other)) return true;
    }
    return false;
  };
  api::FieldErrors errors;
  for (const Finding& finding : handwritten.list()) {
    if (!replaced(finding)) errors.push_back(finding.error);
  }
  for (const Finding& finding : declared.list()) {
    if (finding.beta && !declared_beta) continue;
    errors.push_back(finding.error);
    if (version == "v1beta1") errors.back().field = PathInV1beta1(finding.error.field);
  }
  return errors;
}

}  // namespace drakkar::apiserver
