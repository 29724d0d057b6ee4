#include "scheduler/binding/pod_status_writer.h"

#include <algorithm>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "scheduler/binding/claim_writer.h"

namespace drakkar::scheduler {

using api::Value;

api::TreePtr ApplyPodStatus(const api::Object& pod, const PodStatusWriter::Change& change,
                            const std::string& now) {
  const Value status = pod["status"];
  api::Draft draft(pod.tree());
  bool changed = false;
  if (!change.nominated_node.empty() &&
      status["nominatedNodeName"].str() != change.nominated_node) {
    draft["status"]["nominatedNodeName"] = change.nominated_node;
    changed = true;
  }
  if (!change.reason.empty()) {
    std::size_t at = 0;
    Value old;
    const Value conditions = status["conditions"];
    for (; at < conditions.size(); ++at) {
      if (conditions.at(at)["type"].str() == "PodScheduled") {
        old = conditions.at(at);
        break;
      }
    }
    if (old["status"].str() != "False" || old["reason"].str() != change.reason ||
        old["message"].str() != change.message) {
      api::Draft condition{{"type", "PodScheduled"},   {"status", "False"},
                           {"lastProbeTime", nullptr}, {"lastTransitionTime", now},
                           {"reason", change.reason},  {"message", change.message}};
      // Set when the status changes, not when the reason does.
      if (old["status"].str() == "False" && old["lastTransitionTime"].is_string()) {
        condition["lastTransitionTime"] = old["lastTransitionTime"].str();
      }
      api::Draft& list = draft["status"]["conditions"];
      if (at < conditions.size()) {
        list.at(at) = std::move(condition);
      } else {
        list.Append(std::move(condition));
      }
      changed = true;
    }
  }
  return changed ? draft.Freeze() : nullptr;
}

void PodStatusWriter::Write(const api::ObjectPtr& pod, Change change) {
  const std::string uid(pod->uid());
  const auto [at, is_new] = jobs_.try_emplace(uid);
  Job& job = at->second;
  if (!change.reason.empty()) {
    job.change.reason = std::move(change.reason);
    job.change.message = std::move(change.message);
  }
  if (!change.nominated_node.empty()) job.change.nominated_node = std::move(change.nominated_node);
  if (!is_new) {
    job.again = true;
    return;
  }
  job.pod = pod;
  Send(uid);
}

void PodStatusWriter::Send(const std::string& uid) {
  const auto found = jobs_.find(uid);
  Job& job = found->second;
  job.again = false;
  api::TreePtr body = ApplyPodStatus(*job.pod, job.change, api::FormatTime(loop_.clock().Now()));
  if (body == nullptr) {
    jobs_.erase(found);
    return;
  }
  client_.Update({api::FindKind("", "v1", "Pod"), std::string(job.pod->namespace_()),
                  std::string(job.pod->name()), "status"},
                 std::move(body), {}, lifetime_.Guard([this, uid](client::Reply reply) {
                   OnWritten(uid, std::move(reply));
                 }));
}

void PodStatusWriter::OnWritten(const std::string& uid, client::Reply reply) {
  const auto found = jobs_.find(uid);
  Job& job = found->second;
  if (reply.ok()) {
    job.pod = reply.object;
    job.tries = 0;
    job.backoff.Reset();
    if (job.again) {
      Send(uid);
    } else {
      jobs_.erase(found);
    }
    return;
  }
  if (reply.error->code != ErrorCode::kConflict) {
    OnError(uid, *reply.error);
  } else if (++job.tries >= kMaxTries) {
    jobs_.erase(found);
  } else {
    ReadAgain(uid);
  }
}

void PodStatusWriter::ReadAgain(const std::string& uid) {
  const Job& job = jobs_.find(uid)->second;
  client_.Get(
      {api::FindKind("", "v1", "Pod"), std::string(job.pod->namespace_()),
       std::string(job.pod->name()), ""},
      lifetime_.Guard([this, uid](client::Reply fresh) {
        if (!fresh.ok()) return OnError(uid, *fresh.error);
        const auto again = jobs_.find(uid);
        // Bound or replaced in the meantime: nothing to write.
        if (fresh.object->uid() != uid || !fresh.object->root()["spec"]["nodeName"].str().empty()) {
          jobs_.erase(again);
          return;
        }
        again->second.pod = fresh.object;
        Send(uid);
      }));
}

void PodStatusWriter::OnError(const std::string& uid, const Error& error) {
  const auto found = jobs_.find(uid);
  Job& job = found->second;
  const bool may_pass = MayHaveHappened(error) || error.code == ErrorCode::kResourceExhausted;
  if (!may_pass || job.backoff.failures() >= kMaxFailures) {
    jobs_.erase(found);
    return;
  }
  auto read = lifetime_.Guard([this, uid] { ReadAgain(uid); });
  // Posted, because the job owns the timer, which must not be destroyed while it runs.
  job.pause = loop_.RunAfter(job.backoff.Next(),
                             [loop = &loop_, read = std::move(read)] { loop->Post(read); });
}

}  // namespace drakkar::scheduler
