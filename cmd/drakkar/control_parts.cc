// Controllers and scheduler, active while they hold the Lease.
#include "answers/serve/cluster_gauges.h"
#include "answers/serve/why_service.h"
#include "api/json/writer.h"
#include "base/exec/processors.h"
#include "base/text/text.h"
#include "client/event_recorder.h"
#include "cmd/drakkar/control_plane.h"
#include "cmd/drakkar/why_question.h"
#include "controllers/controllers.h"
#include "device/cel_expressions.h"
#include "scheduler/scheduler.h"
#include "scheduler/settings.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::cmd {
namespace {

// With fewer processors than this, the controllers share the API server's loop. More threads than
// processors only add context switches, cold caches and smaller batches: on two processors a pod
// then costs a tenth less CPU.
constexpr std::size_t kProcessorsForEachLoop = 3;

enum class Thread { kOwn, kMain };

// A part whose state `T` is created, stopped and destroyed on one loop: that of its own thread, or
// the main one.
template <typename T>
class LoopPart final : public Part {
 public:
  using Fatal = std::function<void(Error)>;
  using Make = std::function<Result<std::unique_ptr<T>>(UvLoop& loop, Fatal on_fatal)>;
  LoopPart(std::string name, UvLoop& main_loop, Thread thread, Make make)
      : name_(std::move(name)), main_loop_(main_loop), where_(thread), make_(std::move(make)) {}

  std::string_view name() const override { return name_; }

  void Start(std::function<void(Result<void>)> done) override {
    if (where_ == Thread::kOwn) thread_ = std::make_unique<LoopThread>(name_);
    loop_ = thread_ == nullptr ? &main_loop_ : &thread_->loop();
    loop_->Post([this, done = std::move(done)]() mutable {
      Result<std::unique_ptr<T>> made = make_(*loop_, [this](Error error) {
        main_loop_.Post([this, error = std::move(error)] { on_fatal(error); });
      });
      Result<void> result = Ok();
      if (made.ok()) {
        state_ = std::move(*made);
      } else {
        result = made.error();
      }
      main_loop_.Post([done = std::move(done), result] { done(result); });
    });
  }

  void Stop(std::function<void()> done) override {
    if (loop_ == nullptr) return done();
    loop_->Post([this, done = std::move(done)]() mutable {
      auto finish = [this, done = std::move(done)] {
        main_loop_.Post([this, done] {
          if (thread_ != nullptr) {
            thread_->RunSync([this] { state_.reset(); });
          } else {
            state_.reset();
          }
          loop_ = nullptr;
          thread_.reset();
          done();
        });
      };
      if (state_ == nullptr) {
        finish();
      } else {
        state_->Stop(std::move(finish));
      }
    });
  }

 private:
  const std::string name_;
  UvLoop& main_loop_;
  const Thread where_;
  Make make_;
  std::unique_ptr<LoopThread> thread_;  // null on the main loop
  UvLoop* loop_ = nullptr;              // null until started
  std::unique_ptr<T> state_;
};

// What scheduler and controllers share: a client, metrics, a status port and a Lease. `Work` exists
// only while the Lease is held.
template <typename Work>
class Component {
 public:
  struct Options {
    UvLoop& loop;
    std::unique_ptr<client::Client> client;
    ComponentOptions component;
    std::function<std::string()> configz;
    // `port` is null if it is disabled.
    std::function<std::unique_ptr<Work>(UvLoop&, client::Client&, Metrics&, const StatusPort* port)>
        start;
    // Makes metrics current that are computed on demand; empty: none are.
    std::function<void(Work&, std::function<void()> done)> before_metrics = {};
    // Pages of the component on the status port, if it has any.
    std::string page_prefix = {};
    std::function<void(Work&, const net::ServerRequest&, std::shared_ptr<net::ResponseWriter>)>
        handle = {};
    std::function<void(Error)> on_fatal;
  };
  static Result<std::unique_ptr<Component>> Open(Options options) {
    std::unique_ptr<Component> made(new Component(std::move(options)));
    RETURN_IF_ERROR(made->Start());
    return made;
  }

  void Stop(std::function<void()> done) {
    work_.reset();
    if (elector_ == nullptr) return done();
    elector_->Stop(std::move(done));
  }

 private:
  explicit Component(Options options) : options_(std::move(options)) {}

  Result<void> Start() {
    net::StatusPages::Options pages;
    pages.checks.push_back({"ping", [] { return Ok(); }});
    pages.checks.push_back({"sync",
                            [this]() -> Result<void> {
                              // An instance without work is a standby, which is healthy.
                              if (work_ == nullptr || work_->IsReady()) return Ok();
                              return Unavailable("the caches have not synced yet");
                            },
                            /*only_ready=*/true});
    pages.metrics = [this] { return metrics_.Text(); };
    pages.configz = options_.configz;
    if (options_.before_metrics) {
      pages.before_metrics = [this](std::function<void()> done) {
        if (work_ == nullptr) return done();
        options_.before_metrics(*work_, std::move(done));
      };
    }
    if (options_.handle) {
      pages.pages.push_back(
          {options_.page_prefix,
           [this](const net::ServerRequest& request, std::shared_ptr<net::ResponseWriter> writer) {
             if (work_ != nullptr) return options_.handle(*work_, request, std::move(writer));
             writer->Send(503, {{"Content-Type", "text/plain; charset=utf-8"}},
                          std::string("this instance is a standby\n"));
           }});
    }
    ASSIGN_OR_RETURN(status_, StatusPort::Open(options_.loop, *options_.client,
                                               options_.component.status, std::move(pages)));
    if (!options_.component.election.leader_elect) {
      Begin();
      return Ok();
    }
    elector_ = std::make_unique<client::LeaderElector>(client::LeaderElector::Options{
        .loop = options_.loop,
        .random = RealRandom(),
        .client = *options_.client,
        .config = options_.component.election,
        .identity = identity_,
        .on_started =
            [this] {
              const client::LeaderElectionConfig& election = options_.component.election;
              if (options_.component.fence != nullptr) {
                *options_.component.fence =
                    client::FenceValue(election.lease_namespace, election.lease_name, identity_);
              }
              Begin();
            },
        .on_lost =
            [this] {
              work_.reset();
              options_.on_fatal(
                  Unavailable(StrCat("lost lease ", options_.component.election.lease_namespace,
                                     "/", options_.component.election.lease_name,
                                     "; exiting, because another instance may be active")));
            }});
    elector_->Start();
    return Ok();
  }

  void Begin() { work_ = options_.start(options_.loop, *options_.client, metrics_, status_.get()); }

  Options options_;
  const std::string identity_ = LeaderIdentity();
  Metrics metrics_;
  std::unique_ptr<Work> work_;
  std::unique_ptr<client::LeaderElector> elector_;
  std::unique_ptr<StatusPort> status_;
};

struct ControllersWork {
  ControllersWork(UvLoop& loop, client::Client& client, Metrics& metrics,
                  const ComponentOptions& component)
      : controllers({.loop = loop,
                     .random = RealRandom(),
                     .client = client,
                     .metrics = metrics,
                     .client_for = ClientFor(loop, client, component.account_clients),
                     .ca_pem = component.ca_pem,
                     .signing = component.signing,
                     .selection = component.controllers,
                     .pod_group_claims = component.pod_group_claims}) {
    controllers.Start();
  }
  bool IsReady() const { return controllers.has_synced(); }

  static std::function<std::unique_ptr<client::Client>(std::string_view account)> ClientFor(
      UvLoop& loop, client::Client& own, const AccountClients& clients) {
    if (clients == nullptr) return nullptr;
    return
        [&loop, &own, &clients](std::string_view account) { return clients(loop, own, account); };
  }

  controllers::Controllers controllers;
};

struct SchedulerWork {
  SchedulerWork(UvLoop& loop, client::Client& client, Metrics& metrics, const FeatureGates& gates,
                const scheduler::Configuration& configuration, const StatusPort* port)
      : scheduler({.loop = loop,
                   .random = RealRandom(),
                   .client = client,
                   .metrics = metrics,
                   .compiler = compiler,
                   .gates = gates,
                   .profiles = configuration.profiles,
                   .first_backoff = configuration.first_backoff,
                   .longest_backoff = configuration.longest_backoff}),
        why({.loop = loop,
             .client = client,
             .scheduler = scheduler,
             .settings = {.gates = gates, .profiles = configuration.profiles}}),
        gauges({.loop = loop, .metrics = metrics, .scheduler = scheduler}) {
    scheduler::AnswerAddress address;
    if (port != nullptr) address = {port->url(), port->own_ca_pem()};
    scheduler::PublishSettings(client, gates, configuration, address);
    scheduler.Start();
  }
  bool IsReady() const { return scheduler.IsReady(); }
  void Answer(const net::ServerRequest& request, std::shared_ptr<net::ResponseWriter> writer) {
    Result<answers::WhyService::Question> question = ReadWhyQuestion(request);
    if (!question.ok()) {
      return writer->Send(400, {{"Content-Type", "text/plain; charset=utf-8"}},
                          StrCat(question.error().message, "\n"));
    }
    why.Ask(std::move(*question), [writer](answers::WhyService::Reply reply) {
      writer->Send(reply.status,
                   {{"Content-Type",
                     reply.status == 200 ? "application/json" : "text/plain; charset=utf-8"}},
                   std::move(reply.body));
    });
  }
  device::CelExpressions compiler;
  scheduler::Scheduler scheduler;
  answers::WhyService why;
  answers::ClusterGauges gauges;
};

}  // namespace

std::unique_ptr<Part> MakeControllersPart(UvLoop& main_loop, ClientFactory clients,
                                          ComponentOptions component) {
  using Controllers = Component<ControllersWork>;
  return std::make_unique<LoopPart<Controllers>>(
      "controllers", main_loop,
      ProcessorCount() < kProcessorsForEachLoop ? Thread::kMain : Thread::kOwn,
      [clients = std::move(clients), component = std::move(component)](
          UvLoop& loop, std::function<void(Error)> on_fatal) {
        return Controllers::Open(
            {.loop = loop,
             .client = clients(loop, "system:kube-controller-manager", {}, storage::Mark::kApplied),
             .component = component,
             .configz = {},
             .start =
                 [component](UvLoop& own, client::Client& client, Metrics& metrics,
                             const StatusPort*) {
                   return std::make_unique<ControllersWork>(own, client, metrics, component);
                 },
             .on_fatal = std::move(on_fatal)});
      });
}

std::unique_ptr<Part> MakeSchedulerPart(UvLoop& main_loop, ClientFactory clients,
                                        FeatureGates gates, scheduler::Configuration configuration,
                                        StatusPortOptions status, client::Fence fence) {
  using SchedulerPart = Component<SchedulerWork>;
  return std::make_unique<LoopPart<SchedulerPart>>(
      "scheduler", main_loop, Thread::kOwn,
      [clients = std::move(clients), gates = std::move(gates),
       configuration = std::move(configuration), status = std::move(status),
       fence = std::move(fence)](UvLoop& loop, std::function<void(Error)> on_fatal) {
        return SchedulerPart::Open(
            {.loop = loop,
             .client = clients(loop, "system:kube-scheduler", {}, storage::Mark::kApplied),
             .component = {.election = configuration.leader_election,
                           .status = status,
                           .fence = fence},
             .configz =
                 [configuration] {
                   return StrCat(
                       R"({"componentconfig":)",
                       api::WriteJson(scheduler::ConfigurationToTree(configuration)->root()), "}");
                 },
             .start =
                 [gates, configuration](UvLoop& own, client::Client& client, Metrics& metrics,
                                        const StatusPort* port) {
                   return std::make_unique<SchedulerWork>(own, client, metrics, gates,
                                                          configuration, port);
                 },
             .before_metrics =
                 [](SchedulerWork& work, std::function<void()> done) {
                   work.gauges.Refresh(std::move(done));
                 },
             .page_prefix = "/why",
             .handle =
                 [](SchedulerWork& work, const net::ServerRequest& request,
                    std::shared_ptr<net::ResponseWriter> writer) {
                   work.Answer(request, std::move(writer));
                 },
             .on_fatal = std::move(on_fatal)});
      });
}

}  // namespace drakkar::cmd
