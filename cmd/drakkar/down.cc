// down: removes what a node agent leaves running on purpose.
#include <unistd.h>

#include "base/env/absolute_path.h"
#include "base/env/file_lock.h"
#include "base/env/random.h"
#include "base/exec/worker_pool.h"
#include "base/text/text.h"
#include "cmd/drakkar/command_groups.h"
#include "cmd/drakkar/cri_commands.h"
#include "cmd/drakkar/node_cleanup.h"
#include "cmd/drakkar/node_network.h"
#include "cmd/drakkar/node_part.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/oci/host.h"
#include "node/runtime/oci/oci_runtime.h"

namespace drakkar::cmd {
namespace {

constexpr std::size_t kWorkers = 4;
constexpr std::size_t kMaxQueuedWork = 4'096;
constexpr int kEndSeconds = 30;

// Removes all pods, then their network. Lives on its loop.
class Removal {
 public:
  Removal(UvLoop& loop, const PodNetworkOptions& network, const std::string& data_dir,
          std::string runtime)
      : loop_(loop),
        data_dir_(data_dir),
        options_(network),
        runtime_name_(std::move(runtime)),
        images_(RealFileSystem(), RealRandom(), ImageDirectory(data_dir)),
        workers_(kWorkers, kMaxQueuedWork) {}

  ~Removal() {
    workers_.Stop();
    runtime_.reset();
    network_.reset();
  }

  void Start() {
    auto watcher = MakeFileWatcher(loop_);
    if (!watcher.ok()) return Finish(watcher.error());
    watcher_ = std::move(*watcher);
    network_ = std::make_unique<NodeNetwork>(loop_, *watcher_, options_, data_dir_);
    runtime_ = node::MakeOciRuntime(loop_, workers_, RealFileSystem(), RealRandom(), images_,
                                    {.root = JoinPath(data_dir_, "runtime"),
                                     .runtime = runtime_name_,
                                     .network = network_->network()});
    runtime_->OnExit([](const node::ContainerStatus&) {});
    runtime_->Open([this](Result<void> opened) {
      if (!opened.ok()) return Finish(std::move(opened));
      RemoveNext();
    });
  }

  const std::vector<std::string>& errors() const { return errors_; }
  std::size_t removed() const { return removed_; }

 private:
  void RemoveNext() {
    for (const node::PodSandbox& sandbox : runtime_->ListPodSandboxes()) {
      if (failed_.contains(sandbox.id)) continue;
      runtime_->RemovePodSandbox(sandbox.id, [this, id = sandbox.id](Result<void> done) {
        if (done.ok()) {
          ++removed_;
        } else {
          failed_.insert(id);
          errors_.push_back(done.error().message);
        }
        RemoveNext();
      });
      return;
    }
    if (!failed_.empty() || network_->built_in() == nullptr) return Finish(Ok());
    network_->built_in()->Remove([this](Result<void> done) { Finish(std::move(done)); });
  }

  void Finish(Result<void> result) {
    if (!result.ok()) errors_.push_back(result.error().message);
    loop_.Stop();
  }

  UvLoop& loop_;
  const std::string data_dir_;
  const PodNetworkOptions& options_;
  const std::string runtime_name_;
  node::ImageStore images_;
  WorkerPool workers_;
  std::unique_ptr<FileWatcher> watcher_;
  std::unique_ptr<NodeNetwork> network_;
  std::unique_ptr<node::Runtime> runtime_;
  std::set<std::string> failed_;
  std::vector<std::string> errors_;
  std::size_t removed_ = 0;
};

int Fail(cli::Console& console, const Error& error) {
  console.Error(error.message);
  return cli::kExitFailure;
}

std::string RootDirectoryOf(const cli::Arguments& arguments, const std::string& data_dir) {
  const std::string& given = arguments.Text("root-dir");
  return given.empty() ? DefaultRootDirectory(data_dir) : AbsolutePath(given);
}

std::vector<cli::Flag> DownFlags() {
  std::vector<cli::Flag> flags = {
      {.name = "data-dir",
       .help = "Data directory of the node.",
       .default_value = kDefaultDataDirectory,
       .placeholder = "DIR"},
      {.name = "root-dir",
       .help = "Root directory of the node, if it was started with --root-dir.",
       .placeholder = "DIR"},
      {.name = "runtime",
       .help = "Container runtime: runc, crun or a path. Defaults to the one that is installed.",
       .placeholder = "NAME"},
      {.name = "stop",
       .type = cli::FlagType::kBool,
       .help = "Stop the `drakkar up` that uses the data directory first.",
       .default_value = "false"},
      {.name = "delete-data",
       .type = cli::FlagType::kBool,
       .help = "Also delete the data directory with its objects, images and keys.",
       .default_value = "false"}};
  for (cli::Flag& flag : PodNetworkFlags()) flags.push_back(std::move(flag));
  return flags;
}

// The last step, if requested.
int DeleteData(const cli::Arguments& arguments, cli::Console& console,
               const std::string& data_dir) {
  if (!arguments.Bool("delete-data") || !RealFileSystem().Exists(data_dir)) return cli::kExitOk;
  // A tree that contains a mount may lead anywhere.
  if (auto unmounted = node::UnmountAll(data_dir); !unmounted.ok()) {
    return Fail(console, unmounted.error());
  }
  if (auto removed = RealFileSystem().RemoveTree(data_dir); !removed.ok()) {
    return Fail(console, removed.error());
  }
  console.Out(StrCat("deleted ", data_dir, "\n"));
  return cli::kExitOk;
}

// The pods of the built-in runtime.
Result<RemovedPods> RemoveOwnPods(const cli::Arguments& arguments, const std::string& data_dir) {
  ASSIGN_OR_RETURN(const PodNetworkOptions network,
                   ReadPodNetwork(arguments, RealFileSystem(), data_dir));
  UvLoop loop;
  std::unique_ptr<Removal> removal;
  loop.Post([&] {
    removal = std::make_unique<Removal>(loop, network, data_dir, arguments.Text("runtime"));
    removal->Start();
  });
  loop.Run();
  RemovedPods removed{.count = removal->removed(), .errors = removal->errors()};
  // It belongs to the loop.
  loop.Post([&] {
    removal.reset();
    loop.Stop();
  });
  loop.Run();
  return removed;
}

int RunDown(const cli::Arguments& arguments, cli::Console& console) {
  const std::string data_dir = AbsolutePath(arguments.Text("data-dir"));
  if (data_dir == "/") return Fail(console, InvalidArgument("--data-dir must not be /"));
  const Result<int> owner = OwnerOf(data_dir);
  if (!owner.ok()) return Fail(console, owner.error());
  if (*owner != 0 && arguments.Bool("stop")) {
    if (Result<void> ended = EndProcess(*owner, kEndSeconds); !ended.ok()) {
      return Fail(console, ended.error());
    }
    console.Out(StrCat("stopped drakkar (process ", *owner, ")\n"));
  } else if (*owner != 0 && arguments.Bool("delete-data")) {
    return Fail(console, FailedPrecondition(StrCat("drakkar (process ", *owner, ") is running in ",
                                                   data_dir, ": use --stop")));
  }
  if (!RealFileSystem().Exists(JoinPath(data_dir, "runtime"))) {
    console.Out(StrCat("no node has run pods in ", data_dir, "\n"));
    return DeleteData(arguments, console, data_dir);
  }
  if (::geteuid() != 0) return Fail(console, FailedPrecondition("removing pods needs root"));
  FileLock lock(NodeLockPath(data_dir));
  Result<bool> locked = lock.TryLock();
  if (!locked.ok()) return Fail(console, locked.error());
  if (!*locked) {
    return Fail(console, FailedPrecondition(
                             StrCat("a node agent is running in ", data_dir, ": stop it first")));
  }
  RemovedPods pods;
  if (const std::string socket = RuntimeSocketOf(RealFileSystem(), data_dir); !socket.empty()) {
    Result<RemovedPods> removed = RemoveCriPods(socket, data_dir);
    if (!removed.ok()) return Fail(console, removed.error());
    pods = std::move(*removed);
  } else {
    Result<RemovedPods> removed = RemoveOwnPods(arguments, data_dir);
    if (!removed.ok()) return Fail(console, removed.error());
    pods = std::move(*removed);
  }
  std::vector<std::string>& errors = pods.errors;
  const std::size_t removed = pods.count;

  const std::string volumes = JoinPath(RootDirectoryOf(arguments, data_dir), "pods");
  if (errors.empty()) {
    if (auto unmounted = node::UnmountAll(volumes); !unmounted.ok()) {
      errors.push_back(unmounted.error().message);
    }
  }
  console.Out(StrCat("removed ", removed, removed == 1 ? " pod" : " pods", " of the node in ",
                     data_dir, "\n"));
  for (const std::string& error : errors) console.Error(error);
  return errors.empty() ? DeleteData(arguments, console, data_dir) : cli::kExitFailure;
}

}  // namespace

void AddDownCommand(cli::App& app) {
  app.Add({.name = "down",
           .summary = "Remove the pods that a node left running on this machine",
           .help =
               "Pods keep running when `up` or `node` ends. This command kills their containers "
               "and removes their network, mounts and cgroups, without contacting the API server: "
               "the objects stay, and a node that starts later runs the pods again. The node "
               "agent must not be running, unless --stop is given. With --stop and --delete-data, "
               "nothing of `drakkar up` remains.",
           .examples = "  drakkar down --data-dir /tmp/demo\n"
                       "  drakkar down --data-dir /tmp/demo --stop --delete-data\n",
           .flags = DownFlags(),
           .max_arguments = 0,
           .section = "Run",
           .run = RunDown});
}

}  // namespace drakkar::cmd
