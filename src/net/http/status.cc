#include "net/http/status.h"

namespace drakkar::net {
namespace {

struct Row {
  ErrorCode code;
  int status;
};

// The first row with a code gives its status, the first row with a status its code.
constexpr Row kRows[] = {
    {ErrorCode::kInvalidArgument, 400},   {ErrorCode::kUnauthenticated, 401},
    {ErrorCode::kForbidden, 403},         {ErrorCode::kNotFound, 404},
    {ErrorCode::kUnimplemented, 501},     {ErrorCode::kUnimplemented, 405},
    {ErrorCode::kConflict, 409},          {ErrorCode::kAlreadyExists, 409},
    {ErrorCode::kExpired, 410},           {ErrorCode::kFailedPrecondition, 412},
    {ErrorCode::kResourceExhausted, 429}, {ErrorCode::kResourceExhausted, 413},
    {ErrorCode::kInternal, 500},          {ErrorCode::kDataLoss, 500},
    {ErrorCode::kUnavailable, 503},       {ErrorCode::kUnavailable, 502},
    {ErrorCode::kDeadlineExceeded, 504},  {ErrorCode::kDeadlineExceeded, 408},
    {ErrorCode::kCancelled, 499},
};

}  // namespace

int HttpStatusOf(ErrorCode code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row.status;
  }
  return 500;
}

ErrorCode ErrorCodeOf(int status) {
  for (const Row& row : kRows) {
    if (row.status == status) return row.code;
  }
  return status >= 400 && status < 500 ? ErrorCode::kInvalidArgument : ErrorCode::kInternal;
}

std::string_view StatusText(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

}  // namespace drakkar::net
