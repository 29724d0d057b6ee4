#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/os/file_watcher.h"
#include "node/runtime/network/cni_attachment.h"
#include "node/runtime/network/cni_executor.h"
#include "node/runtime/network/pod_network.h"

namespace drakkar::node {

// Pod networks made by CNI plugins.
//
// The configuration is the first file of a directory, which is watched: a new one applies to pods
// that start afterwards. Running pods keep their network, and it is removed with the configuration
// it was made with. Without a file, the built-in network applies, if there is one.
//
// Plugins of a configuration of version 1.1 or newer are asked for their status every kStatusEvery:
// no pod joins the network before they say that they are ready, or while they say that they are
// not.
//
// A few operations run at a time, in the order in which they were requested. Loop-bound.
class CniNetwork final : public PodNetwork {
 public:
  struct Options {
    EventLoop& loop;
    FileSystem& files;
    FileWatcher& watcher;
    CniExecutor& executor;
    std::string config_directory;  // "/etc/cni/net.d"
    std::string state_directory;   // holds the attachments
    std::optional<CniList> built_in = std::nullopt;
    // Called before the first pod joins the built-in network, and again if it failed. May be empty.
    std::function<void(RuntimeCallback<void>)> prepare_built_in = nullptr;
    // Without a file and without a built-in network, pods share the host's network, and this is the
    // reason. Empty: they cannot start, as with a kubelet.
    std::string shared_because = "";
    std::function<void(const std::string&)> log = nullptr;  // one sentence each
  };
  static constexpr std::size_t kMaxRunning = 4;
  static constexpr std::size_t kMaxQueued = 4'096;  // further calls are refused
  static constexpr Duration kSettle = std::chrono::milliseconds(100);
  static constexpr Backoff::Options kRetry{.initial = std::chrono::seconds(1),
                                           .max = std::chrono::minutes(1)};
  static constexpr Duration kStatusEvery = std::chrono::seconds(10);
  static constexpr char kInterface[] = "eth0";

  explicit CniNetwork(Options options);

  // Reads the configuration and watches it.
  void Start();

  PodNetworkState State() const override { return state_; }
  void OnStateChanged(std::function<void()> listener) override { listener_ = std::move(listener); }
  void SetUp(PodNetworkRequest request, RuntimeCallback<std::vector<std::string>> done) override;
  void TearDown(const PodNetworkUser& user, RuntimeCallback<void> done) override;
  void Adopt(std::vector<PodNetworkUser> users) override;

 private:
  // Runs on a slot and calls `finished` when it is done.
  struct Operation {
    absl::AnyInvocable<void(absl::AnyInvocable<void()> finished)> run;
    bool exclusive = false;
  };
  // A pass of one command over the plugins of a list.
  struct Pass {
    CniList list;
    CniAttachment attachment;
    std::string command;
    std::string namespace_path;
    std::vector<std::size_t> order;  // indexes of the plugins still to run
    std::string result;              // for the next plugin
    std::optional<std::string> valid_attachments;
    std::optional<Error> first_error;
    bool stop_at_error = false;
    RuntimeCallback<std::string> done;
  };

  // Configuration.
  void Watch();
  void OnDirectoryEvent(const FileEvent& event);
  void Load();
  // Combines what the configuration and the plugins say.
  void Publish();
  bool ReportsStatus() const;
  void AskStatus();

  // Scheduling.
  bool Enqueue(Operation operation);
  void RunQueued();

  // The work of operations.
  void Add(PodNetworkRequest request, RuntimeCallback<std::vector<std::string>> done);
  void AddTo(CniList list, PodNetworkRequest request,
             RuntimeCallback<std::vector<std::string>> done);
  void UndoAdd(const std::string& sandbox_id, const std::string& namespace_path, Error error,
               RuntimeCallback<std::vector<std::string>> done);
  void Delete(const PodNetworkUser& user, RuntimeCallback<void> done);
  void Check(const PodNetworkUser& user, RuntimeCallback<void> done);
  void CollectGarbage(RuntimeCallback<void> done);
  void RunPass(std::shared_ptr<Pass> pass);
  static std::shared_ptr<Pass> NewPass(CniList list, CniAttachment attachment, std::string command,
                                       std::string namespace_path);

  // Attachments whose removal failed and that belong to no sandbox any more.
  void RetryLater(const std::string& sandbox_id);
  void RetryOrphans();

  void Log(const std::string& text) const {
    if (options_.log) options_.log(text);
  }

  const Options options_;
  CniAttachments attachments_;
  PodNetworkState configured_;         // without the status of the plugins
  std::optional<std::string> status_;  // why they are not ready; empty: they are
  bool asks_status_ = false;
  TimerHandle status_timer_;
  PodNetworkState state_;
  std::optional<CniList> list_;
  bool uses_built_in_ = false;
  bool is_prepared_ = false;
  std::function<void()> listener_;
  std::string watched_directory_;
  std::unique_ptr<FileWatch> watch_;
  TimerHandle load_timer_;
  std::deque<Operation> queue_;
  std::size_t running_ = 0;
  bool runs_exclusive_ = false;
  std::set<std::string> orphans_;
  TimerHandle orphan_timer_;
  Backoff orphan_backoff_{kRetry};
  Lifetime lifetime_;
};

// The values that plugins get for their capabilities.
CapabilityArguments CapabilitiesOf(const PodNetworkRequest& request);
// CNI_ARGS; an error if a name would add an argument of its own.
Result<std::string> CniArgumentsOf(const PodNetworkRequest& request);

}  // namespace drakkar::node
