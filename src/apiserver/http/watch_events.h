#pragma once

#include <array>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>

#include "apiserver/http/device_usage.h"
#include "apiserver/http/negotiate.h"
#include "apiserver/http/table.h"
#include "apiserver/watch/watch_cache.h"
#include "net/http/message.h"

namespace drakkar {
class Counter;
class Metrics;
}  // namespace drakkar

namespace drakkar::apiserver {

// Shared by all watch streams of an HTTP loop: encoded events that cannot be kept with their
// object, encoded once for all watches, and the count of events sent. Loop-bound.
class WatchEvents {
 public:
  WatchEvents(const Clock& clock, Metrics& metrics) : clock_(clock), metrics_(metrics) {}

  // An object's event, other than a table, as one segment that is encoded once for all watches: for
  // JSON of at most kMaxEventBytes, of which the newest kMaxEvents are kept. Null for others.
  net::Segment Event(const Negotiated& negotiated, std::string_view type,
                     const api::ObjectPtr& object);
  static constexpr std::size_t kMaxEvents = 64;
  static constexpr std::size_t kMaxEventBytes = 32 << 10;

  // WatchCache::LeavingObject, shared by all watches. The newest kMaxEvents are kept.
  const api::ObjectPtr& Leaving(const Change& change);

  // The event with a table of one row. A table shows ages and `usage`, so it is shared only within
  // one second and one usage, which is as long as a fan-out takes. At most kMaxTables are kept.
  const net::Body& Table(const Negotiated& negotiated, std::string_view type,
                         const api::KindSchema& kind, const api::ObjectPtr& object,
                         TableOptions options, const std::shared_ptr<const DeviceUsage>& usage);
  static constexpr std::size_t kMaxTables = 1'024;

  // apiserver_watch_events_total of a kind. Keep the handle: looking it up takes a lock.
  Counter& Sent(const api::KindSchema& kind);

 private:
  struct Shown {
    api::ObjectPtr object;  // keeps the address in the key unique
    net::Body body;
  };
  // Object, kind, event type, what rows carry, without columns.
  using Key = std::tuple<const void*, const void*, std::string_view, int, bool>;

  struct Encoded {
    api::ObjectPtr object;  // keeps the address unique
    std::string_view type;
    Shape shape = Shape::kObject;
    net::Segment bytes;
  };

  const Clock& clock_;
  Metrics& metrics_;
  std::array<Encoded, kMaxEvents> events_;  // by the object's address
  struct Left {
    api::ObjectPtr object;  // the object after the change; keeps the address unique
    api::ObjectPtr last;
  };
  std::array<Left, kMaxEvents> left_;  // likewise
  std::map<Key, Shown> tables_;
  std::int64_t second_ = 0;                   // of the tables
  std::shared_ptr<const DeviceUsage> usage_;  // likewise
};

}  // namespace drakkar::apiserver
