#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/exec/worker_pool.h"

struct sqlite3;

namespace drakkar::storage {

// Copies SQLite's write-ahead log into its file on a thread of its own, with a connection of its
// own, while the writer goes on. The writer only asks for a pass and looks at what became of it;
// all calls from one thread. The destructor waits for the pass under way.
class Checkpointer {
 public:
  // The connection is made when it is first needed.
  Checkpointer(std::string path, std::string vfs);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Copies what has been committed by now. No pass may be under way.
  void Begin();
  bool busy() const { return busy_.load(); }
  void Wait() const { busy_.wait(true); }

  // Of the last pass, once it is not busy: SQLite's code, and how many frames of the log have been
  // copied since it was last reset.
  int code() const { return code_; }
  const std::string& message() const { return message_; }
  std::size_t copied_frames() const { return copied_frames_; }

 private:
  void Pass();
  int Open();

  const std::string path_;
  const std::string vfs_;
  // The thread's while it is busy, else the caller's.
  sqlite3* connection_ = nullptr;
  int code_ = 0;
  std::string message_;
  std::size_t copied_frames_ = 0;
  std::atomic<bool> busy_{false};
  std::unique_ptr<WorkerPool> thread_;
};

}  // namespace drakkar::storage
