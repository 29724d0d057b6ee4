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

// Caches the responses of an HTTP loop to gets, to answer repeated ones without the core while
// neither the object nor any permission has changed (docs/decisions/read-cache.md). A get sees
// every write that was answered before it, because the core raises the object's stamp when it
// applies the write.
//
// Only for users authenticated by client certificate, and neither for nodes, whose permissions
// depend on more objects, nor behind proxies. Bounds: kMaxEntries responses of at most
// kMaxObjectBytes each; they may keep deleted objects alive.
class ReadCache {
 public:
  static constexpr std::size_t kMaxEntries = 1'024;
  static constexpr std::size_t kMaxObjectBytes = 16 << 10;

  // The versions that a response is valid for, read before the core was asked.
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

  // On the HTTP loop. The cache key of a request: path, user and form. Empty if the response must
  // not be cached.
  static std::string KeyOf(const net::ServerRequest& request);
  const Entry* Find(const std::string& key);
  Stamp StampOf(const RequestInfo& info) const;
  void Keep(std::string key, Entry entry);

  // On the core's loop, before it reads an object whose response will be cached.
  void Follow(const api::KindSchema& kind);

 private:
  static const api::KindSchema& StoredKind(const api::KindSchema& kind);
  // Objects share slots. A change of one then invalidates the others, too.
  static constexpr std::size_t kSlots = 4'096;
  static std::size_t SlotOf(const api::KindSchema& stored, std::string_view name);

  Core& core_;
  // Raised on the core's loop, read on the HTTP loop.
  std::array<std::atomic<std::uint64_t>, kSlots> stamps_{};
  std::atomic<std::uint64_t> policy_{0};
  // Used on the HTTP loop.
  std::unordered_map<std::string, Entry> entries_;
  // Used on the core's loop.
  std::unordered_map<const api::KindSchema*, std::unique_ptr<WatchCache::Watcher>> followed_;
};

}  // namespace drakkar::apiserver
