// cluster create, status, delete: a cluster of separate processes on this machine.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <future>

#include "api/scheme/scheme.h"
#include "apiserver/pki/pki.h"
#include "apiserver/request/node_identity.h"
#include "base/env/absolute_path.h"
#include "base/env/descriptor.h"
#include "base/env/pause.h"
#include "base/os/process.h"
#include "base/text/text.h"
#include "client/http_client.h"
#include "cmd/drakkar/command_groups.h"
#include "cmd/drakkar/node_cleanup.h"
#include "cmd/drakkar/node_part.h"

namespace drakkar::cmd {
namespace {

using cli::Arguments;
using cli::Command;
using cli::Console;
using cli::FlagType;

constexpr char kDefaultClusterDirectory[] = "/var/lib/drakkar-cluster";
constexpr int kEndSeconds = 30;
constexpr std::int64_t kMaxNodes = 200;
constexpr std::int64_t kMaxHollowNodes = 10'000;
constexpr std::int64_t kMaxDevices = 128;
constexpr Duration kLookInterval = std::chrono::milliseconds(50);
// Lists of thousands of nodes are long.
constexpr Duration kHollowLookInterval = std::chrono::seconds(1);

int Fail(Console& console, const Error& error) {
  console.Error(error.message);
  return cli::kExitFailure;
}

Result<std::uint16_t> FreePort() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), generic, size) != 0 ||
      ::getsockname(socket.get(), generic, &size) != 0) {
    return ErrnoError(errno, "choose a port");
  }
  return ntohs(address.sin_port);
}

// When the process started, which distinguishes it from a later one with the same pid; "" if it has
// ended.
std::string StartOf(std::int64_t pid) {
  const Result<std::string> text = RealFileSystem().ReadFile(StrCat("/proc/", pid, "/stat"));
  if (!text.ok()) return "";
  const std::size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return "";
  const std::vector<std::string_view> words = Split(std::string_view(*text).substr(name_end), ' ');
  if (words.size() < 21 || words[1] == "Z") return "";
  return std::string(words[20]);
}

// One process of a cluster, as recorded in its file.
struct Member {
  std::string name;
  std::int64_t pid = 0;
  std::string start;
  bool is_alive() const { return !start.empty() && StartOf(pid) == start; }
};

class LocalCluster {
 public:
  explicit LocalCluster(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }
  std::string Path(std::string_view name) const { return JoinPath(directory_, name); }
  std::string kubeconfig() const { return Path("apiserver/admin.kubeconfig"); }
  bool exists() const { return RealFileSystem().Exists(Path("processes")); }

  Result<void> Start(const std::string& name, std::vector<std::string> arguments) {
    char self[4096];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
    if (length <= 0) return Internal("could not read the path of this binary");
    arguments.insert(arguments.begin(), std::string(self, static_cast<std::size_t>(length)));
    const std::string log_path = Path(StrCat("logs/", name, ".log"));
    const Descriptor log(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log.ok()) return ErrnoError(errno, log_path);
    ProcessOptions options;
    options.arguments = std::move(arguments);
    options.capture_output = false;
    options.new_session = true;
    options.inherited_descriptors = {{log.get(), 1}, {log.get(), 2}};
    ASSIGN_OR_RETURN(const std::unique_ptr<Process> process,
                     BackgroundSpawner().Spawn(std::move(options), [](const ProcessExit&) {}));
    // Recorded immediately, so that delete finds it whatever fails next.
    return RealFileSystem().AppendFile(
        Path("processes"), StrCat(name, " ", process->pid(), " ", StartOf(process->pid()), "\n"),
        0600);
  }

  Result<std::vector<Member>> Members() const {
    ASSIGN_OR_RETURN(const std::string text, RealFileSystem().ReadFile(Path("processes")));
    std::vector<Member> members;
    for (std::string_view line : Split(text, '\n')) {
      const std::vector<std::string_view> words = Split(line, ' ');
      if (words.size() != 3) continue;
      members.push_back(
          {std::string(words[0]), ParseInt64(words[1]).value_or(0), std::string(words[2])});
    }
    return members;
  }

 private:
  // Never destroyed: that would wait for the processes, which outlive this one.
  static Spawner& BackgroundSpawner() {
    static UvLoop* const kLoop = new UvLoop();
    static Spawner* const kSpawner = MakeSpawner(*kLoop).release();
    return *kSpawner;
  }

  const std::string directory_;
};

std::vector<std::string> NodeNames(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 1; i <= count; ++i) names.push_back(StrCat("node-", i));
  return names;
}

// Starts a node agent and its driver, with certificates of the cluster's CA.
Result<void> StartNode(LocalCluster& cluster, const apiserver::Pki& pki, const std::string& url,
                       const std::string& name) {
  FileSystem& files = RealFileSystem();
  const std::string home = cluster.Path(name);
  RETURN_IF_ERROR(files.MakeDirectories(home, 0700));
  const auto put = [&](std::string_view file, std::string_view text) {
    return files.WriteFileAtomically(JoinPath(home, file), text, 0600, /*sync=*/false);
  };
  const std::string user = StrCat("system:node:", name);
  const std::string driver = StrCat(apiserver::kNodeDriverPrefix, name);
  ASSIGN_OR_RETURN(const net::CertificateAndKey client, pki.IssueClient(user, {"system:nodes"}));
  ASSIGN_OR_RETURN(const net::CertificateAndKey driver_client,
                   pki.IssueClient(driver, {std::string(apiserver::kNodeDriversGroup)}));
  ASSIGN_OR_RETURN(const net::CertificateAndKey serving,
                   pki.IssueServer(user, {name, "localhost"}, {"127.0.0.1"}));
  const std::string& ca = pki.ca().certificate_pem;
  RETURN_IF_ERROR(put("node.kubeconfig", apiserver::MakeKubeconfig(url, ca, client, user)));
  RETURN_IF_ERROR(
      put("driver.kubeconfig", apiserver::MakeKubeconfig(url, ca, driver_client, driver)));
  RETURN_IF_ERROR(put("ca.crt", ca));
  RETURN_IF_ERROR(put("serving.crt", serving.certificate_pem));
  RETURN_IF_ERROR(put("serving.key", serving.key_pem));
  ASSIGN_OR_RETURN(const std::uint16_t port, FreePort());
  RETURN_IF_ERROR(cluster.Start(
      name, {"node", StrCat("--data-dir=", home), StrCat("--node-name=", name),
             StrCat("--kubeconfig=", JoinPath(home, "node.kubeconfig")), StrCat("--port=", port),
             // The nodes share one machine, and so one network.
             "--pod-network=host", StrCat("--client-ca-file=", JoinPath(home, "ca.crt")),
             StrCat("--tls-cert-file=", JoinPath(home, "serving.crt")),
             StrCat("--tls-private-key-file=", JoinPath(home, "serving.key"))}));
  return cluster.Start(StrCat(name, "-driver"),
                       {"driver", StrCat("--node-name=", name),
                        StrCat("--kubeconfig=", JoinPath(home, "driver.kubeconfig")),
                        StrCat("--registry-dir=", RegistryDirectory(DefaultRootDirectory(home))),
                        StrCat("--cdi-dir=", CdiDirectory(home)),
                        StrCat("--devices=", cluster.Path("devices.yaml"))});
}

// Sends a request to the cluster's API server and blocks until it is answered.
class Asker {
 public:
  explicit Asker(const client::ClusterAccess& access) : thread_("cluster") {
    thread_.RunSync(
        [&] { client_ = client::MakeHttpClient(thread_.loop(), access, "drakkar-cluster"); });
  }
  ~Asker() {
    thread_.RunSync([this] { client_.reset(); });
  }
  Result<std::vector<api::ObjectPtr>> List(std::string_view group, std::string_view kind) {
    std::promise<Result<std::vector<api::ObjectPtr>>> promise;
    thread_.RunSync([&] {
      client_->List({.kind = api::FindKind(group, "v1", kind)}, {},
                    [&promise](client::ListReply reply) {
                      if (reply.error) return promise.set_value(*reply.error);
                      promise.set_value(std::move(reply.items));
                    });
    });
    return promise.get_future().get();
  }

 private:
  LoopThread thread_;
  std::unique_ptr<client::Client> client_;
};

struct Readiness {
  std::size_t nodes = 0;
  std::size_t ready = 0;
  std::size_t pools = 0;  // of devices, one per node
};

Result<Readiness> LookAt(const LocalCluster& cluster) {
  ASSIGN_OR_RETURN(const client::ClusterAccess access,
                   client::LoadKubeconfig(RealFileSystem(), cluster.kubeconfig()));
  Asker asker(access);
  Readiness readiness;
  ASSIGN_OR_RETURN(const std::vector<api::ObjectPtr> nodes, asker.List("", "Node"));
  readiness.nodes = nodes.size();
  for (const api::ObjectPtr& node : nodes) {
    for (api::Value condition : (*node)["status"]["conditions"].elements()) {
      if (condition["type"].str() == "Ready" && condition["status"].str() == "True") {
        ++readiness.ready;
      }
    }
  }
  ASSIGN_OR_RETURN(const std::vector<api::ObjectPtr> slices,
                   asker.List("resource.k8s.io", "ResourceSlice"));
  readiness.pools = slices.size();
  return readiness;
}

// Waits until `done` returns true, or says what is missing.
Result<void> WaitFor(const LocalCluster& cluster, Duration timeout, Duration interval,
                     const std::function<Result<bool>(std::string& missing)>& done) {
  const MonotonicTime deadline = RealClock().Monotonic() + timeout;
  std::string missing;
  while (true) {
    ASSIGN_OR_RETURN(const bool is_done, done(missing));
    if (is_done) return Ok();
    ASSIGN_OR_RETURN(const std::vector<Member> members, cluster.Members());
    for (const Member& member : members) {
      if (member.is_alive()) continue;
      return Unavailable(StrCat(member.name, " has ended; see ",
                                cluster.Path(StrCat("logs/", member.name, ".log"))));
    }
    if (RealClock().Monotonic() > deadline) {
      return Error{ErrorCode::kDeadlineExceeded, StrCat("gave up waiting: ", missing)};
    }
    RealPause().For(interval);
  }
}

struct ClusterPlan {
  std::int64_t nodes = 1;
  std::int64_t devices = 4;  // of each node
  bool hollow = false;
  bool wait = false;
  Duration timeout{};
};

// Starts all hollow nodes in one process, as the administrator.
Result<void> StartHollowNodes(LocalCluster& cluster, const ClusterPlan& plan) {
  return cluster.Start(
      "nodes", {"node", StrCat("--hollow=", plan.nodes), StrCat("--hollow-devices=", plan.devices),
                "--hollow-prefix=node-", StrCat("--kubeconfig=", cluster.kubeconfig())});
}

Result<std::string> Create(LocalCluster& cluster, const ClusterPlan& plan) {
  const auto& [nodes, devices, hollow, wait, timeout] = plan;
  FileSystem& files = RealFileSystem();
  if (cluster.exists()) {
    return FailedPrecondition(StrCat("there is a cluster in ", cluster.directory(),
                                     "; delete it first with `drakkar cluster delete`"));
  }
  RETURN_IF_ERROR(files.MakeDirectories(cluster.Path("logs"), 0700));
  RETURN_IF_ERROR(files.WriteFileAtomically(cluster.Path("devices.yaml"),
                                            StrCat("count: ", devices, "\n"), 0600, false));
  ASSIGN_OR_RETURN(const std::uint16_t port, FreePort());
  const std::string url = StrCat("https://127.0.0.1:", port);
  RETURN_IF_ERROR(cluster.Start(
      "apiserver",
      {"apiserver", StrCat("--data-dir=", cluster.Path("apiserver")), StrCat("--port=", port)}));
  RETURN_IF_ERROR(
      WaitFor(cluster, timeout, kLookInterval, [&](std::string& missing) -> Result<bool> {
        missing = "the API server does not serve";
        return files.Exists(cluster.kubeconfig()) && LookAt(cluster).ok();
      }));
  RETURN_IF_ERROR(cluster.Start(
      "controllers",
      {"controllers", StrCat("--kubeconfig=", cluster.kubeconfig()), "--secure-port=0",
       StrCat("--cluster-signing-cert-file=", cluster.Path("apiserver/pki/ca.crt")),
       StrCat("--cluster-signing-key-file=", cluster.Path("apiserver/pki/ca.key"))}));
  // The API server forwards `why` to the scheduler's port.
  ASSIGN_OR_RETURN(const std::uint16_t scheduler_port, FreePort());
  RETURN_IF_ERROR(cluster.Start(
      "scheduler", {"scheduler", StrCat("--kubeconfig=", cluster.kubeconfig()),
                    StrCat("--secure-port=", scheduler_port),
                    StrCat("--client-ca-file=", cluster.Path("apiserver/pki/ca.crt"))}));
  ASSIGN_OR_RETURN(const apiserver::Pki pki,
                   apiserver::Pki::Open(files, RealClock(),
                                        {.directory = cluster.Path("apiserver/pki"),
                                         .server_names = {},
                                         .server_addresses = {}}));
  if (hollow && nodes > 0) {
    RETURN_IF_ERROR(StartHollowNodes(cluster, plan));
  } else {
    for (const std::string& name : NodeNames(nodes)) {
      RETURN_IF_ERROR(StartNode(cluster, pki, url, name));
    }
  }
  if (!wait) return url;
  const auto expected = static_cast<std::size_t>(nodes);
  RETURN_IF_ERROR(WaitFor(cluster, timeout, hollow ? kHollowLookInterval : kLookInterval,
                          [&](std::string& missing) -> Result<bool> {
                            const Result<Readiness> now = LookAt(cluster);
                            if (!now.ok()) return false;
                            missing = StrCat(now->ready, " of ", nodes, " nodes are ready, ",
                                             now->pools, " have published their devices");
                            return now->ready >= expected &&
                                   (devices == 0 || now->pools >= expected);
                          }));
  return url;
}

// Removes everything that belongs to the cluster, even if only a part of it exists.
Result<void> Delete(LocalCluster& cluster) {
  FileSystem& files = RealFileSystem();
  if (cluster.exists()) {
    ASSIGN_OR_RETURN(const std::vector<Member> members, cluster.Members());
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      if (!member->is_alive()) continue;
      RETURN_IF_ERROR(EndProcess(static_cast<int>(member->pid), kEndSeconds));
    }
  }
  if (!files.Exists(cluster.directory())) return Ok();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.ListDirectory(cluster.directory()));
  for (const std::string& name : names) {
    if (!name.starts_with("node-")) continue;
    ASSIGN_OR_RETURN(const Cleanup cleanup, CleanUpNode(cluster.Path(name), {cluster.Path(name)}));
    static_cast<void>(cleanup);
  }
  return files.RemoveTree(cluster.directory());
}

int RunCreate(const Arguments& arguments, Console& console) {
  const std::int64_t nodes = arguments.Int("nodes");
  const std::int64_t devices = arguments.Int("devices");
  const bool hollow = arguments.Bool("hollow");
  const std::int64_t most = hollow ? kMaxHollowNodes : kMaxNodes;
  if (nodes < 0 || nodes > most) {
    return Fail(console,
                InvalidArgument(StrCat("--nodes must be between 0 and ", most,
                                       hollow ? "" : "; more are possible with --hollow")));
  }
  if (devices < 0 || devices > kMaxDevices) {
    return Fail(console, InvalidArgument(StrCat("--devices must be between 0 and ", kMaxDevices)));
  }
  LocalCluster cluster(AbsolutePath(arguments.Text("dir")));
  const Result<std::string> url = Create(cluster, {.nodes = nodes,
                                                   .devices = devices,
                                                   .hollow = hollow,
                                                   .wait = arguments.Bool("wait"),
                                                   .timeout = arguments.Time("timeout")});
  if (!url.ok()) {
    console.Error(url.error().message);
    console.Err(StrCat("the processes that were started are still running: see ",
                       cluster.Path("logs"),
                       ", then run `drakkar cluster delete --dir=", cluster.directory(), "`\n"));
    return cli::kExitFailure;
  }
  console.Out(StrCat("the cluster runs at ", *url, " with ", nodes, nodes == 1 ? " node" : " nodes",
                     "\nto use it, run: export KUBECONFIG=", cluster.kubeconfig(),
                     "\nlogs: ", cluster.Path("logs"), "\n"));
  return cli::kExitOk;
}

int RunStatus(const Arguments& arguments, Console& console) {
  const LocalCluster cluster(AbsolutePath(arguments.Text("dir")));
  if (!cluster.exists()) {
    return Fail(console, NotFound(StrCat("there is no cluster in ", cluster.directory())));
  }
  const Result<std::vector<Member>> members = cluster.Members();
  if (!members.ok()) return Fail(console, members.error());
  int code = cli::kExitOk;
  for (const Member& member : *members) {
    const bool alive = member.is_alive();
    if (!alive) code = cli::kExitFailure;
    console.Out(StrCat(member.name, ": ",
                       alive ? StrCat("running, process ", member.pid) : std::string("ended"),
                       "\n"));
  }
  const Result<Readiness> now = LookAt(cluster);
  if (!now.ok()) return Fail(console, now.error());
  console.Out(StrCat("nodes ready: ", now->ready, " of ", now->nodes,
                     "; device pools: ", now->pools, "\n"));
  return now->ready == now->nodes ? code : cli::kExitFailure;
}

int RunDelete(const Arguments& arguments, Console& console) {
  LocalCluster cluster(AbsolutePath(arguments.Text("dir")));
  // The directory is deleted with everything in it, so it must be one of ours.
  if (RealFileSystem().Exists(cluster.directory()) && !cluster.exists()) {
    return Fail(console, NotFound(StrCat("there is no cluster in ", cluster.directory())));
  }
  if (Result<void> deleted = Delete(cluster); !deleted.ok()) return Fail(console, deleted.error());
  console.Out(StrCat("deleted ", cluster.directory(), "\n"));
  return cli::kExitOk;
}

}  // namespace

void AddClusterLifeCommands(cli::App& app) {
  const cli::Flag directory = {.name = "dir",
                               .help = "Directory of the cluster: data, logs and keys.",
                               .default_value = kDefaultClusterDirectory,
                               .placeholder = "DIR"};
  app.Add({.name = "cluster create",
           .summary = "Run a cluster of separate processes on this machine",
           .help = "Starts an API server, controllers, a scheduler and node agents with reference "
                   "drivers as separate processes on free ports, in the background. Running pods "
                   "requires root, runc and conmon.",
           .examples = "  drakkar cluster create --nodes 20 --devices 8 --wait\n"
                       "  drakkar cluster create --nodes 1000 --devices 8 --hollow --wait\n",
           .flags = {directory,
                     {.name = "nodes",
                      .type = FlagType::kInt,
                      .help = "Number of nodes.",
                      .default_value = "1",
                      .placeholder = "N"},
                     {.name = "devices",
                      .type = FlagType::kInt,
                      .help = "Simulated devices per node.",
                      .default_value = "4",
                      .placeholder = "N"},
                     {.name = "hollow",
                      .type = FlagType::kBool,
                      .help = "Simulate machines, containers and devices, in one process. Needs "
                              "neither root nor runc.",
                      .default_value = "false"},
                     {.name = "wait",
                      .type = FlagType::kBool,
                      .help = "Wait until all nodes are ready and have published their devices.",
                      .default_value = "false"},
                     {.name = "timeout",
                      .type = FlagType::kDuration,
                      .help = "How long to wait.",
                      .default_value = "2m",
                      .placeholder = "DURATION"}},
           .max_arguments = 0,
           .section = "Run",
           .run = RunCreate});
  app.Add({.name = "cluster status",
           .summary = "Show the processes and nodes of a cluster on this machine",
           .help = "Exits with 1 if a process has ended or a node is not ready.",
           .flags = {directory},
           .max_arguments = 0,
           .section = "Run",
           .run = RunStatus});
  app.Add({.name = "cluster delete",
           .summary = "Delete a cluster on this machine",
           .help = "Stops its processes, removes its pods and deletes its directory.",
           .flags = {directory},
           .max_arguments = 0,
           .section = "Run",
           .run = RunDelete});
}

}  // namespace drakkar::cmd
