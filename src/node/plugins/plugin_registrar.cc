#include "node/plugins/plugin_registrar.h"

#include "base/text/text.h"
#include "base/text/truncate.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.plugins");
constexpr std::size_t kMaxTypeBytes = 64;

}  // namespace

PluginRegistrar::PluginRegistrar(Options options, PluginStore& store)
    : options_(std::move(options)),
      store_(store),
      client_(rpc::MakeRegistrationClient(options_.transport)),
      watch_(options_.loop, options_.files, options_.watcher, options_.directory,
             {.on_created = [this](const std::string& path) { OnCreated(path); },
              .on_removed = [this](const std::string& path) { OnRemoved(path); },
              .on_scanned = [this] { OnScanned(); }}) {}

PluginRegistrar::~PluginRegistrar() = default;

Result<void> PluginRegistrar::Start() {
  return watch_.Start();
}

void PluginRegistrar::OnCreated(const std::string& path) {
  Socket& socket = sockets_[path];
  socket.wanted = true;
  socket.incarnation = next_incarnation_++;
  socket.backoff.Reset();
  socket.early.Reset();
  socket.retry.reset();
  ReportState(path, "desired_state_of_world", true);
  Advance(path);
}

void PluginRegistrar::OnRemoved(const std::string& path) {
  auto found = sockets_.find(path);
  if (found == sockets_.end()) return;
  found->second.wanted = false;
  found->second.incarnation = next_incarnation_++;
  found->second.retry.reset();
  ReportState(path, "desired_state_of_world", false);
  Advance(path);
  Answered(path, true);  // nobody serves it
}

void PluginRegistrar::OnScanned() {
  if (scanned_) return;
  scanned_ = true;
  for (const auto& [path, socket] : sockets_) {
    if (!socket.registered) unanswered_.insert(path);
  }
  Answered("", true);
}

void PluginRegistrar::Answered(const std::string& path, bool answered) {
  if (unanswered_.erase(path) > 0 && !answered) all_answered_ = false;
  if (!scanned_ || settled_ || !unanswered_.empty()) return;
  settled_ = true;
  if (options_.on_settled) options_.on_settled(all_answered_);
}

void PluginRegistrar::Deregister(Socket& socket) {
  if (!socket.registered) return;
  socket.registered = false;
  store_.Deregister(socket.driver, socket.endpoint);
}

// Moves a socket to its desired state. Anything still registered belongs to an older incarnation.
void PluginRegistrar::Advance(const std::string& path) {
  Socket& socket = sockets_[path];
  if (socket.busy) return;  // the pending answer calls this again
  if (socket.registered) {
    Deregister(socket);
    ReportState(path, "actual_state_of_world", false);
  }
  if (!socket.wanted) {
    sockets_.erase(path);
    return;
  }
  socket.busy = true;
  client_->GetInfo(path, kGetInfoTimeout,
                   [this, path, incarnation = socket.incarnation](Result<rpc::PluginInfo> info) {
                     OnInfo(path, incarnation, std::move(info));
                   });
}

void PluginRegistrar::OnInfo(const std::string& path, std::uint64_t incarnation,
                             Result<rpc::PluginInfo> info) {
  Socket& socket = sockets_[path];
  if (socket.incarnation != incarnation) {
    socket.busy = false;
    Advance(path);
    return Answered(path, false);
  }
  if (!info.ok()) {
    if (info.error().code == ErrorCode::kUnavailable && socket.early.failures() < kEarlyAttempts) {
      socket.busy = false;
      return RetryAfter(path, socket.early.Next());
    }
    Fail(path, StrCat("RegisterPlugin error -- failed to get plugin info using RPC GetInfo at "
                      "socket ",
                      path, ", err: ", info.error().message));
    return Answered(path, false);
  }
  TakeInfo(path, *info);
  Answered(path, true);
}

void PluginRegistrar::TakeInfo(const std::string& path, const rpc::PluginInfo& info) {
  Socket& socket = sockets_[path];
  if (info.type != rpc::kDraPluginType) {
    return Refuse(path, StrCat("RegisterPlugin error -- no handler registered for plugin type: ",
                               TruncateMessage(info.type, kMaxTypeBytes), " at socket ", path));
  }
  const std::string endpoint = info.endpoint.empty() ? path : info.endpoint;
  if (auto valid = PluginStore::Validate(info, endpoint); !valid.ok()) {
    return Refuse(path, StrCat("RegisterPlugin error -- plugin validation failed with err: ",
                               valid.error().message));
  }
  if (auto added = store_.Register(info, endpoint); !added.ok()) {
    return Refuse(path, StrCat("RegisterPlugin error -- plugin registration failed with err: ",
                               added.error().message));
  }
  socket.registered = true;
  socket.driver = info.name;
  socket.endpoint = endpoint;
  ReportState(path, "actual_state_of_world", true);
  client_->NotifyRegistrationStatus(
      path, {.plugin_registered = true}, kNotifyTimeout,
      [this, path, incarnation = socket.incarnation](Result<void> result) {
        OnNotified(path, incarnation, std::move(result));
      });
}

void PluginRegistrar::OnNotified(const std::string& path, std::uint64_t incarnation,
                                 Result<void> result) {
  Socket& socket = sockets_[path];
  if (socket.incarnation != incarnation) {
    socket.busy = false;
    return Advance(path);
  }
  if (!result.ok()) {
    Deregister(socket);
    ReportState(path, "actual_state_of_world", false);
    return Fail(
        path, StrCat("RegisterPlugin error -- failed to send registration status at socket ", path,
                     ", err: ", result.error().message));
  }
  socket.busy = false;
  socket.backoff.Reset();
}

// Reports the reason to the plugin and retries later, because its answer may change.
void PluginRegistrar::Refuse(const std::string& path, const std::string& reason) {
  const std::uint64_t incarnation = sockets_[path].incarnation;
  client_->NotifyRegistrationStatus(path, {.plugin_registered = false, .error = reason},
                                    kNotifyTimeout,
                                    [this, path, incarnation, reason](Result<void>) {
                                      Socket& socket = sockets_[path];
                                      if (socket.incarnation != incarnation) {
                                        socket.busy = false;
                                        return Advance(path);
                                      }
                                      Fail(path, reason);
                                    });
}

void PluginRegistrar::Fail(const std::string& path, const std::string& reason) {
  kLog.Warning("plugin not registered", {{"socket", path}, {"err", reason}});
  Socket& socket = sockets_[path];
  socket.busy = false;
  RetryAfter(path, socket.backoff.Next());
}

void PluginRegistrar::RetryAfter(const std::string& path, Duration delay) {
  sockets_[path].retry = options_.loop.RunAfter(delay, [this, path] {
    sockets_[path].retry.reset();
    Advance(path);
  });
}

void PluginRegistrar::ReportState(const std::string& path, const char* state, bool present) {
  if (options_.metrics == nullptr) return;
  const MetricLabels labels = {{"socket_path", path}, {"state", state}};
  if (present) {
    options_.metrics
        ->GetGauge("plugin_manager_total_plugins", "Number of plugins in Plugin Manager", labels)
        .Set(1);
  } else {
    options_.metrics->RemoveGauge("plugin_manager_total_plugins", labels);
  }
}

}  // namespace drakkar::node
