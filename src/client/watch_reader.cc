#include "client/watch_reader.h"

#include <memory>

#include "api/meta/status.h"
#include "base/text/text.h"

namespace drakkar::client {
namespace {

std::optional<EventType> FindEventType(std::string_view text) {
  if (text == "ADDED") return EventType::kAdded;
  if (text == "MODIFIED") return EventType::kModified;
  if (text == "DELETED") return EventType::kDeleted;
  if (text == "BOOKMARK") return EventType::kBookmark;
  return std::nullopt;
}

std::optional<Error> ReadEvent(std::string_view line, const api::ReadOptions& options,
                               std::vector<WatchEvent>& events) {
  Result<api::TreePtr> tree = api::ParseJson(line, options);
  if (!tree.ok()) return tree.error().Prefixed("watch event");
  const api::Value root = (*tree)->root();
  if (root["type"].str() == "ERROR") {
    return api::ErrorFromStatus(api::Status::FromTree(root["object"]));
  }
  const std::optional<EventType> type = FindEventType(root["type"].str());
  if (!type)
    return InvalidArgument(StrCat("watch event has unknown type ", Quote(root["type"].str())));
  if (!root["object"].is_object()) return InvalidArgument("watch event has no object");
  events.push_back({*type, std::make_shared<const api::Object>(api::CopyTree(root["object"]))});
  return std::nullopt;
}

}  // namespace

std::optional<Error> WatchReader::Read(std::string_view bytes, std::vector<WatchEvent>& events) {
  std::size_t searched = buffer_.size();  // there is no line end before this
  buffer_ += bytes;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end == std::string::npos) break;
    const std::string_view line(buffer_.data() + begin, end - begin);
    begin = searched = end + 1;
    if (Trim(line).empty()) continue;
    if (std::optional<Error> error = ReadEvent(line, options_, events)) return error;
  }
  buffer_.erase(0, begin);
  if (buffer_.size() > kMaxEventBytes) {
    return Error{ErrorCode::kResourceExhausted, "watch event is too large"};
  }
  return std::nullopt;
}

}  // namespace drakkar::client
