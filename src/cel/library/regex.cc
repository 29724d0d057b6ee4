#include "cel/library/regex.h"

#include <re2/re2.h>

#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "cel/library/pattern.h"

namespace drakkar::cel::library {
namespace {

using namespace types;  // NOLINT

// Memory limit for a pattern; larger ones are rejected as malformed.
constexpr std::int64_t kMaxProgramBytes = 1 << 20;

// What compiling costs, in steps of the work budget: at least, and for each instruction. A pattern
// that turns out to be too large has been compiled up to the memory limit.
constexpr std::size_t kStepsPerPattern = 30'000;
constexpr std::size_t kStepsPerInstruction = 400;
constexpr std::size_t kStepsPerRejected = 6'000'000;

// RE2 matches in linear time, but if the states of a pattern do not fit its memory, each byte takes
// a few nanoseconds for each instruction. Ordinary patterns have few instructions and states that
// fit. Texts that could take too long with their pattern are refused.
constexpr std::size_t kMaxMatchWork = 20'000'000;  // bytes times instructions
constexpr std::size_t kFewInstructions = 64;
constexpr std::size_t kStepsPerByte = 2;  // with few of them
constexpr std::size_t kSearchesPerRest = 8;
constexpr char kTooMuchWork[] = "regular expression takes too long";
// More than any budget has.
constexpr std::size_t kEverything = std::size_t{1} << 36;
// Of memory: two programs of 16 bytes each, and the states of their automata.
constexpr std::size_t kBytesPerInstruction = 64;

re2::StringPiece Piece(std::string_view text) {
  return {text.data(), text.size()};
}

std::unique_ptr<re2::RE2> CompileAny(std::string_view pattern) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(kMaxProgramBytes);
  auto regex = std::make_unique<re2::RE2>(Piece(pattern), options);
  WorkBudget::Charge(kStepsPerPattern +
                     (regex->ok()
                          ? kStepsPerInstruction * static_cast<std::size_t>(regex->ProgramSize())
                      : regex->error_code() == re2::RE2::ErrorPatternTooLarge ? kStepsPerRejected
                                                                              : pattern.size()));
  return regex;
}

// Null if it is malformed, or if there is no time left for it.
std::unique_ptr<re2::RE2> Compile(std::string_view pattern) {
  if (WorkBudget::IsExceeded()) return nullptr;
  std::unique_ptr<re2::RE2> regex = CompileAny(pattern);
  return regex->ok() ? std::move(regex) : nullptr;
}

Value Malformed(CallContext& c, std::string_view pattern) {
  if (WorkBudget::IsExceeded()) return NewError(c.arena, kTooMuchWork);
  return NewError(
      c.arena, StrCat("error parsing regexp: ", CompileAny(pattern)->error(), ": `", pattern, "`"));
}

// Charges a search of so many bytes to the work budget. False if there is no time for it.
bool Spend(const re2::RE2& regex, std::size_t bytes) {
  const auto instructions = static_cast<std::size_t>(regex.ProgramSize());
  const std::size_t work =
      bytes * (instructions <= kFewInstructions ? kStepsPerByte : instructions);
  WorkBudget::Charge(work > kMaxMatchWork ? kEverything : work);
  return work <= kMaxMatchWork && !WorkBudget::IsExceeded();
}

Value Matches(CallContext& c, const re2::RE2& regex, std::string_view text) {
  if (!Spend(regex, text.size())) return NewError(c.arena, kTooMuchWork);
  return MakeBool(re2::RE2::PartialMatch(Piece(text), regex));
}

Value FindFirst(CallContext& c, const re2::RE2& regex, std::string_view text) {
  if (!Spend(regex, text.size())) return NewError(c.arena, kTooMuchWork);
  re2::StringPiece found;
  if (!regex.Match(Piece(text), 0, text.size(), re2::RE2::UNANCHORED, &found, 1))
    return MakeString("");
  return MakeString({found.data(), found.size()});
}

Value FindEvery(CallContext& c, const re2::RE2& regex, std::string_view text, std::int64_t limit) {
  std::vector<Value> matches;
  std::size_t at = 0;
  bool after_match = false;
  while (at <= text.size() && (limit < 0 || static_cast<std::int64_t>(matches.size()) < limit)) {
    // A search may look at the whole rest, whatever it finds, but few do.
    if (!Spend(regex, (text.size() - at) / kSearchesPerRest + 1))
      return NewError(c.arena, kTooMuchWork);
    re2::StringPiece found;
    if (!regex.Match(Piece(text), at, text.size(), re2::RE2::UNANCHORED, &found, 1)) break;
    const auto begin = static_cast<std::size_t>(found.data() - text.data());
    const std::size_t end = begin + found.size();
    // An empty match directly after a match does not count.
    if (!(found.empty() && after_match && begin == at))
      matches.push_back(MakeString({found.data(), found.size()}));
    after_match = true;
    if (found.empty()) {
      at = end + 1;
      while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
      after_match = false;
    } else {
      at = end;
    }
  }
  return NewList(c.arena, matches.data(), matches.size());
}

enum class Operation { kMatches, kFind, kFindAll };

template <Operation operation>
Value Apply(CallContext& c, const re2::RE2& regex, Args args) {
  if constexpr (operation == Operation::kMatches) return Matches(c, regex, args[0].text());
  if constexpr (operation == Operation::kFind) return FindFirst(c, regex, args[0].text());
  const std::int64_t limit = args.size() == 3 ? args[2].integer : -1;
  return FindEvery(c, regex, args[0].text(), limit);
}

template <Operation operation>
Value Run(CallContext& c, Args args) {
  if (args[0].kind != Kind::kString || args[1].kind != Kind::kString) return NoSuchOverload(c);
  const std::unique_ptr<re2::RE2> regex = Compile(args[1].text());
  if (regex == nullptr) return Malformed(c, args[1].text());
  return Apply<operation>(c, *regex, args);
}

template <Operation operation>
class PreparedRegex final : public PreparedCall {
 public:
  explicit PreparedRegex(std::unique_ptr<re2::RE2> regex) : regex_(std::move(regex)) {}
  Value Call(CallContext& c, Args args) const override {
    if (args[0].kind != Kind::kString) return NoSuchOverload(c);
    return Apply<operation>(c, *regex_, args);
  }

 private:
  std::unique_ptr<re2::RE2> regex_;
};

template <Operation operation>
std::unique_ptr<PreparedCall> PrepareRegex(std::span<const Value* const> constants) {
  if (constants.size() < 2 || constants[1] == nullptr || constants[1]->kind != Kind::kString)
    return nullptr;
  std::unique_ptr<re2::RE2> regex = Compile(constants[1]->text());
  if (regex == nullptr) return nullptr;
  return std::make_unique<PreparedRegex<operation>>(std::move(regex));
}

}  // namespace

Value MatchesRegex(CallContext& context, Args args) {
  return Run<Operation::kMatches>(context, args);
}
std::unique_ptr<PreparedCall> PrepareMatches(std::span<const Value* const> constants) {
  return PrepareRegex<Operation::kMatches>(constants);
}
namespace {

class Re2Pattern final : public Pattern {
 public:
  explicit Re2Pattern(std::unique_ptr<re2::RE2> regex) : regex_(std::move(regex)) {}
  std::optional<bool> Matches(std::string_view text) const override {
    if (!Spend(*regex_, text.size())) return std::nullopt;
    return re2::RE2::PartialMatch(Piece(text), *regex_);
  }
  std::size_t size_bytes() const override {
    return kBytesPerInstruction * static_cast<std::size_t>(regex_->ProgramSize());
  }

 private:
  const std::unique_ptr<re2::RE2> regex_;
};

}  // namespace

std::unique_ptr<Pattern> Pattern::Compile(std::string_view text, std::string* why) {
  if (WorkBudget::IsExceeded()) {
    if (why != nullptr) *why = kTooMuchWork;
    return nullptr;
  }
  std::unique_ptr<re2::RE2> regex = CompileAny(text);
  if (regex->ok()) return std::make_unique<Re2Pattern>(std::move(regex));
  if (why != nullptr) *why = StrCat("error parsing regexp: ", regex->error(), ": `", text, "`");
  return nullptr;
}

bool IsValidRegex(std::string_view pattern) {
  return Pattern::Compile(pattern) != nullptr;
}

void AddRegex(Declarations& d) {
  Member(d, "find", "string_find_string", {String(), String()}, String(), Run<Operation::kFind>,
         PrepareRegex<Operation::kFind>);
  Member(d, "findAll", "string_find_all_string", {String(), String()}, List(String()),
         Run<Operation::kFindAll>, PrepareRegex<Operation::kFindAll>);
  Member(d, "findAll", "string_find_all_string_int", {String(), String(), Int()}, List(String()),
         Run<Operation::kFindAll>, PrepareRegex<Operation::kFindAll>);
}

}  // namespace drakkar::cel::library
