#include <cstddef>
#include <cstdint>
#include <string>

#include "net/http2/client_session.h"
#include "net/http2/server_session.h"

namespace drakkar::net::http2 {
namespace {

class Server final : public ServerSession::Events {
 public:
  void OnRequest(StreamId stream, Request request) override {
    session->Respond(stream, 200, request.headers, Body{MakeSegment(request.target)},
                     stream % 4 == 1);
    session->Write(stream, MakeSegment("x"));
    if (stream % 8 == 3) session->Finish(stream);
  }
  void OnStreamClosed(StreamId, bool) override {}
  void OnRawData(std::string_view) override {}
  std::unique_ptr<ServerSession> session = NewServerSession(SessionLimits(), *this);
};

class Client final : public ClientSession::Events {
 public:
  void OnResponse(StreamId, int, Headers) override {}
  void OnData(StreamId, std::string_view) override {}
  void OnStreamEnd(StreamId, const Error*, bool) override {}
  void OnRawData(std::string_view) override {}
  std::unique_ptr<ClientSession> session = NewClientSession(SessionLimits(), *this);
};

}  // namespace
}  // namespace drakkar::net::http2

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string out;
  http2::Server server;
  if (server.session->Receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").ok()) {
    (void)server.session->Receive(text);
  }
  server.session->Send(out, 1 << 20);
  (void)server.session->IsFinished();
  http2::Client client;
  Request request;
  request.body = "b";
  (void)client.session->Submit(request, "https");
  client.session->Send(out, 1 << 30);
  (void)client.session->Receive(text);
  client.session->Send(out, 1 << 30);
  return 0;
}
