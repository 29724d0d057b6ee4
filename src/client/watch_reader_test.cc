#include "client/watch_reader.h"

#include <gtest/gtest.h>

namespace drakkar::client {
namespace {

TEST(WatchReader, ReturnsAnEventAsSoonAsItsLineIsComplete) {
  WatchReader reader;
  std::vector<WatchEvent> events;
  EXPECT_FALSE(reader.Read("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"na", events));
  EXPECT_TRUE(events.empty());
  EXPECT_FALSE(reader.Read("me\":\"a\"}}}\n\n{\"type\":\"DELETED\",\"object\":{}}\n{", events));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].object->name(), "a");
  EXPECT_EQ(events[1].type, EventType::kDeleted);
}

TEST(WatchReader, ReturnsTheEventsBeforeAnError) {
  WatchReader reader;
  std::vector<WatchEvent> events;
  const auto error = reader.Read(
      "{\"type\":\"ADDED\",\"object\":{}}\n"
      "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","
      "\"message\":\"too old\"}}\n",
      events);
  EXPECT_EQ(events.size(), 1u);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kExpired);
}

TEST(WatchReader, RejectsLinesThatAreNotEvents) {
  for (const char* line : {"x\n", "{\"type\":\"OTHER\",\"object\":{}}\n", "{\"type\":\"ADDED\"}\n",
                           "{\"type\":\"ADDED\",\"object\":[]}\n", "7\n"}) {
    std::vector<WatchEvent> events;
    EXPECT_TRUE(WatchReader().Read(line, events)) << line;
    EXPECT_TRUE(events.empty());
  }
}

TEST(WatchReader, TheSizeOfAnEventIsBounded) {
  WatchReader reader;
  std::vector<WatchEvent> events;
  EXPECT_FALSE(reader.Read(std::string(WatchReader::kMaxEventBytes, ' '), events));
  EXPECT_EQ(reader.Read(" ", events)->code, ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace drakkar::client
