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

// The API server's metrics, under the names that dashboards expect. Handles are kept, so counting a
// request costs one lookup.
class RequestMetrics {
 public:
  explicit RequestMetrics(Metrics& metrics);

  void Began(bool mutating);
  void Ended(bool mutating);
  // A request was answered. `verb` is "" for non-resource paths; `bytes` is the size of the
  // response to a read of a resource.
  void Count(const RequestInfo& info, std::string_view verb, bool dry_run, int code, Duration took,
             std::optional<std::size_t> bytes = {});

  // A login succeeded or failed. On either loop.
  void CountLogin(bool known) { (known ? known_ : unknown_).Add(); }

  // Gauges that are read from the caches on demand: objects and watches by resource.
  void Refresh(const Core& core);

 private:
  struct Series {
    Counter* total = nullptr;
    Histogram* duration = nullptr;
    Histogram* sizes = nullptr;  // once there is one
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
