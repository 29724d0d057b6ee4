#include "apiserver/admission/pod_security/policy.h"

#include <optional>

#include "apiserver/validation/cause.h"
#include "base/text/text.h"

namespace drakkar::apiserver::pod_security {
namespace {

constexpr std::string_view kPrefix = "pod-security.kubernetes.io/";

std::optional<Level> ParseLevel(std::string_view text) {
  for (Level level : {Level::kPrivileged, Level::kBaseline, Level::kRestricted}) {
    if (text == LevelName(level)) return level;
  }
  return std::nullopt;
}

std::optional<int> ParseVersion(std::string_view text) {
  if (text == "latest") return kLatest;
  if (!text.starts_with("v1.")) return std::nullopt;
  text.remove_prefix(3);
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == text.npos &&
                         (text.size() == 1 || text[0] != '0');
  const std::optional<std::int64_t> minor = is_number ? ParseInt64(text) : std::nullopt;
  if (!minor || *minor >= kLatest) return std::nullopt;
  return static_cast<int>(*minor);
}

// The labels of one mode. `fallback` is the level if one cannot be parsed.
struct Mode {
  bool has_level = false;
  bool has_valid_level = false;
  bool has_version = false;
};
Mode ReadMode(api::Value labels, std::string_view mode, Level fallback, LevelVersion& into,
              api::FieldErrors& errors) {
  Mode found;
  const auto complain = [&](const std::string& label, std::string_view value,
                            std::string_view why) {
    errors.push_back(Invalid(StrCat("metadata.labels[", label, "]"), value, why));
  };
  const std::string level_label = StrCat(kPrefix, mode);
  if (const api::Value label = labels.Entry(level_label); label.has_value()) {
    const std::optional<Level> level = ParseLevel(label.str());
    found.has_level = true;
    found.has_valid_level = level.has_value();
    into.level = level.value_or(fallback);
    if (!level) {
      complain(level_label, label.str(), "must be one of privileged, baseline, restricted");
    }
  }
  const std::string version_label = StrCat(kPrefix, mode, "-version");
  if (const api::Value label = labels.Entry(version_label); label.has_value()) {
    const std::optional<int> minor = ParseVersion(label.str());
    found.has_version = true;
    into.minor = minor.value_or(kLatest);
    if (!minor) complain(version_label, label.str(), "must be \"latest\" or \"v1.x\"");
  }
  return found;
}

}  // namespace

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kPrivileged:
      return "privileged";
    case Level::kBaseline:
      return "baseline";
    case Level::kRestricted:
      return "restricted";
  }
  return "";
}

std::string LevelVersion::ToString() const {
  return StrCat(LevelName(level), ":", minor == kLatest ? "latest" : StrCat("v1.", minor));
}

Policy PolicyOf(api::Value labels, api::FieldErrors& errors) {
  Policy policy;
  if (labels.empty()) return policy;
  const Mode enforce = ReadMode(labels, "enforce", Level::kRestricted, policy.enforce, errors);
  ReadMode(labels, "audit", Level::kPrivileged, policy.audit, errors);
  const Mode warn = ReadMode(labels, "warn", Level::kPrivileged, policy.warn, errors);
  // An enforced level also warns: workloads only get warnings.
  if (!warn.has_level && enforce.has_valid_level && policy.enforce.level > policy.warn.level) {
    policy.warn.level = policy.enforce.level;
    if (!warn.has_version) policy.warn.minor = policy.enforce.minor;
  }
  return policy;
}

}  // namespace drakkar::apiserver::pod_security
