// The server with foreign peers: raw sockets that misbehave, and curl.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env/file_system.h"
#include "net/testing/loopback.h"

namespace drakkar::net {
namespace {

using ::testing::HasSubstr;
using testing::Loopback;
using ::testing::StartsWith;
using testing::TestCertificates;
using testing::TestServerTls;

// Sends `bytes` and returns what is received until the server closes.
std::string RawExchange(std::uint16_t port, std::string_view bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  timeval limit{10, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  if (!bytes.empty()) {
    EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string answer;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  EXPECT_TRUE(count == 0 || errno == ECONNRESET) << "the server did not close";
  close(fd);
  return answer;
}

void Greet(ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
  const auto& peer = request.connection->peer;
  writer->Send(200, Headers{{"Content-Type", "text/plain"}},
               StrCat("hello ", peer ? peer->common_name : "nobody", " over ",
                      request.connection->is_http2 ? "2" : "1", " body ", request.body.size()));
}

TEST(BadPeers, TlsOnThePlainPortGets400) {
  Loopback net;
  net.handler.function = Greet;
  const std::string hello("\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", 11);
  EXPECT_THAT(RawExchange(net.port, hello), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_EQ(net.Get("/").value().status, 200);
}

TEST(BadPeers, PlainHttpOnTheTlsPortGetsAnExplanation) {
  HttpServerOptions options;
  options.tls = TestServerTls();
  Loopback net(std::move(options));
  net.handler.function = Greet;
  EXPECT_THAT(RawExchange(net.port, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
              HasSubstr("Client sent an HTTP request to an HTTPS server."));
  RawExchange(net.port, std::string(500, '\xff'));
  EXPECT_EQ(net.Get("/").value().status, 200);
}

TEST(BadPeers, GarbageAfterTheHttp2PrefaceEndsOnlyThatConnection) {
  Loopback net;
  net.handler.function = Greet;
  RawExchange(net.port, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(200, '\x55'));
  EXPECT_EQ(net.Get("/").value().status, 200);
}

TEST(BadPeers, ASilentPeerIsClosedAfterTheHandshakeTimeout) {
  for (const bool tls : {false, true}) {
    HttpServerOptions options;
    options.handshake_timeout = std::chrono::milliseconds(30);
    if (tls) options.tls = TestServerTls();
    Loopback net(std::move(options));
    EXPECT_EQ(RawExchange(net.port, ""), "");
  }
}

TEST(BadPeers, ARequestThatNeverEndsIsClosedAfterTheRequestTimeout) {
  HttpServerOptions options;
  options.request_timeout = std::chrono::milliseconds(30);
  Loopback net(std::move(options));
  EXPECT_EQ(RawExchange(net.port, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab"), "");
}

TEST(BadPeers, WritingToAClosedPeerEndsOnlyThatConnection) {
  std::promise<bool> closed;
  Loopback net;
  std::promise<void> arrived;
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    net.held = std::move(writer);
    net.held->OnClosed([&](bool completed) { closed.set_value(completed); });
    net.held->StartStream(200, {});
    arrived.set_value();
  };
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(net.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  ASSERT_EQ(send(fd, kRequest.data(), kRequest.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(kRequest.size()));
  testing::Await(arrived.get_future());
  net.RunSync([&] {
    // A reset while the server has more to write than the kernel accepts.
    const linger reset{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
    net.held->Write(MakeSegment(std::string(16 << 20, 'x')));
  });
  EXPECT_FALSE(testing::Await(closed.get_future()));
  net.handler.function = Greet;
  EXPECT_EQ(net.Get("/").value().status, 200);
}

struct Output {
  int status = 0;
  std::string text;
};

Output Shell(const std::string& command) {
  Output output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (std::size_t count = fread(buffer, 1, sizeof(buffer), pipe)) {
    output.text.append(buffer, count);
  }
  output.status = WEXITSTATUS(pclose(pipe));
  return output;
}

class Curl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Shell("curl --version").text.find("HTTP2") == std::string::npos) {
      GTEST_SKIP() << "curl with HTTP/2 is not installed";
    }
    HttpServerOptions options;
    options.tls = TestServerTls();
    net_ = std::make_unique<Loopback>(std::move(options));
    net_->RunSync([&] { net_->handler.function = Greet; });
    prefix_ = StrCat(::testing::TempDir(), "net_curl_", ::getpid());
    Write("ca", TestCertificates::Get().ca.certificate_pem);
    Write("crt", TestCertificates::Get().client.certificate_pem);
    Write("key", TestCertificates::Get().client.key_pem);
    base_ = StrCat("curl -sS --noproxy '*' --max-time 20 --cacert ", prefix_, ".ca ");
  }
  void TearDown() override {
    for (const char* name : {".ca", ".crt", ".key", ".body"}) {
      (void)RealFileSystem().Remove(prefix_ + name);
    }
  }
  void Write(const char* name, const std::string& text) {
    EXPECT_TRUE(RealFileSystem().WriteFile(StrCat(prefix_, ".", name), text, 0600).ok());
  }

  std::unique_ptr<Loopback> net_;
  std::string prefix_;
  std::string base_;
};

TEST_F(Curl, SpeaksBothVersions) {
  EXPECT_EQ(Shell(base_ + "--http2 " + net_->Url("/")).text, "hello nobody over 2 body 0");
  EXPECT_EQ(Shell(base_ + "--http1.1 " + net_->Url("/")).text, "hello nobody over 1 body 0");
}

TEST_F(Curl, PresentsAClientCertificate) {
  EXPECT_EQ(
      Shell(StrCat(base_, "--cert ", prefix_, ".crt --key ", prefix_, ".key ", net_->Url("/")))
          .text,
      "hello jane over 2 body 0");
  EXPECT_EQ(Shell(StrCat(base_, "--tls-max 1.2 --cert ", prefix_, ".crt --key ", prefix_, ".key ",
                         net_->Url("/")))
                .text,
            "hello jane over 2 body 0");
}

TEST_F(Curl, SendsBodiesUpToTheLimit) {
  Write("body", std::string(3 * 1024 * 1024, 'b'));
  const std::string send =
      StrCat("-H 'Expect: 100-continue' --data-binary @", prefix_, ".body ", net_->Url("/"));
  EXPECT_EQ(Shell(base_ + "--http2 " + send).text, "hello nobody over 2 body 3145728");
  EXPECT_EQ(Shell(base_ + "--http1.1 " + send).text, "hello nobody over 1 body 3145728");
  EXPECT_EQ(Shell(base_ + "--http1.1 -H 'Transfer-Encoding: chunked' " + send).text,
            "hello nobody over 1 body 3145728");
  Write("body", std::string(3 * 1024 * 1024 + 1, 'b'));
  EXPECT_THAT(Shell(base_ + "-o /dev/null -w '%{http_code}' --http1.1 " + send).text,
              HasSubstr("413"));
  EXPECT_THAT(Shell(base_ + "-o /dev/null -w '%{http_code}' --http2 " + send).text,
              HasSubstr("413"));
}

TEST_F(Curl, ReadsAStreamInBothVersions) {
  const auto answer = [](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    writer->StartStream(200, {});
    for (int i = 0; i < 3; ++i) writer->Write(MakeSegment(StrCat("event ", i, "\n")));
    writer->Finish();
  };
  net_->RunSync([&] { net_->handler.function = answer; });
  for (const char* version : {"--http2 ", "--http1.1 ", "--http1.0 "}) {
    const Output output = Shell(base_ + version + net_->Url("/watch"));
    EXPECT_EQ(output.text, "event 0\nevent 1\nevent 2\n") << version;
    EXPECT_EQ(output.status, 0);
  }
}

}  // namespace
}  // namespace drakkar::net
