#include "base/os/process.h"

#include <signal.h>
#include <uv.h>

#include <cerrno>

#include "base/exec/lifetime.h"
#include "base/exec/uv_loop.h"

namespace drakkar {
namespace {

// A running child and its pipes. Freed when the exit has been reported and all libuv handles are
// closed.
struct Child {
  uv_process_t process{};
  uv_pipe_t in{}, out{}, err{};
  uv_write_t write{};
  std::string input;
  std::string output, error_output;
  std::function<void(ProcessExit)> on_exit;
  ProcessExit exit;
  int open_handles = 0;  // handles whose close callback has not run
  int pending = 0;       // what must finish before the exit is reported: process and outputs
  bool running = false;
  bool detached = false;  // the Process object is destroyed, so report nothing
  Lifetime lifetime;      // ends before the exit is reported

  void Finish() {
    if (--pending > 0) return;
    exit.output = std::move(output);
    exit.error_output = std::move(error_output);
    lifetime.End();
    if (on_exit && !detached) {
      auto callback = std::move(on_exit);
      callback(std::move(exit));
    }
  }
  void Close(uv_handle_t* handle) {
    uv_close(handle, [](uv_handle_t* closed) {
      auto* child = static_cast<Child*>(closed->data);
      if (--child->open_handles == 0) delete child;
    });
  }
};

void Keep(std::string& kept, const char* data, std::size_t size) {
  kept.append(data, size);
  // Keep the tail; erasing in large pieces keeps the copying linear.
  if (kept.size() > 2 * kMaxProcessOutput) kept.erase(0, kept.size() - kMaxProcessOutput);
}

void OnAlloc(uv_handle_t*, std::size_t, uv_buf_t* buffer) {
  static thread_local char space[65536];
  *buffer = uv_buf_init(space, sizeof(space));
}

void OnRead(uv_stream_t* stream, ssize_t size, const uv_buf_t* buffer) {
  auto* child = static_cast<Child*>(stream->data);
  if (size > 0) {
    const bool is_error = reinterpret_cast<uv_pipe_t*>(stream) == &child->err;
    Keep(is_error ? child->error_output : child->output, buffer->base,
         static_cast<std::size_t>(size));
    return;
  }
  if (size == 0) return;
  child->Close(reinterpret_cast<uv_handle_t*>(stream));
  child->Finish();
}

void OnChildExit(uv_process_t* process, std::int64_t status, int signal) {
  auto* child = static_cast<Child*>(process->data);
  child->running = false;
  child->exit.signal = signal;
  child->exit.exit_code = signal != 0 ? 128 + signal : static_cast<int>(status);
  child->Close(reinterpret_cast<uv_handle_t*>(process));
  child->Finish();
}

class UvProcess final : public Process {
 public:
  explicit UvProcess(Child& child)
      : child_(child), child_lifetime_(child.lifetime.Observe()), pid_(child.process.pid) {}
  ~UvProcess() override {
    if (child_lifetime_.alive()) child_.detached = true;
  }
  int pid() const override { return pid_; }
  Result<void> Signal(int signal) override {
    if (!child_lifetime_.alive() || !child_.running)
      return NotFound("the process has already ended");
    if (::kill(pid_, signal) != 0) return ErrnoError(errno, "signal process");
    return Ok();
  }

 private:
  Child& child_;  // frees itself
  const Lifetime::Observer child_lifetime_;
  const int pid_;
};

class UvSpawner final : public Spawner {
 public:
  explicit UvSpawner(UvLoop& loop) : loop_(loop) {}

  Result<std::unique_ptr<Process>> Spawn(ProcessOptions options,
                                         std::function<void(ProcessExit)> on_exit) override {
    loop_.AssertInLoop();
    if (options.arguments.empty()) return InvalidArgument("spawn: no program");
    auto* child = new Child;
    child->on_exit = std::move(on_exit);
    child->input = std::move(options.standard_input);

    std::vector<char*> arguments = Pointers(options.arguments);
    std::vector<char*> environment = Pointers(options.environment);
    int highest = 2;
    for (const auto& [ours, theirs] : options.inherited_descriptors) {
      highest = std::max(highest, theirs);
    }
    std::vector<uv_stdio_container_t> stdio(static_cast<std::size_t>(highest) + 1);
    for (auto& entry : stdio) entry.flags = UV_IGNORE;
    auto use_pipe = [&](int number, uv_pipe_t& pipe, uv_stdio_flags direction) {
      uv_pipe_init(loop_.native(), &pipe, 0);
      pipe.data = child;
      ++child->open_handles;
      stdio[static_cast<std::size_t>(number)].flags =
          static_cast<uv_stdio_flags>(UV_CREATE_PIPE | direction);
      stdio[static_cast<std::size_t>(number)].data.stream = reinterpret_cast<uv_stream_t*>(&pipe);
    };
    const bool has_input = !child->input.empty();
    if (has_input) use_pipe(0, child->in, UV_READABLE_PIPE);
    if (options.capture_output) {
      use_pipe(1, child->out, UV_WRITABLE_PIPE);
      use_pipe(2, child->err, UV_WRITABLE_PIPE);
    } else {
      for (int fd : {1, 2}) {
        stdio[static_cast<std::size_t>(fd)].flags = UV_INHERIT_FD;
        stdio[static_cast<std::size_t>(fd)].data.fd = fd;
      }
    }
    for (const auto& [ours, theirs] : options.inherited_descriptors) {
      stdio[static_cast<std::size_t>(theirs)].flags = UV_INHERIT_FD;
      stdio[static_cast<std::size_t>(theirs)].data.fd = ours;
    }

    uv_process_options_t uv_options{};
    uv_options.exit_cb = &OnChildExit;
    uv_options.file = arguments[0];
    uv_options.args = arguments.data();
    if (!options.environment.empty()) uv_options.env = environment.data();
    if (!options.directory.empty()) uv_options.cwd = options.directory.c_str();
    if (options.new_session) uv_options.flags |= UV_PROCESS_DETACHED;
    uv_options.stdio = stdio.data();
    uv_options.stdio_count = static_cast<int>(stdio.size());

    child->process.data = child;
    ++child->open_handles;
    const int status = uv_spawn(loop_.native(), &child->process, &uv_options);
    if (status != 0) {
      child->detached = true;
      child->Close(reinterpret_cast<uv_handle_t*>(&child->process));
      if (has_input) child->Close(reinterpret_cast<uv_handle_t*>(&child->in));
      if (options.capture_output) {
        child->Close(reinterpret_cast<uv_handle_t*>(&child->out));
        child->Close(reinterpret_cast<uv_handle_t*>(&child->err));
      }
      return ErrnoError(-status, "start " + options.arguments[0]);
    }
    child->running = true;
    child->pending = options.capture_output ? 3 : 1;
    if (options.capture_output) {
      uv_read_start(reinterpret_cast<uv_stream_t*>(&child->out), &OnAlloc, &OnRead);
      uv_read_start(reinterpret_cast<uv_stream_t*>(&child->err), &OnAlloc, &OnRead);
    }
    if (has_input) WriteInput(child);
    return std::unique_ptr<Process>(std::make_unique<UvProcess>(*child));
  }

 private:
  static std::vector<char*> Pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  static void WriteInput(Child* child) {
    child->write.data = child;
    uv_buf_t buffer =
        uv_buf_init(child->input.data(), static_cast<unsigned int>(child->input.size()));
    auto done = [](uv_write_t* write, int) {
      auto* owner = static_cast<Child*>(write->data);
      owner->Close(reinterpret_cast<uv_handle_t*>(&owner->in));
    };
    if (uv_write(&child->write, reinterpret_cast<uv_stream_t*>(&child->in), &buffer, 1, done) !=
        0) {
      child->Close(reinterpret_cast<uv_handle_t*>(&child->in));
    }
  }

  UvLoop& loop_;
};

}  // namespace

std::unique_ptr<Spawner> MakeSpawner(UvLoop& loop) {
  return std::make_unique<UvSpawner>(loop);
}

}  // namespace drakkar
