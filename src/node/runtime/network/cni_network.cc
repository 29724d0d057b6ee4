#include "node/runtime/network/cni_network.h"

#include <algorithm>

#include "api/json/json_writer.h"
#include "base/text/text.h"
#include "node/runtime/network/cni_result.h"

namespace drakkar::node {
namespace {

constexpr CniVersion kFirstWithCheck{0, 4, 0};
constexpr CniVersion kFirstWithGc{1, 1, 0};
constexpr CniVersion kFirstWithStatus{1, 1, 0};
constexpr char kNotInitialized[] = "cni plugin not initialized";

// The part of `path` below `directory` up to the next slash: "cni" for /etc and /etc/cni/net.d.
std::string NextComponent(const std::string& directory, const std::string& path) {
  const std::string below = path.substr(directory == "/" ? 1 : directory.size() + 1);
  return below.substr(0, below.find('/'));
}

}  // namespace

CapabilityArguments CapabilitiesOf(const PodNetworkRequest& request) {
  CapabilityArguments arguments;
  if (!request.ports.empty()) {
    api::JsonWriter json;
    json.BeginArray();
    for (const PortMapping& each : request.ports) {
      json.BeginObject();
      json.Key("hostPort").Integer(each.host_port);
      json.Key("containerPort").Integer(each.container_port);
      json.Member("protocol", ToLower(each.protocol));
      if (!each.host_ip.empty()) json.Member("hostIP", each.host_ip);
      json.EndObject();
    }
    json.EndArray();
    arguments["portMappings"] = json.Take();
  }
  const Bandwidth& bandwidth = request.bandwidth;
  if (bandwidth.ingress_bits > 0 || bandwidth.egress_bits > 0) {
    // Allow a burst of any length: only the rate was requested. Kubelets' runtimes do the same.
    constexpr std::int64_t kBurstBits = INT32_MAX;
    api::JsonWriter json;
    json.BeginObject();
    if (bandwidth.ingress_bits > 0) {
      json.Key("ingressRate").Integer(bandwidth.ingress_bits);
      json.Key("ingressBurst").Integer(kBurstBits);
    }
    if (bandwidth.egress_bits > 0) {
      json.Key("egressRate").Integer(bandwidth.egress_bits);
      json.Key("egressBurst").Integer(kBurstBits);
    }
    json.EndObject();
    arguments["bandwidth"] = json.Take();
  }
  if (request.dns) {
    api::JsonWriter json;
    json.BeginObject();
    json.Array("servers", request.dns->servers);
    json.Array("searches", request.dns->searches);
    json.Array("options", request.dns->options);
    json.EndObject();
    arguments["dns"] = json.Take();
  }
  if (!request.annotations.empty()) {
    api::JsonWriter json;
    json.BeginObject();
    for (const auto& [name, value] : request.annotations) json.Member(name, value);
    json.EndObject();
    arguments["io.kubernetes.cri.pod-annotations"] = json.Take();
  }
  return arguments;
}

Result<std::string> CniArgumentsOf(const PodNetworkRequest& request) {
  const std::pair<const char*, const std::string&> arguments[] = {
      {"K8S_POD_NAMESPACE", request.pod_namespace},
      {"K8S_POD_NAME", request.pod_name},
      {"K8S_POD_INFRA_CONTAINER_ID", request.sandbox_id},
      {"K8S_POD_UID", request.pod_uid},
  };
  std::string text = "IgnoreUnknown=1";
  for (const auto& [name, value] : arguments) {
    if (value.find_first_of(";=\n") != std::string::npos) {
      return InvalidArgument(StrCat(Quote(value), " cannot be passed to network plugins"));
    }
    text += StrCat(";", name, "=", value);
  }
  return text;
}

CniNetwork::CniNetwork(Options options)
    : options_(std::move(options)), attachments_(options_.files, options_.state_directory) {}

void CniNetwork::Start() {
  Watch();
  Load();
}

void CniNetwork::Watch() {
  // Until the directory exists, its nearest parent is watched.
  std::string directory = options_.config_directory;
  watch_.reset();
  while (true) {
    auto watch = options_.watcher.Watch(
        directory, [this](const FileEvent& event) { OnDirectoryEvent(event); });
    if (watch.ok()) {
      watch_ = std::move(*watch);
      watched_directory_ = directory;
      return;
    }
    if (directory == "/" || directory.empty()) {
      return Log(
          StrCat("could not watch ", options_.config_directory, ": ", watch.error().message));
    }
    directory = DirectoryName(directory);
  }
}

void CniNetwork::OnDirectoryEvent(const FileEvent& event) {
  const bool is_parent = watched_directory_ != options_.config_directory;
  if (is_parent && !event.name.empty() &&
      event.name != NextComponent(watched_directory_, options_.config_directory)) {
    return;
  }
  if (load_timer_ != nullptr) return;
  // A file that is just being written would be refused.
  load_timer_ = options_.loop.RunAfter(kSettle, [this] {
    auto own = std::move(load_timer_);
    if (watched_directory_ != options_.config_directory ||
        !options_.files.Exists(watched_directory_)) {
      Watch();
    }
    Load();
  });
}

void CniNetwork::Load() {
  auto loaded = LoadCniList(options_.files, options_.config_directory);
  PodNetworkState state{PodNetworkMode::kOwn, ""};
  std::optional<CniList> list;
  bool uses_built_in = false;
  if (loaded.ok()) {
    list = *std::move(loaded);
  } else if (loaded.error().code != ErrorCode::kNotFound) {
    state = {PodNetworkMode::kNotReady, StrCat("cni config load failed: ", loaded.error().message)};
  } else if (options_.built_in) {
    list = options_.built_in;
    uses_built_in = true;
  } else if (!options_.shared_because.empty()) {
    state = {PodNetworkMode::kHost, options_.shared_because};
  } else {
    state = {PodNetworkMode::kNotReady,
             StrCat("cni config load failed: ", loaded.error().message, ": ", kNotInitialized)};
  }
  const std::string before = list_ ? list_->text : "";
  list_ = std::move(list);
  uses_built_in_ = uses_built_in;
  if (list_ && list_->text != before) {
    Log(StrCat("new pods join the network ", list_->name));
    status_.reset();
  }
  configured_ = std::move(state);
  Publish();
  AskStatus();
}

void CniNetwork::Publish() {
  PodNetworkState state = configured_;
  if (state.mode == PodNetworkMode::kOwn && ReportsStatus() && status_ != "") {
    state = {PodNetworkMode::kNotReady,
             status_ ? StrCat("network plugins are not ready: ", *status_)
                     : "network plugins were asked for their status and have not answered yet"};
  }
  if (state == state_) return;
  if (status_ && !status_->empty()) Log(state.message);
  state_ = std::move(state);
  if (listener_) listener_();
}

bool CniNetwork::ReportsStatus() const {
  return list_ && list_->parsed_version >= kFirstWithStatus;
}

// Not an operation: it changes nothing, and must not wait for the pods in the queue.
void CniNetwork::AskStatus() {
  status_timer_.reset();
  if (!ReportsStatus() || std::exchange(asks_status_, true)) return;
  auto pass = NewPass(*list_, {}, "STATUS", "");
  pass->stop_at_error = true;
  pass->done = [this, text = list_->text](Result<std::string> result) {
    asks_status_ = false;
    const bool is_current = list_ && list_->text == text;
    if (is_current) {
      status_ = result.ok() ? "" : result.error().message;
      Publish();
    }
    if (!is_current) return options_.loop.Post(lifetime_.Guard([this] { AskStatus(); }));
    status_timer_ = options_.loop.RunAfter(kStatusEvery, [this] { AskStatus(); });
  };
  RunPass(std::move(pass));
}

bool CniNetwork::Enqueue(Operation operation) {
  if (queue_.size() >= kMaxQueued) return false;
  queue_.push_back(std::move(operation));
  options_.loop.Post(lifetime_.Guard([this] { RunQueued(); }));
  return true;
}

void CniNetwork::RunQueued() {
  while (!queue_.empty() && running_ < kMaxRunning && !runs_exclusive_) {
    if (queue_.front().exclusive && running_ > 0) return;
    Operation operation = std::move(queue_.front());
    queue_.pop_front();
    ++running_;
    runs_exclusive_ = operation.exclusive;
    operation.run(lifetime_.Guard([this] {
      --running_;
      runs_exclusive_ = false;
      RunQueued();
    }));
  }
}

void CniNetwork::SetUp(PodNetworkRequest request, RuntimeCallback<std::vector<std::string>> done) {
  options_.loop.AssertInLoop();
  auto shared = std::make_shared<RuntimeCallback<std::vector<std::string>>>(std::move(done));
  const bool accepted =
      Enqueue({[this, request = std::move(request), shared](auto finished) mutable {
        Add(std::move(request), [shared, finished = std::move(finished)](auto addresses) mutable {
          finished();
          (*shared)(std::move(addresses));
        });
      }});
  if (accepted) return;
  options_.loop.Post(lifetime_.Guard([shared] {
    (*shared)(Error{ErrorCode::kResourceExhausted, "too many pods wait for their network"});
  }));
}

void CniNetwork::TearDown(const PodNetworkUser& user, RuntimeCallback<void> done) {
  options_.loop.AssertInLoop();
  auto shared = std::make_shared<RuntimeCallback<void>>(std::move(done));
  const bool accepted = Enqueue({[this, user, shared](auto finished) mutable {
    Delete(user, [shared, finished = std::move(finished)](Result<void> deleted) mutable {
      finished();
      (*shared)(std::move(deleted));
    });
  }});
  if (accepted) return;
  options_.loop.Post(lifetime_.Guard([shared] {
    (*shared)(Error{ErrorCode::kResourceExhausted, "too many pods wait for their network"});
  }));
}

void CniNetwork::Add(PodNetworkRequest request, RuntimeCallback<std::vector<std::string>> done) {
  if (state_.mode != PodNetworkMode::kOwn || !list_) {
    return done(Unavailable(StrCat("network is not ready: ", state_.message)));
  }
  if (!uses_built_in_ || is_prepared_ || !options_.prepare_built_in) {
    return AddTo(*list_, std::move(request), std::move(done));
  }
  options_.prepare_built_in(
      lifetime_.Guard([this, list = *list_, request = std::move(request),
                       done = std::move(done)](Result<void> prepared) mutable {
        if (!prepared.ok()) {
          return done(std::move(prepared).error().Prefixed("prepare the built-in pod network"));
        }
        is_prepared_ = true;
        AddTo(std::move(list), std::move(request), std::move(done));
      }));
}

void CniNetwork::AddTo(CniList list, PodNetworkRequest request,
                       RuntimeCallback<std::vector<std::string>> done) {
  auto arguments = CniArgumentsOf(request);
  if (!arguments.ok()) return done(std::move(arguments).error());
  CniAttachment attachment{.sandbox_id = request.sandbox_id,
                           .interface = kInterface,
                           .cni_arguments = *std::move(arguments),
                           .capabilities = CapabilitiesOf(request),
                           .list_text = list.text,
                           .result = ""};
  // Before anything exists that would have to be removed.
  if (auto saved = attachments_.Save(attachment); !saved.ok()) {
    return done(std::move(saved).error());
  }
  auto pass = NewPass(std::move(list), attachment, "ADD", request.namespace_path);
  pass->stop_at_error = true;
  pass->done = [this, attachment, path = request.namespace_path,
                done = std::move(done)](Result<std::string> result) mutable {
    auto fail = [&](Error error) {
      UndoAdd(attachment.sandbox_id, path, std::move(error), std::move(done));
    };
    if (!result.ok()) return fail(std::move(result).error());
    auto parsed = ParseCniResult(*result, attachment.interface);
    if (!parsed.ok()) return fail(std::move(parsed).error());
    if (parsed->addresses.empty()) {
      return fail(Internal("the network plugins returned no address for the pod"));
    }
    attachment.result = *std::move(result);
    if (auto saved = attachments_.Save(attachment); !saved.ok()) {
      return fail(std::move(saved).error());
    }
    done(std::move(parsed->addresses));
  };
  RunPass(std::move(pass));
}

void CniNetwork::UndoAdd(const std::string& sandbox_id, const std::string& namespace_path,
                         Error error, RuntimeCallback<std::vector<std::string>> done) {
  Delete({sandbox_id, namespace_path}, [this, sandbox_id, error = std::move(error),
                                        done = std::move(done)](Result<void> deleted) mutable {
    if (!deleted.ok()) {
      Log(StrCat("could not undo a failed network setup: ", deleted.error().message));
      RetryLater(sandbox_id);
    }
    done(std::move(error));
  });
}

void CniNetwork::Delete(const PodNetworkUser& user, RuntimeCallback<void> done) {
  auto attachment = attachments_.Load(user.sandbox_id);
  auto list = attachment.ok() ? ParseCniList(attachment->list_text, /*is_list=*/true)
                              : Result<CniList>(attachment.error());
  if (!attachment.ok() && attachment.error().code == ErrorCode::kNotFound) return done(Ok());
  const bool is_lost =
      !attachment.ok() ? attachment.error().code == ErrorCode::kDataLoss : !list.ok();
  if (is_lost) {
    // It would be just as unusable the next time. The plugins' own state for it is left to their
    // GC.
    Log(StrCat("the network record of sandbox ", user.sandbox_id,
               " cannot be used and was dropped: ", list.error().message));
    return done(attachments_.Remove(user.sandbox_id));
  }
  if (!list.ok()) return done(std::move(list).error());
  auto pass = NewPass(*std::move(list), *attachment, "DEL", user.namespace_path);
  pass->result = attachment->result;
  std::ranges::reverse(pass->order);
  pass->done = [this, id = user.sandbox_id,
                done = std::move(done)](Result<std::string> result) mutable {
    if (!result.ok()) return done(std::move(result).error());
    orphans_.erase(id);
    done(attachments_.Remove(id));
  };
  RunPass(std::move(pass));
}

void CniNetwork::Check(const PodNetworkUser& user, RuntimeCallback<void> done) {
  auto attachment = attachments_.Load(user.sandbox_id);
  if (!attachment.ok()) return done(std::move(attachment).error());
  auto list = ParseCniList(attachment->list_text, /*is_list=*/true);
  if (!list.ok()) return done(std::move(list).error());
  if (list->disable_check || list->parsed_version < kFirstWithCheck) return done(Ok());
  auto pass = NewPass(*std::move(list), *attachment, "CHECK", user.namespace_path);
  pass->result = attachment->result;
  pass->done = [done = std::move(done)](Result<std::string> result) mutable {
    done(result.ok() ? Ok() : Result<void>(result.error()));
  };
  RunPass(std::move(pass));
}

void CniNetwork::CollectGarbage(RuntimeCallback<void> done) {
  if (!list_ || list_->disable_gc || list_->parsed_version < kFirstWithGc) return done(Ok());
  auto ids = attachments_.List();
  if (!ids.ok()) return done(std::move(ids).error());
  api::JsonWriter json;
  json.BeginArray();
  for (const std::string& id : *ids) {
    const auto attachment = attachments_.Load(id);
    if (!attachment.ok()) continue;
    const auto list = ParseCniList(attachment->list_text, /*is_list=*/true);
    if (!list.ok() || list->name != list_->name) continue;
    json.BeginObject();
    json.Member("containerID", id);
    json.Member("ifname", attachment->interface);
    json.EndObject();
  }
  json.EndArray();
  auto pass = NewPass(*list_, {}, "GC", "");
  pass->valid_attachments = json.Take();
  pass->done = [done = std::move(done)](Result<std::string> result) mutable {
    done(result.ok() ? Ok() : Result<void>(result.error()));
  };
  RunPass(std::move(pass));
}

std::shared_ptr<CniNetwork::Pass> CniNetwork::NewPass(CniList list, CniAttachment attachment,
                                                      std::string command,
                                                      std::string namespace_path) {
  auto pass = std::make_shared<Pass>();
  for (std::size_t i = 0; i < list.plugins.size(); ++i) {
    if (command == "GC" || command == "STATUS" ||
        IsNeeded(list.plugins[i], attachment.capabilities)) {
      pass->order.push_back(i);
    }
  }
  pass->list = std::move(list);
  pass->attachment = std::move(attachment);
  pass->command = std::move(command);
  pass->namespace_path = std::move(namespace_path);
  return pass;
}

// Except for ADD and STATUS, every plugin is called even after a failure: whatever can be removed
// or verified is, and the first error is reported.
void CniNetwork::RunPass(std::shared_ptr<Pass> pass) {
  const bool stops = pass->first_error && pass->stop_at_error;
  if (pass->order.empty() || stops) {
    if (pass->first_error) return pass->done(*pass->first_error);
    return pass->done(pass->result);
  }
  const CniPlugin& plugin = pass->list.plugins[pass->order.front()];
  pass->order.erase(pass->order.begin());
  auto input = MakePluginInput({.list = pass->list,
                                .plugin = plugin,
                                .arguments = pass->attachment.capabilities,
                                .previous_result = pass->result,
                                .valid_attachments = pass->valid_attachments});
  if (!input.ok()) {
    if (!pass->first_error) pass->first_error = std::move(input).error();
    return RunPass(std::move(pass));
  }
  const bool is_add = pass->command == "ADD";
  const std::string type = plugin.type;
  options_.executor.Run(
      {.plugin = type,
       .command = pass->command,
       .container_id = pass->attachment.sandbox_id,
       .namespace_path = pass->namespace_path,
       .interface = pass->attachment.interface,
       .arguments = pass->attachment.cni_arguments,
       .input = *std::move(input)},
      lifetime_.Guard([this, pass, type, is_add](Result<std::string> output) mutable {
        if (output.ok() && is_add) {
          auto parsed = ParseCniResult(*output, pass->attachment.interface);
          if (parsed.ok()) {
            pass->result = std::move(parsed->json);
          } else {
            output = std::move(parsed).error().Prefixed(StrCat("plugin ", type));
          }
        }
        if (!output.ok() && !pass->first_error) pass->first_error = std::move(output).error();
        RunPass(std::move(pass));
      }));
}

void CniNetwork::Adopt(std::vector<PodNetworkUser> users) {
  options_.loop.AssertInLoop();
  auto ids = attachments_.List();
  if (!ids.ok()) return Log(StrCat("could not read the network records: ", ids.error().message));
  for (const std::string& id : *ids) {
    const auto user = std::ranges::find(users, id, &PodNetworkUser::sandbox_id);
    if (user == users.end()) {
      TearDown({id, ""}, [this, id](Result<void> deleted) {
        if (deleted.ok()) {
          return Log(StrCat("removed the network of sandbox ", id, ", which no longer exists"));
        }
        Log(StrCat("could not remove the network of sandbox ", id,
                   ", which no longer exists: ", deleted.error().message));
        RetryLater(id);
      });
      continue;
    }
    Enqueue({[this, user = *user](auto finished) mutable {
      Check(user, [this, user, finished = std::move(finished)](Result<void> checked) mutable {
        finished();
        if (checked.ok()) return;
        Log(StrCat("the network of sandbox ", user.sandbox_id,
                   " is not as it was set up: ", checked.error().message));
      });
    }});
  }
  // Run alone: a plugin would treat what a pod gets at the same time as garbage.
  Enqueue({.run =
               [this](auto finished) mutable {
                 CollectGarbage([this, finished = std::move(finished)](Result<void> done) mutable {
                   finished();
                   if (done.ok()) return;
                   Log(StrCat("network plugins could not collect garbage: ", done.error().message));
                 });
               },
           .exclusive = true});
}

void CniNetwork::RetryLater(const std::string& sandbox_id) {
  orphans_.insert(sandbox_id);
  if (orphan_timer_ != nullptr) return;
  orphan_timer_ = options_.loop.RunAfter(orphan_backoff_.Next(), [this] {
    auto own = std::move(orphan_timer_);
    RetryOrphans();
  });
}

void CniNetwork::RetryOrphans() {
  const std::set<std::string> ids = std::exchange(orphans_, {});
  for (const std::string& id : ids) {
    TearDown({id, ""}, [this, id](Result<void> deleted) {
      if (deleted.ok()) return orphan_backoff_.Reset();
      RetryLater(id);
    });
  }
}

}  // namespace drakkar::node
