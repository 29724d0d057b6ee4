#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/socket/socket.h"
#include "rpc/nri/nri_runtime_session.h"

namespace drakkar::driver {

// The runtime's side of NRI on a unix socket; talks to the plugin that connected last. Loop-bound.
class NriRuntime final : public net::Socket::Handler {
 public:
  NriRuntime(UvLoop& loop, const std::string& path) : loop_(loop) {
    auto listener = net::Listener::Create(loop, {.address = {.unix_path = path}},
                                          [this](std::unique_ptr<net::Socket> socket) {
                                            ++accepted;
                                            socket_ = std::move(socket);
                                            Open();
                                          });
    EXPECT_TRUE(listener.ok());
    if (listener.ok()) listener_ = *std::move(listener);
  }

  void OnSocketData(std::string_view bytes) override {
    if (session == nullptr) return;
    EXPECT_TRUE(session->Receive(bytes).ok());
  }
  void OnSocketClosed(const Error*) override { ++closed; }
  void OnSocketDrained() override {}

  void Disconnect() {
    session.reset();
    socket_.reset();
  }
  void Send(std::string bytes) { socket_->Write(bytes); }

  int accepted = 0;
  int closed = 0;
  bool is_ready = false;
  std::vector<rpc::NriPodSandbox> existing;
  std::unique_ptr<rpc::NriRuntimeSession> session;

 private:
  void Open() {
    is_ready = false;
    session = std::make_unique<rpc::NriRuntimeSession>(rpc::NriRuntimeSession::Options{
        .loop = loop_,
        .runtime_name = "test-runtime",
        .runtime_version = "1",
        .send = [this](std::string bytes) { socket_->Write(bytes); },
        .on_configured =
            [this] { session->Synchronize(existing, {}, [this](auto) { is_ready = true; }); },
        .on_failed = [](const Error&) {}});
    socket_->Start(*this);
  }

  UvLoop& loop_;
  std::unique_ptr<net::Listener> listener_;
  std::unique_ptr<net::Socket> socket_;
};

}  // namespace drakkar::driver
