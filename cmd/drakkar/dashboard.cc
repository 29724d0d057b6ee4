// drakkar dashboard, and the same page as a part of `up`.
#include "cmd/drakkar/dashboard.h"

#include <csignal>

#include "base/text/text.h"
#include "cli/answer.h"
#include "cli/session.h"
#include "cmd/drakkar/command_groups.h"
#include "dashboard/server/dashboard.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("dashboard");

// A session and the page that reads through it.
struct Served {
  std::unique_ptr<cli::Session> session;
  std::unique_ptr<dashboard::Dashboard> page;  // uses the session, so it is destroyed first
};

Result<Served> Serve(std::unique_ptr<cli::Session> session, std::uint16_t port) {
  ASSIGN_OR_RETURN(answers::Snapshot first, cli::ReadSnapshot(*session, answers::kEveryKind));
  Served served{.session = std::move(session)};
  ASSIGN_OR_RETURN(served.page,
                   dashboard::Dashboard::Start(
                       {.on_client_loop = [&session = *served.session](
                                              const auto& work) { session.OnLoop(work); },
                        .first = std::move(first),
                        .server = served.session->server(),
                        .port = port,
                        .random = RealRandom()}));
  return served;
}

class DashboardPart final : public Part {
 public:
  explicit DashboardPart(DashboardPartOptions options)
      : options_(std::move(options)), thread_("dashboard-part") {}

  std::string_view name() const override { return "dashboard"; }
  bool is_vital() const override { return false; }

  // Reading the cluster blocks, and the API server may need the main loop to answer.
  void Start(std::function<void(Result<void>)> done) override {
    thread_.loop().Post([this, done = std::move(done)] {
      Result<void> started = Open();
      options_.main_loop.Post([done, started = std::move(started)] { done(started); });
    });
  }

  void Stop(std::function<void()> done) override {
    thread_.loop().Post([this, done = std::move(done)] {
      served_.page.reset();  // before the session that it uses
      served_.session.reset();
      (void)RealFileSystem().Remove(options_.url_file);
      options_.main_loop.Post(done);
    });
  }

 private:
  Result<void> Open() {
    ASSIGN_OR_RETURN(std::unique_ptr<cli::Session> session,
                     cli::Session::Connect(options_.kubeconfig, options_.console));
    ASSIGN_OR_RETURN(served_, Serve(std::move(session), options_.port));
    RETURN_IF_ERROR(RealFileSystem().WriteFileAtomically(
        options_.url_file, StrCat(served_.page->url(), "\n"), 0600, /*sync=*/false));
    kLog.Info("serving the web page", {{"url_file", options_.url_file}});
    return Ok();
  }

  const DashboardPartOptions options_;
  Served served_;  // used on the thread only
  LoopThread thread_;
};

int RunDashboard(const cli::Arguments& arguments, cli::Console& console) {
  const std::int64_t port = arguments.Int("port");
  if (port < 0 || port > 65535) {
    console.Error(StrCat("--port must be a port between 0 and 65535, not ", port));
    return cli::kExitUsage;
  }
  Result<std::unique_ptr<cli::Session>> session = cli::Session::Open(arguments, console);
  if (!session.ok()) {
    cli::Report(console, session.error());
    return cli::kExitFailure;
  }
  Result<Served> served = Serve(std::move(*session), static_cast<std::uint16_t>(port));
  if (!served.ok()) {
    cli::Report(console, served.error());
    return cli::kExitFailure;
  }
  console.Out(StrCat("The dashboard is ready. Open this URL in a browser on this machine:\n  ",
                     served->page->url(),
                     "\nWhoever has it can see what you can see. Ctrl-C ends it.\n"));
  UvLoop loop;
  const TimerHandle interrupt = loop.OnSignal(SIGINT, [&loop] { loop.Stop(); });
  const TimerHandle terminate = loop.OnSignal(SIGTERM, [&loop] { loop.Stop(); });
  loop.Run();
  return cli::kExitOk;
}

}  // namespace

std::unique_ptr<Part> MakeDashboardPart(DashboardPartOptions options) {
  return std::make_unique<DashboardPart>(std::move(options));
}

void AddDashboardCommand(cli::App& app) {
  app.Add({.name = "dashboard",
           .summary = "Serve a web page with devices, claims and waiting pods",
           .help =
               "Serves a page on 127.0.0.1 that shows, live, the devices of the cluster, who "
               "holds them, and which pods wait and why. It reads the cluster with your "
               "kubeconfig, changes nothing and has no permissions of its own. The URL contains a "
               "token that is valid until the command ends. From another machine, forward the "
               "port: ssh -L 8001:127.0.0.1:8001 HOST.",
           .examples = "  drakkar dashboard\n"
                       "  drakkar dashboard --port 8001 --context production\n",
           .flags = {{.name = "port",
                      .type = cli::FlagType::kInt,
                      .help = "Port on 127.0.0.1; 0 chooses a free one.",
                      .default_value = "0",
                      .placeholder = "PORT"}},
           .max_arguments = 0,
           .group = cli::FlagGroup::kCluster,
           .section = "Devices",
           .run = RunDashboard});
}

}  // namespace drakkar::cmd
