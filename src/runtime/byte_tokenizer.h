// A tokenizer for tests: one token for each byte, so that a script of bytes is a script of tokens.
#pragma once

#include "text/tokenizer.h"

namespace linnet {

// Ids 0 to 255 are the bytes; 256 is the control token <end>, which is EOS; 257 is "th".
Tokenizer byte_tokenizer();

}  // namespace linnet
