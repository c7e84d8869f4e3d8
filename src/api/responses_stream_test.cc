#include "api/responses_stream.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json/read_json.h"

namespace linnet::api {
namespace {

const ReplyHead kHead{.id = "resp_1", .created = 5, .model = "tiny"};
const Usage kUsage{.prompt_tokens = 9, .cached_tokens = 4, .completion_tokens = 3, .reasoning_tokens = 2};

TextDelta content(std::string text) { return {std::move(text), TextChannel::kContent}; }
TextDelta reasoning(std::string text) { return {std::move(text), TextChannel::kReasoning}; }

// The events' data; names equal types, sequence numbers count.
std::vector<Json> events_of(const std::string& stream) {
  std::vector<Json> events;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t end = stream.find("\n\n", at);
    const std::string event = stream.substr(at, end - at);
    at = end + 2;
    const std::size_t data = event.find("\ndata: ");
    events.push_back(Json::parse(event.substr(data + 7)));
    EXPECT_EQ("event: " + events.back()["type"].get<std::string>(), event.substr(0, data));
    EXPECT_EQ(events.back()["sequence_number"], events.size() - 1);
  }
  return events;
}

std::vector<std::string> types_of(const std::vector<Json>& events) {
  std::vector<std::string> types;
  for (const Json& event : events) types.push_back(event["type"].get<std::string>().substr(9));
  return types;
}

std::vector<Json> streamed(const std::vector<TextDelta>& deltas, FinishReason reason) {
  ResponsesStream stream(kHead, "\"store\":true,");
  stream.begin();
  for (const TextDelta& delta : deltas) stream.delta(delta);
  stream.finish({.reason = reason, .usage = kUsage, .error = {}});
  const std::string bytes = stream.take();
  TextAnswer answer{.finish = {.reason = reason, .usage = kUsage, .error = {}}};
  for (const TextDelta& delta : deltas) {
    (delta.channel == TextChannel::kReasoning ? answer.reasoning : answer.content) += delta.text;
  }
  const std::vector<Json> events = events_of(bytes);
  // The last event carries the same response as a reply that was not streamed, and the same items as were done.
  EXPECT_EQ(events.back()["response"].dump(), encode_response(kHead, "\"store\":true,", answer).response);
  EXPECT_EQ(events.back()["response"]["output"].dump(), stream.response().output);
  std::size_t done = 0;
  for (const Json& event : events) {
    if (event["type"] == "response.output_item.done") {
      EXPECT_EQ(event["item"], events.back()["response"]["output"][done]);
      EXPECT_EQ(event["output_index"], done++);
    }
  }
  EXPECT_EQ(done, events.back()["response"]["output"].size());
  return events;
}

TEST(Case, BL098_EventsInOrderWithIndexesAndIds) {
  const auto events = streamed({content("4"), content("!\n")}, FinishReason::kStop);
  EXPECT_EQ(types_of(events), (std::vector<std::string>{"created", "in_progress", "output_item.added", "content_part.added",
                                                        "output_text.delta", "output_text.delta", "output_text.done",
                                                        "content_part.done", "output_item.done", "completed"}));
  for (const Json& event : events) {
    const std::string type = event["type"];
    if (type.find("output_text") != std::string::npos || type.find("content_part") != std::string::npos) {
      EXPECT_EQ(event["item_id"], "msg_1");
      EXPECT_EQ(event["output_index"], 0);
      EXPECT_EQ(event["content_index"], 0);
    }
  }
  EXPECT_EQ(events[6]["text"], "4!\n");
  EXPECT_EQ(events.back()["response"]["id"], "resp_1");
  EXPECT_EQ(events.back()["response"]["status"], "completed");
  EXPECT_EQ(events.back()["response"]["usage"]["output_tokens_details"]["reasoning_tokens"], 2);
  EXPECT_EQ(events.back()["response"]["usage"]["total_tokens"], 12);
}

TEST(ResponsesStream, ReasoningIsAnItemBeforeTheMessage) {
  const auto events = streamed({reasoning("hm"), content("4")}, FinishReason::kStop);
  EXPECT_EQ(types_of(events), (std::vector<std::string>{
                                  "created", "in_progress", "output_item.added", "reasoning_summary_part.added",
                                  "reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done",
                                  "output_item.done", "output_item.added", "content_part.added", "output_text.delta",
                                  "output_text.done", "content_part.done", "output_item.done", "completed"}));
  EXPECT_EQ(events[3]["item_id"], "rs_1");
  EXPECT_EQ(events[9]["output_index"], 1);
}

TEST(ResponsesStream, WhatWasCutOffIsIncomplete) {
  const auto message = streamed({content("4")}, FinishReason::kLength);
  EXPECT_EQ(types_of(message).back(), "incomplete");
  EXPECT_EQ(message.back()["response"]["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(message.back()["response"]["output"][0]["status"], "incomplete");
  const auto thought = streamed({reasoning("hm")}, FinishReason::kLength);
  EXPECT_EQ(thought.back()["response"]["output"].size(), 1U);
  EXPECT_EQ(thought.back()["response"]["output"][0]["status"], "incomplete");
  const auto empty = streamed({}, FinishReason::kLength);
  EXPECT_EQ(empty.back()["response"]["output"][0]["content"][0]["text"], "");
}

TEST(ResponsesStream, FailuresEndIt) {
  ResponsesStream stream(kHead, "");
  stream.begin();
  stream.fail({ErrorCode::kInternal, "broken", ""});
  const auto events = events_of(stream.take());
  EXPECT_EQ(events[2]["type"], "response.failed");
  EXPECT_EQ(events[2]["response"]["error"]["message"], "broken");
  EXPECT_EQ(events[3]["type"], "error");
  EXPECT_EQ(events[3]["message"], "broken");
}

}  // namespace
}  // namespace linnet::api
