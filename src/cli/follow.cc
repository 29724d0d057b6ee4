#include "cli/follow.h"

#include "base/text/text.h"

namespace drakkar::cli {
namespace {

// Delay between the end of a watch and the next list.
constexpr Duration kPause = std::chrono::milliseconds(200);

}  // namespace

Result<bool> Follow(Session& session, const client::ResourceRef& ref,
                    std::optional<Duration> timeout, std::string_view what,
                    std::function<bool(api::Value object)> check) {
  const MonotonicTime start = session.clock().Monotonic();
  const std::string selector = StrCat("metadata.name=", ref.name);
  client::ResourceRef collection = ref;
  collection.name.clear();
  while (true) {
    ASSIGN_OR_RETURN(const api::TreePtr list, session.List(collection, {}, selector));
    if (check(list->root()["items"].at(0))) return true;
    std::optional<Duration> left;
    if (timeout) {
      left = *timeout - (session.clock().Monotonic() - start);
      if (*left <= Duration{0}) return false;
    }
    client::WatchOptions options;
    options.field_selector = selector;
    options.resource_version =
        ParseInt64(list->root()["metadata"]["resourceVersion"].str()).value_or(0);
    const WatchEnd end = session.Watch(
        collection, std::move(options), left, what, [&](const client::WatchEvent& event) {
          if (event.type == client::EventType::kBookmark) return false;
          return check(event.type == client::EventType::kDeleted ? api::Value()
                                                                 : event.object->root());
        });
    if (end == WatchEnd::kDone) return true;
    if (end == WatchEnd::kTimeout) return false;
    session.Pause(kPause);
  }
}

}  // namespace drakkar::cli
