#include "controllers/job/controller.h"

#include "controllers/job/pod_outcome.h"
#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class JobTest : public ControllersFixture {
 protected:
  static std::string Job(std::string_view spec, std::string_view name = "job") {
    return StrCat(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":")", name,
                  R"("},"spec":{)", spec, spec.empty() ? "" : ",",
                  R"("template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c",)",
                  R"("image":"i:1"}]}}}})");
  }
  api::Value Status() {
    kept_ = server_.Get("Job", "default/job");
    return (*kept_)["status"];
  }
  std::string Condition(std::string_view type) {
    for (api::Value each : Status()["conditions"].elements()) {
      if (each["type"].str() == type) {
        return StrCat(each["status"].str(), " ", each["reason"].str());
      }
    }
    return "";
  }
  std::vector<api::ObjectPtr> Active() {
    std::vector<api::ObjectPtr> list;
    for (const api::ObjectPtr& pod : Pods()) {
      const std::string_view phase = (*pod)["status"]["phase"].str();
      if (phase != "Succeeded" && phase != "Failed" && !pod->is_being_deleted()) {
        list.push_back(pod);
      }
    }
    return list;
  }
  void End(const api::ObjectPtr& pod, std::string_view phase, int exit_code = 0) {
    Change("Pod", pod->qualified_name(), "status", [&](api::Draft& draft) {
      draft["status"]["phase"] = phase;
      draft["status"]["containerStatuses"] = api::Draft::Array();
      draft["status"]["containerStatuses"].Append(
          {{"name", "c"},
           {"image", "i:1"},
           {"imageID", ""},
           {"ready", false},
           {"restartCount", 0},
           {"state",
            {{"terminated",
              {{"exitCode", exit_code}, {"finishedAt", api::FormatTime(loop_.clock().Now())}}}}}});
    });
  }
  api::ObjectPtr PodOfIndex(std::int64_t index) {
    for (const api::ObjectPtr& pod : Active()) {
      if (IndexOf(*pod) == index) return pod;
    }
    return nullptr;
  }

  api::ObjectPtr kept_;
};

TEST_F(JobTest, APodThatSucceedsCompletesTheJob) {
  Create(Job(""));
  ASSERT_EQ(Active().size(), 1u);
  EXPECT_TRUE(IsTracked(*Active()[0]));
  EXPECT_EQ(Status()["active"].integer(), 1);
  EXPECT_TRUE(Status()["startTime"].has_value());
  End(Active()[0], "Succeeded");
  EXPECT_EQ(Status()["succeeded"].integer(), 1);
  EXPECT_EQ(Status()["active"].integer(), 0);
  EXPECT_EQ(Condition("SuccessCriteriaMet"), "True CompletionsReached");
  EXPECT_EQ(Condition("Complete"), "True CompletionsReached");
  EXPECT_TRUE(Status()["completionTime"].has_value());
  EXPECT_TRUE(Status()["uncountedTerminatedPods"].empty());
  EXPECT_FALSE(IsTracked(*Pods()[0])) << "counted: the pod may go";
  EXPECT_EQ(Events("Completed"), std::vector<std::string>{"Job completed"});
}

TEST_F(JobTest, NoMorePodsRunAtATimeThanItAllows) {
  Create(Job(R"("completions":5,"parallelism":2)"));
  EXPECT_EQ(Active().size(), 2u);
  for (int i = 0; i < 5; ++i) {
    ASSERT_FALSE(Active().empty());
    EXPECT_LE(Active().size(), 2u);
    End(Active()[0], "Succeeded");
  }
  EXPECT_EQ(Pods().size(), 5u);
  EXPECT_EQ(Condition("Complete"), "True CompletionsReached");
}

TEST_F(JobTest, AFailedPodIsReplacedAfterAPauseThatGrows) {
  Create(Job(""));
  End(Active()[0], "Failed", 1);
  EXPECT_TRUE(Active().empty());
  EXPECT_EQ(Status()["failed"].integer(), 1);
  Settle(std::chrono::seconds(8));
  EXPECT_TRUE(Active().empty());
  Settle(std::chrono::seconds(3));
  ASSERT_EQ(Active().size(), 1u) << "ten seconds later";
  End(Active()[0], "Failed", 1);
  Settle(std::chrono::seconds(15));
  EXPECT_TRUE(Active().empty());
  Settle(std::chrono::seconds(6));
  EXPECT_EQ(Active().size(), 1u) << "twenty";
}

TEST_F(JobTest, TooManyFailuresFailTheJob) {
  Create(Job(R"("backoffLimit":1)"));
  End(Active()[0], "Failed", 1);
  Settle(std::chrono::seconds(12));
  ASSERT_EQ(Active().size(), 1u);
  End(Active()[0], "Failed", 1);
  EXPECT_EQ(Condition("FailureTarget"), "True BackoffLimitExceeded");
  EXPECT_EQ(Condition("Failed"), "True BackoffLimitExceeded");
  EXPECT_EQ(Status()["failed"].integer(), 2);
  EXPECT_EQ(Events("BackoffLimitExceeded"),
            std::vector<std::string>{"Job has reached the specified backoff limit"});
}

TEST_F(JobTest, TheDeadlineEndsItAndItsPods) {
  Create(Job(R"("activeDeadlineSeconds":30)"));
  Settle(std::chrono::seconds(25));
  EXPECT_EQ(Condition("Failed"), "");
  Settle(std::chrono::seconds(10));
  EXPECT_EQ(Condition("Failed"), "True DeadlineExceeded");
  EXPECT_TRUE(Active().empty());
  EXPECT_EQ(Status()["failed"].integer(), 1);
}

TEST_F(JobTest, EachIndexCompletesOnce) {
  Create(Job(R"("completionMode":"Indexed","completions":3,"parallelism":3)"));
  ASSERT_EQ(Active().size(), 3u);
  const api::ObjectPtr first = PodOfIndex(0);
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->name().starts_with("job-0-"));
  EXPECT_EQ((*first)["spec"]["hostname"].str(), "job-0");
  EXPECT_EQ((*first)["spec"]["containers"].at(0)["env"].at(0)["name"].str(),
            "JOB_COMPLETION_INDEX");
  End(PodOfIndex(2), "Succeeded");
  EXPECT_EQ(Status()["completedIndexes"].str(), "2");
  End(PodOfIndex(0), "Failed", 1);
  Settle(std::chrono::seconds(12));
  ASSERT_NE(PodOfIndex(0), nullptr) << "tried again";
  End(PodOfIndex(0), "Succeeded");
  End(PodOfIndex(1), "Succeeded");
  EXPECT_EQ(Status()["completedIndexes"].str(), "0-2");
  EXPECT_EQ(Status()["succeeded"].integer(), 3);
  EXPECT_EQ(Condition("Complete"), "True CompletionsReached");
}

TEST_F(JobTest, FailuresOfOneIndexDoNotFailTheOthers) {
  Create(Job(R"("completionMode":"Indexed","completions":2,"parallelism":2,)"
             R"("backoffLimitPerIndex":1)"));
  End(PodOfIndex(0), "Failed", 1);
  Settle(std::chrono::seconds(12));
  const api::ObjectPtr second = PodOfIndex(0);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ((*second)["metadata"]["annotations"]
                .Entry("batch.kubernetes.io/job-index-failure-count")
                .str(),
            "1");
  End(second, "Failed", 1);
  EXPECT_EQ(Status()["failedIndexes"].str(), "0");
  EXPECT_EQ(Condition("Failed"), "") << "the other index still runs";
  End(PodOfIndex(1), "Succeeded");
  EXPECT_EQ(Condition("Failed"), "True FailedIndexes");
}

TEST_F(JobTest, TheFailurePolicyDecidesByExitCode) {
  Create(Job(R"("podFailurePolicy":{"rules":[)"
             R"({"action":"Ignore","onExitCodes":{"operator":"In","values":[7]}},)"
             R"({"action":"FailJob","onExitCodes":{"operator":"In","values":[42]}}]})"));
  End(Active()[0], "Failed", 7);
  EXPECT_EQ(Status()["failed"].integer(), 0) << "not counted";
  EXPECT_FALSE(IsTracked(*Pods()[0]));
  Settle(std::chrono::seconds(12));
  ASSERT_EQ(Active().size(), 1u);
  const std::string pod = Active()[0]->qualified_name();
  End(Active()[0], "Failed", 42);
  EXPECT_EQ(Condition("Failed"), "True PodFailurePolicy");
  EXPECT_EQ(Events("PodFailurePolicy"),
            std::vector<std::string>{StrCat("Container c for pod ", pod,
                                            " failed with exit code 42 matching FailJob rule at "
                                            "index 1")});
}

TEST_F(JobTest, TheSuccessPolicyEndsItEarly) {
  Create(Job(R"("completionMode":"Indexed","completions":3,"parallelism":3,)"
             R"("successPolicy":{"rules":[{"succeededIndexes":"0"}]})"));
  End(PodOfIndex(0), "Succeeded");
  EXPECT_EQ(Condition("Complete"), "True SuccessPolicy");
  EXPECT_TRUE(Active().empty()) << "the others are not needed any more";
}

TEST_F(JobTest, ASuspendedJobHasNoPods) {
  Create(Job(R"("parallelism":2,"completions":2)"));
  Change("Job", "default/job", "", [](api::Draft& job) { job["spec"]["suspend"] = true; });
  EXPECT_TRUE(Active().empty());
  EXPECT_EQ(Condition("Suspended"), "True JobSuspended");
  EXPECT_EQ(Status()["failed"].integer(), 0) << "they did not fail";
  EXPECT_FALSE(Status()["startTime"].has_value());
  Change("Job", "default/job", "", [](api::Draft& job) { job["spec"]["suspend"] = false; });
  EXPECT_EQ(Condition("Suspended"), "False JobResumed");
  EXPECT_EQ(Active().size(), 2u);
}

TEST_F(JobTest, EndsAreCountedOnceAcrossRestarts) {
  Create(Job(R"("completions":4,"parallelism":4)"));
  const std::vector<api::ObjectPtr> pods = Active();
  for (std::size_t i = 0; i < pods.size(); ++i) {
    // The controllers stop after any number of writes and restart.
    int writes = 0;
    const int limit = static_cast<int>(i);
    faulty_.loses = [&](std::string_view verb, const client::ResourceRef&, const api::TreePtr&) {
      return (verb == "update" || verb == "patch") && writes++ >= limit;
    };
    End(pods[i], "Succeeded");
    faulty_.loses = nullptr;
    Start();
    Settle(std::chrono::seconds(2));
  }
  EXPECT_EQ(Status()["succeeded"].integer(), 4);
  EXPECT_EQ(Pods().size(), 4u);
  EXPECT_EQ(Condition("Complete"), "True CompletionsReached");
}

TEST_F(JobTest, PodsOfAJobThatIsGoneLoseTheFinalizer) {
  Create(Job(""));
  server_.Delete("Job", "default/job", {.propagation_policy = "Background"});
  Settle(std::chrono::seconds(3));
  EXPECT_TRUE(Pods().empty());
}

TEST_F(JobTest, AJobOfAnotherControllerIsLeftAlone) {
  Create(Job(R"("managedBy":"example.com/other")"));
  EXPECT_TRUE(Pods().empty());
}

TEST_F(JobTest, AFinishedJobGoesAfterItsTime) {
  Create(Job(R"("ttlSecondsAfterFinished":100)"));
  End(Active()[0], "Succeeded");
  Settle(std::chrono::seconds(95));
  EXPECT_NE(server_.Get("Job", "default/job"), nullptr);
  Settle(std::chrono::seconds(10));
  EXPECT_EQ(server_.Get("Job", "default/job"), nullptr);
  EXPECT_TRUE(Pods().empty());
}

}  // namespace
}  // namespace drakkar::controllers
