#include "storage/sqlite/checkpointer.h"

#include <pthread.h>
#include <sqlite3.h>

#include <utility>

#include "base/result/check.h"

namespace drakkar::storage {
namespace {

// The writer holds the conflicting locks only briefly.
constexpr int kBusyMilliseconds = 10'000;

}  // namespace

Checkpointer::Checkpointer(std::string path, std::string vfs)
    : path_(std::move(path)), vfs_(std::move(vfs)) {}

Checkpointer::~Checkpointer() {
  thread_.reset();
  sqlite3_close(connection_);
}

void Checkpointer::Begin() {
  CHECK(!busy());
  if (thread_ == nullptr) thread_ = std::make_unique<WorkerPool>(1, 1);
  busy_ = true;
  CHECK(thread_->Run([this] {
    Pass();
    busy_ = false;
    busy_.notify_one();
  }));
}

int Checkpointer::Open() {
  pthread_setname_np(pthread_self(), "store-copier");
  const int code = sqlite3_open_v2(path_.c_str(), &connection_,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs_.c_str());
  if (code != SQLITE_OK) return code;
  sqlite3_busy_timeout(connection_, kBusyMilliseconds);
  return sqlite3_exec(connection_, "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;", nullptr,
                      nullptr, nullptr);
}

void Checkpointer::Pass() {
  code_ = connection_ == nullptr ? Open() : SQLITE_OK;  // a failed Open is final
  int copied = -1;
  if (code_ == SQLITE_OK) {
    code_ = sqlite3_wal_checkpoint_v2(connection_, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                                      &copied);
    // No other checkpoint is running, so the lock was held only briefly: leave it to the next pass.
    if ((code_ & 0xff) == SQLITE_BUSY) code_ = SQLITE_OK;
  }
  if (code_ != SQLITE_OK) message_ = sqlite3_errmsg(connection_);
  if (copied >= 0) copied_frames_ = static_cast<std::size_t>(copied);
}

}  // namespace drakkar::storage
