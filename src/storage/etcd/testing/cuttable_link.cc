#include "storage/etcd/testing/cuttable_link.h"

#include <string>
#include <utility>

#include "base/result/check.h"

namespace drakkar::storage {
namespace {

// One direction: what is read here is written to the other end.
class Pipe final : public net::Socket::Handler {
 public:
  Pipe(std::unique_ptr<net::Socket>& to, std::string& early, bool& closed)
      : to_(to), early_(early), closed_(closed) {}
  void OnSocketData(std::string_view bytes) override {
    early_ += bytes;
    if (to_ != nullptr) to_->Write(early_);
  }
  void OnSocketClosed(const Error*) override {
    closed_ = true;
    if (to_ != nullptr) to_->ShutdownWrites();
  }
  void OnSocketDrained() override {}

 private:
  std::unique_ptr<net::Socket>& to_;
  std::string& early_;  // until the other end is connected
  bool& closed_;
};

}  // namespace

class CuttableLink::Relay {
 public:
  Relay(UvLoop& loop, std::unique_ptr<net::Socket> client, std::uint16_t target)
      : client_(std::move(client)) {
    client_->Start(from_client_);
    connector_ = net::Connector::Start(loop, {.host = "127.0.0.1", .port = target, .unix_path = ""},
                                       [this](Result<std::unique_ptr<net::Socket>> socket) {
                                         if (!socket.ok()) {
                                           client_.reset();
                                           return;
                                         }
                                         server_ = *std::move(socket);
                                         server_->Start(from_server_);
                                         server_->Write(to_server_);
                                       });
  }

 private:
  std::string to_server_;
  std::string to_client_;
  bool client_closed_ = false;
  bool server_closed_ = false;
  std::unique_ptr<net::Socket> client_;
  std::unique_ptr<net::Socket> server_;
  Pipe from_client_{server_, to_server_, client_closed_};
  Pipe from_server_{client_, to_client_, server_closed_};
  std::unique_ptr<net::Connector> connector_;
};

CuttableLink::CuttableLink(UvLoop& loop, std::uint16_t target) : loop_(loop), target_(target) {
  auto listener = net::Listener::Create(
      loop, {.address = {.host = "127.0.0.1", .port = 0, .unix_path = ""}},
      [this](std::unique_ptr<net::Socket> socket) {
        if (!cut_) relays_.push_back(std::make_unique<Relay>(loop_, std::move(socket), target_));
      });
  CHECK(listener.ok());
  listener_ = *std::move(listener);
}

CuttableLink::~CuttableLink() = default;

void CuttableLink::Cut() {
  cut_ = true;
  relays_.clear();
}

}  // namespace drakkar::storage
