#include "telemetry/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <map>
#include <mutex>

namespace drakkar {
namespace {

class CounterHandle final : public Counter {
 public:
  explicit CounterHandle(prometheus::Counter& counter) : counter_(counter) {}
  void Add(double by) override { counter_.Increment(by); }
  double value() const override { return counter_.Value(); }

 private:
  prometheus::Counter& counter_;
};

class GaugeHandle final : public Gauge {
 public:
  explicit GaugeHandle(prometheus::Gauge& gauge) : gauge_(gauge) {}
  void Set(double value) override { gauge_.Set(value); }
  void Add(double by) override { gauge_.Increment(by); }
  double value() const override { return gauge_.Value(); }
  prometheus::Gauge* native() { return &gauge_; }

 private:
  prometheus::Gauge& gauge_;
};

class HistogramHandle final : public Histogram {
 public:
  explicit HistogramHandle(prometheus::Histogram& histogram) : histogram_(histogram) {}
  void Observe(double value) override { histogram_.Observe(value); }

 private:
  prometheus::Histogram& histogram_;
};

template <typename Native, typename Handle>
struct FamilyEntry {
  prometheus::Family<Native>* family = nullptr;
  std::map<MetricLabels, std::unique_ptr<Handle>> series;
};

}  // namespace

struct Metrics::Impl {
  mutable std::mutex mutex;
  prometheus::Registry registry;
  std::map<std::string, FamilyEntry<prometheus::Counter, CounterHandle>> counters;
  std::map<std::string, FamilyEntry<prometheus::Gauge, GaugeHandle>> gauges;
  std::map<std::string, FamilyEntry<prometheus::Histogram, HistogramHandle>> histograms;

  // Finds or creates a series; `make_family` and `add` depend on the metric type.
  template <typename Entry, typename MakeFamily, typename AddSeries>
  auto& Series(Entry& entry, const MetricLabels& labels, MakeFamily make_family, AddSeries add) {
    if (entry.family == nullptr) entry.family = &make_family();
    MetricLabels key = labels;
    if (!entry.series.contains(key) && entry.series.size() >= kMaxSeriesPerMetric) {
      for (auto& [name, value] : key) value = "overflow";
    }
    auto& handle = entry.series[key];
    if (handle == nullptr) {
      std::map<std::string, std::string> native_labels(key.begin(), key.end());
      handle = add(*entry.family, native_labels);
    }
    return *handle;
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::GetCounter(const std::string& name, const std::string& help,
                             const MetricLabels& labels) {
  std::lock_guard lock(impl_->mutex);
  return impl_->Series(
      impl_->counters[name], labels,
      [&]() -> auto& {
        return prometheus::BuildCounter().Name(name).Help(help).Register(impl_->registry);
      },
      [](auto& family, const auto& native_labels) {
        return std::make_unique<CounterHandle>(family.Add(native_labels));
      });
}

Gauge& Metrics::GetGauge(const std::string& name, const std::string& help,
                         const MetricLabels& labels) {
  std::lock_guard lock(impl_->mutex);
  return impl_->Series(
      impl_->gauges[name], labels,
      [&]() -> auto& {
        return prometheus::BuildGauge().Name(name).Help(help).Register(impl_->registry);
      },
      [](auto& family, const auto& native_labels) {
        return std::make_unique<GaugeHandle>(family.Add(native_labels));
      });
}

Histogram& Metrics::GetHistogram(const std::string& name, const std::string& help,
                                 const MetricLabels& labels, const std::vector<double>& bounds) {
  std::lock_guard lock(impl_->mutex);
  return impl_->Series(
      impl_->histograms[name], labels,
      [&]() -> auto& {
        return prometheus::BuildHistogram().Name(name).Help(help).Register(impl_->registry);
      },
      [&](auto& family, const auto& native_labels) {
        return std::make_unique<HistogramHandle>(family.Add(native_labels, bounds));
      });
}

void Metrics::RemoveGauge(const std::string& name, const MetricLabels& labels) {
  std::lock_guard lock(impl_->mutex);
  auto entry = impl_->gauges.find(name);
  if (entry == impl_->gauges.end()) return;
  auto series = entry->second.series.find(labels);
  if (series == entry->second.series.end()) return;
  entry->second.family->Remove(series->second->native());
  entry->second.series.erase(series);
}

std::string Metrics::Text() const {
  std::lock_guard lock(impl_->mutex);
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

std::vector<double> ExponentialBounds(double start, double factor, std::size_t count) {
  std::vector<double> bounds;
  for (std::size_t i = 0; i < count; ++i, start *= factor) bounds.push_back(start);
  return bounds;
}

std::vector<double> ExponentialBoundsRange(double lowest, double highest, std::size_t count) {
  const double factor = std::pow(highest / lowest, 1.0 / static_cast<double>(count - 1));
  return ExponentialBounds(lowest, factor, count);
}

}  // namespace drakkar
