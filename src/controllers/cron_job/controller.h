#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/event_recorder.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/cron_job/planner.h"
#include "controllers/workload/dependent_writer.h"
#include "controllers/workload/owned_index.h"

namespace drakkar::controllers {

// Creates the Jobs of CronJobs when they are due, and deletes finished Jobs beyond the history
// limit. A Job's name is derived from its scheduled time, so that none is created twice.
//
// Driven by events and one timer per CronJob. Loop-bound. The given informer and index are shared
// and must outlive it.
class CronJobController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    client::Informer& cron_jobs;
    OwnedIndex& jobs;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit CronJobController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  struct Work;

  void QueueOwner(const api::Object& job);
  void Sync(const std::string& key, Done done);
  void ConfirmMissing(const std::shared_ptr<Work>& work);
  void Plan(const std::shared_ptr<Work>& work);
  void Delete(const std::shared_ptr<Work>& work);
  void WriteStatus(const std::shared_ptr<Work>& work);
  void CreateJob(const std::shared_ptr<Work>& work);
  void Finish(const std::shared_ptr<Work>& work, Result<void> result);
  void UpdateStatus(const std::shared_ptr<Work>& work, api::TreePtr body,
                    std::function<void()> then);

  const Options options_;
  client::ScopedClient client_;
  DependentWriter writer_;
  client::WorkQueue queue_;
};

}  // namespace drakkar::controllers
