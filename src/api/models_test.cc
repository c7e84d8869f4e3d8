#include "api/models.h"

#include <gtest/gtest.h>

namespace linnet::api {
namespace {

ModelCard card(std::string id) {
  ModelCard card;
  card.id = std::move(id);
  card.created = 7;
  card.context = 2048;
  return card;
}

TEST(Models, Bytes) {
  const ModelCard a = card("org/\"a\"");
  const ModelCard b = card("b");
  const std::string encoded = R"({"id":"org/\"a\"","object":"model","created":7,"owned_by":"linnet","context_length":2048})";
  EXPECT_EQ(encode_model(a), encoded);
  const ModelCard* cards[] = {&a, &b};
  EXPECT_EQ(encode_model_list(cards), "{\"object\":\"list\",\"data\":[" + encoded + "," + encode_model(b) + "]}");
  EXPECT_EQ(encode_model({.id = "c", .created = 7}), R"({"id":"c","object":"model","created":7,"owned_by":"linnet"})");
  EXPECT_EQ(encode_model_list({}), R"({"object":"list","data":[]})");
}

}  // namespace
}  // namespace linnet::api
