#include "cmd/drakkar/separate.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <deque>

#include "apiserver/pki/pki.h"
#include "apiserver/request/node_identity.h"
#include "base/env/absolute_path.h"
#include "base/exec/backoff.h"
#include "base/os/process.h"
#include "base/text/text.h"
#include "cmd/drakkar/daemon.h"
#include "cmd/drakkar/etcd_flags.h"
#include "cmd/drakkar/node_part.h"
#include "cmd/drakkar/registry_flags.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("drakkar");
// A component that ran this long has recovered: the next restart is immediate again.
constexpr Duration kStable = std::chrono::minutes(1);
constexpr Duration kFirstRestart = std::chrono::milliseconds(100);
constexpr Duration kLongestRestart = std::chrono::seconds(10);
constexpr Duration kLookInterval = std::chrono::milliseconds(20);
constexpr Duration kStopGrace = std::chrono::seconds(20);
// Gates that `up` turns on, as in RunUp.
constexpr char kGates[] = "DRAOptionalNodePreparation=true";

// Passes flags of `up` on to a component if they were set, or if the component has another default.
class FlagList {
 public:
  FlagList(const cli::Arguments& arguments, std::string command) : arguments_(arguments) {
    words_.push_back(std::move(command));
    words_.push_back(StrCat("--parent-pid=", ::getpid()));
    for (const char* name : {"emulated-version", "logging-format", "log-level"}) Pass(name);
    const std::string& gates = arguments.Text("feature-gates");
    words_.push_back(StrCat("--feature-gates=", kGates, gates.empty() ? "" : ",", gates));
  }
  FlagList& Pass(std::string_view flag) { return Pass(flag, flag); }
  FlagList& Pass(std::string_view flag, std::string_view as) {
    if (arguments_.Has(flag)) Set(as, arguments_.Text(flag));
    return *this;
  }
  FlagList& PassNumber(std::string_view flag, std::string_view as) {
    return Set(as, std::to_string(arguments_.Int(flag)));
  }
  FlagList& PassSwitch(std::string_view flag) {
    if (arguments_.Bool(flag)) words_.push_back(StrCat("--", flag));
    return *this;
  }
  FlagList& PassAll(const std::vector<cli::Flag>& flags) {
    for (const cli::Flag& flag : flags) {
      if (flag.type == cli::FlagType::kString) Pass(flag.name);
    }
    return *this;
  }
  FlagList& PassEtcdFlags() {
    for (const cli::Flag& flag : EtcdFlags()) {
      if (flag.type != cli::FlagType::kRepeated) {
        Pass(flag.name);
        continue;
      }
      for (const std::string& each : arguments_.List(flag.name)) Set(flag.name, each);
    }
    return *this;
  }
  FlagList& Set(std::string_view flag, std::string_view value) {
    words_.push_back(StrCat("--", flag, "=", value));
    return *this;
  }
  std::vector<std::string> words() const { return words_; }

 private:
  const cli::Arguments& arguments_;
  std::vector<std::string> words_;
};

std::string HowItEnded(const ProcessExit& exit) {
  if (exit.signal == SIGKILL) {
    return "killed, perhaps because memory ran out: see the kernel's log, and the memory limit of "
           "its cgroup";
  }
  if (exit.signal != 0) return StrCat("crashed: ", ::strsignal(exit.signal));
  return StrCat("exit status ", exit.exit_code);
}

// Keeps the components running until it is told to stop.
class Supervisor {
 public:
  Supervisor(UvLoop& loop, cli::Console& console)
      : loop_(loop), console_(console), spawner_(MakeSpawner(loop)) {}

  void Add(std::string name, std::vector<std::string> words) {
    members_.emplace_back();
    Member& member = members_.back();
    member.name = std::move(name);
    member.words = std::move(words);
    if (running_) Start(member);
  }

  int Run(std::function<void()> on_started) {
    TimerHandle interrupt = loop_.OnSignal(SIGINT, [this] { Stop(); });
    TimerHandle terminate = loop_.OnSignal(SIGTERM, [this] { Stop(); });
    loop_.Post([this, on_started = std::move(on_started)] {
      running_ = true;
      for (Member& member : members_) Start(member);
      on_started();
    });
    loop_.Run();
    interrupt.reset();
    terminate.reset();
    return exit_code_;
  }

  void Fail(const std::string& message) {
    console_.Error(message);
    exit_code_ = cli::kExitFailure;
    Stop();
  }
  // The API server serves. If it ends before that, `up` ends: retrying cannot fix a wrong flag or a
  // taken port.
  void SetServing() { serving_ = true; }

 private:
  struct Member {
    std::string name;
    std::vector<std::string> words;
    std::unique_ptr<Process> process;
    MonotonicTime started{};
    Backoff backoff{{.initial = kFirstRestart, .max = kLongestRestart}};
    TimerHandle restart;
  };

  void Start(Member& member) {
    char self[4096];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
    ProcessOptions options;
    options.arguments = member.words;
    options.arguments.insert(options.arguments.begin(),
                             std::string(self, length > 0 ? static_cast<std::size_t>(length) : 0));
    options.capture_output = false;
    options.new_session = true;  // Ctrl-C is for us: we stop the components in order
    member.started = loop_.clock().Monotonic();
    Result<std::unique_ptr<Process>> process = spawner_->Spawn(
        std::move(options), [this, &member](const ProcessExit& exit) { OnExit(member, exit); });
    if (!process.ok()) return Fail(StrCat(member.name, ": ", process.error().message));
    member.process = std::move(*process);
  }

  void OnExit(Member& member, const ProcessExit& exit) {
    member.process.reset();
    if (stopping_) return StopNext();
    const Duration ran = loop_.clock().Monotonic() - member.started;
    if (ran >= kStable) member.backoff.Reset();
    if (exit.signal == 0 && &member == &members_.front() && !serving_) {
      return Fail(StrCat(member.name, " did not start"));
    }
    const Duration wait = member.backoff.Next();
    kLog.Error("a component ended; restarting it, the others keep running",
               {{"component", member.name},
                {"how", HowItEnded(exit)},
                {"wait", StrCat(std::chrono::duration_cast<std::chrono::milliseconds>(wait).count(),
                                "ms")}});
    member.restart = loop_.RunAfter(wait, [this, &member] { Start(member); });
  }

  void Stop() {
    if (stopping_) return;
    stopping_ = true;
    StopNext();
  }

  // In reverse order, one after the other.
  void StopNext() {
    kill_.reset();
    while (!members_.empty() && members_.back().process == nullptr) members_.pop_back();
    if (members_.empty()) return loop_.Stop();
    static_cast<void>(members_.back().process->Signal(SIGTERM));
    kill_ = loop_.RunAfter(kStopGrace, [this] {
      if (members_.back().process) static_cast<void>(members_.back().process->Signal(SIGKILL));
    });
  }

  UvLoop& loop_;
  cli::Console& console_;
  std::unique_ptr<Spawner> spawner_;
  std::deque<Member> members_;  // in the order in which they are started; addresses stay valid
  bool running_ = false;
  bool serving_ = false;  // the API server has served once
  bool stopping_ = false;
  int exit_code_ = cli::kExitOk;
  TimerHandle kill_;
};

// The files with which the node's processes identify themselves.
struct NodeFiles {
  std::string home;  // data directory
  std::string node_name;
  std::string Path(std::string_view file) const { return JoinPath(home, file); }
};

Result<void> WriteNodeFiles(const NodeFiles& node, const apiserver::Pki& pki,
                            const std::string& url, const std::string& address) {
  FileSystem& files = RealFileSystem();
  const auto put = [&](std::string_view file, std::string_view text) {
    return files.WriteFileAtomically(node.Path(file), text, 0600, /*sync=*/false);
  };
  const std::string user = StrCat("system:node:", node.node_name);
  const std::string driver = StrCat(apiserver::kNodeDriverPrefix, node.node_name);
  const std::string& ca = pki.ca().certificate_pem;
  ASSIGN_OR_RETURN(const net::CertificateAndKey client, pki.IssueClient(user, {"system:nodes"}));
  ASSIGN_OR_RETURN(const net::CertificateAndKey driver_client,
                   pki.IssueClient(driver, {std::string(apiserver::kNodeDriversGroup)}));
  ASSIGN_OR_RETURN(const net::CertificateAndKey serving,
                   pki.IssueServer(user, {node.node_name, "localhost"}, {address}));
  RETURN_IF_ERROR(put("node.kubeconfig", apiserver::MakeKubeconfig(url, ca, client, user)));
  RETURN_IF_ERROR(
      put("driver.kubeconfig", apiserver::MakeKubeconfig(url, ca, driver_client, driver)));
  RETURN_IF_ERROR(put("pki/node.crt", serving.certificate_pem));
  return put("pki/node.key", serving.key_pem);
}

}  // namespace

int RunSeparately(const cli::Arguments& arguments, cli::Console& console) {
  Result<FeatureGates> gates = ReadCommonFlags(arguments);
  if (!gates.ok()) {
    console.Error(gates.error().message);
    return cli::kExitFailure;
  }
  if (arguments.Int("port") == 0) {
    console.Error("--separate-processes needs a --port other than 0");
    return cli::kExitFailure;
  }
  const std::string data_dir = AbsolutePath(arguments.Text("data-dir"));
  const std::string kubeconfig = JoinPath(data_dir, "admin.kubeconfig");
  // Other controllers and schedulers may work on the same etcd.
  const std::string elects = arguments.Has("etcd-servers") ? "true" : "false";
  FileSystem& files = RealFileSystem();
  // The file shows that the API server serves, so remove the one of an earlier start.
  if (files.Exists(kubeconfig)) static_cast<void>(files.Remove(kubeconfig));
  UvLoop loop;
  Supervisor supervisor(loop, console);
  supervisor.Add("apiserver", FlagList(arguments, "apiserver")
                                  .Set("data-dir", data_dir)
                                  .Pass("address")
                                  .Pass("advertise-address")
                                  .Pass("tls-san")
                                  .PassNumber("port", "port")
                                  .Pass("skip-node-operations-form")
                                  .Pass("event-ttl")
                                  .Pass("max-events")
                                  .Pass("max-event-bytes")
                                  .PassEtcdFlags()
                                  .PassSwitch("low-latency")
                                  .words());
  TimerHandle look;
  const auto start_others = [&] {
    supervisor.SetServing();
    supervisor.Add("controllers",
                   FlagList(arguments, "controllers")
                       .Set("kubeconfig", kubeconfig)
                       .Pass("controllers")
                       .PassNumber("controllers-port", "secure-port")
                       .Set("cluster-signing-cert-file", JoinPath(data_dir, "pki/ca.crt"))
                       .Set("cluster-signing-key-file", JoinPath(data_dir, "pki/ca.key"))
                       .Set("leader-elect", elects)
                       .words());
    supervisor.Add("scheduler", FlagList(arguments, "scheduler")
                                    .Set("kubeconfig", kubeconfig)
                                    .Pass("scheduler-config", "config")
                                    .PassNumber("scheduler-port", "secure-port")
                                    .Set("client-ca-file", JoinPath(data_dir, "pki/ca.crt"))
                                    .Set("leader-elect", elects)
                                    .words());
    const std::string url =
        StrCat("https://", arguments.Text("address"), ":", arguments.Int("port"));
    if (arguments.Bool("node")) {
      const NodeFiles node{data_dir, arguments.Text("node-name")};
      Result<apiserver::Pki> pki =
          apiserver::Pki::Open(files, RealClock(),
                               {.directory = JoinPath(data_dir, "pki"),
                                .server_names = {},
                                .server_addresses = {arguments.Text("address")}});
      Result<void> written = pki.ok() ? WriteNodeFiles(node, *pki, url, arguments.Text("address"))
                                      : Result<void>(pki.error());
      if (!written.ok()) return supervisor.Fail(written.error().message);
      supervisor.Add("node", FlagList(arguments, "node")
                                 .Set("data-dir", data_dir)
                                 .Set("node-name", node.node_name)
                                 .Set("kubeconfig", node.Path("node.kubeconfig"))
                                 .Pass("address")
                                 .PassNumber("node-port", "port")
                                 .Set("client-ca-file", node.Path("pki/ca.crt"))
                                 .Set("tls-cert-file", node.Path("pki/node.crt"))
                                 .Set("tls-private-key-file", node.Path("pki/node.key"))
                                 .Pass("runtime")
                                 .Pass("runtime-handlers")
                                 .Pass("container-runtime-endpoint")
                                 .Pass("pod-pids-limit")
                                 .PassSwitch("seccomp-default")
                                 .Pass("root-dir")
                                 .PassAll(PodNetworkFlags())
                                 .PassAll(NriFlags())
                                 .PassAll(RegistryFlags())
                                 .PassSwitch("low-latency")
                                 .words());
      if (arguments.Bool("driver")) {
        const std::string root = arguments.Text("root-dir").empty()
                                     ? DefaultRootDirectory(data_dir)
                                     : AbsolutePath(arguments.Text("root-dir"));
        supervisor.Add("driver", FlagList(arguments, "driver")
                                     .Set("node-name", node.node_name)
                                     .Set("kubeconfig", node.Path("driver.kubeconfig"))
                                     .Set("registry-dir", RegistryDirectory(root))
                                     .Set("cdi-dir", CdiDirectory(data_dir))
                                     .Pass("devices")
                                     .PassSwitch("enable-device-metadata")
                                     .words());
      }
    }
    console.Out(StrCat("drakkar is ready at ", url,
                       "\nto use it, run: export KUBECONFIG=", kubeconfig, "\n"));
  };
  std::function<void()> wait_for_server = [&] {
    if (files.Exists(kubeconfig)) return start_others();
    look = loop.RunAfter(kLookInterval, wait_for_server);
  };
  return supervisor.Run(wait_for_server);
}

}  // namespace drakkar::cmd
