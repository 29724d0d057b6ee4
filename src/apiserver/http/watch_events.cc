#include "apiserver/http/watch_events.h"

#include "api/scheme/scheme.h"
#include "apiserver/http/encode.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {

const net::Body& WatchEvents::Table(const Negotiated& negotiated, std::string_view type,
                                    const api::KindSchema& kind, const api::ObjectPtr& object,
                                    TableOptions options,
                                    const std::shared_ptr<const DeviceUsage>& usage) {
  options.now = clock_.Now();
  const std::int64_t second =
      std::chrono::floor<std::chrono::seconds>(options.now).time_since_epoch().count();
  if (second != second_ || usage != usage_ || tables_.size() >= kMaxTables) {
    tables_.clear();
    second_ = second;
    usage_ = usage;
  }
  const Key key{object.get(), &kind, type, static_cast<int>(options.include_object),
                options.omit_columns};
  auto [found, is_new] = tables_.try_emplace(key);
  if (is_new) {
    ShowUsage(usage, options);
    options.resource_version = std::to_string(object->resource_version());
    Negotiated plain = negotiated;
    plain.shape = Shape::kObject;
    found->second.object = object;
    AppendEvent(plain, type,
                std::make_shared<const api::Object>(MakeTable(kind, {&object, 1}, options)),
                found->second.body);
  }
  return found->second.body;
}

Counter& WatchEvents::Sent(const api::KindSchema& kind) {
  return metrics_.GetCounter("apiserver_watch_events_total",
                             "Number of events sent in watch clients",
                             {{"group", std::string(kind.group)},
                              {"resource", std::string(kind.plural)},
                              {"version", std::string(kind.version)}});
}

}  // namespace drakkar::apiserver
