// Feeds the same bytes at once and one by one: events and output must be equal. What a session
// sends, the other side can read.
#include <cstddef>
#include <cstdint>

#include "base/result/check.h"
#include "net/spdy/session.h"

namespace drakkar::net::spdy {
namespace {

class Peer final : public Session::Events {
 public:
  explicit Peer(Role role) : session(role, *this) {}
  void OnStream(StreamId id, const Headers& headers) override {
    log += 's';
    for (const auto& [name, value] : headers) log += name + value;
    session.Reply(id);
  }
  void OnReply(StreamId id) override { log += 'r' + std::to_string(id); }
  void OnData(StreamId id, std::string_view bytes) override { data[id] += bytes; }
  void OnFinish(StreamId id) override {
    log += 'f' + std::to_string(id);
    session.Finish(id);
  }
  void OnReset(StreamId id) override { log += 'x' + std::to_string(id); }
  void OnGoAway() override { log += 'g'; }
  std::string log;
  std::map<StreamId, std::string> data;
  Session session;
};

}  // namespace
}  // namespace drakkar::net::spdy

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace drakkar::net::spdy;
  const std::string_view all(reinterpret_cast<const char*>(bytes), size);
  for (const Role role : {Role::kServer, Role::kClient}) {
    Peer whole(role), split(role);
    const bool ok = whole.session.Receive(all).ok();
    bool split_ok = true;
    for (std::size_t i = 0; i < size && split_ok; ++i) {
      split_ok = split.session.Receive(all.substr(i, 1)).ok();
    }
    CHECK(ok == split_ok);
    CHECK(whole.log == split.log);
    CHECK(whole.data == split.data);
    CHECK(whole.session.open_streams() <= Session::kMaxStreams);
    const std::string answer = whole.session.TakeOutput();
    CHECK(answer == split.session.TakeOutput());
    Peer other(role == Role::kServer ? Role::kClient : Role::kServer);
    CHECK(other.session.Receive(answer).ok());
  }
  return 0;
}
