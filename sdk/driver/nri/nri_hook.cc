#include "sdk/driver/nri/nri_hook.h"

#include <algorithm>
#include <utility>

#include "net/socket/socket.h"
#include "telemetry/log/log.h"

namespace drakkar::driver {
namespace {

constexpr Logger kLog("driver.nri");
constexpr Duration kFirstRetry = std::chrono::milliseconds(100);
constexpr Duration kLongestRetry = std::chrono::seconds(5);

}  // namespace

struct NriHook::Impl final : net::Socket::Handler, std::enable_shared_from_this<NriHook::Impl> {
  explicit Impl(Options given) : options(std::move(given)) {}

  void Connect() {
    retry.reset();
    connector = net::Connector::Start(options.loop, {.unix_path = options.socket_path},
                                      [this](Result<std::unique_ptr<net::Socket>> connected) {
                                        options.loop.Post([weak = weak_from_this()] {
                                          if (const auto self = weak.lock())
                                            self->connector.reset();
                                        });
                                        if (!connected.ok()) return Lost(connected.error());
                                        socket = *std::move(connected);
                                        Open();
                                      });
  }

  void Open() {
    rpc::NriPluginSession::Callbacks callbacks = options.callbacks;
    callbacks.on_ready = [this](const std::string& runtime) {
      registered = true;
      delay = kFirstRetry;
      reported.clear();
      kLog.Info("registered with the runtime", {{"runtime", runtime}, {"plugin", options.name}});
      if (options.callbacks.on_ready) options.callbacks.on_ready(runtime);
    };
    callbacks.on_failed = [this](const Error& error) { Drop(error); };
    session = std::make_unique<rpc::NriPluginSession>(
        rpc::NriPluginSession::Options{.loop = options.loop,
                                       .name = options.name,
                                       .index = options.index,
                                       .send =
                                           [this](std::string bytes) {
                                             if (socket != nullptr) socket->Write(bytes);
                                           },
                                       .callbacks = std::move(callbacks)});
    socket->Start(*this);
    session->Start();
  }

  void OnSocketData(std::string_view bytes) override {
    if (auto taken = session->Receive(bytes); !taken.ok()) Drop(taken.error());
  }
  void OnSocketClosed(const Error* error) override {
    Drop(error != nullptr ? *error : Unavailable("the runtime closed the connection"));
  }
  void OnSocketDrained() override {}

  // From the loop: it may be the session that says so.
  void Drop(const Error& error) {
    options.loop.Post([weak = weak_from_this(), error] {
      const auto self = weak.lock();
      if (self == nullptr || self->socket == nullptr) return;
      self->session->Close(error);
      self->session.reset();
      self->socket.reset();
      self->Lost(error);
    });
  }

  void Lost(const Error& error) {
    registered = false;
    // The same reason again is no news.
    if (reported != error.message) {
      reported = error.message;
      kLog.Warning("not registered with the runtime, trying again",
                   {{"socket", options.socket_path}, {"error", error.message}});
      if (options.callbacks.on_failed) options.callbacks.on_failed(error);
    }
    const Duration wait =
        delay + Duration(static_cast<std::int64_t>(static_cast<double>(delay.count()) * 0.2 *
                                                   options.random.Fraction()));
    delay = std::min(delay * 2, kLongestRetry);
    retry = options.loop.RunAfter(wait, [this] { Connect(); });
  }

  const Options options;
  bool registered = false;
  Duration delay = kFirstRetry;
  std::string reported;
  std::unique_ptr<net::Connector> connector;
  std::unique_ptr<net::Socket> socket;
  std::unique_ptr<rpc::NriPluginSession> session;
  TimerHandle retry;
};

NriHook::NriHook(Options options) : impl_(std::make_shared<Impl>(std::move(options))) {}

NriHook::~NriHook() {
  impl_->retry.reset();
  impl_->connector.reset();
  impl_->session.reset();
  impl_->socket.reset();
}

void NriHook::Start() {
  impl_->Connect();
}

bool NriHook::is_registered() const {
  return impl_->registered;
}

}  // namespace drakkar::driver
