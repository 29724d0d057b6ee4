#include "storage/etcd/testing/etcd_process.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <optional>

#include "base/env/file_system.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "rpc/etcd/etcd_codec.h"
#include "rpc/transport/transport.h"

namespace drakkar::storage {
namespace {

// Kills etcd when the other end of descriptor 3 is gone.
constexpr char kGuard[] = R"("$@" 3<&- & child=$!
read -r _ <&3
kill -9 $child
wait $child)";

std::uint16_t FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(fd >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  socklen_t size = sizeof address;
  CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

}  // namespace

std::string EtcdProcess::FindProgram() {
  if (const char* given = std::getenv("DRAKKAR_ETCD")) return given;
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : Split(path == nullptr ? "" : path, ':')) {
    const std::string candidate = JoinPath(std::string(folder), "etcd");
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

std::string EtcdProcess::MissingText() {
  return "etcd not found in PATH; install the Debian package etcd-server or set DRAKKAR_ETCD";
}

EtcdProcess::EtcdProcess(LoopThread& thread, std::string program, std::vector<std::string> flags)
    : thread_(thread), program_(std::move(program)), flags_(std::move(flags)) {
  char directory[] = "/tmp/drakkar-etcd-XXXXXX";
  CHECK(::mkdtemp(directory) != nullptr);
  directory_ = directory;
  thread_.RunSync([this] { spawner_ = MakeSpawner(thread_.loop()); });
  port_ = FreePort();
  peer_port_ = FreePort();
  Spawn();
}

EtcdProcess::~EtcdProcess() {
  Kill();
  thread_.RunSync([this] {
    process_.reset();
    spawner_.reset();
  });
  static_cast<void>(RealFileSystem().RemoveTree(directory_));
}

void EtcdProcess::Spawn() {
  int ends[2];
  CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  lifeline_ = ends[1];
  const std::string client = StrCat("http://127.0.0.1:", port_);
  const std::string peer = StrCat("http://127.0.0.1:", peer_port_);
  ProcessOptions options;
  options.arguments = {"/bin/sh",
                       "-c",
                       kGuard,
                       "sh",
                       program_,
                       StrCat("--data-dir=", directory_, "/data"),
                       StrCat("--listen-client-urls=", client),
                       StrCat("--advertise-client-urls=", client),
                       StrCat("--listen-peer-urls=", peer),
                       StrCat("--initial-advertise-peer-urls=", peer),
                       StrCat("--initial-cluster=default=", peer),
                       "--unsafe-no-fsync"};
  options.arguments.insert(options.arguments.end(), flags_.begin(), flags_.end());
  options.inherited_descriptors = {{ends[0], 3}};
  running_ = true;
  thread_.RunSync([&] {
    Result<std::unique_ptr<Process>> process =
        spawner_->Spawn(std::move(options), [this](const ProcessExit& exit) {
          running_ = false;
          output_ = exit.error_output;
        });
    CHECK(process.ok());
    process_ = *std::move(process);
  });
  ::close(ends[0]);
  // Until it has a leader, and so answers a read.
  std::unique_ptr<rpc::Transport> transport;
  std::unique_ptr<rpc::Channel> channel;
  std::promise<void> ready;
  std::function<void()> ask;
  TimerHandle retry;
  thread_.RunSync([&] {
    transport = rpc::MakeGrpcTransport(thread_.loop());
    channel = transport->OpenChannel({.host = "127.0.0.1", .port = port_});
    ask = [&] {
      if (!running_) {
        output_.insert(0, "etcd ended: ");
        return ready.set_value();
      }
      channel->Call(rpc::etcd::kRangeMethod, Encode(rpc::etcd::RangeRequest{.key = "probe"}),
                    std::chrono::seconds(5), [&](const Result<std::string>& response) {
                      if (response.ok()) return ready.set_value();
                      retry =
                          thread_.loop().RunAfter(std::chrono::milliseconds(10), [&] { ask(); });
                    });
    };
    ask();
  });
  ready.get_future().wait();
  thread_.RunSync([&] {
    CHECK(running_);
    retry.reset();
    channel.reset();
    transport.reset();
  });
}

void EtcdProcess::Kill() {
  if (lifeline_ < 0) return;
  ::close(lifeline_);
  lifeline_ = -1;
  bool running = true;
  while (running) thread_.RunSync([&] { running = running_; });
}

void EtcdProcess::Restart() {
  Kill();
  Spawn();
}

}  // namespace drakkar::storage
