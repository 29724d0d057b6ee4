#include "node/runtime/images/byte_source.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(int fd) : fd_(fd) {}
  ~FileSource() override { ::close(fd_); }
  Result<std::size_t> Read(char* buffer, std::size_t size) override {
    while (true) {
      const ssize_t got = ::read(fd_, buffer, size);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) return ErrnoError(errno, "read");
    }
  }

 private:
  int fd_;
};

class StringSource final : public ByteSource {
 public:
  explicit StringSource(std::string_view bytes) : bytes_(bytes) {}
  Result<std::size_t> Read(char* buffer, std::size_t size) override {
    const std::size_t take = std::min(size, bytes_.size());
    if (take > 0) std::memcpy(buffer, bytes_.data(), take);
    bytes_.remove_prefix(take);
    return take;
  }

 private:
  std::string_view bytes_;
};

// 128 MiB; the default of the zstd program for large windows.
constexpr int kMaxZstdWindowLog = 27;

class Decompressor final : public ByteSource {
 public:
  explicit Decompressor(ByteSource& inner) : inner_(inner) {}
  ~Decompressor() override {
    if (mode_ == Mode::kGzip) ::inflateEnd(&stream_);
  }

  Result<std::size_t> Read(char* buffer, std::size_t size) override {
    if (mode_ == Mode::kUnknown) RETURN_IF_ERROR(Detect());
    if (mode_ == Mode::kPlain) return ReadPlain(buffer, size);
    if (mode_ == Mode::kZstd) return ReadZstd(buffer, size);
    return Inflate(buffer, size);
  }

 private:
  enum class Mode { kUnknown, kPlain, kGzip, kZstd };

  Result<void> Fill() {
    ASSIGN_OR_RETURN(const std::size_t got, inner_.Read(input_, sizeof(input_)));
    next_ = 0;
    available_ = got;
    if (got == 0) input_ended_ = true;
    return Ok();
  }

  Result<void> Detect() {
    // The magic number may arrive in pieces.
    while (available_ < 4 && !input_ended_) {
      ASSIGN_OR_RETURN(const std::size_t got,
                       inner_.Read(input_ + available_, sizeof(input_) - available_));
      if (got == 0) input_ended_ = true;
      available_ += got;
    }
    const std::string_view head(input_, std::min<std::size_t>(available_, 4));
    if (head == "\x28\xb5\x2f\xfd") {
      mode_ = Mode::kZstd;
      zstd_.reset(::ZSTD_createDCtx());
      if (zstd_ == nullptr) return Internal("start zstd");
      // A larger window would be memory that a hostile archive chooses.
      ::ZSTD_DCtx_setParameter(zstd_.get(), ZSTD_d_windowLogMax, kMaxZstdWindowLog);
    } else if (head.starts_with("\x1f\x8b")) {
      mode_ = Mode::kGzip;
      if (::inflateInit2(&stream_, 15 + 16) != Z_OK) return Internal("start zlib");
    } else {
      mode_ = Mode::kPlain;
    }
    return Ok();
  }

  Result<std::size_t> ReadPlain(char* buffer, std::size_t size) {
    if (available_ == 0) return inner_.Read(buffer, size);
    const std::size_t take = std::min(size, available_);
    std::memcpy(buffer, input_ + next_, take);
    next_ += take;
    available_ -= take;
    return take;
  }

  Result<std::size_t> ReadZstd(char* buffer, std::size_t size) {
    ZSTD_outBuffer out{buffer, size, 0};
    while (out.pos == 0) {
      if (available_ == 0 && !input_ended_) RETURN_IF_ERROR(Fill());
      if (available_ == 0) {
        if (between_members_) return std::size_t{0};
        return Error{ErrorCode::kDataLoss, "zstd data ends too early"};
      }
      ZSTD_inBuffer in{input_ + next_, available_, 0};
      const std::size_t left = ::ZSTD_decompressStream(zstd_.get(), &out, &in);
      if (::ZSTD_isError(left) != 0) {
        return Error{ErrorCode::kDataLoss,
                     StrCat("zstd data is damaged: ", ::ZSTD_getErrorName(left))};
      }
      next_ += in.pos;
      available_ -= in.pos;
      between_members_ = left == 0;
    }
    return out.pos;
  }

  Result<std::size_t> Inflate(char* buffer, std::size_t size) {
    const std::size_t chunk = std::min<std::size_t>(size, 1u << 30);
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = static_cast<uInt>(chunk);
    while (stream_.avail_out == chunk) {
      if (ended_) return std::size_t{0};
      if (available_ == 0 && !input_ended_) RETURN_IF_ERROR(Fill());
      if (available_ == 0) {
        if (between_members_) {
          ended_ = true;
          return std::size_t{0};
        }
        return Error{ErrorCode::kDataLoss, "gzip data ends too early"};
      }
      if (between_members_) {
        // Padding after the last member is zero bytes, as gzip itself ignores them.
        if (input_[next_] == 0) {
          ++next_;
          --available_;
          continue;
        }
        if (::inflateReset(&stream_) != Z_OK) return Internal("reset zlib");
        between_members_ = false;
      }
      stream_.next_in = reinterpret_cast<Bytef*>(input_ + next_);
      stream_.avail_in = static_cast<uInt>(available_);
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      next_ += available_ - stream_.avail_in;
      available_ = stream_.avail_in;
      if (status == Z_STREAM_END) {
        between_members_ = true;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        return Error{ErrorCode::kDataLoss,
                     StrCat("gzip data is damaged: ",
                            stream_.msg != nullptr ? stream_.msg : "unknown reason")};
      }
    }
    return chunk - stream_.avail_out;
  }

  ByteSource& inner_;
  Mode mode_ = Mode::kUnknown;
  z_stream stream_{};
  struct FreeZstd {
    void operator()(ZSTD_DCtx* context) const { ::ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, FreeZstd> zstd_;
  char input_[65536];
  std::size_t next_ = 0;
  std::size_t available_ = 0;
  bool input_ended_ = false;
  bool between_members_ = false;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoError(errno, "open " + path);
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(fd));
}

std::unique_ptr<ByteSource> MakeStringSource(std::string_view bytes) {
  return std::make_unique<StringSource>(bytes);
}

Result<std::size_t> HashingSource::Read(char* buffer, std::size_t size) {
  ASSIGN_OR_RETURN(const std::size_t got, inner_.Read(buffer, size));
  hash_.Update(std::string_view(buffer, got));
  bytes_ += got;
  return got;
}

Result<std::string> HashingSource::Finish() {
  char buffer[65536];
  while (true) {
    ASSIGN_OR_RETURN(const std::size_t got, Read(buffer, sizeof(buffer)));
    if (got == 0) break;
  }
  return "sha256:" + HexDigest(hash_.Finish());
}

std::unique_ptr<ByteSource> MakeDecompressor(ByteSource& inner) {
  return std::make_unique<Decompressor>(inner);
}

}  // namespace drakkar::node
