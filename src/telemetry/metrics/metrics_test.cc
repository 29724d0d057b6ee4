#include "telemetry/metrics/metrics.h"

#include <gtest/gtest.h>

namespace drakkar {
namespace {

TEST(Metrics, PrintsPrometheusText) {
  Metrics metrics;
  metrics.GetCounter("requests_total", "Requests.", {{"verb", "get"}}).Add(2);
  metrics.GetCounter("requests_total", "Requests.", {{"verb", "get"}}).Add();
  metrics.GetGauge("open", "Open things.").Set(7);
  metrics.GetHistogram("seconds", "Time.", {}, {0.1, 1}).Observe(0.5);
  const std::string text = metrics.Text();
  EXPECT_NE(text.find("requests_total{verb=\"get\"} 3"), std::string::npos) << text;
  EXPECT_NE(text.find("open 7"), std::string::npos) << text;
  EXPECT_NE(text.find("seconds_bucket{le=\"1\"} 1"), std::string::npos) << text;
}

TEST(Metrics, TheNumberOfSeriesIsBounded) {
  Metrics metrics;
  for (std::size_t i = 0; i < Metrics::kMaxSeriesPerMetric + 10; ++i) {
    metrics.GetCounter("c_total", "C.", {{"name", std::to_string(i)}}).Add();
  }
  EXPECT_EQ(metrics.GetCounter("c_total", "C.", {{"name", "another"}}).value(), 10);
}

TEST(Metrics, BoundsOfTheKubeletsHistograms) {
  const std::vector<double> bounds = ExponentialBoundsRange(0.1, 40, 15);
  ASSERT_EQ(bounds.size(), 15u);
  EXPECT_NEAR(bounds[1], 0.153413, 1e-6);
  EXPECT_NEAR(bounds[14], 40.0, 1e-9);
}

}  // namespace
}  // namespace drakkar
