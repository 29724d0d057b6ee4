#include "apiserver/http/port_forward_channels.h"

#include <algorithm>

#include "base/env/random.h"
#include "base/text/text.h"

namespace drakkar::apiserver {

Result<std::vector<std::uint16_t>> ForwardedPorts(const net::Query& query) {
  std::vector<std::uint16_t> ports;
  for (const auto& [name, value] : query) {
    if (name != "ports") continue;
    if (value.empty()) return InvalidArgument("query parameter \"ports\" cannot be empty");
    for (const std::string_view each : Split(value, ',')) {
      const std::optional<std::int64_t> port = ParseInt64(each);
      if (!port || *port < 1 || *port > 65535) {
        return InvalidArgument(StrCat("unable to parse ", Quote(each), " as a port"));
      }
      ports.push_back(static_cast<std::uint16_t>(*port));
    }
  }
  if (ports.empty()) return InvalidArgument("query parameter \"ports\" is required");
  if (ports.size() > kMaxForwardedPorts) {
    return InvalidArgument(StrCat("at most ", kMaxForwardedPorts, " ports"));
  }
  return ports;
}

PortForwardChannels::PortForwardChannels(std::unique_ptr<net::RawStream> client,
                                         std::unique_ptr<net::RawStream> node,
                                         std::vector<std::uint16_t> ports,
                                         std::function<void()> on_gone)
    : client_(std::move(client)),
      node_(std::move(node)),
      on_gone_(std::move(on_gone)),
      // Server frames are not masked, so this randomness is never used.
      socket_(net::websocket::Role::kServer, RealRandom(), *this),
      spdy_(net::spdy::Role::kClient, *this) {
  for (const std::uint16_t port : ports) ports_.push_back({.port = port});
}

PortForwardChannels::~PortForwardChannels() = default;

void PortForwardChannels::Start() {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    Forwarded& each = ports_[i];
    net::Headers headers = {{"streamType", "error"},
                            {"port", std::to_string(each.port)},
                            {"requestID", std::to_string(i)}};
    each.error = spdy_.Open(headers);
    // We write no errors.
    spdy_.Finish(each.error);
    headers.Set("streamType", "data");
    each.data = spdy_.Open(headers);
    ++open_;
    const char port[] = {static_cast<char>(each.port & 0xff), static_cast<char>(each.port >> 8)};
    Tell(2 * i, {port, 2});
    Tell(2 * i + 1, {port, 2});
  }
  Flush();
  client_->OnDrained(lifetime_.Guard([this] { node_->SetReading(true); }));
  node_->OnDrained(lifetime_.Guard([this] { client_->SetReading(true); }));
  // Each may deliver data that has already arrived, and find that the other side has left.
  node_->Start(lifetime_.Guard([this](std::string_view bytes) {
    const Result<void> received = spdy_.Receive(bytes);
    Flush();
    if (!received.ok() || open_ == 0) return Gone();
    if (client_->pending_bytes() > kMaxPending) node_->SetReading(false);
  }),
               lifetime_.Guard([this] { Gone(); }));
  client_->Start(lifetime_.Guard([this](std::string_view bytes) {
    socket_.Receive(bytes);
    Flush();
    if (node_->pending_bytes() > kMaxPending) client_->SetReading(false);
  }),
                 lifetime_.Guard([this] { Gone(); }));
}

void PortForwardChannels::OnMessage(net::websocket::MessageType, std::string_view payload) {
  if (payload.empty()) return;
  const std::size_t channel = static_cast<std::uint8_t>(payload[0]);
  // Errors come from the node only.
  if (channel % 2 != 0 || channel / 2 >= ports_.size()) return;
  spdy_.Send(ports_[channel / 2].data, payload.substr(1));
}

void PortForwardChannels::OnClose(std::uint16_t, std::string_view) {
  Gone();
}

bool PortForwardChannels::MayAnswerPing() const {
  return client_->pending_bytes() < kMaxPending;
}

void PortForwardChannels::OnStream(net::spdy::StreamId stream, const net::Headers&) {
  spdy_.Reset(stream, net::spdy::kRefusedStream);
}

void PortForwardChannels::OnData(net::spdy::StreamId stream, std::string_view bytes) {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (ports_[i].data == stream) Tell(2 * i, bytes);
    if (ports_[i].error == stream) Tell(2 * i + 1, bytes);
  }
}

void PortForwardChannels::OnFinish(net::spdy::StreamId stream) {
  const auto found = std::ranges::find(ports_, stream, &Forwarded::data);
  if (found == ports_.end()) return;
  spdy_.Finish(stream);
  found->data = 0;
  --open_;
}

void PortForwardChannels::Tell(std::size_t channel, std::string_view bytes) {
  const char first = static_cast<char>(channel);
  socket_.Send(net::websocket::MessageType::kBinary, {&first, 1}, bytes);
}

void PortForwardChannels::Flush() {
  if (spdy_.has_output()) node_->Write(spdy_.TakeOutput());
  if (socket_.has_output()) client_->Write(socket_.TakeOutput());
}

void PortForwardChannels::Gone() {
  if (std::exchange(gone_, true)) return;
  socket_.Close(net::websocket::kNormalClosure);
  spdy_.GoAway();
  Flush();
  on_gone_();
}

}  // namespace drakkar::apiserver
