#include "apiserver/validation/findings.h"

#include <optional>
#include <set>
#include <tuple>

#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// Identifies findings that report the same error: type, field and origin. Empty for findings that
// cannot be duplicates.
using Gist = std::tuple<api::FieldErrorType, std::string_view, std::string_view>;
std::optional<Gist> GistOf(const Finding& finding) {
  if (finding.error.type == api::FieldErrorType::kInvalid && finding.origin.empty()) {
    return std::nullopt;
  }
  return Gist(finding.error.type, finding.error.field, finding.origin);
}

// The position after "[<digits>]" at `at`; npos if there is none.
std::size_t SkipIndex(std::string_view path, std::size_t at) {
  if (at >= path.size() || path[at] != '[') return std::string_view::npos;
  std::size_t end = at + 1;
  while (end < path.size() && path[end] >= '0' && path[end] <= '9') ++end;
  if (end == at + 1 || end >= path.size() || path[end] != ']') return std::string_view::npos;
  return end + 1;
}

}  // namespace

void Findings::Keep(Finding finding) {
  WorkBudget::Charge(api::FieldErrors::kStepsPerError);
  if (list_.size() < kMaxKept && !WorkBudget::IsExceeded()) {
    list_.push_back(std::move(finding));
  } else {
    ++dropped_;
  }
}

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
  for (const Finding& finding : handwritten.list()) errors.Keep(finding.error);
  errors.Drop(handwritten.dropped());
  return errors;
}

api::FieldErrors MergeFindings(const Findings& handwritten, const Findings& declared,
                               bool declared_beta, std::string_view version) {
  std::set<Gist> said;
  if (declared_beta) {
    for (const Finding& finding : declared.list()) {
      const std::optional<Gist> gist = GistOf(finding);
      if (finding.beta && gist) said.insert(*gist);
    }
  }
  auto replaced = [&](const Finding& finding) {
    if (!finding.covered || said.empty()) return false;
    const std::optional<Gist> gist = GistOf(finding);
    return gist && said.contains(*gist);
  };
  api::FieldErrors errors;
  for (const Finding& finding : handwritten.list()) {
    if (!replaced(finding)) errors.Keep(finding.error);
  }
  for (const Finding& finding : declared.list()) {
    if (finding.beta && !declared_beta) continue;
    api::FieldError error = finding.error;
    if (version == "v1beta1") error.field = PathInV1beta1(error.field);
    errors.Keep(std::move(error));
  }
  errors.Drop(handwritten.dropped() + declared.dropped());
  return errors;
}

}  // namespace drakkar::apiserver
