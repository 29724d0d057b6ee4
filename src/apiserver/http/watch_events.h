#pragma once

#include <map>
#include <string_view>
#include <tuple>

#include "apiserver/http/negotiate.h"
#include "apiserver/http/table.h"
#include "apiserver/rest/core.h"
#include "net/http/message.h"

namespace drakkar {
class Counter;
class Metrics;
}

namespace drakkar::apiserver {

// What all watch streams of a server share: events that no object can keep as a form of its own,
// encoded once however many watch, and the count of what was sent. Bound to the core's loop.
class WatchEvents {
 public:
  WatchEvents(Core& core, Metrics& metrics) : core_(core), metrics_(metrics) {}

  // The event with a table of one row. A table shows ages and counts of other objects: it is
  // shared within one second and one revision, which is as long as a fan-out takes. At most
  // kMaxTables are kept.
  const net::Body& Table(const Negotiated& negotiated, std::string_view type,
                         const api::KindSchema& kind, const api::ObjectPtr& object,
                         TableOptions options);
  static constexpr std::size_t kMaxTables = 1'024;

  // apiserver_watch_events_total of a kind; keep it, looking it up takes a lock.
  Counter& Sent(const api::KindSchema& kind);

 private:
  struct Shown {
    api::ObjectPtr object;  // keeps the address in the key its own
    net::Body body;
  };
  // Object, kind, event type, what rows carry, without columns.
  using Key = std::tuple<const void*, const void*, std::string_view, int, bool>;

  Core& core_;
  Metrics& metrics_;
  std::map<Key, Shown> tables_;
  std::int64_t second_ = 0;         // of the tables
  storage::Revision revision_ = 0;  // likewise
};

}  // namespace drakkar::apiserver
