#include "apiserver/policy/authorizer_library.h"

#include <memory>

#include "api/meta/names.h"
#include "base/text/text.h"
#include "cel/library/library.h"

namespace drakkar::apiserver {
namespace {

using cel::Arena;
using cel::CallContext;
using cel::MakeBool;
using cel::MakeObject;
using cel::NewError;
using cel::NewString;
using cel::ObjectValue;
using cel::TypeRef;
using cel::Value;
using cel::library::Args;

// The subject of the questions, and who answers them.
struct Subject {
  PolicyAuthorizer* authorizer;
  std::shared_ptr<const UserInfo> user;
};

// Values of these types are never equal to others.
class AuthorizerValue final : public ObjectValue {
 public:
  static constexpr std::string_view kTypeName = "kubernetes.authorization.Authorizer";
  explicit AuthorizerValue(Subject of) : ObjectValue(&kTypeName), subject(std::move(of)) {}
  bool Equals(const ObjectValue& other) const override { return this == &other; }
  Subject subject;
};

class PathCheckValue final : public ObjectValue {
 public:
  static constexpr std::string_view kTypeName = "kubernetes.authorization.PathCheck";
  PathCheckValue(Subject of, std::string_view asked)
      : ObjectValue(&kTypeName), subject(std::move(of)), path(asked) {}
  bool Equals(const ObjectValue& other) const override { return this == &other; }
  Subject subject;
  std::string path;
};

class GroupCheckValue final : public ObjectValue {
 public:
  static constexpr std::string_view kTypeName = "kubernetes.authorization.GroupCheck";
  GroupCheckValue(Subject of, std::string_view asked)
      : ObjectValue(&kTypeName), subject(std::move(of)), group(asked) {}
  bool Equals(const ObjectValue& other) const override { return this == &other; }
  Subject subject;
  std::string group;
};

class ResourceCheckValue final : public ObjectValue {
 public:
  static constexpr std::string_view kTypeName = "kubernetes.authorization.ResourceCheck";
  ResourceCheckValue(Subject of, PolicyAuthorizer::ResourceQuestion asked)
      : ObjectValue(&kTypeName), subject(std::move(of)), question(std::move(asked)) {}
  bool Equals(const ObjectValue& other) const override { return this == &other; }
  Subject subject;
  PolicyAuthorizer::ResourceQuestion question;
};

class DecisionValue final : public ObjectValue {
 public:
  static constexpr std::string_view kTypeName = "kubernetes.authorization.Decision";
  explicit DecisionValue(Decision made) : ObjectValue(&kTypeName), decision(std::move(made)) {}
  bool Equals(const ObjectValue& other) const override { return this == &other; }
  Decision decision;
};

template <typename T>
TypeRef TypeOf() {
  static const TypeRef type = cel::types::Object(cel::TypeKind::kStruct, T::kTypeName);
  return type;
}

template <typename T>
const T& As(const Value& value) {
  return *static_cast<const T*>(value.object);
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

Value Path(CallContext& c, Args args) {
  if (IsBlank(args[1].text())) return NewError(c.arena, "path must not be empty");
  return MakeObject(
      c.arena.New<PathCheckValue>(As<AuthorizerValue>(args[0]).subject, args[1].text()));
}

Value Group(CallContext& c, Args args) {
  return MakeObject(
      c.arena.New<GroupCheckValue>(As<AuthorizerValue>(args[0]).subject, args[1].text()));
}

Value ServiceAccount(CallContext& c, Args args) {
  const std::string_view namespace_ = args[1].text();
  const std::string_view name = args[2].text();
  if (!api::CheckDnsSubdomain(name).empty()) {
    return NewError(c.arena, "Invalid service account name");
  }
  if (!api::CheckDnsLabel(namespace_).empty()) {
    return NewError(c.arena, "Invalid service account namespace");
  }
  auto user = std::make_shared<UserInfo>();
  user->name = StrCat("system:serviceaccount:", namespace_, ":", name);
  user->groups = {"system:serviceaccounts", StrCat("system:serviceaccounts:", namespace_)};
  return MakeObject(c.arena.New<AuthorizerValue>(
      Subject{As<AuthorizerValue>(args[0]).subject.authorizer, std::move(user)}));
}

Value Resource(CallContext& c, Args args) {
  if (IsBlank(args[1].text())) return NewError(c.arena, "resource must not be empty");
  const GroupCheckValue& group = As<GroupCheckValue>(args[0]);
  return MakeObject(c.arena.New<ResourceCheckValue>(
      group.subject, PolicyAuthorizer::ResourceQuestion{.group = group.group,
                                                        .resource = std::string(args[1].text())}));
}

template <std::string PolicyAuthorizer::ResourceQuestion::*kMember>
Value With(CallContext& c, Args args) {
  const ResourceCheckValue& check = As<ResourceCheckValue>(args[0]);
  PolicyAuthorizer::ResourceQuestion question = check.question;
  question.*kMember = std::string(args[1].text());
  return MakeObject(c.arena.New<ResourceCheckValue>(check.subject, std::move(question)));
}

// The authorizers do not look at label selectors.
Value LabelSelector(CallContext& c, Args args) {
  const ResourceCheckValue& check = As<ResourceCheckValue>(args[0]);
  return MakeObject(c.arena.New<ResourceCheckValue>(check.subject, check.question));
}

Value CheckPath(CallContext& c, Args args) {
  const PathCheckValue& check = As<PathCheckValue>(args[0]);
  check.subject.authorizer->CountQuestion();
  return MakeObject(c.arena.New<DecisionValue>(
      check.subject.authorizer->CheckPath(*check.subject.user, check.path, args[1].text())));
}

Value CheckResource(CallContext& c, Args args) {
  const ResourceCheckValue& check = As<ResourceCheckValue>(args[0]);
  check.subject.authorizer->CountQuestion();
  return MakeObject(c.arena.New<DecisionValue>(check.subject.authorizer->CheckResource(
      *check.subject.user, check.question, args[1].text())));
}

// Our authorizers always come to a decision.
Value Errored(CallContext&, Args) {
  return MakeBool(false);
}
Value ErrorText(CallContext&, Args) {
  return cel::MakeString("");
}
Value Allowed(CallContext&, Args args) {
  return MakeBool(As<DecisionValue>(args[0]).decision.allowed);
}
Value Reason(CallContext& c, Args args) {
  return NewString(c.arena, As<DecisionValue>(args[0]).decision.reason);
}

}  // namespace

TypeRef AuthorizerType() {
  return TypeOf<AuthorizerValue>();
}
TypeRef ResourceCheckType() {
  return TypeOf<ResourceCheckValue>();
}

void AddAuthorizerLibrary(cel::Declarations& d) {
  using cel::library::Member;
  using Question = PolicyAuthorizer::ResourceQuestion;
  const TypeRef text = cel::types::String();
  const TypeRef authorizer = TypeOf<AuthorizerValue>();
  const TypeRef path = TypeOf<PathCheckValue>();
  const TypeRef group = TypeOf<GroupCheckValue>();
  const TypeRef resource = TypeOf<ResourceCheckValue>();
  const TypeRef decision = TypeOf<DecisionValue>();
  for (const TypeRef& type : {authorizer, path, group, resource, decision}) d.AddTypeName(type);
  Member(d, "path", "authorizer_path", {authorizer, text}, path, Path);
  Member(d, "group", "authorizer_group", {authorizer, text}, group, Group);
  Member(d, "serviceAccount", "authorizer_serviceaccount", {authorizer, text, text}, authorizer,
         ServiceAccount);
  Member(d, "resource", "groupcheck_resource", {group, text}, resource, Resource);
  Member(d, "subresource", "resourcecheck_subresource", {resource, text}, resource,
         With<&Question::subresource>);
  Member(d, "namespace", "resourcecheck_namespace", {resource, text}, resource,
         With<&Question::namespace_>);
  Member(d, "name", "resourcecheck_name", {resource, text}, resource, With<&Question::name>);
  Member(d, "fieldSelector", "authorizer_fieldselector", {resource, text}, resource,
         With<&Question::field_selector>);
  Member(d, "labelSelector", "authorizer_labelselector", {resource, text}, resource, LabelSelector);
  Member(d, "check", "pathcheck_check", {path, text}, decision, CheckPath);
  Member(d, "check", "resourcecheck_check", {resource, text}, decision, CheckResource);
  Member(d, "errored", "decision_errored", {decision}, cel::types::Bool(), Errored);
  Member(d, "error", "decision_error", {decision}, text, ErrorText);
  Member(d, "allowed", "decision_allowed", {decision}, cel::types::Bool(), Allowed);
  Member(d, "reason", "decision_reason", {decision}, text, Reason);
}

Value NewAuthorizerValue(Arena& arena, PolicyAuthorizer& authorizer, const UserInfo& user) {
  return MakeObject(arena.New<AuthorizerValue>(
      Subject{&authorizer, std::shared_ptr<const UserInfo>(std::shared_ptr<void>(), &user)}));
}

Value NewResourceCheckValue(Arena& arena, PolicyAuthorizer& authorizer, const UserInfo& user,
                            PolicyAuthorizer::ResourceQuestion question) {
  return MakeObject(arena.New<ResourceCheckValue>(
      Subject{&authorizer, std::shared_ptr<const UserInfo>(std::shared_ptr<void>(), &user)},
      std::move(question)));
}

}  // namespace drakkar::apiserver
