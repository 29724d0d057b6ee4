#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "apiserver/http/request_info.h"
#include "base/env/clock.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {

class Core;

// The metrics of the API server under the names that dashboards know. Handles are kept, so counting
// a request costs one look-up.
class RequestMetrics {
 public:
  explicit RequestMetrics(Metrics& metrics);

  void Began(bool mutating);
  void Ended(bool mutating);
  // A request that was answered; `verb` is "" for paths that are no resource, `bytes` the size of
  // what a read of a resource was answered with.
  void Count(const RequestInfo& info, std::string_view verb, bool dry_run, int code, Duration took,
             std::optional<std::size_t> bytes = {});

  // Somebody was let in, or not. On either loop.
  void CountLogin(bool known) { (known ? known_ : unknown_).Add(); }

  // What is read off the caches when somebody asks: objects and watches by resource.
  void Refresh(const Core& core);

 private:
  struct Series {
    Counter* total = nullptr;
    Histogram* duration = nullptr;
    Histogram* sizes = nullptr;  // once there was one
  };
  Metrics& metrics_;
  Gauge& mutating_;
  Gauge& reading_;
  Counter& known_;
  Counter& unknown_;
  // Kind, verb, subresource, scope, dry run, code.
  using Key = std::tuple<const void*, std::string_view, std::string, int, bool, int>;
  std::map<Key, Series> series_;
};

}  // namespace drakkar::apiserver
