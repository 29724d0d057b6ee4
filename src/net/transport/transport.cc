#include "net/transport/transport.h"

namespace drakkar::net {

Transport::Transport(std::unique_ptr<Socket> socket, std::unique_ptr<TlsFilter> tls,
                     Handler& handler)
    : socket_(std::move(socket)), tls_(std::move(tls)), handler_(&handler) {}

void Transport::Start() {
  socket_->Start(*this);
  if (tls_) {
    WriteTlsOutput();
  } else {
    ready_ = true;
    handler_->OnTransportReady();
  }
}

void Transport::WriteTlsOutput() {
  socket_->Write(tls_->output());
}

void Transport::Write(std::string& plain) {
  if (plain.empty()) return;
  if (!tls_) {
    socket_->Write(plain);
    return;
  }
  // A failure here shows up as a failure of the connection at the next read.
  (void)tls_->Send(plain);
  plain.clear();
  WriteTlsOutput();
}

void Transport::SetReading(bool reading) {
  if (reading) {
    socket_->ResumeReading();
  } else {
    socket_->PauseReading();
  }
}

void Transport::Shutdown() {
  if (tls_) {
    tls_->Close();
    WriteTlsOutput();
  }
  socket_->ShutdownWrites();
}

void Transport::ReportClosed(const Error* error) {
  if (!handler_) return;
  Handler* told = handler_;
  handler_ = nullptr;
  told->OnTransportClosed(error);
}

void Transport::OnSocketData(std::string_view bytes) {
  if (!handler_) return;
  if (!tls_) {
    handler_->OnTransportData(bytes);
    return;
  }
  const Lifetime::Observer self = lifetime_.Observe();
  const Result<void> received = tls_->Receive(bytes, [&](std::string_view plain) {
    if (!ready_ && !BecomeReady()) return false;
    handler_->OnTransportData(plain);
    return self.alive() && handler_ != nullptr;
  });
  if (!self.alive() || !handler_) return;
  if (!received.ok() && !tls_->is_ready() && received.error().message == "TLS: http request") {
    // Shown by browsers and curl when someone uses http instead of https.
    std::string answer =
        "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    tls_->output().clear();
    socket_->Write(answer);
  }
  if (!ready_ && tls_->is_ready()) {
    if (!BecomeReady()) return;
  } else {
    WriteTlsOutput();
  }
  if (!received.ok()) {
    ReportClosed(&received.error());
  } else if (tls_->peer_closed()) {
    ReportClosed(nullptr);
  }
}

// The handshake is complete: sends the rest of it and notifies the handler. Returns false if the
// handler has destroyed or closed this transport.
bool Transport::BecomeReady() {
  const Lifetime::Observer self = lifetime_.Observe();
  WriteTlsOutput();
  ready_ = true;
  handler_->OnTransportReady();
  return self.alive() && handler_ != nullptr;
}

void Transport::OnSocketClosed(const Error* error) {
  if (error == nullptr && tls_ && !ready_) {
    const Error early = Unavailable("TLS: the peer closed during the handshake");
    ReportClosed(&early);
    return;
  }
  ReportClosed(error);
}

void Transport::OnSocketDrained() {
  if (handler_) handler_->OnTransportDrained();
}

}  // namespace drakkar::net
