#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "apiserver/http/negotiate.h"
#include "apiserver/http/request_info.h"
#include "apiserver/rest/core.h"
#include "net/server/http_server.h"

namespace drakkar::apiserver {

// Answers of an HTTP loop to gets, to be given again without asking the core as long as neither the
// object nor anybody's rights have changed since: a get sees every write that was answered before
// it, because the core raises the object's stamp when it applies the write.
//
// Only for users known by their connection, and not for nodes, whose rights depend on more objects.
// Bounds: kMaxEntries answers of at most kMaxObjectBytes each, which may be of objects that are
// gone.
class ReadCache {
 public:
  static constexpr std::size_t kMaxEntries = 1'024;
  static constexpr std::size_t kMaxObjectBytes = 16 << 10;

  // What vouches for an answer, read before the core was asked.
  struct Stamp {
    std::size_t slot = 0;
    std::uint64_t object = 0;
    std::uint64_t policy = 0;
  };
  struct Entry {
    RequestInfo info;
    Negotiated negotiated;
    api::ObjectPtr object;
    Stamp stamp;
  };

  explicit ReadCache(Core& core) : core_(core) {}

  // On the HTTP loop. The name of what a request asks, by whom and in which form; "" if the answer
  // is nothing to keep.
  static std::string KeyOf(const net::ServerRequest& request);
  const Entry* Find(const std::string& key);
  Stamp StampOf(const RequestInfo& info) const;
  void Keep(std::string key, Entry entry);

  // On the core's loop, before it looks at an object whose answer is to be kept.
  void Follow(const api::KindSchema& kind);

 private:
  static const api::KindSchema& StoredKind(const api::KindSchema& kind);
  // Objects share slots: a change of one then costs the others a question to the core.
  static constexpr std::size_t kSlots = 4'096;
  static std::size_t SlotOf(const api::KindSchema& stored, std::string_view name);

  Core& core_;
  // Raised on the core's loop, read on the HTTP loop.
  std::array<std::atomic<std::uint64_t>, kSlots> stamps_{};
  std::atomic<std::uint64_t> policy_{0};
  // The HTTP loop's.
  std::unordered_map<std::string, Entry> entries_;
  // The core's.
  std::unordered_map<const api::KindSchema*, std::unique_ptr<WatchCache::Watcher>> followed_;
};

}  // namespace drakkar::apiserver
