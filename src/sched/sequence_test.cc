#include "sched/sequence.h"

#include <gtest/gtest.h>

#include <vector>

namespace linnet {
namespace {

std::vector<TokenId> prompt_of(int count) { return std::vector<TokenId>(static_cast<std::size_t>(count), TokenId{7}); }

TEST(Sequence, GrowsFromPromptToLimit) {
  Sequence sequence(SequenceId{1}, prompt_of(5), 7);
  EXPECT_EQ(sequence.known(), 5);
  EXPECT_EQ(sequence.uncomputed(), 5);
  EXPECT_FALSE(sequence.decoding());
  sequence.advance(4, 1);
  EXPECT_EQ(sequence.uncomputed(), 1);
  EXPECT_FALSE(sequence.decoding());  // the prompt's last token
  sequence.advance(1, 2);
  sequence.append(TokenId{9});
  EXPECT_TRUE(sequence.decoding());
  EXPECT_EQ(sequence.generated(), 1);
  EXPECT_EQ(sequence.computed(), 5);
  EXPECT_EQ(sequence.last_step(), 2U);
  sequence.advance(1, 3);
  sequence.append(TokenId{9});
  EXPECT_TRUE(sequence.at_limit());
}

TEST(SequenceDeathTest, LengthsStayInOrder) {
  EXPECT_DEATH(Sequence(SequenceId{1}, {}, 7), "CHECK");
  EXPECT_DEATH(Sequence(SequenceId{1}, prompt_of(5), 4), "CHECK");
  Sequence sequence(SequenceId{1}, prompt_of(2), 3);
  EXPECT_DEATH(sequence.advance(3, 1), "CHECK");
  EXPECT_DEATH(sequence.advance(0, 1), "CHECK");
  sequence.advance(2, 1);
  EXPECT_DEATH(sequence.advance(1, 1), "CHECK");
  sequence.append(TokenId{9});
  EXPECT_DEATH(sequence.append(TokenId{9}), "CHECK");
}

}  // namespace
}  // namespace linnet
