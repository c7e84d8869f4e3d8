#include "api/anthropic_stream.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json/read_json.h"

namespace linnet::api {
namespace {

const ReplyHead kHead{.id = "msg_1", .created = 0, .model = "tiny"};
const Usage kUsage{.prompt_tokens = 9, .cached_tokens = 4, .completion_tokens = 3};

TextDelta content(std::string text) { return {std::move(text), TextChannel::kContent}; }
TextDelta reasoning(std::string text) { return {std::move(text), TextChannel::kReasoning}; }

// "message_start", "content_block_start 0 text", ...: each event's name equals its type.
std::vector<std::string> outline(const std::string& events) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < events.size();) {
    const std::size_t end = events.find("\n\n", at);
    const std::string event = events.substr(at, end - at);
    at = end + 2;
    const std::size_t data = event.find("\ndata: ");
    const Json json = Json::parse(event.substr(data + 7));
    EXPECT_EQ("event: " + json["type"].get<std::string>(), event.substr(0, data));
    std::string line = json["type"];
    if (json.contains("index")) line += " " + std::to_string(json["index"].get<int>());
    if (json.contains("content_block")) line += " " + json["content_block"]["type"].get<std::string>();
    if (json.contains("delta")) {
      for (const char* name : {"text", "thinking", "stop_reason"}) {
        if (json["delta"].contains(name)) line += " " + json["delta"][name].get<std::string>();
      }
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(AnthropicStream, BlocksInOrder) {
  struct Row {
    std::vector<TextDelta> deltas;
    std::vector<std::string> blocks;
  };
  const Row rows[] = {
      {{}, {"content_block_start 0 text", "content_block_stop 0"}},
      {{content("a"), content("\"b\n")},
       {"content_block_start 0 text", "content_block_delta 0 a", "content_block_delta 0 \"b\n", "content_block_stop 0"}},
      {{reasoning("r"), content("a")},
       {"content_block_start 0 thinking", "content_block_delta 0 r", "content_block_delta 0", "content_block_stop 0",
        "content_block_start 1 text", "content_block_delta 1 a", "content_block_stop 1"}},
      {{reasoning("r")},
       {"content_block_start 0 thinking", "content_block_delta 0 r", "content_block_delta 0", "content_block_stop 0"}},
  };
  for (const Row& row : rows) {
    AnthropicStream stream(kHead, 9);
    stream.begin();
    for (const TextDelta& delta : row.deltas) stream.delta(delta);
    stream.finish({.reason = FinishReason::kStop, .usage = kUsage, .error = {}});
    std::vector<std::string> expected = {"message_start", "ping"};
    expected.insert(expected.end(), row.blocks.begin(), row.blocks.end());
    expected.insert(expected.end(), {"message_delta end_turn", "message_stop"});
    EXPECT_EQ(outline(stream.take()), expected);
    EXPECT_TRUE(stream.empty());
  }
}

TEST(AnthropicStream, UsageAndStopReasons) {
  AnthropicStream stream(kHead, 9);
  stream.begin();
  EXPECT_NE(stream.take().find(
                R"("usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}})"),
            std::string::npos);
  stream.finish({.reason = FinishReason::kStop, .usage = kUsage, .error = {}, .stop_string = "E\""});
  const std::string end = stream.take();
  EXPECT_NE(end.find(R"("delta":{"stop_reason":"stop_sequence","stop_sequence":"E\""})"), std::string::npos) << end;
  EXPECT_NE(
      end.find(R"("usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":3}})"),
      std::string::npos);
  EXPECT_EQ(
      encode_anthropic_reply(kHead, {.finish = {.reason = FinishReason::kLength, .usage = kUsage}}),
      R"({"id":"msg_1","type":"message","role":"assistant","model":"tiny","content":[{"type":"text","text":""}],"stop_reason":"max_tokens","stop_sequence":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":3}})");
}

TEST(AnthropicStream, FailuresAreEventsOfTheirOwn) {
  AnthropicStream stream(kHead, 1);
  stream.fail({ErrorCode::kInternal, "broken", ""});
  EXPECT_EQ(stream.take(),
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"broken\"}}\n\n");
}

}  // namespace
}  // namespace linnet::api
