// Controllers and scheduler, each on a loop of its own.
#include "client/event_recorder.h"
#include "cmd/drakkar/control_plane.h"
#include "controllers/controllers.h"
#include "device/cel_expressions.h"
#include "scheduler/scheduler.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::cmd {
namespace {

// A part whose state `T` lives on its own loop thread: made there, destroyed there.
template <typename T>
class LoopPart final : public Part {
 public:
  LoopPart(std::string name, UvLoop& main_loop, std::function<std::unique_ptr<T>(UvLoop&)> make)
      : name_(std::move(name)), main_loop_(main_loop), make_(std::move(make)) {}

  std::string_view name() const override { return name_; }

  void Start(std::function<void(Result<void>)> done) override {
    thread_ = std::make_unique<LoopThread>(name_);
    thread_->loop().Post([this, done = std::move(done)]() mutable {
      state_ = make_(thread_->loop());
      main_loop_.Post([done = std::move(done)] { done(Ok()); });
    });
  }

  void Stop(std::function<void()> done) override {
    if (thread_ == nullptr) return done();
    thread_->RunSync([this] { state_.reset(); });
    thread_.reset();
    done();
  }

 private:
  const std::string name_;
  UvLoop& main_loop_;
  std::function<std::unique_ptr<T>(UvLoop&)> make_;
  std::unique_ptr<LoopThread> thread_;
  std::unique_ptr<T> state_;
};

struct ControllersState {
  ControllersState(UvLoop& loop, const ClientFactory& clients, const std::string& ca_pem)
      : client(clients(loop, "system:kube-controller-manager", {"system:masters"},
                       storage::Mark::kApplied)),
        events({.loop = loop, .client = *client, .component = "resource_claim"}),
        controllers({.loop = loop,
                     .random = RealRandom(),
                     .client = *client,
                     .metrics = metrics,
                     .warn = [this](const api::ObjectPtr& object, std::string_view reason,
                                    std::string message) {
                       events.Record(object, client::EventKind::kWarning, reason,
                                     std::move(message));
                     },
                     .ca_pem = ca_pem}) {
    controllers.Start();
  }
  Metrics metrics;
  std::unique_ptr<client::Client> client;
  client::EventRecorder events;
  controllers::Controllers controllers;
};

struct SchedulerState {
  SchedulerState(UvLoop& loop, const ClientFactory& clients, const FeatureGates& gates)
      : client(clients(loop, "system:kube-scheduler", {"system:masters"}, storage::Mark::kApplied)),
        scheduler({.loop = loop,
                   .random = RealRandom(),
                   .client = *client,
                   .metrics = metrics,
                   .compiler = compiler,
                   .gates = gates}) {
    scheduler.Start();
  }
  Metrics metrics;
  std::unique_ptr<client::Client> client;
  device::CelExpressions compiler;
  scheduler::Scheduler scheduler;
};

}  // namespace

std::unique_ptr<Part> MakeControllersPart(UvLoop& main_loop, ClientFactory clients,
                                          std::string ca_pem) {
  return std::make_unique<LoopPart<ControllersState>>(
      "controllers", main_loop, [clients = std::move(clients), ca_pem = std::move(ca_pem)](UvLoop& loop) {
        return std::make_unique<ControllersState>(loop, clients, ca_pem);
      });
}

std::unique_ptr<Part> MakeSchedulerPart(UvLoop& main_loop, ClientFactory clients,
                                        FeatureGates gates) {
  return std::make_unique<LoopPart<SchedulerState>>(
      "scheduler", main_loop,
      [clients = std::move(clients), gates = std::move(gates)](UvLoop& loop) {
        return std::make_unique<SchedulerState>(loop, clients, gates);
      });
}

}  // namespace drakkar::cmd
