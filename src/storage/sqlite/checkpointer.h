#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/exec/worker_pool.h"

struct sqlite3;

namespace drakkar::storage {

// Copies SQLite's write-ahead log into the database file on its own thread and connection while the
// writer continues. The writer only starts a pass and checks its result. All calls must come from
// one thread. The destructor waits for a running pass.
class Checkpointer {
 public:
  // The connection is opened on first use.
  Checkpointer(std::string path, std::string vfs);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Starts copying what has been committed so far. No pass may be running.
  void Begin();
  bool busy() const { return busy_.load(); }
  void Wait() const { busy_.wait(true); }

  // Results of the last pass, valid when no pass is running: SQLite's code, and how many frames of
  // the log have been copied since it was last reset.
  int code() const { return code_; }
  const std::string& message() const { return message_; }
  std::size_t copied_frames() const { return copied_frames_; }

 private:
  void Pass();
  int Open();

  const std::string path_;
  const std::string vfs_;
  // Owned by the thread while it is busy, otherwise by the caller.
  sqlite3* connection_ = nullptr;
  int code_ = 0;
  std::string message_;
  std::size_t copied_frames_ = 0;
  std::atomic<bool> busy_{false};
  std::unique_ptr<WorkerPool> thread_;
};

}  // namespace drakkar::storage
