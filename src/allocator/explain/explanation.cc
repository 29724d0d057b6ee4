#include "allocator/explain/explanation.h"

#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

// Prints a tree: each line knows which of its ancestors have siblings below them.
class Tree {
 public:
  void Line(std::string_view text, bool last) {
    for (const bool open : open_) text_ += open ? "│  " : "   ";
    text_ += last ? "└─ " : "├─ ";
    text_ += text;
    text_ += '\n';
  }
  void Enter(bool last) { open_.push_back(!last); }
  void Leave() { open_.pop_back(); }
  void Root(std::string_view text) { text_ += StrCat(text, "\n"); }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  std::vector<bool> open_;
};

std::size_t DeviceCount(const RequestExplanation& request) {
  std::size_t count = request.candidates;
  for (const Refusal& refusal : request.refusals) count += refusal.count;
  return count;
}

std::string Describe(const RequestExplanation& request) {
  const std::string wanted = request.wants_all ? "all" : std::to_string(request.wanted);
  return StrCat("request ", request.name, " wants ", wanted, ", ", request.candidates, " of ",
                DeviceCount(request), " devices left");
}

std::string Describe(const Refusal& refusal) {
  std::string text = StrCat(refusal.count, " ", RuleSentence(refusal.rule));
  std::vector<std::string> examples;
  for (const device::DeviceId& id : refusal.examples) examples.push_back(id.ToString());
  if (!examples.empty()) text += StrCat(" (e.g. ", Join(examples, ", "), ")");
  return text;
}

void Render(Tree& tree, const RequestExplanation& request, bool last) {
  tree.Line(Describe(request), last);
  tree.Enter(last);
  for (std::size_t i = 0; i < request.refusals.size(); ++i) {
    tree.Line(Describe(request.refusals[i]), i + 1 == request.refusals.size());
  }
  tree.Leave();
}

// Used if ignoring one rule does not help. Names a request for more devices than exist.
std::string WithoutClosest(const Explanation& explanation) {
  for (const ClaimExplanation& claim : explanation.claims) {
    for (const RequestExplanation& request : claim.requests) {
      const std::size_t there = DeviceCount(request);
      if (request.wants_all || request.wanted <= there) continue;
      return StrCat("only ", there, " devices exist: request ", there, " or fewer in request ",
                    request.name, " of claim ", claim.name, ", or use another node");
    }
  }
  return "no single rule is in the way";
}

}  // namespace

std::string RenderText(const Explanation& explanation) {
  Tree tree;
  const std::string_view verdict = explanation.fits            ? "fits"
                                   : explanation.out_of_budget ? "the search ran out of budget"
                                                               : "does not fit";
  tree.Root(StrCat("node ", explanation.node, ": ", verdict));
  const bool has_closest = !explanation.fits && !explanation.claims.empty();
  std::size_t left = explanation.claims.size() + explanation.pools.size() + (has_closest ? 1 : 0);
  for (const ClaimExplanation& claim : explanation.claims) {
    const bool last = --left == 0;
    tree.Line(StrCat("claim ", claim.name), last);
    tree.Enter(last);
    for (std::size_t i = 0; i < claim.requests.size(); ++i) {
      Render(tree, claim.requests[i], i + 1 == claim.requests.size());
    }
    tree.Leave();
  }
  for (const PoolProblem& pool : explanation.pools) {
    tree.Line(StrCat("pool ", pool.pool.ToString(),
                     pool.invalid ? " is invalid: " : " is incomplete: ", pool.reason),
              --left == 0);
  }
  if (has_closest) {
    std::vector<std::string_view> rules;
    std::vector<std::string_view> remedies;
    for (const ClosestMiss& miss : explanation.closest) {
      rules.push_back(RuleSentence(miss.rule));
      remedies.insert(remedies.end(), miss.remedies.begin(), miss.remedies.end());
    }
    tree.Line(rules.empty() ? WithoutClosest(explanation)
                            : StrCat("would fit but for: ", Join(rules, "; or: ")),
              true);
    tree.Enter(true);
    for (std::size_t i = 0; i < remedies.size(); ++i) {
      tree.Line(StrCat(i == 0 ? "change " : "or ", remedies[i]), i + 1 == remedies.size());
    }
    tree.Leave();
  }
  return tree.Take();
}

}  // namespace drakkar::allocator
