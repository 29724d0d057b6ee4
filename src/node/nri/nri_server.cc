#include "node/nri/nri_server.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/env/file_system.h"
#include "base/text/text.h"
#include "net/socket/socket.h"
#include "node/nri/adjustment.h"
#include "node/nri/required_plugins.h"
#include "rpc/nri/nri_runtime_session.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.nri");

// A plugin that reads this slowly is disconnected.
constexpr std::size_t kMaxPendingBytes = 8u << 20;

}  // namespace

struct NriServer::Impl : std::enable_shared_from_this<NriServer::Impl> {
  explicit Impl(Options given) : options(std::move(given)) {}

  // One plugin: its socket and session.
  struct Plugin final : net::Socket::Handler {
    Plugin(Impl& given, std::uint64_t number, std::unique_ptr<net::Socket> connection)
        : owner(given), id(number), socket(std::move(connection)) {
      session = std::make_unique<rpc::NriRuntimeSession>(rpc::NriRuntimeSession::Options{
          .loop = owner.options.loop,
          .runtime_version = owner.options.runtime_version,
          .request_timeout = owner.options.request_timeout,
          .send =
              [this](std::string bytes) {
                socket->Write(bytes);
                if (socket->pending_bytes() > kMaxPendingBytes) {
                  owner.Drop(id, Unavailable("the plugin stopped reading"));
                }
              },
          .on_configured = [this] { owner.Synchronize(id); },
          .on_update =
              [this](std::vector<rpc::NriContainerUpdate> updates,
                     std::vector<rpc::NriEviction> evictions,
                     rpc::NriRuntimeSession::Updated done) {
                owner.UpdateContainers(session->title(), std::move(updates), std::move(evictions),
                                       std::move(done));
              },
          .on_failed = [this](const Error& error) { owner.Drop(id, error); }});
      socket->Start(*this);
    }

    void OnSocketData(std::string_view bytes) override {
      if (auto taken = session->Receive(bytes); !taken.ok()) owner.Drop(id, taken.error());
    }
    void OnSocketClosed(const Error* error) override {
      owner.Drop(id, error != nullptr ? *error : Unavailable("the connection was closed"));
    }
    void OnSocketDrained() override {}

    Impl& owner;
    const std::uint64_t id;
    std::unique_ptr<net::Socket> socket;
    std::unique_ptr<rpc::NriRuntimeSession> session;
  };

  // Posted, because the caller may be the plugin's own code.
  void Drop(std::uint64_t id, const Error& error) {
    options.loop.Post([weak = weak_from_this(), id, error] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      const auto found = self->plugins.find(id);
      if (found == self->plugins.end()) return;
      kLog.Info("NRI plugin disconnected",
                {{"plugin", found->second->session->name()}, {"reason", error.message}});
      std::unique_ptr<Plugin> plugin = std::move(found->second);
      self->plugins.erase(found);
      plugin->session->Close(error);
    });
  }

  void Accept(std::unique_ptr<net::Socket> socket) {
    if (plugins.size() >= kMaxPlugins) {
      kLog.Warning("refused NRI plugin: too many are connected", {{"limit", kMaxPlugins}});
      return;
    }
    const std::uint64_t id = next_id++;
    plugins.emplace(id, std::make_unique<Plugin>(*this, id, std::move(socket)));
  }

  // The order of plugins: by index, then by name.
  std::vector<std::uint64_t> Order() const {
    std::vector<std::uint64_t> ids;
    for (const auto& [id, plugin] : plugins) {
      if (plugin->session->is_ready()) ids.push_back(id);
    }
    std::sort(ids.begin(), ids.end(), [this](std::uint64_t a, std::uint64_t b) {
      const rpc::NriRuntimeSession& left = *plugins.at(a)->session;
      const rpc::NriRuntimeSession& right = *plugins.at(b)->session;
      return std::pair(left.index(), left.name()) < std::pair(right.index(), right.name());
    });
    return ids;
  }

  // --- One thing at a time.

  using Turn = absl::AnyInvocable<void()>;

  // False: too many wait; the turn is dropped.
  bool Enqueue(Turn turn) {
    options.loop.AssertInLoop();
    if (waiting.size() >= kMaxWaiting) return false;
    waiting.push_back(std::move(turn));
    if (!is_busy) Next();
    return true;
  }
  void Next() {
    is_busy = !waiting.empty();
    if (!is_busy) return;
    Turn turn = std::move(waiting.front());
    waiting.pop_front();
    turn();
  }
  // Ends a turn. Posted, so that a long queue does not become a deep stack.
  void EndTurn() {
    options.loop.Post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Next();
    });
  }

  // --- Changes that plugins ask for.

  // `done` takes what failed and was not to be ignored.
  void Apply(std::vector<rpc::NriContainerUpdate> updates,
             const std::vector<rpc::NriEviction>& evictions,
             absl::AnyInvocable<void(std::vector<HookedObjects::FailedUpdate>)> done) {
    if (objects == nullptr) return done({});
    for (const rpc::NriEviction& eviction : evictions) objects->Evict(eviction);
    if (updates.empty()) return done({});
    objects->Update(std::move(updates), [done = std::move(done)](
                                            std::vector<HookedObjects::FailedUpdate> all) mutable {
      std::vector<HookedObjects::FailedUpdate> failed;
      for (HookedObjects::FailedUpdate& each : all) {
        kLog.Warning("could not update a container for an NRI plugin",
                     {{"container", each.update.container_id}, {"err", each.error.message}});
        if (!each.update.ignore_failure) failed.push_back(std::move(each));
      }
      done(std::move(failed));
    });
  }

  void Synchronize(std::uint64_t id) {
    const bool accepted = Enqueue([this, id] {
      const auto found = plugins.find(id);
      if (found == plugins.end()) return EndTurn();
      auto pods = objects ? objects->DescribePods() : std::vector<rpc::NriPodSandbox>();
      auto containers = objects ? objects->DescribeContainers() : std::vector<rpc::NriContainer>();
      found->second->session->Synchronize(
          std::move(pods), std::move(containers),
          [this, weak = weak_from_this(), title = found->second->session->title()](
              Result<std::vector<rpc::NriContainerUpdate>> updates) {
            const auto self = weak.lock();
            if (self == nullptr) return;
            if (!updates.ok()) return EndTurn();
            kLog.Info("NRI plugin registered", {{"plugin", title}});
            Apply(MergeUpdates(title, *std::move(updates)), {}, [weak](const auto&) {
              if (const auto alive = weak.lock()) alive->EndTurn();
            });
          });
    });
    if (!accepted) Drop(id, Error{ErrorCode::kResourceExhausted, "too many events wait"});
  }

  // One update per container.
  static std::vector<rpc::NriContainerUpdate> MergeUpdates(
      const std::string& plugin, std::vector<rpc::NriContainerUpdate> updates) {
    AnswerCollector collector(rpc::NriEvent::kStopContainer, {});
    // One plugin cannot be in conflict with itself.
    static_cast<void>(collector.Add(plugin, {.updates = std::move(updates)}).ok());
    return collector.updates();
  }

  void UpdateContainers(const std::string& plugin, std::vector<rpc::NriContainerUpdate> updates,
                        std::vector<rpc::NriEviction> evictions,
                        rpc::NriRuntimeSession::Updated done) {
    auto shared = std::make_shared<rpc::NriRuntimeSession::Updated>(std::move(done));
    const bool accepted = Enqueue([this, shared, updates = MergeUpdates(plugin, std::move(updates)),
                                   evictions = std::move(evictions)]() mutable {
      Apply(std::move(updates), evictions,
            [weak = weak_from_this(),
             shared](const std::vector<HookedObjects::FailedUpdate>& failures) {
              std::vector<rpc::NriContainerUpdate> failed;
              for (const auto& each : failures) failed.push_back(each.update);
              (*shared)(std::move(failed));
              if (const auto self = weak.lock()) self->EndTurn();
            });
    });
    if (!accepted) (*shared)(Error{ErrorCode::kResourceExhausted, "too many events wait"});
  }

  // --- Events.

  // One event passing from plugin to plugin.
  struct Round {
    Round(rpc::NriEvent given, rpc::NriPodSandbox about, rpc::NriContainer container,
          rpc::NriResources new_resources, bool of_container)
        : event(given),
          pod(std::move(about)),
          original(container),
          pod_resources(of_container ? rpc::NriResources() : new_resources),
          answers(given, std::move(container),
                  of_container ? std::move(new_resources) : rpc::NriResources()),
          is_container(of_container) {}
    const rpc::NriEvent event;
    const rpc::NriPodSandbox pod;
    const rpc::NriContainer original;
    const rpc::NriResources pod_resources;
    AnswerCollector answers;
    const bool is_container;
    std::vector<std::uint64_t> ids;
    std::vector<rpc::NriPluginInstance> instances;
    std::size_t next = 0;
    Changed done;
  };

  void Run(const std::shared_ptr<Round>& round, Changed done) {
    round->done = std::move(done);
    const bool accepted = Enqueue([this, round] {
      round->ids = Order();
      std::vector<std::string> names;
      for (const std::uint64_t id : round->ids) {
        const rpc::NriRuntimeSession& session = *plugins.at(id)->session;
        round->instances.push_back({session.name(), session.index()});
        names.push_back(session.name());
        names.push_back(session.title());
      }
      if (round->event == rpc::NriEvent::kCreateContainer) {
        const auto missing = MissingPlugins(options.required_plugins, round->pod.annotations,
                                            round->original.name, names);
        if (!missing.empty()) {
          return End(round, Unavailable(StrCat("container ", round->original.name,
                                               " requires NRI plugins that are not connected: ",
                                               Join(missing, ", "))));
        }
      }
      Step(round);
    });
    if (!accepted) {
      round->done(Error{ErrorCode::kResourceExhausted, "too many events wait for NRI plugins"});
    }
  }

  void End(const std::shared_ptr<Round>& round, Result<Changes> result) {
    EndTurn();
    round->done(std::move(result));
  }

  void Step(const std::shared_ptr<Round>& round) {
    if (round->next >= round->ids.size()) {
      round->next = 0;
      if (round->event == rpc::NriEvent::kCreateContainer) return Validate(round);
      return Settle(round);
    }
    const auto found = plugins.find(round->ids[round->next++]);
    if (found == plugins.end()) return Step(round);
    rpc::NriRuntimeSession& session = *found->second->session;
    auto answered = [weak = weak_from_this(), round,
                     title = session.title()](Result<rpc::NriAnswer> answer) {
      const auto self = weak.lock();
      if (self == nullptr) return round->done(Unavailable("the node is stopping"));
      if (!answer.ok()) return self->End(round, std::move(answer).error());
      if (auto taken = round->answers.Add(title, *answer); !taken.ok()) {
        return self->End(round, std::move(taken).error());
      }
      self->Step(round);
    };
    if (round->is_container) {
      return session.DeliverContainer(round->event, round->pod, round->answers.container(),
                                      round->answers.resources(), std::move(answered));
    }
    session.Deliver(round->event, round->pod, round->pod_resources,
                    [answered = std::move(answered)](Result<void> result) {
                      answered(result.ok() ? Result<rpc::NriAnswer>(rpc::NriAnswer())
                                           : std::move(result).error());
                    });
  }

  // The plugins that validate, one after the other; all must agree.
  void Validate(const std::shared_ptr<Round>& round) {
    constexpr auto kValidate = rpc::NriEvent::kValidateContainerAdjustment;
    while (round->next < round->ids.size()) {
      const auto found = plugins.find(round->ids[round->next++]);
      if (found == plugins.end() || !found->second->session->Wants(kValidate)) continue;
      return found->second->session->Validate(
          {round->pod, round->original, round->answers.adjustment(), round->answers.updates(),
           round->answers.owners(), round->instances},
          [weak = weak_from_this(), round](Result<void> valid) {
            const auto self = weak.lock();
            if (self == nullptr) return round->done(Unavailable("the node is stopping"));
            if (!valid.ok()) return self->End(round, std::move(valid).error());
            self->Validate(round);
          });
    }
    Settle(round);
  }

  // The updates of other containers come into force before the event is answered.
  void Settle(const std::shared_ptr<Round>& round) {
    Apply(round->answers.updates(), round->answers.evictions(),
          [weak = weak_from_this(), round](const std::vector<HookedObjects::FailedUpdate>& failed) {
            const auto self = weak.lock();
            if (self == nullptr) return round->done(Unavailable("the node is stopping"));
            if (!failed.empty()) {
              return self->End(round, failed.front().error.Prefixed(StrCat(
                                          "update container ", failed.front().update.container_id,
                                          " for an NRI plugin")));
            }
            self->End(round, Changes{round->answers.adjustment(), round->answers.own_changes()});
          });
  }

  bool HasConfigured() const {
    return std::ranges::any_of(
        plugins, [](const auto& entry) { return entry.second->session->is_configured(); });
  }

  Options options;
  HookedObjects* objects = nullptr;
  std::map<std::uint64_t, std::unique_ptr<Plugin>> plugins;
  std::uint64_t next_id = 1;
  std::deque<Turn> waiting;
  bool is_busy = false;
  std::unique_ptr<net::Listener> listener;
};

NriServer::NriServer(Options options) : impl_(std::make_shared<Impl>(std::move(options))) {}

NriServer::~NriServer() {
  impl_->listener.reset();
  impl_->waiting.clear();
  impl_->plugins.clear();
}

void NriServer::Connect(HookedObjects* objects) {
  impl_->objects = objects;
}

Result<void> NriServer::Start() {
  const std::string& path = impl_->options.socket_path;
  RETURN_IF_ERROR(RealFileSystem().MakeDirectories(DirectoryName(path), 0750));
  auto listener = net::Listener::Create(impl_->options.loop, {.address = {.unix_path = path}},
                                        [impl = impl_.get()](std::unique_ptr<net::Socket> socket) {
                                          impl->Accept(std::move(socket));
                                        });
  if (!listener.ok()) return std::move(listener).error().Prefixed("serve NRI");
  impl_->listener = *std::move(listener);
  return Ok();
}

// A plugin that is configured but not yet synchronized counts: the event comes after that.
bool NriServer::Wants(rpc::NriEvent event) const {
  if (event == rpc::NriEvent::kCreateContainer && !impl_->options.required_plugins.empty()) {
    return true;
  }
  return std::ranges::any_of(impl_->plugins, [event](const auto& entry) {
    const rpc::NriRuntimeSession& session = *entry.second->session;
    return session.is_configured() &&
           (session.Wants(event) || (event == rpc::NriEvent::kCreateContainer &&
                                     session.Wants(rpc::NriEvent::kValidateContainerAdjustment)));
  });
}

void NriServer::Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriResources resources,
                        rpc::NriDone done) {
  if (!impl_->HasConfigured()) return done(Ok());
  impl_->Run(std::make_shared<Impl::Round>(event, std::move(pod), rpc::NriContainer(),
                                           std::move(resources), false),
             [done = std::move(done)](Result<Changes> result) mutable {
               if (!result.ok()) return done(std::move(result).error());
               done(Ok());
             });
}

void NriServer::DeliverContainer(rpc::NriEvent event, rpc::NriPodSandbox pod,
                                 rpc::NriContainer container, rpc::NriResources resources,
                                 Changed done) {
  impl_->Run(std::make_shared<Impl::Round>(event, std::move(pod), std::move(container),
                                           std::move(resources), true),
             std::move(done));
}

std::size_t NriServer::plugins() const {
  return impl_->Order().size();
}

}  // namespace drakkar::node
