#include "apiserver/http/counted_writer.h"

#include <utility>

namespace drakkar::apiserver {
namespace {

class CountedWriter final : public net::ResponseWriter {
 public:
  CountedWriter(std::shared_ptr<net::ResponseWriter> writer, std::function<void(int)> answered)
      : writer_(std::move(writer)), answered_(std::move(answered)) {}
  ~CountedWriter() override { Tell(0); }

  void Send(int status, const net::Headers& headers, net::Body body) override {
    Tell(status);
    writer_->Send(status, headers, std::move(body));
  }
  void StartStream(int status, const net::Headers& headers) override {
    Tell(status);
    writer_->StartStream(status, headers);
  }
  void Write(net::Segment bytes) override { writer_->Write(std::move(bytes)); }
  void Finish() override { writer_->Finish(); }
  void Abort() override { writer_->Abort(); }
  std::size_t pending_bytes() const override { return writer_->pending_bytes(); }
  bool is_closed() const override { return writer_->is_closed(); }
  void OnClosed(std::function<void(bool)> callback) override {
    writer_->OnClosed(std::move(callback));
  }
  void OnDrained(std::function<void()> callback) override {
    writer_->OnDrained(std::move(callback));
  }
  Result<std::unique_ptr<net::RawStream>> Upgrade(const net::Headers& headers) override {
    Result<std::unique_ptr<net::RawStream>> stream = writer_->Upgrade(headers);
    if (stream.ok()) Tell(101);
    return stream;
  }

 private:
  void Tell(int code) {
    if (auto answered = std::exchange(answered_, nullptr)) answered(code);
  }

  const std::shared_ptr<net::ResponseWriter> writer_;
  std::function<void(int)> answered_;  // null once called
};

}  // namespace

std::shared_ptr<net::ResponseWriter> CountAnswer(std::shared_ptr<net::ResponseWriter> writer,
                                                 std::function<void(int code)> answered) {
  return std::make_shared<CountedWriter>(std::move(writer), std::move(answered));
}

}  // namespace drakkar::apiserver
