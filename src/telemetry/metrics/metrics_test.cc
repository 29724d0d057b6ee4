#include "telemetry/metrics/metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/memory_file_system.h"
#include "telemetry/metrics/process_metrics.h"

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

TEST(ProcessMetrics, ReportTheKernelsValues) {
  Metrics metrics;
  MemoryFileSystem files;
  const auto write = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(files.MakeDirectories(path.substr(0, path.rfind('/')), 0755).ok());
    ASSERT_TRUE(files.WriteFile(path, text, 0644).ok());
  };
  write("/proc/self/stat",
        "7 (a) (b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 5 0 300 4096000 10 0 0\n");
  write("/proc/stat", "cpu 1 2 3\nbtime 1700000000\nprocesses 4\n");
  write("/proc/self/fd/0", "");
  write("/proc/self/fd/1", "");
  UpdateProcessMetrics(files, metrics);
  UpdateProcessMetrics(files, metrics);
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  EXPECT_DOUBLE_EQ(metrics.GetCounter("process_cpu_seconds_total", "").value(), 200 / ticks);
  EXPECT_DOUBLE_EQ(metrics.GetGauge("process_virtual_memory_bytes", "").value(), 4096000);
  EXPECT_DOUBLE_EQ(metrics.GetGauge("process_resident_memory_bytes", "").value(), 10 * page);
  EXPECT_DOUBLE_EQ(metrics.GetGauge("process_start_time_seconds", "").value(),
                   1700000000 + 300 / ticks);
  EXPECT_DOUBLE_EQ(metrics.GetGauge("process_open_fds", "").value(), 2);
  EXPECT_GT(metrics.GetGauge("process_max_fds", "").value(), 0);
}

TEST(Metrics, TheNumberOfSeriesIsBounded) {
  Metrics metrics;
  for (std::size_t i = 0; i < Metrics::kMaxSeriesPerMetric + 10; ++i) {
    metrics.GetCounter("c_total", "C.", {{"name", std::to_string(i)}}).Add();
  }
  EXPECT_EQ(metrics.GetCounter("c_total", "C.", {{"name", "another"}}).value(), 10);
}

TEST(Metrics, MatchTheBoundsOfTheKubeletsHistograms) {
  const std::vector<double> bounds = ExponentialBoundsRange(0.1, 40, 15);
  ASSERT_EQ(bounds.size(), 15u);
  EXPECT_NEAR(bounds[1], 0.153413, 1e-6);
  EXPECT_NEAR(bounds[14], 40.0, 1e-9);
}

}  // namespace
}  // namespace drakkar
