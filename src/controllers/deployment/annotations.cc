#include "controllers/deployment/annotations.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/text/text.h"

namespace drakkar::controllers {

namespace {

constexpr std::string_view kHistory = "deployment.kubernetes.io/revision-history";
constexpr std::string_view kDesired = "deployment.kubernetes.io/desired-replicas";
constexpr std::string_view kMost = "deployment.kubernetes.io/max-replicas";
// Enough for about a hundred revisions. The oldest are dropped.
constexpr std::size_t kMaxHistoryBytes = 2000;
constexpr std::string_view kNotCopied[] = {"kubectl.kubernetes.io/last-applied-configuration",
                                           kRevisionAnnotation,
                                           kHistory,
                                           kDesired,
                                           kMost,
                                           "deprecated.deployment.rollback.to"};

std::optional<std::int64_t> NumberIn(const api::Object& object, std::string_view annotation) {
  const std::optional<std::int64_t> number =
      ParseInt64(object["metadata"]["annotations"].Entry(annotation).str());
  if (!number || *number < 0 || *number > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return number;
}

bool Set(api::Draft& annotations, std::string_view name, std::string value) {
  if (annotations.Entry(name).str() == value) return false;
  annotations.Entry(name) = std::move(value);
  return true;
}

}  // namespace

std::int64_t RevisionOf(const api::Object& object) {
  return ParseInt64(object["metadata"]["annotations"].Entry(kRevisionAnnotation).str()).value_or(0);
}

std::optional<std::int64_t> DesiredReplicas(const api::Object& set) {
  return NumberIn(set, kDesired);
}

std::optional<std::int64_t> MaxReplicas(const api::Object& set) {
  return NumberIn(set, kMost);
}

bool CopyAnnotations(const api::Object& deployment, api::Draft& annotations) {
  bool changed = false;
  for (const auto& [key, name, value] : deployment["metadata"]["annotations"].members()) {
    if (std::ranges::find(kNotCopied, name) != std::end(kNotCopied)) continue;
    changed = Set(annotations, name, std::string(value.str())) || changed;
  }
  return changed;
}

bool SetRevision(api::Draft& annotations, std::int64_t revision) {
  const std::string before(annotations.Entry(kRevisionAnnotation).str());
  const std::optional<std::int64_t> number = ParseInt64(before);
  if (!before.empty() && (!number || *number >= revision)) return false;
  annotations.Entry(kRevisionAnnotation) = StrCat(revision);
  if (before.empty()) return true;
  std::vector<std::string> history;
  for (std::string_view each : Split(annotations.Entry(kHistory).str(), ',')) {
    if (!each.empty()) history.emplace_back(each);
  }
  history.push_back(before);
  std::size_t skipped = 0;
  std::size_t cut = 0;
  std::string text = Join(history, ",");
  while (cut < text.size() && text.size() - cut > kMaxHistoryBytes) {
    cut += history[skipped++].size() + 1;
  }
  text.erase(0, cut);
  annotations.Entry(kHistory) = std::move(text);
  return true;
}

bool SetReplicas(api::Draft& annotations, std::int64_t desired, std::int64_t most) {
  const bool changed = Set(annotations, kDesired, StrCat(desired));
  return Set(annotations, kMost, StrCat(most)) || changed;
}

}  // namespace drakkar::controllers
