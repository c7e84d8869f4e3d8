#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "entry.h"
#include "weights/gguf_model.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // As aligned as a mapping, and exactly as long, so that a read behind the end is seen.
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data), reinterpret_cast<const std::byte*>(data) + size);
  auto file = linnet::GgufFile::parse(bytes, "fuzz.gguf");
  if (!file.ok()) return 0;
  std::vector<linnet::GgufFile> files;
  files.push_back(std::move(file).value());
  auto parts = linnet::read_gguf_model(std::move(files));
  if (!parts.ok()) return 0;
  const linnet::ModelFile model(std::move(parts).value());
  for (const linnet::NamedTensor& named : model.tensors()) touch(named.tensor.data);
  return 0;
}
