#include "node/streaming/port_forward.h"

#include "base/text/text.h"

namespace drakkar::node {

using net::spdy::StreamId;

// One connection: the client's two streams and the pod's port.
class PortForward::Forwarded final : private PortConnection::Events {
 public:
  Forwarded(PortForward& owner, std::string request, std::uint16_t port)
      : owner_(owner), request_(std::move(request)), port_(port) {
    pairing_ = owner_.options_.loop.RunAfter(kPairWithin, [this] {
      Fail(StrCat("timed out waiting for the second stream of request ", request_));
    });
  }

  std::uint16_t port() const { return port_; }
  StreamId data() const { return data_; }
  StreamId error() const { return error_; }
  std::size_t pending_bytes() const { return connection_ ? connection_->pending_bytes() : 0; }
  void SetReading(bool reading) {
    if (connection_) connection_->SetReading(reading);
  }

  void SetData(StreamId stream) {
    data_ = stream;
    ConnectIfPaired();
  }
  void SetError(StreamId stream) {
    error_ = stream;
    ConnectIfPaired();
  }
  void Write(std::string_view bytes) {
    if (connection_) {
      connection_->Write(bytes);
    } else {
      early_ += bytes;
    }
  }
  void SetRemoved() { removed_ = true; }
  void Finish() {
    finished_ = true;
    if (connection_) connection_->FinishWriting();
  }

 private:
  void ConnectIfPaired() {
    if (data_ == 0 || error_ == 0) return;
    pairing_.reset();
    auto connection = owner_.options_.connect(port_, *this);
    if (!connection.ok()) return Fail(connection.error().message);
    connection_ = *std::move(connection);
    if (!early_.empty()) connection_->Write(std::exchange(early_, {}));
    if (finished_) connection_->FinishWriting();
  }

  void OnPortData(std::string_view bytes) override {
    if (removed_) return;
    owner_.RestartIdleTimer();
    owner_.session_.Send(data_, bytes);
    owner_.Flush();
    if (owner_.stream_->pending_bytes() > kMaxPending) {
      owner_.output_paused_ = true;
      for (const auto& [id, each] : owner_.forwarded_) each->SetReading(false);
    }
  }
  void OnPortDrained() override {
    if (!removed_) owner_.UpdateReading();
  }
  void OnPortEnd(Result<void> result) override {
    if (removed_) return;
    if (!result.ok()) return Fail(result.error().message);
    owner_.session_.Finish(data_);
    owner_.session_.Finish(error_);
    owner_.Flush();
    owner_.Remove(request_);
  }

  void Fail(const std::string& why) {
    if (removed_) return;
    owner_.session_.Send(error_, StrCat("error forwarding port ", port_, " to pod ",
                                        owner_.options_.pod, ": ", why));
    owner_.session_.Finish(error_);
    owner_.session_.Finish(data_);
    owner_.Flush();
    owner_.Remove(request_);
  }

  PortForward& owner_;
  const std::string request_;
  const std::uint16_t port_;
  StreamId data_ = 0;
  StreamId error_ = 0;
  std::string early_;  // arrived with the stream, before the pair was complete
  bool finished_ = false;
  bool removed_ = false;  // from its owner, which may be gone
  TimerHandle pairing_;
  std::unique_ptr<PortConnection> connection_;
};

PortForward::PortForward(Options options, std::unique_ptr<net::RawStream> stream)
    : options_(std::move(options)),
      stream_(std::move(stream)),
      session_(net::spdy::Role::kServer, *this) {}

PortForward::~PortForward() = default;

void PortForward::Start() {
  RestartIdleTimer();
  stream_->OnDrained([this] {
    if (!std::exchange(output_paused_, false)) return;
    for (const auto& [id, each] : forwarded_) each->SetReading(true);
  });
  // Last, because it may deliver events and find that the client has disconnected.
  stream_->Start(
      [this](std::string_view bytes) {
        RestartIdleTimer();
        const Result<void> received = session_.Receive(bytes);
        Flush();
        if (!received.ok()) return Gone();
        UpdateReading();
      },
      [this] { Gone(); });
}

void PortForward::OnStream(StreamId stream, const net::Headers& headers) {
  const std::string_view type = headers.Get("streamtype");
  const auto port = ParseInt64(headers.Get("port"));
  if ((type != "data" && type != "error") || !port || *port < 1 || *port > 65535) {
    return session_.Reset(stream, net::spdy::kProtocolError);
  }
  std::string request(headers.Get("requestid"));
  // Clients before Kubernetes 1.2 send none; their error stream comes right before its data stream.
  if (request.empty()) request = StrCat("#", type == "error" ? stream : stream - 2);
  auto found = forwarded_.find(request);
  if (found == forwarded_.end()) {
    if (forwarded_.size() >= kMaxConnections) {
      return session_.Reset(stream, net::spdy::kRefusedStream);
    }
    found = forwarded_
                .emplace(request, std::make_unique<Forwarded>(*this, request,
                                                              static_cast<std::uint16_t>(*port)))
                .first;
  }
  Forwarded& forwarded = *found->second;
  const bool taken = type == "data" ? forwarded.data() != 0 : forwarded.error() != 0;
  if (taken || forwarded.port() != *port) {
    return session_.Reset(stream, net::spdy::kProtocolError);
  }
  session_.Reply(stream);
  if (type == "data") {
    data_streams_[stream] = request;
    forwarded.SetData(stream);
  } else {
    forwarded.SetError(stream);
  }
}

PortForward::Forwarded* PortForward::FindByData(StreamId stream) {
  const auto request = data_streams_.find(stream);
  if (request == data_streams_.end()) return nullptr;
  const auto found = forwarded_.find(request->second);
  return found == forwarded_.end() ? nullptr : found->second.get();
}

void PortForward::OnData(StreamId stream, std::string_view bytes) {
  if (Forwarded* forwarded = FindByData(stream)) forwarded->Write(bytes);
}

void PortForward::OnFinish(StreamId stream) {
  if (Forwarded* forwarded = FindByData(stream)) forwarded->Finish();
}

void PortForward::OnReset(StreamId stream) {
  Forwarded* forwarded = FindByData(stream);
  if (forwarded == nullptr) return;
  session_.Finish(forwarded->error());
  Remove(data_streams_[stream]);
}

void PortForward::Remove(const std::string& request) {
  const auto found = forwarded_.find(request);
  if (found == forwarded_.end()) return;
  data_streams_.erase(found->second->data());
  found->second->SetRemoved();
  // Posted, because this may run inside an event of the connection.
  options_.loop.Post([kept = std::shared_ptr<Forwarded>(std::move(found->second))] {});
  forwarded_.erase(found);
  UpdateReading();
}

void PortForward::UpdateReading() {
  bool reading = true;
  for (const auto& [id, each] : forwarded_) reading &= each->pending_bytes() <= kMaxPending;
  stream_->SetReading(reading);
}

void PortForward::RestartIdleTimer() {
  idle_ = options_.loop.RunAfter(kIdleTimeout, [this] { Gone(); });
}

void PortForward::Flush() {
  if (session_.has_output()) stream_->Write(session_.TakeOutput());
}

void PortForward::Gone() {
  if (std::exchange(gone_, true)) return;
  options_.loop.Post(options_.on_gone);
}

}  // namespace drakkar::node
