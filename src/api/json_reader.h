// JSON of requests, in the words of api/.
#pragma once

#include "json/read_json.h"

namespace linnet::api {

using linnet::Json;
using linnet::JsonLimits;
using linnet::read_json;

}  // namespace linnet::api
