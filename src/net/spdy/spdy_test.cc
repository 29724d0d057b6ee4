#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/spdy/session.h"

namespace drakkar::net::spdy {
namespace {

using ::testing::ElementsAre;

class Peer final : public Session::Events {
 public:
  explicit Peer(Role role) : session(role, *this) {}
  void OnStream(StreamId id, const Headers& headers) override {
    log.push_back("stream " + std::to_string(id) + " " + std::string(headers.Get("streamType")));
    if (replies) session.Reply(id);
  }
  void OnReply(StreamId id) override { log.push_back("reply " + std::to_string(id)); }
  void OnData(StreamId id, std::string_view bytes) override {
    data[id] += bytes;
    if (echo) session.Send(id, bytes);
  }
  void OnFinish(StreamId id) override { log.push_back("finish " + std::to_string(id)); }
  void OnReset(StreamId id) override { log.push_back("reset " + std::to_string(id)); }
  void OnGoAway() override { log.push_back("go away"); }

  std::vector<std::string> log;
  std::map<StreamId, std::string> data;
  bool replies = true;
  bool echo = false;
  Session session;
};

class SpdyTest : public ::testing::Test {
 protected:
  // Until neither has anything to say.
  void Exchange(std::size_t step = 1000) {
    while (client_.session.has_output() || server_.session.has_output()) {
      Deliver(client_.session.TakeOutput(), server_, step);
      Deliver(server_.session.TakeOutput(), client_, step);
    }
  }
  static void Deliver(const std::string& bytes, Peer& to, std::size_t step) {
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      const auto received = to.session.Receive(std::string_view(bytes).substr(at, step));
      ASSERT_TRUE(received.ok()) << received.error().message;
    }
  }
  Peer client_{Role::kClient};
  Peer server_{Role::kServer};
};

TEST_F(SpdyTest, CarriesStreamsInBothDirections) {
  server_.echo = true;
  const StreamId error = client_.session.Open({{"streamType", "error"}});
  const StreamId data = client_.session.Open({{"streamType", "data"}, {"port", "80"}});
  Exchange(1);
  EXPECT_THAT(server_.log, ElementsAre("stream 1 error", "stream 3 data"));
  EXPECT_THAT(client_.log, ElementsAre("reply 1", "reply 3"));
  const std::string large(100'000, 'x');
  client_.session.Send(data, "hello ");
  client_.session.Send(data, large);
  client_.session.Finish(data);
  Exchange(7);
  EXPECT_EQ(server_.data[data], "hello " + large);
  EXPECT_EQ(client_.data[data], "hello " + large);
  EXPECT_THAT(server_.log, ElementsAre("stream 1 error", "stream 3 data", "finish 3"));
  EXPECT_TRUE(server_.session.IsOpen(data)) << "half closed";
  server_.session.Finish(data);
  server_.session.Reset(error, kCancel);
  server_.session.GoAway();
  Exchange();
  EXPECT_THAT(client_.log, ElementsAre("reply 1", "reply 3", "finish 3", "reset 1", "go away"));
  EXPECT_EQ(client_.session.open_streams(), 0u);
  EXPECT_EQ(server_.session.open_streams(), 0u);
}

TEST_F(SpdyTest, HeadersOfLaterStreamsReferToEarlierOnes) {
  for (int i = 0; i < 50; ++i) {
    client_.session.Open({{"streamType", "data"}, {"requestID", std::to_string(i)}});
  }
  const std::string out = client_.session.TakeOutput();
  EXPECT_LT(out.size(), 50u * 60) << "one compressed stream, not fifty";
  Deliver(out, server_, 64);
  EXPECT_THAT(server_.log, ::testing::SizeIs(50));
  EXPECT_EQ(server_.log.back(), "stream 99 data");
}

TEST_F(SpdyTest, AnswersThePeersPingsOnly) {
  // PING with id 1 (a client's), as spdystream sends it.
  const std::string ping("\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01", 12);
  ASSERT_TRUE(server_.session.Receive(ping).ok());
  EXPECT_EQ(server_.session.TakeOutput(), ping);
  ASSERT_TRUE(client_.session.Receive(ping).ok()) << "the answer to its own";
  EXPECT_FALSE(client_.session.has_output());
}

TEST_F(SpdyTest, IgnoresDataForAStreamItHasReset) {
  const StreamId id = client_.session.Open({});
  Exchange();
  server_.session.Reset(id, kCancel);
  client_.session.Send(id, "late");
  Exchange();
  EXPECT_TRUE(server_.data.empty());
}

TEST_F(SpdyTest, RefusesStreamsBeyondTheBound) {
  server_.replies = false;
  for (std::size_t i = 0; i <= Session::kMaxStreams; ++i) client_.session.Open({});
  Exchange();
  EXPECT_EQ(server_.session.open_streams(), Session::kMaxStreams);
  EXPECT_THAT(client_.log, ElementsAre("reset 4001"));
}

TEST_F(SpdyTest, RefusesWhatIsNotSpdy) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"),                        // data, stream > 0
        std::string("\x80\x02\x00\x01\x00\x00\x00\x00", 8),           // version 2
        std::string("\x80\x03\x00\x01\x00\xff\xff\xff", 8),           // too long
        std::string("\x80\x03\x00\x63\x00\x00\x00\x00", 8),           // type 99
        std::string("\x80\x03\x00\x01\x00\x00\x00\x02\x00\x00", 10),  // too short
        std::string("\x00\x00\x00\x00\x00\x00\x00\x01x", 9)}) {       // stream 0
    Peer server(Role::kServer);
    const bool refused = !server.session.Receive(bytes).ok();
    EXPECT_EQ(refused, bytes[0] != 'G') << bytes;
    EXPECT_TRUE(server.log.empty());
  }
  // A stream with an even number from a client.
  Peer wrong(Role::kServer);
  wrong.session.Open({});
  EXPECT_FALSE(server_.session.Receive(wrong.session.TakeOutput()).ok());
}

TEST_F(SpdyTest, RefusesHeadersThatExpandTooFar) {
  client_.session.Open({{"x", std::string(HeaderCodec::kMaxBlockBytes + 1, 'a')}});
  EXPECT_FALSE(server_.session.Receive(client_.session.TakeOutput()).ok());
}

}  // namespace
}  // namespace drakkar::net::spdy
