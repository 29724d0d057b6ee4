#include "apiserver/http/websocket_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "apiserver/http/websocket_token.h"
#include "apiserver/testing/https_fixture.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/websocket/session.h"

namespace drakkar::apiserver {
namespace {

constexpr char kKey[] = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr char kMaps[] = "/api/v1/namespaces/default/configmaps";

// A client that speaks WebSocket, and a server without credentials of its own.
class WebSocketWatchTest : public HttpsTest, private net::websocket::Session::Events {
 protected:
  WebSocketWatchTest() { Serve(); }
  ~WebSocketWatchTest() override {
    stream_.reset();
    http_.reset();
    server_.reset();
    RunOnce();
    frontend_.reset();
    RunOnce();
  }

  // The status of the answer; after 101 messages are collected.
  int Open(const std::string& path, net::Headers headers = {}) {
    net::ClientRequest request;
    request.url = access_.server + path;
    request.headers = {{"Connection", "Upgrade"},
                       {"Upgrade", "websocket"},
                       {"Sec-WebSocket-Version", "13"},
                       {"Sec-WebSocket-Key", kKey}};
    for (const auto& [name, value] : headers) request.headers.Set(name, value);
    std::optional<Result<net::UpgradedConnection>> answer;
    auto handle = http_->Upgrade(
        request, [&](Result<net::UpgradedConnection> upgraded) { answer = std::move(upgraded); });
    RunUntil([&] { return answer.has_value(); });
    if (!answer || !answer->ok()) return 0;
    protocol_ = (*answer)->response.headers.Get("sec-websocket-protocol");
    stream_ = std::move((*answer)->stream);
    if (stream_ == nullptr) return (*answer)->response.status;
    stream_->Start(
        [this](std::string_view bytes) {
          session_.Receive(bytes);
          if (session_.has_output()) stream_->Write(session_.TakeOutput());
        },
        [this] { is_closed_ = true; });
    return (*answer)->response.status;
  }
  void MakeMap(const std::string& name) {
    EXPECT_EQ(Post(kMaps, StrCat(R"({"metadata":{"name":")", name, R"("}})")).status, 201);
  }
  static std::string Shown(const std::string& event) {
    const Result<api::TreePtr> tree = api::ParseJson(event);
    if (!tree.ok()) return event;
    return StrCat((*tree)->root()["type"].str(), " ",
                  (*tree)->root()["object"]["metadata"]["name"].str());
  }

  void OnMessage(net::websocket::MessageType type, std::string_view payload) override {
    types_.push_back(type);
    messages_.emplace_back(payload);
  }
  void OnClose(std::uint16_t code, std::string_view) override { code_ = code; }

  net::websocket::Session session_{net::websocket::Role::kClient, random_, *this};
  std::unique_ptr<net::RawStream> stream_;
  std::vector<std::string> messages_;
  std::vector<net::websocket::MessageType> types_;
  std::string protocol_;
  std::uint16_t code_ = 0;
  bool is_closed_ = false;
};

TEST_F(WebSocketWatchTest, EachEventIsOneTextMessage) {
  MakeMap("a");
  ASSERT_EQ(Open(StrCat(kMaps, "?watch=true")), 101);
  EXPECT_EQ(protocol_, "");
  RunUntil([&] { return messages_.size() == 1; });
  MakeMap("b");
  MakeMap("c");
  RunUntil([&] { return messages_.size() == 3; });
  EXPECT_EQ(Shown(messages_[0]), "ADDED a");
  EXPECT_EQ(Shown(messages_[1]), "ADDED b");
  EXPECT_EQ(Shown(messages_[2]), "ADDED c");
  EXPECT_THAT(types_, testing::Each(net::websocket::MessageType::kText));
}

TEST_F(WebSocketWatchTest, ProtobufEventsAreBinaryMessagesWithoutLength) {
  MakeMap("a");
  ASSERT_EQ(Open(StrCat(kMaps, "?watch=true"),
                 {{"Accept", "application/vnd.kubernetes.protobuf;stream=watch"}}),
            101);
  RunUntil([&] { return messages_.size() == 1; });
  MakeMap("b");
  RunUntil([&] { return messages_.size() == 2; });
  EXPECT_THAT(types_, testing::Each(net::websocket::MessageType::kBinary));
  // A WatchEvent: field 1 is the type.
  EXPECT_TRUE(
      messages_[0].starts_with("\x0a\x05"
                               "ADDED"));
}

TEST_F(WebSocketWatchTest, TheTimeoutClosesTheSocket) {
  ASSERT_EQ(Open(StrCat(kMaps, "?watch=true&timeoutSeconds=1")), 101);
  RunUntil([&] { return is_closed_; });
  EXPECT_EQ(code_, net::websocket::kNormalClosure);
}

TEST_F(WebSocketWatchTest, AnErrorIsAnOrdinaryAnswer) {
  EXPECT_EQ(Open(StrCat(kMaps, "?watch=true&resourceVersion=x")), 400);
  EXPECT_EQ(Open(StrCat(kMaps, "?watch=true"), {{"Sec-WebSocket-Version", "8"}}), 400);
}

TEST_F(WebSocketWatchTest, AClientThatLeavesEndsTheWatch) {
  ASSERT_EQ(Open(StrCat(kMaps, "?watch=true")), 101);
  const WatchCache* maps = core_->FindCache("", "configmaps");
  RunUntil([&] { return maps->watcher_count() == 1; });
  stream_.reset();
  RunUntil([&] { return maps->watcher_count() == 0; });
}

std::string TokenProtocol(std::string_view token) {
  std::string text = Base64Encode(token);
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  while (text.ends_with('=')) text.pop_back();
  return StrCat(kTokenProtocol, text);
}

net::Headers Offer(const std::string& protocols) {
  return {
      {"Connection", "Upgrade"}, {"Upgrade", "websocket"}, {"Sec-WebSocket-Protocol", protocols}};
}

TEST(WebSocketTokenTest, BecomesABearerToken) {
  net::Headers headers = Offer(StrCat("v5.channel.k8s.io, ", TokenProtocol("ab?>~"), ", other"));
  EXPECT_FALSE(TakeWebSocketToken(headers).has_value());
  EXPECT_EQ(headers.Get("authorization"), "Bearer ab?>~");
  EXPECT_EQ(headers.Get("sec-websocket-protocol"), "v5.channel.k8s.io, other");
}

TEST(WebSocketTokenTest, IsRefusedIfItIsAloneDoubledOrNoText) {
  for (const std::string& protocols :
       {TokenProtocol("a"), StrCat(TokenProtocol("a"), ",", TokenProtocol("b"), ",x"),
        StrCat(kTokenProtocol, "!!,x"), StrCat(kTokenProtocol, ",x"),
        StrCat(TokenProtocol("a\nb"), ",x")}) {
    net::Headers headers = Offer(protocols);
    const auto failure = TakeWebSocketToken(headers);
    ASSERT_TRUE(failure.has_value()) << protocols;
    EXPECT_EQ(failure->code, 401);
  }
}

TEST(WebSocketTokenTest, OtherRequestsStayAsTheyAre) {
  net::Headers plain = {{"Sec-WebSocket-Protocol", StrCat(TokenProtocol("a"), ",x")}};
  const net::Headers before = plain;
  EXPECT_FALSE(TakeWebSocketToken(plain).has_value());
  EXPECT_EQ(plain, before);
  net::Headers without = Offer("v5.channel.k8s.io");
  const net::Headers without_before = without;
  EXPECT_FALSE(TakeWebSocketToken(without).has_value());
  EXPECT_EQ(without, without_before);
}

}  // namespace
}  // namespace drakkar::apiserver
