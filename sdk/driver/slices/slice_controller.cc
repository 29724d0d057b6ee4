#include "sdk/driver/slices/slice_controller.h"

#include <utility>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "sdk/driver/slices/dropped_fields.h"

namespace drakkar::driver {
namespace {

using api::Draft;

// For this long after a registration, deletions are attributed to a starting node and repaired
// after the shorter delay.
constexpr Duration kEagerTime = std::chrono::seconds(10);
constexpr Duration kEagerDelay = std::chrono::milliseconds(500);

const api::KindSchema* SliceKind() {
  static const api::KindSchema* const kind =
      api::FindKind("resource.k8s.io", "v1", "ResourceSlice");
  return kind;
}

client::ResourceRef SliceRef(std::string_view name) {
  return {.kind = SliceKind(), .name = std::string(name)};
}

std::string PoolOf(const api::Object& slice) {
  return std::string(slice["spec"]["pool"]["name"].str());
}

}  // namespace

SliceController::SliceController(Options options)
    : options_(std::move(options)),
      identity_{.driver = options_.driver_name,
                .node_name = options_.node_name,
                .owner_name = !options_.node_name.empty() ? options_.node_name
                              : options_.owner != nullptr
                                  ? std::string(options_.owner->root()["name"].str())
                                  : std::string()} {}

SliceController::~SliceController() = default;

void SliceController::Start() {
  queue_ = std::make_unique<client::WorkQueue>(
      options_.loop, options_.random,
      client::WorkQueue::Options{.name = "node_resource_slices", .max_in_flight = 4},
      [this](const std::string& pool, client::WorkQueue::Done done) {
        Sync(pool, std::move(done));
      });
  // The selector omits the pool's name, because older servers do not support it.
  informer_ = std::make_unique<client::Informer>(
      options_.loop, options_.random, options_.client,
      client::Informer::Options{.collection = SliceRef(""),
                                .field_selector = StrCat("spec.driver=", options_.driver_name,
                                                         ",spec.nodeName=", options_.node_name)});
  informer_->AddHandlers(
      {.on_add = [this](const api::ObjectPtr& slice) { OnForeignChange(slice, false); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& slice) { OnForeignChange(slice, false); },
       .on_delete =
           [this](const api::ObjectPtr& slice) {
             if (deleted_.erase(std::string(slice->uid())) == 0) OnForeignChange(slice, true);
           }});
  informer_->OnSynced([this] {
    for (const auto& [pool, desired] : desired_) queue_->Add(pool);
    for (const auto& [name, slice] : informer_->objects()) {
      if (IsOurs(*slice)) queue_->Add(PoolOf(*slice));
    }
  });
  informer_->Start();
}

bool SliceController::IsOurs(const api::Object& slice) const {
  return options_.pool_name.empty() || PoolOf(slice) == options_.pool_name;
}

Result<void> SliceController::Publish(const DriverResources& resources) {
  options_.loop.AssertInLoop();
  if (!options_.pool_name.empty() &&
      (resources.pools.size() != 1 || !resources.pools.contains(options_.pool_name))) {
    return InvalidArgument(StrCat("this controller manages only pool ", Quote(options_.pool_name),
                                  ", but ", resources.pools.size(), " pools were published"));
  }
  ASSIGN_OR_RETURN(auto desired, MakeDesiredPools(resources, !options_.node_name.empty()));
  ++publication_;
  std::swap(desired, desired_);
  if (informer_ == nullptr) {
    Start();
    return Ok();
  }
  if (!informer_->has_synced()) return Ok();
  for (const auto& [pool, before] : desired) queue_->Add(pool);
  for (const auto& [pool, now] : desired_) queue_->Add(pool);
  return Ok();
}

void SliceController::OnRegistered() {
  options_.loop.AssertInLoop();
  eager_until_ = options_.loop.clock().Monotonic() + kEagerTime;
  if (informer_ == nullptr || !informer_->has_synced()) return;
  resyncs_.clear();
  for (const auto& [pool, desired] : desired_) queue_->Add(pool);
}

bool SliceController::IsSettled() const {
  return informer_ != nullptr && informer_->has_synced() && queue_->size() == 0;
}

void SliceController::OnForeignChange(const api::ObjectPtr& slice, bool deleted) {
  if (!IsOurs(*slice)) return;
  const auto own = written_.find(std::string(slice->name()));
  if (own != written_.end() && own->second->resource_version() == slice->resource_version()) {
    written_.erase(own);
    return;
  }
  if (!informer_->has_synced()) return;
  // Keep the first deadline, so that a stream of changes cannot postpone the repair forever.
  const std::string pool = PoolOf(*slice);
  TimerHandle& timer = resyncs_[pool];
  if (timer != nullptr) return;
  const bool eager = deleted && options_.loop.clock().Monotonic() < eager_until_;
  timer = options_.loop.RunAfter(eager ? kEagerDelay : options_.sync_delay, [this, pool] {
    resyncs_.erase(pool);
    queue_->Add(pool);
  });
}

std::vector<api::ObjectPtr> SliceController::SlicesOf(const std::string& pool) {
  // Drop our copy once the informer's is at least as new.
  std::erase_if(written_, [this](const auto& entry) {
    return informer_->resource_version() >= entry.second->resource_version();
  });
  std::vector<api::ObjectPtr> slices;
  std::set<std::string> known;
  for (const auto& [name, slice] : informer_->objects()) {
    known.insert(std::string(slice->uid()));
    if (PoolOf(*slice) != pool || deleted_.contains(std::string(slice->uid()))) continue;
    const auto newer = written_.find(name);
    slices.push_back(newer == written_.end() ? slice : newer->second);
  }
  for (const auto& [name, slice] : written_) {
    if (informer_->Find(name) == nullptr && PoolOf(*slice) == pool &&
        !deleted_.contains(std::string(slice->uid()))) {
      slices.push_back(slice);
    }
    known.insert(std::string(slice->uid()));
  }
  std::erase_if(deleted_, [&](const std::string& uid) { return !known.contains(uid); });
  return slices;
}

void SliceController::Sync(const std::string& pool, client::WorkQueue::Done done) {
  auto run = std::make_shared<Run>();
  run->pool = pool;
  run->publication = publication_;
  run->done = std::move(done);
  const auto desired = desired_.find(pool);
  run->plan = PlanPool(identity_, pool, desired == desired_.end() ? nullptr : &desired->second,
                       SlicesOf(pool));
  if (run->plan.creations.empty() || options_.node_name.empty()) {
    run->owner = options_.owner;
    Step(run);
  } else {
    LookUpOwner(run);
  }
}

void SliceController::LookUpOwner(const RunPtr& run) {
  const auto owner = [this](std::string_view uid) {
    const Draft reference = {{"apiVersion", "v1"},
                             {"kind", "Node"},
                             {"name", Draft(options_.node_name)},
                             {"uid", Draft(uid)},
                             {"controller", Draft(true)}};
    return reference.Freeze();
  };
  if (!options_.node_uid.empty()) {
    run->owner = owner(options_.node_uid);
    return Step(run);
  }
  // Looked up every time: a Node that was deleted and recreated has another UID, and slices owned
  // by the old one would be garbage-collected.
  static const api::KindSchema* const node = api::FindKind("", "v1", "Node");
  options_.client.Get(
      {.kind = node, .name = options_.node_name},
      lifetime_.Guard([this, run, owner](client::Reply reply) {
        if (!reply.ok()) {
          return Fail(run, reply.error->Prefixed(StrCat("look up the owner of the slices, node ",
                                                        options_.node_name)));
        }
        run->owner = owner(reply.object->uid());
        Step(run);
      }));
}

void SliceController::Step(const RunPtr& run) {
  const PoolPlan& plan = run->plan;
  std::size_t next = run->next++;
  if (next < plan.deletions.size()) return Delete(run, plan.deletions[next]);
  next -= plan.deletions.size();
  if (next < plan.updates.size()) return Update(run, plan.updates[next]);
  next -= plan.updates.size();
  if (next < plan.creations.size()) return Create(run, plan.creations[next]);
  last_error_.erase(run->pool);
  run->done(Ok());
}

void SliceController::Delete(const RunPtr& run, const api::ObjectPtr& slice) {
  client::DeleteOptions conditions;
  conditions.precondition_uid = slice->uid();
  conditions.precondition_resource_version = std::to_string(slice->resource_version());
  options_.client.Delete(
      SliceRef(slice->name()), std::move(conditions),
      lifetime_.Guard([this, run, slice](client::Reply reply) {
        if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) {
          return Fail(run, reply.error->Prefixed(
                               StrCat("pool ", Quote(run->pool), ", delete ", slice->name())));
        }
        if (reply.ok()) ++counts_.deletions;
        written_.erase(std::string(slice->name()));
        deleted_.insert(std::string(slice->uid()));
        Step(run);
      }));
}

void SliceController::Update(const RunPtr& run, const SliceUpdate& update) {
  options_.client.Update(
      SliceRef(update.before->name()), update.body, {},
      lifetime_.Guard([this, run, index = update.index, body = update.body](client::Reply reply) {
        if (!reply.ok()) {
          Error error = reply.error->Prefixed(
              StrCat("pool ", Quote(run->pool), ", slice #", index, ", update"));
          // Deleted in the meantime: the next pass recreates it.
          if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kConflict;
          return Fail(run, std::move(error));
        }
        ++counts_.updates;
        OnWritten(run, index, body, reply.object);
        Step(run);
      }));
}

void SliceController::Create(const RunPtr& run, const SliceCreation& creation) {
  Draft object(creation.body);
  if (run->owner != nullptr) object["metadata"]["ownerReferences"].Append(Draft(run->owner));
  api::TreePtr body = object.Freeze();
  options_.client.Create(
      SliceRef(""), body, {},
      lifetime_.Guard([this, run, index = creation.index, body](client::Reply reply) {
        if (!reply.ok()) {
          return Fail(run, reply.error->Prefixed(
                               StrCat("pool ", Quote(run->pool), ", slice #", index, ", create")));
        }
        ++counts_.creations;
        OnWritten(run, index, body, reply.object);
        Step(run);
      }));
}

void SliceController::OnWritten(const RunPtr& run, std::size_t index, const api::TreePtr& sent,
                                const api::ObjectPtr& stored) {
  if (informer_->resource_version() < stored->resource_version()) {
    written_[std::string(stored->name())] = stored;
  }
  const api::Value spec = (*stored)["spec"];
  const api::TreePtr expected = WithStoredTaintTimes(api::CopyTree(sent->root()["spec"]), spec);
  const std::vector<std::string> dropped = DroppedFeatures(expected->root(), spec);
  if (dropped.empty()) return;
  const std::vector<std::string> paths = DroppedPaths(expected->root(), spec);
  options_.on_error(FailedPrecondition(
      StrCat("pool ", Quote(run->pool), ", slice #", index,
             ": some fields were dropped by the apiserver, probably because these features are "
             "disabled: ",
             Join(dropped, ", "), paths.empty() ? "" : " (fields: ", Join(paths, ", "),
             paths.empty() ? "" : ")")));
  // Accept what the server keeps: otherwise the slice would be rewritten forever.
  const auto desired = desired_.find(run->pool);
  if (run->publication != publication_ || desired == desired_.end()) return;
  if (index < desired->second.specs.size()) desired->second.specs[index] = api::CopyTree(spec);
}

void SliceController::Fail(const RunPtr& run, Error error) {
  // Losing a race is normal: the next pass sees the newer state.
  if (error.code != ErrorCode::kConflict && error.code != ErrorCode::kAlreadyExists) {
    Report(run->pool, error);
  }
  run->done(std::move(error));
}

void SliceController::Report(const std::string& pool, const Error& error) {
  std::string& last = last_error_[pool];
  if (last == error.message) return;
  last = error.message;
  options_.on_error(error);
}

}  // namespace drakkar::driver
