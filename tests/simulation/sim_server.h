#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apiserver/rest/core.h"
#include "base/exec/lifetime.h"
#include "base/testing/seeded_loop.h"
#include "client/client.h"
#include "features/gates/feature_gates.h"
#include "storage/memory/memory_store.h"
#include "tests/simulation/referee.h"

namespace drakkar::simulation {

class SimClient;

// An API server that can crash and restart: what was synced survives, and what was acknowledged is
// checked to have survived. Has its own lane.
class SimServer {
 public:
  SimServer(SeededLoop& loop, FeatureGates gates);
  ~SimServer();

  void Crash();  // connections break, and calls fail until Restart
  void Restart();
  bool is_up() const { return is_up_; }
  // Stores every allocation from now on, whoever holds the device.
  void StopArbitration();

  apiserver::Core& core() { return *core_; }
  storage::MemoryDisk& disk() { return disk_; }
  // By the kind's plural; empty while the server is down.
  std::vector<api::ObjectPtr> Objects(std::string_view group, std::string_view plural);
  api::ObjectPtr Find(std::string_view group, std::string_view plural, const std::string& key);

  // A write was acknowledged, so it must survive.
  void OnAcknowledged(const api::ObjectPtr& object);
  Referee& referee() { return referee_; }
  // What went wrong, one message each.
  std::vector<std::string> violations;

 private:
  friend class SimClient;
  void CheckAcknowledged();
  void TellReferee();

  SeededLoop& loop_;
  const FeatureGates gates_;
  storage::MemoryDisk disk_;
  EventLoop* lane_ = nullptr;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<storage::Watch> history_;
  Referee referee_;
  std::unique_ptr<apiserver::Core> core_;
  bool is_up_ = false;
  bool arbitrates_ = true;
  std::vector<SimClient*>
      clients_;  // in order of creation: an order by address would not depend on the seed alone
  std::map<std::string, std::int64_t> acknowledged_;  // by UID: version
  std::map<std::string, std::int64_t> must_survive_;  // those that existed at the crash
};

struct Faults {
  bool on = true;
  // A planted bug: this client's lists and watches show claims without their allocation.
  bool hide_allocations = false;
  // Another planted bug: this client sees every device as attached as soon as it is allocated.
  bool pretend_attached = false;
};

// A component's connection to the server, with faults drawn from the seed: lost requests and
// responses, delays, conflicts, and watches that break (losing what is in flight), expire, lag or
// repeat events. Reports writes and watches to the referee.
class SimClient final : public client::Client {
 public:
  SimClient(SeededLoop& loop, EventLoop& lane, SimServer& server, const Faults& faults,
            std::string user);
  ~SimClient() override;

  void Get(client::ResourceRef ref, client::ReplyCallback done) override;
  void List(client::ResourceRef ref, client::ListOptions options,
            std::function<void(client::ListReply)> done) override;
  void Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override;
  void Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override;
  void Patch(client::ResourceRef ref, client::PatchType type, std::string body,
             client::WriteOptions options, client::ReplyCallback done) override;
  void Delete(client::ResourceRef ref, client::DeleteOptions options,
              client::ReplyCallback done) override;
  void DeleteCollection(client::ResourceRef ref, client::ListOptions list,
                        client::DeleteOptions options, client::ReplyCallback done) override;
  std::unique_ptr<client::WatchHandle> Watch(client::ResourceRef ref, client::WatchOptions options,
                                             client::WatchCallbacks callbacks) override;

  void Connect();
  void Disconnect();

 private:
  class SimWatch;
  struct Stream;
  using Send = std::function<void(client::Client& direct, client::ReplyCallback done)>;

  bool Happens(int one_in) { return faults_.on && loop_.random().Below(one_in) == 0; }
  // What a request does, for the referee; a read has no verb.
  struct Deed {
    const char* verb = "";
    client::ResourceRef ref;
    std::string selector;
  };
  void Call(Deed deed, Send send, client::ReplyCallback done);
  void Transmit(std::uint64_t id, const Deed& deed, Send send);
  void Answer(std::uint64_t id, client::Reply reply);
  void OnEvents(const std::shared_ptr<Stream>& stream, std::vector<client::WatchEvent> events);
  void Deliver(const std::shared_ptr<Stream>& stream);
  void Close(const std::shared_ptr<Stream>& stream, Error error);
  api::ObjectPtr Shown(api::ObjectPtr object) const;

  SeededLoop& loop_;
  EventLoop& lane_;
  SimServer& server_;
  const Faults& faults_;
  const std::string user_;
  std::unique_ptr<client::Client> direct_;  // null while the server is down
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, client::ReplyCallback> calls_;
  std::map<std::uint64_t, TimerHandle> delays_;
  std::vector<std::shared_ptr<Stream>> streams_;  // in the order opened
  Lifetime lifetime_;
};

}  // namespace drakkar::simulation
