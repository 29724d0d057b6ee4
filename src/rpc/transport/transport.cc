#include "rpc/transport/transport.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "rpc/transport/connection.h"
#include "rpc/transport/grpc_channel.h"
#include "rpc/transport/grpc_server.h"

namespace drakkar::rpc {
namespace {

class GrpcTransport final : public Transport {
 public:
  explicit GrpcTransport(UvLoop& loop) : context_(std::make_shared<LoopContext>(loop)) {}
  ~GrpcTransport() override {
    // Channels and servers may outlive the transport, connections of stopped servers may not.
    context_->may_linger = false;
    while (!context_->lingering.empty()) context_->lingering.begin()->second.connection->Close();
  }
  std::unique_ptr<Channel> OpenChannel(ChannelOptions options) override {
    return MakeGrpcChannel(context_, std::move(options));
  }
  std::unique_ptr<Server> CreateServer(std::string socket_path,
                                       std::vector<std::unique_ptr<RpcService>> services) override {
    return MakeGrpcServer(context_, std::move(socket_path), std::move(services));
  }

 private:
  const std::shared_ptr<LoopContext> context_;
};

}  // namespace

std::unique_ptr<Transport> MakeGrpcTransport(UvLoop& loop) {
  return std::make_unique<GrpcTransport>(loop);
}

void Channel::Call(const std::string& method, const std::string& message, Duration timeout,
                   absl::AnyInvocable<void(Result<std::string>)> done) {
  Start({.method = method, .message = message, .timeout = timeout},
        [done = std::move(done)](CallResult result) mutable { done(std::move(result.response)); });
}

std::unique_ptr<ClientStream> Channel::Watch(const std::string& method, const std::string& message,
                                             StreamCallbacks callbacks) {
  std::unique_ptr<ClientStream> stream = Open({.method = method}, std::move(callbacks));
  stream->Send(message);
  stream->FinishSending();
  return stream;
}

std::string UnknownMethodText(const std::vector<std::string>& served, std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return StrCat("malformed method name: ", path);
  const std::string_view prefix = path.substr(0, slash + 1);
  const std::string_view service = path.substr(1, slash - 1);
  const bool known = std::any_of(served.begin(), served.end(), [&](const std::string& other) {
    return std::string_view(other).starts_with(prefix);
  });
  if (known) return StrCat("unknown method ", path.substr(slash + 1), " for service ", service);
  return StrCat("unknown service ", service);
}

}  // namespace drakkar::rpc
