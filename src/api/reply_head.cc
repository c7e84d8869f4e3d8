#include "api/reply_head.h"

#include "api/json_text.h"

namespace linnet::api {

std::string encode_head(const ReplyHead& head, std::string_view object) {
  return "{\"id\":" + json_string(head.id) + ",\"object\":" + json_string(object) +
         ",\"created\":" + std::to_string(head.created) + ",\"model\":" + json_string(head.model) + ",\"choices\":[";
}

}  // namespace linnet::api
