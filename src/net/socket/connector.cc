#include <cstring>

#include "base/text/text.h"
#include "net/socket/socket_node.h"
#include "net/socket/uv_error.h"

namespace drakkar::net {

// Kept alive by requests in flight; the Connector only marks it cancelled.
struct Connector::Attempt : std::enable_shared_from_this<Attempt> {
  struct Pending {  // what a libuv request holds
    std::shared_ptr<Attempt> attempt;
    uv_getaddrinfo_t resolve;
    uv_connect_t connect;
  };

  uv_loop_t* loop = nullptr;
  Address address;
  Callback callback;
  bool cancelled = false;
  std::vector<sockaddr_storage> candidates;
  std::size_t next = 0;
  Error last = Unavailable("no address found");
  Socket::Node* node = nullptr;

  void Finish(Result<std::unique_ptr<Socket>> result) {
    if (cancelled) return;
    cancelled = true;
    Callback call = std::move(callback);
    call(std::move(result));
  }

  void Fail() { Finish(last.Prefixed(StrCat("connect to ", address.ToText()))); }

  void ConnectNext() {
    if (cancelled) return;
    if (next == candidates.size()) return Fail();
    const sockaddr_storage& candidate = candidates[next++];
    node = Socket::Node::Create(loop, true);
    auto* pending = new Pending{shared_from_this(), {}, {}};
    pending->connect.data = pending;
    const int code = uv_tcp_connect(&pending->connect, &node->tcp,
                                    reinterpret_cast<const sockaddr*>(&candidate), &OnConnected);
    if (code == 0) return;
    delete pending;
    Retry(code);
  }

  void ConnectUnix() {
    if (cancelled) return;
    node = Socket::Node::Create(loop, false);
    auto* pending = new Pending{shared_from_this(), {}, {}};
    pending->connect.data = pending;
    uv_pipe_connect(&pending->connect, &node->pipe, address.unix_path.c_str(), &OnConnected);
  }

  void Retry(int code) {
    last = UvError(code, "");
    if (node) node->Close();
    node = nullptr;
    ConnectNext();
  }

  static void OnConnected(uv_connect_t* request, int status) {
    std::unique_ptr<Pending> pending(static_cast<Pending*>(request->data));
    Attempt& self = *pending->attempt;
    if (self.cancelled || !self.node) return;  // closed by Cancel
    if (status != 0) return self.Retry(status);
    self.node->Tune();
    std::unique_ptr<Socket> socket(new Socket(self.node));
    self.node = nullptr;
    self.Finish(std::move(socket));
  }

  static void OnResolved(uv_getaddrinfo_t* request, int status, addrinfo* found) {
    std::unique_ptr<Pending> pending(static_cast<Pending*>(request->data));
    Attempt& self = *pending->attempt;
    if (status != 0) {
      self.last = UvError(status, "");
    } else {
      for (addrinfo* at = found; at && self.candidates.size() < kMaxCandidates; at = at->ai_next) {
        sockaddr_storage candidate{};
        std::memcpy(&candidate, at->ai_addr, at->ai_addrlen);
        self.candidates.push_back(candidate);
      }
    }
    uv_freeaddrinfo(found);
    self.ConnectNext();
  }

  static constexpr std::size_t kMaxCandidates = 16;
};

Connector::Connector(std::shared_ptr<Attempt> attempt) : attempt_(std::move(attempt)) {}

Connector::~Connector() {
  if (!attempt_->cancelled) {
    attempt_->cancelled = true;
    attempt_->callback = nullptr;
    if (attempt_->node) attempt_->node->Close();
    attempt_->node = nullptr;
  }
}

std::unique_ptr<Connector> Connector::Start(UvLoop& loop, const Address& address,
                                            Callback callback) {
  loop.AssertInLoop();
  auto attempt = std::make_shared<Attempt>();
  attempt->loop = loop.native();
  attempt->address = address;
  attempt->callback = std::move(callback);
  sockaddr_storage literal{};
  if (!address.unix_path.empty()) {
    loop.Post([attempt] { attempt->ConnectUnix(); });
  } else if (ParseIp(address.host, address.port, &literal)) {
    attempt->candidates.push_back(literal);
    loop.Post([attempt] { attempt->ConnectNext(); });
  } else {
    auto* pending = new Attempt::Pending{attempt, {}, {}};
    pending->resolve.data = pending;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    const int code =
        uv_getaddrinfo(attempt->loop, &pending->resolve, &Attempt::OnResolved, address.host.c_str(),
                       std::to_string(address.port).c_str(), &hints);
    if (code != 0) {
      delete pending;
      attempt->last = UvError(code, "");
      loop.Post([attempt] { attempt->ConnectNext(); });
    }
  }
  return std::unique_ptr<Connector>(new Connector(std::move(attempt)));
}

}  // namespace drakkar::net
