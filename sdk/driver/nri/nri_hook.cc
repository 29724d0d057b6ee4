#include "sdk/driver/nri/nri_hook.h"

#include <utility>

#include "base/exec/backoff.h"
#include "base/exec/lifetime.h"
#include "net/socket/socket.h"
#include "telemetry/log/log.h"

namespace drakkar::driver {
namespace {

constexpr Logger kLog("driver.nri");
constexpr Backoff::Options kRetry{
    .initial = std::chrono::milliseconds(100), .max = std::chrono::seconds(5), .jitter = 0.2};

}  // namespace

struct NriHook::Impl final : net::Socket::Handler {
  explicit Impl(Options given) : options(std::move(given)), backoff(kRetry, &options.random) {}

  void Connect() {
    retry.reset();
    connector =
        net::Connector::Start(options.loop, {.unix_path = options.socket_path},
                              [this](Result<std::unique_ptr<net::Socket>> connected) {
                                options.loop.Post(lifetime.Guard([this] { connector.reset(); }));
                                if (!connected.ok()) return Lost(connected.error());
                                socket = *std::move(connected);
                                Open();
                              });
  }

  void Open() {
    rpc::NriPluginSession::Callbacks callbacks = options.callbacks;
    callbacks.on_ready = [this](const std::string& runtime) {
      registered = true;
      backoff.Reset();
      reported.clear();
      kLog.Info("registered with the container runtime",
                {{"runtime", runtime}, {"plugin", options.name}});
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

  // Deferred to the loop, because the session itself may be the caller.
  void Drop(const Error& error) {
    options.loop.Post(lifetime.Guard([this, error] {
      if (socket == nullptr) return;
      session->Close(error);
      session.reset();
      socket.reset();
      Lost(error);
    }));
  }

  void Lost(const Error& error) {
    registered = false;
    // Log a repeated reason only once.
    if (reported != error.message) {
      reported = error.message;
      kLog.Warning("not registered with the container runtime; retrying",
                   {{"socket", options.socket_path}, {"error", error.message}});
      if (options.callbacks.on_failed) options.callbacks.on_failed(error);
    }
    retry = options.loop.RunAfter(backoff.Next(), [this] { Connect(); });
  }

  const Options options;
  bool registered = false;
  Backoff backoff;
  std::string reported;
  std::unique_ptr<net::Connector> connector;
  std::unique_ptr<net::Socket> socket;
  std::unique_ptr<rpc::NriPluginSession> session;
  TimerHandle retry;
  Lifetime lifetime;
};

NriHook::NriHook(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}

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
