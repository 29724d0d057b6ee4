#include "dashboard/server/handler.h"

#include "answers/render/json.h"
#include "base/text/text.h"
#include "dashboard/page/page.h"

namespace drakkar::dashboard {
namespace {

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kJson[] = "application/json";

void SendJson(net::ResponseWriter& writer, int status, std::string json) {
  writer.Send(status, SafetyHeaders(kJson), std::move(json));
}

void SendError(net::ResponseWriter& writer, int status, std::string_view message) {
  answers::JsonOut json(/*indented=*/false);
  json.BeginObject().Field("error", message).EndObject();
  SendJson(writer, status, json.Take());
}

}  // namespace

Handler::Handler(EventLoop& loop, const Gate& gate, Backend& backend)
    : loop_(loop), gate_(gate), backend_(backend) {}

Handler::~Handler() = default;

void Handler::Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) {
  loop_.AssertInLoop();
  const bool is_api = request.path.starts_with(Gate::kApiPrefix);
  if (const Gate::Verdict verdict = gate_.Check(request); !verdict.ok()) {
    if (is_api) return SendError(*writer, verdict.status, verdict.reason);
    return writer->Send(verdict.status, SafetyHeaders(kText), StrCat(verdict.reason, "\n"));
  }
  if (gate_.IsArrival(request)) return writer->Send(303, gate_.Welcome(), std::string());
  if (request.path == "/api/stream") return StartStream(std::move(writer));
  if (is_api) return Ask(request, std::move(writer));
  const PageFile* file = FindPageFile(request.path);
  if (file == nullptr) {
    return writer->Send(404, SafetyHeaders(kText), std::string("there is no such page\n"));
  }
  writer->Send(200, SafetyHeaders(std::string(file->content_type)), std::string(file->content));
}

void Handler::Ask(const net::ServerRequest& request, std::shared_ptr<net::ResponseWriter> writer) {
  if (questions_ >= kMaxQuestions) {
    return SendError(*writer, 503, "too many questions at once; try again in a moment");
  }
  ++questions_;
  backend_.Ask(request.path, request.raw_query,
               lifetime_.Guard([this, writer = std::move(writer)](Board::Reply reply) {
                 --questions_;
                 SendJson(*writer, reply.status, std::move(reply.json));
               }));
}

void Handler::StartStream(std::shared_ptr<net::ResponseWriter> writer) {
  if (streams_.size() >= kMaxStreams) {
    return SendError(*writer, 503,
                     StrCat("the dashboard is open in ", kMaxStreams, " tabs; close one of them"));
  }
  const std::uint64_t id = next_stream_++;
  net::Headers headers = SafetyHeaders("text/event-stream");
  writer->StartStream(200, headers);
  writer->OnClosed(lifetime_.Guard([this, id](bool) {
    // The writer must not be destroyed inside its own callback.
    loop_.Post(lifetime_.Guard([this, id] { Drop(id); }));
  }));
  writer->OnDrained(lifetime_.Guard([this, id] { CatchUp(id); }));
  streams_[id] = {.writer = std::move(writer), .behind = true};
  backend_.SetViewers(streams_.size());
  if (keep_alive_ == nullptr) KeepAlive();
  CatchUp(id);
}

void Handler::Drop(std::uint64_t id) {
  if (streams_.erase(id) == 0) return;
  backend_.SetViewers(streams_.size());
  if (streams_.empty()) keep_alive_.reset();
}

void Handler::CatchUp(std::uint64_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || !found->second.behind || found->second.asked ||
      found->second.writer->pending_bytes() > 0) {
    return;
  }
  found->second.asked = true;
  backend_.Full(lifetime_.Guard([this, id](Update full) {
    const auto stream = streams_.find(id);
    if (stream == streams_.end()) return;
    stream->second.asked = false;
    stream->second.behind = false;
    stream->second.version = full.version;
    stream->second.writer->Write(full.change);
  }));
}

void Handler::Publish(const Update& update) {
  loop_.AssertInLoop();
  for (auto& [id, stream] : streams_) {
    if (stream.behind) continue;
    if (update.version <= stream.version) continue;
    if (update.change != nullptr && update.version == stream.version + 1 &&
        stream.writer->pending_bytes() == 0) {
      stream.version = update.version;
      stream.writer->Write(update.change);
      continue;
    }
    stream.behind = true;
    CatchUp(id);
  }
}

void Handler::KeepAlive() {
  static const net::Segment kComment = net::MakeSegment(": still here\n\n");
  for (auto& [id, stream] : streams_) {
    if (stream.writer->pending_bytes() == 0) stream.writer->Write(kComment);
  }
  keep_alive_ = loop_.RunAfter(kKeepAlive, [this] { KeepAlive(); });
}

}  // namespace drakkar::dashboard
