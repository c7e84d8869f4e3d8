// Small vocabularies for the tests of this folder, one of each kind.
#pragma once

#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace linnet::test {

// Characters of the byte alphabet, by byte.
std::vector<std::string> byte_alphabet();

// <|end|> (0, control, eos), <|start|> (1, control, bos), <tool> (2, user-defined), every byte (3..258), then "he", "ll", "hell",
// "hello", "Ġw", "Ġwor", "ld", "Ġworld" and their parts.
Vocabulary byte_level_vocabulary();

// <unk> 0, <s> 1, </s> 2, <0x00>.. 3..258, then pieces with scores: spaces, letters, "▁hello", "▁world", runs of user-defined
// spaces.
Vocabulary sentence_piece_vocabulary();

Tokenizer byte_level_tokenizer();
Tokenizer sentence_piece_tokenizer();

}  // namespace linnet::test
