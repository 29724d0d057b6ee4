#include "node/probes/loop_prober.h"

#include <utility>

#include "base/exec/lifetime.h"
#include "base/text/text.h"
#include "net/client/http_client.h"
#include "net/http/url.h"
#include "net/socket/socket.h"
#include "node/probes/http_probe.h"
#include "rpc/health_check/health_check.h"
#include "rpc/transport/transport.h"

namespace drakkar::node {

// One probe from start to answer. Destroying it closes the connection.
class LoopProber::Run {
 public:
  virtual ~Run() = default;
  virtual void Start() = 0;
  virtual void TimeOut() = 0;
  void Over() {
    timer.reset();
    auto run = std::exchange(on_over, nullptr);
    if (run) run();
  }

  TimerHandle timer;
  std::function<void()> on_over;  // drops this object, later
};

namespace {

class HttpRun final : public LoopProber::Run, private net::StreamSink {
 public:
  HttpRun(UvLoop& loop, net::ClientRequest request, Duration timeout,
          std::function<void(Result<HttpAnswer>)> done)
      : loop_(loop),
        request_(std::move(request)),
        client_(loop, {.tls = {.insecure = true}, .connect_timeout = timeout}),
        done_(std::move(done)) {}

  void Start() override {
    if (auto url = net::ParseUrl(request_.url); url.ok()) first_host_ = url->host;
    Send();
  }

  void TimeOut() override {
    Finish(Error{ErrorCode::kDeadlineExceeded,
                 StrCat("Get ", Quote(request_.url), ": no answer within the time limit")});
  }

 private:
  void Send() { handle_ = client_.Stream(request_, *this); }

  void OnResponse(int status, const net::Headers& headers) override {
    auto next = FollowRedirect(request_, first_host_, status, headers);
    if (!next.ok()) return Finish(next.error());
    if (!*next) {
      answer_.status = status;
      return;
    }
    if (++redirects_ > NetworkProber::kMaxRedirects) {
      return Finish(FailedPrecondition(StrCat("Get ", Quote(request_.url), ": stopped after ",
                                              NetworkProber::kMaxRedirects, " redirects")));
    }
    // Posted, because this runs inside an event of the request that is destroyed.
    redirecting_ = true;
    request_ = std::move(**next);
    loop_.Post(lifetime_.Guard([this] {
      if (!done_) return;
      redirecting_ = false;
      handle_.reset();
      Send();
    }));
  }

  void OnData(std::string_view bytes) override {
    if (redirecting_ || !done_) return;
    answer_.body.append(bytes.substr(0, NetworkProber::kMaxProbeBody - answer_.body.size()));
    if (answer_.body.size() >= NetworkProber::kMaxProbeBody) Finish(std::move(answer_));
  }

  void OnEnd(Result<void> result) override {
    if (redirecting_) return;
    if (!result.ok()) return Finish(result.error());
    Finish(std::move(answer_));
  }

  void Finish(Result<HttpAnswer> answer) {
    auto done = std::exchange(done_, nullptr);
    if (!done) return;
    Over();
    done(std::move(answer));
  }

  UvLoop& loop_;
  net::ClientRequest request_;
  std::string first_host_;
  net::HttpClient client_;
  std::unique_ptr<net::RequestHandle> handle_;
  std::function<void(Result<HttpAnswer>)> done_;
  HttpAnswer answer_;
  int redirects_ = 0;
  bool redirecting_ = false;
  Lifetime lifetime_;
};

class ConnectRun final : public LoopProber::Run {
 public:
  ConnectRun(UvLoop& loop, net::Address address, std::function<void(Result<void>)> done)
      : loop_(loop), address_(std::move(address)), done_(std::move(done)) {}

  void Start() override {
    connector_ =
        net::Connector::Start(loop_, address_, [this](Result<std::unique_ptr<net::Socket>> socket) {
          Finish(socket.ok() ? Result<void>(Ok()) : Result<void>(socket.error()));
        });
  }

  void TimeOut() override {
    Finish(Error{ErrorCode::kDeadlineExceeded, StrCat("connect to ", address_.ToText(),
                                                      ": no connection within the time limit")});
  }

 private:
  void Finish(Result<void> result) {
    auto done = std::exchange(done_, nullptr);
    if (!done) return;
    Over();
    done(std::move(result));
  }

  UvLoop& loop_;
  const net::Address address_;
  std::unique_ptr<net::Connector> connector_;
  std::function<void(Result<void>)> done_;
};

class GrpcRun final : public LoopProber::Run {
 public:
  GrpcRun(std::unique_ptr<rpc::Channel> channel, std::string address, std::string service,
          Duration timeout, std::function<void(Result<std::string>)> done)
      : channel_(std::move(channel)),
        address_(std::move(address)),
        service_(std::move(service)),
        timeout_(timeout),
        done_(std::move(done)) {}

  void Start() override {
    rpc::CheckHealth(*channel_, service_, timeout_,
                     [this](Result<std::string> status) { Finish(std::move(status)); });
  }

  void TimeOut() override {
    Finish(Error{
        ErrorCode::kDeadlineExceeded,
        StrCat("the health check of ", address_, " did not complete within ",
               std::chrono::duration_cast<std::chrono::milliseconds>(timeout_).count(), " ms")});
  }

 private:
  void Finish(Result<std::string> status) {
    auto done = std::exchange(done_, nullptr);
    if (!done) return;
    Over();
    done(std::move(status));
  }

  const std::unique_ptr<rpc::Channel> channel_;
  const std::string address_;
  const std::string service_;
  const Duration timeout_;
  std::function<void(Result<std::string>)> done_;
};

}  // namespace

LoopProber::LoopProber(UvLoop& loop, rpc::Transport& transport, std::string version)
    : loop_(loop), transport_(transport), version_(std::move(version)) {}

LoopProber::~LoopProber() = default;

bool LoopProber::Admit(std::function<void(Error)> refuse) {
  loop_.AssertInLoop();
  if (running_.size() < kMaxRunning) return true;
  loop_.Post(lifetime_.Guard([refuse = std::move(refuse)] {
    refuse(Error{ErrorCode::kResourceExhausted,
                 StrCat(kMaxRunning, " probes are running on this node; try again later")});
  }));
  return false;
}

void LoopProber::Begin(std::shared_ptr<Run> run, Duration timeout) {
  const std::uint64_t id = next_id_++;
  Run& begun = *run;
  running_.emplace(id, std::move(run));
  begun.on_over = [this, id] {
    // Posted, because it is on the stack.
    loop_.Post(lifetime_.Guard([this, id] { running_.erase(id); }));
  };
  begun.timer = loop_.RunAfter(timeout, [&begun] { begun.TimeOut(); });
  begun.Start();
}

void LoopProber::Get(HttpProbe probe, Duration timeout,
                     std::function<void(Result<HttpAnswer>)> done) {
  if (!Admit([done](const Error& error) { done(error); })) return;
  Begin(
      std::make_shared<HttpRun>(loop_, MakeProbeRequest(probe, version_), timeout, std::move(done)),
      timeout);
}

void LoopProber::Connect(const std::string& host, int port, Duration timeout,
                         std::function<void(Result<void>)> done) {
  if (!Admit([done](const Error& error) { done(error); })) return;
  Begin(std::make_shared<ConnectRun>(
            loop_,
            net::Address{.host = host, .port = static_cast<std::uint16_t>(port), .unix_path = ""},
            std::move(done)),
        timeout);
}

void LoopProber::CheckGrpc(const std::string& host, int port, const std::string& service,
                           Duration timeout, std::function<void(Result<std::string>)> done) {
  if (!Admit([done](const Error& error) { done(error); })) return;
  const net::Address address{
      .host = host, .port = static_cast<std::uint16_t>(port), .unix_path = ""};
  auto channel = transport_.OpenChannel({.host = host,
                                         .port = address.port,
                                         .authority = address.ToText(),
                                         .user_agent = StrCat("kube-probe/", version_)});
  Begin(std::make_shared<GrpcRun>(std::move(channel), address.ToText(), service, timeout,
                                  std::move(done)),
        timeout);
}

}  // namespace drakkar::node
