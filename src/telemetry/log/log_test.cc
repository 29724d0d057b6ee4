#include "telemetry/log/log.h"

#include <gtest/gtest.h>

namespace drakkar {
namespace {

constexpr WallTime kNow{std::chrono::seconds(1'763'242'892) + std::chrono::microseconds(123'456)};

TEST(Log, TextUsesKlogsFormat) {
  EXPECT_EQ(FormatRecord(LogFormat::kText,
                         {LogLevel::kWarning,
                          "scheduler",
                          "no node \"fits\"",
                          {{"pod", "default/a"}, {"nodes", 5}, {"retry", true}}},
                         kNow, 42),
            "W1115 21:41:32.123456      42 scheduler] \"no node \\\"fits\\\"\" pod=\"default/a\" "
            "nodes=5 retry=true");
}

TEST(Log, JsonIsOneObjectPerLine) {
  EXPECT_EQ(
      FormatRecord(LogFormat::kJson,
                   {LogLevel::kInfo, "node", "ready", {{"name", "n\n1"}, {"pods", 2}}}, kNow, 42),
      "{\"ts\":1763242892123.4,\"level\":\"info\",\"logger\":\"node\",\"msg\":\"ready\","
      "\"name\":\"n\\u000a1\",\"pods\":2}");
}

TEST(Log, DropsMessagesBelowTheConfiguredLevel) {
  std::vector<std::string> lines;
  SetLogSink([&](std::string_view line) { lines.emplace_back(line); });
  constexpr Logger log("test");
  log.Debug("hidden");
  log.Error("shown");
  SetLogSink({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("shown"), std::string::npos);
}

}  // namespace
}  // namespace drakkar
