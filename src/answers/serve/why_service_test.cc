#include "answers/serve/why_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::answers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Passes everything on, except that updates of claims can be held back and that it answers access
// reviews itself.
class TestClient final : public client::Client {
 public:
  explicit TestClient(client::Client& beneath) : beneath_(beneath) {}
  bool hold_updates = false;
  std::set<std::string> allowed;  // "get nodes", "list pods team-b"
  std::vector<std::string> reviewed;

  void Get(client::ResourceRef ref, client::ReplyCallback done) override {
    beneath_.Get(std::move(ref), std::move(done));
  }
  void List(client::ResourceRef ref, client::ListOptions options,
            std::function<void(client::ListReply)> done) override {
    beneath_.List(std::move(ref), std::move(options), std::move(done));
  }
  void Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    if (ref.kind->kind != "SubjectAccessReview") {
      return beneath_.Create(std::move(ref), std::move(body), std::move(options), std::move(done));
    }
    const api::Value asked = body->root()["spec"]["resourceAttributes"];
    const std::string_view ns = asked["namespace"].str();
    const std::string text =
        StrCat(asked["verb"].str(), " ", asked["resource"].str(), ns.empty() ? "" : " ", ns);
    reviewed.push_back(StrCat(body->root()["spec"]["user"].str(), ": ", text));
    api::Draft answer(body);
    answer["status"]["allowed"] = allowed.contains(text);
    client::Reply reply;
    reply.object = std::make_shared<const api::Object>(answer.Freeze());
    done(std::move(reply));
  }
  void Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    if (hold_updates) return;
    beneath_.Update(std::move(ref), std::move(body), std::move(options), std::move(done));
  }
  void Patch(client::ResourceRef ref, client::PatchType type, std::string body,
             client::WriteOptions options, client::ReplyCallback done) override {
    beneath_.Patch(std::move(ref), type, std::move(body), std::move(options), std::move(done));
  }
  void Delete(client::ResourceRef ref, client::DeleteOptions options,
              client::ReplyCallback done) override {
    beneath_.Delete(std::move(ref), std::move(options), std::move(done));
  }
  void DeleteCollection(client::ResourceRef ref, client::ListOptions list,
                        client::DeleteOptions options, client::ReplyCallback done) override {
    beneath_.DeleteCollection(std::move(ref), std::move(list), std::move(options), std::move(done));
  }
  std::unique_ptr<client::WatchHandle> Watch(client::ResourceRef ref, client::WatchOptions options,
                                             client::WatchCallbacks callbacks) override {
    return beneath_.Watch(std::move(ref), std::move(options), std::move(callbacks));
  }

 private:
  client::Client& beneath_;
};

class WhyServiceTest : public ::testing::Test {
 protected:
  WhyServiceTest() {
    cluster_.scheduler_client = &client_;
    cluster_.CreateNode("n1");
    cluster_.CreateSlice("n1", 2);
    cluster_.CreateClass();
    cluster_.StartScheduler();
    cluster_.Settle();
    service_ = std::make_unique<WhyService>(WhyService::Options{.loop = cluster_.loop(),
                                                                .client = client_,
                                                                .scheduler = cluster_.scheduler(),
                                                                .settings = {},
                                                                .run = [](Task task) {
                                                                  task();
                                                                  return true;
                                                                }});
  }
  ~WhyServiceTest() override { service_.reset(); }

  WhyService::Reply Ask(const std::string& pod, std::optional<std::string> user = std::nullopt) {
    WhyService::Question question;
    question.subject = {WhySubject::Kind::kPod, "default", pod};
    question.width = 80;
    if (user) question.user = client::AccessReviewer::User{*user, {}};
    WhyService::Reply reply{0, "no answer"};
    service_->Ask(std::move(question), [&](WhyService::Reply given) { reply = std::move(given); });
    // Not Settle: held updates never end.
    for (int i = 0; i < 1000 && cluster_.loop().RunOne(); ++i) {
    }
    return reply;
  }
  std::string Text(const std::string& pod, std::optional<std::string> user = std::nullopt) {
    const WhyService::Reply reply = Ask(pod, std::move(user));
    if (reply.status != 200) return StrCat(reply.status, ": ", reply.body);
    return std::string(api::ParseJson(reply.body).value()->root()["text"].str());
  }

  scheduler::TestCluster cluster_;
  TestClient client_{cluster_.client()};
  std::unique_ptr<WhyService> service_;
};

TEST_F(WhyServiceTest, SaysWhatTheSchedulerDoesWithThePod) {
  cluster_.CreateClaim("c", 3);
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  EXPECT_THAT(Text("p"),
              AllOf(HasSubstr("pod default/p: 0 of 1 node: 1 too few devices (2 of 3)"),
                    HasSubstr("scheduler: tried once, rejected by DynamicResources; next attempt "
                              "when a change")));
}

TEST_F(WhyServiceTest, CountsDevicesThatAreNotWrittenYet) {
  client_.hold_updates = true;
  cluster_.CreateClaim("a", 2);
  cluster_.CreatePodWithClaims("first", {"a"});
  cluster_.Settle();
  EXPECT_TRUE(cluster_.DevicesOf("a").empty()) << "the API does not have the allocation";
  EXPECT_THAT(Text("first"), HasSubstr("pod default/first: is being bound to node n1"));
  cluster_.CreateClaim("b", 1);
  cluster_.CreatePodWithClaims("second", {"b"});
  cluster_.Settle();
  EXPECT_THAT(Text("second"),
              AllOf(HasSubstr("closest is n1, short by 1, held by\ndefault/first\n"),
                    HasSubstr("end pod default/first: frees 1 device on n1")));
}

TEST_F(WhyServiceTest, ShowsAUserOnlyTheNamesThatItMaySee) {
  cluster_.CreateClaim("a", 2);
  cluster_.CreatePodWithClaims("first", {"a"});
  cluster_.CreateClaim("b", 1);
  cluster_.CreatePodWithClaims("second", {"b"});
  cluster_.Settle();
  const std::string hidden = Text("second", "viewer");
  EXPECT_THAT(hidden, AllOf(HasSubstr("0 of 1 node: 1 full"), Not(HasSubstr("n1")),
                            Not(HasSubstr("default/first")), HasSubstr("another namespace")));
  EXPECT_THAT(client_.reviewed,
              ::testing::ElementsAre("viewer: get nodes", "viewer: list pods default"));
  client_.allowed = {"get nodes", "list pods default"};
  EXPECT_THAT(Text("second", "operator"),
              AllOf(HasSubstr("closest is n1"), HasSubstr("end pod default/first")));
}

TEST_F(WhyServiceTest, TellsTheDeadlineThatTheSchedulerUses) {
  cluster_.CreateNode("n2");
  cluster_.CreateSlice("n2", 1, scheduler::kConditions);
  cluster_.CreateClaim("a", 2);
  cluster_.CreatePodWithClaims("first", {"a"});
  cluster_.Settle();
  cluster_.CreateClaim("b", 1);
  cluster_.CreatePodWithClaims("second", {"b"});
  cluster_.Settle();
  EXPECT_THAT(Text("second"), AllOf(HasSubstr("until d.example.com/attached of"),
                                    HasSubstr("gives up in"), HasSubstr("DEADLINE")));
}

TEST_F(WhyServiceTest, ReadsTheDriversLastErrorFromTheEvents) {
  cluster_.CreateClaim("a", 1);
  cluster_.CreatePodWithClaims("first", {"a"});
  cluster_.Settle();
  cluster_.Create("Event",
                  R"({"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"first",)"
                  R"("namespace":"default"},"reason":"FailedPrepareDynamicResources",)"
                  R"("message":"driver d.example.com: no power","type":"Warning",)"
                  R"("lastTimestamp":"2027-01-01T00:00:00Z"})");
  EXPECT_THAT(Text("first"), AllOf(HasSubstr("is not prepared"), HasSubstr("no power")));
}

TEST_F(WhyServiceTest, RejectsWhatItCannotAnswer) {
  EXPECT_EQ(Text("nobody"), "404: pods \"nobody\" not found in namespace default");
  const scheduler::Scheduler not_started(cluster_.SchedulerOptions());
  WhyService service({.loop = cluster_.loop(),
                      .client = client_,
                      .scheduler = not_started,
                      .settings = {},
                      .run = [](Task) { return false; }});
  WhyService::Reply reply;
  service.Ask({}, [&](WhyService::Reply given) { reply = std::move(given); });
  EXPECT_EQ(reply.status, 503);
}

TEST_F(WhyServiceTest, LimitsTheQuestionsInProgress) {
  cluster_.CreatePod("p", R"(,"schedulingGates":[{"name":"g"}])");
  cluster_.Settle();
  std::vector<int> statuses;
  for (std::size_t i = 0; i <= WhyService::kMaxQuestions; ++i) {
    WhyService::Question question;
    question.subject = {WhySubject::Kind::kPod, "default", "p"};
    service_->Ask(question, [&](WhyService::Reply given) { statuses.push_back(given.status); });
  }
  EXPECT_THAT(statuses, ::testing::ElementsAre(429));
  cluster_.Settle();
  EXPECT_EQ(statuses.size(), WhyService::kMaxQuestions + 1);
}

}  // namespace
}  // namespace drakkar::answers
