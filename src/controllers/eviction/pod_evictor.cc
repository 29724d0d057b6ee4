#include "controllers/eviction/pod_evictor.h"

#include "api/json/writer.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::controllers {

namespace {

client::ResourceRef Ref(const api::Object& pod, std::string subresource) {
  return {api::FindKind("", "v1", "Pod"), std::string(pod.namespace_()), std::string(pod.name()),
          std::move(subresource)};
}

// The pod was deleted, or another one has taken its name.
bool IsGone(const client::Reply& reply) {
  return reply.error &&
         (reply.error->code == ErrorCode::kNotFound || reply.error->code == ErrorCode::kConflict);
}

}  // namespace

std::string PodEvictor::Text(std::string_view text, const api::Object& pod) const {
  if (!options_.names_pod) return std::string(text);
  return StrCat(text, text.ends_with("for deletion") ? " Pod " : " of Pod ", pod.qualified_name());
}

void PodEvictor::Evict(const api::ObjectPtr& pod, client::WorkQueue::Done done) {
  options_.events.Normal(pod, options_.event_reason, Text("Marking for deletion", *pod));
  api::Draft patch;
  patch["metadata"]["uid"] = pod->uid();  // a precondition
  patch["status"]["conditions"] = api::Draft::Array();
  patch["status"]["conditions"].Append(
      {{"type", "DisruptionTarget"},
       {"status", "True"},
       {"reason", options_.condition_reason},
       {"message", options_.condition_message},
       {"lastTransitionTime", api::FormatTime(options_.loop.clock().Now())}});
  client_.Patch(Ref(*pod, "status"), client::PatchType::kStrategicMerge,
                api::WriteJson(patch.Freeze()->root()), {},
                [this, pod, done = std::move(done)](client::Reply reply) mutable {
                  if (IsGone(reply)) return done(Ok());
                  if (!reply.ok()) return done(*reply.error);
                  Delete(pod, std::move(done));
                });
}

void PodEvictor::Delete(const api::ObjectPtr& pod, client::WorkQueue::Done done) {
  client_.Delete(Ref(*pod, ""), {.precondition_uid = std::string(pod->uid())},
                 [done = std::move(done)](client::Reply reply) {
                   done(reply.ok() || IsGone(reply) ? Ok() : Result<void>(*reply.error));
                 });
}

void PodEvictor::Cancel(const api::ObjectPtr& pod) {
  options_.events.Normal(pod, options_.event_reason, Text("Cancelling deletion", *pod));
}

}  // namespace drakkar::controllers
