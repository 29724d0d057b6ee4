#include "apiserver/http/watch_events.h"

#include "api/scheme/scheme.h"
#include "apiserver/http/encode.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

std::size_t SlotOf(const api::ObjectPtr& object) {
  const auto address = reinterpret_cast<std::uintptr_t>(object.get());
  return (address >> 4 ^ address >> 12) % WatchEvents::kMaxEvents;
}

}  // namespace

net::Segment WatchEvents::Event(const Negotiated& negotiated, std::string_view type,
                                const api::ObjectPtr& object) {
  if (negotiated.media != MediaType::kJson || object->json()->size() > kMaxEventBytes) {
    return nullptr;
  }
  Encoded& kept = events_[SlotOf(object)];
  if (kept.object != object || kept.type != type || kept.shape != negotiated.shape) {
    net::Body body;
    AppendEvent(negotiated, type, object, body);
    std::size_t size = 0;
    for (const net::Segment& segment : body) size += segment->size();
    std::string joined;
    joined.reserve(size);
    for (const net::Segment& segment : body) joined += *segment;
    kept = {object, type, negotiated.shape, net::MakeSegment(std::move(joined))};
  }
  return kept.bytes;
}

const api::ObjectPtr& WatchEvents::Leaving(const Change& change) {
  Left& kept = left_[SlotOf(change.object)];
  if (kept.object != change.object) kept = {change.object, WatchCache::LeavingObject(change)};
  return kept.last;
}

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
