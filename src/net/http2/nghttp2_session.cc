#include "net/http2/nghttp2_session.h"

#include "base/text/text.h"

namespace drakkar::net::http2 {

struct Nghttp2Session::Callbacks {
  static Nghttp2Session& Self(void* user) { return *static_cast<Nghttp2Session*>(user); }

  static ssize_t OnSend(nghttp2_session*, const std::uint8_t* data, std::size_t length, int,
                        void* user) {
    Nghttp2Session& self = Self(user);
    if (self.out_->size() >= self.out_limit_) return NGHTTP2_ERR_WOULDBLOCK;
    self.out_->append(reinterpret_cast<const char*>(data), length);
    return static_cast<ssize_t>(length);
  }

  static int OnSendData(nghttp2_session*, nghttp2_frame*, const std::uint8_t* frame_head,
                        std::size_t length, nghttp2_data_source* source, void* user) {
    Nghttp2Session& self = Self(user);
    if (self.out_->size() >= self.out_limit_) return NGHTTP2_ERR_WOULDBLOCK;
    auto& stream = *static_cast<Stream*>(source->ptr);
    self.out_->append(reinterpret_cast<const char*>(frame_head), 9);
    const std::size_t moved = stream.out.Pop(*self.out_, length);
    CHECK(moved == length);
    return 0;
  }

  static ssize_t OnRead(nghttp2_session* session, std::int32_t id, std::uint8_t*,
                        std::size_t length, std::uint32_t* flags, nghttp2_data_source* source,
                        void*) {
    auto& stream = *static_cast<Stream*>(source->ptr);
    const std::size_t pending = stream.out.bytes();
    if (pending == 0 && !stream.out_final) {
      stream.deferred = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    const std::size_t part = std::min(length, pending);
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (part == pending && stream.out_final) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (stream.trailers) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        const FieldList fields(*stream.trailers);
        nghttp2_submit_trailer(session, id, fields.data(), fields.size());
      }
    }
    return static_cast<ssize_t>(part);
  }

  static int OnFrameSent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    Stream* stream = Self(user).Find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS) Self(user).OnHeadSent(*stream);
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) Self(user).OnLocalEnd(*stream);
    return 0;
  }

  static int OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* head, void* user) {
    Self(user).OnFrameBegin(*head);
    return 0;
  }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      Self(user).Open(frame->hd.stream_id);
    }
    return 0;
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_length, const std::uint8_t* value, std::size_t value_length,
                      std::uint8_t, void* user) {
    Stream* stream = Self(user).Find(frame->hd.stream_id);
    if (!stream) return 0;
    Self(user).OnHeader(*stream, std::string_view(reinterpret_cast<const char*>(name), name_length),
                        std::string_view(reinterpret_cast<const char*>(value), value_length),
                        stream->head_done);
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Nghttp2Session& self = Self(user);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      self.OnGoaway(frame->goaway.last_stream_id);
      return 0;
    }
    if (frame->hd.type == NGHTTP2_SETTINGS) {
      if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) self.OnSettings();
      return 0;
    }
    Stream* stream = self.Find(frame->hd.stream_id);
    if (!stream) return 0;
    const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_HEADERS) {
      if (!stream->head_done) self.OnHeadersDone(*stream, end);
    } else if (frame->hd.type == NGHTTP2_RST_STREAM) {
      self.OnPeerReset(*stream);
    } else if (frame->hd.type != NGHTTP2_DATA) {
      return 0;
    }
    // The event above may have closed the stream.
    if (end && (stream = self.Find(frame->hd.stream_id)) != nullptr && !stream->remote_done) {
      stream->remote_done = true;
      self.OnRemoteEnd(*stream);
    }
    return 0;
  }

  static int OnData(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                    std::size_t length, void* user) {
    Stream* stream = Self(user).Find(id);
    if (stream) {
      Self(user).OnBody(*stream, std::string_view(reinterpret_cast<const char*>(data), length));
    }
    return 0;
  }

  static int OnStreamClose(nghttp2_session*, std::int32_t id, std::uint32_t error_code,
                           void* user) {
    Nghttp2Session& self = Self(user);
    auto found = self.streams_.find(id);
    if (found == self.streams_.end()) return 0;
    std::unique_ptr<Stream> stream = std::move(found->second);
    self.streams_.erase(found);
    self.OnClose(*stream, error_code);
    return 0;
  }
};

Nghttp2Session::~Nghttp2Session() {
  nghttp2_session_del(session_);
}

void Nghttp2Session::Init(Side side, const SessionLimits& limits,
                          std::vector<nghttp2_settings_entry> settings,
                          std::int32_t connection_window, Windows windows) {
  static nghttp2_session_callbacks* const kCallbacks = [] {
    nghttp2_session_callbacks* made = nullptr;
    CHECK(nghttp2_session_callbacks_new(&made) == 0);
    nghttp2_session_callbacks_set_send_callback(made, &Callbacks::OnSend);
    nghttp2_session_callbacks_set_send_data_callback(made, &Callbacks::OnSendData);
    nghttp2_session_callbacks_set_on_begin_headers_callback(made, &Callbacks::OnBeginHeaders);
    nghttp2_session_callbacks_set_on_begin_frame_callback(made, &Callbacks::OnBeginFrame);
    nghttp2_session_callbacks_set_on_header_callback(made, &Callbacks::OnHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, &Callbacks::OnFrame);
    nghttp2_session_callbacks_set_on_frame_send_callback(made, &Callbacks::OnFrameSent);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, &Callbacks::OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, &Callbacks::OnStreamClose);
    return made;
  }();
  nghttp2_option* option = nullptr;
  CHECK(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_max_send_header_block_length(option, 256 * 1024);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_peer_max_concurrent_streams(option, 100);
  if (windows == Windows::kManual) nghttp2_option_set_no_auto_window_update(option, 1);
  if (side == Side::kServer) {
    CHECK(nghttp2_session_server_new2(&session_, kCallbacks, this, option) == 0);
  } else {
    CHECK(nghttp2_session_client_new2(&session_, kCallbacks, this, option) == 0);
  }
  nghttp2_option_del(option);
  settings.push_back(
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits.max_header_bytes)});
  CHECK(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) ==
        0);
  CHECK(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, connection_window) ==
        0);
}

Result<void> Nghttp2Session::ReceiveBytes(std::string_view bytes) {
  const ssize_t taken = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (taken < 0) {
    broken_ = true;
    return InvalidArgument(
        StrCat("HTTP/2 protocol error: ", nghttp2_strerror(static_cast<int>(taken))));
  }
  if (broken_) return Error{ErrorCode::kResourceExhausted, broken_why_};
  return Ok();
}

void Nghttp2Session::SendBytes(std::string& out, std::size_t limit) {
  out_ = &out;
  out_limit_ = limit;
  const int code = nghttp2_session_send(session_);
  out_ = nullptr;
  if (code != 0) broken_ = true;
}

Nghttp2Session::Stream* Nghttp2Session::Find(StreamId id) const {
  auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

Nghttp2Session::Stream& Nghttp2Session::Open(StreamId id) {
  auto& stream = streams_[id];
  if (!stream) stream = std::make_unique<Stream>();
  stream->id = id;
  return *stream;
}

void Nghttp2Session::Resume(Stream& stream) {
  if (!stream.deferred) return;
  stream.deferred = false;
  nghttp2_session_resume_data(session_, stream.id);
}

void Nghttp2Session::ResetStream(StreamId id, std::uint32_t error_code) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, error_code);
}

nghttp2_data_provider Nghttp2Session::Provider(Stream& stream) {
  nghttp2_data_provider provider;
  provider.source.ptr = &stream;
  provider.read_callback = &Callbacks::OnRead;
  return provider;
}

FieldList::FieldList(const Headers& headers, bool skip_host) {
  std::size_t name_bytes = 0;
  for (const auto& [name, value] : headers) name_bytes += name.size();
  names_.reserve(name_bytes);
  pairs_.reserve(headers.size() + 5);  // plus pseudo fields and a length
  for (const auto& [name, value] : headers) {
    if (!IsToken(name) || IsConnectionHeader(name)) continue;
    if (skip_host && EqualsIgnoreCase(name, "host")) continue;
    const std::size_t begin = names_.size();
    for (char c : name) names_ += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    std::string_view shown = value;
    if (!IsHeaderValue(value)) shown = cleaned_.emplace_back(CleanHeaderValue(value));
    pairs_.push_back(Pair(std::string_view(names_).substr(begin), shown));
  }
}

void FieldList::AddPseudo(std::string_view name, std::string_view value) {
  pairs_.insert(pairs_.begin() + static_cast<std::ptrdiff_t>(pseudo_++), Pair(name, value));
}

nghttp2_nv FieldList::Pair(std::string_view name, std::string_view value) {
  nghttp2_nv pair;
  pair.name = reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data()));
  pair.value = reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data()));
  pair.namelen = name.size();
  pair.valuelen = value.size();
  pair.flags = name == "authorization" ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
  return pair;
}

}  // namespace drakkar::net::http2
