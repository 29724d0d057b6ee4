#include "storage/etcd/watch_cursor.h"

#include <utility>

#include "base/text/text.h"

namespace drakkar::storage {
namespace {

Bytes MakeBytes(std::string value) {
  return std::make_shared<const std::string>(std::move(value));
}

WatchEvent ToEvent(rpc::etcd::Event event) {
  WatchEvent out;
  out.key = std::move(event.kv.key);
  out.revision = event.kv.mod_revision;
  out.create_revision = event.kv.create_revision;
  if (!event.is_delete) out.value = MakeBytes(std::move(event.kv.value));
  if (event.prev_kv) {
    out.previous_value = MakeBytes(std::move(event.prev_kv->value));
    if (event.is_delete) out.create_revision = event.prev_kv->create_revision;
  }
  return out;
}

}  // namespace

rpc::etcd::WatchCreate WatchCursor::Resume(bool whole_keyspace) {
  pending_.clear();
  pending_revision_ = 0;
  rpc::etcd::WatchCreate create;
  const std::string_view watched = whole_keyspace ? std::string_view() : prefix_;
  create.key = watched.empty() ? std::string(1, '\0') : std::string(watched);
  create.range_end = rpc::etcd::PrefixEnd(watched);
  create.start_revision = reached_ + 1;
  create.progress_notify = true;
  create.prev_kv = true;
  create.fragment = true;
  return create;
}

WatchCursor::Step WatchCursor::On(rpc::etcd::WatchResponse response) {
  Step step;
  step.created = response.created;
  if (response.canceled) {
    if (response.compact_revision > 0) {
      step.closed = Error{ErrorCode::kExpired,
                          StrCat("revision ", reached_ + 1, " has been compacted (up to ",
                                 response.compact_revision, ")")};
    } else {
      step.lost = Unavailable(response.cancel_reason.empty() ? "etcd cancelled the watch"
                                                             : response.cancel_reason);
    }
    return step;
  }
  Revision complete = 0;  // whole revisions up to here are in step.events
  for (rpc::etcd::Event& event : response.events) {
    const Revision revision = event.kv.mod_revision;
    if (revision <= reached_ || revision < pending_revision_) continue;
    if (revision > pending_revision_) {
      complete = std::max(complete, pending_revision_);
      for (WatchEvent& each : pending_) step.events.push_back(std::move(each));
      pending_.clear();
      pending_revision_ = revision;
    }
    if (event.kv.key.starts_with(prefix_)) pending_.push_back(ToEvent(std::move(event)));
  }
  if (!response.fragment && pending_revision_ != 0) {
    complete = std::max(complete, pending_revision_);
    for (WatchEvent& each : pending_) step.events.push_back(std::move(each));
    pending_.clear();
    pending_revision_ = 0;
  }
  // Without events this reports progress: there is nothing up to the header's revision. With events
  // the header may be ahead of them.
  const bool is_progress = response.events.empty() && !response.created && !response.fragment;
  if (is_progress) complete = std::max(complete, response.header.revision);
  if (complete > reached_) step.up_to = reached_ = complete;
  return step;
}

}  // namespace drakkar::storage
