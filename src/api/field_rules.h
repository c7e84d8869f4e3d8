// Fields that are neither read nor unknown: those whose effect is not offered, and those without effect on the answer.
#pragma once

#include "api/object_reader.h"
#include "linnet/status.h"

namespace linnet::api {

// Error (kUnsupported) for the first field that would change the answer in a way that is not offered; a value that changes
// nothing (best_of = 1, no tools) is accepted. Fields without effect are accepted whatever they hold. What `reader`
// knows already is its protocol's own affair. Afterwards it knows them all.
Status check_field_rules(ObjectReader& reader);

}  // namespace linnet::api
