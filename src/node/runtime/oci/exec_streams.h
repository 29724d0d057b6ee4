#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/os/process.h"
#include "node/runtime/oci/pipes.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// One `runc exec` with attached streams. The runtime keeps it until the command has exited; if the
// listener leaves, the command is killed.
class ExecCommand : public std::enable_shared_from_this<ExecCommand> {
 public:
  struct Options {
    UvLoop& loop;
    Spawner& spawner;
    FileSystem& files;
    std::vector<std::string> arguments;  // for runc, which writes the command's pid to `base`.pid
    std::string base;                    // `base`.json and `base`.pid are removed at the end
    StreamOptions streams;
    ProcessStreams::Events& events;
    std::function<void()> on_gone;  // called last; may destroy this object
  };
  static Result<std::shared_ptr<ExecCommand>> Start(Options options);
  ~ExecCommand();

  // The handle for the listener.
  std::unique_ptr<ProcessStreams> MakeFront();
  // The runtime is being destroyed: kills the command and sends no more events.
  void Orphan();

 private:
  class Front;
  explicit ExecCommand(Options options);
  void OnData(OutputStream stream, std::string_view bytes);
  // Forwards output to the listener if it asked for the stream.
  void HandOn(OutputStream stream, std::string_view bytes);
  void OnPipeEnd();
  void OnExit(const ProcessExit& exit);
  bool HasStarted();
  void AwaitStart();
  void ReleaseHeld();
  void ArmDrainTimer();
  void FinishIfDone();
  void Finish();
  // The listener has left.
  void Abandon();
  // Kills the command by the pid in its pid file, until it has exited.
  void Kill();
  void SetReading(bool reading);

  Options options_;
  ProcessStreams::Events* events_;  // null: abandoned
  std::unique_ptr<Process> process_;
  std::unique_ptr<PipeWriter> input_;
  std::unique_ptr<PipeReader> output_;
  std::unique_ptr<PipeReader> error_output_;
  Descriptor terminal_;   // for its size
  bool started_ = false;  // the command runs, so output is not a runtime error
  bool reading_ = true;
  bool finished_ = false;
  std::vector<std::pair<OutputStream, std::string>> held_;  // until started_
  std::size_t held_bytes_ = 0;
  TimerHandle start_timer_;
  TimerHandle kill_timer_;
  TimerHandle drain_timer_;
  std::optional<ProcessExit> exit_;
};

// Kills commands that a previous agent left running in a container, and removes their files. On an
// error one may still be running, and its files remain.
Result<void> EndLeftoverCommands(FileSystem& files, const std::string& container_directory,
                                 const std::string& container_id);

// The pid in a pid file; kNotFound also if the file is still empty.
Result<int> ReadPidFile(FileSystem& files, const std::string& path);

// The streams of a container under its conmon, in `directory`.
Result<std::unique_ptr<ProcessStreams>> AttachToConmon(UvLoop& loop, const std::string& directory,
                                                       const StreamOptions& options,
                                                       ProcessStreams::Events& events);
// One line to conmon's control fifo.
Result<void> TellConmon(const std::string& directory, std::string_view line);

}  // namespace drakkar::node
