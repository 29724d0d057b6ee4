#include "controllers/cron_job/controller.h"

#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class CronJobTest : public ControllersFixture {
 protected:
  static std::string CronJob(std::string_view spec) {
    return StrCat(
        R"({"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"tick"},)", R"("spec":{)",
        spec, R"(,"jobTemplate":{"metadata":{"labels":{"from":"tick"}},"spec":{"template":)",
        R"({"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i:1"}]}}}}})", "}");
  }
  std::vector<api::ObjectPtr> Jobs() { return All("batch", "jobs"); }
  void EndAll(std::string_view phase) {
    for (const api::ObjectPtr& pod : Pods()) {
      const std::string_view now = (*pod)["status"]["phase"].str();
      if (now != "Succeeded" && now != "Failed") SetPod(pod, phase, false);
    }
  }
  api::Value Status() {
    kept_ = server_.Get("CronJob", "default/tick");
    return (*kept_)["status"];
  }
  void Minute() { Settle(std::chrono::seconds(60)); }

  api::ObjectPtr kept_;
};

TEST_F(CronJobTest, AJobIsMadeWheneverItIsDue) {
  Create(CronJob(R"("schedule":"*/1 * * * *")"));
  EXPECT_TRUE(Jobs().empty());
  Minute();
  ASSERT_EQ(Jobs().size(), 1u);
  const api::Object& job = *Jobs()[0];
  EXPECT_TRUE(job.name().starts_with("tick-")) << job.name();
  EXPECT_EQ(job["metadata"]["labels"].Entry("from").str(), "tick");
  EXPECT_EQ(job["metadata"]["ownerReferences"].at(0)["kind"].str(), "CronJob");
  EXPECT_FALSE(job["metadata"]["annotations"]
                   .Entry("batch.kubernetes.io/cronjob-scheduled-timestamp")
                   .str()
                   .empty());
  EXPECT_EQ(Status()["active"].size(), 1u);
  EXPECT_TRUE(Status()["lastScheduleTime"].has_value());
  EXPECT_EQ(Pods().size(), 1u) << "and the Job has its pod";
  Minute();
  EXPECT_EQ(Jobs().size(), 2u);
  EndAll("Succeeded");
  EXPECT_EQ(Status()["active"].size(), 0u);
  EXPECT_TRUE(Status()["lastSuccessfulTime"].has_value());
  EXPECT_EQ(Events("SuccessfulCreate").size(), 4u) << "two Jobs, two pods";
  EXPECT_EQ(Events("SawCompletedJob").size(), 2u);
}

TEST_F(CronJobTest, ForbidWaitsForTheOneThatRuns) {
  Create(CronJob(R"("schedule":"*/1 * * * *","concurrencyPolicy":"Forbid")"));
  Minute();
  Minute();
  Minute();
  EXPECT_EQ(Jobs().size(), 1u);
  EXPECT_FALSE(Events("JobAlreadyActive").empty());
  EndAll("Succeeded");
  Minute();
  EXPECT_EQ(Jobs().size(), 2u);
}

TEST_F(CronJobTest, ReplaceEndsTheOneThatRuns) {
  Create(CronJob(R"("schedule":"*/1 * * * *","concurrencyPolicy":"Replace")"));
  Minute();
  const std::string first(Jobs()[0]->name());
  Minute();
  Settle(std::chrono::seconds(2));
  ASSERT_EQ(Jobs().size(), 1u);
  EXPECT_NE(Jobs()[0]->name(), first);
  EXPECT_EQ(Status()["active"].size(), 1u);
}

TEST_F(CronJobTest, HistoryKeepsTheLastOnes) {
  Create(CronJob(R"("schedule":"*/1 * * * *","successfulJobsHistoryLimit":2)"));
  for (int i = 0; i < 5; ++i) {
    Minute();
    EndAll("Succeeded");
  }
  Settle(std::chrono::seconds(2));
  EXPECT_EQ(Jobs().size(), 2u);
}

TEST_F(CronJobTest, ASuspendedOneDoesNothing) {
  Create(CronJob(R"("schedule":"*/1 * * * *","suspend":true)"));
  Minute();
  Minute();
  EXPECT_TRUE(Jobs().empty());
}

TEST_F(CronJobTest, MissedTimesAreMadeUpForOnce) {
  controllers_.reset();
  server_.Create(CronJob(R"("schedule":"*/1 * * * *")"));
  Settle(std::chrono::minutes(10));
  Start();
  EXPECT_EQ(Jobs().size(), 1u) << "the last of ten";
}

TEST_F(CronJobTest, WhatIsTooLateIsNotMadeUpFor) {
  controllers_.reset();
  server_.Create(CronJob(R"("schedule":"0 0 1 1 *","startingDeadlineSeconds":30)"));
  Settle(std::chrono::hours(24 * 366));
  Start();
  EXPECT_TRUE(Jobs().empty());
}

TEST_F(CronJobTest, ARestartMakesNoJobTwice) {
  Create(CronJob(R"("schedule":"*/1 * * * *")"));
  // The status write is lost, so the controller does not know that it created the Job.
  faulty_.loses = [](std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
    return verb == "update" && ref.kind->kind == "CronJob";
  };
  Minute();
  EXPECT_EQ(Jobs().size(), 1u);
  faulty_.loses = nullptr;
  Start();
  Settle(std::chrono::seconds(5));
  EXPECT_EQ(Jobs().size(), 1u);
  EXPECT_EQ(Status()["active"].size(), 1u);
}

}  // namespace
}  // namespace drakkar::controllers
