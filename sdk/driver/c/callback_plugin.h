#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "sdk/driver/c/drakkar_driver.h"
#include "sdk/driver/c/handles.h"
#include "sdk/driver/plugin.h"

namespace drakkar::driver::c {

// Passes work from the threads of a C driver to the loop. Outlives the driver, because a program
// may answer and free its handles after it has stopped the driver. Thread-safe.
class AnswerPort {
 public:
  explicit AnswerPort(EventLoop& loop) : loop_(&loop) {}

  // Runs `task` on the loop. False, and nothing runs, once closed.
  bool Post(Task task);
  void Close();

 private:
  std::mutex mutex_;
  EventLoop* loop_;  // guarded by mutex_; null once closed
};

class CallbackPlugin;

// One claim of a call of the node that is answered later.
struct LateCall {
  LateCall(std::shared_ptr<AnswerPort> to, CallbackPlugin& from, std::uint64_t number)
      : port(std::move(to)), plugin(from), id(number) {}

  const std::shared_ptr<AnswerPort> port;
  CallbackPlugin& plugin;  // only for tasks posted to the port
  const std::uint64_t id;  // of the node's call
  std::atomic<bool> is_answered = false;
};

// Passes the node's calls to the callbacks of a C driver: start_prepare for each claim if it is
// set, otherwise prepare_all for all claims of a call, otherwise prepare for each. Loop-bound; the
// handles that it gives to start_prepare are answered on any thread.
class CallbackPlugin final : public Plugin {
 public:
  explicit CallbackPlugin(const drakkar_driver_options& options)
      : options_(options), driver_name_(options.driver_name) {}

  // The loop that the calls arrive on, before the first one does.
  void Start(EventLoop& loop) { port_ = std::make_shared<AnswerPort>(loop); }
  // Answers given from now on fail, and so do the node's open calls.
  void Stop();

  void PrepareResourceClaims(std::vector<api::ObjectPtr> claims, PrepareDone done) override;
  void UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                               rpc::UnprepareDone done) override;
  void HandleError(const Error& error, bool recoverable) override;

  // Takes the result of one claim; the last one of a call answers the node.
  void FinishPrepare(std::uint64_t id, std::string uid, PrepareResult result);
  void FinishUnprepare(std::uint64_t id, std::string uid, rpc::UnprepareResult result);

 private:
  // A call of the node whose claims are answered one by one.
  template <typename Results, typename Done>
  struct Open {
    Results results;
    std::size_t left;
    Done done;
  };
  template <typename Opens, typename Result>
  static void Finish(Opens& opens, std::uint64_t id, std::string uid, Result result);

  void StartEach(const std::vector<api::ObjectPtr>& claims, PrepareDone done);
  void StartEach(const std::vector<rpc::ClaimReference>& claims, rpc::UnprepareDone done);

  const drakkar_driver_options options_;
  const std::string driver_name_;
  std::shared_ptr<AnswerPort> port_;
  std::uint64_t last_id_ = 0;
  // Bounded by kMaxOpenCalls.
  std::map<std::uint64_t, Open<PrepareResults, PrepareDone>> prepares_;
  std::map<std::uint64_t, Open<rpc::UnprepareResults, rpc::UnprepareDone>> unprepares_;
};

}  // namespace drakkar::driver::c

struct drakkar_prepare_call : drakkar::driver::c::LateCall {
  drakkar_prepare_call(const LateCall& call, const drakkar::api::Object& object,
                       std::string_view driver_name)
      : LateCall(call.port, call.plugin, call.id), claim(object, driver_name) {}

  const drakkar_claim claim;
  drakkar_prepare_result result;
};

struct drakkar_unprepare_call : drakkar::driver::c::LateCall {
  drakkar_unprepare_call(const LateCall& call, drakkar::rpc::ClaimReference reference)
      : LateCall(call.port, call.plugin, call.id), claim(std::move(reference)) {}

  const drakkar::rpc::ClaimReference claim;
};
