#include <gtest/gtest.h>

#include "bench/load/figures.h"
#include "bench/load/probe.h"
#include "bench/load/scenario.h"
#include "bench/load/text_counter.h"
#include "bench/load/watcher.h"

namespace drakkar::load {
namespace {

using std::chrono::milliseconds;

TEST(Samples, APercentileIsTheNearestRank) {
  Samples samples;
  for (int i = 100; i >= 1; --i) samples.Add(milliseconds(i));
  EXPECT_EQ(samples.Percentile(50), milliseconds(50));
  EXPECT_EQ(samples.Percentile(99), milliseconds(99));
  EXPECT_EQ(samples.Percentile(99.5), milliseconds(100));
  EXPECT_EQ(samples.Percentile(0), milliseconds(1));
}

TEST(Samples, ThePercentileOfNoSamplesIsZeroAndOfOneSampleItself) {
  Samples samples;
  EXPECT_EQ(samples.Percentile(99), Duration::zero());
  samples.Add(milliseconds(7));
  EXPECT_EQ(samples.Percentile(1), milliseconds(7));
  EXPECT_EQ(samples.Percentile(100), milliseconds(7));
}

TEST(LineSplitter, JoinsLinesAcrossReads) {
  LineSplitter splitter;
  std::vector<std::string> lines;
  for (std::string_view part : {"on", "e\ntwo\nth", "", "ree", "\n"}) {
    splitter.Feed(part, [&](std::string_view line) { lines.emplace_back(line); });
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three"}));
}

TEST(TextCounter, CountsHoweverTheBytesAreSplit) {
  const std::string text = R"([{"uid":"a"},{"uid":"b"},{"uid":"c"}])";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    TextCounter counter("\"uid\":\"");
    for (std::size_t at = 0; at < text.size(); at += piece) {
      counter.Feed(std::string_view(text).substr(at, piece));
    }
    EXPECT_EQ(counter.count(), 3u) << "pieces of " << piece;
  }
}

TEST(WatchEvents, TypeAndNameAreFoundWithoutParsing) {
  const std::string_view event =
      R"({"type":"ADDED","object":{"kind":"Pod","metadata":{"generateName":"a-","name":"a-1"},"spec":{"containers":[{"name":"c"}]}}})";
  EXPECT_EQ(TypeOf(event), EventType::kAdded);
  EXPECT_EQ(NameIn(event), "a-1");
  EXPECT_EQ(TypeOf(R"({"type":"BOOKMARK","object":{}})"), EventType::kOther);
  EXPECT_EQ(NameIn("{}"), "");
  EXPECT_EQ(
      NameIn(
          R"({"metadata":{"a":"\"{","ownerReferences":[{"name":"p"}],"name":"own"},"spec":{"name":"x"}})"),
      "own");
}

TEST(Probe, StoreCountersAreReadFromTheMetricsText) {
  Usage before, after;
  ReadStoreMetrics("drakkar_store_commits_total 10\n", before);
  ReadStoreMetrics(
      "# HELP drakkar_store_commits_total x\n"
      "drakkar_store_commits_total 30\n"
      "other_total 5\n"
      "drakkar_store_info{file_system=\"ext4\"} 1\n",
      after);
  EXPECT_EQ(after.file_system, "ext4");
  Detail detail;
  Probe::Describe(before, after, 10, "pod", detail);
  EXPECT_NE(detail.Json().find(R"("store_commits_per_pod": 2)"), std::string::npos);
  EXPECT_EQ(detail.Json().find("other"), std::string::npos);
}

TEST(Figures, FormOneJsonList) {
  Figure figure{.id = "a.b", .value = 1.5, .unit = "ms"};
  figure.detail.Text("fs", "ext4");
  figure.detail.Number("n", 2);
  EXPECT_EQ(FiguresJson({figure}),
            "[{\"id\": \"a.b\", \"value\": 1.5, \"unit\": \"ms\", \"detail\": "
            "{\"fs\": \"ext4\", \"n\": 2}}]\n");
}

TEST(Context, ASettingThatIsNotANumberKeepsTheDefault) {
  UvLoop loop;
  Api api(loop, {}, {.connections = 1});
  Probe probe(api, {});
  const Context context{api, probe, {{"pods", "12"}, {"nodes", "x"}}};
  EXPECT_EQ(context.Count("pods", 5), 12u);
  EXPECT_EQ(context.Count("nodes", 5), 5u);
  EXPECT_EQ(context.Count("none", 5), 5u);
}

}  // namespace
}  // namespace drakkar::load
