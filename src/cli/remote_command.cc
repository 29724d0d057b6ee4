#include "cli/remote_command.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "api/json/reader.h"
#include "api/meta/status.h"
#include "base/env/random.h"
#include "base/hash/base64.h"
#include "base/os/descriptor_watch.h"
#include "base/text/text.h"
#include "net/websocket/channels.h"
#include "net/websocket/handshake.h"
#include "net/websocket/session.h"

namespace drakkar::cli {
namespace {

namespace ws = net::websocket;

// How much input is read ahead of a slow server.
constexpr std::size_t kMaxPending = 256 << 10;
constexpr std::size_t kChunkBytes = 32 << 10;
constexpr Duration kPingEvery = std::chrono::seconds(5);

// Puts the terminal into raw mode until destroyed.
class RawMode {
 public:
  explicit RawMode(int descriptor) : descriptor_(descriptor) {
    if (::tcgetattr(descriptor, &before_) != 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    changed_ = ::tcsetattr(descriptor, TCSADRAIN, &raw) == 0;
  }
  ~RawMode() {
    if (changed_) ::tcsetattr(descriptor_, TCSADRAIN, &before_);
  }

 private:
  const int descriptor_;
  termios before_{};
  bool changed_ = false;
};

class Running final : public RemoteCommand, private ws::Session::Events {
 public:
  Running(UvLoop& loop, Console& console, const RemoteCommandOptions& options, Refused refused,
          Done done)
      : loop_(loop),
        console_(console),
        options_(options),
        refused_(std::move(refused)),
        done_(std::move(done)),
        session_(ws::Role::kClient, RealRandom(), *this) {}

  void Connect(net::HttpClient& http, net::ClientRequest request) {
    std::string nonce;
    for (int i = 0; i < 2; ++i) {
      for (std::uint64_t bits = RealRandom().Next(), j = 0; j < 8; ++j, bits >>= 8) {
        nonce += static_cast<char>(bits & 0xff);
      }
    }
    key_ = Base64Encode(nonce);
    for (const auto& [name, value] :
         ws::RequestHeaders(key_, StrCat(ws::kChannelProtocolV5, ", ", ws::kChannelProtocolV4))) {
      request.headers.Set(name, value);
    }
    handle_ = http.Upgrade(std::move(request), [this](Result<net::UpgradedConnection> upgraded) {
      OnAnswer(std::move(upgraded));
    });
  }

 private:
  void OnAnswer(Result<net::UpgradedConnection> upgraded) {
    if (!upgraded.ok()) return End(upgraded.error());
    const net::Response& answer = upgraded->response;
    if (!upgraded->stream) return End(refused_(answer.status, answer.body));
    Result<std::string> protocol = ws::CheckAnswer(answer.headers, key_);
    if (!protocol.ok()) return End(protocol.error());
    can_close_input_ = *protocol == ws::kChannelProtocolV5;
    stream_ = std::move(upgraded->stream);
    stream_->OnDrained([this] { ReadInput(); });
    const int input = console_.input_descriptor();
    if (options_.terminal && input >= 0) {
      raw_mode_ = std::make_unique<RawMode>(input);
      SendSize();
      resized_ = loop_.OnSignal(SIGWINCH, [this] { SendSize(); });
    }
    ArmPing();
    if (options_.standard_input) {
      if (input < 0) {
        // No descriptor: read everything at once.
        Result<std::string> text = console_.ReadInput();
        if (text.ok()) unsent_ = std::move(*text);
      }
      ReadInput();
    }
    Flush();
    stream_->Start(
        [this](std::string_view bytes) {
          session_.Receive(bytes);
          Flush();
        },
        [this] { End(Unavailable("the connection to the server was lost")); });
  }

  void ReadInput() {
    if (!options_.standard_input || input_ended_ || !stream_) return;
    const int input = console_.input_descriptor();
    while (stream_->pending_bytes() < kMaxPending) {
      if (input < 0) {
        if (unsent_.empty()) return EndInput();
        SendInput(std::string_view(unsent_).substr(0, kChunkBytes));
        unsent_.erase(0, kChunkBytes);
        continue;
      }
      if (!watch_ && !is_file_) {
        watch_ = WatchReadable(loop_, input, [this] { ReadOnce(); });
        // Regular files cannot be polled, and are always readable.
        is_file_ = watch_ == nullptr;
      }
      if (!is_file_) return;
      if (!ReadOnce()) return;
    }
    watch_.reset();  // resumes once the server has consumed the data
  }

  // Returns false at the end of input.
  bool ReadOnce() {
    char space[kChunkBytes];
    const ssize_t size = ::read(console_.input_descriptor(), space, sizeof(space));
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (size <= 0) {
      EndInput();
      return false;
    }
    SendInput(std::string_view(space, static_cast<std::size_t>(size)));
    if (stream_->pending_bytes() >= kMaxPending) watch_.reset();
    return true;
  }

  void SendInput(std::string_view bytes) {
    session_.Send(ws::MessageType::kBinary, std::string_view(&ws::kChannelInput, 1), bytes);
    Flush();
  }

  void EndInput() {
    input_ended_ = true;
    watch_.reset();
    if (!can_close_input_) return;
    session_.Send(ws::MessageType::kBinary, std::string_view(&ws::kChannelClose, 1),
                  std::string_view(&ws::kChannelInput, 1));
    Flush();
  }

  void SendSize() {
    winsize size{};
    if (::ioctl(console_.input_descriptor(), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return;
    session_.Send(ws::MessageType::kBinary, std::string_view(&ws::kChannelResize, 1),
                  StrCat(R"({"Width":)", size.ws_col, R"(,"Height":)", size.ws_row, "}"));
    Flush();
  }

  void ArmPing() {
    ping_ = loop_.RunAfter(kPingEvery, [this] {
      session_.Ping();
      Flush();
      ArmPing();
    });
  }

  void OnMessage(ws::MessageType, std::string_view payload) override {
    if (payload.empty()) return;
    const char channel = payload.front();
    payload.remove_prefix(1);
    if (channel == ws::kChannelOutput) {
      console_.Out(payload);
    } else if (channel == ws::kChannelErrorOutput) {
      console_.Err(payload);
    } else if (channel == ws::kChannelStatus) {
      status_.append(payload);
    }
  }

  void OnClose(std::uint16_t code, std::string_view reason) override {
    Flush();
    if (!status_.empty()) return End(ExitCodeOf(status_));
    End(Unavailable(StrCat("the server closed the connection (", code, " ", reason,
                           ") without the command's exit status")));
  }

  void Flush() {
    if (stream_ && session_.has_output()) stream_->Write(session_.TakeOutput());
  }

  void End(Result<int> result) {
    raw_mode_.reset();
    watch_.reset();
    ping_.reset();
    resized_.reset();
    if (done_) std::exchange(done_, nullptr)(std::move(result));
  }

  UvLoop& loop_;
  Console& console_;
  const RemoteCommandOptions options_;
  Refused refused_;
  Done done_;
  std::string key_;
  ws::Session session_;
  std::unique_ptr<net::RequestHandle> handle_;
  std::unique_ptr<net::RawStream> stream_;
  std::unique_ptr<RawMode> raw_mode_;
  std::unique_ptr<DescriptorWatch> watch_;
  TimerHandle ping_;
  TimerHandle resized_;
  std::string unsent_;
  std::string status_;
  bool can_close_input_ = false;
  bool input_ended_ = false;
  bool is_file_ = false;
};

}  // namespace

std::unique_ptr<RemoteCommand> RemoteCommand::Start(UvLoop& loop, net::HttpClient& http,
                                                    Console& console, net::ClientRequest request,
                                                    const RemoteCommandOptions& options,
                                                    Refused refused, Done done) {
  auto running =
      std::make_unique<Running>(loop, console, options, std::move(refused), std::move(done));
  running->Connect(http, std::move(request));
  return running;
}

Result<int> ExitCodeOf(std::string_view status_json) {
  Result<api::TreePtr> tree = api::ParseJson(status_json);
  if (!tree.ok())
    return Unavailable(StrCat("cannot parse the command's exit status: ", status_json));
  const api::Value root = (*tree)->root();
  if (root["status"].str() == "Success") return 0;
  if (root["reason"].str() == "NonZeroExitCode") {
    for (api::Value cause : root["details"]["causes"].elements()) {
      const auto code = ParseInt64(cause["message"].str());
      if (cause["reason"].str() == "ExitCode" && code && *code > 0 && *code < 256)
        return static_cast<int>(*code);
    }
  }
  return api::ErrorFromStatus(api::Status::FromTree(root));
}

}  // namespace drakkar::cli
