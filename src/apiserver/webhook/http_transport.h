#pragma once

#include <memory>

#include "apiserver/webhook/transport.h"
#include "base/exec/lifetime.h"
#include "base/exec/uv_loop.h"

namespace drakkar::apiserver {

// Calls webhooks over HTTPS on its own thread, so that handshakes and large answers do not hold up
// the core. The thread starts with the first call. Connections stay open and are reused.
//
// Owned by the core's loop. Keeps at most kMaxClients sets of connections, one per certificate
// authority and server name; beyond that, the least recently used set is closed. All answers that
// are being received have at most kMaxAnswersBytes; those beyond fail.
class HttpWebhookTransport final : public WebhookTransport {
 public:
  static constexpr std::size_t kMaxClients = 200;
  static constexpr std::size_t kMaxConnectionsPerHost = 64;
  static constexpr std::size_t kMaxQueuedPerHost = 2'000;  // further calls fail
  static constexpr std::size_t kMaxAnswersBytes = std::size_t{64} << 20;

  explicit HttpWebhookTransport(EventLoop& core_loop);
  ~HttpWebhookTransport() override;

  void Post(Call call, std::function<void(Answer)> done) override;

 private:
  class Clients;
  class Exchange;

  EventLoop& core_loop_;
  std::unique_ptr<LoopThread> thread_;
  std::unique_ptr<Clients> clients_;  // lives on the thread
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
