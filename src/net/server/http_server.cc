#include "net/server/http_server.h"

#include <ctime>
#include <unordered_map>

#include "net/server/connection.h"

namespace drakkar::net {

const Result<Query>& ServerRequest::query() const {
  if (!query_) query_.emplace(Query::Parse(raw_query));
  return *query_;
}

struct HttpServer::Impl final : server::ConnectionOwner {
  Impl(UvLoop& own_loop, HttpServerOptions own_options, RequestHandler& own_handler)
      : loop(own_loop),
        options(std::move(own_options)),
        request_handler(own_handler),
        flushes(own_loop) {}

  RequestHandler& handler() override { return request_handler; }
  FlushQueue& flush_queue() override { return flushes; }
  void CountRequest() override { ++stats.requests; }

  const std::string& DateText() override {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(loop.clock().Now());
    const std::time_t now = static_cast<std::time_t>(seconds.time_since_epoch().count());
    if (now != date_second) {
      date_second = now;
      std::tm parts{};
      gmtime_r(&now, &parts);
      static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
      static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
      char text[64];
      std::snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[parts.tm_wday],
                    parts.tm_mday, kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour,
                    parts.tm_min, parts.tm_sec);
      date = text;
    }
    return date;
  }

  void Accept(std::unique_ptr<Socket> socket, std::shared_ptr<const void> place = nullptr) {
    ++stats.accepted;
    if (connections.size() >= options.max_connections) {
      ++stats.rejected;
      return;
    }
    const std::uint64_t id = next_id++;
    auto connection =
        std::make_shared<server::Connection>(loop, options, *this, id, std::move(socket));
    connections.emplace(id, connection);
    if (place != nullptr) places.emplace(id, std::move(place));
    connection->Start();
  }

  void OnConnectionClosed(std::uint64_t id) override {
    connections.erase(id);
    places.erase(id);
    if (stopping && connections.empty()) FinishStop();
  }

  // Often enough that a timeout is exceeded by at most a quarter.
  void ArmSweep() {
    const Duration shortest = std::min({options.handshake_timeout, options.request_timeout,
                                        options.idle_timeout, options.stall_timeout});
    const Duration interval =
        std::clamp<Duration>(shortest / 4, std::chrono::milliseconds(5), std::chrono::seconds(2));
    sweep = loop.RunAfter(interval, [this] {
      const MonotonicTime now = loop.clock().Monotonic();
      std::vector<std::shared_ptr<server::Connection>> all;
      all.reserve(connections.size());
      for (const auto& [id, connection] : connections) all.push_back(connection);
      for (const auto& connection : all) connection->CheckTimeouts(now);
      if (started) ArmSweep();
    });
  }

  void CloseAll() {
    auto all = connections;
    for (const auto& [id, connection] : all) connection->Close();
    connections.clear();
    places.clear();
  }

  void FinishStop() {
    stopping = false;
    started = false;
    stop_deadline.reset();
    sweep.reset();
    auto calls = std::exchange(on_stopped, {});
    for (auto& call : calls) loop.Post([call = std::move(call)] { call(); });
  }

  UvLoop& loop;
  HttpServerOptions options;
  RequestHandler& request_handler;
  FlushQueue flushes;
  std::unique_ptr<Listener> listener;
  std::unordered_map<std::uint64_t, std::shared_ptr<server::Connection>> connections;
  std::unordered_map<std::uint64_t, std::shared_ptr<const void>> places;  // of those adopted
  std::uint64_t next_id = 1;
  Stats stats;
  bool started = false;
  bool stopping = false;
  std::vector<std::function<void()>> on_stopped;
  TimerHandle sweep;
  TimerHandle stop_deadline;
  std::time_t date_second = -1;
  std::string date;
};

HttpServer::HttpServer(UvLoop& loop, HttpServerOptions options, RequestHandler& handler)
    : impl_(std::make_shared<Impl>(loop, std::move(options), handler)) {}

HttpServer::~HttpServer() {
  impl_->loop.AssertInLoop();
  impl_->started = false;
  impl_->stopping = false;
  impl_->listener.reset();
  impl_->CloseAll();
  impl_->sweep.reset();
  impl_->stop_deadline.reset();
}

Result<void> HttpServer::Start() {
  impl_->loop.AssertInLoop();
  if (impl_->started) return Ok();
  Impl* impl = impl_.get();
  Listener::Options options;
  options.address = impl->options.address;
  options.reuse_port = impl->options.reuse_port;
  ASSIGN_OR_RETURN(impl->listener,
                   Listener::Create(impl->loop, options, [impl](std::unique_ptr<Socket> socket) {
                     impl->Accept(std::move(socket));
                   }));
  impl->started = true;
  impl->ArmSweep();
  return Ok();
}

void HttpServer::StartAdopting() {
  impl_->loop.AssertInLoop();
  if (impl_->started) return;
  impl_->started = true;
  impl_->ArmSweep();
}

void HttpServer::Adopt(DetachedSocket detached, std::shared_ptr<const void> place) {
  impl_->loop.AssertInLoop();
  if (!impl_->started || impl_->stopping) return;
  Result<std::unique_ptr<Socket>> socket = Socket::Attach(impl_->loop, std::move(detached));
  if (socket.ok()) impl_->Accept(std::move(*socket), std::move(place));
}

std::uint16_t HttpServer::port() const {
  return impl_->listener ? impl_->listener->port() : 0;
}

void HttpServer::Stop(std::function<void()> done) {
  Impl& impl = *impl_;
  impl.loop.AssertInLoop();
  if (done) impl.on_stopped.push_back(std::move(done));
  if (impl.stopping) return;
  impl.listener.reset();
  if (impl.connections.empty()) {
    impl.FinishStop();
    return;
  }
  impl.stopping = true;
  impl.stop_deadline = impl.loop.RunAfter(impl.options.drain_timeout, [&impl] { impl.CloseAll(); });
  const auto all = impl.connections;
  for (const auto& [id, connection] : all) connection->Shutdown();
}

void HttpServer::ReplaceTls(std::shared_ptr<const TlsContext> tls) {
  impl_->loop.AssertInLoop();
  impl_->options.tls = std::move(tls);
}

HttpServer::Stats HttpServer::stats() const {
  Stats stats = impl_->stats;
  stats.connections = impl_->connections.size();
  return stats;
}

}  // namespace drakkar::net
