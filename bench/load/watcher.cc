#include "bench/load/watcher.h"

#include "base/text/text.h"

namespace drakkar::load {

void LineSplitter::Feed(std::string_view bytes,
                        const std::function<void(std::string_view)>& on_line) {
  while (true) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) break;
    if (rest_.empty()) {
      on_line(bytes.substr(0, end));
    } else {
      rest_.append(bytes.substr(0, end));
      const std::string line = std::exchange(rest_, {});
      on_line(line);
    }
    bytes.remove_prefix(end + 1);
  }
  rest_.append(bytes);
}

EventType TypeOf(std::string_view event) {
  const std::string_view type = TextIn(event.substr(0, 64), "type");
  if (type == "ADDED") return EventType::kAdded;
  if (type == "MODIFIED") return EventType::kModified;
  if (type == "DELETED") return EventType::kDeleted;
  return EventType::kOther;
}

// The object's own name, wherever it is in the metadata: owner references have names too.
std::string_view NameIn(std::string_view json) {
  constexpr std::string_view kMetadata = "\"metadata\":{";
  const std::size_t metadata = json.find(kMetadata);
  if (metadata == std::string_view::npos) return {};
  json.remove_prefix(metadata + kMetadata.size());
  int depth = 0;
  for (std::size_t i = 0; i < json.size() && depth >= 0; ++i) {
    const char c = json[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    if (depth == 0 && json.substr(i).starts_with("\"name\":"))
      return TextIn(json.substr(i), "name");
    for (++i; i < json.size() && json[i] != '"'; ++i) {
      if (json[i] == '\\') ++i;
    }
  }
  return {};
}

std::string_view TextIn(std::string_view json, std::string_view field) {
  const std::string member = StrCat("\"", field, "\":\"");
  const std::size_t at = json.find(member);
  if (at == std::string_view::npos) return {};
  json.remove_prefix(at + member.size());
  return json.substr(0, json.find('"'));
}

Watcher::Watcher(Api& api, std::size_t connection, const std::string& path,
                 std::function<void(std::string_view event)> on_event)
    : api_(api), path_(path), on_event_(std::move(on_event)) {
  handle_ = api.client(connection).Stream(api.Request({.path = path}), *this);
}

void Watcher::OnResponse(int status, const net::Headers&) {
  if (status != 200) return api_.Fail(Unavailable(StrCat("watch ", path_, ": status ", status)));
  open_ = true;
  api_.Wake();
}

void Watcher::OnData(std::string_view bytes) {
  lines_.Feed(bytes, on_event_);
}

void Watcher::OnEnd(Result<void> result) {
  api_.Fail(Unavailable(
      StrCat("watch ", path_, " ended: ", result.ok() ? "by the server" : result.error().message)));
}

}  // namespace drakkar::load
