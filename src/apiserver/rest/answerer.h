#pragma once

#include <vector>

#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// Answers creates of kinds that are never stored: reviews, and subresources that issue something
// (tokens). The request has been authorized; its body has not been decoded.
class Answerer {
 public:
  virtual ~Answerer() = default;
  // False if this request is for another answerer.
  virtual bool Answer(Request& request, Response& response) = 0;
};

// Asks its members in order. They must outlive it.
class AnswererList final : public Answerer {
 public:
  void Add(Answerer& answerer) { answerers_.push_back(&answerer); }
  bool Answer(Request& request, Response& response) override {
    for (Answerer* each : answerers_) {
      if (each->Answer(request, response)) return true;
    }
    return false;
  }

 private:
  std::vector<Answerer*> answerers_;
};

}  // namespace drakkar::apiserver
