#include "answers/serve/why_service.h"

#include <set>

#include "answers/render/why.h"
#include "answers/serve/state_snapshot.h"
#include "answers/why/summary.h"
#include "api/scheme/scheme.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "device/cel_expressions.h"

namespace drakkar::answers {
namespace {

using Access = client::AccessReviewer::Access;

int HttpStatusOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kFailedPrecondition:
      return 400;
    default:
      return 500;
  }
}

}  // namespace

// A question that is being answered.
struct WhyService::Job {
  Question question;
  Done done;
  scheduler::PodState state;
  Snapshot snapshot;
  Result<WhyAnswer> answer = Internal("not computed");
  // What the user may see; filled by Review.
  Viewer viewer;
  std::set<std::string> to_review;
  std::set<std::string> visible;
  bool nodes_reviewed = false;
};

WhyService::WhyService(Options options)
    : options_(std::move(options)),
      reviewer_(options_.loop, options_.client),
      workers_(options_.run ? nullptr : std::make_unique<WorkerPool>(1, kMaxQuestions)) {}

WhyService::~WhyService() = default;

void WhyService::Ask(Question question, Done done) {
  options_.loop.AssertInLoop();
  if (!options_.scheduler.IsReady()) {
    return done({503, "the scheduler is still reading the cluster"});
  }
  if (open_ >= kMaxQuestions) return done({429, "too many questions at once; try again"});
  ++open_;
  auto job = std::make_shared<Job>();
  job->question = std::move(question);
  job->done = std::move(done);
  const WhySubject& subject = job->question.subject;
  scheduler::SchedulerState state = options_.scheduler.State(
      subject.kind == WhySubject::Kind::kPod ? StrCat(subject.namespace_, "/", subject.name) : "");
  job->state = state.pod;
  job->snapshot = SnapshotOf(std::move(state), options_.loop.clock().Now());
  ReadEvents(std::move(job));
}

// The driver's last error is in the pod's events. If they cannot be read, only that is missing.
void WhyService::ReadEvents(std::shared_ptr<Job> job) {
  const WhySubject& subject = job->question.subject;
  if (subject.kind != WhySubject::Kind::kPod) return Compute(std::move(job));
  options_.client.List(
      {api::FindKind("", "v1", "Event"), subject.namespace_, "", ""},
      {.label_selector = {},
       .field_selector = StrCat("involvedObject.name=", subject.name, ",involvedObject.kind=Pod"),
       .limit = 0,
       .continue_token = {}},
      lifetime_.Guard([this, job](client::ListReply reply) {
        if (reply.ok()) job->snapshot.events = std::move(reply.items);
        Compute(job);
      }));
}

void WhyService::Compute(std::shared_ptr<Job> job) {
  auto back = lifetime_.Guard([this, job] { Review(job); });
  Task task = [job, back = std::move(back), &loop = options_.loop,
               settings = options_.settings]() mutable {
    UvLoop clock_loop;  // for its clock
    device::CelExpressions compiler;
    job->answer = ExplainWhy(job->snapshot, job->question.subject,
                             {.loop = clock_loop,
                              .random = RealRandom(),
                              .compiler = compiler,
                              .settings = settings,
                              .with_nodes = job->question.verbose,
                              .node = job->question.node,
                              .state = &job->state});
    loop.Post(std::move(back));
  };
  const bool queued = options_.run ? options_.run(std::move(task)) : workers_->Run(std::move(task));
  if (!queued) End(*job, {429, "too many questions at once; try again"});
}

void WhyService::Review(std::shared_ptr<Job> job) {
  if (!job->answer.ok()) {
    const Error& error = job->answer.error();
    return End(*job, {HttpStatusOf(error), error.message});
  }
  if (!job->question.user) return Send(*job);
  if (!job->nodes_reviewed) {
    job->nodes_reviewed = true;
    job->to_review = NamespacesIn(*job->answer);
    return reviewer_.ReviewUser(
        *job->question.user, {Access{.verb = "get", .resource = "nodes"}},
        lifetime_.Guard([this, job](std::optional<client::AccessReviewer::Refusal> refusal) {
          job->viewer.nodes = !refusal;
          Review(job);
        }));
  }
  if (!job->to_review.empty()) {
    const std::string ns = job->to_review.extract(job->to_review.begin()).value();
    return reviewer_.ReviewUser(
        *job->question.user, {Access{.verb = "list", .resource = "pods", .namespace_ = ns}},
        lifetime_.Guard([this, job, ns](std::optional<client::AccessReviewer::Refusal> refusal) {
          if (!refusal) job->visible.insert(ns);
          Review(job);
        }));
  }
  job->viewer.sees_namespace = [&visible = job->visible](std::string_view ns) {
    return visible.contains(std::string(ns));
  };
  Redact(*job->answer, job->viewer);
  Send(*job);
}

void WhyService::Send(Job& job) {
  WhyAnswer& answer = *job.answer;
  Summarize(answer, job.snapshot.now);
  std::string text;
  if (job.question.width) {
    text = RenderWhy(answer, {.width = *job.question.width,
                              .wide = *job.question.width == 0,
                              .headers = job.question.headers,
                              .now = job.snapshot.now});
  }
  std::string json = WhyToJson(answer, text);
  if (json.size() > kMaxBytes) {
    return End(job, {400, "the answer is too large; ask for one node with --node"});
  }
  End(job, {200, std::move(json)});
}

void WhyService::End(Job& job, Reply reply) {
  --open_;
  job.done(std::move(reply));
}

}  // namespace drakkar::answers
