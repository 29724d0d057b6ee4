#include "dashboard/server/dashboard.h"

#include <atomic>
#include <optional>

#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "dashboard/board/board.h"
#include "dashboard/follow/follower.h"
#include "dashboard/gate/gate.h"
#include "dashboard/server/handler.h"
#include "device/cel_expressions.h"
#include "net/server/http_server.h"

namespace drakkar::dashboard {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
// A browser opens up to six connections per tab.
constexpr std::size_t kMaxConnections = 128;
constexpr std::size_t kMaxHeaderBytes = 16 * 1024;
constexpr std::size_t kMaxBodyBytes = 1024;  // a GET has none
// Every local user can connect, so idle connections are closed.
constexpr Duration kRequestTimeout = std::chrono::seconds(10);
constexpr Duration kIdleTimeout = std::chrono::seconds(30);

}  // namespace

// Three loops: the client's with the follower, the worker's with the board, and the server's with
// the handler. Each object is made and destroyed on its loop, the handler first and the follower
// last, so that a post to a loop always finds it.
struct Dashboard::Impl final : Source, Backend {
  explicit Impl(Options given) : options(std::move(given)), http("dashboard"), worker("answers") {}

  ~Impl() override {
    http.RunSync([this] {
      server.reset();
      handler.reset();
    });
    worker.RunSync([this] { board.reset(); });
    OnClient([this](EventLoop&, client::Client&) { follower.reset(); });
  }

  void OnClient(const std::function<void(EventLoop&, client::Client&)>& work) const {
    options.on_client_loop(work);
  }

  // Runs `work` with the follower on its loop, later.
  void WithFollower(std::function<void(Follower&)> work) {
    client_loop->Post([this, work = std::move(work)] {
      if (follower != nullptr) work(*follower);
    });
  }
  void WithBoard(std::function<void(Board&)> work) {
    worker.loop().Post([this, work = std::move(work)] {
      if (board != nullptr) work(*board);
    });
  }

  // Called by the follower for every object that changes; posts once until the board has run.
  void OnChange(bool urgent) {
    std::atomic<bool>& posted = urgent ? urgent_posted : other_posted;
    if (posted.exchange(true)) return;
    WithBoard([&posted, urgent](Board& shown) {
      posted = false;
      shown.Changed(urgent);
    });
  }

  // Source, called by the board.
  void Take(std::function<void(answers::Snapshot)> done) override {
    WithFollower([this, done = std::move(done)](Follower& follows) {
      worker.loop().Post([done, snapshot = follows.Take()] { done(snapshot); });
    });
  }
  void ReadCircumstances(answers::WhySubject subject,
                         std::function<void(Circumstances)> done) override {
    WithFollower([this, subject, done = std::move(done)](Follower& follows) {
      follows.ReadCircumstances(subject, [this, done](Circumstances read) {
        worker.loop().Post([done, read = std::move(read)] { done(read); });
      });
    });
  }
  void ReadEvents(std::string ns, std::string name,
                  std::function<void(answers::Objects)> done) override {
    WithFollower([this, ns, name, done = std::move(done)](Follower& follows) {
      follows.ReadEvents(ns, name, [this, done](answers::Objects events) {
        worker.loop().Post([done, events = std::move(events)] { done(events); });
      });
    });
  }
  void SetNodes(std::vector<std::string> nodes) override {
    WithFollower([nodes = std::move(nodes)](Follower& follows) { follows.SetNodes(nodes); });
  }
  void SetWatched(bool watched) override {
    WithFollower([watched](Follower& follows) { follows.SetWatched(watched); });
  }

  // Backend, called by the handler.
  void Full(std::function<void(Update)> done) override {
    WithBoard([this, done = std::move(done)](Board& shown) {
      http.loop().Post([done, full = shown.Full()] { done(full); });
    });
  }
  void Ask(std::string path, std::string raw_query,
           std::function<void(Board::Reply)> done) override {
    WithBoard([this, path, raw_query, done = std::move(done)](Board& shown) {
      shown.Ask(path, raw_query, [this, done](Board::Reply reply) {
        http.loop().Post([done, reply = std::move(reply)] { done(reply); });
      });
    });
  }
  void SetViewers(std::size_t viewers) override {
    WithBoard([viewers](Board& shown) { shown.SetViewers(viewers); });
  }

  Result<void> Start() {
    Result<void> started = Ok();
    http.RunSync([this, &started] { started = Listen(); });
    RETURN_IF_ERROR(std::move(started));
    OnClient([this](EventLoop& loop, client::Client&) { client_loop = &loop; });
    worker.RunSync([this] {
      board = std::make_unique<Board>(
          Board::Options{.loop = worker.loop(),
                         .random = options.random,
                         .compiler = compiler,
                         .source = *this,
                         .server = options.server,
                         .on_update =
                             [this](Update update) {
                               http.loop().Post([this, update = std::move(update)] {
                                 if (handler != nullptr) handler->Publish(update);
                               });
                             }},
          options.first);
    });
    OnClient([this](EventLoop& loop, client::Client& client) {
      follower = std::make_unique<Follower>(
          loop, options.random, client, options.first,
          Follower::Callbacks{.on_change = [this](bool urgent) { OnChange(urgent); },
                              .on_problem =
                                  [this](std::string problem) {
                                    WithBoard([problem = std::move(problem)](Board& shown) {
                                      shown.SetProblem(problem);
                                    });
                                  }});
      follower->Start();
    });
    options.first = {};
    return Ok();
  }

  Result<void> Listen() {
    net::HttpServerOptions server_options;
    server_options.address = {.host = kLoopback, .port = options.port};
    server_options.max_connections = kMaxConnections;
    server_options.request_timeout = kRequestTimeout;
    server_options.idle_timeout = kIdleTimeout;
    server_options.limits.max_header_bytes = kMaxHeaderBytes;
    server_options.limits.max_body_bytes = kMaxBodyBytes;
    server = std::make_unique<net::HttpServer>(http.loop(), server_options, router);
    RETURN_IF_ERROR(server->Start());
    port = server->port();
    gate.emplace(Secrets::Make(options.random), port);
    handler = std::make_unique<Handler>(http.loop(), *gate, *this);
    router.handler = handler.get();
    return Ok();
  }

  // The handler needs the port, which is known only once the server listens.
  struct Router final : net::RequestHandler {
    void Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
      handler->Handle(std::move(request), std::move(writer));
    }
    Handler* handler = nullptr;
  };

  Options options;
  device::CelExpressions compiler;  // used on the worker only
  std::optional<Gate> gate;
  std::uint16_t port = 0;
  EventLoop* client_loop = nullptr;
  std::atomic<bool> urgent_posted = false;
  std::atomic<bool> other_posted = false;
  Router router;
  LoopThread http;
  LoopThread worker;
  std::unique_ptr<net::HttpServer> server;
  std::unique_ptr<Handler> handler;
  std::unique_ptr<Board> board;
  std::unique_ptr<Follower> follower;
};

Dashboard::Dashboard(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dashboard::~Dashboard() = default;

Result<std::unique_ptr<Dashboard>> Dashboard::Start(Options options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Dashboard>(new Dashboard(std::move(impl)));
}

std::string Dashboard::url() const {
  return StrCat("http://", kLoopback, ":", impl_->port, impl_->gate->ArrivalTarget());
}

}  // namespace drakkar::dashboard
