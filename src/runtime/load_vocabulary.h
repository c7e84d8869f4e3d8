// A GGUF file's tokenizer in the words of text/.
#pragma once

#include "linnet/status.h"
#include "text/vocabulary.h"
#include "weights/gguf.h"

namespace linnet {

// Errors: kUnsupported for a kind of tokenizer that is not known, with the known ones; those of read_gguf_vocabulary.
Result<Vocabulary> load_gguf_vocabulary(const GgufFile& file);

}  // namespace linnet
