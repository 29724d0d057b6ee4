#include "node/runtime/oci/exec_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text/text.h"
#include "node/runtime/oci/conmon.h"
#include "node/runtime/oci/host.h"

namespace drakkar::node {
namespace {

constexpr Duration kStartCheckEvery = std::chrono::milliseconds(2);
// A process that outlives the command may keep its pipes open. After the command has exited, they
// are closed once they have been silent this long.
constexpr Duration kDrainSilence = std::chrono::milliseconds(300);
constexpr Duration kKillEvery = std::chrono::milliseconds(20);
// Output is held back until the command is known to run; a runtime's error message is much shorter.
constexpr std::size_t kMaxHeldBytes = 256 << 10;
// conmon takes packets of up to 32 KiB.
constexpr std::size_t kAttachPacketBytes = 8 << 10;
constexpr char kAttachStandardOutput = 2;
constexpr char kAttachErrorOutput = 3;

void SetTerminalSize(const Descriptor& terminal, std::uint16_t columns, std::uint16_t rows) {
  winsize size{};
  size.ws_col = columns;
  size.ws_row = rows;
  ::ioctl(terminal.get(), TIOCSWINSZ, &size);
}

}  // namespace

Result<int> ReadPidFile(FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  const auto pid = ParseInt64(Trim(text));
  if (!pid || *pid <= 1) return NotFound("no pid in " + path);
  return static_cast<int>(*pid);
}

class ExecCommand::Front final : public ProcessStreams {
 public:
  explicit Front(std::shared_ptr<ExecCommand> command) : command_(std::move(command)) {}
  ~Front() override { command_->Abandon(); }
  void WriteInput(std::string_view bytes) override {
    if (command_->input_) command_->input_->Write(bytes);
  }
  std::size_t pending_input() const override {
    return command_->input_ ? command_->input_->pending() : 0;
  }
  void CloseInput() override {
    // A terminal cannot be half-closed.
    if (command_->input_ && !command_->options_.streams.terminal) command_->input_->Close();
  }
  void Resize(std::uint16_t columns, std::uint16_t rows) override {
    if (!command_->terminal_.ok()) return;
    SetTerminalSize(command_->terminal_, columns, rows);
    // The runtime forwards the size, but without a controlling terminal it must be signalled.
    if (command_->process_) static_cast<void>(command_->process_->Signal(SIGWINCH).ok());
  }
  void SetReading(bool reading) override { command_->SetReading(reading); }

 private:
  std::shared_ptr<ExecCommand> command_;
};

ExecCommand::ExecCommand(Options options)
    : options_(std::move(options)), events_(&options_.events) {}

ExecCommand::~ExecCommand() {
  static_cast<void>(options_.files.Remove(options_.base + ".json").ok());
  static_cast<void>(options_.files.Remove(options_.base + ".pid").ok());
}

std::unique_ptr<ProcessStreams> ExecCommand::MakeFront() {
  return std::make_unique<Front>(shared_from_this());
}

Result<std::shared_ptr<ExecCommand>> ExecCommand::Start(Options options) {
  const StreamOptions wanted = options.streams;
  UvLoop& loop = options.loop;
  std::shared_ptr<ExecCommand> command(new ExecCommand(std::move(options)));
  std::vector<Descriptor> theirs;
  ProcessOptions process;
  process.arguments = command->options_.arguments;
  process.capture_output = false;
  process.new_session = true;
  auto pass = [&](Descriptor descriptor, std::initializer_list<int> numbers) {
    for (int number : numbers) process.inherited_descriptors.emplace_back(descriptor.get(), number);
    theirs.push_back(std::move(descriptor));
  };
  ExecCommand* self = command.get();  // outlives the pipes
  auto read = [&](Descriptor descriptor, OutputStream stream) {
    return std::make_unique<PipeReader>(
        loop, std::move(descriptor),
        [self, stream](std::string_view bytes) { self->OnData(stream, bytes); },
        [self] { self->OnPipeEnd(); });
  };
  auto write = [&](Descriptor descriptor) {
    return std::make_unique<PipeWriter>(loop, std::move(descriptor), [self] {
      if (self->events_) self->events_->OnInputDrained();
    });
  };
  if (wanted.terminal) {
    ASSIGN_OR_RETURN(PipeEnds terminal, MakeTerminal());
    ASSIGN_OR_RETURN(command->terminal_, Duplicate(terminal.ours));
    if (wanted.standard_input) {
      ASSIGN_OR_RETURN(Descriptor input, Duplicate(terminal.ours));
      command->input_ = write(std::move(input));
    }
    command->output_ = read(std::move(terminal.ours), OutputStream::kStandard);
    pass(std::move(terminal.theirs), {0, 1, 2});
  } else {
    if (wanted.standard_input) {
      ASSIGN_OR_RETURN(PipeEnds pipe, MakePipe(false));
      command->input_ = write(std::move(pipe.ours));
      pass(std::move(pipe.theirs), {0});
    } else {
      ASSIGN_OR_RETURN(Descriptor null, OpenNull());
      pass(std::move(null), {0});
    }
    if (wanted.standard_output) {
      ASSIGN_OR_RETURN(PipeEnds pipe, MakePipe(true));
      command->output_ = read(std::move(pipe.ours), OutputStream::kStandard);
      pass(std::move(pipe.theirs), {1});
    } else {
      ASSIGN_OR_RETURN(Descriptor null, OpenNull());
      pass(std::move(null), {1});
    }
    // Always read: this is where the runtime says why a command does not start.
    ASSIGN_OR_RETURN(PipeEnds pipe, MakePipe(true));
    command->error_output_ = read(std::move(pipe.ours), OutputStream::kError);
    pass(std::move(pipe.theirs), {2});
  }
  ASSIGN_OR_RETURN(command->process_,
                   command->options_.spawner.Spawn(
                       std::move(process), [self](ProcessExit exit) { self->OnExit(exit); }));
  return command;
}

bool ExecCommand::HasStarted() {
  if (!started_) started_ = options_.files.Exists(options_.base + ".pid");
  return started_;
}

void ExecCommand::OnData(OutputStream stream, std::string_view bytes) {
  const auto self = shared_from_this();
  if (exit_) ArmDrainTimer();
  if (HasStarted()) {
    ReleaseHeld();
    return HandOn(stream, bytes);
  }
  held_.emplace_back(stream, bytes);
  held_bytes_ += bytes.size();
  if (held_bytes_ > kMaxHeldBytes) SetReading(false);
  if (!start_timer_) AwaitStart();
}

void ExecCommand::HandOn(OutputStream stream, std::string_view bytes) {
  const bool wanted = stream == OutputStream::kStandard ? options_.streams.standard_output
                                                        : options_.streams.error_output;
  if (events_ && wanted) events_->OnOutput(stream, bytes);
}

void ExecCommand::AwaitStart() {
  start_timer_ = options_.loop.RunAfter(kStartCheckEvery, [this] {
    const auto self = shared_from_this();
    if (!HasStarted()) return AwaitStart();
    ReleaseHeld();
  });
}

void ExecCommand::ReleaseHeld() {
  if (!started_) return;
  start_timer_.reset();
  const bool was_paused = held_bytes_ > kMaxHeldBytes;
  held_bytes_ = 0;
  for (const auto& [stream, bytes] : std::exchange(held_, {})) HandOn(stream, bytes);
  if (was_paused) SetReading(true);
}

void ExecCommand::SetReading(bool reading) {
  reading_ = reading;
  if (output_) output_->SetReading(reading);
  if (error_output_) error_output_->SetReading(reading);
}

void ExecCommand::OnPipeEnd() {
  const auto self = shared_from_this();
  FinishIfDone();
}

void ExecCommand::OnExit(const ProcessExit& exit) {
  const auto self = shared_from_this();
  exit_ = exit;
  process_.reset();
  kill_timer_.reset();
  // The final read of the pid file decides whether output and exit code are the command's; a failed
  // read must not.
  if (!HasStarted()) HasStarted();
  ReleaseHeld();
  ArmDrainTimer();
  FinishIfDone();
}

void ExecCommand::ArmDrainTimer() {
  drain_timer_ = options_.loop.RunAfter(kDrainSilence, [this] {
    const auto self = shared_from_this();
    if (!reading_ && events_)
      return ArmDrainTimer();  // the listener is slow; the pipe is not silent
    Finish();
  });
}

void ExecCommand::FinishIfDone() {
  const bool drained =
      (!output_ || output_->has_ended()) && (!error_output_ || error_output_->has_ended());
  if (exit_ && (drained || !events_)) Finish();
}

void ExecCommand::Finish() {
  if (std::exchange(finished_, true)) return;
  drain_timer_.reset();
  start_timer_.reset();
  if (ProcessStreams::Events* events = std::exchange(events_, nullptr)) {
    if (!started_ && exit_->exit_code != 0) {
      std::string complaint;
      for (const auto& [stream, bytes] : held_) complaint += bytes;
      complaint = MeaningfulLine(complaint);
      events->OnEnd(
          FailedPrecondition(complaint.empty() ? "the runtime gave no reason" : complaint));
    } else {
      events->OnEnd(exit_->exit_code);
    }
  }
  // Posted, because this runs inside a pipe's event.
  options_.loop.Post([self = shared_from_this()] {
    self->input_.reset();
    self->output_.reset();
    self->error_output_.reset();
  });
  auto gone = std::move(options_.on_gone);
  if (gone) gone();
}

void ExecCommand::Abandon() {
  if (finished_ || !events_) return;
  events_ = nullptr;
  options_.loop.Post([self = shared_from_this()] {
    // Closing a terminal sends the command SIGHUP; closing a pipe breaks it.
    self->input_.reset();
    self->output_.reset();
    self->error_output_.reset();
    self->terminal_ = Descriptor();
    if (!self->finished_) self->Kill();
  });
}

void ExecCommand::Orphan() {
  options_.on_gone = nullptr;
  if (!finished_) Kill();
}

void ExecCommand::Kill() {
  if (exit_) return Finish();
  auto pid = ReadPidFile(options_.files, options_.base + ".pid");
  auto handle =
      pid.ok() ? ProcessHandle::Open(*pid) : Result<ProcessHandle>(std::move(pid).error());
  if (handle.ok()) static_cast<void>(handle->Signal(SIGKILL).ok());
  // The command may not have started yet: killing the runtime could leave it running.
  kill_timer_ = options_.loop.RunAfter(kKillEvery, [this] {
    const auto self = shared_from_this();
    Kill();
  });
}

Result<void> EndLeftoverCommands(FileSystem& files, const std::string& container_directory,
                                 const std::string& container_id) {
  ASSIGN_OR_RETURN(const auto entries, files.ListDirectory(container_directory));
  Result<void> ended;
  for (const std::string& name : entries) {
    if (!name.starts_with("exec-")) continue;
    const std::string path = JoinPath(container_directory, name);
    if (name.ends_with(".json")) {
      // The runtime outlives the agent and may be about to write its command's pid.
      const std::string pid_file = path.substr(0, path.size() - 5) + ".pid";
      const bool is_known = std::binary_search(entries.begin(), entries.end(), BaseName(pid_file));
      if (!is_known) {
        ASSIGN_OR_RETURN(const std::vector<int> starting, FindSupervisors(pid_file));
        if (!starting.empty()) {
          ended = Unavailable("a command is still being started");
          continue;
        }
      }
    }
    if (name.ends_with(".pid")) {
      auto pid = ReadPidFile(files, path);
      if (!pid.ok() && pid.error().code != ErrorCode::kNotFound) return std::move(pid).error();
      auto handle =
          pid.ok() ? ProcessHandle::Open(*pid) : Result<ProcessHandle>(std::move(pid).error());
      // While the handle is open, the pid refers to the same process when its cgroup is read.
      auto group = pid.ok() ? files.ReadFile(StrCat("/proc/", *pid, "/cgroup")) : NotFound("gone");
      if (handle.ok() && !group.ok() && !handle->HasEnded()) return std::move(group).error();
      if (handle.ok() && group.ok() && group->find(container_id) != std::string::npos) {
        static_cast<void>(handle->Signal(SIGKILL).ok());
      }
    }
    static_cast<void>(files.Remove(path).ok());
  }
  return ended;
}

namespace {

// A connection to conmon's attach socket: packets with one byte that names the stream, then data.
class AttachedStreams final : public ProcessStreams {
 public:
  AttachedStreams(UvLoop& loop, std::string directory, const StreamOptions& options, Events& events)
      : loop_(loop), directory_(std::move(directory)), options_(options), events_(events) {}

  Result<void> Open() {
    ASSIGN_OR_RETURN(Descriptor socket, ConnectPacketSocket(directory_, "attach"));
    if (options_.standard_input) {
      ASSIGN_OR_RETURN(Descriptor copy, Duplicate(socket));
      input_ = std::make_unique<PipeWriter>(
          loop_, std::move(copy), [this] { events_.OnInputDrained(); }, kAttachPacketBytes);
    }
    output_ = std::make_unique<PipeReader>(
        loop_, std::move(socket), [this](std::string_view bytes) { OnPacket(bytes); },
        [this] { events_.OnEnd(0); });
    return Ok();
  }

  void WriteInput(std::string_view bytes) override {
    if (input_) input_->Write(bytes);
  }
  std::size_t pending_input() const override { return input_ ? input_->pending() : 0; }
  void CloseInput() override {
    if (input_) input_->Close([](int descriptor) { ::shutdown(descriptor, SHUT_WR); });
  }
  void Resize(std::uint16_t columns, std::uint16_t rows) override {
    static_cast<void>(TellConmon(directory_, StrCat("1 ", rows, " ", columns, "\n")).ok());
  }
  void SetReading(bool reading) override { output_->SetReading(reading); }

 private:
  void OnPacket(std::string_view packet) {
    const char kind = packet.front();
    packet.remove_prefix(1);
    if (packet.empty()) return;
    if (kind == kAttachStandardOutput && options_.standard_output) {
      events_.OnOutput(OutputStream::kStandard, packet);
    } else if (kind == kAttachErrorOutput && options_.error_output) {
      events_.OnOutput(OutputStream::kError, packet);
    }
  }

  UvLoop& loop_;
  const std::string directory_;
  const StreamOptions options_;
  Events& events_;
  std::unique_ptr<PipeWriter> input_;
  std::unique_ptr<PipeReader> output_;
};

}  // namespace

Result<std::unique_ptr<ProcessStreams>> AttachToConmon(UvLoop& loop, const std::string& directory,
                                                       const StreamOptions& options,
                                                       ProcessStreams::Events& events) {
  auto streams = std::make_unique<AttachedStreams>(loop, directory, options, events);
  RETURN_IF_ERROR(streams->Open());
  return std::unique_ptr<ProcessStreams>(std::move(streams));
}

Result<void> TellConmon(const std::string& directory, std::string_view line) {
  const std::string path = directory + "/ctl";
  const Descriptor fifo(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fifo.ok()) return ErrnoError(errno, "open " + path);
  if (::write(fifo.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return ErrnoError(errno, "write " + path);
  }
  return Ok();
}

}  // namespace drakkar::node
