#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "bench/load/api.h"

namespace drakkar::load {

// Splits a watch's bytes into events, one per line.
class LineSplitter {
 public:
  void Feed(std::string_view bytes, const std::function<void(std::string_view)>& on_line);

 private:
  std::string rest_;
};

enum class EventType { kAdded, kModified, kDeleted, kOther };
EventType TypeOf(std::string_view event);
// metadata.name of the object in a watch event or response, found without parsing the rest:
// decoding would cost the generator more CPU than the server uses. Empty if there is none.
std::string_view NameIn(std::string_view json);
// The first string value of the member `field`, anywhere; empty if there is none.
std::string_view TextIn(std::string_view json, std::string_view field);

// A watch that must not end. A failure ends the Api's blocking call.
class Watcher final : private net::StreamSink {
 public:
  Watcher(Api& api, std::size_t connection, const std::string& path,
          std::function<void(std::string_view event)> on_event);
  bool is_open() const { return open_; }

 private:
  void OnResponse(int status, const net::Headers& headers) override;
  void OnData(std::string_view bytes) override;
  void OnEnd(Result<void> result) override;

  Api& api_;
  const std::string path_;
  std::function<void(std::string_view)> on_event_;
  LineSplitter lines_;
  bool open_ = false;
  std::unique_ptr<net::RequestHandle> handle_;
};

}  // namespace drakkar::load
