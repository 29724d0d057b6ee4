#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace drakkar {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Handles are valid as long as their Metrics. Thread-safe.
class Counter {
 public:
  virtual ~Counter() = default;
  virtual void Add(double by = 1) = 0;
  virtual double value() const = 0;
};

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void Set(double value) = 0;
  virtual void Add(double by) = 0;
  virtual double value() const = 0;
};

class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void Observe(double value) = 0;
};

// The metrics of one component, in Prometheus' text format. Looking up a metric takes a lock, so
// keep the handle in hot code. The number of label sets per name is bounded: beyond
// kMaxSeriesPerMetric, further ones share one series labelled "overflow", so that no input can grow
// the process.
class Metrics {
 public:
  static constexpr std::size_t kMaxSeriesPerMetric = 2'000;

  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  Counter& GetCounter(const std::string& name, const std::string& help,
                      const MetricLabels& labels = {});
  Gauge& GetGauge(const std::string& name, const std::string& help,
                  const MetricLabels& labels = {});
  Histogram& GetHistogram(const std::string& name, const std::string& help,
                          const MetricLabels& labels, const std::vector<double>& bounds);
  void RemoveGauge(const std::string& name, const MetricLabels& labels);

  // The exposition text (version 0.0.4) of all metrics.
  std::string Text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// start, start*factor, ... (count bounds)
std::vector<double> ExponentialBounds(double start, double factor, std::size_t count);
// `count` bounds from `lowest` to `highest`, evenly spaced on a logarithmic scale.
std::vector<double> ExponentialBoundsRange(double lowest, double highest, std::size_t count);

}  // namespace drakkar
