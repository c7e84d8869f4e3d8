// Rows with a grammar beside rows without, on an executor that takes what the mask allows.
#include "engine/row_grammar.h"

#include <gtest/gtest.h>

#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "engine/engine_rig.h"
#include "text/test_vocabularies.h"

namespace linnet {
namespace {

std::shared_ptr<const Grammar> regex_grammar(const Tokenizer& tokenizer, const std::string& regex) {
  Result<Grammar> grammar = Grammar::compile(tokenizer, GrammarKind::kRegex, regex);
  EXPECT_TRUE(grammar.ok()) << grammar.error().message;
  return std::make_shared<const Grammar>(*std::move(grammar));
}

FakeExecutorOptions fake_of(const Tokenizer& tokenizer) {
  FakeExecutorOptions fake;
  fake.info.vocabulary = tokenizer.vocabulary_size() + 40;  // models have more logits than their tokenizers have tokens
  return fake;
}

Request request_of(const Tokenizer& tokenizer, std::uint64_t seed) {
  return {.prompt = prompt_of(5), .sampling = {.seed = seed}, .max_tokens = 60, .end_tokens = {*tokenizer.eos()}};
}

TEST(RowGrammar, AnswersFitAndOtherRowsDoNotCare) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  FakeExecutorOptions fake = fake_of(tokenizer);
  fake.info.vocabulary = 1000;
  const std::vector<std::string> regexes = {"[ab]{3,5}", "(hello|help) world", "[0-9]{1,3}\\.[0-9]+x", "(a|b)*c"};
  std::vector<Answer> alone;
  for (const bool together : {false, true}) {
    EngineRig rig({}, fake);
    std::vector<RequestHandle> handles;
    std::vector<Answer> answers;
    for (std::size_t index = 0; index < 12; ++index) {
      Request request = request_of(tokenizer, index);
      const bool free = index % 3 == 2;
      if (!free) request.grammar = regex_grammar(tokenizer, regexes[index % regexes.size()]);
      if (!free && index % 2 == 0) request.sampling.logprobs = 1;
      handles.push_back(rig.submit(request));
      if (!together) answers.push_back(rig.read_all(handles.back()));
    }
    for (std::size_t index = 0; index < handles.size() && together; ++index) answers.push_back(rig.read_all(handles[index]));
    for (std::size_t index = 0; index < answers.size(); ++index) {
      if (index % 3 == 2) {
        EXPECT_EQ(answers[index], lone_answer(request_of(tokenizer, index), rig.info()));
        continue;
      }
      const std::string text = tokenizer.decode(answers[index].tokens);
      if (answers[index].finish->reason == FinishReason::kLength) continue;  // (a|b)* may go on
      EXPECT_TRUE(std::regex_match(text, std::regex(regexes[index % regexes.size()]))) << text;
      EXPECT_EQ(answers[index].finish->reason, FinishReason::kStop);
    }
    if (!together) alone = answers;
    EXPECT_EQ(answers, alone);
  }
}

TEST(RowGrammar, NoEndBeforeMinTokensUnlessNothingElseMayCome) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EngineRig rig({}, fake_of(tokenizer));
    Request request = request_of(tokenizer, seed);
    request.sampling.min_tokens = 12;
    request.grammar = regex_grammar(tokenizer, "a*");
    RequestHandle endless = rig.submit(request);
    EXPECT_GE(rig.read_all(endless).tokens.size(), 12U);
    request.grammar = regex_grammar(tokenizer, "ab");
    RequestHandle finite = rig.submit(request);
    const Answer answer = rig.read_all(finite);
    EXPECT_EQ(tokenizer.decode(answer.tokens), "ab");
    EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
  }
}

// Whether or not end tokens end answers: the grammar does.
TEST(RowGrammar, ItsEndIsTheAnswersEnd) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  EngineRig rig({}, fake_of(tokenizer));
  Request request = request_of(tokenizer, 1);
  request.ignore_eos = true;
  request.grammar = regex_grammar(tokenizer, "abc");
  RequestHandle handle = rig.submit(request);
  const Answer answer = rig.read_all(handle);
  EXPECT_EQ(tokenizer.decode(answer.tokens), "abc");
  EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
}

TEST(RowGrammar, EachChoiceGoesItsOwnWay) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  EngineRig rig({}, fake_of(tokenizer));
  Request request = request_of(tokenizer, 4);
  request.choices = 4;
  request.grammar = regex_grammar(tokenizer, "[a-p]{8}");
  std::vector<RequestHandle> handles = rig.submit_choices(request);
  std::vector<std::string> texts;
  for (RequestHandle& handle : handles) texts.push_back(tokenizer.decode(rig.read_all(handle).tokens));
  for (const std::string& text : texts) EXPECT_TRUE(std::regex_match(text, std::regex("[a-p]{8}"))) << text;
  EXPECT_NE(texts[0], texts[1]);
}

// A grammar that cannot go on ends its own row.
TEST(RowGrammar, OneThatFailsEndsItsRowAlone) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  EngineRig rig({}, fake_of(tokenizer));
  Request request = request_of(tokenizer, 2);
  const Answer expected = lone_answer(request, rig.info());
  RequestHandle neighbour = rig.submit(request);
  request.grammar = regex_grammar(tokenizer, "a[^\\x00-\\U0010FFFF]");  // after "a" nothing may come, not even the end
  RequestHandle failing = rig.submit(request);
  const Answer failed = rig.read_all(failing);
  ASSERT_EQ(failed.finish->reason, FinishReason::kError);
  EXPECT_NE(failed.finish->error->message.find("grammar cannot be followed"), std::string::npos) << failed.finish->error->message;
  EXPECT_EQ(rig.read_all(neighbour), expected);
  EXPECT_EQ(rig.engine().stats().requests_failed, 1U);
}

}  // namespace
}  // namespace linnet
