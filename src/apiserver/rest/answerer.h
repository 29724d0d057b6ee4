#pragma once

#include <vector>

#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// Answers creates of what is never stored: kinds that are questions (access reviews), subresources
// that hand something out (tokens). The request has been authorized; its body is not decoded yet.
class Answerer {
 public:
  virtual ~Answerer() = default;
  // False: this is for somebody else.
  virtual bool Answer(Request& request, Response& response) = 0;
};

// Asks one after the other. They must outlive it.
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
