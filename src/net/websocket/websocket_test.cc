#include <gtest/gtest.h>

#include "base/text/text.h"
#include "net/websocket/handshake.h"
#include "net/websocket/session.h"

namespace drakkar::net::websocket {
namespace {

class Peer final : public Session::Events {
 public:
  explicit Peer(Role role, std::size_t limit = Session::kMaxMessageBytes)
      : session(role, random_, *this, limit) {}
  void OnMessage(MessageType type, std::string_view payload) override {
    log.push_back(StrCat(type == MessageType::kText ? "text " : "binary ", payload));
  }
  void OnClose(std::uint16_t code, std::string_view reason) override {
    log.push_back(StrCat("close ", code, " ", reason));
  }
  bool MayAnswerPing() const override { return answers_pings; }

  std::vector<std::string> log;
  bool answers_pings = true;

 private:
  SeededRandom random_{1};

 public:
  Session session;
};

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (int value : values) bytes += static_cast<char>(value);
  return bytes;
}

// A client's frame with an all-zero mask, so that the payload is readable.
std::string Frame(int first, std::string_view payload) {
  return Bytes({first, 0x80 | static_cast<int>(payload.size()), 0, 0, 0, 0}) + std::string(payload);
}

TEST(WebSocket, CarriesMessagesOfEverySizeInBothDirections) {
  for (std::size_t size : {0u, 1u, 125u, 126u, 65535u, 65536u, 1u << 20}) {
    Peer client(Role::kClient), server(Role::kServer);
    const std::string text(size, 'x');
    client.session.Send(MessageType::kBinary, text);
    server.session.Receive(client.session.TakeOutput());
    ASSERT_EQ(server.log, std::vector<std::string>{"binary " + text}) << size;
    server.session.Send(MessageType::kText, text.substr(0, size / 2), text.substr(size / 2));
    client.session.Receive(server.session.TakeOutput());
    ASSERT_EQ(client.log, std::vector<std::string>{"text " + text}) << size;
  }
}

TEST(WebSocket, ReadsTheExamplesOfTheStandard) {
  Peer server(Role::kServer);
  server.session.Receive(Bytes({0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58}));
  Peer client(Role::kClient);
  client.session.Receive(Bytes({0x01, 0x03, 0x48, 0x65, 0x6c}));
  client.session.Receive(Bytes({0x80, 0x02, 0x6c, 0x6f}));
  EXPECT_EQ(server.log, std::vector<std::string>{"text Hello"});
  EXPECT_EQ(client.log, std::vector<std::string>{"text Hello"});
}

TEST(WebSocket, AnswersPingsBetweenFragments) {
  Peer server(Role::kServer);
  server.session.Receive(Frame(0x02, "a") + Frame(0x89, "hey") + Frame(0x80, "b"));
  EXPECT_EQ(server.log, std::vector<std::string>{"binary ab"});
  EXPECT_EQ(server.session.TakeOutput(), Bytes({0x8a, 3}) + "hey");
  server.answers_pings = false;
  server.session.Receive(Frame(0x89, "hey"));
  EXPECT_EQ(server.session.TakeOutput(), "") << "too much waits already";
}

TEST(WebSocket, ClosesCleanlyFromEitherSide) {
  Peer client(Role::kClient), server(Role::kServer);
  server.session.Close(kNormalClosure, "done");
  server.session.Send(MessageType::kText, "too late");
  client.session.Receive(server.session.TakeOutput());
  EXPECT_EQ(client.log, std::vector<std::string>{"close 1000 done"});
  server.session.Receive(client.session.TakeOutput());
  EXPECT_EQ(server.log, std::vector<std::string>{"close 1000 "});
  EXPECT_FALSE(server.session.has_output());
  EXPECT_FALSE(server.session.is_receiving());
}

TEST(WebSocket, MessagesStillArriveAfterOurCloseFrame) {
  Peer server(Role::kServer);
  server.session.Close(kNormalClosure);
  server.session.Receive(Frame(0x82, "x") + Frame(0x88, ""));
  EXPECT_EQ(server.log, (std::vector<std::string>{"binary x", "close 1005 "}));
}

TEST(WebSocket, ClosesOnProtocolViolations) {
  const struct {
    std::string bytes;
    std::string log;
  } cases[] = {
      {Bytes({0x81, 0x01, 'a'}), "close 1002 a client's frame is not masked"},
      {Frame(0xc1, "a"), "close 1002 reserved bits are set"},
      {Frame(0x83, "a"), "close 1002 unknown opcode"},
      {Frame(0x8b, "a"), "close 1002 unknown opcode"},
      {Frame(0x80, "a"), "close 1002 a message fragment is out of order"},
      {Frame(0x01, "a") + Frame(0x01, "b"), "close 1002 a message fragment is out of order"},
      {Frame(0x09, "a"), "close 1002 a control frame is fragmented or too long"},
      {Bytes({0x89, 0xfe, 0, 126, 0, 0, 0, 0}),
       "close 1002 a control frame is fragmented or too long"},
      {Bytes({0x82, 0xfe, 0, 125, 0, 0, 0, 0}), "close 1002 a length is not in its shortest form"},
      {Frame(0x81, "\xff"), "close 1007 a text message is not UTF-8"},
      {Frame(0x88, "\x03"), "close 1002 a close code is truncated"},
      {Frame(0x88, "\x03\xed"), "close 1002 unknown close code"},
      {Bytes({0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
       "close 1009 a message may have at most 100 bytes"},
      {Frame(0x02, std::string(60, 'x')) + Frame(0x80, std::string(41, 'x')),
       "close 1009 a message may have at most 100 bytes"},
  };
  for (const auto& each : cases) {
    Peer server(Role::kServer, 100);
    server.session.Receive(each.bytes + Frame(0x82, "ignored"));
    EXPECT_EQ(server.log, std::vector<std::string>{each.log});
    EXPECT_EQ(server.session.TakeOutput().front(), '\x88');
  }
  Peer client(Role::kClient);
  client.session.Receive(Frame(0x81, "a"));
  EXPECT_EQ(client.log, std::vector<std::string>{"close 1002 a server's frame is masked"});
}

TEST(WebSocket, CompletesTheHandshakeOfTheStandard) {
  const Headers request = {
      {"Connection", "keep-alive, Upgrade"}, {"Upgrade", "websocket"},
      {"Sec-WebSocket-Version", "13"},       {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
      {"Sec-WebSocket-Protocol", "x, b"},    {"Sec-WebSocket-Protocol", "a"}};
  const std::string_view spoken[] = {"a", "b"};
  const Accepted accepted = Accept(request, spoken).value();
  EXPECT_EQ(accepted.protocol, "b") << "the client's order decides";
  EXPECT_EQ(accepted.headers.Get("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_EQ(CheckAnswer(accepted.headers, "dGhlIHNhbXBsZSBub25jZQ==").value(), "b");
  EXPECT_FALSE(CheckAnswer(accepted.headers, "AAAAIHNhbXBsZSBub25jZQ==").ok());
}

TEST(WebSocket, RejectsInvalidHandshakes) {
  const std::string_view spoken[] = {"a", "b"};
  auto refusal = [&](std::string_view name, std::string_view value) {
    Headers request = RequestHeaders("dGhlIHNhbXBsZSBub25jZQ==", "a");
    EXPECT_TRUE(Accept(request, spoken).ok());
    request.Set(std::string(name), std::string(value));
    auto accepted = Accept(request, spoken);
    return accepted.ok() ? "" : accepted.error().message;
  };
  EXPECT_EQ(refusal("Upgrade", "SPDY/3.1"), "the request is not a WebSocket upgrade");
  EXPECT_EQ(refusal("Sec-WebSocket-Version", "8"),
            "only version 13 of the WebSocket protocol is supported");
  EXPECT_EQ(refusal("Sec-WebSocket-Key", "dGhl"), "Sec-WebSocket-Key is not 16 bytes in base64");
  EXPECT_EQ(refusal("Sec-WebSocket-Protocol", "c"),
            "none of the WebSocket protocols \"c\" is supported; supported are a, b");
}

}  // namespace
}  // namespace drakkar::net::websocket
