#include "apiserver/registry/job_strategies.h"

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class BatchTest : public CoreFixture {
 protected:
  BatchTest() { StartCore(nullptr); }

  static std::string Job(std::string_view spec, std::string_view restart = "Never") {
    return StrCat(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{)", spec,
                  spec.empty() ? "" : ",",
                  R"("template":{"metadata":{"labels":{"app":"x"}},"spec":{"restartPolicy":")",
                  restart, R"(","containers":[{"name":"c","image":"i:1"}]}}}})");
  }
  static std::string CronJob(std::string_view spec) {
    return StrCat(R"({"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"c"},"spec":{)",
                  spec, R"(,"jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never",)",
                  R"("containers":[{"name":"c","image":"i:1"}]}}}}}})");
  }
  std::string Refusal(std::string_view json) {
    const Response response = TryCreate(json);
    return response.failure ? response.failure->message : "";
  }
  Response Put(std::string_view json, std::string subresource = "") {
    Request request = RequestFor(Verb::kUpdate, json, AdminUser());
    request.subresource = std::move(subresource);
    return Handle(std::move(request));
  }
};

TEST_F(BatchTest, AJobGetsDefaultsAndSelectsItsPodsByItsUid) {
  const api::ObjectPtr job = Create(Job(""));
  const api::Value spec = (*job)["spec"];
  EXPECT_EQ(spec["completions"].integer(), 1);
  EXPECT_EQ(spec["parallelism"].integer(), 1);
  EXPECT_EQ(spec["backoffLimit"].integer(), 6);
  EXPECT_EQ(spec["completionMode"].str(), "NonIndexed");
  EXPECT_EQ(spec["podReplacementPolicy"].str(), "TerminatingOrFailed");
  EXPECT_EQ(spec["suspend"].optional_boolean(), false);
  EXPECT_EQ(spec["selector"]["matchLabels"].Entry("batch.kubernetes.io/controller-uid").str(),
            job->uid());
  const api::Value labels = spec["template"]["metadata"]["labels"];
  EXPECT_EQ(labels.Entry("controller-uid").str(), job->uid());
  EXPECT_EQ(labels.Entry("batch.kubernetes.io/job-name").str(), "j");
  EXPECT_EQ((*job)["metadata"]["labels"].Entry("app").str(), "x") << "those of the template";
  EXPECT_EQ((*job)["metadata"]["generation"].integer(), 1);
  EXPECT_EQ(spec["template"]["spec"]["dnsPolicy"].str(), "ClusterFirst");
}

TEST_F(BatchTest, AGeneratedNameIsInTheLabels) {
  std::string json = Job("");
  json.replace(json.find(R"("name":"j")"), 10, R"("generateName":"run-")");
  const api::ObjectPtr job = Create(json);
  EXPECT_EQ((*job)["spec"]["template"]["metadata"]["labels"].Entry("job-name").str(), job->name());
}

TEST_F(BatchTest, WhatAJobRefuses) {
  EXPECT_EQ(Refusal(Job("", "Always")),
            "Job.batch \"j\" is invalid: spec.template.spec.restartPolicy: Required value: valid "
            "values: \"OnFailure\", \"Never\"");
  EXPECT_EQ(Refusal(Job(R"("completionMode":"Indexed")")), "") << "one completion is the default";
  EXPECT_EQ(Refusal(Job(R"("backoffLimitPerIndex":1)")),
            "Job.batch \"j\" is invalid: spec.backoffLimitPerIndex: Invalid value: 1: requires "
            "indexed completion mode");
  EXPECT_EQ(Refusal(Job(R"("parallelism":-1)")),
            "Job.batch \"j\" is invalid: spec.parallelism: Invalid value: -1: must be greater than "
            "or equal to 0");
  EXPECT_EQ(
      Refusal(Job(R"("podFailurePolicy":{"rules":[{"action":"FailJob","onExitCodes":)"
                  R"({"operator":"In","values":[0,3,2]}}]})")),
      "Job.batch \"j\" is invalid: [spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid "
      "value: 0: must not be 0 for the In operator, "
      "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [0,3,2]: must be "
      "ordered]");
  EXPECT_EQ(Refusal(Job(R"("completionMode":"Indexed","completions":3,"parallelism":1,)"
                        R"("successPolicy":{"rules":[{"succeededIndexes":"0,5"}]})")),
            "Job.batch \"j\" is invalid: spec.successPolicy.rules[0].succeededIndexes: Invalid "
            "value: \"0,5\": error parsing succeededIndexes: too large index: \"5\"");
}

TEST_F(BatchTest, TheTemplateOfARunningJobStays) {
  Create(Job(""));
  const api::ObjectPtr job = core_->Find("batch", "jobs", "default/j");
  api::Draft changed(job->tree());
  changed["spec"]["template"]["spec"]["containers"].at(0)["image"] = "i:2";
  const Response refused = Put(api::WriteJson(changed.Freeze()->root()));
  ASSERT_TRUE(refused.failure);
  EXPECT_NE(refused.failure->message.find("field is immutable"), std::string::npos);
  api::Draft scaled(job->tree());
  scaled["spec"]["parallelism"] = 4;
  EXPECT_FALSE(Put(api::WriteJson(scaled.Freeze()->root())).failure);
}

TEST_F(BatchTest, AStatusThatContradictsItselfIsRefused) {
  Create(Job(""));
  api::Draft job(core_->Find("batch", "jobs", "default/j")->tree());
  job["status"]["conditions"].Append({{"type", "Complete"}, {"status", "True"}});
  const Response refused = Put(api::WriteJson(job.Freeze()->root()), "status");
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->message,
            "Job.batch \"j\" is invalid: [status.conditions: Invalid value: cannot set "
            "Complete=True condition without the SuccessCriteriaMet=true condition, "
            "status.completionTime: Required value: completionTime is required for Complete jobs, "
            "status.startTime: Required value: startTime is required for finished job]");
}

TEST_F(BatchTest, ACronJobGetsDefaultsButNotTheJobInIt) {
  const api::ObjectPtr object = Create(CronJob(R"("schedule":"*/5 * * * *")"));
  const api::Value spec = (*object)["spec"];
  EXPECT_EQ(spec["concurrencyPolicy"].str(), "Allow");
  EXPECT_EQ(spec["successfulJobsHistoryLimit"].integer(), 3);
  EXPECT_EQ(spec["failedJobsHistoryLimit"].integer(), 1);
  EXPECT_EQ(spec["suspend"].optional_boolean(), false);
  const api::Value job = spec["jobTemplate"]["spec"];
  EXPECT_FALSE(job["completions"].has_value());
  EXPECT_EQ(job["template"]["spec"]["schedulerName"].str(), "default-scheduler");
  EXPECT_EQ(job["template"]["spec"]["containers"].at(0)["imagePullPolicy"].str(), "IfNotPresent");
}

TEST_F(BatchTest, WhatACronJobRefuses) {
  EXPECT_EQ(Refusal(CronJob(R"("schedule":"every day")")),
            "CronJob.batch \"c\" is invalid: spec.schedule: Invalid value: \"every day\": expected "
            "exactly 5 fields, found 2: [every day]");
  EXPECT_EQ(Refusal(CronJob(R"("schedule":"TZ=UTC * * * * *")")),
            "CronJob.batch \"c\" is invalid: spec.schedule: Invalid value: \"TZ=UTC * * * * *\": "
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
  EXPECT_EQ(Refusal(CronJob(R"("schedule":"@daily","timeZone":"Mars/Base")")),
            "CronJob.batch \"c\" is invalid: spec.timeZone: Invalid value: \"Mars/Base\": unknown "
            "time zone Mars/Base");
  EXPECT_EQ(Refusal(CronJob(R"("schedule":"@daily","concurrencyPolicy":"Sometimes")")),
            "CronJob.batch \"c\" is invalid: spec.concurrencyPolicy: Unsupported value: "
            "\"Sometimes\": supported values: \"Allow\", \"Forbid\", \"Replace\"");
}

TEST_F(BatchTest, DeletingAJobLeavesItsPodsUnlessToldOtherwise) {
  Create(Job(""));
  Request request = RequestFor(Verb::kDelete, Job(""), AdminUser());
  request.object = nullptr;
  const Response deleted = Handle(std::move(request));
  ASSERT_FALSE(deleted.failure);
  EXPECT_EQ((*core_->Find("batch", "jobs", "default/j"))["metadata"]["finalizers"].at(0).str(),
            "orphan");
}

}  // namespace
}  // namespace drakkar::apiserver
