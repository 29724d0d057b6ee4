// What a client sends while a command runs, and the Status at its end. Messages are a channel, a
// length and bytes; an input that begins with '{' is a Status.
#include "node/streaming/remote_command.h"

#include <cstddef>
#include <cstdint>

#include "base/result/check.h"
#include "base/testing/seeded_loop.h"
#include "cli/remote_command.h"
#include "net/websocket/channels.h"

namespace drakkar::node {
namespace {

namespace ws = net::websocket;

class Stream final : public net::RawStream {
 public:
  explicit Stream(std::function<void(std::string_view)>& on_data) : on_data_(on_data) {}
  ~Stream() override { on_data_ = nullptr; }
  void Start(std::function<void(std::string_view)> on_data, std::function<void()>) override {
    on_data_ = std::move(on_data);
  }
  void Write(std::string_view) override {}
  std::size_t pending_bytes() const override { return 0; }
  void SetReading(bool) override {}
  void OnDrained(std::function<void()>) override {}

 private:
  std::function<void(std::string_view)>& on_data_;
};

struct Streams final : ProcessStreams {
  void WriteInput(std::string_view) override {}
  std::size_t pending_input() const override { return 0; }
  void CloseInput() override {}
  void Resize(std::uint16_t columns, std::uint16_t rows) override {
    CHECK(columns > 0 && rows > 0);
  }
  void SetReading(bool) override {}
};

struct Client final : ws::Session::Events {
  void OnMessage(ws::MessageType, std::string_view) override {}
  void OnClose(std::uint16_t, std::string_view) override {}
};

void Talk(std::string_view text) {
  SeededLoop loop;
  std::function<void(std::string_view)> send;
  std::unique_ptr<RemoteCommand> command;
  command = std::make_unique<RemoteCommand>(
      RemoteCommand::Options{
          .loop = loop,
          .streams = {.standard_input = true, .standard_output = true, .terminal = true},
          .protocol = std::string(ws::kChannelProtocolV5),
          .what = "executing command",
          .on_gone = [&] { command.reset(); }},
      std::make_unique<Stream>(send));
  command->Start([](ProcessStreams::Events&) -> Result<std::unique_ptr<ProcessStreams>> {
    return std::make_unique<Streams>();
  });
  Client nobody;
  SeededRandom random(3);
  ws::Session client(ws::Role::kClient, random, nobody);
  while (text.size() > 1 && send) {
    const std::size_t size = static_cast<unsigned char>(text[1]);
    client.Send(ws::MessageType::kBinary, text.substr(0, 1), text.substr(2, size));
    send(client.TakeOutput());
    loop.RunUntilIdle();
    text.remove_prefix(std::min(text.size(), size + 2));
  }
}

}  // namespace
}  // namespace drakkar::node

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!text.starts_with('{')) {
    node::Talk(text);
    return 0;
  }
  const auto code = cli::ExitCodeOf(text);
  const auto again = cli::ExitCodeOf(node::RemoteCommandStatus(code, "executing command"));
  CHECK(code.ok() == again.ok());
  if (code.ok()) CHECK(*code == *again && *code >= 0 && *code < 256);
  return 0;
}
