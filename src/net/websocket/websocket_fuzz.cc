// Feeds the same bytes at once and one by one: the events and the output must be equal, and the
// other side must be able to read the output.
#include <cstddef>
#include <cstdint>

#include "base/result/check.h"
#include "net/websocket/session.h"

namespace drakkar::net::websocket {
namespace {

class Peer final : public Session::Events {
 public:
  Peer(Role role, std::size_t limit) : session(role, random, *this, limit) {}
  void OnMessage(MessageType type, std::string_view payload) override {
    log += type == MessageType::kText ? 't' : 'b';
    log.append(payload);
    session.Send(type, payload);
  }
  void OnClose(std::uint16_t code, std::string_view reason) override {
    CHECK(!closed);
    closed = true;
    close_code = code;
    log += std::to_string(code);
    log.append(reason);
  }
  SeededRandom random{7};
  Session session;
  std::string log;
  bool closed = false;
  std::uint16_t close_code = 0;
};

}  // namespace
}  // namespace drakkar::net::websocket

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::net::websocket;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const Role role : {Role::kServer, Role::kClient}) {
    Peer whole(role, 1000), split(role, 1000);
    whole.session.Receive(bytes);
    for (std::size_t i = 0; i < size; ++i) split.session.Receive(bytes.substr(i, 1));
    CHECK(whole.log == split.log);
    const std::string answer = whole.session.TakeOutput();
    CHECK(answer == split.session.TakeOutput());
    Peer other(role == Role::kServer ? Role::kClient : Role::kServer, 1000);
    other.session.Receive(answer);
    CHECK(!other.closed || whole.closed);
    CHECK(!other.closed || other.close_code == whole.close_code);
  }
  return 0;
}
