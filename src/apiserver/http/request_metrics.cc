#include "apiserver/http/request_metrics.h"

#include "api/scheme/scheme.h"
#include "apiserver/rest/core.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// Limit for cached handles. Subresources and codes are few; requests beyond it are counted without
// a cached handle.
constexpr std::size_t kMaxSeries = 4'000;

// The bounds of Kubernetes.
const std::vector<double>& DurationBounds() {
  static const std::vector<double> bounds = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8,
                                             1.0,   1.25,  1.5,  2,   3,   4,   5,   6,
                                             8,     10,    15,   20,  30,  45,  60};
  return bounds;
}

std::string MetricVerb(std::string_view verb) {
  if (verb == "create") return "POST";
  if (verb == "update") return "PUT";
  std::string upper(verb);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return upper;
}

constexpr std::string_view kScopes[] = {"", "resource", "namespace", "cluster"};

int ScopeOf(const RequestInfo& info, std::string_view verb) {
  if (!info.is_resource) return 0;
  if (!info.name.empty() || verb == "create") return 1;
  return info.namespace_.empty() ? 3 : 2;
}

constexpr char kTotal[] =
    "Counter of apiserver requests broken out for each verb, dry run value, group, version, "
    "resource, scope, component, and HTTP response code.";
constexpr char kDuration[] =
    "Response latency distribution in seconds for each verb, dry run value, group, version, "
    "resource, subresource, scope and component.";
constexpr char kSizes[] =
    "Response size distribution in bytes for each group, version, verb, resource, subresource, "
    "scope "
    "and component.";
constexpr char kAttempts[] = "Counter of authenticated attempts.";
constexpr char kInflight[] =
    "Maximal number of currently used inflight request limit of this apiserver per request kind in "
    "last second.";

}  // namespace

RequestMetrics::RequestMetrics(Metrics& metrics)
    : metrics_(metrics),
      mutating_(metrics.GetGauge("apiserver_current_inflight_requests", kInflight,
                                 {{"request_kind", "mutating"}})),
      reading_(metrics.GetGauge("apiserver_current_inflight_requests", kInflight,
                                {{"request_kind", "readOnly"}})),
      known_(metrics.GetCounter("authentication_attempts", kAttempts, {{"result", "success"}})),
      unknown_(metrics.GetCounter("authentication_attempts", kAttempts, {{"result", "failure"}})) {}

void RequestMetrics::Began(bool mutating) {
  (mutating ? mutating_ : reading_).Add(1);
}

void RequestMetrics::Ended(bool mutating) {
  (mutating ? mutating_ : reading_).Add(-1);
}

void RequestMetrics::Count(const RequestInfo& info, std::string_view verb, bool dry_run, int code,
                           Duration took, std::optional<std::size_t> bytes) {
  const int scope = ScopeOf(info, verb);
  // Only names that we define become labels, never what clients send.
  const bool known = info.kind != nullptr;
  const Key key{info.kind, verb, known ? info.subresource : std::string(), scope, dry_run, code};
  auto found = series_.find(key);
  if (found == series_.end()) {
    MetricLabels labels = {{"component", "apiserver"},
                           {"dry_run", dry_run ? "All" : ""},
                           {"group", known ? std::string(info.kind->group) : ""},
                           {"resource", known ? std::string(info.kind->plural) : ""},
                           {"scope", std::string(kScopes[scope])},
                           {"subresource", known ? info.subresource : ""},
                           {"verb", MetricVerb(verb)},
                           {"version", known ? std::string(info.kind->version) : ""}};
    Series series;
    series.duration = &metrics_.GetHistogram("apiserver_request_duration_seconds", kDuration,
                                             labels, DurationBounds());
    labels.emplace_back("code", std::to_string(code));
    series.total = &metrics_.GetCounter("apiserver_request_total", kTotal, labels);
    if (series_.size() >= kMaxSeries) {
      series.total->Add();
      series.duration->Observe(std::chrono::duration<double>(took).count());
      return;
    }
    // The verb's name is a constant from VerbName.
    found = series_.emplace(key, series).first;
  }
  Series& counted = found->second;
  counted.total->Add();
  counted.duration->Observe(std::chrono::duration<double>(took).count());
  if (!bytes || !known) return;
  if (counted.sizes == nullptr) {
    counted.sizes = &metrics_.GetHistogram("apiserver_response_sizes", kSizes,
                                           {{"component", "apiserver"},
                                            {"group", std::string(info.kind->group)},
                                            {"resource", std::string(info.kind->plural)},
                                            {"scope", std::string(kScopes[scope])},
                                            {"subresource", info.subresource},
                                            {"verb", MetricVerb(verb)},
                                            {"version", std::string(info.kind->version)}},
                                           {1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9});
  }
  counted.sizes->Observe(static_cast<double>(*bytes));
}

void RequestMetrics::Refresh(const Core& core) {
  core.ForEachCache([this](const api::KindSchema& kind, const WatchCache& cache) {
    const std::string resource =
        kind.group.empty() ? std::string(kind.plural) : StrCat(kind.plural, ".", kind.group);
    const double objects = static_cast<double>(cache.size());
    metrics_
        .GetGauge("apiserver_storage_objects",
                  "Number of stored objects at the time of last check split by kind.",
                  {{"resource", resource}})
        .Set(objects);
    metrics_
        .GetGauge("apiserver_resource_objects",
                  "Number of stored objects at the time of last check split by kind.",
                  {{"group", std::string(kind.group)}, {"resource", std::string(kind.plural)}})
        .Set(objects);
    metrics_
        .GetGauge("apiserver_longrunning_requests",
                  "Gauge of all active long-running apiserver requests broken out by verb, group, "
                  "version, resource, scope and component. Not all requests are tracked this way.",
                  {{"component", "apiserver"},
                   {"group", std::string(kind.group)},
                   {"resource", std::string(kind.plural)},
                   {"scope", "cluster"},
                   {"subresource", ""},
                   {"verb", "WATCH"},
                   {"version", std::string(kind.version)}})
        .Set(static_cast<double>(cache.watcher_count()));
  });
}

}  // namespace drakkar::apiserver
