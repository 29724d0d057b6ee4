// Feeds the same bytes at once and one by one; the output must be equal.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result/check.h"
#include "net/http1/client_session.h"
#include "net/http1/server_session.h"

namespace drakkar::net::http1 {
namespace {

class Server final : public ServerSession::Events {
 public:
  void OnRequest(StreamId stream, Request request) override {
    if (request.target == "/up" && session->Upgrade(stream, {})) return;
    log += request.target + request.body + "|";
    session->Respond(stream, 200, {}, Body{MakeSegment(std::move(request.body))}, true);
  }
  void OnStreamClosed(StreamId, bool) override {}
  void OnRawData(std::string_view bytes) override { log.append(bytes); }
  std::unique_ptr<ServerSession> session = NewServerSession(SessionLimits(), *this);
  std::string log;
};

class Client final : public ClientSession::Events {
 public:
  void OnResponse(StreamId, int status, Headers) override { log += std::to_string(status); }
  void OnData(StreamId, std::string_view bytes) override { log.append(bytes); }
  void OnStreamEnd(StreamId, const Error*, bool) override { log += "."; }
  void OnRawData(std::string_view bytes) override { log.append(bytes); }
  std::unique_ptr<ClientSession> session = NewClientSession(SessionLimits(), *this);
  std::string log;
};

}  // namespace
}  // namespace drakkar::net::http1

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string logs[2];
  for (const bool split : {false, true}) {
    http1::Server server;
    std::string out;
    if (split) {
      for (std::size_t i = 0; i < size; ++i) {
        (void)server.session->Receive(text.substr(i, 1));
        server.session->Send(out, 1 << 30);
      }
    } else {
      (void)server.session->Receive(text);
      server.session->Send(out, 1 << 30);
    }
    if (size < 100'000) logs[split ? 1 : 0] = server.log + out;
  }
  CHECK(logs[0] == logs[1]);
  http1::Client client;
  Request request;
  request.headers.Add("Connection", "Upgrade");
  (void)client.session->Submit(request, "http");
  std::string out;
  client.session->Send(out, 1 << 20);
  (void)client.session->Receive(text);
  client.session->ReceiveEnd();
  return 0;
}
