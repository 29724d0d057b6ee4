#include "controllers/job/pods.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "controllers/job/pod_outcome.h"
#include "controllers/workload/pod_from_template.h"

namespace drakkar::controllers {

namespace {

using api::Draft;

// 63 characters, minus five random ones: the maximum prefix of a generated name.
constexpr std::size_t kMaxPrefix = 58;
constexpr std::string_view kIndexVariable = "JOB_COMPLETION_INDEX";

const api::KindSchema& JobKind() {
  static const api::KindSchema* kind = api::FindKind("batch", "v1", "Job");
  return *kind;
}

std::string IndexedPrefix(std::string_view job, std::int64_t index) {
  const std::string tail = StrCat("-", index, "-");
  return StrCat(job.substr(0, kMaxPrefix - tail.size()), tail);
}

void AddVariable(Draft& spec, api::FieldName list) {
  Draft* containers = spec.Find(list);
  if (containers == nullptr || !containers->is_array()) return;
  for (Draft& container : containers->MutableElements()) {
    bool has_it = false;
    if (Draft* variables = container.Find("env"); variables != nullptr) {
      for (Draft& each : variables->MutableElements()) {
        has_it = has_it || each["name"].str() == kIndexVariable;
      }
    }
    if (has_it) continue;
    container["env"].Append(
        {{"name", kIndexVariable},
         {"valueFrom",
          {{"fieldRef",
            {{"apiVersion", "v1"},
             {"fieldPath", StrCat("metadata.labels['", kIndexAnnotation, "']")}}}}}});
  }
}

}  // namespace

api::TreePtr JobPod(const api::ObjectPtr& job, std::optional<std::int64_t> index,
                    const api::Object* replaced) {
  Draft pod = PodFromTemplate(job, JobKind(), (*job)["spec"]["template"]);
  Draft& metadata = pod["metadata"];
  bool tracked = false;
  if (Draft* finalizers = metadata.Find("finalizers"); finalizers != nullptr) {
    for (Draft& each : finalizers->MutableElements())
      tracked = tracked || each.str() == kJobFinalizer;
  }
  if (!tracked) metadata["finalizers"].Append(kJobFinalizer);
  if (!index) return pod.Freeze();
  metadata["generateName"] = IndexedPrefix(job->name(), *index);
  metadata["annotations"].Entry(kIndexAnnotation) = StrCat(*index);
  metadata["labels"].Entry(kIndexAnnotation) = StrCat(*index);
  if ((*job)["spec"]["backoffLimitPerIndex"].has_value()) {
    std::int64_t failures = 0, ignored = 0;
    if (replaced != nullptr) {
      failures = IndexFailures(*replaced);
      ignored = AllIndexFailures(*replaced) - failures;
      ++(JudgeFailure(*job, *replaced).counts ? failures : ignored);
    }
    metadata["annotations"].Entry("batch.kubernetes.io/job-index-failure-count") = StrCat(failures);
    if (ignored > 0) {
      metadata["annotations"].Entry("batch.kubernetes.io/job-index-ignored-failure-count") =
          StrCat(ignored);
    }
  }
  Draft& spec = pod["spec"];
  spec["hostname"] = StrCat(job->name(), "-", *index);
  AddVariable(spec, "initContainers");
  AddVariable(spec, "containers");
  return pod.Freeze();
}

}  // namespace drakkar::controllers
