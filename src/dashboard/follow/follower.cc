#include "dashboard/follow/follower.h"

#include <algorithm>

#include "answers/cluster/snapshot_reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::dashboard {
namespace {

using answers::SnapshotKind;

constexpr std::string_view kDevices = "proxy/devices";

client::ResourceRef Ref(std::string_view group, std::string_view kind, std::string ns = {},
                        std::string name = {}, std::string_view subresource = {}) {
  return {api::FindKind(group, "v1", kind), std::move(ns), std::move(name),
          std::string(subresource)};
}

}  // namespace

Follower::Follower(EventLoop& loop, Random& random, client::Client& client,
                   const answers::Snapshot& first, Callbacks callbacks)
    : loop_(loop), client_(client), callbacks_(std::move(callbacks)) {
  live_ = std::make_unique<answers::LiveCluster>(loop, random, client, first, answers::kEveryKind);
  live_->OnChange(
      [this](SnapshotKind kind) { callbacks_.on_change(kind != SnapshotKind::kLeases); });
}

Follower::~Follower() = default;

void Follower::Start() {
  loop_.AssertInLoop();
  live_->Start();
}

answers::Snapshot Follower::Take() const {
  answers::Snapshot snapshot = live_->Take(loop_.clock().Now());
  // The page never shows a single moment; it updates continuously.
  std::erase_if(snapshot.notes, [](const std::string& note) {
    return note.find("at one resource version") != std::string::npos;
  });
  if (!may_ask_nodes_) {
    snapshot.notes.emplace_back(
        "you may not read nodes/proxy, so the health of devices that no pod holds is unknown");
  }
  for (const auto& [name, state] : nodes_) {
    if (!state.health.empty()) snapshot.node_health.emplace(name, state.health);
  }
  return snapshot;
}

void Follower::SetWatched(bool watched) {
  loop_.AssertInLoop();
  if (watched_ == watched) return;
  watched_ = watched;
  tick_.reset();
  if (watched_) Tick();
}

void Follower::SetNodes(const std::vector<std::string>& nodes) {
  loop_.AssertInLoop();
  std::map<std::string, NodeState> kept;
  for (const std::string& name : nodes) {
    const auto known = nodes_.find(name);
    if (known == nodes_.end()) {
      kept[name];
    } else {
      kept[name] = std::move(known->second);
    }
  }
  const bool had_none = nodes_.empty();
  nodes_ = std::move(kept);
  if (had_none && watched_) AskNodes();
}

void Follower::Tick() {
  CheckServer();
  AskNodes();
  tick_ = loop_.RunAfter(kAskInterval, [this] { Tick(); });
}

void Follower::CheckServer() {
  const MonotonicTime now = loop_.clock().Monotonic();
  if (checking_) {
    if (now - check_began_ >= kSilentServer) SetProblem("the API server does not answer");
    return;
  }
  checking_ = true;
  check_began_ = now;
  // One small object, so that the check is cheap however large the cluster. It does not matter
  // whether the caller may read it: a rejection is an answer too.
  client_.Get(Ref("", "Namespace", "", "default"), lifetime_.Guard([this](client::Reply reply) {
    checking_ = false;
    const bool answered = reply.ok() || (reply.http_status != 0 && reply.http_status < 500);
    SetProblem(answered ? "" : reply.error->message);
  }));
}

void Follower::SetProblem(std::string problem) {
  if (problem == problem_) return;
  problem_ = std::move(problem);
  callbacks_.on_problem(problem_);
}

void Follower::AskNodes() {
  if (!may_ask_nodes_) return;
  const MonotonicTime now = loop_.clock().Monotonic();
  std::vector<std::pair<MonotonicTime, const std::string*>> due;
  for (const auto& [name, state] : nodes_) {
    if (!state.asked && state.due <= now) due.emplace_back(state.due, &name);
  }
  std::stable_sort(due.begin(), due.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (due.size() > kMaxAsks) due.resize(kMaxAsks);
  for (const auto& [at, name] : due) {
    nodes_[*name].asked = true;
    client_.Get(
        Ref("", "Node", "", *name, kDevices),
        lifetime_.Guard([this, node = *name](client::Reply reply) { OnHealth(node, reply); }));
  }
}

void Follower::OnHealth(const std::string& node, const client::Reply& reply) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  NodeState& state = found->second;
  state.asked = false;
  const MonotonicTime now = loop_.clock().Monotonic();
  if (!reply.ok() || reply.object == nullptr) {
    state.due = now + kSilentPause;
    if (reply.error && reply.error->code == ErrorCode::kForbidden && may_ask_nodes_) {
      may_ask_nodes_ = false;
      callbacks_.on_change(true);
    }
    return;
  }
  state.due = now + kAskInterval;
  answers::NodeHealth health = answers::ReadNodeHealth(reply.object->root());
  if (health == state.health) return;
  state.health = std::move(health);
  callbacks_.on_change(true);
}

void Follower::ReadCircumstances(const answers::WhySubject& subject,
                                 std::function<void(Circumstances)> done) {
  const bool is_pod = subject.kind == answers::WhySubject::Kind::kPod;
  client_.Get(
      is_pod ? Ref("", "Pod", subject.namespace_, subject.name, "why")
             : Ref("resource.k8s.io", "ResourceClaim", subject.namespace_, subject.name, "why"),
      lifetime_.Guard([this, subject, done = std::move(done)](client::Reply reply) {
        if (reply.ok() && reply.object != nullptr && reply.object->root()["sentence"].is_string()) {
          return done({.answer = api::WriteJson(reply.object->root())});
        }
        ReadSettings(subject.namespace_, subject.name, done);
      }));
}

void Follower::ReadSettings(const std::string& ns, const std::string& name,
                            std::function<void(Circumstances)> done) {
  client_.Get(
      Ref("", "ConfigMap", scheduler::kSettingsNamespace, scheduler::kSettingsName),
      lifetime_.Guard([this, ns, name, done = std::move(done)](client::Reply reply) {
        Circumstances read;
        if (reply.ok()) {
          Result<scheduler::Settings> settings = scheduler::SettingsFromConfigMap(*reply.object);
          if (settings.ok()) {
            read.settings = std::move(*settings);
          } else {
            read.notes.push_back(
                StrCat("could not read the scheduler's settings, assuming the "
                       "defaults: ",
                       settings.error().message));
          }
        } else {
          read.notes.emplace_back(
              "the scheduler has not published its settings; assuming the defaults");
        }
        ReadEvents(ns, name, [read = std::move(read), done](answers::Objects events) mutable {
          read.events = std::move(events);
          done(std::move(read));
        });
      }));
}

void Follower::ReadEvents(const std::string& ns, const std::string& name,
                          std::function<void(answers::Objects)> done) {
  client_.List(Ref("", "Event", ns),
               client::ListOptions{.field_selector = StrCat("involvedObject.name=", name)},
               lifetime_.Guard([done = std::move(done)](client::ListReply reply) {
                 done(reply.ok() ? std::move(reply.items) : answers::Objects());
               }));
}

}  // namespace drakkar::dashboard
