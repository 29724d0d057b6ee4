#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "answers/why/why.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/exec/worker_pool.h"
#include "client/access_reviewer.h"
#include "client/client.h"
#include "scheduler/scheduler.h"

namespace drakkar::answers {

// `why`, answered by the scheduler from its own memory: queue, back-off, nominations, waits, and
// allocations that are not written yet. The search runs on a worker thread over a copy of the
// state, so that scheduling goes on meanwhile.
//
// A user sees counts in any case. Names of nodes are for users who may get nodes, and names of
// other namespaces' pods for users who may list pods there, which the API server decides.
//
// Lives on the scheduler's loop. At most kMaxQuestions at a time; further ones get 429.
class WhyService {
 public:
  static constexpr std::size_t kMaxQuestions = 16;
  // Size limit of an answer. Beyond it the request fails, and the error says to ask for one node.
  static constexpr std::size_t kMaxBytes = 32 << 20;

  struct Options {
    EventLoop& loop;
    client::Client& client;  // may review access and list events
    const scheduler::Scheduler& scheduler;
    scheduler::Settings settings;
    // Runs the search; false if too much is queued. Empty: on a worker thread.
    std::function<bool(Task)> run = {};
  };
  struct Question {
    WhySubject subject;
    std::string node;
    bool verbose = false;
    std::optional<std::size_t> width;  // add the answer as text of this width; 0: no limit
    bool headers = true;               // of tables in the text
    // Nothing: sees everything.
    std::optional<client::AccessReviewer::User> user;
  };
  struct Reply {
    int status = 200;
    std::string body;  // JSON, or an error as plain text
  };
  using Done = std::function<void(Reply)>;

  explicit WhyService(Options options);
  ~WhyService();
  WhyService(const WhyService&) = delete;
  WhyService& operator=(const WhyService&) = delete;

  // `done` runs once on the loop, unless the service is destroyed first.
  void Ask(Question question, Done done);

 private:
  struct Job;
  void ReadEvents(std::shared_ptr<Job> job);
  void Compute(std::shared_ptr<Job> job);
  void Review(std::shared_ptr<Job> job);
  void Send(Job& job);
  void End(Job& job, Reply reply);

  const Options options_;
  client::AccessReviewer reviewer_;
  std::size_t open_ = 0;
  Lifetime lifetime_;
  // Last, so that its thread ends before the rest.
  std::unique_ptr<WorkerPool> workers_;
};

}  // namespace drakkar::answers
