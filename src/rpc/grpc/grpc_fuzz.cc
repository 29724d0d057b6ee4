#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result/check.h"
#include "rpc/grpc/client_session.h"
#include "rpc/grpc/server_session.h"

namespace {

using namespace drakkar::rpc::grpc;

// Answers everything, some of it late and in pieces.
void Serve(ServerSession& server) {
  for (ServerSession::Event& event : server.TakeEvents()) {
    if (event.type == ServerSession::EventType::kCancelled) continue;
    server.SendMessage(event.stream, event.request);
    if (event.stream % 4 == 1) server.Finish(event.stream, {kInternal, event.method});
    if (event.stream % 8 == 3) server.Abort(event.stream, {});
  }
}

template <typename Session, typename Act>
void Feed(Session& session, std::string_view bytes, std::size_t cut, Act act) {
  for (const std::string_view part : {bytes.substr(0, cut), bytes.substr(cut)}) {
    const bool good = session.Receive(part).ok();
    act();
    std::string out;
    session.Send(out, 1 << 20);
    if (!good) return;
  }
}

}  // namespace

// Arbitrary bytes, split anywhere, to either side never cause a crash. Texts and timeouts survive a
// round trip.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t cut = data[1] % (bytes.size() + 1);
  CHECK(DecodeText(EncodeText(bytes)) == bytes);
  if (const auto timeout = ParseTimeout(bytes); timeout && timeout->count() > 0) {
    CHECK(ParseTimeout(EncodeTimeout(*timeout)) >= *timeout);
  }
  if (data[0] % 2 == 0) {
    // The preface is supplied, because the fuzzer would take too long to find it.
    const auto server = NewServerSession(
        [](std::string_view method) {
          return method.size() % 2 == 0 ? drakkar::Result<void>(drakkar::NotFound("unknown"))
                                        : drakkar::Ok();
        },
        [](std::string_view method) { return method.size() % 3 == 0; });
    static_cast<void>(server->Receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    Feed(*server, bytes, cut, [&] { Serve(*server); });
    server->Shutdown({kUnavailable, "stopping"});
    std::string out;
    server->Send(out, 1 << 20);
  } else {
    const auto client = NewClientSession();
    for (int i = 0; i < 3; ++i)
      static_cast<void>(client->Start({"/a/b", "localhost", {}}, "request"));
    const auto stream = client->Open({"/a/c", "localhost", {}});
    std::string out;
    client->Send(out, 1 << 20);
    Feed(*client, bytes, cut, [&] {
      static_cast<void>(client->TakeEvents());
      if (data[0] % 4 == 1) client->Cancel(3);
      if (stream.ok()) client->SendMessage(*stream, "more");
      if (stream.ok() && data[0] % 8 == 5) client->FinishSending(*stream);
    });
  }
  return 0;
}
