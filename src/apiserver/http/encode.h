#pragma once

#include <string>
#include <vector>

#include "apiserver/http/negotiate.h"
#include "apiserver/request/request.h"
#include "net/http/message.h"

namespace drakkar::apiserver {

struct EncodedBody {
  std::string content_type;
  net::Body body;
};

// An object as the client wants it. JSON and protobuf are the object's own bytes, shared.
EncodedBody EncodeObject(const Negotiated& negotiated, const api::ObjectPtr& object);
// A list: its items are the objects' own bytes, one segment each.
EncodedBody EncodeList(const Negotiated& negotiated, const api::KindSchema& kind,
                       const Response& response);
// `continue_token`: how to go on with a list that expired.
EncodedBody EncodeFailure(const Negotiated& negotiated, const Failure& failure,
                          const std::string& continue_token = {});
// A document of discovery, given as its JSON.
EncodedBody EncodeDocument(const Negotiated& negotiated, const net::Segment& json);

// Appends one event of a watch ("ADDED" ...) to `body`: a line of JSON, or a frame with its length
// in front. Everything but the event's head is the object's own bytes. Not for tables.
void AppendEvent(const Negotiated& negotiated, std::string_view type, const api::ObjectPtr& object,
                 net::Body& body);
std::string_view WatchContentType(const Negotiated& negotiated);

// Only type and metadata, as PartialObjectMetadata; made once and kept with the object.
api::ObjectPtr ToPartialMetadata(const api::ObjectPtr& object);

}  // namespace drakkar::apiserver
