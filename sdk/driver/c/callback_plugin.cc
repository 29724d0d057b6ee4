#include "sdk/driver/c/callback_plugin.h"

#include <deque>
#include <utility>

#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::driver::c {
namespace {

constexpr Logger kLog("driver");
constexpr char kDropped[] = "the driver freed the call without answering it";

// Posts `deliver`, which carries the answer, unless the claim was answered before.
int AnswerOnce(LateCall* call, const std::string& claim, Task deliver, drakkar_error* error) {
  if (call->is_answered.exchange(true)) {
    const std::string twice = StrCat("claim ", claim, " was answered twice");
    call->port->Post(
        [plugin = &call->plugin, twice] { plugin->HandleError(FailedPrecondition(twice), true); });
    return Fail(error, twice);
  }
  if (!call->port->Post(std::move(deliver))) {
    return Fail(error, StrCat("claim ", claim, ": the driver has stopped"));
  }
  return 0;
}

int AnswerPrepare(drakkar_prepare_call* call, PrepareResult result, drakkar_error* error) {
  if (call == nullptr) return Fail(error, "call must not be null");
  return AnswerOnce(
      call, StrCat(call->claim.namespace_name, "/", call->claim.name),
      [plugin = &call->plugin, id = call->id, uid = call->claim.uid,
       result = std::move(result)]() mutable {
        plugin->FinishPrepare(id, std::move(uid), std::move(result));
      },
      error);
}

int AnswerUnprepare(drakkar_unprepare_call* call, std::string failure, drakkar_error* error) {
  if (call == nullptr) return Fail(error, "call must not be null");
  return AnswerOnce(
      call, StrCat(call->claim.namespace_name, "/", call->claim.name),
      [plugin = &call->plugin, id = call->id, uid = call->claim.uid,
       failure = std::move(failure)]() mutable {
        plugin->FinishUnprepare(id, std::move(uid), {std::move(failure)});
      },
      error);
}

std::string FailureText(const char* message) {
  return message == nullptr || *message == 0 ? "the driver returned no error message" : message;
}

}  // namespace

bool AnswerPort::Post(Task task) {
  const std::lock_guard lock(mutex_);
  if (loop_ == nullptr) return false;
  loop_->Post(std::move(task));
  return true;
}

void AnswerPort::Close() {
  const std::lock_guard lock(mutex_);
  loop_ = nullptr;
}

void CallbackPlugin::Stop() {
  if (port_ != nullptr) port_->Close();
  prepares_.clear();
  unprepares_.clear();
}

template <typename Opens, typename Result>
void CallbackPlugin::Finish(Opens& opens, std::uint64_t id, std::string uid, Result result) {
  const auto open = opens.find(id);
  if (open == opens.end()) return;  // the driver is stopping
  open->second.results.insert_or_assign(std::move(uid), std::move(result));
  if (--open->second.left > 0) return;
  auto finished = opens.extract(open);
  finished.mapped().done(std::move(finished.mapped().results));
}

void CallbackPlugin::FinishPrepare(std::uint64_t id, std::string uid, PrepareResult result) {
  Finish(prepares_, id, std::move(uid), std::move(result));
}

void CallbackPlugin::FinishUnprepare(std::uint64_t id, std::string uid,
                                     rpc::UnprepareResult result) {
  Finish(unprepares_, id, std::move(uid), std::move(result));
}

void CallbackPlugin::StartEach(const std::vector<api::ObjectPtr>& claims, PrepareDone done) {
  if (claims.empty()) return done(PrepareResults());
  const LateCall call(port_, *this, ++last_id_);
  prepares_.emplace(call.id, Open<PrepareResults, PrepareDone>{{}, claims.size(), std::move(done)});
  for (const api::ObjectPtr& claim : claims) {
    options_.start_prepare(options_.user_data,
                           new drakkar_prepare_call(call, *claim, driver_name_));
  }
}

void CallbackPlugin::StartEach(const std::vector<rpc::ClaimReference>& claims,
                               rpc::UnprepareDone done) {
  if (claims.empty()) return done(rpc::UnprepareResults());
  const LateCall call(port_, *this, ++last_id_);
  unprepares_.emplace(
      call.id, Open<rpc::UnprepareResults, rpc::UnprepareDone>{{}, claims.size(), std::move(done)});
  for (const rpc::ClaimReference& claim : claims) {
    options_.start_unprepare(options_.user_data, new drakkar_unprepare_call(call, claim));
  }
}

void CallbackPlugin::PrepareResourceClaims(std::vector<api::ObjectPtr> claims, PrepareDone done) {
  if (options_.start_prepare != nullptr) return StartEach(claims, std::move(done));
  std::deque<drakkar_claim> lent;
  std::vector<drakkar_prepare_result> results(claims.size());
  std::vector<drakkar_prepare_item> items(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    lent.emplace_back(*claims[i], driver_name_);
    items[i].claim = &lent.back();
    items[i].result = &results[i];
  }
  if (options_.prepare_all != nullptr) {
    drakkar_error error = {};
    if (options_.prepare_all(options_.user_data, items.data(), items.size(), &error) != 0) {
      return done(FailedPrecondition(ErrorText(error)));
    }
  } else {
    for (drakkar_prepare_item& item : items) {
      item.failed = options_.prepare(options_.user_data, item.claim, item.result, &item.error);
    }
  }
  PrepareResults answer;
  for (std::size_t i = 0; i < items.size(); ++i) {
    PrepareResult result = items[i].failed != 0
                               ? PrepareResult(FailedPrecondition(ErrorText(items[i].error)))
                               : PrepareResult(std::move(results[i].devices));
    answer.insert_or_assign(lent[i].uid, std::move(result));
  }
  done(std::move(answer));
}

void CallbackPlugin::UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                                             rpc::UnprepareDone done) {
  if (options_.start_unprepare != nullptr) return StartEach(claims, std::move(done));
  std::vector<drakkar_unprepare_item> items(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    items[i].claim_namespace = claims[i].namespace_name.c_str();
    items[i].claim_name = claims[i].name.c_str();
    items[i].claim_uid = claims[i].uid.c_str();
  }
  if (options_.unprepare_all != nullptr) {
    drakkar_error error = {};
    if (options_.unprepare_all(options_.user_data, items.data(), items.size(), &error) != 0) {
      return done(FailedPrecondition(ErrorText(error)));
    }
  } else {
    for (drakkar_unprepare_item& item : items) {
      item.failed = options_.unprepare(options_.user_data, item.claim_namespace, item.claim_name,
                                       item.claim_uid, &item.error);
    }
  }
  rpc::UnprepareResults answer;
  for (std::size_t i = 0; i < items.size(); ++i) {
    answer[claims[i].uid].error = items[i].failed != 0 ? ErrorText(items[i].error) : "";
  }
  done(std::move(answer));
}

void CallbackPlugin::HandleError(const Error& error, bool recoverable) {
  if (options_.handle_error != nullptr) {
    return options_.handle_error(options_.user_data, error.message.c_str(), recoverable ? 1 : 0);
  }
  kLog.Error("background error", {{"error", error.message}, {"recoverable", recoverable}});
}

}  // namespace drakkar::driver::c

using namespace drakkar;
using namespace drakkar::driver::c;

extern "C" {

const drakkar_claim* drakkar_prepare_call_claim(const drakkar_prepare_call* call) {
  return &call->claim;
}

drakkar_prepare_result* drakkar_prepare_call_result(drakkar_prepare_call* call) {
  return call == nullptr || call->is_answered ? nullptr : &call->result;
}

int drakkar_prepare_call_succeed(drakkar_prepare_call* call, drakkar_error* error) {
  return Guarded(error, [&] {
    std::vector<driver::PreparedDevice> devices;
    if (call != nullptr && !call->is_answered) devices = std::move(call->result.devices);
    return AnswerPrepare(call, driver::PrepareResult(std::move(devices)), error);
  });
}

int drakkar_prepare_call_fail(drakkar_prepare_call* call, const char* message,
                              drakkar_error* error) {
  return Guarded(error, [&] {
    return AnswerPrepare(call, driver::PrepareResult(FailedPrecondition(FailureText(message))),
                         error);
  });
}

void drakkar_prepare_call_free(drakkar_prepare_call* call) {
  if (call == nullptr) return;
  if (!call->is_answered) drakkar_prepare_call_fail(call, kDropped, nullptr);
  delete call;
}

const char* drakkar_unprepare_call_namespace(const drakkar_unprepare_call* call) {
  return call->claim.namespace_name.c_str();
}
const char* drakkar_unprepare_call_name(const drakkar_unprepare_call* call) {
  return call->claim.name.c_str();
}
const char* drakkar_unprepare_call_uid(const drakkar_unprepare_call* call) {
  return call->claim.uid.c_str();
}

int drakkar_unprepare_call_succeed(drakkar_unprepare_call* call, drakkar_error* error) {
  return Guarded(error, [&] { return AnswerUnprepare(call, "", error); });
}

int drakkar_unprepare_call_fail(drakkar_unprepare_call* call, const char* message,
                                drakkar_error* error) {
  return Guarded(error, [&] { return AnswerUnprepare(call, FailureText(message), error); });
}

void drakkar_unprepare_call_free(drakkar_unprepare_call* call) {
  if (call == nullptr) return;
  if (!call->is_answered) drakkar_unprepare_call_fail(call, kDropped, nullptr);
  delete call;
}

}  // extern "C"
