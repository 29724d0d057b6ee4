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

TEST_F(BatchTest, IntervalsOfIndexesIncrease) {
  const auto refused = [&](std::string_view indexes) {
    const std::string message = Refusal(
        Job(StrCat(R"("completionMode":"Indexed","completions":9,"parallelism":1,)",
                   R"("successPolicy":{"rules":[{"succeededIndexes":")", indexes, R"("}]})")));
    const std::size_t at = message.find("succeededIndexes: ", message.find("error parsing"));
    return at == message.npos ? message : message.substr(at + 18);
  };
  EXPECT_EQ(refused("3-3"), "non-increasing order, previous: 3, current: 3");
  EXPECT_EQ(refused("3-2"), "non-increasing order, previous: 3, current: 2");
  EXPECT_EQ(refused("1-3,3"), "non-increasing order, previous: 3, current: 3");
  EXPECT_EQ(refused("1-2-3").substr(0, 41), "the fragment \"1-2-3\" violates the require");
  EXPECT_EQ(refused("x"), "cannot convert string to integer for index: \"x\"");
  EXPECT_EQ(refused("9"), "too large index: \"9\"");
  EXPECT_EQ(refused("0-3,5,7-8"), "");
}

TEST_F(BatchTest, ASuspendedJobWithoutPodsMayChangeWhereTheyRun) {
  Create(Job(R"("suspend":true)"));
  const auto change = [&](const std::function<void(api::Draft&)>& edit,
                          const std::string& subresource) {
    api::Draft job(core_->Find("batch", "jobs", "default/j")->tree());
    edit(job);
    const Response response = Put(api::WriteJson(job.Freeze()->root()), subresource);
    return response.failure ? response.failure->message : "accepted";
  };
  int zone = 0;
  const auto move = [&] {
    return change(
        [&](api::Draft& job) {
          job["spec"]["template"]["spec"]["nodeSelector"].Entry("zone") = StrCat("z", zone++);
        },
        "");
  };
  EXPECT_EQ(move(), "accepted");
  const auto status = [&](bool started, std::string_view suspended, int active) {
    return change(
        [&](api::Draft& job) {
          api::Draft& now = job["status"];
          now = api::Draft::Object();
          if (started) now["startTime"] = "2026-01-01T00:00:00Z";
          if (!suspended.empty()) {
            now["conditions"].Append({{"type", "Other"}, {"status", "True"}});
            now["conditions"].Append({{"type", "Suspended"}, {"status", suspended}});
          }
          if (active > 0) now["active"] = active;
        },
        "status");
  };
  ASSERT_EQ(status(true, "", 0), "accepted");
  EXPECT_NE(move().find("field is immutable"), std::string::npos) << "it has started";
  ASSERT_EQ(status(true, "False", 0), "accepted");
  EXPECT_NE(move().find("field is immutable"), std::string::npos);
  ASSERT_EQ(status(true, "True", 0), "accepted");
  EXPECT_EQ(move(), "accepted") << "it was suspended again";
  ASSERT_EQ(status(true, "True", 1), "accepted");
  EXPECT_NE(move().find("field is immutable"), std::string::npos) << "a pod is left";
  ASSERT_EQ(status(true, "True", 0), "accepted");
  const auto part = [&](const std::function<void(api::Draft&)>& set) {
    return change([&](api::Draft& job) { set(job["spec"]["template"]); }, "");
  };
  EXPECT_EQ(part([](api::Draft& t) { t["metadata"]["annotations"].Entry("a") = "b"; }), "accepted");
  EXPECT_EQ(part([](api::Draft& t) {
              t["spec"]["containers"].at(0)["resources"]["requests"].Entry("cpu") = "1";
            }),
            "accepted");
  EXPECT_EQ(part([](api::Draft& t) {
              t["spec"]["affinity"]["nodeAffinity"] = api::Draft(*api::ParseJson(
                  R"({"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)"
                  R"({"matchExpressions":[{"key":"a","operator":"Exists"}]}]}})"));
            }),
            "accepted");
  EXPECT_NE(part([](api::Draft& t) {
              t["spec"]["containers"].at(0)["image"] = "i:2";
            }).find("field is immutable"),
            std::string::npos);
  EXPECT_NE(
      part([](api::Draft& t) {
        t["spec"]["affinity"]["podAffinity"] = api::Draft(*api::ParseJson(
            R"({"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone"}]})"));
      }).find("field is immutable"),
      std::string::npos);
}

TEST_F(BatchTest, CompletionsChangeOnlyWithTheParallelism) {
  Create(Job(R"("completionMode":"Indexed","completions":3,"parallelism":3)"));
  const auto scale = [&](int completions, int parallelism) {
    api::Draft job(core_->Find("batch", "jobs", "default/j")->tree());
    job["spec"]["completions"] = completions;
    job["spec"]["parallelism"] = parallelism;
    const Response response = Put(api::WriteJson(job.Freeze()->root()));
    return response.failure ? response.failure->message : "accepted";
  };
  EXPECT_NE(scale(4, 3).find("can only be modified in tandem with spec.parallelism"),
            std::string::npos);
  EXPECT_EQ(scale(5, 5), "accepted");
  EXPECT_EQ(scale(5, 2), "accepted");
}

TEST_F(BatchTest, WhatAStatusMayNotSay) {
  Create(Job(""));
  const auto status = [&](std::string_view json) {
    api::Draft job(core_->Find("batch", "jobs", "default/j")->tree());
    job["status"] = api::Draft(*api::ParseJson(json));
    Request request = RequestFor(Verb::kUpdate, api::WriteJson(job.Freeze()->root()), AdminUser());
    request.subresource = "status";
    request.dry_run = true;
    const Response response = Handle(std::move(request));
    return response.failure ? response.failure->message.substr(26) : "accepted";
  };
  EXPECT_EQ(status(R"({"completionTime":"2026-01-01T00:00:00Z"})"),
            "status.completionTime: Invalid value: \"2026-01-01T00:00:00Z\": cannot set "
            "completionTime when there is no Complete=True condition");
  EXPECT_EQ(status(R"({"active":1,"ready":1})"), "accepted");
  EXPECT_EQ(status(R"({"active":1,"ready":2})"),
            "status.ready: Invalid value: 2: cannot set more ready pods than active");
  const auto finished = [&](std::string_view more) {
    return status(StrCat(R"({"conditions":[{"type":"FailureTarget","status":"True"},)",
                         R"({"type":"Failed","status":"True"}],"startTime":)",
                         R"("2026-01-01T00:00:00Z")", more, "}"));
  };
  EXPECT_EQ(finished(""), "accepted");
  EXPECT_EQ(finished(R"(,"active":1)"),
            "status.active: Invalid value: 1: active>0 is invalid for finished job");
  EXPECT_EQ(finished(R"(,"terminating":1)"),
            "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job");
  for (const char* list : {"succeeded", "failed"}) {
    EXPECT_NE(finished(StrCat(R"(,"uncountedTerminatedPods":{")", list, R"(":["u"]})"))
                  .find("must be empty for finished job"),
              std::string::npos);
  }
  const auto conditions = [&](std::string_view list) {
    std::string text = R"({"startTime":"2026-01-01T00:00:00Z","completionTime":)"
                       R"("2026-01-01T00:00:00Z","conditions":[)";
    for (const std::string_view type : Split(list, ' ')) {
      text += StrCat(text.back() == '[' ? "" : ",", R"({"type":")", type, R"(","status":"True"})");
    }
    return status(text + "]}");
  };
  EXPECT_EQ(conditions("SuccessCriteriaMet Complete"), "accepted");
  for (const auto& [list, message] :
       {std::pair("SuccessCriteriaMet Complete Failed", "cannot set Complete=True and Failed=true"),
        std::pair("SuccessCriteriaMet Complete FailureTarget",
                  "cannot set Complete=True and FailureTarget=true conditions"),
        std::pair("Failed", "without the FailureTarget=true condition"),
        std::pair("Complete", "without the SuccessCriteriaMet=true condition"),
        std::pair("SuccessCriteriaMet FailureTarget",
                  "cannot set SuccessCriteriaMet=True and FailureTarget=true")}) {
    EXPECT_NE(conditions(list).find(message), std::string::npos) << list << conditions(list);
  }
}

TEST_F(BatchTest, WhatHappenedToAJobStays) {
  Create(Job(""));
  const auto status = [&](std::string_view json) {
    api::Draft job(core_->Find("batch", "jobs", "default/j")->tree());
    job["status"] = api::Draft(*api::ParseJson(json));
    const Response response = Put(api::WriteJson(job.Freeze()->root()), "status");
    return response.failure ? response.failure->message : "accepted";
  };
  ASSERT_EQ(status(R"({"failed":2,"succeeded":3})"), "accepted");
  EXPECT_NE(status(R"({"failed":1,"succeeded":3})").find("cannot decrease the failed counter"),
            std::string::npos);
  EXPECT_NE(status(R"({"failed":2,"succeeded":2})").find("cannot decrease the succeeded counter"),
            std::string::npos);
  ASSERT_EQ(status(R"({"failed":2,"succeeded":3,"conditions":[{"type":"FailureTarget",
      "status":"True"}]})"),
            "accepted");
  EXPECT_NE(status(R"({"failed":2,"succeeded":3})")
                .find("cannot disable the terminal FailureTarget=True condition"),
            std::string::npos);
}

TEST_F(BatchTest, ACronJobLeavesTheSelectorToItsJobs) {
  const auto refused = [&](std::string_view member) {
    std::string json = CronJob(R"("schedule":"@daily")");
    json.insert(json.find(R"({"template")") + 1, StrCat(member, ","));
    return Refusal(json);
  };
  EXPECT_NE(refused(R"("selector":{"matchLabels":{"a":"b"}})").find("will be auto-generated"),
            std::string::npos);
  EXPECT_EQ(refused(R"("manualSelector":true)"),
            "CronJob.batch \"c\" is invalid: spec.jobTemplate.spec.manualSelector: Unsupported "
            "value: \"true\": supported values: \"false\", \"nil\"");
  EXPECT_EQ(refused(R"("manualSelector":false)"), "");
}

}  // namespace
}  // namespace drakkar::apiserver
