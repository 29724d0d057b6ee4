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

// An object in the requested form. JSON and protobuf share the object's own bytes.
EncodedBody EncodeObject(const Negotiated& negotiated, const api::ObjectPtr& object);
// A list. Items share the objects' own bytes, one segment each.
EncodedBody EncodeList(const Negotiated& negotiated, const api::KindSchema& kind,
                       const Response& response);
// `continue_token` lets the client continue a list that expired.
EncodedBody EncodeFailure(const Negotiated& negotiated, const Failure& failure,
                          const std::string& continue_token = {});
// A discovery document, given as JSON.
EncodedBody EncodeDocument(const Negotiated& negotiated, const net::Segment& json);

// Appends one watch event ("ADDED" ...) to `body`: a line of JSON, or a frame prefixed with its
// length. All but the event's header shares the object's own bytes. Not for tables.
void AppendEvent(const Negotiated& negotiated, std::string_view type, const api::ObjectPtr& object,
                 net::Body& body);
std::string_view WatchContentType(const Negotiated& negotiated);

// Only type and metadata, as PartialObjectMetadata; built once and kept with the object.
api::ObjectPtr ToPartialMetadata(const api::ObjectPtr& object);

}  // namespace drakkar::apiserver
