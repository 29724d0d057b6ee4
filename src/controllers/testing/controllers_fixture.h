#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "controllers/controllers.h"
#include "telemetry/metrics/metrics.h"
#include "tests/support/api_server.h"
#include "tests/support/faulty_client.h"

namespace drakkar::controllers {

// All controllers against an in-process API server, on one seeded loop with a fake clock.
class ControllersFixture : public ::testing::Test {
 protected:
  ControllersFixture() { Start(); }

  void Start(Selection selection = {}) {
    controllers_.reset();
    controllers_ =
        std::make_unique<Controllers>(Controllers::Options{.loop = loop_,
                                                           .random = loop_.random(),
                                                           .client = faulty_,
                                                           .metrics = metrics_,
                                                           .ca_pem = "the authority",
                                                           .signing = signing_,
                                                           .selection = std::move(selection)});
    controllers_->Start();
    Settle();
  }

  // For tests whose nodes send no heartbeats.
  static Selection WithoutNodeLifecycle() {
    return *Selection::Parse(std::vector<std::string>{"*", "-node-lifecycle-controller"});
  }

  void Settle(Duration time = std::chrono::milliseconds(500)) { loop_.Advance(time); }

  api::ObjectPtr Create(std::string_view manifest) {
    api::ObjectPtr made = server_.Create(manifest);
    Settle();
    return made;
  }

  // Every object of a resource, by name.
  std::vector<api::ObjectPtr> All(std::string_view group, std::string_view plural) {
    std::vector<api::ObjectPtr> list;
    const apiserver::WatchCache& cache = *server_.core().FindCache(group, plural);
    for (const auto& [name, object] : cache.objects()) list.push_back(object);
    std::map<std::string, api::ObjectPtr> decoded;  // events
    for (const auto& [key, bytes] : cache.encoded()) decoded[key] = cache.Find(key);
    for (auto& [key, object] : decoded) list.push_back(std::move(object));
    return list;
  }
  std::vector<api::ObjectPtr> Pods() { return All("", "pods"); }
  std::vector<api::ObjectPtr> PodsOf(std::string_view owner) {
    std::vector<api::ObjectPtr> list;
    for (const api::ObjectPtr& pod : Pods()) {
      if ((*pod)["metadata"]["ownerReferences"].at(0)["name"].str() == owner) list.push_back(pod);
    }
    return list;
  }

  // Changes an object or a subresource of it, as a user would.
  void Change(std::string_view kind, const std::string& key, const std::string& subresource,
              const std::function<void(api::Draft&)>& change) {
    const api::ObjectPtr object = server_.Get(kind, key);
    ASSERT_NE(object, nullptr) << kind << " " << key;
    api::Draft draft(object->tree());
    change(draft);
    const client::Reply reply = server_.Update(kind, key, subresource, draft.Freeze());
    ASSERT_TRUE(reply.ok()) << reply.error->message;
    Settle();
  }

  void Bind(const api::ObjectPtr& pod, std::string_view node) {
    api::Draft binding = {{"apiVersion", "v1"}, {"kind", "Binding"}};
    binding["metadata"]["name"] = pod->name();
    binding["target"] = api::Draft{{"kind", "Node"}, {"name", node}};
    std::optional<client::Reply> reply;
    server_.client().Create({testing::KindNamed("Pod"), std::string(pod->namespace_()),
                             std::string(pod->name()), "binding"},
                            binding.Freeze(), {},
                            [&](client::Reply answer) { reply = std::move(answer); });
    Settle();
    ASSERT_TRUE(reply && reply->ok()) << (reply ? reply->error->message : "no answer");
  }

  // Does what scheduler and node do with a pod.
  void SetPod(const api::ObjectPtr& pod, std::string_view phase, bool ready) {
    Change("Pod", pod->qualified_name(), "status", [&](api::Draft& draft) {
      draft["status"]["phase"] = phase;
      draft["status"]["conditions"] = api::Draft::Array();
      draft["status"]["conditions"].Append(
          {{"type", "Ready"},
           {"status", ready ? "True" : "False"},
           {"lastTransitionTime", api::FormatTime(loop_.clock().Now())}});
    });
  }
  void MakeReady(const std::vector<api::ObjectPtr>& pods) {
    for (const api::ObjectPtr& pod : pods) {
      // A pod that became ready may have made another one superfluous.
      if (server_.Get("Pod", pod->qualified_name()) != nullptr) SetPod(pod, "Running", true);
    }
  }
  void MakeAllReady() { MakeReady(Pods()); }

  // The messages of all events with a reason.
  std::vector<std::string> Events(std::string_view reason) {
    Settle(std::chrono::seconds(1));
    std::vector<std::string> messages;
    for (const api::ObjectPtr& event : All("", "events")) {
      if ((*event)["reason"].str() == reason) messages.emplace_back((*event)["message"].str());
    }
    return messages;
  }

  // The CA of the signers; takes effect with the next Start.
  std::optional<SigningAuthority> signing_;
  SeededLoop loop_;
  testing::TestApiServer server_{loop_};
  Metrics metrics_;
  std::unique_ptr<client::Client> client_ = server_.NewClient("system:kube-controller-manager");
  testing::FaultyClient faulty_{loop_, *client_};
  std::unique_ptr<Controllers> controllers_;
};

}  // namespace drakkar::controllers
