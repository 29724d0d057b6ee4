#include "node/nri/nri_server.h"

#include <algorithm>
#include <utility>

#include "base/env/file_system.h"
#include "base/text/text.h"
#include "net/socket/socket.h"
#include "node/nri/adjustment.h"
#include "rpc/nri/nri_runtime_session.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.nri");

// A plugin that reads this slowly is disconnected.
constexpr std::size_t kMaxPendingBytes = 8u << 20;

bool IsNeverSent(rpc::NriEvent event) {
  using Event = rpc::NriEvent;
  return event == Event::kUpdateContainer || event == Event::kPostUpdateContainer ||
         event == Event::kUpdatePodSandbox || event == Event::kPostUpdatePodSandbox;
}

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
          .pods = owner.options.pods,
          .containers = owner.options.containers,
          .on_ready = [this] { OnReady(); },
          .on_failed = [this](const Error& error) { owner.Drop(id, error); }});
      socket->Start(*this);
    }

    void OnReady() {
      kLog.Info("NRI plugin registered", {{"plugin", session->title()}});
      std::vector<std::string> never;
      for (const rpc::NriEvent event : session->subscribed()) {
        if (IsNeverSent(event)) never.emplace_back(rpc::NriEventName(event));
      }
      if (never.empty()) return;
      kLog.Warning("NRI plugin subscribed to events that this node never sends",
                   {{"plugin", session->title()}, {"events", Join(never, ", ")}});
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

  // One event passing from plugin to plugin.
  struct Round {
    Round(rpc::NriEvent given, rpc::NriPodSandbox about, rpc::NriContainer container,
          bool of_container)
        : event(given),
          pod(std::move(about)),
          changes(std::move(container)),
          is_container(of_container) {}
    const rpc::NriEvent event;
    const rpc::NriPodSandbox pod;
    AdjustmentCollector changes;
    const bool is_container;
    std::vector<std::uint64_t> ids;
    std::size_t next = 0;
    rpc::NriAdjusted done;
  };

  void Start(const std::shared_ptr<Round>& round, rpc::NriAdjusted done) {
    options.loop.AssertInLoop();
    round->ids = Order();
    round->done = std::move(done);
    Step(round);
  }

  void Step(const std::shared_ptr<Round>& round) {
    if (round->next >= round->ids.size()) return round->done(round->changes.adjustment());
    const auto found = plugins.find(round->ids[round->next++]);
    if (found == plugins.end()) return Step(round);
    rpc::NriRuntimeSession& session = *found->second->session;
    auto answered = [weak = weak_from_this(), round,
                     title = session.title()](Result<rpc::NriContainerAdjustment> answer) {
      if (!answer.ok()) return round->done(std::move(answer).error());
      if (auto taken = round->changes.Add(title, *answer); !taken.ok()) {
        return round->done(std::move(taken).error());
      }
      if (const auto self = weak.lock()) return self->Step(round);
      round->done(Unavailable("the node is stopping"));
    };
    if (round->is_container) {
      return session.DeliverContainer(round->event, round->pod, round->changes.container(),
                                      std::move(answered));
    }
    session.Deliver(
        round->event, round->pod, [answered = std::move(answered)](Result<void> result) {
          answered(result.ok() ? Result<rpc::NriContainerAdjustment>(rpc::NriContainerAdjustment())
                               : std::move(result).error());
        });
  }

  Options options;
  std::map<std::uint64_t, std::unique_ptr<Plugin>> plugins;
  std::uint64_t next_id = 1;
  std::unique_ptr<net::Listener> listener;
};

NriServer::NriServer(Options options) : impl_(std::make_shared<Impl>(std::move(options))) {}

NriServer::~NriServer() {
  impl_->listener.reset();
  impl_->plugins.clear();
}

void NriServer::SetObjects(std::function<std::vector<rpc::NriPodSandbox>()> pods,
                           std::function<std::vector<rpc::NriContainer>()> containers) {
  impl_->options.pods = std::move(pods);
  impl_->options.containers = std::move(containers);
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

bool NriServer::Wants(rpc::NriEvent event) const {
  return std::ranges::any_of(impl_->plugins, [event](const auto& entry) {
    return entry.second->session->is_ready() && entry.second->session->Wants(event);
  });
}

void NriServer::Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriDone done) {
  impl_->Start(std::make_shared<Impl::Round>(event, std::move(pod), rpc::NriContainer(), false),
               [done = std::move(done)](Result<rpc::NriContainerAdjustment> result) mutable {
                 if (!result.ok()) return done(std::move(result).error());
                 done(Ok());
               });
}

void NriServer::DeliverContainer(rpc::NriEvent event, rpc::NriPodSandbox pod,
                                 rpc::NriContainer container, rpc::NriAdjusted done) {
  impl_->Start(std::make_shared<Impl::Round>(event, std::move(pod), std::move(container), true),
               std::move(done));
}

std::size_t NriServer::plugins() const {
  return impl_->Order().size();
}

}  // namespace drakkar::node
